"""Codes into tables of counts, for many sets of attributes in one pass.

A table over the axes S has the index Σ code_j·(sizes after j), in C order. Counts are 64-bit
integers: the tables are the same for every split and order of the records. The histogram of all
attributes is never built unless it is asked for: small tables that share axes are counted
together in one table over all of them, and the others as they are.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat.data.coding import Coder
from muhat.data.states import Numbers, joined
from muhat.data.tallies import CoderCell, KeptCell, SumTable, Tallied, rows_of
from muhat.errors import InvalidInput
from muhat.records.columns import Batch
from muhat.workloads.cells import writable

Axes = tuple[int, ...]
Table = NDArray[np.int64]

BLOCK_ROWS = 1 << 15
TOGETHER_CELLS = 1 << 14
_MOST_TOGETHER = 16
_MOST_AXES = 32


class CellTables:
    """Tables of counts over sets of axes; shared by the threads of a pass.

    A copy in another process has nothing counted yet.
    """

    def __init__(self, shape: Sequence[int], sets: Iterable[Axes]) -> None:
        self._shape = tuple(shape)
        self._sets = checked_sets(self._shape, sets)
        self._holders = counted_together(self._shape, self._sets)
        # In lexicographic order most sets begin as the one before.
        self._tables = {
            axes: np.zeros(math.prod(self._shape[axis] for axis in axes), np.int64)
            for axes in sorted(set(self._holders.values()))
        }
        self._lock = threading.Lock()

    def add(self, codes: Sequence[NDArray[Any]], times: int = 1) -> None:
        """Count records, `times` each, by their codes, one array an axis."""
        rows = len(codes[0])
        for start in range(0, rows, BLOCK_ROWS):
            block = [axis[start : start + BLOCK_ROWS] for axis in codes]
            with self._lock:
                self._add_block(block, times)

    def __reduce__(self) -> tuple[type[CellTables], tuple[Axes, tuple[Axes, ...]]]:
        return CellTables, (self._shape, self._sets)

    def counted(self) -> Numbers:
        """The counts of all tables, one after another."""
        return joined(*self._tables.values())

    def add_counted(self, counts: Numbers) -> None:
        """Add counts of another one of the same shape and sets."""
        start = 0
        with self._lock:
            for table in self._tables.values():
                # Beside wider numbers in one state, counts come as Python's integers.
                table += counts[start : start + len(table)].astype(np.int64)
                start += len(table)

    @property
    def sets(self) -> list[Axes]:
        """The axes of the tables that are counted."""
        return list(self._tables)

    def tables(self) -> dict[Axes, Table]:
        """The table of every set that was asked for, its axes in the order asked for."""
        found = {}
        for wanted in self._sets:
            axes = self._holders[tuple(sorted(wanted))]
            sizes = [self._shape[axis] for axis in axes]
            found[wanted] = marginal(self._tables[axes], sizes, axes, wanted)
        return found

    def _add_block(self, codes: Sequence[NDArray[Any]], times: int) -> None:
        rows = len(codes[0])
        for axes, index in table_indices(self._tables, self._shape, codes, rows):
            np.add.at(self._tables[axes], index, times)


class CellAccumulator:
    """Counts the cells of batches of codes, for one thread."""

    def __init__(self, coders: Sequence[Coder], tables: CellTables) -> None:
        self._coders = tuple(coders)
        self._sizes = [coder.size for coder in coders]
        self._absent = [coder.absent for coder in coders]
        self._tables = tables
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Count every record of the batch that has a cell."""
        self.rows += batch.rows + batch.absent
        if batch.absent:
            self._count([np.array([code]) for code in self._absent], batch.absent)
        self._count([column.values for column in batch.columns], 1)

    def state(self) -> Numbers:
        """The records seen, and the counts of all tables."""
        return joined(self.rows, self._tables.counted())

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        self._tables.add_counted(state[1:])

    def tallies(self) -> list[SumTable]:
        """Records by the axes of every table, and by whether they have a cell in all columns."""
        cells = [CoderCell(column, coder) for column, coder in enumerate(self._coders)]
        return [
            SumTable((KeptCell(tuple(cells)), *(cells[axis] for axis in axes)), ())
            for axes in self._tables.sets
        ]

    def tallied(self, found: Sequence[Tallied]) -> Numbers:
        """The state that these counts make."""
        tables = []
        for axes, tallied in zip(self._tables.sets, found, strict=True):
            table = np.zeros([self._sizes[axis] for axis in axes], np.int64)
            for (kept, *codes), (count,) in tallied.items():
                if kept:
                    table[tuple(codes)] += count
            tables.append(table)
        return joined(rows_of(found[0]), *tables)

    def _count(self, codes: list[NDArray[Any]], times: int) -> None:
        kept = kept_records(codes, self._sizes)
        self._tables.add(codes if kept is None else [axis[kept] for axis in codes], times)


