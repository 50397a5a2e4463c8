"""The noise of the ball: purely s-private if one person moves the integers by 2^54·s in ℓ₂.

Proof: docs/proofs/norms.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from muhat import noise
from muhat._arrays import Floats
from muhat.noise import marginals
from muhat.noise.law import Integers, ScaleFamily


class EuclideanNorm(ScaleFamily):
    """Density ∝ exp(−‖z‖₂): z = ‖g'‖·g with g' in R^{d+1} and g in R^d standard normal."""

    name = "euclidean-norm"
    mechanism = "ellipsoid-norm"
    elliptic = True
    sensitivity_norm = 2.0
    marginal = marginals.NORMAL

    def sample(self, dim: int) -> Integers:
        return noise.rounded_euclidean(dim)

    def mixing(self, dim: int) -> float:
        return dim + 1.0

    def variance(self, dim: int) -> float:
        return dim + 1.0

    def tail(self, reach: float, dim: int) -> float:
        return _mean_over_radius(lambda r: marginals.NORMAL.tail(reach / r), dim)

    def joint_tail(self, reach: float, dim: int) -> float:
        """Given ‖g'‖ the coordinates are normal, so Šidák's inequality holds inside the mean."""

        def beyond(r: Floats) -> Floats:
            single = np.minimum(marginals.NORMAL.tail(reach / r), 1 - 1e-16)
            return np.asarray(-np.expm1(dim * np.log1p(-single)))

        return _mean_over_radius(beyond, dim)


def _mean_over_radius(function: Callable[[Floats], Floats], dim: int) -> float:
    """E[function(‖g'‖)] by the trapezoidal rule in ln‖g'‖, where the integrand is smooth."""
    from scipy.special import gammaln

    k = dim + 1.0
    spread = 14 / math.sqrt(2 * k) + 30 / k
    y = np.linspace(-spread, min(spread, 14 / math.sqrt(2 * k) + 2), 4001) + math.log(k) / 2
    log_density = (1 - k / 2) * math.log(2) - gammaln(k / 2) + k * y - np.exp(2 * y) / 2
    weights = np.exp(log_density) * (y[1] - y[0])
    return float(np.sum(weights * function(np.exp(y))))
