"""What a law of noise is: what privacy it buys, how far it reaches.

A law knows the norm in which sensitivity is measured for it, how to sample it exactly, its
variance and its quantiles; and it says of every promise whether it keeps it, which is all that a
mechanism has to ask. `laws.py` lists the laws.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.noise.density import FRACTION_BITS
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laplace_sums import LaplaceSums, NoiseSums
from muhat.noise.marginals import ForeseenMarginal, Marginal
from muhat.privacy import Privacy

Integers = NDArray[Any]

TINY = 1e-6
"""A second coefficient below this part of the first moves a tail by less than 10^−11."""


class Shape(ABC):
    """How far noise vectors z in R^d reach, symmetric in every coordinate.

    `marginal` is the law of independent coordinates behind it, and `mixing` the second moment of
    the common factor that multiplies them: E‖z‖² = mixing(d) · E‖independent‖².
    """

    name: ClassVar[str]
    independent: ClassVar[bool] = False
    """Whether the coordinates are independent, so that others beside them change nothing."""
    elliptic: ClassVar[bool] = False
    """Whether every combination of coordinates has the law of one, up to its scale."""
    log_concave: ClassVar[bool] = True
    """Whether quantiles of combinations are convex in the coefficients, as for such a density."""

    @property
    def stable(self) -> bool:
        """Whether every combination of independent coordinates has the law of one: normal noise."""
        return self.independent and self.elliptic

    @property
    @abstractmethod
    def marginal(self) -> Marginal:
        """One independent coordinate."""

    @abstractmethod
    def mixing(self, dim: int) -> float:
        """E[r²] where z = r·u with u independent coordinates of the marginal law."""

    def foreseen(self, count: int, dim: int, start: int) -> tuple[Floats, Floats]:
        """Fixed draws for predictions, never for noise, of shape (count, d), and their weights.

        Up to the common factor, of which the mean square is taken. From draw `start` on.
        """
        assert isinstance(self.marginal, ForeseenMarginal)
        draws = math.sqrt(self.mixing(dim)) * self.marginal.fixed(count, dim, start)
        return draws, np.ones(count)

    @abstractmethod
    def variance(self, dim: int) -> float:
        """E[z_1²]."""

    def mean_length(self, dim: int) -> float:
        """At least E‖z‖/E‖g‖ for standard normals g, where every combination has the law of one.

        If z is g times an independent length, the mean of that one.
        """
        return math.sqrt(self.variance(dim))

    @abstractmethod
    def tail(self, reach: float, dim: int) -> float:
        """P(|z_1| > reach)."""

    @abstractmethod
    def joint_tail(self, reach: float, dim: int) -> float:
        """P(max_j |z_j| > reach), or an upper bound valid for every correlation of z."""

    def pair_tail(self, reach: Floats, first: Floats, second: Floats, rows: int) -> Floats:
        """P(|a·z₁ + b·z₂| > reach) for noise of `rows` coordinates, elementwise; at most that.

        Where every combination has the law of one, of √(a² + b²)·z₁; else one of both is far out.
        """
        length = np.hypot(first, second) if self.elliptic else np.abs(first) + np.abs(second)
        length = np.where(length > 0, length, 1.0)
        tails = [self.tail(float(x), rows) for x in np.ravel(np.maximum(reach, 0.0) / length)]
        return np.reshape(np.array(tails), np.shape(length)) * (1 if self.elliptic else 2)

    def quantile(self, confidence: float, dim: int, *, joint: bool = False) -> float:
        """The least reach whose (joint) tail is at most 1 − confidence."""
        return reach_of(self, 1 - confidence, dim, joint)


class Law(Shape):
    """A shape of noise that is sampled exactly, and that knows what it hides."""

    sensitivity_norm: ClassVar[float]
    """The norm in which it is measured how far one person moves the integers: 1, 2 or ∞.

    0 if moves of records are counted instead, each as far as one may be.
    """

    @property
    @abstractmethod
    def unit(self) -> int:
        """The scale of what is sampled: errors are those of z, and samples are about unit·z."""

    @property
    def most_rows(self) -> int | None:
        """For how many integers together what it keeps is proved; None for any number of them."""
        return None

    adds_up: ClassVar[bool] = False
    """Whether two draws hide moves of a and of b whenever one draw hides a + b."""

    balanced: ClassVar[bool] = False
    """Whether it adds up to nothing, so that it hides no change of a total."""

    kind: ClassVar[NoiseKind | None] = None
    """In what its privacy is counted beside other steps; None if it keeps whole promises alone."""

    @abstractmethod
    def sample(self, dim: int) -> Integers:
        """Whole numbers, exactly distributed, of shape (d,)."""

    @abstractmethod
    def keeps(self, promise: Privacy | Strength, moved: Fraction) -> bool:
        """Whether samples, added to integers that one person moves so far at most, keep a promise.

        Or a share of one, counted in a kind of noise. Exactly, and in doubt no.
        """


class ScaleFamily(Law):
    """A law whose strength is in proportion to what moves: answers are scaled, never the noise."""

    kind: ClassVar[NoiseKind] = NoiseKind.PURE
    mechanism: ClassVar[str]
    """What users call the mechanism that adds it to sums."""

    unit = 1 << FRACTION_BITS
    adds_up = True

    def keeps(self, promise: Privacy | Strength, moved: Fraction) -> bool:
        """moved ≤ 2^54·√strength², in rationals."""
        return Strength(self.kind, (moved / self.unit) ** 2).keeps(promise)


class CombinedLaw(Law):
    """A law of coordinates of one scale, so that answers may be combinations of them."""

    sums_class: ClassVar[type[NoiseSums]] = LaplaceSums

    @abstractmethod
    def combined_moment(self, order: float, terms: Floats) -> Floats:
        """At least (E|⟨a, z⟩|^order)^{1/order} for unit vectors of so many like terms or more."""

    @abstractmethod
    def combined_half_widths(
        self, scales: Floats, sums: NoiseSums | None, confidence: float, *, joint: bool
    ) -> Floats:
        """t with |⟨a, z⟩| ≤ t for each of some vectors a of these lengths, or for all together."""

    def sums(self, rows: Iterable[Floats]) -> NoiseSums | None:
        """The law of combinations, from the rows of matrices, where more than that is known."""
        return None


class IndependentLaw(CombinedLaw):
    """A law of independent coordinates."""

    independent = True

    def mixing(self, dim: int) -> float:
        """1: nothing is common to all coordinates."""
        return 1.0

    def joint_tail(self, reach: float, dim: int) -> float:
        """1 − (1 − tail)^d; correlated normals stay together at least as often (Šidák)."""
        return -math.expm1(dim * math.log1p(-min(self.tail(reach, dim), 1 - 1e-16)))

    def one_sided(self, failure: float) -> float:
        """What a single z exceeds on one side with this probability."""
        reach = reach_of(self, 2 * min(failure, 1 - failure), 1, False)
        return reach if failure < 0.5 else -reach

    @abstractmethod
    def combined_quantile(self, confidence: float, count: int, *, joint: bool) -> float:
        """t with |⟨a, z⟩| ≤ t for a unit vector a, or for `count` of them together."""

    def combined_half_widths(
        self, scales: Floats, sums: NoiseSums | None, confidence: float, *, joint: bool
    ) -> Floats:
        count = len(scales)
        reaches = scales * self.combined_quantile(confidence, count, joint=joint)
        if sums is None:
            return reaches
        return np.minimum(sums.reaches((1 - confidence) / (count if joint else 1)), reaches)


class IndependentFamily(ScaleFamily, IndependentLaw):
    """Noise of any scale for numbers that are asked for one at a time."""


def in_units(reach: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """t and b with P(|first·z₁ + second·z₂| > reach) = P(|z₁ + b·z₂| > t), 0 ≤ b ≤ 1."""
    sizes = np.abs(first), np.abs(second)
    a, b = np.maximum(*sizes), np.minimum(*sizes)
    unit = np.where(a > 0, a, 1.0)
    with np.errstate(over="ignore"):
        # No farther than any float's tail.
        return np.minimum(np.maximum(reach, 0.0) / unit, 1e12), b / unit


@functools.lru_cache(maxsize=1024)
def reach_of(law: Shape, excess: float, dim: int, joint: bool) -> float:
    """What z exceeds with this probability: solved once for every law, level and dimension."""
    from scipy.optimize import brentq

    tail = law.joint_tail if joint else law.tail
    high = 1.0
    while tail(high, dim) > excess:
        high *= 2
    root = brentq(lambda reach: tail(reach, dim) - excess, 0.0, high, xtol=1e-14, rtol=1e-13)
    return float(root) * (1 + 1e-10)
