"""Sums and counts of records within public groups: exact integers, in one pass.

Every record is clipped and rounded onto the lattice, or a grid, as it would be without groups, to
the same integers, and falls in one group, whatever its values are.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat.data.base import Source
from muhat.data.categories import Categories
from muhat.data.cell_kernel import codes_of_groups
from muhat.data.coding import Coder
from muhat.data.engine import read_once
from muhat.data.grid_counts import Window, WindowCounts
from muhat.data.grids import UniformGrid
from muhat.data.group_cells import GroupCells
from muhat.data.selection import column_names
from muhat.data.shared import Pass, Reading, carried_out
from muhat.data.sources import open_source
from muhat.data.states import Numbers, joined
from muhat.data.tallies import CoderCell, SumTable, Tallied, box_summands, rows_of
from muhat.data.units import People
from muhat.domains.lattice import BoxLattice, ColumnsLattice
from muhat.errors import InvalidInput
from muhat.records.columns import Batch, Column, whole_records
from muhat.workloads.cells import product, writable

_BLOCK_ROWS = 1 << 15
_LOW_BITS = 23
"""q = h·2^23 + l: 64 bits hold the sums of 2^40 halves h and l."""

_SHORT_BITS = 7
"""q = h·2^7 + l: sums of 2^15 parts |h| ≤ 2^38 are exact as floats, and so are those of
l·2^22 + l', the short parts of two coordinates."""

_APART = 1 << 22


@dataclass(frozen=True)
class GroupSums:
    """Σ q of every group and coordinate, and the records of every group. Data: never show it.

    `total` has shape (groups, d), as Python integers.
    """

    total: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]

    def __repr__(self) -> str:
        return f"GroupSums(groups={len(self.rows)})"


