"""Exact arithmetic with whole numbers and fractions, rounded to a side that is stated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def whole_root_up(square: int) -> int:
    """The least whole number of at least √square."""
    return math.isqrt(square - 1) + 1 if square > 0 else 0


def whole_root_down(square: Fraction) -> int:
    """The largest whole number of at most √square."""
    return math.isqrt(square.numerator // square.denominator)


def root_up(square: Fraction) -> Fraction:
    """√square, rounded up by less than 2^-59."""
    shifted = square * (1 << 120)
    return Fraction(math.isqrt(int(shifted)) + 1, 1 << 60)


def norm_up(values: Sequence[int], norm: float) -> int:
    """The ℓ₁, ℓ₂ or ℓ_∞ norm of integers ≥ 0, rounded up."""
    if norm == 1:
        return sum(values)
    return max(values) if math.isinf(norm) else whole_root_up(sum(x * x for x in values))


def round_half_even(numerator: int, denominator: int) -> int:
    """numerator/denominator (denominator > 0) to the nearest integer, ties to even."""
    quotient, remainder = divmod(numerator, denominator)
    twice = 2 * remainder
    return quotient + (twice > denominator or (twice == denominator and quotient % 2 == 1))


def power_of_two(exponent: int) -> Fraction:
    """2^exponent, exactly."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)
