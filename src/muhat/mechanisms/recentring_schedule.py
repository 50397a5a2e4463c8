"""The public side of recentring: which step may spend how much, and where it looks."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from muhat.mechanisms.noisy_search import NoisySearch
from muhat.mechanisms.sharing import Floats, Sharing, least_number, short_fraction

SMALLEST = 2.0**-42
"""The least public radius, as a part of the largest: what records that are all equal get."""

BEYOND = Fraction(1, 5)
"""The part of the records that a radius leaves outside."""

SHRUNK = 0.75
"""A new centre that leaves more than this of the radius ends the search for better ones."""

WORTHWHILE, FARTHEST = 1.02, 3.0
"""An inner radius is considered if the outer one is between so many times as large."""

LEAST_COMPARED_DIM = 32
"""In fewer dimensions the noise of the comparison would drown what it looks for."""

MOST_COMPARISON = Fraction(1, 10)
"""What the comparison of the two may take of what is left."""


@dataclass(frozen=True)
class Limits:
    """What suits a law of noise: cells of the searches, and how much a step may take at most.

    `grid` is the number of last radii far inside, around, outside and far outside the coarse one.
    """

    radius_cells: int
    grid: tuple[int, int, int, int]
    rounds: int
    radius: float
    center_least: float
    center_most: float
    threshold: float


NORMAL_LIMITS = Limits(256, (6, 82, 108, 60), 6, 0.03, 0.01, 0.10, 0.05)
PURE_LIMITS = Limits(64, (1, 15, 9, 7), 4, 0.06, 0.04, 0.10, 0.15)


@dataclass(frozen=True, eq=False)
class Schedule(Sharing):
    """Everything about the chain that is decided before any data is seen."""

    @property
    def limits(self) -> Limits:
        """How much each step may take."""
        return PURE_LIMITS if self.pure else NORMAL_LIMITS

    @cached_property
    def radii(self) -> Floats:
        """The public radii of the coarse search, ascending, a fixed ratio apart."""
        largest = self.largest_radius
        return np.geomspace(largest * SMALLEST, largest, self.limits.radius_cells)

    @cached_property
    def radius_share(self) -> Fraction:
        """Of a search for a radius: noise of an eighth of the records beyond, if that is cheap."""
        deviation = float(BEYOND) * self.n / 8
        wanted = self._deviation(self.limits.radius_cells) / deviation
        return short_fraction(min(self.share_of(wanted), self.limits.radius))

    def _deviation(self, cells: int) -> float:
        """The standard deviation of a search's counts at strength 1."""
        rounds = (cells - 1).bit_length()
        return math.sqrt(2) * rounds if self.pure else math.sqrt(rounds)

    @cached_property
    def center_share(self) -> Fraction:
        """Of a new centre: noise of a quarter of the radius, if that is cheap."""
        wanted = self.share_of(8 * self.spread / self.n)
        return short_fraction(min(max(wanted, self.limits.center_least), self.limits.center_most))

    @cached_property
    def threshold_share(self) -> Fraction:
        """Of the search for the last radius: its rank matters more in few dimensions.

        In many, as much as makes the two terms of `beyond_threshold` equal is enough.
        """
        wanted = self.limits.threshold + min(0.2 / self.dim, 0.1)
        equal = (self._deviation(sum(self.limits.grid)) / self.spread) ** (1 if self.pure else 2)
        return short_fraction(min(wanted, max(equal, 0.01)))

    @property
    def compares(self) -> bool:
        """Whether a radius well inside the last one is tried."""
        return not self.pure and self.dim >= LEAST_COMPARED_DIM

    @property
    def inner_share(self) -> Fraction:
        """Of the search for the inner radius."""
        return self.radius_share if self.compares else Fraction(0)

    @property
    def least_final_share(self) -> Fraction:
        """What is left for the mean itself, whatever path is taken."""
        rounds = self.limits.rounds * (self.radius_share + self.center_share)
        left = 1 - rounds - self.threshold_share - self.inner_share
        return left * (1 - MOST_COMPARISON) if self.compares else left

    @property
    def is_enough(self) -> bool:
        """Whether n is large enough for every step to work almost surely.

        A search for a radius stays among the records 999 times out of 1000, a new centre is
        within half a radius of the mean, and the last radius leaves most records inside.
        """
        coarse = self.search(self.limits.radius_cells, self.radius_share)
        last = self.search(sum(self.limits.grid), self.threshold_share)
        return (
            coarse.rank_error(0.999) <= BEYOND * self.n
            and self.noise(1.0, float(self.center_share)) <= 0.5
            and 4 * self.beyond_threshold(last, float(self.least_final_share)) <= self.n
        )

    @property
    def likely_final_share(self) -> Fraction:
        """What is left for the mean after two rounds, the common path."""
        searches = 2 * self.radius_share + self.threshold_share + self.inner_share
        return 1 - searches - self.center_share

    def thresholds(self, radius: float) -> Floats:
        """Public radii of the last search: close to the coarse one finely, farther off coarsely."""
        reach = max(self.largest_radius / radius, 60.0)
        stops = zip((0.02, 0.6, 2.2, 30.0), (0.6, 2.2, 30.0, reach), self.limits.grid, strict=True)
        parts = [np.geomspace(start, stop, count + 1)[1:] for start, stop, count in stops]
        return np.asarray(radius * np.concatenate(parts))

    def beyond_threshold(self, search: NoisySearch, share: float) -> int:
        """How many records the last radius leaves outside.

        One record more outside saves noise and costs bias; the two are equal at the first term if
        the records outside point the same way, and mostly they do not. The second term keeps
        noise from leading the search beyond all records.
        """
        balance = 4 * self.spread / self.step_strength(share)
        wanted = math.ceil(max(balance, 4 * search.scale))
        return min(wanted, self.n // 2)

    def comparison_share(self, inner: float, outer: float, left: Fraction) -> Fraction | None:
        """Of the test whether the inner radius is better; None if it is not worth a test.

        Enough for a deviation of the test statistic of a third of what the inner radius could save.
        """
        ratio = outer / inner
        if not self.compares or not WORTHWHILE <= ratio <= FARTHEST:
            return None
        wanted = 3 * math.sqrt(2 / self.dim) * (ratio - 1) / (ratio + 1)
        return short_fraction(float(left) * min(wanted, float(MOST_COMPARISON)))

    @cached_property
    def least_n(self) -> int:
        """The least number of records that is enough."""
        return least_number(lambda n: replace(self, n=n).is_enough)

    def to_dict(self) -> dict[str, Any]:
        """All that decides the steps, for the plan's digest."""
        return {
            **super().to_dict(),
            "limits": asdict(self.limits),
            "radius_share": str(self.radius_share),
            "center_share": str(self.center_share),
            "threshold_share": str(self.threshold_share),
        }
