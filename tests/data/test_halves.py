"""Every row is in one half, the same one on every pass, whatever any record holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from muhat.data import Source, open_source, parquet, text_file
from muhat.data.halves import cut, split_rows
from muhat.errors import DataChanged, InvalidInput
from muhat.records.columns import Batch, Floats

ROWS = 1000


def values(source: Source) -> list[float]:
    """The values of a column in the order of the units of work; missing ones are −1."""
    found: list[float] = []
    for part in source.partitions():
        for batch in part.batches():
            column = batch.columns[0]
            assert isinstance(column, Floats)
            found += np.where(column.present(), column.values, -1.0).tolist()
            found += [-1.0] * batch.absent
    return found


def table(start: int = 0, stop: int = ROWS) -> pa.Table:
    return pa.table({"x": np.arange(float(start), stop)})


def arrays(_: Path) -> Iterator[Any]:
    numbers = np.arange(float(ROWS))
    yield numbers
    yield numbers.astype(np.float32)
    yield {"x": numbers}
    yield numbers.tolist()
    yield pa.Table.from_batches(table().to_batches(max_chunksize=77))
    yield table().to_pandas()


def files(folder: Path) -> Iterator[Any]:
    pq.write_table(table(), folder / "groups.parquet", row_group_size=64)
    yield folder / "groups.parquet"
    for index, (start, stop) in enumerate([(0, 100), (100, 101), (101, 700), (700, ROWS)]):
        part = table(start, stop)
        pq.write_table(part, folder / f"many{index}.parquet", row_group_size=50)
        lines = [f"{value:.1f},0" for value in range(start, stop)]
        (folder / f"text{index}.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    yield str(folder / "many*.parquet")
    yield [folder / f"many{index}.parquet" for index in range(4)]
    yield str(folder / "text*.csv")
    feather.write_feather(table(), folder / "one.feather", chunksize=90)
    yield folder / "one.feather"


@pytest.fixture
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units of work and blocks so small that the boundary falls inside and between them."""
    monkeypatch.setattr(parquet, "_PARTITION_BYTES", 1500)
    monkeypatch.setattr(parquet, "_MOST_BATCH_ROWS", 23)
    monkeypatch.setattr(text_file, "PARTITION_BYTES", 700)
    monkeypatch.setattr(text_file, "BLOCK_BYTES", 150)


@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize("kind", [arrays, files])
@pytest.mark.parametrize("first", [1, 50, 64, 100, 101, 699, 700, 999])
def test_the_halves_are_the_rows_before_and_after(kind: Any, first: int, tmp_path: Path) -> None:
    for data in kind(tmp_path):
        source = open_source(data, ["x"] if kind is files else None)
        halves = split_rows(source, first)
        for _ in range(2):
            assert values(halves.head) == list(range(first))
            assert values(halves.tail) == list(range(first, ROWS))
        # The other half by itself, before the first has told where it begins.
        assert values(split_rows(source, first).tail) == list(range(first, ROWS))


@pytest.mark.usefixtures("small_units")
def test_what_lies_before_the_boundary_is_not_read_twice(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "x.parquet", row_group_size=64)
    source = open_source(tmp_path / "x.parquet")
    halves = split_rows(source, 500)
    assert len(halves.tail.partitions()) == 1
    values(halves.head)
    parts = len(source.partitions())
    assert 1 < len(halves.tail.partitions()) < parts


@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize("first", [3, 10, 11, 37, 150])
def test_a_ragged_line_moves_no_other_line_to_another_half(first: int, tmp_path: Path) -> None:
    lines = [f"{value:.1f},0" for value in range(200)]

    def halves_of(rows: list[str]) -> tuple[list[float], list[float]]:
        (tmp_path / "x.csv").write_text("\n".join(["x,y", *rows]) + "\n")
        halves = split_rows(open_source(tmp_path / "x.csv", ["x"]), first)
        return sorted(values(halves.head)), sorted(values(halves.tail))

    whole = halves_of(lines)
    for place in {0, first - 2, first - 1, first, first + 1, 199} & set(range(200)):
        for poison in ("7", "1,2,3", '"', 'a,"b', "", "x,y" * 50):
            rows = list(lines)
            rows[place] = poison
            for before, after, half in zip(whole, halves_of(rows), range(2), strict=True):
                assert len(before) == len(after)
                changed = [value for value in before if value not in after]
                assert changed == ([float(place)] if (place >= first) == bool(half) else [])


def test_a_batch_is_cut_at_the_place_of_a_record() -> None:
    column = Floats(np.array([0.0, 2.0, 3.0]))
    batch = Batch(3, [column], absent=2, gaps=(1, 4))
    for at, rows, absent in [(0, 0, 0), (1, 1, 0), (2, 1, 1), (3, 2, 1), (4, 3, 1), (5, 3, 2)]:
        head, tail = cut(batch, at)
        assert (head.rows, head.absent) == (rows, absent)
        assert (tail.rows, tail.absent) == (3 - rows, 2 - absent)
    head, tail = cut(Batch(2, matrix=np.eye(2), absent=1), 1)
    assert head.matrix is not None
    assert head.matrix.tolist() == [[1.0, 0.0]]
    assert (tail.rows, tail.absent) == (1, 1)


class Stream:
    """Hands out an Arrow stream again and again, in whatever order it likes."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return table().__arrow_c_stream__(requested_schema)


def test_a_source_without_a_fixed_order_is_refused() -> None:
    with pytest.raises(InvalidInput, match="fixed order"):
        split_rows(open_source(Stream()), 10)


@pytest.mark.parametrize("first", [0, -1, ROWS, ROWS + 1, 0.5])
def test_both_halves_have_rows(first: Any) -> None:
    with pytest.raises(InvalidInput, match="first"):
        split_rows(open_source(np.zeros(ROWS)), first)


def test_a_file_that_changes_between_the_halves_is_noticed(tmp_path: Path) -> None:
    from muhat.data.bin_counts import BinCounter, BinGrid
    from muhat.data.engine import read_once

    path = tmp_path / "x.csv"
    path.write_text("x\n" + "1\n" * 50)
    halves = split_rows(open_source(path), 10)
    grid = BinGrid.of_width(1.0)
    read_once(halves.head, lambda: BinCounter([grid], [0]))
    path.write_text("x\n" + "1\n" * 51)
    with pytest.raises(DataChanged):
        read_once(halves.tail, lambda: BinCounter([grid], [0]))