def table_indices(
    sets: Iterable[Axes], shape: Sequence[int], codes: Sequence[NDArray[Any]], rows: int
) -> Iterator[tuple[Axes, Table]]:
    """For each set of axes the cells of some records in its table, by their codes.

    Sets that begin as the one before share the work.
    """
    before: Axes = ()
    # The indices of one axis, of the first two, and so on.
    partial = [np.zeros(rows, np.int64)]
    for axes in sets:
        common = _common(before, axes)
        del partial[common + 1 :]
        for axis in axes[common:]:
            index = partial[-1] * shape[axis]
            index += codes[axis]
            partial.append(index)
        yield axes, partial[-1]
        before = axes


def kept_records(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> NDArray[np.bool_] | None:
    """Which records have a cell in every column; None if all of them do."""
    kept: NDArray[np.bool_] | None = None
    for axis, size in zip(codes, sizes, strict=True):
        inside = axis < size
        if not inside.all():
            kept = inside if kept is None else kept & inside
    return kept


def codes_of_groups(
    codes: Sequence[NDArray[Any]], sizes: Sequence[int]
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """The group of every record, in C order of the columns, and which have one; None if all do.

    The groups of one column are its codes, as they are: not to be written into.
    """
    groups = codes[0]
    for axis, size in zip(codes[1:], sizes[1:], strict=True):
        groups = groups * np.int64(size) + axis
    return groups, kept_records(codes, sizes)


def checked_sets(shape: Sequence[int], sets: Iterable[Iterable[int]]) -> tuple[Axes, ...]:
    """The sets of axes as tuples, or InvalidInput: axes that exist, tables that fit."""
    found = []
    for given in sets:
        axes = tuple(_check.count("an axis", axis, least=0, most=len(shape) - 1) for axis in given)
        if len(set(axes)) < len(axes) or len(axes) > _MOST_AXES:
            raise InvalidInput(f"a set must have at most {_MOST_AXES} axes, each once; got {axes}.")
        found.append(axes)
    if not found or len({frozenset(axes) for axes in found}) < len(found):
        raise InvalidInput("must hold at least one set of axes, and none twice", parameter="sets")
    writable("the tables", sum(math.prod(shape[axis] for axis in axes) for axes in found))
    return tuple(found)


def counted_together(shape: Sequence[int], sets: Iterable[Axes]) -> dict[Axes, Axes]:
    """For every set of axes, sorted, the set of axes whose table is counted and holds it.

    A set takes in further axes as long as its table stays small, those first that bring the most
    other sets with them.
    """
    waiting = {tuple(sorted(axes)) for axes in sets}
    orders = sorted({len(axes) for axes in waiting})
    holders: dict[Axes, Axes] = {}
    for axes in sorted(waiting, key=lambda axes: (-len(axes), axes)):
        if axes not in holders:
            grown, held = _grown(axes, shape, waiting, orders)
            holders.update(dict.fromkeys(held, grown))
            waiting -= held
    return holders


def _grown(
    axes: Axes, shape: Sequence[int], waiting: set[Axes], orders: Sequence[int]
) -> tuple[Axes, set[Axes]]:
    """The axes with others that pay, and the waiting sets that they hold."""
    cells = math.prod(shape[axis] for axis in axes)
    held = _held(axes, waiting, orders)
    while len(axes) < _MOST_TOGETHER:
        further = {
            axis: _held(tuple(sorted((*axes, axis))), waiting, orders)
            for axis in range(len(shape))
            if axis not in axes and cells * shape[axis] <= TOGETHER_CELLS
        }
        best = max(further, key=lambda axis: (len(further[axis]), -shape[axis]), default=None)
        if best is None or len(further[best]) == len(held):
            break
        axes, cells, held = tuple(sorted((*axes, best))), cells * shape[best], further[best]
    return axes, held


def _held(axes: Axes, waiting: set[Axes], orders: Sequence[int]) -> set[Axes]:
    """The waiting sets within some axes."""
    if sum(math.comb(len(axes), order) for order in orders) > len(waiting):
        return {each for each in waiting if set(each) <= set(axes)}
    parts = (part for order in orders for part in itertools.combinations(axes, order))
    return {part for part in parts if part in waiting}


def marginal(table: Table, sizes: Sequence[int], axes: Axes, wanted: Axes) -> Table:
    """The table over the axes `wanted`, from a flat one over `axes`, which has them all."""
    full = table.reshape(sizes)
    summed = tuple(place for place, axis in enumerate(axes) if axis not in wanted)
    kept = [axis for axis in axes if axis in wanted]
    order = [kept.index(axis) for axis in wanted]
    # The sum of all Python integers is one of them, not an array.
    made: Table = np.asarray(full.sum(axis=summed), full.dtype).transpose(order)
    return np.ascontiguousarray(made).reshape([sizes[axes.index(axis)] for axis in wanted])


def _common(before: Axes, after: Axes) -> int:
    """How many axes two sets have in common at their beginnings."""
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
    return sum(1 for _ in alike)
