"""How far a released vector may lie from the exact one: covariance, errors, intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.noise.error import root_mean_square
from muhat.noise.law import CombinedLaw, Shape

LARGEST_COVARIANCE = 20_000


@dataclass(frozen=True, eq=False)
class Spread(Plain):
    """The noise F·z on a released vector, z of a unit law in R^rows.

    `scales`, of shape (d,), are the lengths of F's rows; `factor` is F, of shape (d, rows), or
    None if F = diag(scales).
    """

    law: Shape
    rows: int
    scales: Floats
    factor: Floats | None = None

    def shrunk(self, divisor: float) -> Spread:
        """The spread of the vector divided by a number."""
        factor = None if self.factor is None else self.factor / divisor
        return Spread(self.law, self.rows, self.scales / divisor, factor)

    def weighted(self, weights: Floats) -> Spread:
        """The spread of diag(weights)·vector."""
        factor = None if self.factor is None else self.factor * weights[:, None]
        return Spread(self.law, self.rows, self.scales * weights, factor)

    @property
    def standard_error(self) -> Floats:
        """The standard deviation of each coordinate, of shape (d,)."""
        return self.scales * math.sqrt(self.law.variance(self.rows))

    @property
    def covariance(self) -> Floats:
        """The covariance of the noise, of shape (d, d)."""
        check_covariance_size(len(self.scales))
        M = np.diag(self.scales**2) if self.factor is None else self.factor @ self.factor.T
        return M * self.law.variance(self.rows)

    def root_mean_square(self, p: float) -> tuple[float, str]:
        """(E‖noise‖_p²)^½, and how it was found."""
        return root_mean_square(self.law, self.scales, self.factor, p, self.rows)

    def half_widths(self, confidence: float, *, joint: bool) -> Floats:
        """Half the length of a symmetric interval a coordinate, of shape (d,)."""
        law, factor = self.law, self.factor
        if factor is None or law.elliptic or not isinstance(law, CombinedLaw):
            return self.scales * law.quantile(confidence, self.rows, joint=joint)
        return law.combined_half_widths(self.scales, law.sums([factor]), confidence, joint=joint)


def check_covariance_size(dim: int) -> None:
    """Refuse to build a matrix nobody could hold."""
    if dim > LARGEST_COVARIANCE:
        raise InvalidInput(
            f"a covariance of {dim} × {dim} numbers is not built; "
            "use standard_error, one number a coordinate."
        )
