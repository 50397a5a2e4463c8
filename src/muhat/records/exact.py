"""Integers and decimals onto the grid without passing through a rounded float.

For a box, q is the integer nearest to (x − c)/g, ties to even, clamped: exact for every x,
so one number gives one q whichever type carries it. For a ball, x is split into two floats,
high + low: high is the float nearest to x, low is what is left.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat._integers import round_half_even
from muhat.records.columns import Column, Decimals, FloatArray, Floats, Integers

Steps = NDArray[np.int64]

COARSEST_EXACT = 62
"""Beyond a grid of 2^62 integers go through floats, and may be off by one step of it."""

_EXACT_FLOATS = 1 << 53
_EXACT_POWER_OF_TEN = 22


def integer_steps(column: Integers, exponent: int, center: int, lower: int, upper: int) -> Steps:
    """q of every value, shape (n,), for the grid 2^exponent (≤ 2^62) and the centre in steps."""
    values = column.values
    if exponent >= 1:
        kind = values.dtype.type
        steps = _offsets((values >> kind(exponent)).astype(np.int64), center, lower - 1, upper + 1)
        rest = values & kind((1 << exponent) - 1)
        half = kind(1 << (exponent - 1))
        steps += (rest > half) | ((rest == half) & (steps % 2 == 1))
        return steps.clip(lower, upper)
    # The grid divides 1, so q = (x − whole)·2^−exponent + rest with no rounding at all.
    per_unit = 1 << -exponent
    whole = -(-center // per_unit)
    rest_units = whole * per_unit - center
    first, last = (lower - rest_units) // per_unit, -((rest_units - upper) // per_unit)
    offsets = _offsets(values, whole, first, last)
    if per_unit > 1 << 60:
        # A box this narrow has room for one integer: list what the few offsets become.
        table = [min(max(o * per_unit + rest_units, lower), upper) for o in range(first, last + 1)]
        return np.array(table, np.int64)[offsets - first]
    steps = offsets * np.int64(per_unit) + np.int64(rest_units)
    return steps.clip(lower, upper)


def _offsets(values: NDArray[Any], whole: int, first: int, last: int) -> Steps:
    """x − whole clipped to [first, last], exact whatever the size of `whole`."""
    info = np.iinfo(values.dtype)
    least, most = max(whole + first, int(info.min)), min(whole + last, int(info.max))
    if least > most:
        return np.full(len(values), first if least == whole + first else last, np.int64)
    kind = values.dtype.type
    inside = np.clip(values, kind(least), kind(most)).view(np.uint64)
    # Modulo 2^64 the difference is right although `whole` itself may not fit.
    offsets: Steps = (inside - np.uint64(whole % (1 << 64))).view(np.int64)
    return offsets


def decimal_steps(column: Decimals, exponent: int, center: int, lower: int, upper: int) -> Steps:
    """q of every value, shape (n,): floats where they provably decide, else whole numbers."""
    small, units = _small_units(column)
    steps = np.zeros(len(units), np.int64)
    unsure = np.ones(len(units), bool)
    if 0 <= column.scale <= _EXACT_POWER_OF_TEN and abs(exponent) <= 500 and abs(center) < 1 << 500:
        grid, middle = 2.0**exponent, float(center * Fraction(2) ** exponent)
        value = units.astype(np.float64) / 10.0**column.scale
        distance = (value - middle) / grid
        # Three roundings, each at most 2^-53 of what it rounds; 2^-51 of the sum is generous.
        error = (np.abs(value) + abs(middle)) / grid * 2.0**-51
        nearest = np.rint(distance)
        decided = np.abs(distance - nearest) + error < 0.5
        decided |= (distance - error > upper + 1) | (distance + error < lower - 1)
        unsure = ~(small & decided)
        steps = np.clip(nearest, lower, upper).astype(np.int64)
    if column.valid is not None:
        unsure &= column.valid
    tens = 10 ** max(column.scale, 0) << max(exponent, 0)
    factor = 10 ** max(-column.scale, 0) << max(-exponent, 0)
    for row in np.flatnonzero(unsure).tolist():
        exact = round_half_even(column.unscaled(row) * factor - center * tens, tens)
        steps[row] = min(max(exact, lower), upper)
    return steps


def split(column: Column) -> tuple[FloatArray, FloatArray | None]:
    """The column as high + low, shape (n,) each; low is None where high is all there is.

    Floats are their own high part. A decimal of at most 53 bits is read as the nearest float.
    """
    if isinstance(column, Floats):
        return column.values, None
    if isinstance(column, Integers):
        kind = column.values.dtype.type
        upper = (column.values >> kind(32)).astype(np.float64) * 2.0**32
        lower = (column.values & kind(0xFFFFFFFF)).astype(np.float64)
        high = upper + lower
        return high, lower - (high - upper)
    small, units = _small_units(column)
    low = np.zeros(len(units))
    if 0 <= column.scale <= _EXACT_POWER_OF_TEN:
        high = units.astype(np.float64) / 10.0**column.scale
    else:
        high, small = low.copy(), np.zeros(len(units), bool)
    for row in np.flatnonzero(~small).tolist():
        exact = column.unscaled(row) / Fraction(10) ** column.scale
        high[row] = float(exact)
        low[row] = float(exact - Fraction(high[row]))
    return high, low


def read(column: Column, missing: float) -> FloatArray:
    """The values as floats, with a number of one's own for those that are not there."""
    values, low = split(column)
    if low is not None:
        values = values + low
    return np.where(column.present(), values, missing)


def occurrences(places: NDArray[np.intp], size: int) -> Steps:
    """How often each whole number below `size` is there, shape (size,)."""
    found = np.zeros(size, np.int64)
    # Faster than a bincount, which looks for the least and the largest first.
    np.add.at(found, places, 1)
    return found


def signed(value: int) -> int:
    """The representative of `value` modulo 2^64 that an int64 would show."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _small_units(column: Decimals) -> tuple[NDArray[np.bool_], Steps]:
    """Which unscaled integers are exact as floats, and their values (0 for the others)."""
    lowest = column.values[:, 0].view(np.int64)
    small = (lowest < _EXACT_FLOATS) & (lowest > -_EXACT_FLOATS)
    for limb in range(1, column.values.shape[1]):
        small &= column.values[:, limb].view(np.int64) == lowest >> 63
    return small, np.where(small, lowest, 0)
