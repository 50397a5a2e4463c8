"""Records into tables of counts, sums, squares and products, by their cells, in one pass.

Every value becomes an integer k of at most 2^24 in size, by itself; what is added up for a record
is 1, k, a square l or a product p, all of them whole numbers of 24 bits. In floats they are exact,
and so are sums of 2^29 of them: the tables are the same for every split and order of the records.
docs/proofs/moment-tables.md has the proofs.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat.data.cell_kernel import Axes, counted_together, marginal, table_indices
from muhat.data.coding import Coder
from muhat.data.states import Numbers, joined
from muhat.data.tallies import (
    BoxStep,
    CoderCell,
    MomentProduct,
    MomentSquare,
    MomentStep,
    Summand,
    SumTable,
    Tallied,
    Whole,
    rows_of,
)
from muhat.domains.lattice import BoxLattice
from muhat.records.columns import Batch, Column, FloatArray, Floats, Mask
from muhat.workloads.cells import writable

STEP_BITS = 21
"""k is q in units of 2^21: an integer of 45 bits becomes one of 24."""

PRODUCT_UNIT = 1 << 24
"""p is a product of two k in units of 2^24."""

_BLOCK_ROWS = 1 << 14
_SPARSE = 4
_NARROW_ROWS = 1 << 38
"""The sums of so many records of 24 bits fit 64."""


class Row(NamedTuple):
    """What a record adds to a table: 1, k of one column, or p of two; l of one with `squared`.

    Only records count that have a value in each of the columns `recorded`. Columns are positions.
    """

    recorded: tuple[int, ...]
    term: tuple[int, ...]
    squared: bool = False


class ValueKernel:
    """Makes integers of the values of one column."""

    def __init__(self, lattice: BoxLattice, reach: int) -> None:
        (self._coordinate,) = lattice.coordinates()
        self._reach = float(reach)

    @property
    def reach(self) -> int:
        """m: the largest k in size."""
        return int(self._reach)

    def step(self, column: int) -> MomentStep:
        """k of the column at a place."""
        return MomentStep(BoxStep(column, self._coordinate))

    def steps(self, column: Column, out: FloatArray) -> Mask | None:
        """k of every value; which of them are there (None: all).

        k is q/2^21 rounded to the nearest, ties to even; that of a missing value is 0.
        """
        words, offset, finite = self._coordinate.words(column, out)
        if offset:
            np.subtract(out, self._coordinate.magic, out=out)
            np.multiply(out, 2.0**-STEP_BITS / self._coordinate.grid, out=out)
        else:
            np.multiply(words, 2.0**-STEP_BITS, out=out)
        np.rint(out, out=out)
        present = column.valid if finite else column.present()
        if present is None or present.all():
            return None
        np.copyto(out, 0.0, where=~present)
        return present

    def squares(self, steps: FloatArray, out: FloatArray) -> None:
        """l = ⌊(m² − k²)/m⌋ of every k."""
        # Below 2^24 a quotient that is not whole is at least 2^-24 from the next whole number,
        # and rounding it to a float moves it by less than 2^-29.
        np.multiply(steps, steps, out=out)
        np.subtract(self._reach**2, out, out=out)
        np.divide(out, self._reach, out=out)
        np.floor(out, out=out)


class MomentTables:
    """The tables of several rows over sets of axes; shared by the threads of a pass.

    On every axis of which values may be in no cell there is one cell more for them, the last: they
    count in tables without the axis. A copy in another process has nothing added up yet.
    """

    def __init__(self, coders: Sequence[Coder], wanted: Mapping[Row, tuple[Axes, ...]]) -> None:
        self._coders = tuple(coders)
        self._wanted = dict(wanted)
        self.shape = cells_of(self._coders)
        every = {tuple(sorted(axes)) for sets in self._wanted.values() for axes in sets}
        self._holders = counted_together(self.shape, every)
        self._held = {
            row: {self._holders[tuple(sorted(axes))] for axes in sets}
            for row, sets in self._wanted.items()
        }
        cells = {axes: math.prod(self.shape[axis] for axis in axes) for axes in self.sets}
        writable("the tables", sum(cells[axes] for sets in self._held.values() for axes in sets))
        self._tables: dict[tuple[Row, Axes], NDArray[Any]] = {
            (row, axes): np.zeros(cells[axes], np.int64)
            for row, sets in self._held.items()
            for axes in sorted(sets)
        }
        self._rows = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[MomentTables], tuple[Any, ...]]:
        return MomentTables, (self._coders, self._wanted)

    @property
    def sets(self) -> list[Axes]:
        """The axes of all tables, in lexicographic order: most begin as the ones before."""
        return sorted(set(self._holders.values()))

    def rows_over(self, axes: Axes) -> list[Row]:
        """The rows that have a table over just these axes."""
        return [row for row, sets in self._held.items() if axes in sets]

    def expect(self, rows: int) -> None:
        """Make room for so many more records."""
        with self._lock:
            self._rows += rows
            if self._rows > _NARROW_ROWS:
                self._tables = {key: table.astype(object) for key, table in self._tables.items()}

    def add(
        self,
        rows: Sequence[Row],
        axes: Axes,
        index: NDArray[np.int64],
        weights: FloatArray | None,
        times: int = 1,
    ) -> None:
        """Add what records weigh (None: 1 each), `times` each, to their cells in each row."""
        cells = len(self._tables[rows[0], axes])
        if cells * _SPARSE <= len(index):
            sums = times * _sums(index, weights, cells)
            with self._lock:
                for row in rows:
                    self._tables[row, axes] += sums
            return
        whole = np.ones(len(index), np.int64) if weights is None else weights.astype(np.int64)
        with self._lock:
            for row in rows:
                table = self._tables[row, axes]
                np.add.at(table, index, (whole * times).astype(table.dtype))

    @property
    def held(self) -> list[tuple[Row, Axes]]:
        """The rows and axes of all tables, in their order."""
        return list(self._tables)

    def added(self) -> Numbers:
        """The numbers of all tables, one after another."""
        return joined(*self._tables.values())

    def add_added(self, numbers: Numbers) -> None:
        """Add the numbers of another one made alike."""
        start = 0
        with self._lock:
            for key, table in self._tables.items():
                part = numbers[start : start + len(table)]
                self._tables[key] = table + part.astype(table.dtype)
                start += len(table)

    def tables(self) -> dict[Row, dict[Axes, NDArray[Any]]]:
        """Of every row the tables that were asked for, their axes in the order asked for."""
        return {
            row: {axes: self._table(row, axes) for axes in sets}
            for row, sets in self._wanted.items()
        }

    def _table(self, row: Row, wanted: Axes) -> NDArray[Any]:
        axes = self._holders[tuple(sorted(wanted))]
        sizes = [self.shape[axis] for axis in axes]
        return marginal(self._tables[row, axes], sizes, axes, wanted)


class MomentAccumulator:
    """Adds batches of values and codes up, for one thread.

    `kernels` are those of the columns of values, which come first in a batch; the codes of an axis
    are read off the column at `places`, or made of its values by the coder where that is one of
    the first.
    """

    def __init__(
        self,
        kernels: Sequence[ValueKernel],
        coders: Sequence[Coder],
        places: Sequence[int],
        tables: MomentTables,
    ) -> None:
        self._kernels = tuple(kernels)
        self._coders = tuple(coders)
        self._places = tuple(places)
        self._tables = tables
        self._orders: dict[frozenset[int], _Order] = {}
        self._buffers = _Buffers()
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Add every record of the batch."""
        records = batch.rows + batch.absent
        self.rows += records
        self._tables.expect(records)
        # A warning would depend on the data.
        with np.errstate(all="ignore"):
            if batch.absent:
                nothing: list[Column] = [Floats(np.full(1, np.nan)) for _ in self._kernels]
                codes = [np.full(1, coder.absent) for coder in self._coders]
                self._add_block(nothing, codes, batch.absent)
            for start in range(0, batch.rows, _BLOCK_ROWS):
                stop = min(start + _BLOCK_ROWS, batch.rows)
                columns = _columns(batch, start, stop)
                codes = [self._codes(columns, axis) for axis in range(len(self._coders))]
                self._add_block(columns[: len(self._kernels)], codes, 1, stop - start)

    def state(self) -> Numbers:
        """The records seen, and the numbers of all tables."""
        return joined(self.rows, self._tables.added())

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        self._tables.expect(int(state[0]))
        self._tables.add_added(state[1:])

    def tallies(self) -> list[SumTable]:
        """What every row adds, by the axes of its tables."""
        return [
            SumTable(
                tuple(CoderCell(self._places[axis], self._coders[axis]) for axis in axes),
                tuple(self._summand(row) for row in self._tables.rows_over(axes)),
            )
            for axes in self._tables.sets
        ]

    def tallied(self, found: Sequence[Tallied]) -> Numbers:
        """The state that these sums make."""
        shape, over = self._tables.shape, self._tables.rows_over
        made: dict[tuple[Row, Axes], NDArray[Any]] = {}
        for axes, tallied in zip(self._tables.sets, found, strict=True):
            tables = np.zeros([len(over(axes)), *(shape[axis] for axis in axes)], object)
            for codes, (_, *sums) in tallied.items():
                every_row: tuple[Any, ...] = (slice(None), *codes)
                tables[every_row] = sums
            kept = zip(over(axes), tables, strict=True)
            made |= {(row, axes): np.asarray(table, object) for row, table in kept}
        return joined(rows_of(found[0]), *(made[key] for key in self._tables.held))

    def _summand(self, row: Row) -> Summand:
        steps = [self._kernels[column].step(column) for column in row.term]
        number: Whole | None = steps[0] if steps else None
        if row.squared:
            number = MomentSquare(steps[0], self._kernels[row.term[0]].reach)
        elif len(steps) == 2:
            number = MomentProduct(*steps)
        return Summand(number, row.recorded)

    def _codes(self, columns: Sequence[Column], axis: int) -> NDArray[Any]:
        column = columns[self._places[axis]]
        if self._places[axis] < len(self._kernels):
            return self._coders[axis].of_numbers(column).values
        return column.values

    def _add_block(
        self, columns: Sequence[Column], codes: Sequence[NDArray[Any]], times: int, rows: int = 1
    ) -> None:
        weights = _Weights(self._kernels, columns, self._buffers.of_length(rows))
        order = self._orders.get(weights.missing)
        if order is None:
            order = self._orders[weights.missing] = self._order(weights.missing)
        tables = self._tables
        for axes, index in table_indices(order, tables.shape, codes, rows):
            for alike, others in order[axes].items():
                tables.add(others, axes, index, weights.of(alike), times)

    def _order(self, missing: frozenset[int]) -> _Order:
        """What to add to which rows where values are missing in these columns only."""
        order: _Order = {}
        for axes in self._tables.sets:
            order[axes] = {}
            for row in self._tables.rows_over(axes):
                # k and p are 0 where a value of theirs is missing.
                needed = missing.intersection(row.recorded)
                needed -= set() if row.squared else set(row.term)
                alike = Row(tuple(sorted(needed)), row.term, row.squared)
                order[axes].setdefault(alike, []).append(row)
        return order


