"""Tables of counts over sets of attributes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat._plain import Key
from muhat.errors import InvalidInput
from muhat.workloads.base import Workload
from muhat.workloads.cells import items, sizes, width_of, writable

LARGEST_CELLS = 1 << 128
"""The most cells of a histogram whose marginals are asked: its cells are never numbered."""

LARGEST_SIZE = 1 << 31
LARGEST_ROWS = 1 << 32
LARGEST_SETS = 1_000_000

Axes = tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Marginals(Workload, keys=(Key("shape", "cells"), "sets")):
    """All cells of the marginal tables over given sets of attributes.

    The marginal of a set S of axes counts the records for every combination of the attributes
    in S; the empty set is the total. Tables come one after the other, each in C order:
    `sets[i]` are the axes of table i, `table_shapes[i]` its shape, and its answers are the rows
    `offsets[i]` to `offsets[i + 1]`.

    >>> W = Marginals((2, 3), [(), (1,)])
    >>> W @ [1, 2, 3, 4, 5, 6]
    array([21.,  5.,  7.,  9.])
    >>> W.offsets, W.table_shapes
    ((0, 1, 4), ((), (3,)))
    """

    kind = "marginals"
    cells: tuple[int, ...]
    sets: tuple[Axes, ...]
    table_shapes: tuple[tuple[int, ...], ...] = field(init=False)
    offsets: tuple[int, ...] = field(init=False)
    shape: tuple[int, int] = field(init=False)

    def __init__(self, cells: Sequence[int], sets: Iterable[Sequence[int]]) -> None:
        cells = sizes("shape", cells, most=LARGEST_CELLS)
        for axis, values in enumerate(cells):
            _check.count(f"shape[{axis}]", values, most=LARGEST_SIZE)
        sets = _checked_sets(sets, len(cells))
        table_shapes = tuple(tuple(cells[axis] for axis in axes) for axes in sets)
        offsets = (0, *itertools.accumulate(math.prod(shape) for shape in table_shapes))
        if offsets[-1] > LARGEST_ROWS:
            raise InvalidInput(
                f"the marginals overflow: {offsets[-1]:,} answers are more than "
                f"{LARGEST_ROWS:,}. Ask for fewer or smaller tables."
            )
        self._set(
            cells=cells,
            sets=sets,
            table_shapes=table_shapes,
            offsets=offsets,
            shape=(offsets[-1], math.prod(cells)),
        )

    def apply(self, x: Floats) -> Floats:
        """Sums over axes, one table after the other: N numbers are read a table."""
        writable("the histogram", self.shape[1])
        writable("the answers", self.shape[0] * width_of(x))
        answers = np.empty((self.shape[0], *x.shape[1:]))
        for axes, start, stop in self._tables():
            runs, summed = _runs(self.cells, axes)
            table = np.asarray(x, dtype=np.float64).reshape((*runs, *x.shape[1:])).sum(axis=summed)
            answers[start:stop] = table.reshape(stop - start, *x.shape[1:])
        return answers

    def transposed(self, y: Floats) -> Floats:
        writable("the histogram", self.shape[1] * width_of(y))
        totals = np.zeros((self.shape[1], *y.shape[1:]))
        for axes, start, stop in self._tables():
            runs, summed = _runs(self.cells, axes)
            kept = [1 if run in summed else size for run, size in enumerate(runs)]
            spread = totals.reshape((*runs, *y.shape[1:]))
            spread += y[start:stop].reshape((*kept, *y.shape[1:]))
        return totals

    def gram(self) -> Floats:
        """(WᵀW)_xy: the number of sets on which the two cells agree."""
        self._refuse_large_gram()
        total = np.zeros((self.shape[1],) * 2)
        for axes in self.sets:
            product: Floats = np.ones((1, 1))
            for axis, values in enumerate(self.cells):
                equal = np.eye(values) if axis in axes else np.ones((values, values))
                product = np.asarray(np.kron(product, equal), dtype=np.float64)
            total += product
        return total

    def row_norms(self) -> Floats:
        """√(N/N_S) for every row of the table over S."""
        writable("the row norms", self.shape[0])
        lengths = [math.sqrt(self.shape[1] // math.prod(shape)) for shape in self.table_shapes]
        return np.repeat(lengths, np.diff(self.offsets))

    def column_norms(self) -> Floats:
        """Every record is counted once a table: √(number of tables)."""
        writable("the column norms", self.shape[1])
        return np.full(self.shape[1], math.sqrt(len(self.sets)))

    def labels(self, table: int) -> NDArray[np.int64]:
        """The categories of every row of a table, of shape (rows, attributes), as codes.

        >>> Marginals((2, 9, 2), [(0, 2)]).labels(0).tolist()
        [[0, 0], [0, 1], [1, 0], [1, 1]]
        """
        shape = self.table_shapes[_check.count("table", table, least=0, most=len(self.sets) - 1)]
        writable("the labels", math.prod(shape) * max(len(shape), 1))
        if not shape:
            return np.zeros((1, 0), dtype=np.int64)
        return np.indices(shape, dtype=np.int64).reshape(len(shape), -1).T

    def tables(self, answers: ArrayLike) -> tuple[NDArray[Any], ...]:
        """The answers as tables, in the order of `sets`, each of its `table_shapes`."""
        values = np.asarray(answers)
        if values.shape != (self.shape[0],):
            raise InvalidInput(
                f"must have shape ({self.shape[0]},)", parameter="answers", value=str(values.shape)
            )
        return tuple(
            values[start:stop].reshape(shape)
            for (_, start, stop), shape in zip(self._tables(), self.table_shapes, strict=True)
        )

    def answers_from(self, tables: Mapping[Axes, ArrayLike] | Sequence[ArrayLike]) -> NDArray[Any]:
        """The answers from their tables: a sequence in the order of `sets`, or by set of axes.

        This is how marginals of a histogram too large to write out are given.
        """
        if isinstance(tables, Mapping):
            missing = [axes for axes in self.sets if axes not in tables]
            if missing or len(tables) != len(self.sets):
                raise InvalidInput(
                    f"must have one entry for each of the {len(self.sets)} sets of axes",
                    parameter="tables",
                )
            tables = [tables[axes] for axes in self.sets]
        elif len(tables) != len(self.sets):
            raise InvalidInput(
                f"must be {len(self.sets)}, one for each set",
                parameter="tables",
                value=str(len(tables)),
            )
        arrays = [np.asarray(table) for table in tables]
        for axes, array, shape in zip(self.sets, arrays, self.table_shapes, strict=True):
            if array.shape != shape:
                raise InvalidInput(
                    f"the table over {axes} must have shape {shape}; got {array.shape}."
                )
        return np.concatenate([array.ravel() for array in arrays])

    def describe(self) -> str:
        orders = sorted({len(axes) for axes in self.sets})
        ways = " and ".join(f"{order}-way" for order in orders) if len(orders) < 4 else "the"
        tables = "marginal" if len(self.sets) == 1 else "marginals"
        attributes = "attribute" if len(self.cells) == 1 else "attributes"
        return (
            f"{len(self.sets):,} {ways} {tables} of {len(self.cells)} {attributes}, "
            f"{self.shape[0]:,} answers"
        )

    def _tables(self) -> list[tuple[Axes, int, int]]:
        return list(zip(self.sets, self.offsets[:-1], self.offsets[1:], strict=True))


def sets_of_order(dimensions: int, order: object) -> list[Axes]:
    """All sets of `order` axes (or of each of several orders), in lexicographic order."""
    orders = [order] if not isinstance(order, Sequence) or isinstance(order, str) else [*order]
    checked = [_check.count("order", value, least=0, most=dimensions) for value in orders]
    if not checked:
        raise InvalidInput(
            "must be a whole number or a list of them", parameter="order", value="an empty list"
        )
    if len(set(checked)) < len(checked):
        raise InvalidInput("must not repeat itself", parameter="order", value=str(checked))
    number = sum(math.comb(dimensions, value) for value in checked)
    if number > LARGEST_SETS:
        raise InvalidInput(
            f"order asks for {number:,} tables, more than {LARGEST_SETS:,}; use `sets`."
        )
    return [
        axes
        for value in sorted(checked)
        for axes in itertools.combinations(range(dimensions), value)
    ]


def _checked_sets(sets: object, dimensions: int) -> tuple[Axes, ...]:
    found: dict[Axes, None] = {}
    for given in items("sets", "a list of tuples of axes", sets):
        chosen = [
            _check.count("an axis", axis, least=0, most=dimensions - 1)
            for axis in items("every one of sets", "a tuple of axes, as (0, 2)", given)
        ]
        axes = tuple(sorted(chosen))
        if len(set(axes)) < len(axes):
            raise InvalidInput(f"a set must not repeat an axis; got {tuple(chosen)}.")
        if axes in found:
            raise InvalidInput(
                f"must not repeat themselves; {axes} is given twice", parameter="sets"
            )
        found[axes] = None
    if not found:
        raise InvalidInput("must hold at least one set of axes", parameter="sets", value="none")
    return tuple(found)


def _runs(cells: tuple[int, ...], axes: Axes) -> tuple[list[int], tuple[int, ...]]:
    """The shape with neighbouring axes merged, and which of the merged ones are summed over.

    Sizes of 1 join any run, so a histogram that fits has few runs however many axes it has.
    """
    runs: list[int] = []
    kept: list[bool] = []
    for axis, values in enumerate(cells):
        if values == 1:
            continue
        if kept and kept[-1] == (axis in axes):
            runs[-1] *= values
        else:
            runs.append(values)
            kept.append(axis in axes)
    return runs, tuple(run for run, keep in enumerate(kept) if not keep)
