"""Complete records: which they are, on every kind of source, and that every pass sees the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muhat.data import open_source
from muhat.data.base import paced
from muhat.data.changed import Changing
from muhat.data.complete import CompleteSource, _complete_parts, complete_part
from muhat.data.engine import _Gatherer
from muhat.data.states import packed, unpacked
from muhat.records.columns import Batch, Floats, Integers

ROWS = np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, np.inf], [5.0, 6.0], [7.0, -np.inf]])
COMPLETE = [[1.0, 2.0], [5.0, 6.0]]


def gathered(batch: Batch) -> list[list[float]]:
    keeper = _Gatherer(2)
    keeper.add(batch)
    return np.concatenate(keeper.parts).tolist()


def test_a_record_that_lacks_any_value_is_left_out_of_a_matrix() -> None:
    assert gathered(complete_part(Batch(5, (), ROWS, absent=3))) == COMPLETE


def test_a_record_that_lacks_any_value_is_left_out_of_columns_of_unlike_types() -> None:
    valid = np.array([True, True, False, True])
    columns = [Floats(np.array([1.0, np.nan, 2.0, 3.0])), Integers(np.arange(4), valid)]
    assert gathered(complete_part(Batch(4, columns))) == [[1.0, 0.0], [3.0, 3.0]]


def test_a_complete_batch_is_passed_on_as_it_is() -> None:
    matrix = np.ones((4, 2))
    assert complete_part(Batch(4, (), matrix)).matrix is matrix
    ends = np.array([1.7976931348623157e308, -1.7976931348623157e308, 5e-324, -0.0])
    columns = [Floats(ends, np.ones(4, bool)), Integers(np.arange(4))]
    assert complete_part(Batch(4, columns)).columns is columns
    empty = complete_part(Batch(0, [Floats(ends[:0])]))
    assert (empty.rows, complete_part(Batch(0, (), matrix[:0])).rows) == (0, 0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 1, 3])
def test_one_value_that_is_not_there_is_seen_wherever_it_is(value: float, row: int) -> None:
    matrix = np.arange(8.0).reshape(4, 2)
    matrix[row, 1] = value
    kept = np.delete(np.arange(4), row)
    columns = [Floats(each) for each in matrix.T]
    for batch in (Batch(4, (), matrix), Batch(4, columns)):
        assert gathered(complete_part(batch)) == matrix[kept].tolist()


@pytest.mark.parametrize("kind", ["array", "table", "csv", "parquet"])
def test_every_source_has_the_same_complete_records(kind: str, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    table = pa.table({"a": [1.0, None, 4.0, 5.0, 7.0], "b": [2.0, 3.0, None, 6.0, None]})
    (tmp_path / "t.csv").write_text("a,b\n1,2\n,3\n4,x\n5,6\n7\n")
    pq.write_table(table, tmp_path / "t.parquet")
    data: dict[str, Any] = {
        "array": ROWS,
        "table": table,
        "csv": tmp_path / "t.csv",
        "parquet": tmp_path / "t.parquet",
    }
    source = CompleteSource(open_source(data[kind], None if kind == "array" else ["a", "b"], 2))
    assert source.rows() == 2
    with paced(threads=1):
        found = source.fold(lambda: _Summing())
    assert found is not None
    assert sum(each.total for each in found) == 14.0


def test_what_is_sent_home_holds_all_records_seen_and_those_that_count() -> None:
    ours, theirs = (Changing(_Summing(), _complete_parts) for _ in range(2))
    ours.add(Batch(5, (), ROWS))
    theirs.absorb(unpacked(packed(ours.state())))
    assert (theirs.rows, theirs.inner.rows, theirs.inner.total) == (5, 2, 14.0)


class _Summing:
    """Adds whole numbers up."""

    def __init__(self) -> None:
        self.rows = 0
        self.total = 0

    def add(self, batch: Batch) -> None:
        keeper = _Gatherer(2)
        keeper.add(batch)
        self.rows += batch.rows
        self.total += int(sum(part.sum() for part in keeper.parts))

    def state(self) -> Any:
        return np.array([self.rows, self.total])

    def absorb(self, state: Any) -> None:
        self.rows += int(state[0])
        self.total += int(state[1])
