"""Exact counts of records by the cells of a grid, in windows of it, all in one pass.

A window is a run of equal blocks of cells of one column. Counts are 64-bit integers, so they are
the same for every split, order and number of threads.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.data.base import Source
from muhat.data.grids import UniformGrid
from muhat.data.number_cells import parts
from muhat.data.shared import Pass, Reading, carried_out
from muhat.data.states import Numbers, joined
from muhat.data.tallies import BlockCell, SumTable, Tallied, rows_of
from muhat.records.columns import Batch, Column, Floats

Counts = NDArray[np.int64]

_BLOCK_ROWS = 1 << 15


@dataclass(frozen=True)
class Window:
    """Blocks of 2^block_bits cells of a column, from cell `first` on, `blocks` of them.

    `group` says whose records are counted, where they lie in groups.
    """

    column: int
    first: int
    block_bits: int
    blocks: int
    group: int = 0


@dataclass(frozen=True)
class WindowCounts:
    """The records before a window, those in each of its blocks, and all. Data: never show it.

    `total` counts those with a value, or with one put in its place; `rows` all that were read.
    """

    before: int
    counts: Counts
    total: int
    rows: int

    def __repr__(self) -> str:
        return f"WindowCounts(blocks={len(self.counts)})"


def count_windows(
    source: Source,
    grids: Sequence[UniformGrid],
    windows: Sequence[Window],
    *,
    missing: str = "center",
) -> list[WindowCounts]:
    """One pass over the source: the exact counts of every window.

    There is one grid a column. A missing or non-finite value has the cell of the grid's centre,
    or, with missing="drop", is not counted in its column. Raises DataChanged and SourceFailed as
    `exact_sums` does.

    >>> from muhat.data import open_source
    >>> source = open_source(np.array([0.1, 0.2, 0.2, np.nan, 9.0]))
    >>> grid, window = UniformGrid(0.0, 1.0, 0.1), Window(0, 0, 0, 11)
    >>> (found,) = count_windows(source, [grid], [window])
    >>> found.counts.tolist(), found.before, found.total
    ([0, 1, 2, 0, 0, 1, 0, 0, 0, 0, 1], 0, 5)
    """
    return carried_out(counting_windows(source, grids, windows, missing=missing))


def counting_windows(
    source: Source,
    grids: Sequence[UniformGrid],
    windows: Sequence[Window],
    *,
    missing: str = "center",
) -> Reading[list[WindowCounts]]:
    """`count_windows`, as a reading that may share its pass."""
    drop = missing == "drop"
    accumulators = yield Pass(source, lambda: _WindowAccumulator(grids, windows, drop))
    tables = [
        reduce(operator.add, [each.tables[index] for each in accumulators])
        for index in range(len(windows))
    ]
    # The first entry holds what lies before the window, the last one what lies behind it.
    rows = sum(each.rows for each in accumulators)
    return [WindowCounts(int(table[0]), table[1:-1], int(table.sum()), rows) for table in tables]


class _WindowAccumulator:
    """Counts the blocks of windows, for one thread."""

    def __init__(self, grids: Sequence[UniformGrid], windows: Sequence[Window], drop: bool) -> None:
        self._grids = grids
        self._windows = windows
        self._drop = drop
        self.tables = [np.zeros(window.blocks + 2, np.int64) for window in windows]
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Count every record of the batch."""
        self.rows += batch.rows + batch.absent
        if batch.absent and not self._drop:
            for column, grid in enumerate(self._grids):
                self._count(column, np.array([grid.middle]), batch.absent)
        for start in range(0, batch.rows, _BLOCK_ROWS):
            stop = min(start + _BLOCK_ROWS, batch.rows)
            for index, column in enumerate(_columns(batch)):
                self._count(index, self._codes(index, column.part(start, stop)), 1)

    def state(self) -> Numbers:
        """The records seen, and the tables one after another."""
        return joined(self.rows, *self.tables)

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        start = 1
        for table in self.tables:
            # Beside wider numbers in one state, counts come as Python's integers.
            table += state[start : start + len(table)].astype(np.int64)
            start += len(table)

    def tallies(self) -> list[SumTable]:
        """Records by where they lie in each of the windows."""
        return [
            SumTable(
                (
                    BlockCell(
                        window.column,
                        self._grids[window.column],
                        window.first,
                        window.block_bits,
                        window.blocks,
                        self._drop,
                    ),
                ),
                (),
            )
            for window in self._windows
        ]

    def tallied(self, found: Sequence[Tallied]) -> Numbers:
        """The state that these counts make."""
        tables = [np.zeros_like(table) for table in self.tables]
        for table, tallied in zip(tables, found, strict=True):
            for (place,), (count,) in tallied.items():
                # Beyond the table are missing values that are not counted.
                if place < len(table):
                    table[place] = count
        return joined(rows_of(found[0]), *tables)

    def _codes(self, index: int, column: Column) -> NDArray[np.int64]:
        high, low, present = parts(column)
        codes = self._grids[index].codes(high, low)
        if present is None or present.all():
            return codes
        if self._drop:
            return codes[present]
        return np.where(present, codes, self._grids[index].middle)

    def _count(self, column: int, codes: NDArray[np.int64], times: int) -> None:
        for window, table in zip(self._windows, self.tables, strict=True):
            if window.column != column:
                continue
            places = ((codes - window.first) >> window.block_bits) + 1
            np.clip(places, 0, window.blocks + 1, out=places)
            np.add.at(table, places, times)


def _columns(batch: Batch) -> Sequence[Any]:
    if batch.matrix is not None:
        return [Floats(batch.matrix[:, index]) for index in range(batch.matrix.shape[1])]
    return batch.columns
