"""One pass over the data, wherever they are: every record once, exact sums, or a plain failure.

There is one kernel: batches of records in, exact integer sums out. The sum is the same for every
batch split, order, thread count and layout, because every record becomes its own integers first, by
itself, and integers add exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat.data.base import Accumulated, Added, PartitionedSource, Source
from muhat.data.states import Numbers, joined
from muhat.data.tallies import SumTable, Tallied, box_summands, rows_of
from muhat.domains.box_kernel import BoxKernel
from muhat.domains.integers import Lattice
from muhat.errors import DataChanged, InvalidInput, SourceFailed
from muhat.records.columns import Batch, Column, FloatArray, Floats
from muhat.records.exact import Steps
from muhat.records.tiles import floats, transposed


@dataclass(frozen=True)
class Sums:
    """Σ q of every coordinate (or cell), and the records counted. It is data: never show it."""

    total: tuple[int, ...]
    rows: int

    def __repr__(self) -> str:
        return f"Sums(dim={len(self.total)})"


def exact_sums(source: Source, lattice: Lattice, *, missing: str = "center") -> Sums:
    """One pass over the source: the integer sums of its records on the lattice.

    The result is the same for every engine and number of threads. Raises DataChanged if the source
    is not what was opened, and SourceFailed, without a word of the cause, if it cannot be read.
    """
    if source.dim != lattice.record_dim:
        raise InvalidInput(f"the data have {source.dim} columns, the domain {lattice.record_dim}.")
    accumulators = read_once(source, lambda: Accumulator(lattice, missing))
    total = tuple(sum(parts) for parts in zip(*(each.total for each in accumulators), strict=True))
    return Sums(total, sum(each.counted for each in accumulators))


def read_once(source: Source, accumulator: Callable[[], Accumulated]) -> list[Accumulated]:
    """One pass over the source, every record of it added to one of the accumulators.

    `accumulator` is sent to where the records are: it must hold nothing of the source. Raises
    DataChanged and SourceFailed as `exact_sums` does.
    """
    source.check_unchanged()
    found = source.fold(accumulator)
    return _checked(source, found)


def read_here(source: Source, accumulator: Callable[[], Added]) -> list[Added]:
    """As `read_once`, by something that works on this machine only; see `require_here`."""
    here = require_here(source)
    source.check_unchanged()
    found = here.fold(accumulator)
    return _checked(source, found)


def require_here(source: Source) -> PartitionedSource:
    """Refuse a source whose records are elsewhere: they are never fetched."""
    if not isinstance(source, PartitionedSource):
        raise InvalidInput(
            "must be on this machine for this: it needs all records at once, and those of a "
            "cluster are never fetched",
            parameter="data",
            hint=(
                "Write them to a file and pass its path; some mechanisms can do with numbered "
                "rows: spark_data(frame, materialize=path)."
            ),
        )
    return source


def _checked(source: Source, accumulators: list[Added] | None) -> list[Added]:
    source.check_unchanged()
    if accumulators is None:
        raise SourceFailed(
            "the data could not be read to the end: the file may be damaged. The charge stays."
        )
    if source.known_rows not in (None, sum(each.rows for each in accumulators)):
        raise DataChanged("the data have changed their length since they were counted.")
    return accumulators


def gathered(source: Source) -> FloatArray:
    """One pass: the records as floats, of shape (rows, d), in no order that is to be relied on.

    What is missing or not finite becomes not-a-number. Raises DataChanged and SourceFailed as
    `exact_sums` does.
    """
    dim = source.dim
    parts = [part for each in read_here(source, lambda: _Gatherer(dim)) for part in each.parts]
    return np.concatenate(parts) if parts else np.empty((0, dim))


class _Gatherer:
    """Keeps batches, for one thread."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self.parts: list[FloatArray] = []
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Keep every record of the batch."""
        self.rows += batch.rows + batch.absent
        if batch.matrix is not None:
            values = batch.matrix.copy()
        else:
            values = np.column_stack([floats(column) for column in batch.columns])
        values[~np.isfinite(values)] = np.nan
        self.parts.append(values)
        if batch.absent:
            self.parts.append(np.full((batch.absent, self._dim), np.nan))


_BLOCK_VALUES = 1 << 19
_MOST_ROWS = 1 << 16
_FEWEST_ROWS = 1 << 10
_MOST_VALUES = 1 << 22
_LEAST_WIDE, _WIDE_VALUES = 512, 1 << 16
"""Records of so many coordinates are taken row by row: their columns are too short for numpy."""


class Accumulator:
    """Adds batches up on a lattice; not shared between threads.

    `total` is Σ q of every sum, `rows` the records seen and `counted` those that count: all of
    them with missing="center", with missing="drop" the complete ones, and known codes only.
    """

    def __init__(self, lattice: Lattice, missing: str = "center") -> None:
        self._drop = _check.one_of("missing", missing, ("center", "drop")) == "drop"
        self._lattice = lattice
        self._kernel = lattice.kernel()
        self._block_rows = _rows_a_block(lattice.width)
        self._wide = lattice.record_dim >= _LEAST_WIDE
        self._tile = np.empty((lattice.record_dim, 0))
        self._total: NDArray[Any] = np.zeros(lattice.dim, lattice.sum_type)
        self.rows = 0
        self.counted = 0

    @property
    def total(self) -> list[int]:
        """Σ q, one Python integer a sum."""
        return list(self._total.tolist())

    def add(self, batch: Batch) -> None:
        """Add the integers of every record of the batch."""
        self.rows += batch.rows + batch.absent
        if batch.absent and not self._drop:
            self.counted += batch.absent
            if self._kernel.absent is not None:
                self._total += batch.absent * self._kernel.absent.astype(self._total.dtype)
        # A warning would depend on the data.
        with np.errstate(all="ignore"):
            for sums, counted in self._block_sums(batch):
                self.counted += counted
                self._total += np.asarray(sums, self._total.dtype)

    def state(self) -> Numbers:
        """The records seen, those that count, and Σ q of every sum."""
        return joined(self.rows, self.counted, self._total)

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        self.counted += int(state[1])
        self._total += state[2:].astype(self._total.dtype)

    def _block_sums(self, batch: Batch) -> Iterator[tuple[Sequence[int] | Steps, int]]:
        kernel = self._kernel
        if batch.matrix is not None and self._wide and isinstance(kernel, BoxKernel):
            rows = max(_WIDE_VALUES // batch.matrix.shape[1], 1)
            for start in range(0, batch.rows, rows):
                yield kernel.sums_of_rows(batch.matrix[start : start + rows], drop=self._drop)
            return
        for columns in self._blocks(batch):
            yield kernel.sums(columns, drop=self._drop)

    def tallies(self) -> list[SumTable] | None:
        """Records that count, and Σ q, of a box."""
        summands = box_summands(self._lattice, self._drop)
        return None if summands is None else [SumTable((), summands)]

    def tallied(self, found: Sequence[Tallied]) -> Numbers:
        """The state that these sums make."""
        ((_, *sums),) = found[0].values()
        return joined(rows_of(found[0]), list(sums))

    def _blocks(self, batch: Batch) -> Iterator[Sequence[Column]]:
        for start in range(0, batch.rows, self._block_rows):
            stop = min(start + self._block_rows, batch.rows)
            if batch.matrix is None:
                yield [column.part(start, stop) for column in batch.columns]
            else:
                yield [Floats(row) for row in self._transposed(batch.matrix[start:stop])]

    def _transposed(self, rows: FloatArray) -> FloatArray:
        """The block with its coordinates as contiguous rows, shape (d, rows)."""
        if self._tile.shape[1] < len(rows):
            self._tile = np.empty((rows.shape[1], len(rows)))
        return transposed(rows, self._tile[:, : len(rows)])


def record_integers(lattice: Lattice, batch: Batch, missing: str = "center") -> Steps:
    """q of every record of a batch, shape (rows, lattice.dim): what the sums are made of.

    For tests and audits: it is data, not a release. Absent records are not listed. Records of
    listed points are one-hot.
    """
    drop = _check.one_of("missing", missing, ("center", "drop")) == "drop"
    columns = batch.columns
    if batch.matrix is not None:
        columns = [Floats(batch.matrix[:, index]) for index in range(batch.matrix.shape[1])]
    with np.errstate(all="ignore"):
        return lattice.kernel().integers(columns, drop=drop)


def _rows_a_block(dim: int) -> int:
    """Many enough to hide numpy's overhead, few enough to stay in the cache."""
    rows = min(_BLOCK_VALUES // dim, _MOST_ROWS)
    return max(rows, min(_FEWEST_ROWS, _MOST_VALUES // dim), 1)
