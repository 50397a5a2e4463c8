"""Powers with any exponent, from + − × ÷ and √ alone: the same bits on every machine.

numpy's own powers, exponentials and logarithms may differ in the last bit with the CPU and with
the place of a value in its batch.
"""

from __future__ import annotations

import math

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


def power(base: FloatArray, exponent: float) -> FloatArray:
    """base^exponent for 0 ≤ base < 2^1000 and 0 < exponent < ∞; not-a-number stays itself.

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
