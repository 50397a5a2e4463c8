"""The symmetric mean of one column: its public numbers, and what they promise about its error.

Proofs: docs/proofs/symmetric.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from muhat import _check
from muhat._plain import Key, Plain
from muhat.domains import Box
from muhat.domains.lattice import BoxLattice
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.coarse_interval import CoarseInterval
from muhat.mechanisms.learning.symmetric_error import IntervalMoments, Search
from muhat.mechanisms.learning.tails import bias_bound
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.laplace import laplace
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.protection import Protection
from muhat.noise.spread import Spread
from muhat.privacy import Neighbors, Privacy

MOST_FIRST = 1 << 40
"""More first rows than this are not considered."""

WIDTH = 10.0
"""The width of a bin in standard deviations."""

_HEADS = (1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4)
"""How many times the least number of first rows are tried."""

_LATTICE = 2.0**-44
"""How far the mean of records on the lattice may be off, in units of the clip."""


@dataclass(frozen=True)
class SymmetricMean(Plain, keys=("mechanism", "n", "first", "search", Key("mean", "recipe"))):
    """The mean of one column, ready to run: public numbers only.

    The `first` of n rows find the interval. `moments` is what is assumed of the law of the records;
    usefulness rests on it, the promise does not. Records are clipped to `clip` on both sides of the
    middle of a bin of `width`. Without `offset` the bins are not moved (Karwa and Vadhan), and the
    mean is biased. `contributions` is the most rows that a person has. `faithful` keeps the paper's
    threshold.
    """

    n: int
    first: int
    epsilon: Fraction
    delta: Fraction
    moments: IntervalMoments
    width: float
    clip: float
    offset: bool = True
    contributions: int = 1
    faithful: bool = False

    def __post_init__(self) -> None:
        _check.count("n", self.n, least=2)
        _check.count("first", self.first, most=self.n - 1)
        _check.positive("clip", self.clip)
        # What cannot be made is refused here, before anything is charged.
        _ = self.search.threshold, self.recipe

    @classmethod
    def planned(
        cls,
        n: int,
        promise: Privacy,
        moment: tuple[float, float],
        *,
        scale: float | None = None,
        offset: bool = True,
        first: int | None = None,
        reach: tuple[float, float] | None = None,
        contributions: int = 1,
        share: tuple[Fraction, Fraction] = (Fraction(1), Fraction(1)),
        faithful: bool = False,
    ) -> SymmetricMean:
        """The mechanism for n rows whose law has E|X − μ|^λ ≤ ψ^λ, moment = (λ, ψ).

        `scale` bounds the standard deviation (default: ψ, which does). `reach` is the width of the
        bins and the clip; by default bins are ten standard deviations wide and records are clipped
        at width + ψ·(n₂ε)^{1/λ}. The first rows
        are as many as make a failure less likely than δ², or more if that lowers the bound on the
        error, half of all at most. `share` is the part of ε and of δ that this column may spend.

        >>> from muhat.privacy import ApproxDP
        >>> mean = SymmetricMean.planned(10_000, ApproxDP(epsilon=1, delta=1e-6), (4, 1.32))
        >>> mean.first, mean.mechanism
        (384, 'symmetric')
        """
        if not promise.spends_delta:
            raise InvalidInput("privacy must be ApproxDP: without a delta no bin may be left out.")
        order, size = moment
        moments = IntervalMoments(size if scale is None else scale, order, size)
        epsilon, delta = (
            part * amount for part, amount in zip(share, promise.amounts, strict=True)
        )
        width, clip = (WIDTH * moments.scale, None) if reach is None else reach
        search = CoarseInterval(epsilon, delta, width, offset, contributions, faithful)
        n = _check.count("n", n, least=2)

        def split_at(head: int) -> SymmetricMean:
            far = search.width + moments.farthest((n - head) * float(epsilon))
            return cls(
                n=n,
                first=head,
                epsilon=epsilon,
                delta=delta,
                moments=moments,
                width=search.width,
                clip=far if clip is None else clip,
                offset=offset,
                contributions=contributions,
                faithful=faithful,
            )

        if first is not None:
            return split_at(_check.count("first", first, most=n - 1))
        least = least_first(search, moments, _rare(delta))
        heads = {max(1, min(math.ceil(least * times), n // 2)) for times in _HEADS}
        return min(map(split_at, sorted(heads)), key=lambda mean: mean.mse_bound)

    @property
    def mechanism(self) -> str:
        """The name of the mechanism."""
        return "symmetric" if self.offset else "karwa-vadhan"

    @property
    def second(self) -> int:
        """n₂: the rows that are averaged."""
        return self.n - self.first

    @cached_property
    def search(self) -> CoarseInterval:
        """What finds the interval."""
        promise = (self.epsilon, self.delta)
        return CoarseInterval(*promise, self.width, self.offset, self.contributions, self.faithful)

    @cached_property
    def recipe(self) -> Recipe:
        """The noisy sum of what the other records have beyond the middle, in [−clip, clip]."""
        ones = np.ones(1)
        strength = Strength(NoiseKind.PURE, self.epsilon**2)
        protection = Protection(strength, Neighbors.SUBSTITUTE, self.contributions)
        body = Body.of(Box([-self.clip], [self.clip]), 2.0, ones, protection.neighbors)
        return laplace(body, 2.0, ones, protection)

    @property
    def lattice(self) -> BoxLattice:
        """The integers of the other records."""
        found = self.recipe.query.lattice
        assert isinstance(found, BoxLattice)
        return found

    @property
    def noise(self) -> Spread:
        """The noise on the mean: Laplace, of scale 2·clip·contributions/(n₂ε)."""
        recipe = self.recipe
        return Spread(recipe.law, recipe.query.rows, recipe.scales).shrunk(self.second)

    @property
    def noise_error(self) -> float:
        """The standard deviation of the noise."""
        return float(self.noise.standard_error[0])

    @property
    def standard_error(self) -> float:
        """√(s²/n₂ + noise²): of the mean as an estimate of μ, at most, given a good interval."""
        return math.hypot(self.moments.scale / math.sqrt(self.second), self.noise_error)

    @cached_property
    def failure_probability(self) -> float:
        """P(⊥), that nothing is released, is at most this if the law is as assumed."""
        return self._bounds.nothing(self.moments)

    @cached_property
    def astray_probability(self) -> float:
        """P(⊥, or an interval whose middle is further than a bin from μ), at most."""
        return self._bounds.astray(self.moments)

    @property
    def bias_bound(self) -> float:
        """|E[value | there is one] − μ| at most, for a law as assumed that is symmetric.

        With the offset it is what the steps of the grid leave of 0; without, what clipping takes.
        """
        moments, released = self.moments, 1 - self.failure_probability
        if released <= 0:
            return math.inf
        far = self.clip + self.width / 2 + moments.farthest(self.first)
        if self.offset:
            uneven = min(1.0, self.first / self.search.grid.steps) * 2 * far
            bias = (float(self.search.grid.step) / 4 + uneven + self._beyond) / released
        else:
            astray = self.astray_probability ** (1 - 1 / moments.order)
            bias = self._clipping + astray * far / released
        return bias + _LATTICE * self.clip

    @property
    def reach(self) -> float:
        """How far from 0 the mean may lie for `bias_bound` to hold: half of what bins cover."""
        return self.search.grid.reach / 2

    @property
    def _beyond(self) -> float:
        """What first records beyond all bins, which count as the last one, do to the bias."""
        moments, near = self.moments, self.clip + self.width / 2
        beyond = min(1.0, self.first * moments.outside(self.reach))
        largest = moments.farthest(self.first) * beyond ** (1 - 1 / moments.order)
        return float(2 * (near * beyond + largest))

    @property
    def mse_bound(self) -> float:
        """E[(value − μ)² | there is one] at most, for a law as assumed, symmetric or not.

        s²/n₂ + noise² + (what clipping takes)² for a good interval, and for a bad one
        P(bad)^{1−2/λ}·(clip + width/2 + ψ·n₁^{1/λ})² + P(bad)·noise².
        """
        moments, released = self.moments, 1 - self.failure_probability
        if released <= 0:
            return math.inf
        noise = self.noise_error**2
        good = moments.scale**2 / self.second + noise + (self._clipping + _LATTICE * self.clip) ** 2
        bad = self.astray_probability
        far = self.clip * (1 + _LATTICE) + self.width / 2 + moments.farthest(self.first)
        return float(good + (bad ** (1 - 2 / moments.order) * far**2 + bad * noise) / released)

    @property
    def least_n(self) -> int:
        """The least n for which half of the rows find the interval but for a chance of δ²."""
        return 2 * least_first(self.search, self.moments, _rare(self.delta))

    @property
    def _bounds(self) -> Search:
        search = self.search
        return Search(self.first, self.width, float(search.rate), search.threshold)

    @property
    def _clipping(self) -> float:
        """What clipping takes from the mean at most, given a good interval."""
        return min(self.moments.clipping(self.clip - self.width), self.clip + self.width)

    @property
    def clipping_bias(self) -> float:
        """|E clipped − μ| of a record at most, given a good interval: the sharp bound of `tails`.

        Its middle is at most a bin from μ and independent of the records that are averaged.
        """
        pad, moments = self.clip - self.width, self.moments
        if pad <= 0:
            return math.inf
        return bias_bound(pad, moments.order, moments.moment) + _LATTICE * self.clip


def least_first(search: CoarseInterval, moments: IntervalMoments, failure: float) -> int:
    """The least number of rows that find a good interval but for a chance of `failure`.

    MOST_FIRST if the bound never gets there: the bins are too narrow for the law.
    """

    def enough(rows: int) -> bool:
        bounds = Search(rows, search.width, float(search.rate), search.threshold)
        return bounds.astray(moments) <= failure

    high = 1
    while high < MOST_FIRST and not enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _rare(delta: Fraction) -> float:
    """δ², the chance of a failure that the first rows aim at."""
    return max(float(delta) ** 2, 1e-290)
