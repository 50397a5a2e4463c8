"""How far the answers to linear queries may lie from the exact ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from muhat._arrays import Floats
from muhat._plain import from_plain, to_plain
from muhat.domains.norms import p_norm
from muhat.errors import InvalidInput
from muhat.noise.error import moment_bound, root_mean_square
from muhat.noise.laplace_sums import NoiseSums
from muhat.noise.law import CombinedLaw
from muhat.noise.normal import absolute_moment
from muhat.noise.spread import check_covariance_size
from muhat.workloads.linear_map import LinearMap

LARGEST_SIMULATION = 1 << 22
"""Correlated answers are simulated up to this many numbers in the decoder."""


@dataclass(frozen=True, eq=False)
class AnswerNoise:
    """The noise unit·L·z on m answers, z coordinates of a unit law.

    `scales`, of shape (m,), are the lengths of its rows; `decoder` is L, None if it was not kept;
    `independent` says that every answer has a noise variable of its own. `sums`, unless
    noise is normal, has the coefficients of every answer, for short intervals.
    """

    law: CombinedLaw
    scales: Floats
    independent: bool
    decoder: LinearMap | Floats | None = None
    unit: float = 1.0
    sums: NoiseSums | None = None

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
        if self.decoder is not None and math.prod(self.decoder.shape) <= LARGEST_SIMULATION:
            return root_mean_square(self.law, self.scales, self._factor, p)
        return self.bound(p), "bound"

    def bound(self, p: float) -> float:
        """An upper bound on (E‖noise‖_p²)^½ from the moments of single answers."""
        return moment_bound(self.scales, p, self._moment)

    def _moment(self, q: float) -> Floats:
        """A bound on (E|answer's noise|^q)^{1/q} in units of its scale.

        What is said of k = ⌊‖a‖²/max a²⌋ equal coefficients bounds it.
        """
        equal = np.ones(len(self.scales))
        if self.sums is not None:
            peaks = np.maximum(self.sums.peaks, 1e-300)
            # 8 equal variables are 8, whatever floats make of it; the law pays for that.
            equal = np.maximum(np.floor((self.scales / peaks) ** 2 * (1 + 1e-12)), 1.0)
        return self.law.combined_moment(q, equal)

    def power_error(self, p: float) -> float | None:
        """(E‖noise‖_p^p)^{1/p} = m_p·‖scales‖_p, exact for normal noise of any correlation."""
        if not self.law.stable or math.isinf(p):
            return None
        return absolute_moment(p) * float(p_norm(self.scales, p))

    def half_widths(self, confidence: float, *, joint: bool) -> Floats:
        """Half the length of a symmetric interval an answer, of shape (m,)."""
        if self.independent:
            return self.scales * self.law.quantile(confidence, len(self.scales), joint=joint)
        return self.law.combined_half_widths(self.scales, self.sums, confidence, joint=joint)

    def to_dict(self) -> dict[str, Any]:
        """The noise as JSON."""
        return {
            "law": to_plain(self.law),
            "independent": self.independent,
            "scales": self.scales.tolist(),
            "sums": None if self.sums is None else self.sums.to_dict(),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> AnswerNoise:
        """The noise that `to_dict` described, without its decoder."""
        scales, sums = np.array(fields["scales"], np.float64), fields.get("sums")
        law = from_plain(CombinedLaw, fields["law"])
        return cls(
            law,
            scales,
            bool(fields["independent"]),
            sums=None if sums is None else law.sums_class.from_dict(sums),
        )
