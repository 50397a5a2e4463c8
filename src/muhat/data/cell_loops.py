"""Numbers of one coordinate, moved to a centre and counted by cells, in one loop: see `cells.py`.

It touches a value once, where numpy takes ten steps, and does what they do: the same subtraction
and product, the same bits looked up, the same comparisons.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat.records.columns import FloatArray
from muhat.records.loader import Loader, compiler, if_they_agree, read_only

Found = NDArray[np.int64]

_ALL_BUT_THE_SIGN = np.int64((1 << 63) - 1)
_BLOCK = 256


class Moved(NamedTuple):
    """y = weight·(x − center), x clipped to ±magnitude, 0 if not finite; y² if `squared`."""

    center: float
    weight: float
    magnitude: float
    squared: bool


class Lookup(NamedTuple):
    """Where the bits of a number are looked up, and how many edges it is then compared with."""

    shift: int
    first: int
    signed: bool
    comparisons: int


Count = Callable[[FloatArray, Moved, Lookup, Found, FloatArray, Found], None]
"""Adds every value to the count of its cell: values, what becomes of them, where that is looked up,
the cells that leading bits say, their upper edges, and the counts."""


def checked() -> Count | None:
    """The loop, if it can be had and does what its source does; else None."""
    return if_they_agree(compiled, _agrees)


def compiled() -> Count:
    """The loop, compiled or from numba's cache."""
    numba = compiler()
    types = numba.types
    floats, integers = read_only(types.float64), read_only(types.int64)
    moved = types.NamedTuple((*[types.float64] * 3, types.boolean), Moved)
    lookup = types.NamedTuple((types.int64, types.int64, types.boolean, types.int64), Lookup)
    kind = types.void(floats, moved, lookup, integers, floats, types.int64[::1])
    count: Count = numba.njit(kind, nogil=True, cache=True)(_count)
    return count


def _count(
    values: FloatArray,
    moved: Moved,
    lookup: Lookup,
    below: Found,
    edges: FloatArray,
    counts: Found,
) -> None:
    numbers, cells = np.empty(_BLOCK), np.empty(_BLOCK, np.int64)
    zero, last = np.int64(0), np.int64(below.size - 1)
    for start in range(0, values.size, _BLOCK):
        rows = min(_BLOCK, values.size - start)
        # In loops of their own several values are dealt with at once.
        for row in range(rows):
            value = values[start + row]
            inside = min(max(value, -moved.magnitude), moved.magnitude)
            number = (inside - moved.center) * moved.weight
            number = number if np.isfinite(value) and np.isfinite(number) else 0.0
            number = number * number if moved.squared else number
            word = np.float64(number).view(np.int64)
            word = word ^ ((word >> 63) & _ALL_BUT_THE_SIGN) if lookup.signed else word
            numbers[row] = number
            cells[row] = min(max((word >> lookup.shift) - lookup.first, zero), last)
        for row in range(rows):
            cells[row] = below[np.uint64(cells[row])]
        for _ in range(lookup.comparisons):
            for row in range(rows):
                cells[row] += numbers[row] > edges[np.uint64(cells[row])]
        for row in range(rows):
            counts[np.uint64(cells[row])] += 1


def _agrees(count: Count) -> bool:
    """Whether the loop does to values that try every branch what its source does, uncompiled."""
    values = np.concatenate([np.ldexp(_FRACTIONS, power) for power in range(-60, 60, 4)] + [_ODD])
    values = np.concatenate([values, -values])
    edges = np.append(_FRACTIONS, np.inf)
    below = np.minimum(np.arange(40) // 2, len(edges) - 2)
    with np.errstate(all="ignore"):
        for moved, lookup in (
            (Moved(0.25, 1.0, 1.5, True), Lookup(48, 1023 * 16, False, 1)),
            (Moved(-0.5, 0.7, 1e300, False), Lookup(48, 1023 * 16 - 1, True, 2)),
            (Moved(0.125, 1e300, 1e20, False), Lookup(58, -20, True, 0)),
        ):
            counts, expected = np.zeros((2, len(edges)), np.int64)
            count(values, moved, lookup, below, edges, counts)
            _count(values, moved, lookup, below, edges, expected)
            if not np.array_equal(counts, expected):
                return False
    return True


_FRACTIONS = 1 + np.arange(16) * np.pi / 51
_ODD = np.array([0.0, 0.25, 0.5, 0.75, 5e-324, 1e200, 1e308, np.inf, np.nan])

LOADER = Loader(checked)
