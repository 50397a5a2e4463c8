"""How far a mean with Student's noise may lie from the exact one, for n_min records or more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Floats
from muhat.noise.spread import check_covariance_size
from muhat.noise.student import quantile


@dataclass(frozen=True, eq=False)
class StudentSpread:
    """Independent noise s_j·t₃/√3 with s_j at most `scales`, of shape (d,): a public bound.

    The scale itself depends on the secret number of records and is never told.
    """

    scales: Floats

    @property
    def standard_error(self) -> Floats:
        """Above the standard deviation of each coordinate, of shape (d,)."""
        return self.scales

    @property
    def covariance(self) -> Floats:
        """Above the covariance of the noise, of shape (d, d)."""
        check_covariance_size(len(self.scales))
        return np.diag(self.scales**2)

    def half_widths(self, confidence: float, *, joint: bool) -> Floats:
        """Half the length of an interval that covers at least so often, of shape (d,)."""
        level = confidence ** (1 / len(self.scales)) if joint else confidence
        return self.scales * quantile(level)

    def to_dict(self) -> dict[str, Any]:
        """The spread as JSON."""
        return {"scales": self.scales.tolist()}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> StudentSpread:
        """The spread that `to_dict` described."""
        return cls(np.array(fields["scales"], np.float64))
