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
from muhat.domains.flat import Factors, one_point
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
from muhat.ellipsoids.symmetric_bodies import around_axes, around_ellipsoid, around_root
from muhat.ellipsoids.verification import UNIT
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors

NOISE = 1e-15
"""What rounding leaves of 0, for every coordinate and in units of what it is compared with."""

NEGATIVE = "must not be negative in any direction"
TOO_FLAT = "matrix is too close to singular: the longest axis is more than 1e12 times the shortest."


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Ellipsoid(Domain):
    """{c + L·y : ‖y‖₂ ≤ 1} with A = L·Lᵀ symmetric, not negative in any direction, of shape (d, d).

    A vector of shape (d,) stands for the diagonal matrix A, which is then never built: memory is
    O(d). `factor` is the lower-triangular L, `inverse_factor` is L⁻¹: records are
    clipped along the ray from the centre, by their length in the coordinates y = L⁻¹(x − c),
    where the ellipsoid is the unit ball.

    `is_diagonal` says whether the axes are those of the coordinates; L is then
    diag(half_widths). Where A is singular the ellipsoid is flat: L has one column an axis, of shape
    (d, r), L⁻¹ inverts it from the left, and records first move to the nearest point of the flat,
    as measured in half-widths.

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
        if (diagonal < 0).any():
            raise InvalidInput(NEGATIVE, parameter="matrix")
        axes = diagonal[diagonal > 0]
        if dense:
            self._factorise(array)
        elif axes.size and axes.max() / axes.min() > 1e24:
            raise InvalidInput(TOO_FLAT)
        elif axes.size < diagonal.size:
            if diagonal.size**2 > LARGEST_ARRAY:
                raise InvalidInput("a flat ellipsoid of so many coordinates is not built.")
            self._flatten(np.diag(diagonal))
        self._set(
            diagonal=diagonal,
            is_diagonal=not dense and axes.size == diagonal.size,
            center=center_vector(center, len(array)),
            half_widths=np.sqrt(diagonal),
        )
        check_scale(self.half_widths, flat=True)

    def _factorise(self, array: Matrix) -> None:
        if not np.allclose(array, array.T, rtol=1e-12, atol=0):
            raise InvalidInput("must be symmetric", parameter="matrix")
        try:
            factor = np.linalg.cholesky(array)
            inverse = np.tril(np.linalg.solve(factor, np.eye(len(array))))
        except np.linalg.LinAlgError:
            return self._flatten(array)
        # A pivot this small is what rounding leaves of 0: the matrix is singular, or as good as.
        is_noise = np.diag(factor) ** 2 <= NOISE * len(array) * np.diag(array)
        if is_noise.any():
            return self._flatten(array)
        if not np.isfinite(inverse).all() or np.linalg.cond(factor) > 1e12:
            raise InvalidInput(TOO_FLAT)
        return self._set(matrix=array, factor=factor, inverse_factor=inverse)

    def _flatten(self, array: Matrix) -> None:
        """Keep the axes of a singular matrix that have a length, in half-widths of the columns."""
        scales = np.sqrt(np.diag(array))
        still = scales == 0
        scales[still] = 1.0
        sizes, directions = np.linalg.eigh(array / scales / scales[:, None])
        least = NOISE * len(array) * max(float(sizes[-1]), 0.0)
        if sizes[0] < -least:
            raise InvalidInput(NEGATIVE, parameter="matrix")
        kept = sizes > least
        if kept.all():
            raise InvalidInput(TOO_FLAT)
        kept[-1] = True  # a point has an axis, too, of no length
        lengths = np.sqrt(np.maximum(sizes[kept], 0.0))
        inverses = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
        axes = directions[:, kept]
        # What has no length along a coordinate has none in the root either.
        axes[still] = 0.0
        root = scales[:, None] * axes * lengths
        self._set(matrix=array, factor=root, inverse_factor=(axes * inverses).T / scales)

    @property
    def rank(self) -> int:
        """The number of axes that have a length."""
        return self.dim if self.is_diagonal else int(np.count_nonzero(self.factor.any(axis=0)))

    def factors(self) -> Factors:
        return super().factors() if self.rank else [(one_point(self.center), slice(0, self.dim))]

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
        inside = self._whiten(offset)
        gauge = p_norm(inside, 2)[..., None]
        if self.rank < self.dim:
            offset = inside @ self.factor.T
        return np.asarray(self.center + offset / np.maximum(gauge, 1.0))

    def farthest(self, weights: Vector) -> float:
        if self.is_diagonal:
            return float(np.max(weights * self.half_widths))
        return float(np.linalg.norm(weights[:, None] * self.factor, 2))

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        if self.is_diagonal:
            found = around_axes(self.half_widths, p, weights, 8 * UNIT)
        elif self.rank < self.dim:
            found = around_root(self.factor, p, weights)
        else:
            found = around_ellipsoid(self.matrix, self.factor, self.half_widths, p, weights)
        return found.scaled(SIZE[body])

    def block(self, p: float, weights: Vector, neighbors: Neighbors) -> Block:
        if self.is_diagonal:
            return scaled_block(self.half_widths, self.center)
        if self.rank < self.dim:
            flat = BallLattice.mapped(self.center.tolist(), self.inverse_factor.tolist())
            return Block(flat, np.ones(self.rank), self.center, self.factor)
        lattice = BallLattice.whitened(self.center.tolist(), self.inverse_factor.tolist())
        return Block(lattice, np.ones(self.dim), self.center, self.factor)

    def inner_axes(self) -> Vector | None:
        if self.is_diagonal:
            return np.asarray(self.half_widths * (1 - 1e-15))
        return singular_values_down(self.factor) if self.rank == self.dim else None

    def log_half_volume(self) -> float | None:
        axes = self.inner_axes()
        if axes is None or not (axes > 0).all():
            return None
        return log_ball_volume(self.dim, 2) + float(np.sum(np.log(axes) - 1e-14))

    def image_root(self, transform: Matrix) -> Matrix:
        return transform * self.half_widths if self.is_diagonal else transform @ self.factor

    def exact_gauge(self) -> Gauge | None:
        if self.rank < self.dim:
            return None
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
