"""Exact counts of records by the cells of a grid within public groups, in one pass.

Every group has windows of its own, as `grid_counts.py` has them for all records together: at first
the same for all groups, later wherever its searches go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muhat.data.cell_kernel import codes_of_groups
from muhat.data.coding import Coder
from muhat.data.grid_counts import Counts, Window, WindowCounts
from muhat.data.grids import UniformGrid
from muhat.data.number_cells import parts
from muhat.data.states import Numbers, joined
from muhat.records.columns import Batch, Column

_BLOCK_ROWS = 1 << 15


@dataclass(frozen=True)
class _Layer:
    """One window a group, of one column; arrays of shape (groups,).

    A window's counts begin at `start` in the one flat table, with what lies before it, and end
    `last` places on, with what lies behind it. A group without a window counts in a place of the
    table that nobody reads.
    """

    column: int
    start: Counts
    last: Counts
    first: Counts
    bits: Counts

    def places(self, groups: Counts, codes: Counts) -> Counts:
        """Where in the table records of these groups and cells are counted."""
        blocks = ((codes - self.first[groups]) >> self.bits[groups]) + 1
        np.maximum(blocks, 0, out=blocks)
        np.minimum(blocks, self.last[groups], out=blocks)
        blocks += self.start[groups]
        return blocks


class GroupCells:
    """Counts the blocks of every group's windows, for one thread."""

    def __init__(
        self,
        grids: Sequence[UniformGrid],
        windows: Sequence[Window],
        coders: Sequence[Coder],
        groups: int,
        drop: bool,
    ) -> None:
        self._grids = grids
        self._sizes = [coder.size for coder in coders]
        self._absent = [coder.absent for coder in coders]
        self._drop = drop
        self._layers = _layers(windows, groups)
        self._table = np.zeros(sum(window.blocks + 2 for window in windows) + 1, np.int64)
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Count every record of the batch that has a group."""
        self.rows += batch.rows + batch.absent
        if batch.absent and not self._drop:
            groups, kept = codes_of_groups([np.array([each]) for each in self._absent], self._sizes)
            if kept is None:
                for column, grid in enumerate(self._grids):
                    self._count(column, groups, np.array([grid.middle]), batch.absent)
        for start in range(0, batch.rows, _BLOCK_ROWS):
            stop = min(start + _BLOCK_ROWS, batch.rows)
            self._add_block([column.part(start, stop) for column in batch.columns])

    def _add_block(self, columns: Sequence[Column]) -> None:
        axes = [column.values for column in columns[-len(self._sizes) :]]
        groups, kept = codes_of_groups(axes, self._sizes)
        groups = groups.astype(np.int64, copy=False)
        for index, grid in enumerate(self._grids):
            high, low, present = parts(columns[index])
            codes = grid.codes(high, low)
            counted = kept
            if present is not None and self._drop:
                counted = present if kept is None else kept & present
            elif present is not None:
                codes = np.where(present, codes, grid.middle)
            if counted is None:
                self._count(index, groups, codes, 1)
            else:
                self._count(index, groups[counted], codes[counted], 1)

    def _count(self, column: int, groups: Counts, codes: Counts, times: int) -> None:
        for layer in self._layers:
            if layer.column != column:
                continue
            np.add.at(self._table, layer.places(groups, codes), times)

    def state(self) -> Numbers:
        """The records seen, and the table."""
        return joined(self.rows, self._table)

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        self._table += state[1:].astype(np.int64)

    def merge(self, other: GroupCells) -> None:
        """Add what another one of the same windows has counted."""
        self.rows += other.rows
        self._table += other._table

    def counted(self, windows: Sequence[Window]) -> list[WindowCounts]:
        """The counts of the windows, in their order."""
        found, start = [], 0
        for window in windows:
            table = self._table[start : start + window.blocks + 2]
            start += len(table)
            found.append(WindowCounts(int(table[0]), table[1:-1], int(table.sum()), self.rows))
        return found


def _layers(windows: Sequence[Window], groups: int) -> list[_Layer]:
    """The windows of every column, the first of each group, the second of each, and so on."""
    unread = sum(window.blocks + 2 for window in windows)
    layers: dict[tuple[int, int], _Layer] = {}
    seen: dict[tuple[int, int], int] = {}
    start = 0
    for window in windows:
        which = seen.get((window.column, window.group), 0)
        seen[window.column, window.group] = which + 1
        if (window.column, which) not in layers:
            layers[window.column, which] = _Layer(
                window.column,
                np.full(groups, unread, np.int64),
                *(np.zeros(groups, np.int64) for _ in range(3)),
            )
        layer = layers[window.column, which]
        layer.start[window.group], layer.last[window.group] = start, window.blocks + 1
        layer.first[window.group], layer.bits[window.group] = window.first, window.block_bits
        start += window.blocks + 2
    return list(layers.values())