_Order = dict[Axes, dict[Row, list[Row]]]
"""By the axes of tables, rows that stand for others: of a block their weights are the same."""


class _Buffers:
    """Vectors for the numbers of a block, and again for the next: new memory is slow."""

    def __init__(self) -> None:
        self._vectors: list[FloatArray] = []
        self._length = self._taken = 0

    def of_length(self, length: int) -> _Buffers:
        """All of them free, and so long."""
        self._length, self._taken = length, 0
        return self

    def take(self) -> FloatArray:
        """One that is not taken yet; what is in it means nothing."""
        if self._taken == len(self._vectors):
            self._vectors.append(np.empty(max(self._length, _BLOCK_ROWS)))
        self._taken += 1
        return self._vectors[self._taken - 1][: self._length]


class _Weights:
    """What the records of a block add to every row, each worked out once."""

    def __init__(
        self, kernels: Sequence[ValueKernel], columns: Sequence[Column], buffers: _Buffers
    ) -> None:
        self._kernels = kernels
        self._buffers = buffers
        self._steps = [buffers.take() for _ in kernels]
        self._present: dict[int, Mask] = {}
        self._made: dict[Row, FloatArray | None] = {Row((), ()): None}
        for place, steps in enumerate(self._steps):
            present = kernels[place].steps(columns[place], steps)
            self._made[Row((), (place,))] = steps
            if present is not None:
                self._present[place] = present

    @property
    def missing(self) -> frozenset[int]:
        """The columns that lack a value."""
        return frozenset(self._present)

    def of(self, row: Row) -> FloatArray | None:
        """The weight of every record; None if it is 1 for all."""
        if row not in self._made:
            made = self._buffers.take()
            if not row.recorded:
                self._make(row, made)
            else:
                mask = np.logical_and.reduce([self._present[each] for each in row.recorded])
                every = self.of(Row((), row.term, row.squared))
                np.multiply(1.0 if every is None else every, mask, out=made)
            self._made[row] = made
        return self._made[row]

    def _make(self, row: Row, out: FloatArray) -> None:
        first, *others = (self._steps[column] for column in row.term)
        if row.squared:
            self._kernels[row.term[0]].squares(first, out)
        else:
            np.multiply(first, others[0], out=out)
            np.multiply(out, 1.0 / PRODUCT_UNIT, out=out)
            np.rint(out, out=out)


def cells_of(coders: Sequence[Coder]) -> tuple[int, ...]:
    """The cells of every axis, with one for values in none of the others where there may be any."""
    return tuple(max(coder.size, coder.absent + 1) for coder in coders)


def _sums(index: NDArray[np.int64], weights: FloatArray | None, cells: int) -> NDArray[np.int64]:
    """The weights of every cell, added up: whole numbers below 2^53, so exact in floats."""
    if cells == 1:
        return np.array([len(index) if weights is None else weights.sum()]).astype(np.int64)
    return np.bincount(index, weights, cells).astype(np.int64, copy=False)


def _columns(batch: Batch, start: int, stop: int) -> list[Column]:
    if batch.matrix is None:
        return [column.part(start, stop) for column in batch.columns]
    return [Floats(np.ascontiguousarray(each)) for each in batch.matrix[start:stop].T]
