"""Stairs in the radius: vectors that are the likelier the shorter, level for a step at a time.

With a step Δ, an inner radius t and a ratio b < 1 the density of z in R^d is 1 for ‖z‖ < t, b for
‖z‖ up to t + Δ, then b², and so on. One person who moves integers by at most Δ in that norm takes
them at most one stair up or down, so b ≥ e^−ε is ε-private. In the norm whose ball is to be hidden
no pure noise has a smaller mean square, for the right t (bound B12, docs/proofs/steps.md).

A stair is the end of a ball, and the density a sum of them: z = R·u with u uniform in the unit ball
and R = t + jΔ with a chance ∝ b^j(t + jΔ)^d. So K-norm noise of density ∝ exp(−ε‖z‖/Δ), where R is
a Gamma(d + 1) number, is what many small stairs come to. Proof: docs/proofs/stairs.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Key, Plain
from muhat.errors import InvalidInput
from muhat.noise import marginals
from muhat.noise.density import FRACTION_BITS
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.exact import Enclosure
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.law import Integers, Law
from muhat.noise.norms import in_ball, in_cube
from muhat.noise.picks import Picks
from muhat.noise.stairs import MOST_STAIRS, RATIO_BITS, falling, rounded_up
from muhat.privacy import Privacy

UNIT = 1 << FRACTION_BITS
LARGEST_DIM = 1 << 11


@dataclass(frozen=True)
class RadialStairs(Law, Plain, keys=("name", "dim", Key("inner", text=True), "ratio")):
    """Stairs of a step of 2^54 in the norm of a law, an inner radius and a ratio.

    Errors are counted in steps.
    """

    dim: int
    inner: int
    ratio: Fraction

    kind = NoiseKind.PURE
    unit = UNIT
    log_concave = False

    def __post_init__(self) -> None:
        shaped = 1 <= self.dim <= LARGEST_DIM and 1 <= self.inner <= 2 * self.unit
        if not (shaped and 0 < self.ratio < 1) or self.ratio.denominator > 1 << 4 * RATIO_BITS:
            raise InvalidInput("stairs in a radius need a dimension, a radius and a ratio below 1.")
        if farthest(self.dim, self.ratio) > MOST_STAIRS:
            raise InvalidInput(f"stairs in a radius reach at most {MOST_STAIRS} steps.")

    @property
    def most_rows(self) -> int:
        """Its own dimension."""
        return self.dim

    def keeps(self, promise: Privacy | Strength, moved: Fraction) -> bool:
        """b^stairs ≥ e^−ε, rounded up, for as many stairs as one person may take."""
        if moved <= 0:
            return True
        allowed = falling(promise)
        return allowed is not None and self.ratio ** math.ceil(moved / self.unit) >= allowed

    def sample(self, dim: int) -> Integers:
        if dim != self.dim:
            raise AssertionError("stairs in a radius are drawn in their own dimension")
        return self.drawn(system_words)

    def drawn(self, words: Words) -> Integers:
        """One vector from a source of words: the ball, then a point in it."""
        stair = int(self._picks.draw(1, words)[0])
        return self._in_body(self.inner + stair * self.unit, words)

    @abstractmethod
    def _in_body(self, radius: int, words: Words) -> Integers:
        """A uniform point of the ball of this radius, rounded."""

    @cached_property
    def _picks(self) -> Picks:
        """Which ball: as many of them as a random number of so many bits can tell apart."""
        return Picks(self._ends)

    def _ends(self, precision: int) -> list[Enclosure]:
        """Encloses 2^precision·P(stair ≤ j), up to the first j that is all but 2^−precision."""
        count = farthest(self.dim, self.ratio, precision)
        while True:
            found = self._first_ends(precision, count)
            if found[-1][1] == 1 << precision:
                return found
            count *= 2

    def _first_ends(self, precision: int, count: int) -> list[Enclosure]:
        """Those of so many stairs, from weights b^j·(t + j)^d between whole numbers."""
        b, common = self.ratio, math.gcd(self.inner, self.unit)
        start, step = self.inner // common, self.unit // common
        # As many bits that the last power of b has enough of them.
        bits = precision + 2 * WORD_BITS + math.ceil(count * -math.log2(b))
        low = high = 1 << bits
        lows, highs = [], []
        for stair in range(count + 1):
            volume = (start + stair * step) ** self.dim
            lows.append(low * volume)
            highs.append(high * volume)
            low = low * b.numerator // b.denominator
            high = -(-high * b.numerator // b.denominator)
        # From the last one on each has at most the same part of the one before.
        fall = b * Fraction(start + (count + 1) * step, start + count * step) ** self.dim
        if fall >= 1:
            return [(0, 0)]
        least = sum(lows)
        most = sum(highs[:-1]) + rounded_up(highs[-1] / (1 - fall))
        sums = zip(accumulate(lows[:-1]), accumulate(highs[:-1]), strict=True)
        whole = 1 << precision
        return [
            ((low << precision) // most, min(-(-(high << precision) // least), whole))
            for low, high in sums
        ]

    @cached_property
    def _balls(self) -> tuple[Floats, Floats]:
        """The radii, in steps, and the chance of each."""
        return balls(self.dim, self.inner / self.unit, float(self.ratio))

    @cached_property
    def mean_square(self) -> float:
        """E R², in squares of a step: d/(d + 2) of it is that of the length of z."""
        radii, chances = self._balls
        return float(chances @ radii**2)

    def _mean(self, function: Callable[[Floats], Floats], reach: float) -> float:
        """The mean of a function of reach/R, where that is below 1."""
        radii, chances = self._balls
        inside = radii > reach
        return float(chances[inside] @ function(reach / radii[inside]))


class EuclideanStairs(RadialStairs):
    """Stairs in the Euclidean length.

    >>> law = EuclideanStairs(2, UNIT // 4, Fraction(1, 50))
    >>> law.keeps(Strength(NoiseKind.PURE, Fraction(16)), Fraction(UNIT)), law.sample(2).shape
    (True, (2,))
    """

    name = "euclidean-stairs"
    elliptic = True
    sensitivity_norm = 2.0
    marginal = marginals.NORMAL

    def _in_body(self, radius: int, words: Words) -> Integers:
        return in_ball(self.dim, radius, words)

    def mixing(self, dim: int) -> float:
        """u = g/‖(g, g')‖ is independent of that length, whose mean square is d + 2."""
        return self.mean_square / (self.dim + 2)

    def variance(self, dim: int) -> float:
        return self.mean_square / (self.dim + 2)

    def mean_length(self, dim: int) -> float:
        """E R/E‖(g, g')‖, by the same independence."""
        radii, chances = self._balls
        log_root = math.lgamma((self.dim + 3) / 2) - math.lgamma((self.dim + 2) / 2)
        return float(chances @ radii) / (math.sqrt(2) * math.exp(log_root))

    def tail(self, reach: float, dim: int) -> float:
        return self._mean(self._beyond, reach)

    def joint_tail(self, reach: float, dim: int) -> float:
        """In every ball at most d times one coordinate's, and at most that of the length."""

        def beyond(x: Floats) -> Floats:
            return np.minimum(self.dim * self._beyond(x), 1 - x**self.dim)

        return self._mean(beyond, reach)

    def _beyond(self, x: Floats) -> Floats:
        """P(|u₁| > x): u₁² is a Beta(½, (d + 1)/2) number."""
        from scipy.special import betainc

        return np.asarray(betainc((self.dim + 1) / 2, 0.5, (1 - x) * (1 + x)), np.float64)


class MaximumStairs(RadialStairs):
    """Stairs in the largest coordinate."""

    name = "maximum-stairs"
    sensitivity_norm = np.inf
    marginal = marginals.UNIFORM

    def _in_body(self, radius: int, words: Words) -> Integers:
        return in_cube(self.dim, radius, words)

    def mixing(self, dim: int) -> float:
        return self.mean_square

    def variance(self, dim: int) -> float:
        return self.mean_square / 3

    def tail(self, reach: float, dim: int) -> float:
        return self._mean(lambda x: 1 - x, reach)

    def joint_tail(self, reach: float, dim: int) -> float:
        return self._mean(lambda x: 1 - x**self.dim, reach)


def farthest(dim: int, ratio: Fraction | float, precision: int = WORD_BITS) -> int:
    """About how many stairs there are, but for 2^−precision: R is much like Gamma(d + 1)/ε."""
    rest = precision * math.log(2)
    reach = dim + 1 + math.sqrt(2 * (dim + 1) * rest) + rest
    return math.ceil(reach / -math.log(ratio)) + 2


def balls(dim: int, inner: Floats | float, ratio: float) -> tuple[Floats, Floats]:
    """The radii t + j, in steps, and the chances of each, along the last axis."""
    stairs = np.arange(farthest(dim, ratio) + 1)
    radii: Floats = np.asarray(inner, np.float64)[..., None] + stairs
    logs = dim * np.log(radii) + math.log(ratio) * stairs
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return radii, weights / weights.sum(axis=-1, keepdims=True)
