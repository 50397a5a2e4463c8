"""The ball of an ℓ_p norm, with a scale a coordinate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import LARGEST_ARRAY, signs, vector
from muhat._plain import Key
from muhat.domains.base import Domain
from muhat.domains.blocks import Block
from muhat.domains.diamond_lattice import DiamondLattice
from muhat.domains.flat import Factors, one_point
from muhat.domains.gauges import Gauge, LpGauge
from muhat.domains.integers import Clip
from muhat.domains.norms import ball_order, dual_order, log_ball_volume, p_norm, touching
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
from muhat.ellipsoids.symmetric_bodies import around_lp_ball
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors


@dataclass(frozen=True, eq=False, repr=False, init=False)
class LpBall(Domain, keys=(Key("p", infinite=True), "radius", "center", "scale")):
    """{x : ‖(x − c)/s‖_p ≤ r} with 1 ≤ p ≤ ∞, r ≥ 0 and scales s > 0, of shape (d,).

    Records outside move to the boundary along the ray from the centre.

    >>> LpBall(p=1, dim=2, scale=[1, 3]).support([1, 1])
    3.0
    """

    kind = "lp-ball"
    p: float
    radius: float
    center: Vector
    scale: Vector
    half_widths: Vector

    def __init__(
        self,
        p: float,
        radius: float = 1.0,
        dim: int | None = None,
        center: ArrayLike | None = None,
        scale: ArrayLike | None = None,
    ) -> None:
        size = dimension(dim)
        r = _check.not_negative("radius", radius)
        scales = vector("scale", np.ones(size) if scale is None else scale, dim=size)
        if not (scales > 0).all():
            raise InvalidInput("must be greater than 0 in every coordinate", parameter="scale")
        with np.errstate(over="ignore", under="ignore"):
            half_widths = np.asarray(r * scales)
        check_scale(half_widths if r else scales)
        self._set(
            p=ball_order(p),
            radius=r,
            center=center_vector(center, size),
            scale=scales,
            half_widths=half_widths,
        )

    def factors(self) -> Factors:
        return super().factors() if self.radius else [(one_point(self.center), slice(0, self.dim))]

    @property
    def most_nonzero(self) -> int:
        return 1 if self.p == 1 else self.dim

    def gauge(self, points: ArrayLike) -> Vector:
        """‖(x − c)/s‖_p / r for each point: at most 1 inside."""
        return p_norm(offsets(points, self.center) / self.half_widths, self.p)

    def reach(self, directions: Matrix) -> Vector:
        return p_norm(directions * self.half_widths, dual_order(self.p))

    def extreme_point(self, direction: ArrayLike) -> Vector:
        theta = vector("direction", direction, dim=self.dim)
        unit = touching(theta * self.half_widths, self.p)
        return np.asarray(self.center + self.half_widths * unit)

    def clip(self, points: ArrayLike) -> Matrix:
        offset = offsets(points, self.center)
        if not self.radius:
            return np.asarray(self.center + 0 * offset)
        gauge = p_norm(offset / self.half_widths, self.p)[..., None]
        return np.asarray(self.center + offset / np.maximum(gauge, 1.0))

    def farthest(self, weights: Vector) -> float:
        # Hölder: max of ‖a∘u‖₂ over ‖u‖_p ≤ 1 is ‖a‖_∞ for p ≤ 2, else ‖a‖_{2p/(p−2)}.
        order = math.inf if self.p <= 2 else 2 / (1 - 2 / self.p)
        return float(p_norm(weights * self.half_widths, order))

    def vertices(self) -> Matrix | None:
        if math.isinf(self.p) or self.dim == 1:
            corners = signs(self.dim, self.dim)
            return None if corners is None else self.center + corners * self.half_widths
        if self.p > 1 or 2 * self.dim**2 > LARGEST_ARRAY:
            return None
        axes = np.diag(self.half_widths)
        return np.asarray(self.center + np.concatenate([axes, -axes]))

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        return around_lp_ball(self.half_widths, self.p, p, weights).scaled(SIZE[body])

    def inner_axes(self) -> Vector | None:
        if not self.radius:
            return None
        # ‖z‖_p ≤ max(d^{1/p − 1/2}, 1)·‖z‖₂
        shrink = self.dim ** min(0.5 - (1 / self.p if self.p < math.inf else 0.0), 0.0)
        return np.asarray(self.half_widths * (shrink * (1 - 1e-14)))

    def log_half_volume(self) -> float | None:
        if not self.radius:
            return None
        sides = float(np.sum(np.log(self.half_widths) - 1e-14))
        return log_ball_volume(self.dim, self.p) + sides

    @property
    def has_l1(self) -> bool:
        return self.p == 1 and self.radius > 0

    def l1_block(self, block: Block, p: float, weights: Vector, neighbors: Neighbors) -> Block:
        if not self.has_l1:
            return super().l1_block(block, p, weights, neighbors)
        # One record may move any coordinate all the way: none gains if another has less noise.
        lattice = DiamondLattice(tuple(self.center.tolist()), tuple(self.half_widths.tolist()))
        return Block(lattice, np.ones(1), self.center, self.half_widths)

    def exact_gauge(self) -> Gauge | None:
        return LpGauge(self.p, tuple(self.half_widths.tolist())) if self.radius else None

    def clips(self, offset: tuple[float, ...] | None = None) -> tuple[Clip, ...]:
        if offset is not None or self.radius:
            return super().clips(offset)
        return one_point(self.center).clips()

    @classmethod
    def built(cls, p: float, radius: float, center: Vector, scale: Vector) -> Self:
        return cls(p, radius, len(center), center, scale)

    def __repr__(self) -> str:
        center = "" if not self.center.any() else f", center={short(self.center)}"
        scale = "" if (self.scale == 1).all() else f", scale={short(self.scale)}"
        return f"LpBall(p={self.p:g}, radius={self.radius:g}, dim={self.dim}{center}{scale})"
