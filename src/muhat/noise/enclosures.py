"""Rationals that enclose exp(−x) for a rational x: for constants that a promise rests on."""

from __future__ import annotations

import math
from fractions import Fraction

from muhat.noise.exact import exponential


def falling_exponential(amount: Fraction, precision: int) -> tuple[Fraction, Fraction]:
    """Encloses exp(−amount), amount ≥ 0, between multiples of 2^-precision.

    >>> low, high = falling_exponential(Fraction(1), 60)
    >>> low < Fraction("0.36787944117144232160") < high, high - low < Fraction(1, 1 << 57)
    (True, True)
    """
    scaled = amount * (1 << precision)
    least, _ = exponential(math.ceil(scaled), precision, precision)
    _, most = exponential(math.floor(scaled), precision, precision)
    return Fraction(least, 1 << precision), Fraction(most, 1 << precision)
