"""Matrices with a bounded Schatten norm: trace norm, Frobenius norm, spectral norm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import vector
from muhat._plain import Key
from muhat.domains.base import Domain
from muhat.domains.gauges import Gauge, SchattenGauge
from muhat.domains.norms import ball_order, dual_order, p_norm, touching
from muhat.domains.vectors import (
    Matrix,
    Vector,
    center_vector,
    check_scale,
    dimension,
    offsets,
    short,
)
from muhat.ellipsoids.combined import SIZE
from muhat.ellipsoids.matrix_balls import around_matrices
from muhat.ellipsoids.result import CLOSED_FORM_ERROR, SmallestEllipsoid, norm, with_scales
from muhat.errors import InvalidInput


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SchattenBall(Domain, keys=(Key("p", infinite=True), "shape", "radius", "center")):
    """{X : ‖σ(X − C)‖_p ≤ r}, σ the singular values of a matrix of this shape.

    A record is the matrix row after row (C order): d = rows·columns. p = 1 is the trace norm,
    2 the Frobenius norm, ∞ the spectral norm. Records outside move to the boundary along the
    ray from the centre.

    >>> float(SchattenBall(p=1, shape=(2, 2)).gauge([3, 0, 0, 4]))
    7.0
    """

    kind = "schatten-ball"
    p: float
    shape: tuple[int, int]
    radius: float
    center: Vector
    half_widths: Vector

    def __init__(
        self,
        p: float,
        shape: tuple[int, int],
        radius: float = 1.0,
        center: ArrayLike | None = None,
    ) -> None:
        if not isinstance(shape, tuple | list) or len(shape) != 2:
            raise InvalidInput("must be (rows, columns)", parameter="shape", value=f"{shape!r:.40}")
        height, breadth = (_check.count("shape", side) for side in shape)
        size = dimension(height * breadth)
        r = _check.positive("radius", radius)
        self._set(
            p=ball_order(p),
            shape=(height, breadth),
            radius=r,
            center=center_vector(center, size),
            half_widths=np.full(size, r),
        )
        check_scale(self.half_widths)

    def _singular_values(self, flat: Matrix) -> Matrix:
        """σ of each matrix along the last axis, of shape (..., min(rows, columns))."""
        matrices = flat.reshape(*flat.shape[:-1], *self.shape)
        return np.asarray(np.linalg.svd(matrices, compute_uv=False))

    def gauge(self, points: ArrayLike) -> Vector:
        """‖σ(X − C)‖_p / r for each point: at most 1 inside."""
        return p_norm(self._singular_values(offsets(points, self.center)), self.p) / self.radius

    def reach(self, directions: Matrix) -> Vector:
        return self.radius * p_norm(self._singular_values(directions), dual_order(self.p))

    def extreme_point(self, direction: ArrayLike) -> Vector:
        theta = vector("direction", direction, dim=self.dim).reshape(self.shape)
        left, sigma, right = np.linalg.svd(theta, full_matrices=False)
        best = (left * touching(sigma, self.p)) @ right
        return np.asarray(self.center + self.radius * best.ravel())

    def clip(self, points: ArrayLike) -> Matrix:
        offset = offsets(points, self.center)
        gauge = p_norm(self._singular_values(offset), self.p)[..., None] / self.radius
        return np.asarray(self.center + offset / np.maximum(gauge, 1.0))

    def farthest(self, weights: Vector) -> float:
        # ‖X‖_F ≤ k^{max(0, 1/2 − 1/p)}·‖σ(X)‖_p for k singular values.
        growth = math.pow(min(self.shape), max(0.0, 0.5 - 1 / self.p))
        return self.radius * min(float(np.max(weights)) * growth, float(p_norm(weights, 2)))

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        if (weights != weights[0]).any():
            return around_matrices(self.shape, self.p, p, weights).scaled(self.radius * SIZE[body])
        # Rotations of rows and columns leave K as it is and act irreducibly, so M = m²·I; m is the
        # largest Frobenius norm: of rank one for orders up to 2, else full rank.
        inverse = 0 if math.isinf(self.p) else 1 / self.p
        reach = self.radius * min(self.shape) ** max(0.0, 0.5 - inverse)
        scales = np.full(self.dim, reach)
        floor = norm(weights * scales, p)
        error = CLOSED_FORM_ERROR
        found = with_scales(scales, floor, p, weights, error=error, is_exact=True)
        return found.scaled(SIZE[body])

    def exact_gauge(self) -> Gauge:
        return SchattenGauge(self.p, self.shape, self.radius)

    def __repr__(self) -> str:
        center = "" if not self.center.any() else f", center={short(self.center)}"
        return f"SchattenBall(p={self.p:g}, shape={self.shape}, radius={self.radius:g}{center})"
