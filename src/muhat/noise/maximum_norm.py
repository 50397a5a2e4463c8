"""The noise of the cube: purely s-private if one person moves the integers by 2^54·s in ℓ_∞.

Proof: docs/proofs/norms.md. The diamond's noise is never sampled: it is what the cube's becomes
when sums and counts are read off turned rows (docs/proofs/columns.md).
"""

from __future__ import annotations

import numpy as np

from muhat import noise
from muhat._arrays import Floats
from muhat.noise import marginals
from muhat.noise.law import TINY, Integers, ScaleFamily, Shape, in_units


class MaximumNorm(ScaleFamily):
    """Density ∝ exp(−‖z‖_∞): z = G·u with G ~ Gamma(d + 1) and u uniform on [−1, 1]^d."""

    name = "maximum-norm"
    mechanism = "box-norm"
    sensitivity_norm = np.inf
    marginal = marginals.UNIFORM

    def sample(self, dim: int) -> Integers:
        return noise.rounded_maximum(dim)

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

    def pair_tail(self, reach: Floats, first: Floats, second: Floats, rows: int) -> Floats:
        """For a = 1 ≥ b: P(|u₁ + b·u₂| > x) is 1 − x up to 1 − b, then (1 + b − x)²/(4b).

        x = t/G is averaged over G.
        """
        t, b = in_units(reach, first, second)
        single = b < TINY
        apart = np.where(single, 0.5, b)
        flat = t / np.maximum(1 - apart, 1e-30)
        high, low = _beyond(flat, rows), _beyond(t / (1 + apart), rows)
        middle = [below - above for below, above in zip(low, high, strict=True)]
        bent = (1 + apart) ** 2 * middle[0] - 2 * (1 + apart) * t * middle[1] + t**2 * middle[2]
        both = high[0] - t * high[1] + bent / (4 * apart)
        alone = _beyond(t, rows)
        return np.asarray(np.where(single, alone[0] - t * alone[1], both))


class DiamondNorm(Shape):
    """Density ∝ exp(−max_j(|s_j| + |c_j|)) of z = (s, c): the cube's noise, turned in pairs.

    s = (z − z')/2 and c = (z + z')/2 with (z, z') of the cube's law, since max(|s + c|, |s − c|) =
    |s| + |c|. So s_j is G times a triangular variable on [−1, 1], G ~ Gamma(d + 1).
    """

    name = "diamond-norm"
    # Of √½·(s ± c), where the error of a mean is largest; that is z itself.
    marginal = marginals.UNIFORM

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

    def pair_tail(self, reach: Floats, first: Floats, second: Floats, rows: int) -> Floats:
        """Of a pair (s, c), a·s + b·c = (a + b)/2·z₁ − (a − b)/2·z₂ with z of the cube's law."""
        return MaximumNorm().pair_tail(reach, (first + second) / 2, (first - second) / 2, rows)


def _beyond(least: Floats, rows: int) -> list[Floats]:
    """E[G^{−k}; G > least] for k = 0, 1, 2."""
    from scipy.special import gammaincc

    return [
        gammaincc(rows + 1, least),
        gammaincc(rows, least) / rows,
        gammaincc(max(rows - 1, 1), least) / (rows * max(rows - 1, 1)),
    ]
