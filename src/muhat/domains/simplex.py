"""The simplex: shares of a whole, or one-hot records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from muhat.domains.base import Domain
from muhat.domains.clips import Clip
from muhat.domains.simplex_lattice import SimplexLattice
from muhat.domains.vectors import (
    LARGEST_ARRAY,
    Matrix,
    Vector,
    dimension,
    pulled_in,
    records,
    vector,
)
from muhat.errors import InvalidInput


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Simplex(Domain):
    """conv(e_1, …, e_d): x ≥ 0 with Σx = 1; with `origin`, conv(0, e_1, …, e_d): Σx ≤ 1.

    The centre is the centroid. Records outside move to the nearest point.

    >>> Simplex(dim=3).clip([2.0, 0.0, 0.0]).tolist()
    [1.0, 0.0, 0.0]
    >>> Simplex(dim=3, origin=True).support([-1, -2, -3])
    0.0
    """

    kind = "simplex"
    origin: bool
    center: Vector
    half_widths: Vector

    def __init__(self, dim: int, origin: bool = False) -> None:
        size = dimension(dim)
        if not isinstance(origin, bool | np.bool_):
            raise InvalidInput("must be True or False", parameter="origin", value=f"{origin!r:.40}")
        self._set(
            origin=bool(origin),
            center=np.full(size, 1 / (size + bool(origin))),
            half_widths=np.full(size, 0.5 if size > 1 or origin else 0.0),
        )

    @property
    def is_symmetric(self) -> bool:
        return self.dim + self.origin <= 2

    @property
    def bounding_box(self) -> tuple[Vector, Vector]:
        upper = np.ones(self.dim)
        return upper - 2 * self.half_widths, upper

    def support(self, direction: ArrayLike) -> float:
        theta = vector("direction", direction, dim=self.dim)
        return max(0.0, float(theta.max())) if self.origin else float(theta.max())

    def reach(self, directions: Matrix) -> Vector:
        largest = directions.max(axis=-1)
        if self.origin:
            largest = np.maximum(largest, 0.0)
        return np.asarray(largest - directions @ self.center)

    def extreme_point(self, direction: ArrayLike) -> Vector:
        theta = vector("direction", direction, dim=self.dim)
        point = np.zeros(self.dim)
        best = int(np.argmax(theta))
        if theta[best] > 0 or not self.origin:
            point[best] = 1.0
        return point

    def clip(self, points: ArrayLike) -> Matrix:
        x = pulled_in(records(points, self.center))
        face = _onto_face(x)
        if not self.origin:
            return face
        positive = np.maximum(x, 0.0)
        return np.where(positive.sum(axis=-1, keepdims=True) <= 1, positive, face)

    def farthest(self, weights: Vector) -> float:
        # ‖diag(w)(e_i − c)‖² = w_i²(1 − 2c) + c²Σw², and c²Σw² for the origin.
        c = float(self.center[0])
        rest = c * c * float(weights @ weights)
        corner = float(np.max(weights)) ** 2 * (1 - 2 * c) + rest
        # 1 − 2c is negative for one coordinate only: a point, or the segment [0, 1].
        return float(np.sqrt(max(corner, rest if self.origin else 0.0)))

    def vertices(self) -> Matrix | None:
        if self.dim * (self.dim + 1) > LARGEST_ARRAY:
            return None
        return np.eye(self.dim + 1, self.dim) if self.origin else np.eye(self.dim)

    def clips(self, offset: tuple[float, ...] | None = None) -> tuple[Clip, ...]:
        return (SimplexLattice(self.dim, self.origin, offset),)

    def to_dict(self) -> dict[str, Any]:
        return {"domain": self.kind, "dim": self.dim, "origin": self.origin}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Simplex:
        return cls(fields["dim"], fields["origin"])

    def __repr__(self) -> str:
        return f"Simplex(dim={self.dim}{', origin=True' if self.origin else ''})"


def _onto_face(x: Matrix) -> Matrix:
    """The nearest point with x ≥ 0 and Σx = 1: max(x − τ, 0) with the τ that makes the sum 1.

    τ = max over k of (Σ of the k largest − 1)/k. Coordinates more than 1 below the largest end
    at 0 whatever their size, so all are measured from the largest and cut there.
    """
    relative = np.maximum(x - x.max(axis=-1, keepdims=True), -1.0)
    falling = -np.sort(-relative, axis=-1)
    shares = (np.cumsum(falling, axis=-1) - 1) / np.arange(1, x.shape[-1] + 1)
    return np.asarray(np.maximum(relative - shares.max(axis=-1, keepdims=True), 0.0))
