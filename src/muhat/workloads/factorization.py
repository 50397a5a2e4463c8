"""A factorisation W = L·R + offset·1ᵀ: noise goes on R·x, and L takes it to the answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors
from muhat.workloads.base import Scaled, Workload
from muhat.workloads.identity import Identity
from muhat.workloads.linear_map import LinearMap

Rows = Callable[[], Floats]
"""Writes out a vector with a number for every query."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Factorization:
    """How a workload is answered with the least error, and how near to the least it is.

    One person moves R·x by at most 1 in the Euclidean norm: every column of R has length at most
    1 (add/remove), or every two columns are at most 1 apart (substitution). With noise N(0, 1) on
    every entry of R·x the answers have the standard deviations √variances(), and
    `value` = ‖√variances()‖_p ≥ γ_(p) ≥ `floor`.

    `offset` is what one record adds whichever cell it is in; it is used under substitution alone,
    where the number of records is public. `deviations` and `common` write out the vectors that
    have a number for every query, which may be tens of millions.
    """

    workload: Workload
    p: float
    neighbors: Neighbors
    strategy: LinearMap | Floats
    decoder: LinearMap | Floats
    deviations: Rows
    value: float
    floor: float
    method: str
    common: Rows | None = None

    @cached_property
    def standard_deviations(self) -> Floats:
        """The standard deviation of every answer at unit noise on the strategy, of shape (m,)."""
        return self.deviations()

    @cached_property
    def offset(self) -> Floats | None:
        """What one record adds to every answer wherever it is, of shape (m,); None for nothing."""
        return None if self.common is None else self.common()

    @property
    def gap(self) -> float:
        """value/floor − 1: at most this fraction above the least possible."""
        if self.floor > 0:
            return self.value / self.floor - 1
        return 0.0 if self.value == 0 else math.inf

    @property
    def is_diagonal(self) -> bool:
        """Whether every answer has a noise variable of its own."""
        decoder = self.decoder.inner if isinstance(self.decoder, Scaled) else self.decoder
        return isinstance(decoder, Identity)

    def variances(self) -> Floats:
        """The variance of every answer at unit noise on the strategy, of shape (m,)."""
        return np.asarray(self.standard_deviations**2)

    def expected_error(self, noise_scale: float = 1.0, metric: str = "power") -> float:
        """(E‖errors‖_p^p)^{1/p} = noise_scale·m_p·‖√variances‖_p, m_p the p-th moment of N(0, 1).

        It holds whatever the correlation of the answers (Zou, Liu and Upadhyay's metric). At
        p = ∞ it has no meaning: there the largest standard deviation is `value`, and the mean of
        the largest squared error is what a plan predicts.
        """
        _check.one_of("metric", metric, ["power"])
        noise_scale = _check.positive("noise_scale", noise_scale)
        if math.isinf(self.p):
            raise InvalidInput(
                "the power metric needs a finite p; at p = inf `value` is the largest deviation."
            )
        logs = math.lgamma((self.p + 1) / 2) - math.lgamma(0.5)
        return noise_scale * math.sqrt(2) * math.exp(logs / self.p) * self.value

    def __repr__(self) -> str:
        order = "∞" if np.isinf(self.p) else f"{self.p:g}"
        return (
            f"<Factorization of {self.workload.describe()} by {self.method}: "
            f"γ_({order}) between {self.floor:.6g} and {self.value:.6g}>"
        )
