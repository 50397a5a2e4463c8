"""The Euclidean ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat import _check
from muhat.domains.base import (
    Domain,
    Vector,
    center_vector,
    check_scale,
    hexed,
    rows,
    short,
    vector,
)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Ball(Domain):
    """{x : ‖x − c‖₂ ≤ r}.

    >>> Ball(radius=2, dim=3).support([0, 0, 1])
    2.0
    """

    radius: float
    center: Vector

    def __init__(self, radius: float, dim: int, center: ArrayLike | None = None) -> None:
        object.__setattr__(self, "radius", _check.positive("radius", radius))
        object.__setattr__(self, "center", center_vector(center, _check.count("dim", dim)))
        check_scale(self.half_widths)

    @property
    def half_widths(self) -> Vector:
        return np.full(self.dim, self.radius)

    def support(self, direction: ArrayLike) -> float:
        theta = vector("direction", direction, dim=self.dim)
        return float(theta @ self.center + self.radius * np.linalg.norm(theta))

    def clip(self, points: ArrayLike) -> NDArray[np.float64]:
        offset = rows(points, self.dim) - self.center
        length = np.linalg.norm(offset, axis=-1, keepdims=True)
        return np.asarray(
            self.center + offset * (self.radius / np.maximum(length, self.radius)), np.float64
        )

    def farthest(self, weights: Vector) -> float:
        return float(self.radius * np.max(weights))

    def to_dict(self) -> dict[str, Any]:
        return {"domain": "ball", "radius": self.radius.hex(), "center": hexed(self.center)}

    def __repr__(self) -> str:
        center = "" if not self.center.any() else f", center={short(self.center)}"
        return f"Ball(radius={self.radius:g}, dim={self.dim}{center})"
