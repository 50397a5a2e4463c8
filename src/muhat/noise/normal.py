"""Independent standard normals: s-Gaussian private if one person moves the integers by 2^54·s.

In ℓ₂, whatever the number of coordinates. Proof: docs/proofs/gaussian.md.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from muhat import noise
from muhat._arrays import Floats
from muhat.noise import marginals
from muhat.noise.kinds import NoiseKind
from muhat.noise.law import IndependentFamily, Integers


class Normal(IndependentFamily):
    """z ~ N(0, 1) in every coordinate."""

    name = "normal"
    mechanism = "gaussian"
    kind = NoiseKind.NORMAL
    elliptic = True
    sensitivity_norm = 2.0
    marginal = marginals.NORMAL

    def sample(self, dim: int) -> Integers:
        return noise.rounded_normal(dim)

    def variance(self, dim: int) -> float:
        return 1.0

    def tail(self, reach: float, dim: int) -> float:
        return math.erfc(reach / math.sqrt(2))

    def one_sided(self, failure: float) -> float:
        return -NormalDist().inv_cdf(failure)

    def combined_quantile(self, confidence: float, count: int, *, joint: bool) -> float:
        return self.quantile(confidence, count, joint=joint)

    def combined_moment(self, order: float, terms: Floats) -> Floats:
        return np.full(len(terms), absolute_moment(order))


def absolute_moment(p: float) -> float:
    """m_p = (E|N(0,1)|^p)^{1/p} = √2·(Γ((p+1)/2)/√π)^{1/p}; 1 at p = 2."""
    return math.sqrt(2) * math.exp((math.lgamma((p + 1) / 2) - math.log(math.pi) / 2) / p)
