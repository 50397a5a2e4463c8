"""How far the answers to linear queries may lie from the exact ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.domains.norms import p_norm
from muhat.errors import InvalidInput
from muhat.noise.error import root_mean_square
from muhat.noise.laplace_sums import LaplaceSums
from muhat.noise.law import LAWS, Law, absolute_moment
from muhat.noise.spread import check_covariance_size
from muhat.workloads.linear_map import LinearMap

Floats = NDArray[np.float64]

LARGEST_SIMULATION = 1 << 22
"""Correlated answers are simulated up to this many numbers in the decoder."""


@dataclass(frozen=True, eq=False)
class AnswerNoise:
    """The noise unit·L·z on m answers, z independent coordinates of a unit law.

    `scales`, of shape (m,), are the lengths of its rows; `decoder` is L, None if it was not kept;
    `independent` says that every answer has a noise variable of its own. `sums`, for Laplace noise,
    has the coefficients of every answer: intervals are then as short as the law allows.
    """

    law: Law
    scales: Floats
    independent: bool
    decoder: LinearMap | Floats | None = None
    unit: float = 1.0
    sums: LaplaceSums | None = None

    def __post_init__(self) -> None:
        if self.scales.ndim != 1 or not (self.scales >= 0).all() or np.isinf(self.scales).any():
            raise InvalidInput("the scales of noise are finite numbers of at least 0.")
        if self.sums is not None and self.sums.peaks.shape != self.scales.shape:
            raise InvalidInput("noise has one sum an answer.")

    @property
    def standard_error(self) -> Floats:
        """The standard deviation of every answer, of shape (m,)."""
        return self.scales * math.sqrt(self.law.variance(1))

    @cached_property
    def _factor(self) -> Floats:
        if self.decoder is None:
            raise InvalidInput("the covariance of these answers is not kept; standard errors are.")
        dense = self.decoder.dense() if isinstance(self.decoder, LinearMap) else self.decoder
        return np.asarray(dense * self.unit)

    @property
    def covariance(self) -> Floats:
        """The covariance of the answers, of shape (m, m)."""
        check_covariance_size(len(self.scales))
        if self.independent:
            return np.diag(self.standard_error**2)
        return self._factor @ self._factor.T * self.law.variance(1)

    def root_mean_square(self, p: float) -> tuple[float, str]:
        """(E‖noise‖_p²)^½ and how it was found: exact, quadrature, monte carlo or a bound."""
        if not self.scales.any():
            return 0.0, "exact"
        if p == 2 or self.independent:
            return root_mean_square(self.law, self.scales[self.scales > 0], None, p)
        if self.law.name == "normal" and self.decoder is not None:
            rows, columns = self.decoder.shape
            if rows * columns <= LARGEST_SIMULATION:
                return root_mean_square(self.law, self.scales, self._factor, p)
        return self._moment_bound(p), "bound"

    def _moment_bound(self, p: float) -> float:
        """(E‖z‖_p²)^½ ≤ (E‖z‖_p^p)^{1/p}; ‖z‖_∞ is at most ‖z‖_q for every q, take the best."""
        orders = [p] if math.isfinite(p) else [2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0]
        return min(_moment(self.law, q) * float(p_norm(self.scales, q)) for q in orders)

    def power_error(self, p: float) -> float | None:
        """(E‖noise‖_p^p)^{1/p} = m_p·‖scales‖_p, exact for normal noise of any correlation."""
        if self.law.name != "normal" or math.isinf(p):
            return None
        return absolute_moment(p) * float(p_norm(self.scales, p))

    def half_widths(self, confidence: float, *, joint: bool) -> Floats:
        """Half the length of a symmetric interval an answer, of shape (m,)."""
        count = len(self.scales)
        if self.independent or self.law.name == "normal":
            return self.scales * self.law.quantile(confidence, count, joint=joint)
        miss = (1 - confidence) / (count if joint else 1)
        if self.sums is not None:
            return np.minimum(self.sums.reaches(miss), self.scales * _laplace_sum_quantile(miss))
        return self.scales * _laplace_sum_quantile(miss)

    def to_dict(self) -> dict[str, Any]:
        """The noise as JSON."""
        return {
            "law": self.law.name,
            "independent": self.independent,
            "scales": self.scales.tolist(),
            "sums": None if self.sums is None else self.sums.to_dict(),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> AnswerNoise:
        """The noise that `to_dict` described, without its decoder."""
        scales, sums = np.array(fields["scales"], np.float64), fields.get("sums")
        return cls(
            LAWS[fields["law"]],
            scales,
            bool(fields["independent"]),
            sums=None if sums is None else LaplaceSums.from_dict(sums),
        )


def _moment(law: Law, q: float) -> float:
    """A bound on (E|⟨a, z⟩|^q)^{1/q} over unit vectors a: m_q, or Γ(q + 1)^{1/q} for Laplace.

    Laplace is a normal times √(2·exponential); by Jensen's inequality over the weights a_j² one
    variable alone has the largest moments.
    """
    if law.name == "normal":
        return absolute_moment(q)
    return math.exp(math.lgamma(q + 1) / q)


def _laplace_sum_quantile(miss: float) -> float:
    """t with P(|⟨a, z⟩| > t) ≤ miss for every unit vector a and Laplace z.

    Chernoff: E exp(λ⟨a, z⟩) = Π 1/(1 − λ²a_j²) ≤ 1/(1 − λ²), so the tail is at most
    2·exp(−λt)/(1 − λ²) for every λ < 1.
    """
    rates = np.linspace(0.01, 0.999, 1000)
    reach = (math.log(2 / miss) - np.log1p(-(rates**2))) / rates
    return float(reach.min())
