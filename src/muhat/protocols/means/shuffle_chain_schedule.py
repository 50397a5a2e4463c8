"""The public side of the shuffle chain: which round may spend how much, and where it looks.

Everything here follows from public arguments. A count below one of 2^h − 1 cuts that is asked for
the share s of the promise has noise of about `COUNT_NOISE`/(μ√s) people, a mean of the ball of
radius r has 2r√d/(nμ√s).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from muhat._arrays import Floats
from muhat.mechanisms.learning.sharing import least_number, short_fraction
from muhat.privacy import ApproxDP
from muhat.protocols.randomizers.allowance import Allowance

SMALLEST = 2.0**-42
"""The least public radius, as a part of the largest."""

COUNT_NOISE = 2.5
"""Of a count below a cut, at strength 1: between 1.9 and 2.7 for the trees that are used."""

FIRST_LEVELS, NEAR_LEVELS, LAST_LEVELS, FINE_LEVELS = 6, 5, 6, 4
"""2^h cells between cuts: in the first round, while centres are sought, for the last radius, and
where that is known already but for details."""

MOST_NEAR = 8
"""Rounds in which a centre is sought, at most."""

LEAST_LEFT = Fraction(1, 4)
"""The share that is kept for the mean before another of these rounds."""

FEW_DIM, MANY_DIM = 4, 16
"""Below the first, people outside a ball are likely to pull one way; from the second on, distances
agree so well that radii must be told apart finely."""

PULL_SHARE = Fraction(1, 50)

OUTSIDE_PART = 0.05
"""Of what is left for the mean, for the number of people outside the last ball."""

LEAN, LEAN_MANY = math.sqrt(0.5), math.sqrt(0.3)
"""The shell is given such a part of what would be best if all of it were needed."""

CLOSE, SURELY = 0.3, 4.75
"""A centre whose noise is below this part of people's distances needs no better one. Noise beyond
the second, in normal deviations, has a chance of 1e-6."""

THINNEST = 1.02
"""A shell is told from the ball within if it is so many times as wide."""


@dataclass(frozen=True)
class ShuffleChainSchedule:
    """What suits n people, d coordinates of weights `lengths` and a promise."""

    magnitude: float
    lengths: tuple[float, ...]
    n: int
    promise: ApproxDP

    @property
    def dim(self) -> int:
        """d."""
        return len(self.lengths)

    @cached_property
    def largest(self) -> float:
        """No record is farther from any centre."""
        return 2 * self.magnitude * math.hypot(*self.lengths)

    @cached_property
    def strength(self) -> float:
        """μ of the whole promise."""
        return math.sqrt(float(Allowance(self.promise).mu_squared))

    def noise(self, share: float) -> float:
        """The root mean square noise of a mean, in units of the ball's radius."""
        return 2 * math.sqrt(self.dim) / (self.n * self.strength * math.sqrt(share))

    def count_error(self, share: float) -> float:
        """About the standard deviation of a count below a cut."""
        return COUNT_NOISE / (self.strength * math.sqrt(share))

    def _counting(self, error: float, least: float, most: float) -> Fraction:
        """The share that counts with this error cost, between two."""
        wanted = (COUNT_NOISE / (self.strength * error)) ** 2
        return short_fraction(min(max(wanted, least), most))

    # What rounds may spend.

    @cached_property
    def center_share(self) -> Fraction:
        """Of a new centre: noise of a quarter of the radius, if that is cheap."""
        return short_fraction(min(max(0.02, (4 * self.noise(1.0)) ** 2), 0.05))

    @cached_property
    def near_share(self) -> Fraction:
        """Of the counts that go with it: three people in a hundred, if that is cheap."""
        return self._counting(0.03 * self.n, 0.005, 0.03)

    @cached_property
    def last_share(self) -> Fraction:
        """Of the counts that the last radius is chosen by: they must tell a group of people."""
        return self._counting(0.45 * self.group, 0.01, 0.08 if self.dim < FEW_DIM else 0.06)

    @cached_property
    def again_share(self) -> Fraction:
        """Of the counts that confirm a radius far outside."""
        return self.last_share / 2

    @cached_property
    def aside_share(self) -> Fraction:
        """Of the counts around a centre that was moved aside."""
        return self._counting(0.65 * self.group, 0.01, 0.06)

    @cached_property
    def reserved(self) -> Fraction:
        """What rounds that seek a centre may not touch: all that can follow, at its dearest."""
        after = self.last_share + PULL_SHARE + self.again_share + self.aside_share
        return LEAST_LEFT + after

    def affords_near(self, spent: Fraction) -> bool:
        """Whether one more centre can be sought, with the dearest counts."""
        counts = max(self.near_share, self.last_share)
        return spent + self.center_share + counts + self.reserved <= 1

    def shell_share(self, inner: float, outer: float, left: Fraction) -> Fraction | None:
        """Of the mean of what lies between two radii; None if it is not taken apart.

        As for a trusted curator: mechanisms/learning/recentring_schedule.py.
        """
        if outer < THINNEST * inner:
            return None
        part = (LEAN if self.dim < MANY_DIM else LEAN_MANY) * (outer - inner)
        return short_fraction(float(left) * part / (part + inner))

    # How many people may lie outside.

    @property
    def balance(self) -> float:
        """N: people outside at which one more saves as much noise as it costs bias, at most."""
        return 2 * math.sqrt(self.dim) / self.strength

    @property
    def group(self) -> float:
        """People far outside that may be a group of their own."""
        return min(4 * self.balance, max(2 * self.balance, self.n / 40))

    @property
    def outside(self) -> float:
        """People close by that may lie outside the last ball."""
        most, least, part = (6, 4, 100) if self.dim < FEW_DIM else (8, 2, 8)
        return min(most * self.balance, max(least * self.balance, self.n / part))

    @property
    def far(self) -> float:
        """Where far outside begins, in units of the radius that most people have."""
        return 6.0 if self.dim < FEW_DIM else 3.0 if self.dim < MANY_DIM else 2.0

    @property
    def deviations(self) -> float:
        """How much of its noise a count far outside must be, to be a group."""
        return 2.5 if self.dim < FEW_DIM else 2.0

    def reach(self, part: float) -> float:
        """What that part of d-dimensional noise stays within, in units of its root mean square.

        Wilson and Hilferty (1931); `part` is a deviation of a normal number.
        """
        step = 2 / (9 * self.dim)
        return float((1 - step + part * math.sqrt(step)) ** 1.5)

    @property
    def clear(self) -> float:
        """At so many times a centre's noise, distances are the people's own and not its noise.

        3.3, which leaves the centre good enough, or what noise does not reach in a million tries.
        """
        return max(1 / CLOSE, self.reach(SURELY))

    # Where rounds look.

    def first_cuts(self) -> tuple[float, ...]:
        """All radii, coarsely."""
        return self._geometric(self.largest * SMALLEST, self.largest, (1 << FIRST_LEVELS) - 1)

    def near_cuts(
        self, low: float, ball: float, high: float, noise: float | None
    ) -> tuple[float, ...]:
        """From well inside a ball to well outside; the ball's radius is one of them.

        So is where distances are more than the centre's noise, if it has any.
        """
        inside = self._geometric(low, ball, 9)
        count = (1 << NEAR_LEVELS) - 3 - len(inside)
        outside = self._geometric(ball, self._within(high, ball), count + 1)[1:]
        mark = ball if noise is None else self.clear * noise
        return self._ascending(sorted((*inside, *outside, mark, self.largest)))

    def sharp_cuts(self, noise: float, ball: float, high: float) -> tuple[float, ...]:
        """Those that tell a centre's noise, many up to where people were seen, half beyond."""
        start = self._within(self.clear * noise, ball)
        inside = (noise / 2, min(noise, ball), ball, start)
        end = self._within(high, start)
        half = 1 << (LAST_LEVELS - 1)
        middle = self._geometric(start, end, half - len(inside) + 1)[1:]
        return self._ascending((*inside, *middle, *self._beyond(end, half - 1)))

    def last_cuts(self, radius: float) -> tuple[float, ...]:
        """Half of them up to where far outside begins, half beyond."""
        half = 1 << (LAST_LEVELS - 1)
        start, end = 0.9 * radius, self._within(self.far * radius, radius)
        power = 1.3 if self.dim >= MANY_DIM else 1.0
        parts = (np.arange(1, half + 1) / half) ** power
        near = tuple((start * (end / start) ** parts).tolist())
        return self._ascending((*near, *self._beyond(end, half - 1)))

    def again_cuts(self, radius: float, outer: float) -> tuple[float, ...] | None:
        """Up to a last radius far outside, finely; None if it is not far outside."""
        start = max(self.far * radius, outer / 4)
        return self._geometric(start, outer, (1 << FINE_LEVELS) - 1) if start < outer else None

    def aside_cuts(self, radius: float, outer: float) -> tuple[float, ...]:
        """From the least radius that a centre moved aside can have."""
        return self._geometric(0.45 * (outer + radius), outer, (1 << FINE_LEVELS) - 1)

    def _within(self, high: float, low: float) -> float:
        """No farther than the largest radius, no nearer than another."""
        return max(min(high, self.largest), low)

    def _beyond(self, start: float, count: int) -> tuple[float, ...]:
        """To the largest radius, in growing steps."""
        steps = np.cumsum(np.linspace(0.5, 1.5, count))
        found: Floats = start * (max(self.largest / start, 1.0)) ** (steps / steps[-1])
        return tuple(found.tolist())

    def _geometric(self, low: float, high: float, count: int) -> tuple[float, ...]:
        return self._ascending(np.geomspace(low, max(high, low), count).tolist())

    def _ascending(self, cuts: Sequence[float]) -> tuple[float, ...]:
        """None beyond the largest radius, and none below the one before."""
        found = np.maximum.accumulate(np.minimum(cuts, self.largest))
        return tuple(found.tolist())

    # Whether it can work at all.

    @property
    def is_enough(self) -> bool:
        """Whether a centre, a radius and the last radius are found almost surely."""
        return (
            self.noise(float(self.center_share)) <= 0.25
            and 12 * self.count_error(float(self.near_share)) <= self.n
            and 4 * max(self.group, 2 * self.count_error(float(self.last_share))) <= self.n
        )

    @cached_property
    def least_n(self) -> int:
        """The least number of people that is enough."""
        return least_number(lambda n: replace(self, n=n).is_enough)
