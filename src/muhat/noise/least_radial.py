"""The stairs in the radius with the least mean square that keep a promise, and what they gain.

b is e^−ε rounded up to 96 digits, and the inner radius t, in steps, is where

    E R² = Σ_j b^j(t + j)^{d+2}/Σ_j b^j(t + j)^d

is the least, the same for every norm. It is searched in floats, which choose nothing else: whatever
t is, the law's own test decides. K-norm noise has E R² = (d + 1)(d + 2)/ε².
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

import numpy as np

from muhat._arrays import Floats
from muhat.noise.kinds import Strength
from muhat.noise.radial_stairs import (
    LARGEST_DIM,
    UNIT,
    EuclideanStairs,
    RadialStairs,
    balls,
    farthest,
)
from muhat.noise.stairs import MOST_STAIRS, RATIO_BITS, falling, rounded_up
from muhat.privacy import Privacy

Kind = TypeVar("Kind", bound=RadialStairs)

LEAST_GAIN = 0.9992
"""Stairs are taken if their error is at most so much of that of K-norm noise."""

_GRAIN = 1 << 24
"""The inner radius is a multiple of it, and 64 of it at least: powers of short numbers are fast."""

_WAVES = 2e-4
"""Sums over stairs are integrals but for 2(1 + (2π/ε)²)^{−(d+1)/2} or so: less gains nothing."""


def least_radial(kind: type[Kind], dim: int, promise: Privacy | Strength) -> Kind | None:
    """The least stairs in the radius of a kind; None where they would reach over too many steps.

    >>> from muhat.noise.radial_stairs import EuclideanStairs
    >>> from muhat.privacy import PureDP
    >>> law = least_radial(EuclideanStairs, 2, PureDP(epsilon=4.0))
    >>> round(law.inner / UNIT, 2), round(law.variance(2) ** 0.5 / (3**0.5 / 4), 3)
    (0.39, 0.853)
    """
    allowed = falling(promise)
    if allowed is None or allowed >= 1 or not 1 <= dim <= LARGEST_DIM:
        return None
    # As many digits of a small ratio as of a large one.
    bits = min(RATIO_BITS + _digits(allowed), 4 * RATIO_BITS)
    ratio = Fraction(rounded_up(allowed * (1 << bits)), 1 << bits)
    if ratio >= 1 or farthest(dim, ratio) > MOST_STAIRS:
        return None
    return kind(dim, _best_inner(dim, float(ratio)), ratio)


def _digits(ratio: Fraction) -> int:
    return ratio.denominator.bit_length() - ratio.numerator.bit_length()


@lru_cache(maxsize=256)
def is_worth(dim: int, promise: Privacy | Strength) -> bool:
    """Whether stairs in d dimensions have less error than K-norm noise, by enough."""
    allowed = falling(promise)
    if allowed is None or not 0 < float(allowed) < 1:
        return False
    epsilon = -math.log(float(allowed))
    if (dim + 1) * math.log1p((2 * math.pi / epsilon) ** 2) > -2 * math.log(_WAVES / 2):
        return False
    law = least_radial(EuclideanStairs, dim, promise)
    known = (dim + 1) * (dim + 2) / epsilon**2
    return law is not None and law.mean_square <= LEAST_GAIN**2 * known


@lru_cache(maxsize=256)
def _best_inner(dim: int, ratio: float) -> int:
    """The inner radius with the least mean square, by ever finer grids."""
    grains = UNIT // _GRAIN
    places = np.union1d(np.geomspace(64 / grains, 1, 256), np.linspace(1 / 64, 1, 64))
    for _ in range(4):
        best = int(np.argmin(_mean_squares(dim, places, ratio)))
        near = places[max(best - 1, 0)], places[min(best + 1, len(places) - 1)]
        places = np.linspace(*near, 33)
    return max(round(float(places[16]) * grains), 64) * _GRAIN


def _mean_squares(dim: int, inner: Floats, ratio: float) -> Floats:
    radii, chances = balls(dim, inner, ratio)
    return np.asarray(np.sum(chances * radii**2, axis=-1))
