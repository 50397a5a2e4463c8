"""The result of a search for the smallest ellipsoid: a body proved to contain, and a floor."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muhat.domains.base import Vector
from muhat.domains.norms import p_norm
from muhat.ellipsoids.finite import FiniteResult
from muhat.errors import InvalidInput

Matrix = NDArray[np.float64]

LARGEST_MATRIX = 20_000


@dataclass(frozen=True, eq=False)
class SmallestEllipsoid:
    """{s : sᵀM⁻¹s ≤ 1} with M = F·Fᵀ, or M = diag(scales²) where `factor` is None.

    `scales` are the square roots of M's diagonal, of shape (d,); `factor` is F, of shape (d, k);
    k < d if the body is flat. `value` is √tr_{p/2}(M) in the weighted norm, `floor` is at most
    Γ_p of the body. `contacts` is the number of pairs of points at which the ellipsoid is held,
    None if it is not known. `shift` is where the ellipsoid is centred around a body with a free
    shift, None if that is the body's own centre.
    """

    scales: Vector
    factor: Matrix | None
    value: float
    floor: float
    contacts: int | None = None
    shift: Vector | None = None

    def __post_init__(self) -> None:
        # Results are shared between those who ask for the same ellipsoid.
        for array in (self.scales, self.factor, self.shift):
            if array is not None:
                array.flags.writeable = False

    @property
    def gap(self) -> float:
        """value/floor − 1: how far, at most, the value is above the least possible."""
        if self.floor > 0:
            return self.value / self.floor - 1
        return 0.0 if self.value == 0 else math.inf

    @property
    def diagonal(self) -> Vector:
        """The diagonal of M."""
        return np.asarray(self.scales**2)

    @property
    def matrix(self) -> Matrix:
        """M itself, of shape (d, d)."""
        if len(self.scales) > LARGEST_MATRIX:
            raise InvalidInput(
                f"a matrix of {len(self.scales)} × {len(self.scales)} is not built; "
                "use `diagonal` instead."
            )
        return np.diag(self.diagonal) if self.factor is None else self.factor @ self.factor.T

    @property
    def root(self) -> Matrix:
        """F, of shape (d, k), built if it is diagonal."""
        return np.diag(self.scales) if self.factor is None else self.factor

    def scaled(self, size: float) -> SmallestEllipsoid:
        """The smallest ellipsoid around size·S."""
        factor = None if self.factor is None else self.factor * size
        return SmallestEllipsoid(
            self.scales * size, factor, self.value * size, self.floor * size, self.contacts
        )

    def __repr__(self) -> str:
        return (
            f"SmallestEllipsoid(dim={len(self.scales)}, value={self.value:.6g}, "
            f"floor={self.floor:.6g}, gap={self.gap:.1e})"
        )


def norm(values: NDArray[np.float64], p: float) -> float:
    """‖values‖_p of one vector."""
    return float(p_norm(values, p))


def with_factor(
    factor: Matrix, floor: float, p: float, weights: Vector, contacts: int | None = None
) -> SmallestEllipsoid:
    """The result for M = F·Fᵀ: its value is computed, its floor is given."""
    scales = np.linalg.norm(factor, axis=1)
    value = norm(weights * scales, p)
    return SmallestEllipsoid(scales, factor, value, min(value, floor), contacts)


def with_scales(
    scales: Vector, floor: float, p: float, weights: Vector, contacts: int | None = None
) -> SmallestEllipsoid:
    """The result for a diagonal M."""
    value = norm(weights * scales, p)
    return SmallestEllipsoid(scales, None, value, min(value, floor), contacts)


def from_finite(result: FiniteResult) -> SmallestEllipsoid:
    """The solver's result, verified there."""
    scales = np.linalg.norm(result.factor, axis=1)
    return SmallestEllipsoid(
        scales,
        result.factor,
        result.value,
        result.floor,
        result.contacts,
        result.shift if result.shift.any() else None,
    )
