"""Square roots of exact numbers, rounded to the side that is safe."""

from __future__ import annotations

import math
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
