"""Norms, powers and singular values of records, with element-wise operations only.

Coordinates in ascending order, no library function whose bits could depend on a batch: a record
gets the same numbers wherever it stands. docs/proofs/integers.md says what rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from muhat.records.columns import FloatArray

_LARGEST_PRODUCT = 16
_HALF_ROOT = math.sqrt(0.5)
_SMALLEST_EXPONENT = -1100.0
# The logarithm of 2, written out: a library may give another last bit.
_NATURAL = 0.6931471805599453
# log₂ m = Σ c_k s^(2k+1) with s = (m − 1)/(m + 1): |s| ≤ 0.172, so 12 terms are enough.
_LOGARITHM = [2 / ((2 * k + 1) * _NATURAL) for k in range(12)]
# 2^f = Σ (f ln 2)^k / k!: |f| ≤ ½, so 15 terms are enough.
_EXPONENTIAL = [1 / math.factorial(k) for k in range(15)]
_SWEEPS = 40
_CHUNK_VALUES = 1 << 16
_FEWEST_CHUNK_ROWS = 1 << 8
# How far from orthogonal a pair may stay, a coordinate, and how short (squared) a vector may be
# to be left alone, beside a matrix whose largest entry is 1.
_ORTHOGONAL = 2.0**-51
_NEGLIGIBLE = 2.0**-104


def chunks(rows: int, dim: int) -> Iterator[slice]:
    """Few enough records at a time to stay in the cache."""
    step = max(_CHUNK_VALUES // dim, _FEWEST_CHUNK_ROWS)
    for start in range(0, rows, step):
        yield slice(start, start + step)


def norms(vectors: Sequence[FloatArray], order: float) -> FloatArray:
    """‖v‖_order of every record, 1 ≤ order ≤ ∞, without overflow or underflow on the way."""
    sizes = [np.abs(vector) for vector in vectors]
    if order == 1:
        return total(sizes)
    most = largest(sizes)
    if math.isinf(order):
        return most
    divisor = np.where(most > 0, most, 1.0)
    if order == 2:
        return most * np.sqrt(total(np.square(size / divisor) for size in sizes))
    return most * power(total(power(size / divisor, order) for size in sizes), 1 / order)


def in_unit_ball(values: list[FloatArray]) -> list[FloatArray]:
    """x/max(‖x‖, 1), by way of x/max(‖x‖_∞, 1), whose squares cannot overflow."""
    far = np.maximum(norms(values, np.inf), 1.0)
    near = [value / far for value in values]
    length = np.maximum(norms(near, 2), 1.0)
    # A value that was scaled down has the length 1 at least, and ends on the sphere.
    return [value / length for value in near]


def singular_values(entries: Sequence[FloatArray], shape: tuple[int, int]) -> list[FloatArray]:
    """The singular values of every record's matrix, by one-sided Jacobi rotations.

    The rows or the columns, whichever are fewer, are turned in pairs until all are orthogonal;
    then their lengths are the singular values. A pair that is orthogonal already is left alone,
    to the last bit, so stopping once no record of a chunk moves changes no record.
    """
    height, breadth = shape
    most = largest([np.abs(values) for values in entries])
    divisor = np.where(most > 0, most, 1.0)
    grid = np.stack([values / divisor for values in entries]).reshape(height, breadth, -1)
    vectors = grid if height <= breadth else np.ascontiguousarray(grid.transpose(1, 0, 2))
    count = len(vectors)
    for _ in range(_SWEEPS):
        turned = [
            _make_orthogonal(vectors[first], vectors[second])
            for first in range(count)
            for second in range(first + 1, count)
        ]
        if not any(turned):
            break
    return [most * norms(list(vector), 2) for vector in vectors]


def _make_orthogonal(first: FloatArray, second: FloatArray) -> bool:
    """Turn each record's pair of vectors, of shape (length, rows), in their plane, in place."""
    alpha, beta = _dot(first, first), _dot(second, second)
    gamma = _dot(first, second)
    turns = np.abs(gamma) > len(first) * _ORTHOGONAL * (np.sqrt(alpha) * np.sqrt(beta))
    turns &= np.minimum(alpha, beta) > _NEGLIGIBLE
    if not turns.any():
        return False
    zeta = (beta - alpha) / (2.0 * gamma)
    slope = 1.0 / (np.abs(zeta) + np.sqrt(1.0 + zeta * zeta))
    tangent = np.where(turns, np.where(zeta < 0, -slope, slope), 0.0)
    cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
    sine = cosine * tangent
    for left, right in zip(first, second, strict=True):
        turned = cosine * left - sine * right
        right[:] = sine * left + cosine * right
        left[:] = turned
    return True


def _dot(first: FloatArray, second: FloatArray) -> FloatArray:
    return total(left * right for left, right in zip(first, second, strict=True))


def total(vectors: Iterable[FloatArray]) -> FloatArray:
    """The sum over the coordinates, in ascending order."""
    remaining = iter(vectors)
    result = next(remaining).copy()
    for vector in remaining:
        np.add(result, vector, out=result)
    return result


def largest(vectors: Sequence[FloatArray] | FloatArray) -> FloatArray:
    """The largest over the coordinates; not-a-number if any of them is."""
    result = vectors[0].copy()
    for vector in vectors[1:]:
        np.maximum(result, vector, out=result)
    return result


def power(base: FloatArray, exponent: float) -> FloatArray:
    """base^exponent for 0 ≤ base < 2^1000 and 0 < exponent < ∞; not-a-number stays itself.

    From + − × ÷ and √ alone: numpy's own powers, exponentials and logarithms may differ in the last
    bit with the CPU and with the place of a value in its batch.

    Results below 2^-1074 are 0. The relative error is below 2^-50·(1 + |log₂ result|).

    >>> power(np.array([0.0, 1.0, 8.0]), 1 / 3).tolist()
    [0.0, 1.0, 2.0]
    """
    whole = math.floor(exponent)
    if whole <= _LARGEST_PRODUCT and exponent - whole in (0.0, 0.5):
        return _product(base, whole, with_root=exponent != whole)
    positive = base > 0
    safe = np.where(positive, base, 1.0)
    return np.where(positive, _exp2(exponent * _log2(safe)), base)


def _product(base: FloatArray, whole: int, *, with_root: bool) -> FloatArray:
    """base^whole, times √base if asked for, by repeated squaring."""
    result = np.sqrt(base) if with_root else np.ones_like(base)
    square = base
    while whole:
        if whole % 2:
            result = result * square
        whole //= 2
        if whole:
            square = square * square
    return result


def _log2(values: FloatArray) -> FloatArray:
    """log₂ of positive, finite values."""
    parts, exponents = np.frexp(values)
    small = parts < _HALF_ROOT
    parts = np.where(small, parts * 2.0, parts)
    ratio = (parts - 1.0) / (parts + 1.0)
    square = ratio * ratio
    total = np.full_like(square, _LOGARITHM[-1])
    for coefficient in reversed(_LOGARITHM[:-1]):
        total *= square
        total += coefficient
    total *= ratio
    total += exponents - small
    return total


def _exp2(exponents: FloatArray) -> FloatArray:
    """2^x for x ≤ 1000, and 0 for x far below the exponents of floats."""
    inside = np.maximum(exponents, _SMALLEST_EXPONENT)
    whole = np.rint(inside)
    rest = (inside - whole) * _NATURAL
    total = np.full_like(rest, _EXPONENTIAL[-1])
    for coefficient in reversed(_EXPONENTIAL[:-1]):
        total *= rest
        total += coefficient
    scaled: FloatArray = np.ldexp(total, whole.astype(np.int32))
    return scaled
