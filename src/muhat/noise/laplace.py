"""Independent Laplace variables: purely s-private if one person moves the integers by 2^54·s in ℓ₁.

Proof: docs/proofs/laplace.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from muhat import noise
from muhat._arrays import Floats
from muhat.noise import marginals
from muhat.noise.laplace_sums import LaplaceSums
from muhat.noise.law import TINY, IndependentFamily, Integers, in_units
from muhat.noise.normal import absolute_moment


class Laplace(IndependentFamily):
    """Density exp(−|z|)/2 in every coordinate."""

    name = mechanism = "laplace"
    sensitivity_norm = 1.0
    marginal = marginals.LAPLACE

    def sample(self, dim: int) -> Integers:
        return noise.rounded_laplace(dim)

    def variance(self, dim: int) -> float:
        return 2.0

    def tail(self, reach: float, dim: int) -> float:
        return math.exp(-reach)

    def one_sided(self, failure: float) -> float:
        return -math.log(2 * failure) if failure < 0.5 else math.log(2 - 2 * failure)

    def pair_tail(self, reach: Floats, first: Floats, second: Floats, rows: int) -> Floats:
        """(e^{−t} − b²·e^{−t/b})/(1 − b²) for a = 1 ≥ b."""
        t, b = in_units(reach, first, second)
        equal = b > 1 - TINY
        apart = np.where(equal, 0.5, b)
        fall = np.exp(-np.divide(t, apart, out=np.full_like(t, np.inf), where=apart > 0))
        unequal = (np.exp(-t) - apart**2 * fall) / (1 - apart**2)
        return np.where(equal, (1 + t / 2) * np.exp(-t), unequal)

    def combined_quantile(self, confidence: float, count: int, *, joint: bool) -> float:
        """Chernoff: E exp(λ⟨a, z⟩) = Π 1/(1 − λ²a_j²) ≤ 1/(1 − λ²), for every λ < 1."""
        miss = (1 - confidence) / (count if joint else 1)
        rates = np.linspace(0.01, 0.999, 1000)
        reach = (math.log(2 / miss) - np.log1p(-(rates**2))) / rates
        return float(reach.min())

    def combined_moment(self, order: float, terms: Floats) -> Floats:
        """m_q·√2·(Γ(k + q/2)/Γ(k))^{1/q}/√k for k terms; at k = 1, Γ(q + 1)^{1/q}.

        A sum of Laplace variables is a normal times √(2Σa_j²E_j), E_j exponential. Its moments rise
        if a few variables take over from many: they are Schur-convex in a_j².
        """
        log_gamma = np.vectorize(math.lgamma)
        rise = log_gamma(terms + order / 2) - log_gamma(terms)
        moment = absolute_moment(order) * np.sqrt(2 / terms) * np.exp(rise / order)
        # 8 like terms are 8, whatever floats made of it.
        return np.asarray(moment * (1 + 1e-9))

    def sums(self, rows: Iterable[Floats]) -> LaplaceSums | None:
        return LaplaceSums.of_rows(rows)
