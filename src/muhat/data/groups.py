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

_BLOCK_ROWS = 1 << 17
_LOW_BITS = 23
"""Sums are h·2^23 + l: 64 bits hold the sums of the halves h and l of 2^40 records of 2^45 steps,
whatever the blocks they come in."""


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
        # Two halves of every sum, by coordinates; the last group is of records that have none.
        self._high = np.zeros((lattice.dim, groups + 1), np.int64)
        self._low = np.zeros((lattice.dim, groups + 1), np.int64)
        # What others held has no bound on its records.
        self._absorbed: NDArray[Any] = np.zeros((groups, lattice.dim), object)
        self.counts = np.zeros(groups, np.int64)
        self.rows = 0

    def total(self) -> NDArray[Any]:
        """Σ q, of shape (groups, d), as Python integers."""
        high = self._high.T[: self._groups].astype(object) * (1 << _LOW_BITS)
        return np.asarray(high + self._low.T[: self._groups] + self._absorbed)

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
        if kept is not None:
            groups = np.where(kept, groups, self._groups)
        sums, counts = self._kernel.group_sums(values, groups, self._groups + 1, drop=self._drop)
        self.counts += counts[: self._groups]
        for place, each in enumerate(sums):
            self._high[place] += each >> _LOW_BITS
            self._low[place] += each & ((1 << _LOW_BITS) - 1)
