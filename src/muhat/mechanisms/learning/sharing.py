"""One promise for records that nobody has bounded, shared out among the steps of a method.

Shares are exact fractions of the whole promise: of μ² with normal noise, of ε with pure noise.
Both add up when steps follow each other, each step chosen by the outputs so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from muhat._arrays import Floats
from muhat._check import LARGEST_COUNT
from muhat.domains import Ball, Domain, Ellipsoid
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.ellipsoidal import ellipsoid_norm, gaussian
from muhat.mechanisms.sums.recipe import Protection, Recipe
from muhat.mechanisms.sums.recorded_query import recorded_sum
from muhat.noise.law import LAWS

_DENOMINATOR = 10**6

MOST_OUTSIDE = 0.03
"""The largest share of a count of records outside a ball."""


@dataclass(frozen=True, eq=False)
class Sharing:
    """Whose promise is shared: n records of |coordinates| ≤ magnitude, under a protection.

    `weights`, of shape (d,), scale the coordinates in which distances are measured. `protection`
    is that of all steps together.
    """

    magnitude: float
    weights: Floats
    n: int
    protection: Protection

    @property
    def pure(self) -> bool:
        """Whether steps share ε of pure noise; else μ² of normal noise."""
        return self.protection.pure

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return len(self.weights)

    @property
    def search_law(self) -> str:
        """The noise of comparisons."""
        return "laplace" if self.pure else "normal"

    @cached_property
    def strength(self) -> float:
        """μ, or ε, of the whole promise, for a single record."""
        return math.sqrt(self.protection.strength_squared) / self.protection.contributions

    def strength_squared(self, share: Fraction) -> Fraction:
        """μ², or ε², of a step that takes a share."""
        return self.protection.strength_squared * share ** (2 if self.pure else 1)

    def share_of(self, strength: float) -> float:
        """The share that a step of this strength takes: its own μ² (or ε) out of the whole."""
        return (strength / self.strength) ** (1 if self.pure else 2)

    def step_strength(self, share: float) -> float:
        """μ, or ε, of a step that takes a share, for a single record."""
        return self.strength * (share if self.pure else math.sqrt(share))

    def protect(self, share: Fraction) -> Protection:
        """What a step that takes a share must guarantee."""
        return replace(self.protection, strength_squared=self.strength_squared(share))

    def search(self, cells: int, share: Fraction) -> NoisySearch:
        """A noisy binary search over cells that takes a share."""
        strength_squared = self.strength_squared(share)
        law = LAWS[self.search_law]
        return NoisySearch(cells, law, strength_squared, self.protection.contributions)

    @property
    def spread(self) -> float:
        """(E‖z‖²)^½ of noise for a sum of unit sensitivity at strength 1: √d, or √(d(d + 1))."""
        return math.sqrt(self.dim * (self.dim + 1) if self.pure else self.dim)

    def noise(self, radius: float, share: float) -> float:
        """The weighted root mean square noise on a mean clipped to this radius."""
        return 2 * radius * self.spread / (self.n * self.step_strength(share))

    @property
    def balance(self) -> float:
        """N: records outside a ball at which one more saves as much noise as it costs bias."""
        return 2 * self.spread / self.strength

    @cached_property
    def outside_share(self) -> Fraction:
        """Of the count of the records outside the last ball: noise of N/2, if that is cheap."""
        deviation = math.sqrt(LAWS[self.search_law].variance(1))
        return short_fraction(min(self.share_of(2 * deviation / self.balance), MOST_OUTSIDE))

    @property
    def largest_radius(self) -> float:
        """No record is farther from any centre."""
        return 2 * self.magnitude * float(np.linalg.norm(self.weights))

    def recipe_in(self, ball: Domain, share: Fraction, weights: Floats) -> Recipe:
        """The noisy sum of records clipped to a ball, for a share of the promise."""
        protection = self.protect(share)
        body = Body.of(ball, 2.0, weights, protection.neighbors)
        mechanism = ellipsoid_norm if self.pure else gaussian
        return mechanism(body, 2.0, weights, protection)

    def recorded_in(self, ball: Domain, share: Fraction) -> Recipe:
        """As `recipe_in`, with the noisy number of the records, some of which may be missing."""
        protection = self.protect(share)
        return recorded_sum(Body.of(ball, 2.0, self.weights, protection.neighbors), protection)

    def to_dict(self) -> dict[str, Any]:
        """All of it, for a plan's digest."""
        return {
            "magnitude": self.magnitude.hex(),
            "weights": [float(weight).hex() for weight in self.weights],
            "n": self.n,
            "pure": self.pure,
            "strength_squared": str(self.protection.strength_squared),
            "contributions": self.protection.contributions,
        }


def around(center: Floats, radius: float, weights: Floats) -> Domain:
    """{x : ‖weights∘(x − center)‖ ≤ radius}."""
    if (weights == 1).all():
        return Ball(radius, len(center), center)
    return Ellipsoid(np.diag((radius / weights) ** 2), center)


def short_fraction(share: float) -> Fraction:
    """A share as a short fraction, rounded down, by less than a thousandth of itself if positive.

    What suffices by a margin still suffices when it is rounded, however small it is.
    """
    denominator = _DENOMINATOR
    while 0 < share * denominator < 1000:
        denominator *= 10
    return Fraction(max(math.floor(share * denominator), 1), denominator)


def least_number(is_enough: Callable[[int], bool]) -> int:
    """The least number of records that is enough, if more than enough is enough."""
    high = 1
    while high < LARGEST_COUNT and not is_enough(high):
        high *= 2
    low, high = high // 2, min(high, LARGEST_COUNT)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