class GroupSource:
    """Records with groups; made from arguments and metadata alone."""

    def __init__(self, source: Source, coders: Sequence[Coder]) -> None:
        self._source = source
        self._coders = tuple(coders)

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of every coordinate that is summed."""
        return self._source.columns[: -len(self._coders)]

    @property
    def by(self) -> tuple[str, ...]:
        """The names of the columns that make the groups."""
        return self._source.columns[-len(self._coders) :]

    @property
    def categories(self) -> tuple[Categories, ...]:
        """The categories of the columns that make the groups."""
        return tuple(coder.categories for coder in self._coders)

    @property
    def groups(self) -> int:
        """The number of groups: one for each combination of categories, in C order."""
        return product("groups", [coder.size for coder in self._coders])

    def rows(self) -> int:
        """How many records there are, from metadata or by counting lines."""
        return self._source.rows()

    def sums(self, lattice: BoxLattice | ColumnsLattice, *, missing: str = "center") -> GroupSums:
        """One pass over the data. With missing="drop" incomplete records are in no group; on a
        lattice of columns every column counts its own values instead.

        Raises DataChanged and SourceFailed as `exact_sums` does.
        """
        if len(self.columns) != lattice.record_dim:
            raise InvalidInput(
                f"the data have {len(self.columns)} columns, the domain {lattice.record_dim}."
            )
        drop = _check.one_of("missing", missing, ("center", "drop")) == "drop"
        coders, groups = self._coders, self.groups
        accumulators = read_once(
            self._source, lambda: _GroupAccumulator(lattice, coders, groups, drop)
        )
        total = reduce(operator.add, [each.total() for each in accumulators])
        rows: list[int] = reduce(operator.add, [each.counts for each in accumulators]).tolist()
        return GroupSums(tuple(map(tuple, total.tolist())), tuple(rows))

    def counts(
        self, grids: Sequence[UniformGrid], windows: Sequence[Window], *, missing: str = "center"
    ) -> list[WindowCounts]:
        """One pass over the data: the counts of every window among the records of its group.

        Missing values go where `count_windows` puts them.
        """
        return carried_out(self.counting(grids, windows, missing=missing))

    def counting(
        self, grids: Sequence[UniformGrid], windows: Sequence[Window], *, missing: str = "center"
    ) -> Reading[list[WindowCounts]]:
        """`counts`, as a reading that may share its pass."""
        drop = _check.one_of("missing", missing, ("center", "drop")) == "drop"
        coders, groups = self._coders, self.groups
        found: list[GroupCells] = yield Pass(
            self._source, lambda: GroupCells(grids, windows, coders, groups, drop)
        )
        first, *others = found
        for each in others:
            first.merge(each)
        return first.counted(windows)


def open_groups(
    data: Any,
    columns: object,
    by: object,
    categories: Sequence[Categories],
    *,
    dim: int | None = None,
    people: People | None = None,
) -> GroupSource:
    """The data as records of `dim` numbers with groups, or InvalidInput; no value is read.

    `columns` and `by` are names, or numbers for an array; there is one of the categories for each
    of the columns in `by`. Several columns make one group a combination. `people` as `open_source`
    has them.
    """
    values, groups = column_names(columns), column_names(by)
    if values is None or groups is None:
        raise InvalidInput(
            "must be named when there are groups, and so must by", parameter="columns"
        )
    if len(groups) != len(categories):
        raise InvalidInput(
            f"must have as many columns as have categories: got {len(groups)} columns and "
            f"{len(categories)} categories",
            parameter="by",
        )
    shared = [name for name in groups if name in values]
    if shared:
        raise InvalidInput(
            "must not be one of the columns asked about", parameter="by", value=f"{shared[0]!r:.80}"
        )
    coders = [Coder(each) for each in categories]
    both = column_names([*values, *groups])
    total = None if dim is None else dim + len(coders)
    every = [*(None for _ in values), *coders]
    source = GroupSource(open_source(data, both, total, coders=every, people=people), coders)
    writable("the sums of all groups", source.groups * len(source.columns))
    return source


class _GroupAccumulator:
    """Sums the integers of records by group, for one thread."""

    def __init__(
        self, lattice: BoxLattice | ColumnsLattice, coders: Sequence[Coder], groups: int, drop: bool
    ) -> None:
        self._lattice = lattice
        self._coders = tuple(coders)
        self._kernel = lattice.kernel()
        self._sizes = [coder.size for coder in coders]
        self._absent = [coder.absent for coder in coders]
        self._groups = groups
        self._drop = drop
        # Two halves of every sum, so that 64 bits hold 2^40 records of 2^45 steps.
        self._high = np.zeros((groups, lattice.dim), np.int64)
        self._low = np.zeros((groups, lattice.dim), np.int64)
        # What others held has no bound on its records.
        self._absorbed: NDArray[Any] = np.zeros((groups, lattice.dim), object)
        self._sums = BlockSums()
        self.counts = np.zeros(groups, np.int64)
        self.rows = 0

    def total(self) -> NDArray[Any]:
        """Σ q, of shape (groups, d), as Python integers."""
        high = self._high.astype(object) * (1 << _LOW_BITS)
        return np.asarray(high + self._low + self._absorbed)

    def state(self) -> Numbers:
        """The records seen, those of every group, and Σ q by group and coordinate."""
        return joined(self.rows, self.counts, self.total())

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        self.counts += state[1 : 1 + self._groups].astype(np.int64)
        self._absorbed += state[1 + self._groups :].reshape(self._absorbed.shape)

    def tallies(self) -> list[SumTable] | None:
        """Records that count, and Σ q, by the groups' columns."""
        summands = box_summands(self._lattice, self._drop)
        if summands is None:
            return None
        first = self._lattice.record_dim
        cells = [CoderCell(first + place, coder) for place, coder in enumerate(self._coders)]
        return [SumTable(tuple(cells), summands)]

    def tallied(self, found: Sequence[Tallied]) -> Numbers:
        """The state that these sums make; records without a group are seen, and no more."""
        counts = np.zeros(self._groups, np.int64)
        total = np.zeros(self._absorbed.shape, object)
        for codes, (_, counted, *sums) in found[0].items():
            if all(code < size for code, size in zip(codes, self._sizes, strict=True)):
                group = np.ravel_multi_index(codes, self._sizes)
                counts[group], total[group] = counted, sums
        return joined(rows_of(found[0]), counts, total)

    def add(self, batch: Batch) -> None:
        """Add every record of the batch that has a group."""
        self.rows += batch.rows + batch.absent
        if batch.absent and not self._drop:
            # Nothing of such a record is there: its integers are 0, the centre.
            codes = [np.array([code]) for code in self._absent]
            groups, kept = codes_of_groups(codes, self._sizes)
            if kept is None:
                self.counts[groups] += batch.absent
        with np.errstate(all="ignore"):
            for start in range(0, batch.rows, _BLOCK_ROWS):
                stop = min(start + _BLOCK_ROWS, batch.rows)
                self._add_block([column.part(start, stop) for column in batch.columns])

    def _add_block(self, columns: Sequence[Column]) -> None:
        values = columns[: -len(self._sizes)]
        axes = [column.values for column in columns[-len(self._sizes) :]]
        groups, kept = codes_of_groups(axes, self._sizes)
        if self._drop:
            whole = whole_records(values)
            kept = whole if kept is None else kept & whole
        parts = self._kernel.parts(values, drop=self._drop)
        if kept is not None:
            groups, parts = groups[kept], [part[kept] for part in parts]
        counts = np.bincount(groups, minlength=self._groups)
        self.counts += counts
        for coordinate, sums in enumerate(self._sums.of(parts, groups, counts)):
            high, low = np.divmod(sums, 1 << _LOW_BITS)
            self._high[:, coordinate] += high
            self._low[:, coordinate] += low


