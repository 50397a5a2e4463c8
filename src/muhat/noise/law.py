"""The four laws of noise, each at unit scale: what privacy they buy, how far they reach.

A law knows the norm in which sensitivity is measured for it, how to sample it exactly, its
variance, and its quantiles. Unit scale means: added to an answer whose sensitivity in that
norm is s, the release is s-GDP (normal) or purely s-differentially private (the others). A fifth
shape of noise is never sampled: it is what the cube's noise becomes when an answer is read off it.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[Any]


class Shape(ABC):
    """How far noise vectors z in R^d reach, symmetric in every coordinate.

    `marginal` names the law of independent coordinates behind it, and `mixing` the second
    moment of the common factor that multiplies them: E‖z‖² = mixing(d) · E‖independent‖².
    """

    name: ClassVar[str]
    marginal: ClassVar[str]
    independent: ClassVar[bool] = False
    """Whether the coordinates are independent, so that others beside them change nothing."""
    elliptic: ClassVar[bool] = False
    """Whether every combination of coordinates has the law of one, up to its scale."""

    @abstractmethod
    def mixing(self, dim: int) -> float:
        """E[r²] where z = r·u with u independent coordinates of the marginal law."""

    @abstractmethod
    def variance(self, dim: int) -> float:
        """E[z_1²]."""

    @abstractmethod
    def tail(self, reach: float, dim: int) -> float:
        """P(|z_1| > reach)."""

    @abstractmethod
    def joint_tail(self, reach: float, dim: int) -> float:
        """P(max_j |z_j| > reach), or an upper bound valid for every correlation of z."""

    def quantile(self, confidence: float, dim: int, *, joint: bool = False) -> float:
        """The least reach whose (joint) tail is at most 1 − confidence."""
        return _quantile(self.name, confidence, dim, joint)


class Law(Shape):
    """A shape of noise that is sampled exactly, and the norm in which it hides what moves."""

    is_pure: ClassVar[bool] = True
    sensitivity_norm: ClassVar[float]

    @abstractmethod
    def sample(self, dim: int) -> Integers:
        """round(2^54·z), exactly distributed, of shape (d,)."""


class Normal(Law):
    """Independent standard normals: s-GDP for ℓ₂ sensitivity s."""

    name = "normal"
    is_pure = False
    independent = True
    elliptic = True
    sensitivity_norm = 2.0
    marginal = "normal"

    def sample(self, dim: int) -> Integers:
        from muhat.noise import rounded_normal

        return rounded_normal(dim)

    def mixing(self, dim: int) -> float:
        return 1.0

    def variance(self, dim: int) -> float:
        return 1.0

    def tail(self, reach: float, dim: int) -> float:
        return math.erfc(reach / math.sqrt(2))

    def joint_tail(self, reach: float, dim: int) -> float:
        # Šidák: correlated normals stay together at least as often as independent ones.
        return -math.expm1(dim * math.log1p(-min(self.tail(reach, dim), 1 - 1e-16)))


class Laplace(Law):
    """Independent standard Laplace variables: purely s-private for ℓ₁ sensitivity s."""

    name = "laplace"
    independent = True
    sensitivity_norm = 1.0
    marginal = "laplace"

    def sample(self, dim: int) -> Integers:
        from muhat.noise import rounded_laplace

        return rounded_laplace(dim)

    def mixing(self, dim: int) -> float:
        return 1.0

    def variance(self, dim: int) -> float:
        return 2.0

    def tail(self, reach: float, dim: int) -> float:
        return math.exp(-reach)

    def joint_tail(self, reach: float, dim: int) -> float:
        return -math.expm1(dim * math.log1p(-min(self.tail(reach, dim), 1 - 1e-16)))


class EuclideanNorm(Law):
    """Density ∝ exp(−‖z‖₂): purely s-private for ℓ₂ sensitivity s.

    z = ‖g'‖·g with g' in R^{d+1} and g in R^d standard normal.
    """

    name = "euclidean-norm"
    elliptic = True
    sensitivity_norm = 2.0
    marginal = "normal"

    def sample(self, dim: int) -> Integers:
        from muhat.noise import rounded_euclidean

        return rounded_euclidean(dim)

    def mixing(self, dim: int) -> float:
        return dim + 1.0

    def variance(self, dim: int) -> float:
        return dim + 1.0

    def tail(self, reach: float, dim: int) -> float:
        return self._mean_over_radius(lambda r: _normal_tail(reach / r), dim)

    def joint_tail(self, reach: float, dim: int) -> float:
        # Given ‖g'‖ the coordinates are normal, so Šidák's inequality holds inside the mean.
        return self._mean_over_radius(
            lambda r: -np.expm1(dim * np.log1p(-np.minimum(_normal_tail(reach / r), 1 - 1e-16))),
            dim,
        )

    @staticmethod
    def _mean_over_radius(function: Any, dim: int) -> float:
        """E[function(‖g'‖)] by the trapezoidal rule in ln‖g'‖, where the integrand is smooth."""
        from scipy.special import gammaln

        k = dim + 1.0
        spread = 14 / math.sqrt(2 * k) + 30 / k
        y = np.linspace(-spread, min(spread, 14 / math.sqrt(2 * k) + 2), 4001) + math.log(k) / 2
        log_density = (1 - k / 2) * math.log(2) - gammaln(k / 2) + k * y - np.exp(2 * y) / 2
        weights = np.exp(log_density) * (y[1] - y[0])
        return float(np.sum(weights * function(np.exp(y))))


class MaximumNorm(Law):
    """Density ∝ exp(−‖z‖_∞): purely s-private for ℓ_∞ sensitivity s.

    z = G·u with G ~ Gamma(d + 1) and u uniform on [−1, 1]^d.
    """

    name = "maximum-norm"
    sensitivity_norm = math.inf
    marginal = "uniform"

    def sample(self, dim: int) -> Integers:
        from muhat.noise import rounded_maximum

        return rounded_maximum(dim)

    def mixing(self, dim: int) -> float:
        return (dim + 1.0) * (dim + 2.0)

    def variance(self, dim: int) -> float:
        return (dim + 1.0) * (dim + 2.0) / 3

    def tail(self, reach: float, dim: int) -> float:
        # P(G·|u| > t) = P(G > t) − t·E[1/G; G > t], and E[1/G; G > t] = P(Gamma(d) > t)/d.
        from scipy.special import gammaincc

        return float(gammaincc(dim + 1, reach) - reach / dim * gammaincc(dim, reach))

    def joint_tail(self, reach: float, dim: int) -> float:
        # ‖z‖_∞ has the law Gamma(d).
        from scipy.special import gammaincc

        return float(gammaincc(dim, reach))


class DiamondNorm(Shape):
    """Density ∝ exp(−max_j(|s_j| + |c_j|)) of z = (s, c): the cube's noise, turned in pairs.

    s = (z − z')/2 and c = (z + z')/2 with (z, z') of the cube's law, since max(|s + c|, |s − c|) =
    |s| + |c|. So s_j is G times a triangular variable on [−1, 1], G ~ Gamma(d + 1).
    """

    name = "diamond-norm"
    # Of √½·(s ± c), where the error of a mean is largest; that is z itself.
    marginal = "uniform"

    def mixing(self, dim: int) -> float:
        return (dim + 1.0) * (dim + 2.0) / 2

    def variance(self, dim: int) -> float:
        return (dim + 1.0) * (dim + 2.0) / 6

    def tail(self, reach: float, dim: int) -> float:
        # E[(1 − t/G)²; G > t], and E[G^−k; G > t] = P(Gamma(d + 1 − k) > t)·(d − k)!/d!.
        from scipy.special import gammaincc

        whole, once, twice = (float(gammaincc(dim + 1 - k, reach)) for k in range(3))
        return whole - 2 * reach * once / dim + reach**2 * twice / (dim * (dim - 1))

    def joint_tail(self, reach: float, dim: int) -> float:
        # |s_j| ≤ ‖z‖_∞, whose law is Gamma(d).
        from scipy.special import gammaincc

        return min(float(gammaincc(dim, reach)), dim * self.tail(reach, dim))


LAWS: dict[str, Law] = {
    law.name: law for law in (Normal(), Laplace(), EuclideanNorm(), MaximumNorm())
}
"""What can be sampled."""

SHAPES: dict[str, Shape] = {**LAWS, "diamond-norm": DiamondNorm()}
"""All that a release may say of its noise."""


def absolute_moment(p: float) -> float:
    """m_p = (E|N(0,1)|^p)^{1/p} = √2·(Γ((p+1)/2)/√π)^{1/p}; 1 at p = 2."""
    return math.sqrt(2) * math.exp((math.lgamma((p + 1) / 2) - math.log(math.pi) / 2) / p)


@functools.lru_cache(maxsize=1024)
def _quantile(name: str, confidence: float, dim: int, joint: bool) -> float:
    """Solved once for every law, level and dimension: a page of intervals asks for it often."""
    from scipy.optimize import brentq

    tail = SHAPES[name].joint_tail if joint else SHAPES[name].tail
    excess = 1 - confidence
    high = 1.0
    while tail(high, dim) > excess:
        high *= 2
    root = brentq(lambda reach: tail(reach, dim) - excess, 0.0, high, xtol=1e-14, rtol=1e-13)
    return float(root) * (1 + 1e-10)


def _normal_tail(reach: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(|N(0,1)| > reach)."""
    from scipy.special import erfc

    return np.asarray(erfc(reach / math.sqrt(2)), np.float64)
