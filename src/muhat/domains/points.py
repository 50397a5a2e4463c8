"""Finitely many points: categories, one-hot vectors, the columns of a workload."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat._arrays import matrix, vector
from muhat.domains.base import Domain
from muhat.domains.blocks import Block
from muhat.domains.integers import Clip
from muhat.domains.norms import p_norm
from muhat.domains.points_lattice import PointsLattice, nearest_codes
from muhat.domains.simplex import Simplex
from muhat.domains.vectors import Matrix, Vector, check_scale, pulled_in, records
from muhat.ellipsoids.combined import SIZE, around_opposite_points
from muhat.ellipsoids.result import SmallestEllipsoid
from muhat.privacy import Neighbors

CHUNK = 1 << 20
"""Distances computed at a time."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Points(Domain):
    """Listed points of R^d, of shape (n, d); duplicates are kept, so that codes stay codes.

    Support and widths are those of the convex hull. The centre is the centre of symmetry if the
    listed points have one (an interval has one always), else their mean. A record moves to the
    nearest listed point, the first of them at a tie.

    >>> square = Points([[0, 0], [1, 0], [0, 1], [1, 1]])
    >>> square.support([1, 2]), square.is_symmetric
    (3.0, True)
    >>> square.nearest([[0.9, 0.2], [0.5, 0.5]]).tolist()
    [1, 0]
    """

    kind = "points"
    points: Matrix
    center: Vector
    half_widths: Vector
    symmetric: bool

    def __init__(self, points: ArrayLike) -> None:
        listed = matrix("points", points, "(n, d), one point a row")
        lower, upper = listed.min(axis=0), listed.max(axis=0)
        half_widths = (upper - lower) / 2
        check_scale(half_widths, flat=True)
        middle = lower + half_widths
        symmetric = _has_symmetry(listed)
        center = middle if symmetric else middle + (listed - middle).mean(axis=0)
        self._set(points=listed, center=center, half_widths=half_widths, symmetric=symmetric)

    @property
    def is_symmetric(self) -> bool:
        return self.symmetric

    @property
    def is_listed(self) -> bool:
        return True

    @property
    def bounding_box(self) -> tuple[Vector, Vector]:
        return self.points.min(axis=0), self.points.max(axis=0)

    def support(self, direction: ArrayLike) -> float:
        theta = vector("direction", direction, dim=self.dim)
        return float((self.points @ theta).max())

    def reach(self, directions: Matrix) -> Vector:
        thetas = np.atleast_2d(directions)
        offset = self.points - self.center
        step = max(1, CHUNK // len(offset))
        parts = [
            (thetas[start : start + step] @ offset.T).max(axis=1)
            for start in range(0, len(thetas), step)
        ]
        return np.asarray(np.concatenate(parts).reshape(directions.shape[:-1]))

    def extreme_point(self, direction: ArrayLike) -> Vector:
        theta = vector("direction", direction, dim=self.dim)
        return np.array(self.points[int(np.argmax(self.points @ theta))])

    def nearest(self, points: ArrayLike) -> NDArray[np.int64]:
        """The index of the nearest listed point, for each record."""
        x = pulled_in(records(points, self.center))
        return nearest_codes(np.atleast_2d(x).T, self.points.T).reshape(x.shape[:-1])

    def clip(self, points: ArrayLike) -> Matrix:
        return self.points[self.nearest(points)]

    def farthest(self, weights: Vector) -> float:
        return float(p_norm((self.points - self.center) * weights, 2).max())

    def vertices(self) -> Matrix | None:
        return self.points

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        if self._are_unit_vectors:
            return Simplex(self.dim).ellipsoid(body, p, weights, tol)
        if self.is_symmetric:
            opposite = self.points - self.center
            return around_opposite_points(opposite, p, weights, tol).scaled(SIZE[body])
        return super().ellipsoid(body, p, weights, tol)

    @property
    def _are_unit_vectors(self) -> bool:
        """Whether they are all of them, each once: categories, in any order."""
        ones = self.points == 1
        once = (ones.sum(axis=0) == 1).all() and (ones.sum(axis=1) == 1).all()
        return self.dim > 2 and bool(once) and not self.points[~ones].any()

    def two_sided_ellipsoid(self, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        return around_opposite_points(self.points, p, weights, tol)

    @property
    def has_l1(self) -> bool:
        return bool((self.half_widths > 0).all())

    def l1_block(self, block: Block, p: float, weights: Vector, neighbors: Neighbors) -> Block:
        if not self.has_l1:
            return super().l1_block(block, p, weights, neighbors)
        # One record moves at most as much as the two longest rows have together. Sums that are
        # measured from 0 stay so.
        centers = [np.zeros(self.dim), self.center][: 1 + bool(block.center.any())]
        tables = [(self.points - center) / self.half_widths for center in centers]
        longest = [np.sort(np.abs(table).sum(axis=1))[-2:].sum() for table in tables]
        best = int(np.argmin(longest))
        lattice = PointsLattice.of(self.points, nearest=True)
        axes = np.ones(self.dim)
        return Block(lattice, axes, centers[best], self.half_widths, table=tables[best])

    def corner_lattice(self, offset: tuple[float, ...] | None = None) -> PointsLattice | None:
        return None if offset else PointsLattice.of(self.points, nearest=True)

    def clips(self, offset: tuple[float, ...] | None = None) -> tuple[Clip, ...]:
        if offset is not None:
            return super().clips(offset)
        return (PointsLattice.of(self.points, nearest=True),)

    def __repr__(self) -> str:
        return f"Points({len(self.points)} points, dim={self.dim})"


def _has_symmetry(points: Matrix) -> bool:
    """Whether some point reflection maps the listed points onto each other, exactly.

    A reflection reverses lexicographic order, so the first must pair with the last, and so on:
    x + x' must be the same number, rounding error included, for all pairs.
    """
    if points.shape[1] == 1:
        return True
    distinct = np.unique(points, axis=0)
    a, b = distinct, distinct[::-1]
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    return bool((total == total[0]).all() and (error == error[0]).all())
