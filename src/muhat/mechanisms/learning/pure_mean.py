"""The last mean of a chain on a line with pure noise, after steps with normal noise.

Under (ε, δ) one number has much less noise for ε alone than normal noise has for both: at (1, 1e-6)
a deviation of 1.38 in place of 4.2 of what one record moves. What finds the ends of an interval
around the records asks many questions, for which normal noise is better. So both: the steps that
learn keep (ε − sε, δ) all together, which allows them a part of the μ² of (ε, δ), and the mean has
stairs for sε, or Laplace noise where it is divided by a number. Together they keep (ε, δ), also
although the mean is of an interval that the others found. Proof: docs/proofs/unbounded.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from muhat._plain import Plain
from muhat.domains import Domain
from muhat.domains.vectors import Vector
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.recipe import Recipe
from muhat.mechanisms.sums.recorded_query import recorded_sum
from muhat.mechanisms.sums.staircase import staircase
from muhat.noise.kinds import NoiseKind
from muhat.noise.least_stairs import least_stairs
from muhat.noise.protection import Protection

PARTS = 64
"""The mean has a whole number of such parts of ε."""

WORTH = 0.97
"""Pure noise must be at most so much of what normal noise would be."""

_FINE = 1 << 40


@dataclass(frozen=True)
class PureMean(Plain, keys=("share", "spent", "counted")):
    """A `share` of ε for the mean, of a `whole` promise; some of its μ² may be `spent` before.

    Where records may be missing they are `counted` with the mean, and both have Laplace noise.
    """

    whole: Protection
    share: Fraction
    spent: Fraction = Fraction(0)
    counted: bool = False

    @classmethod
    def leaving(
        cls,
        whole: Protection,
        least: Fraction,
        spent: Fraction = Fraction(0),
        counted: bool = False,
    ) -> PureMean | None:
        """The largest share for the mean that leaves so much for the steps before it.

        None if the promise has no δ for them, or if stairs are not for what is left of ε.
        """
        if len(whole.divided(Fraction(1, 2))) == 1:
            return None
        shares = (Fraction(part, PARTS) for part in range(PARTS - 1, 0, -1))
        every = (cls(whole, share, spent, counted) for share in shares)
        found = next((each for each in every if each.limit >= least), None)
        stairs = found is not None and least_stairs(found.protection.promise, 1) is not None
        return found if stairs else None

    @cached_property
    def _both(self) -> tuple[Protection, Protection]:
        """What the mean must guarantee, and what all other steps must."""
        _, both = self.whole.divided(self.share)
        return both

    @property
    def protection(self) -> Protection:
        """What the mean must guarantee: sε."""
        return self._both[0]

    @cached_property
    def limit(self) -> Fraction:
        """What the steps before it may take, as a part of what was not spent before them."""
        normal = NoiseKind.NORMAL
        all_of_it = self._both[1].strength_squared(normal) / self.whole.strength_squared(normal)
        return (all_of_it - self.spent) / (1 - self.spent)

    @property
    def chain(self) -> Protection:
        """The promise that the shares of the chain are parts of."""
        return self.whole.part(NoiseKind.NORMAL, 1 - self.spent) if self.spent else self.whole

    @cached_property
    def deviation(self) -> float:
        """That of the noise on a sum, for every unit of the distance between the ends."""
        people = self.whole.contributions
        if self.counted:
            return people * math.sqrt(2 / self.protection.strength_squared(NoiseKind.PURE))
        law = least_stairs(self.protection.promise, _FINE)
        assert law is not None
        return people * math.sqrt(law.second_moment) / _FINE

    def recipe(self, ball: Domain, weights: Vector) -> Recipe:
        """The noisy sum of records clipped to a ball on the line."""
        body = Body.of(ball, 2.0, weights, self.protection.neighbors)
        return staircase(body, 2.0, weights, self.protection)

    def recorded(self, ball: Domain, weights: Vector) -> Recipe:
        """The same with the noisy number of the records, some of which may be missing."""
        body = Body.of(ball, 2.0, weights, self.protection.neighbors)
        return recorded_sum(body, self.protection, NoiseKind.PURE)
