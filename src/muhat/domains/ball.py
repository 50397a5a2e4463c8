"""The Euclidean ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat.domains.base import Domain
from muhat.domains.lattice_gauges import Gauge, LpGauge
from muhat.domains.norms import p_norm, touching
from muhat.domains.vectors import (
    Matrix,
    Vector,
    center_vector,
    check_scale,
    dimension,
    hexed,
    offsets,
    short,
    unhexed,
    vector,
)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Ball(Domain):
    """{x : ‖x − c‖₂ ≤ r}. Records outside move to the nearest point.

    >>> Ball(radius=2, dim=3).support([0, 0, 1])
    2.0
    """

    kind = "ball"
    radius: float
    center: Vector
    half_widths: Vector

    def __init__(self, radius: float, dim: int, center: ArrayLike | None = None) -> None:
        size = dimension(dim)
        r = _check.positive("radius", radius)
        self._set(radius=r, center=center_vector(center, size), half_widths=np.full(size, r))
        check_scale(self.half_widths)

    def reach(self, directions: Matrix) -> Vector:
        return np.asarray(self.radius * p_norm(directions, 2))

    def extreme_point(self, direction: ArrayLike) -> Vector:
        theta = vector("direction", direction, dim=self.dim)
        return np.asarray(self.center + self.radius * touching(theta, 2))

    def clip(self, points: ArrayLike) -> Matrix:
        offset = offsets(points, self.center)
        length = p_norm(offset, 2)[..., None]
        return np.asarray(self.center + offset * (self.radius / np.maximum(length, self.radius)))

    def farthest(self, weights: Vector) -> float:
        return float(self.radius * np.max(weights))

    def exact_gauge(self) -> Gauge:
        return LpGauge(2, tuple(self.half_widths.tolist()))

    def to_dict(self) -> dict[str, Any]:
        return {"domain": self.kind, "radius": self.radius.hex(), "center": hexed(self.center)}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Ball:
        center = unhexed(fields["center"])
        return cls(float.fromhex(fields["radius"]), len(center), center)

    def __repr__(self) -> str:
        center = "" if not self.center.any() else f", center={short(self.center)}"
        return f"Ball(radius={self.radius:g}, dim={self.dim}{center})"
