"""The Euclidean ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import vector
from muhat.domains.ball_lattice import BallLattice
from muhat.domains.base import Domain
from muhat.domains.blocks import Block
from muhat.domains.flat import Factors, one_point
from muhat.domains.gauges import Gauge, LpGauge
from muhat.domains.integers import Clip
from muhat.domains.norms import log_ball_volume, p_norm, touching
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
from muhat.ellipsoids.result import SmallestEllipsoid
from muhat.ellipsoids.symmetric_bodies import around_axes
from muhat.ellipsoids.verification import UNIT
from muhat.privacy import Neighbors


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Ball(Domain, keys=("radius", "center")):
    """{x : ‖x − c‖₂ ≤ r}, r ≥ 0. Records outside move to the nearest point.

    >>> Ball(radius=2, dim=3).support([0, 0, 1])
    2.0
    """

    kind = "ball"
    clips_to_nearest = True
    is_round = True
    has_squares = True
    radius: float
    center: Vector
    half_widths: Vector

    def __init__(self, radius: float, dim: int, center: ArrayLike | None = None) -> None:
        size = dimension(dim)
        r = _check.not_negative("radius", radius)
        self._set(radius=r, center=center_vector(center, size), half_widths=np.full(size, r))
        check_scale(self.half_widths, flat=True)

    def factors(self) -> Factors:
        return super().factors() if self.radius else [(one_point(self.center), slice(0, self.dim))]

    @property
    def euclidean_radius(self) -> float | None:
        return self.radius or None

    def reach(self, directions: Matrix) -> Vector:
        return np.asarray(self.radius * p_norm(directions, 2))

    def extreme_point(self, direction: ArrayLike) -> Vector:
        theta = vector("direction", direction, dim=self.dim)
        return np.asarray(self.center + self.radius * touching(theta, 2))

    def clip(self, points: ArrayLike) -> Matrix:
        offset = offsets(points, self.center)
        length = p_norm(offset, 2)[..., None]
        return np.asarray(
            self.center + offset * (self.radius / np.maximum(length, self.radius or 1.0))
        )

    def farthest(self, weights: Vector) -> float:
        return float(self.radius * np.max(weights))

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        return around_axes(self.half_widths, p, weights, 4 * UNIT).scaled(SIZE[body])

    def block(self, p: float, weights: Vector, neighbors: Neighbors) -> Block:
        lattice = BallLattice.around(self.center.tolist(), self.radius)
        return Block(lattice, self.half_widths, self.center)

    def inner_axes(self) -> Vector | None:
        if not self.radius:
            return None
        return np.asarray(self.half_widths * (1 - 1e-15))

    def log_half_volume(self) -> float | None:
        if not self.radius:
            return None
        return log_ball_volume(self.dim, 2) + self.dim * (math.log(self.radius) - 1e-14)

    def image_root(self, transform: Matrix) -> Matrix:
        return transform * self.radius

    def exact_gauge(self) -> Gauge | None:
        return LpGauge(2, tuple(self.half_widths.tolist())) if self.radius else None

    def clips(self, offset: tuple[float, ...] | None = None) -> tuple[Clip, ...]:
        if offset is not None or self.radius:
            return super().clips(offset)
        return one_point(self.center).clips()

    @classmethod
    def built(cls, radius: float, center: Vector) -> Self:
        return cls(radius, len(center), center)

    def __repr__(self) -> str:
        center = "" if not self.center.any() else f", center={short(self.center)}"
        return f"Ball(radius={self.radius:g}, dim={self.dim}{center})"