class BlockSums:
    """Sums of blocks of at most 2^15 records by groups; holds buffers, so one a thread.

    One pass over the records for the long part of each coordinate, and one for the short parts of
    two: numpy adds floats up by groups.
    """

    def __init__(self) -> None:
        self._long, self._short, self._waiting = np.empty((3, 0))

    def of(
        self,
        parts: Sequence[NDArray[np.int64] | NDArray[np.bool_]],
        groups: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> list[NDArray[np.int64]]:
        """Σ q by group of every coordinate, |q| ≤ 2^45; masks are counted.

        `counts` (groups,) are the records of every group.
        """
        if len(self._long) < len(groups):
            # Kept for the next block: new memory is slow.
            self._long, self._short, self._waiting = np.empty((3, len(groups)))
        size, rows = len(counts), len(groups)
        found: dict[int, NDArray[np.int64]] = {}
        waits: int | None = None
        for place, part in enumerate(parts):
            if part.dtype == np.bool_:
                found[place] = counts if part.all() else np.bincount(groups[part], minlength=size)
                continue
            short = (self._waiting if waits is None else self._short)[:rows]
            long = np.multiply(part, 2.0**-_SHORT_BITS, out=short)
            long = np.floor(long, out=self._long[:rows])
            np.subtract(short, long, out=short)
            found[place] = np.bincount(groups, long, size).astype(np.int64) << _SHORT_BITS
            if waits is None:
                waits = place
                continue
            both = self._both(rows)
            first, second = np.divmod(np.bincount(groups, both, size).astype(np.int64), _APART)
            found[waits] += first
            found[place] += second
            waits = None
        if waits is not None:
            short = np.multiply(self._waiting[:rows], 2.0**_SHORT_BITS, out=self._waiting[:rows])
            found[waits] += np.bincount(groups, short, size).astype(np.int64)
        return [found[place] for place in range(len(parts))]

    def _both(self, rows: int) -> NDArray[np.float64]:
        """The short parts that wait and the new ones, in one whole number."""
        both, short = self._waiting[:rows], self._short[:rows]
        np.multiply(both, _APART, out=both)
        np.add(both, short, out=both)
        return np.multiply(both, 2.0**_SHORT_BITS, out=both)
