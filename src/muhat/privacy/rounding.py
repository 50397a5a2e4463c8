"""Floats as the decimals they print as, and rounding to them on the safe side.

A float that a user reads or types means the decimal that it prints as (`as_typed`), so "at
least" and "at most" are judged by that decimal too: 3/10 goes to 0.3 both ways, although the
binary number behind 0.3 is a little smaller.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

LEAST_FLOAT = 5e-324

MARGIN = Decimal(f"1.{1:030}")
"""1 + 10⁻³⁰, which covers the rounding of a few decimal operations with 55 digits or more. It is
written out, because a sum would be rounded to the 28 digits of the default context, which is 1."""


@lru_cache(maxsize=1024)
def as_typed(value: float) -> Fraction:
    """The decimal number a float prints as: 0.1 is one tenth."""
    return Fraction(repr(float(value)))


def float_at_least(value: Fraction | Decimal) -> float:
    """The least float that, as typed, is not below the value; inf above the largest float."""
    return _rounded(value, math.inf)


def float_at_most(value: Fraction | Decimal) -> float:
    """The largest float that, as typed, is not above the value; -inf below the least float."""
    return _rounded(value, -math.inf)


def _rounded(value: Fraction | Decimal, towards: float) -> float:
    # Printing keeps the order of floats, so one of the nearest float and its two neighbours is
    # the answer.
    number = math.nextafter(_nearest(value), -towards)
    while not _reaches(number, value, towards):
        number = math.nextafter(number, towards)
    return number + 0.0  # not -0.0


def _nearest(value: Fraction | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _reaches(number: float, value: Fraction | Decimal, towards: float) -> bool:
    if math.isinf(number):
        return number == towards
    # Both types compare exactly, and a decimal of a million digits never becomes a fraction.
    typed = type(value)(repr(number))
    return typed >= value if towards > 0 else typed <= value


def root_at_least(square: Fraction) -> float:
    """The least float whose square, as typed, is not below `square` ≥ 0."""
    # 2^(2·shift) scales the square to at least 256 bits, so the integer root has 128 good ones.
    shift = max(0, 256 + square.denominator.bit_length() - square.numerator.bit_length())
    floor = math.isqrt((square.numerator << 2 * shift) // square.denominator)
    number = float_at_least(Fraction(floor, 1 << shift))
    while not math.isinf(number) and as_typed(number) ** 2 < square:
        number = math.nextafter(number, math.inf)
    return number


def root_at_most(square: Fraction) -> float:
    """The largest float whose square, as typed, is not above `square` ≥ 0."""
    # In integers: a square may lie far outside the range of floats although its root does not.
    shift = max(0, 128 + square.denominator.bit_length() - square.numerator.bit_length())
    root = math.isqrt((square.numerator << 2 * shift) // square.denominator)
    number = float(Fraction(root, 1 << shift))
    while as_typed(number) ** 2 > square:
        number = math.nextafter(number, -math.inf)
    return number


def root_below(square: Fraction, bits: int = 60) -> Fraction:
    """The largest multiple of 2^−bits whose square is not above `square` ≥ 0."""
    return Fraction(math.isqrt(math.floor(square * (1 << 2 * bits))), 1 << bits)


def ten_digits_at_least(value: float) -> float:
    """The number with ten digits that is just not below: a promise people can type again."""
    digits = 9 - math.floor(math.log10(value))
    rounded = round(value, digits)
    return rounded if rounded >= value * (1 - 1e-10) else round(value + 10.0**-digits, digits)
