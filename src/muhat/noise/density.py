"""The two laws that are sampled in strips, and how a sample is written in bits.

Both densities are ∝ exp(−E(|t|)) with E(t) = curvature·t²/2 + slope·t. The half line is cut
into strips of width 2^−m, and a sample is

    t = ±(k + x)/2^m,   k = 0, 1, 2, …,   x ∈ [0, 1).

E is a polynomial with integer coefficients, so at every dyadic point it is a dyadic rational:
the integer methods below are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FRACTION_BITS = 54
STRIP_BITS = 6
"""m: a strip is 2^−m wide."""

WITHIN_BITS = FRACTION_BITS + 1 - STRIP_BITS
"""Bits of x in a sample's first word: one more than FRACTION_BITS, for the rounding."""

CELL_BITS = 64 - 1 - WITHIN_BITS
"""Bits of u in a sample's first word: what the sign and x leave over."""


@dataclass(frozen=True)
class Density:
    """The law with density ∝ exp(−E(|t|)), E(t) = curvature·t²/2 + slope·t."""

    curvature: int
    slope: int

    def exponent(self, position: int, bits: int) -> tuple[int, int]:
        """E at t = (position/2^bits)/2^m, as (numerator, shift): numerator/2^shift."""
        shift = bits + STRIP_BITS
        numerator = (self.curvature * position + (self.slope << (shift + 1))) * position
        return numerator, 2 * shift + 1

    def rise(self, strip: NDArray[np.int64], within: NDArray[np.float64]) -> NDArray[np.float64]:
        """E(k + x) − E(k) in strip units, for arrays of k and x: the float twin of `exponent`."""
        climb = self.curvature * (2 * strip + within) + self.slope * 2.0 ** (STRIP_BITS + 1)
        return within * climb * 2.0 ** -(2 * STRIP_BITS + 1)


NORMAL = Density(curvature=1, slope=0)
LAPLACE = Density(curvature=0, slope=1)
