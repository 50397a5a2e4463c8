"""The first records of a source and all the others, by a row number that nobody's value changes.

Row numbers are public places: the index in an array or a table; in files the order of the paths,
then of row groups or record batches, then of rows; on Spark a number that is stored beside each
row. A record is in one half or in the other, in every pass,
whatever any record holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from muhat import _check
from muhat.data.base import Partition, PartitionedSource, Source
from muhat.data.engine import require_here
from muhat.errors import InvalidInput
from muhat.records.columns import Batch


@dataclass(frozen=True)
class Halves:
    """Two sources that share the rows of one: every row is in exactly one of them."""

    head: Source
    tail: Source


@runtime_checkable
class Splits(Protocol):
    """A source that is not on this machine and tells its rows by numbers stored beside them."""

    def split(self, first: int) -> tuple[Source, Source]:
        """The first `first` rows and the others."""

    def without(self, places: Sequence[int]) -> Source:
        """All rows but those at some places, 0 the first."""


def split_rows(source: Source, first: int) -> Halves:
    """The first `first` rows and the others, each at least one.

    A source that may hand its rows out in another order on another pass is refused, for a record
    that was read in both halves would be protected by neither. Decided from what the source is,
    before any value is read.

    >>> import numpy as np
    >>> from muhat.data import open_source
    >>> halves = split_rows(open_source(np.arange(5.0)), 2)
    >>> halves.head.rows(), halves.tail.rows()
    (2, 3)
    """
    require_stable_order(source)
    rows = source.rows()
    first = _check.count("first", first)
    if first >= rows:
        raise InvalidInput("must leave at least one row for the second half", parameter="first")
    if isinstance(source, Splits):
        return Halves(*source.split(first))
    assert isinstance(source, PartitionedSource)
    boundary = _Boundary()
    return Halves(_Head(source, first, rows, boundary), _Tail(source, first, rows, boundary))


def require_random_part(source: Source, *, ordered: bool) -> None:
    """Refuse a source that random rows cannot be left out of, or put in random order if `ordered`.

    On this machine both are done in memory. Rows elsewhere are left out by their numbers.
    """
    if ordered or not isinstance(source, Splits):
        require_here(source)


def require_stable_order(source: Source) -> None:
    """Refuse a source whose rows have no number that lasts: arrays and files do, streams do not."""
    from muhat.data.files import FilesSource
    from muhat.data.memory import MemorySource
    from muhat.data.tables import LazySource

    if not isinstance(source, MemorySource | LazySource | FilesSource | Splits):
        raise InvalidInput(
            "must have rows in a fixed order, to be split in two: an array, a table or files",
            parameter="data",
            hint=(
                "A stream may change its order between two passes: read it into a table first. "
                "The rows of a Spark frame need a number: spark_data(frame, materialize=path)."
            ),
        )


@dataclass
class _Boundary:
    """Where the first half ends: the unit of work of its last row, and the rows before that unit.

    Known once the first half has been read; so the second need not decode what lies before.
    """

    partition: int | None = field(default=None)
    before: int = field(default=0)


class _Half(PartitionedSource):
    """Some of the rows of a source."""

    def __init__(
        self, source: PartitionedSource, first: int, rows: int, boundary: _Boundary
    ) -> None:
        self.columns = source.columns
        self.types = source.types
        self._source = source
        self._first = first
        self._all = rows
        self._boundary = boundary

    @property
    def known_rows(self) -> int | None:
        """Decided before anything is read."""
        return self.rows()

    @property
    def bytes_a_thread(self) -> int:
        """That of the whole."""
        return self._source.bytes_a_thread

    def check_unchanged(self) -> None:
        """Raise DataChanged if the whole is not what was opened."""
        self._source.check_unchanged()


class _Head(_Half):
    """The rows before `first`, one after another."""

    def rows(self) -> int:
        """How many were asked for."""
        return self._first

    def partitions(self) -> Sequence[Partition]:
        """One: where a row number falls is known only after the rows before it."""
        size = sum(part.size for part in self._source.partitions())
        return [Partition(size * self._first // self._all, self._batches)]

    def _batches(self) -> Iterator[Batch]:
        left, before = self._first, 0
        for index, part in enumerate(self._source.partitions()):
            self._boundary.partition, self._boundary.before = index, before
            with closing(_generator(part)) as batches:
                for batch in batches:
                    head, _ = cut(batch, left)
                    yield head
                    left -= head.rows + head.absent
                    before += head.rows + head.absent
                    if not left:
                        return


class _Tail(_Half):
    """The rows from `first` on."""

    def rows(self) -> int:
        """All the others."""
        return self._all - self._first

    def partitions(self) -> Sequence[Partition]:
        """Whole units of work after the one that holds the boundary, and the rest of that one."""
        parts = list(self._source.partitions())
        found = self._boundary.partition
        if found is None:
            size = sum(part.size for part in parts)
            return [Partition(size, lambda: _after(parts, self._first))]
        skipped = self._first - self._boundary.before
        shared = parts[found]
        return [Partition(shared.size, lambda: _after([shared], skipped)), *parts[found + 1 :]]


def cut(batch: Batch, at: int) -> tuple[Batch, Batch]:
    """The first `at` records of a batch and the others, absent ones where they belong."""
    total = batch.rows + batch.absent
    if at >= total:
        return batch, _slice(batch, batch.rows, batch.rows, 0)
    gaps = batch.gaps or tuple(range(batch.rows, total))
    absent = sum(gap < at for gap in gaps)
    rows = at - absent
    return (
        _slice(batch, 0, rows, absent),
        _slice(batch, rows, batch.rows, batch.absent - absent),
    )


def _slice(batch: Batch, start: int, stop: int, absent: int) -> Batch:
    """Some rows of a batch with some absent records, whose places do not matter any more."""
    if batch.matrix is not None:
        return Batch(stop - start, matrix=batch.matrix[start:stop], absent=absent)
    columns = [column.part(start, stop) for column in batch.columns]
    return Batch(stop - start, columns, absent=absent)


def _after(parts: Sequence[Partition], skipped: int) -> Iterator[Batch]:
    """All records of some units of work but the first ones."""
    for part in parts:
        for batch in part.batches():
            if skipped:
                head, batch = cut(batch, skipped)
                skipped -= head.rows + head.absent
            yield batch


def _generator(part: Partition) -> Any:
    """The batches of a unit of work, closed when no more of them are wanted."""
    yield from part.batches()
