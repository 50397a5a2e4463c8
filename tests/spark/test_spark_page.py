"""The examples of docs/spark.md run as they stand."""

from __future__ import annotations

import re
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
BLOCK = re.compile(r"(?:^    .*\n|^\n(?=    ))+", flags=re.M)


def test_the_examples_of_the_page_run(spark: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    rows = 20_000
    people = {
        "salary": random.lognormal(10.5, 0.5, rows),
        "age": random.normal(45, 15, rows).clip(16, 90),
        "region": random.choice(["north", "south"], rows),
    }
    pq.write_table(pa.table(people), tmp_path / "people.parquet")
    lines = ["age;note", *(f'{age};"a\n;b"' for age in people["age"])]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    read = spark.read.parquet

    def here(path: str) -> Any:
        return read(str(tmp_path / path))

    examples = [textwrap.dedent(each) for each in BLOCK.findall(PAGE.read_text())]
    assert len(examples) == 4
    space: dict[str, Any] = {"spark": _Spark(here), "session": spark}
    for example in examples:
        text = example.replace("spark_csv(spark, ", "spark_csv(session, ")
        for name in ("pinned", "people.csv"):
            text = text.replace(f'"{name}"', repr(str(tmp_path / name)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            exec(text, space)
        if "spark_csv" in text:
            assert space["release"].n == rows
            assert abs(float(space["release"]) - people["age"].mean()) < 5
    assert abs(float(space["release"]) - people["age"].mean()) < 5
    assert set(space["by_region"].groups) == {"north", "south"}


class _Spark:
    """A session that finds files in a folder."""

    def __init__(self, parquet: Any) -> None:
        self.read = self
        self.parquet = parquet
