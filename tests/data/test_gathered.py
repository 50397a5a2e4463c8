"""All records in memory: the same numbers from every kind of source."""

from __future__ import annotations

import decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import muhat as mh
from muhat.data import open_source
from muhat.data.engine import gathered


def table() -> pa.Table:
    rng = np.random.default_rng(3)
    floats = rng.standard_normal(1000)
    floats[[3, 500]] = np.inf, np.nan
    whole = pa.array([None if i % 50 == 0 else i * 10**15 for i in range(1000)], pa.int64())
    money = [None if i == 7 else decimal.Decimal(i) / 100 for i in range(1000)]
    return pa.table({"a": floats, "b": whole, "c": pa.array(money, pa.decimal128(30, 2))})


def in_order(rows: np.ndarray) -> np.ndarray:
    return rows[np.lexsort(rows.T)]


def test_every_record_is_there_once_and_what_is_missing_is_not_a_number(tmp_path: Path) -> None:
    data = table()
    path = tmp_path / "d.parquet"
    pq.write_table(data, path, row_group_size=77)
    expected = np.column_stack(
        [[np.nan if v is None else float(v) for v in data[name].to_pylist()] for name in "abc"]
    )
    expected[~np.isfinite(expected)] = np.nan
    for source in (data, path, data.to_pandas(types_mapper=pd.ArrowDtype)):
        rows = gathered(open_source(source, None, 3))
        assert rows.shape == (1000, 3)
        assert np.array_equal(in_order(rows), in_order(expected), equal_nan=True)


def test_an_array_is_copied() -> None:
    data = np.array([[1.0, np.inf], [np.nan, -2.0]])
    rows = gathered(open_source(data, None, 2))
    assert np.array_equal(rows, [[1, np.nan], [np.nan, -2]], equal_nan=True)
    rows[:] = 7
    assert data[0, 1] == np.inf


def test_lines_that_cannot_be_read_are_missing_records(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,b\n1,2\nnonsense\n3,4\n5\n")
    rows = gathered(open_source(path, None, 2))
    assert rows.shape == (4, 2)
    assert np.nansum(rows) == pytest.approx(10, abs=5)


def test_no_records_have_no_rows() -> None:
    assert gathered(open_source(np.empty((0, 3)), None, 3)).shape == (0, 3)


def test_files_that_change_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pq.write_table(table(), path)
    source = open_source(path, None, 3)
    pq.write_table(table().slice(1), path)
    with pytest.raises(mh.DataChanged):
        gathered(source)
