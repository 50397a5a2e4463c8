"""The solid ellipsoid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat.domains.base import Domain, Vector, center_vector, check_scale, hexed, rows, vector
from muhat.errors import InvalidInput


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Ellipsoid(Domain):
    """{x : (x − c)ᵀ A⁻¹ (x − c) ≤ 1} with A symmetric and positive definite, of shape (d, d).

    `factor` is the lower-triangular L with A = L·Lᵀ, `inverse_factor` is L⁻¹: records are
    clipped in the coordinates y = L⁻¹(x − c), where the ellipsoid is the unit ball.

    >>> Ellipsoid([[4, 0], [0, 9]]).support([0, 1])
    3.0
    """

    matrix: NDArray[np.float64]
    center: Vector
    factor: NDArray[np.float64]
    inverse_factor: NDArray[np.float64]

    def __init__(self, matrix: ArrayLike, center: ArrayLike | None = None) -> None:
        try:
            array = np.array(matrix, dtype=np.float64, ndmin=2)
        except (TypeError, ValueError):
            raise InvalidInput("matrix must be a square array of numbers.") from None
        if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
            raise InvalidInput(f"matrix must be square; got shape {array.shape}.")
        if not np.isfinite(array).all():
            raise InvalidInput("matrix must be finite.")
        if not np.allclose(array, array.T, rtol=1e-12, atol=0):
            raise InvalidInput("matrix must be symmetric.")
        try:
            factor = np.linalg.cholesky(array)
            inverse = np.tril(np.linalg.solve(factor, np.eye(len(array))))
        except np.linalg.LinAlgError:
            raise InvalidInput(
                "matrix must be positive definite: an ellipsoid has a positive length "
                "in every direction."
            ) from None
        if not np.isfinite(inverse).all() or np.linalg.cond(factor) > 1e12:
            raise InvalidInput(
                "matrix is too close to singular: the longest axis is more than 1e12 "
                "times the shortest."
            )
        for name, value in (("matrix", array), ("factor", factor), ("inverse_factor", inverse)):
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        object.__setattr__(self, "center", center_vector(center, len(array)))
        check_scale(self.half_widths)

    @property
    def half_widths(self) -> Vector:
        return np.asarray(np.sqrt(np.diag(self.matrix)))

    def support(self, direction: ArrayLike) -> float:
        theta = vector("direction", direction, dim=self.dim)
        return float(theta @ self.center + np.linalg.norm(self.factor.T @ theta))

    def clip(self, points: ArrayLike) -> NDArray[np.float64]:
        offset = rows(points, self.dim) - self.center
        gauge = np.linalg.norm(offset @ self.inverse_factor.T, axis=-1, keepdims=True)
        return np.asarray(self.center + offset / np.maximum(gauge, 1.0), np.float64)

    def farthest(self, weights: Vector) -> float:
        return float(np.linalg.norm(weights[:, None] * self.factor, 2))

    def to_dict(self) -> dict[str, Any]:
        return {
            "domain": "ellipsoid",
            "matrix": [hexed(row) for row in self.matrix],
            "center": hexed(self.center),
        }

    def __repr__(self) -> str:
        return f"Ellipsoid(dim={self.dim}, half_widths up to {self.half_widths.max():g})"
