"""People with many rows on a Spark cluster: what enters is what enters on this machine."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from muhat.data import exact_sums, open_source
from muhat.data.base import Source
from muhat.data.categories import categories_of
from muhat.data.coding import Coder
from muhat.data.histogram import CellSource
from muhat.data.selection import Codes
from muhat.data.spark_rows import ROW_NUMBER
from muhat.data.unit_choice import Mixer
from muhat.data.unit_ids import IdentityCoder
from muhat.data.units import People, of_people
from muhat.domains.lattice import BoxLattice

KEY = Mixer(bytes(range(32)))
ROWS = 3000
LATTICE = BoxLattice.around([-1.0], [2.0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People named in several ways, in files that mix them, some rows nobody's, some repeated."""
    random = np.random.default_rng(21)
    persons = random.integers(0, 300, ROWS)
    persons[random.random(ROWS) < 0.3] = 7
    gone = random.random(ROWS) < 0.05
    zeros = np.where(random.random(ROWS) < 0.5, -0.0, 0.0)
    table = pa.table(
        {
            "number": pa.array(persons, mask=gone),
            "text": pa.array([f"näme {person}" for person in persons], mask=gone),
            "float": pa.array(np.where(persons == 7, zeros, persons / 3), mask=gone),
            "decimal": pa.array([Decimal(int(p)) for p in persons], pa.decimal128(9, 2)),
            "flag": persons % 2 == 0,
            "day": pa.array(persons.astype("datetime64[D]"), pa.date32()),
            "value": random.integers(-3, 4, ROWS) / 2,
            "region": random.choice(["a", "b", "c"], ROWS),
        }
    )
    made = tmp_path_factory.mktemp("people")
    for part in range(5):
        pq.write_table(table.take(np.arange(part, ROWS, 5)), made / f"{part}.parquet")
    return made


def opened(data: Any, people: People, column: str, coder: Codes | None = None) -> Source:
    source = open_source(data, [column, people.unit], 1, coders=[coder, IdentityCoder()])
    return of_people(source, people, [] if coder is None else [column], KEY)


@pytest.mark.parametrize("unit", ["number", "text", "float", "decimal", "flag", "day"])
@pytest.mark.parametrize("per", ["row", "mean"])
def test_the_same_rows_and_records_enter(spark: Any, folder: Path, unit: str, per: str) -> None:
    frame = spark.read.parquet(str(folder))
    people = People(unit, 3, per=per)
    there = opened(frame, people, "value")
    here = opened(str(folder / "*.parquet"), people, "value")
    assert exact_sums(there, LATTICE) == exact_sums(here, LATTICE)
    # Another layout, and a second pass.
    again = opened(frame.repartition(7), people, "value")
    assert exact_sums(again, LATTICE) == exact_sums(there, LATTICE)
    assert there.rows() == here.rows() == again.rows()


def test_groups_are_those_of_the_same_rows(spark: Any, folder: Path) -> None:
    (categories,) = categories_of({"region": ["a", "b", "c"]})
    for people in (People("text", 2, one_row_per=("region",)), People("text", per="mean")):
        coder = Coder(categories)
        counts = [
            CellSource(opened(data, people, "region", coder), [coder]).count([(0,)])[0,].tolist()
            for data in (spark.read.parquet(str(folder)), str(folder / "*.parquet"))
        ]
        assert counts[0] == counts[1]


def test_people_of_written_rows_and_of_text(spark: Any, folder: Path, tmp_path: Path) -> None:
    from muhat.data.spark import spark_data
    from muhat.data.spark_csv import spark_csv

    frame = spark.read.parquet(str(folder)).select("text", "value")
    pinned = spark_data(frame, materialize=tmp_path / "rows")
    assert ROW_NUMBER not in frame.columns
    people = People("text", 2)
    here = exact_sums(opened(str(folder / "*.parquet"), people, "value"), LATTICE)
    assert exact_sums(opened(pinned, people, "value"), LATTICE) == here
    table = pq.read_table(folder).select(["text", "value"]).to_pandas()
    table.to_csv(tmp_path / "t.csv", index=False)
    text = spark_csv(spark, str(tmp_path / "t.csv"))
    assert exact_sums(opened(text, people, "value"), LATTICE) == here
    assert exact_sums(opened(str(tmp_path / "t.csv"), people, "value"), LATTICE) == here


@pytest.mark.parametrize("promise", ["approx", "zcdp"])
def test_groups_and_rows_are_learnt_where_the_records_are(
    spark: Any, folder: Path, promise: str
) -> None:
    import muhat as mh

    schema = mh.Schema(
        {"value": (-2, 2), "region": "learn"}, unit="text", max_rows=3, one_row_per="region"
    )
    promises = {"approx": mh.ApproxDP(5_000.0, 1e-3), "zcdp": mh.ApproxZCDP(5_000.0, 1e-3)}
    cells = [mh.Count(by="region"), mh.Quantile("value", by="region"), mh.Mean("value")]
    plan = mh.plan(cells, schema=schema, privacy=promises[promise], n=None)
    for data in (spark.read.parquet(str(folder)), str(folder / "*.parquet")):
        release = plan.release(data)
        counts = release["count by region"]
        assert counts.labels == (("a", "b", "c"),)
        recorded = [part.recorded[0] for _, part in release["quantile value by region"]]
        assert recorded == pytest.approx(counts.value.tolist(), abs=2)
        assert counts.value.sum() > 300
