"""The owner's look at the data, which is not private."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from muhat.data import open_source
from muhat.data.inspect import ColumnReport, inspect
from muhat.errors import InvalidInput


def test_a_csv_file_is_described(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("age,salary\n30,100\n,-5\nabc,1e9\n200,inf\n41\n50,7\n")
    report = inspect(open_source(path, ["salary", "age"], 2), lower=[0, 16], upper=[1000, 90])
    assert (report.rows, report.ragged) == (6, 1)
    assert report.columns[0] == ColumnReport(
        name="salary", type="text", missing=2, non_finite=0, below=1, above=1, minimum=-5.0,
        maximum=1e9,
    )  # fmt: skip
    assert report.columns[1] == ColumnReport(
        name="age", type="text", missing=3, non_finite=0, below=0, above=1, minimum=30.0,
        maximum=200.0,
    )  # fmt: skip
    assert json.loads(json.dumps(report.to_dict()))["columns"][1]["maximum"] == 200.0


def test_typed_columns_and_matrices_are_described() -> None:
    table = pa.table({"a": pa.array([1, None, 2**60], pa.int64()), "b": [0.5, np.nan, -np.inf]})
    report = inspect(open_source(table, dim=2))
    first, second = report.columns
    assert (first.type, first.missing, first.maximum, first.below) == ("int64", 1, 2.0**60, None)
    assert (second.non_finite, second.minimum, second.maximum) == (2, 0.5, 0.5)
    empty = inspect(open_source(np.full((4, 2), np.nan)))
    assert empty.columns[0].minimum is None
    assert empty.columns[0].non_finite == 4


def test_bounds_must_be_one_a_column() -> None:
    with pytest.raises(InvalidInput, match="one bound a column"):
        inspect(open_source(np.zeros((2, 2))), lower=[0.0])
