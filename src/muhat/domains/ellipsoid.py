"""The solid ellipsoid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from muhat._arrays import LARGEST_ARRAY, numbers, vector
from muhat.domains.ball_lattice import BallLattice
from muhat.domains.base import Domain
from muhat.domains.blocks import Block, scaled_block
from muhat.domains.gauges import EllipsoidGauge, Gauge, LpGauge
from muhat.domains.norms import log_ball_volume, p_norm, singular_values_down, touching
from muhat.domains.vectors import (
    Matrix,
    Vector,
    center_vector,
    check_scale,
    hexed,
    offsets,
    unhexed,
)
from muhat.ellipsoids.combined import SIZE
from muhat.ellipsoids.result import SmallestEllipsoid
from muhat.ellipsoids.symmetric_bodies import around_axes, around_ellipsoid
from muhat.ellipsoids.verification import UNIT
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors

TOO_FLAT = "matrix is too close to singular: the longest axis is more than 1e12 times the shortest."


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Ellipsoid(Domain):
    """{x : (x − c)ᵀ A⁻¹ (x − c) ≤ 1} with A symmetric and positive definite, of shape (d, d).

    A vector of shape (d,) stands for the diagonal matrix A, which is then never built: memory is
    O(d). `factor` is the lower-triangular L with A = L·Lᵀ, `inverse_factor` is L⁻¹: records are
    clipped along the ray from the centre, by their length in the coordinates y = L⁻¹(x − c),
    where the ellipsoid is the unit ball.

    `is_diagonal` says whether the axes are those of the coordinates; L is then
    diag(half_widths).

    >>> Ellipsoid([[4, 0], [0, 9]]).support([0, 1])
    3.0
    >>> Ellipsoid([4, 9]) == Ellipsoid([[4, 0], [0, 9]])
    True
    """

    kind = "ellipsoid"
    is_round = True
    diagonal: Vector
    is_diagonal: bool
    center: Vector
    half_widths: Vector

    def __init__(self, matrix: ArrayLike, center: ArrayLike | None = None) -> None:
        array = numbers("matrix", matrix, least_axes=1)
        if array.size == 0 or not (
            array.ndim == 1 or (array.ndim == 2 and array.shape[0] == array.shape[1])
        ):
            raise InvalidInput(
                "must be square, or the vector of its diagonal",
                parameter="matrix",
                value=f"shape {array.shape}",
            )
        if not np.isfinite(array).all():
            raise InvalidInput("must be finite", parameter="matrix")
        diagonal = array if array.ndim == 1 else np.diag(array).copy()
        dense = array.ndim == 2 and np.count_nonzero(array) > np.count_nonzero(diagonal)
        if not (diagonal > 0).all():
            raise InvalidInput(
                "must be positive definite: an ellipsoid has a positive length in every direction",
                parameter="matrix",
            )
        if dense:
            self._factorise(array)
        elif diagonal.max() / diagonal.min() > 1e24:
            raise InvalidInput(TOO_FLAT)
        self._set(
            diagonal=diagonal,
            is_diagonal=not dense,
            center=center_vector(center, len(array)),
            half_widths=np.sqrt(diagonal),
        )
        check_scale(self.half_widths)

    def _factorise(self, array: Matrix) -> None:
        if not np.allclose(array, array.T, rtol=1e-12, atol=0):
            raise InvalidInput("must be symmetric", parameter="matrix")
        try:
            factor = np.linalg.cholesky(array)
            inverse = np.tril(np.linalg.solve(factor, np.eye(len(array))))
        except np.linalg.LinAlgError:
            raise InvalidInput(
                "must be positive definite: an ellipsoid has a positive length in every direction",
                parameter="matrix",
            ) from None
        # A pivot this small is what rounding leaves of 0: the matrix may well be singular.
        is_noise = np.diag(factor) ** 2 <= 1e-15 * len(array) * np.diag(array)
        if is_noise.any() or not np.isfinite(inverse).all() or np.linalg.cond(factor) > 1e12:
            raise InvalidInput(TOO_FLAT)
        self._set(matrix=array, factor=factor, inverse_factor=inverse)

    @cached_property
    def matrix(self) -> Matrix:
        """A, of shape (d, d)."""
        return self._square(self.diagonal)

    @cached_property
    def factor(self) -> Matrix:
        """L, lower triangular, with A = L·Lᵀ."""
        return self._square(self.half_widths)

    @cached_property
    def inverse_factor(self) -> Matrix:
        """L⁻¹, lower triangular."""
        return self._square(1 / self.half_widths)

    def _square(self, diagonal: Vector) -> Matrix:
        # Reached by diagonal ellipsoids only: the others set their matrices when they are made.
        if self.dim**2 > 16 * LARGEST_ARRAY:
            raise InvalidInput(f"a matrix of {self.dim} × {self.dim} is not built; use `diagonal`.")
        square = np.diag(diagonal)
        square.flags.writeable = False
        return square

    def _whiten(self, offset: Matrix) -> Matrix:
        return offset / self.half_widths if self.is_diagonal else offset @ self.inverse_factor.T

    def _transposed(self, directions: Matrix) -> Matrix:
        """Lᵀθ for each θ along the last axis."""
        return directions * self.half_widths if self.is_diagonal else directions @ self.factor

    def reach(self, directions: Matrix) -> Vector:
        return p_norm(self._transposed(directions), 2)

    def extreme_point(self, direction: ArrayLike) -> Vector:
        theta = vector("direction", direction, dim=self.dim)
        unit = touching(self._transposed(theta), 2)
        moved = self.half_widths * unit if self.is_diagonal else self.factor @ unit
        return np.asarray(self.center + moved)

    def clip(self, points: ArrayLike) -> Matrix:
        offset = offsets(points, self.center)
        gauge = p_norm(self._whiten(offset), 2)[..., None]
        return np.asarray(self.center + offset / np.maximum(gauge, 1.0))

    def farthest(self, weights: Vector) -> float:
        if self.is_diagonal:
            return float(np.max(weights * self.half_widths))
        return float(np.linalg.norm(weights[:, None] * self.factor, 2))

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        if self.is_diagonal:
            found = around_axes(self.half_widths, p, weights, 8 * UNIT)
        else:
            found = around_ellipsoid(self.matrix, self.factor, self.half_widths, p, weights)
        return found.scaled(SIZE[body])

    def block(self, p: float, weights: Vector, neighbors: Neighbors) -> Block:
        if self.is_diagonal:
            return scaled_block(self.half_widths, self.center)
        lattice = BallLattice.whitened(self.center.tolist(), self.inverse_factor.tolist())
        return Block(lattice, np.ones(self.dim), self.center, self.factor)

    def inner_axes(self) -> Vector | None:
        if self.is_diagonal:
            return np.asarray(self.half_widths * (1 - 1e-15))
        return singular_values_down(self.factor)

    def log_half_volume(self) -> float | None:
        axes = self.inner_axes()
        if axes is None or not (axes > 0).all():
            return None
        return log_ball_volume(self.dim, 2) + float(np.sum(np.log(axes) - 1e-14))

    def image_root(self, transform: Matrix) -> Matrix:
        return transform * self.half_widths if self.is_diagonal else transform @ self.factor

    def exact_gauge(self) -> Gauge:
        if self.is_diagonal:
            return LpGauge(2, tuple(self.half_widths.tolist()))
        rows = self.inverse_factor.tolist()
        return EllipsoidGauge(tuple(tuple(row[: i + 1]) for i, row in enumerate(rows)))

    def to_dict(self) -> dict[str, Any]:
        if self.is_diagonal:
            shape: dict[str, Any] = {"diagonal": hexed(self.diagonal)}
        else:
            shape = {"matrix": [hexed(row) for row in self.matrix]}
        return {"domain": self.kind, **shape, "center": hexed(self.center)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        if "diagonal" in fields:
            matrix: ArrayLike = unhexed(fields["diagonal"])
        else:
            matrix = [unhexed(row) for row in fields["matrix"]]
        return cls(matrix, unhexed(fields["center"]))

    def __repr__(self) -> str:
        return f"Ellipsoid(dim={self.dim}, half_widths up to {self.half_widths.max():g})"
