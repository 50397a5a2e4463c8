"""A domain moved by a vector."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from muhat._arrays import vector
from muhat.domains.base import Domain, Preimage
from muhat.domains.blocks import Block
from muhat.domains.integers import Clip, TableLattice
from muhat.domains.vectors import Matrix, Vector, rows, short
from muhat.ellipsoids.result import SmallestEllipsoid
from muhat.privacy import Neighbors


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Translate(Domain):
    """{x + v : x in K}, made by `K + v` where K has no centre of its own to move.

    Records are clipped as in K, in the moved coordinates; where K lifts records (tensors), the
    records stay as they are and what they are lifted to moves.
    """

    kind = "translate"
    inner: Domain
    offset: Vector
    center: Vector
    half_widths: Vector

    def __init__(self, inner: Domain, offset: ArrayLike) -> None:
        moved = vector("offset", offset, dim=inner.dim)
        center = np.asarray(inner.center + moved)
        self._set(inner=inner, offset=moved, center=center, half_widths=inner.half_widths)

    @property
    def is_symmetric(self) -> bool:
        return self.inner.is_symmetric

    @property
    def is_listed(self) -> bool:
        return self.inner.is_listed

    @property
    def lifts(self) -> bool:
        return self.inner.lifts

    @property
    def record_center(self) -> Vector:
        return self.inner.record_center if self.lifts else self.center

    @property
    def bounding_box(self) -> tuple[Vector, Vector]:
        lower, upper = self.inner.bounding_box
        return lower + self.offset, upper + self.offset

    def preimage(self) -> Preimage:
        source = self.inner.preimage()
        if source.matrix is None:
            return Preimage(self, None, np.zeros(self.dim))
        return Preimage(source.domain, source.matrix, source.offset + self.offset)

    def reach(self, directions: Matrix) -> Vector:
        return self.inner.reach(directions)

    def extreme_point(self, direction: ArrayLike) -> Vector:
        return np.asarray(self.inner.extreme_point(direction) + self.offset)

    def clip(self, points: ArrayLike) -> Matrix:
        x = rows(points, self.record_dim)
        return np.asarray(self.inner.clip(x if self.lifts else x - self.offset) + self.offset)

    def farthest(self, weights: Vector) -> float:
        return self.inner.farthest(weights)

    def vertices(self) -> Matrix | None:
        corners = self.inner.vertices()
        return None if corners is None else corners + self.offset

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        found = self.inner.ellipsoid(body, p, weights, tol)
        return found if found.shift is None else replace(found, shift=found.shift + self.offset)

    def moment(self, body: str, tol: float) -> Matrix | None:
        return self.inner.moment(body, tol)

    def point_sizes(self) -> Vector:
        return self.inner.point_sizes() + np.abs(self.offset)

    def corner_lattice(self, offset: tuple[float, ...] | None = None) -> TableLattice | None:
        return None if offset else self.inner.corner_lattice(tuple(self.offset.tolist()))

    def block(self, p: float, weights: Vector, neighbors: Neighbors) -> Block:
        return self.inner.moved_block(self, self.offset, p, weights, neighbors)

    def nearest_in_hull(self, point: ArrayLike) -> Vector:
        x = vector("point", point, dim=self.dim)
        return np.asarray(self.inner.nearest_in_hull(x - self.offset) + self.offset)

    def inner_axes(self) -> Vector | None:
        return self.inner.inner_axes()

    def log_half_volume(self) -> float | None:
        return self.inner.log_half_volume()

    def half_volume(self, weights: Vector) -> tuple[int, float] | None:
        return self.inner.half_volume(weights)

    def clips(self, offset: tuple[float, ...] | None = None) -> tuple[Clip, ...]:
        if offset is not None:
            return super().clips(offset)
        return self.inner.clips(tuple(self.offset.tolist()))

    def __repr__(self) -> str:
        return f"{self.inner!r} + {short(self.offset)}"
