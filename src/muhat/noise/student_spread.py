"""How far a mean with Student's noise may lie from the exact one, for n_min records or more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.noise.spread import check_covariance_size
from muhat.noise.student import quantile


@dataclass(frozen=True, eq=False)
class StudentSpread(Plain):
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
