"""One promise for records that nobody has bounded, shared out among the steps of a method.

Shares are exact fractions of the whole promise: of μ² with normal noise, of ε with pure noise.
Both add up when steps follow each other, each step chosen by the outputs so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from muhat._arrays import Floats
from muhat._check import LARGEST_COUNT
from muhat._plain import Plain
from muhat.domains import Ball, Domain, Ellipsoid
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.ellipsoidal import ELLIPSOIDAL
from muhat.mechanisms.sums.recipe import Recipe
from muhat.mechanisms.sums.recorded_query import recorded_sum
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.law import IndependentFamily, ScaleFamily
from muhat.noise.laws import elliptic_law, independent_law
from muhat.noise.protection import Protection

_DENOMINATOR = 10**6

MOST_OUTSIDE = 0.03
"""The largest share of a count of records outside a ball."""


@dataclass(frozen=True, eq=False)
class Sharing(Plain):
    """Whose promise is shared: n records of |coordinates| ≤ magnitude, under a protection.

    `weights`, of shape (d,), scale the coordinates in which distances are measured. `protection`
    is that of all steps together, which have noise of one kind.
    """

    magnitude: float
    weights: Floats
    n: int
    protection: Protection
    kind: NoiseKind

    @property
    def pure(self) -> bool:
        """Whether steps share ε of pure noise; else μ² of normal noise."""
        return self.kind is NoiseKind.PURE

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        return len(self.weights)

    @property
    def law(self) -> ScaleFamily:
        """The noise of sums."""
        return elliptic_law(self.kind)

    @property
    def search_law(self) -> IndependentFamily:
        """The noise of comparisons."""
        return independent_law(self.kind)

    @cached_property
    def whole(self) -> Strength:
        """What all steps together may reveal."""
        return Strength.of(self.protection.promise, self.kind)

    @cached_property
    def strength(self) -> float:
        """μ, or ε, of the whole promise, for a single record."""
        return math.sqrt(self.whole.squared) / self.protection.contributions

    def strength_squared(self, share: Fraction) -> Fraction:
        """μ², or ε², of a step that takes a share."""
        return self.whole.part(share).squared

    def share_of(self, strength: float) -> float:
        """The share that a step of this strength takes: its own μ² (or ε) out of the whole."""
        return (strength / self.strength) ** (2 // self.kind.power)

    def step_strength(self, share: float) -> float:
        """μ, or ε, of a step that takes a share, for a single record."""
        return self.strength * self.kind.strength_of(share)

    def protect(self, share: Fraction) -> Protection:
        """What a step that takes a share must guarantee."""
        return self.protection.part(self.kind, share)

    def search(self, cells: int, share: Fraction) -> NoisySearch:
        """A noisy binary search over cells that takes a share."""
        strength_squared = self.strength_squared(share)
        contributions = self.protection.contributions
        return NoisySearch(cells, self.search_law, strength_squared, contributions)

    @property
    def limit(self) -> Fraction:
        """What all steps but the last mean may take together."""
        return Fraction(1)

    def mean_noise(self, share: float) -> float:
        """That on the sum of the last mean, for a share, by what one record moves it."""
        return 1 / self.step_strength(share)

    @property
    def spread(self) -> float:
        """(E‖z‖²)^½ of noise for a sum of unit sensitivity at strength 1: √d, or √(d(d + 1))."""
        return math.sqrt(self.dim * self.law.variance(self.dim))

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
        deviation = math.sqrt(self.search_law.variance(1))
        return short_fraction(min(self.share_of(2 * deviation / self.balance), MOST_OUTSIDE))

    @property
    def largest_radius(self) -> float:
        """No record is farther from any centre."""
        return 2 * self.magnitude * float(np.linalg.norm(self.weights))

    def recipe_in(self, ball: Domain, share: Fraction, weights: Floats) -> Recipe:
        """The noisy sum of records clipped to a ball, for a share of the promise."""
        protection = self.protect(share)
        body = Body.of(ball, 2.0, weights, protection.neighbors)
        return ELLIPSOIDAL[self.kind].make(body, 2.0, weights, protection)

    def last_recipe(self, ball: Domain, share: Fraction) -> Recipe:
        """The noisy sum of the last mean, for the share that is left."""
        return self.recipe_in(ball, share, self.weights)

    def recorded_in(self, ball: Domain, share: Fraction) -> Recipe:
        """As `recipe_in`, with the noisy number of the records, some of which may be missing."""
        protection = self.protect(share)
        body = Body.of(ball, 2.0, self.weights, protection.neighbors)
        return recorded_sum(body, protection, self.kind)


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
