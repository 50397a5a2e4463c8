"""Numbers into cells: equal to a label, or between the edges of a bin; exact, value by value.

A number is high + low: high is the float nearest to it, low what is left of a whole number
beyond 2^53, else 0. A fraction that is no float (in a decimal, or in text) is the nearest float.
So one number has one cell, whichever type carries it. Rounding to the nearest is monotone, so
(high, low) in lexicographic order is the order of the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.records.columns import Column, Decimals, FloatArray, Integers, Mask
from muhat.records.exact import split

Cells = NDArray[np.int64]
"""A cell a value; −1 for values that are in none."""

EXACT = 1 << 53
_SPARSEST = 4
_SMALL_TABLE = 1 << 12
_LARGE_TABLE = 1 << 16


class NumberCodes:
    """Cells of the whole numbers 0 … size − 1, each its own."""

    def __init__(self, size: int) -> None:
        self._size = size

    @property
    def whole(self) -> tuple[int, Cells] | None:
        """The first whole number that may have a cell, and the cells from there on; None: many."""
        return None if self._size > _LARGE_TABLE else (0, np.arange(self._size))

    def cells(self, high: FloatArray, low: FloatArray | None) -> Cells:
        """The number itself, −1 if it is no code."""
        whole, inside = _whole_between(0, self._size - 1, high, low)
        return np.where(inside, whole, -1)


class Listed:
    """Cells of numbers that are listed, one each."""

    def __init__(self, labels: Sequence[int | float]) -> None:
        order = sorted(range(len(labels)), key=labels.__getitem__)
        self._cells = np.array(order, np.int64)
        self._high, self._low = _halves([labels[index] for index in order])
        self._table = self._looked_up()

    @property
    def whole(self) -> tuple[int, Cells] | None:
        """As `NumberCodes.whole`; None if not all labels are whole, or they lie far apart."""
        return None if self._table is None else (int(self._high[0]), self._table)

    def cells(self, high: FloatArray, low: FloatArray | None) -> Cells:
        """The cell of every number, −1 for those that are not listed."""
        if self._table is not None:
            first, last = int(self._high[0]), int(self._high[-1])
            whole, inside = _whole_between(first, last, high, low)
            return np.where(inside, self._table[whole - first], -1)
        keys, values = _comparable(self._high, self._low, high, low)
        places = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
        return np.where(keys[places] == values, self._cells[places], -1)

    def _looked_up(self) -> Cells | None:
        """The cell of every whole number between the labels, if it pays to write them all down."""
        first, last = self._high[0], self._high[-1]
        if self._low is not None or max(abs(first), abs(last)) > EXACT:
            return None
        if not (last - first < max(_SPARSEST * len(self._cells), _SMALL_TABLE)):
            return None
        if (np.floor(self._high) != self._high).any():
            return None
        table = np.full(int(last - first) + 1, -1, np.int64)
        table[(self._high - first).astype(np.int64)] = self._cells
        return table


class NumberBins:
    """Cells of numbers in [a, b), the last of them closed."""

    whole = None
    """Bins are between numbers."""

    def __init__(self, edges: Sequence[int | float]) -> None:
        self._high, self._low = _halves(edges)

    def cells(self, high: FloatArray, low: FloatArray | None) -> Cells:
        """The bin of every number, −1 for those outside all of them."""
        edges, values = _comparable(self._high, self._low, high, low)
        places = np.searchsorted(edges, values, side="right") - 1
        last = len(edges) - 1
        at_the_end = np.where(values == edges[last], last - 1, -1)
        return np.where(places == last, at_the_end, places)


def parts(column: Column) -> tuple[FloatArray, FloatArray | None, Mask | None]:
    """The numbers of a column as high + low, and which are there and finite (None: all)."""
    if isinstance(column, Integers):
        values = column.values
        if not len(values) or (values.min() >= -EXACT and values.max() <= EXACT):
            return values.astype(np.float64), None, column.valid
        return (*split(column), column.valid)
    high, low = split(column)
    if isinstance(column, Decimals):
        return high, _of_whole_numbers(column, low), column.valid
    return high, low, column.present()


def _whole_between(
    first: int, last: int, high: FloatArray, low: FloatArray | None
) -> tuple[Cells, Mask]:
    """The whole numbers from first to last, at most 2^53 (`first` for the others), and which."""
    inside = (high >= first) & (high <= last)
    whole = np.where(inside, high, first).astype(np.int64)
    inside &= whole == high
    if low is not None:
        inside &= low == 0
    return whole, inside


def halves_of(number: int) -> tuple[float, float]:
    """A whole number as high + low."""
    high = float(number)
    return high, float(number - int(high))


def _of_whole_numbers(column: Decimals, low: FloatArray | None) -> FloatArray | None:
    """low where the decimal is a whole number; fractions are the nearest float."""
    if low is None or not low.any():
        return None
    unit = 10 ** max(column.scale, 0)
    rest = np.zeros(len(low))
    for row in np.flatnonzero(low).tolist():
        if column.unscaled(row) % unit == 0:
            rest[row] = low[row]
    return rest


def _halves(numbers: Sequence[int | float]) -> tuple[FloatArray, FloatArray | None]:
    pairs = [halves_of(number) if isinstance(number, int) else (number, 0.0) for number in numbers]
    low = np.array([pair[1] for pair in pairs])
    return np.array([pair[0] for pair in pairs]), low if low.any() else None


def _comparable(
    keys: FloatArray, keys_low: FloatArray | None, high: FloatArray, low: FloatArray | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both as floats, or as complex numbers, which numpy orders by their parts in turn."""
    if keys_low is None and low is None:
        return keys, high
    return _pairs(keys, keys_low), _pairs(high, low)


def _pairs(high: FloatArray, low: FloatArray | None) -> NDArray[np.complex128]:
    made = np.zeros(len(high), np.complex128)
    made.real = high
    if low is not None:
        made.imag = low
    return made
