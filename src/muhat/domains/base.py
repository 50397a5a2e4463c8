"""What every domain can say about itself."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from muhat._arrays import LARGEST_ARRAY, vector
from muhat._plain import Plain
from muhat.domains.blocks import Block, clipped_block, gauged_block, table_block
from muhat.domains.gauges import Gauge, GaugeClip
from muhat.domains.hull import nearest_to_corners
from muhat.domains.integers import Clip, TableLattice
from muhat.domains.vectors import Matrix, Vector
from muhat.ellipsoids import SmallestEllipsoid, smallest_ellipsoid
from muhat.ellipsoids.combined import (
    MOST_CORNERS,
    around_both_sides,
    around_opposite_points,
    around_points,
)
from muhat.ellipsoids.floors import second_moment
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors


class Domain(Plain, ABC, tag="domain", exact=True):
    """A public, bounded set K of R^d in which every record lies after clipping.

    Where K is not convex (finitely many points, tensors), its support function, widths and
    vertices are those of its convex hull, where the mean lies. `center` is a point c of the
    hull, of shape (d,): the centre of symmetry if `is_symmetric`, else an interior point.
    `half_widths`, of shape (d,), is half the width of K along each axis, 0 where K is flat.

    `K + L` is the Minkowski sum, `K + v` a translation, `K * L` the product (coordinates one
    after the other), `T @ K` the image under a matrix.
    """

    kind: ClassVar[str]
    operations: ClassVar[Operations]
    clips_to_nearest: ClassVar[bool] = False
    """Whether `clip` moves a record to the nearest point of K, and K is convex."""
    by_column: ClassVar[bool] = False
    """Whether K bounds every column by itself: a box."""
    is_round: ClassVar[bool] = False
    """Whether K is a Euclidean ball or an ellipsoid."""
    has_squares: ClassVar[bool] = False
    """Whether squares of single columns can be released beside the sums."""
    center: Vector
    half_widths: Vector

    __array_ufunc__ = None  # numpy leaves `T @ K` and `v + K` to us

    @abstractmethod
    def reach(self, directions: Matrix) -> Vector:
        """h_{K−c}(θ) = max over x in K of ⟨θ, x − c⟩, for each θ along the last axis."""

    @abstractmethod
    def extreme_point(self, direction: ArrayLike) -> Vector:
        """A point of K where ⟨θ, x⟩ is largest, of shape (d,)."""

    @abstractmethod
    def clip(self, points: ArrayLike) -> Matrix:
        """Each record, of shape (r,) or (n, r) with r = `record_dim`, moved into K by itself.

        A coordinate that is not finite counts as that coordinate of the centre.
        """

    @abstractmethod
    def farthest(self, weights: Vector) -> float:
        """An upper bound on ‖diag(weights)·(x − c)‖₂ over x in K."""

    @property
    def dim(self) -> int:
        """The dimension d."""
        return len(self.center)

    @property
    def is_symmetric(self) -> bool:
        """Whether K − c = −(K − c) is known, so that K − K = 2(K − c)."""
        return True

    @property
    def most_nonzero(self) -> int:
        """How many coordinates of an extreme point are not 0, or not the centre's, at most."""
        return self.dim

    @property
    def euclidean_radius(self) -> float | None:
        """The radius of a Euclidean ball; None for what is none."""
        return None

    @property
    def is_centered(self) -> bool:
        """Whether K = −K is known."""
        return self.is_symmetric and not self.center.any()

    @property
    def lifts(self) -> bool:
        """Whether records are given in other coordinates than those of K."""
        return False

    @property
    def is_listed(self) -> bool:
        """Whether records become the nearest of listed points, in some of their coordinates."""
        return False

    @property
    def record_dim(self) -> int:
        """The number of coordinates of a record."""
        return len(self.record_center)

    @property
    def record_center(self) -> Vector:
        """What missing coordinates of a record become, of shape (record_dim,)."""
        return self.center

    @property
    def bounding_box(self) -> tuple[Vector, Vector]:
        """The least and the largest value of every coordinate, each of shape (d,).

        Not center ± half_widths where K is not symmetric.
        """
        return self.center - self.half_widths, self.center + self.half_widths

    def exact_gauge(self) -> Gauge | None:
        """How far out a record is, as kernels decide it in integers; None if not along rays."""
        return None

    def clips(self, offset: tuple[float, ...] | None = None) -> tuple[Clip, ...]:
        """How records of each part of K + offset are moved into it before they are mapped."""
        gauge = self.exact_gauge()
        if gauge is None or offset is not None:
            raise InvalidInput(f"records of {type(self).__name__} cannot be clipped along rays.")
        return (GaugeClip(tuple(self.center.tolist()), gauge),)

    def support(self, direction: ArrayLike) -> float:
        """h_K(θ) = max over x in K of ⟨θ, x⟩."""
        theta = vector("direction", direction, dim=self.dim)
        return float(theta @ self.center + self.reach(theta))

    def width(self, direction: ArrayLike) -> float:
        """h_K(θ) + h_K(−θ), the support function of the difference body K − K."""
        theta = vector("direction", direction, dim=self.dim)
        return float(self.reach(theta) + self.reach(-theta))

    def vertices(self) -> Matrix | None:
        """Finitely many points whose convex hull is that of K, of shape (m, d), or None.

        None where there are infinitely many, or too many to list. Some may lie inside.
        """
        return None

    def nearest_in_hull(self, point: ArrayLike) -> Vector:
        """The point of conv(K) nearest to x, of shape (d,), up to about 1e-5 of K's size.

        It is where the mean of records lies.
        """
        x = vector("point", point, dim=self.dim)
        if self.clips_to_nearest:
            return np.asarray(self.clip(x))
        if self.exact_gauge() is not None and np.allclose(self.clip(x), x, 1e-12, 0):
            return x
        size = float(np.max(self.half_widths)) or 1.0
        return nearest_to_corners(x, self.extreme_point, self.center, size)

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        """The smallest ellipsoid around the "difference" K − K, or around the "shifted" K.

        A closed form where there is one, else the solver's around the vertices.
        """
        corners = self.vertices()
        if corners is None:
            raise InvalidInput(
                f"the smallest ellipsoid around {type(self).__name__} is not known: it has too "
                "many corners to list and no closed form."
            )
        return around_points(corners, body, p, weights, tol)

    def two_sided_ellipsoid(self, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        """An ellipsoid around K ∪ −K, for a K that is not −K: the smallest if corners are few."""
        corners = self.vertices()
        if corners is not None and len(corners) <= MOST_CORNERS:
            return around_opposite_points(corners, p, weights, tol)
        found = self.ellipsoid("shifted", p, weights, tol)
        center = self.center if found.shift is None else found.shift
        moment, points = None, None
        if self.is_symmetric:
            moment = self.moment("shifted", tol)
            flat = self.ellipsoid("shifted", 2, np.ones(self.dim), tol)
            # A measure on pairs of opposite points is behind a closed form.
            points = 2 * flat.contacts if flat.is_exact and flat.contacts else None
        far = self.extreme_point(self.center)
        return around_both_sides(found, center, far, (moment, points), p, weights)

    def moment(self, body: str, tol: float) -> Matrix | None:
        """E[ssᵀ] of a measure on the body, the best at p = 2; None if not known."""
        return second_moment(self.ellipsoid(body, 2, np.ones(self.dim), tol))

    def point_sizes(self) -> Vector:
        """How large the numbers are that a coordinate of an extreme point is computed from."""
        return np.abs(self.center) + self.half_widths

    def inner_axes(self) -> Vector | None:
        """The half-axes of an ellipsoid inside K, rounded down; None if none is at hand."""
        return None

    def log_half_volume(self) -> float | None:
        """ln of the volume of (K − K)/2 for a convex K, rounded down; None if it is not at hand."""
        return None

    def half_volume(self, weights: Vector) -> tuple[int, float] | None:
        """The dimension of diag(weights)·(K − K)/2, and ln of its volume there, rounded down.

        For a convex K; None if it is not at hand.
        """
        whole = self.log_half_volume()
        return None if whole is None else (self.dim, whole + math.fsum(np.log(weights).tolist()))

    def image_root(self, transform: Matrix) -> Matrix | None:
        """T·F where K − c = F·(unit ball), of shape (rows, d); None if K is no ellipsoid."""
        return None

    def preimage(self) -> Preimage:
        """K as the affine image of a domain that records can be clipped to."""
        return Preimage(self, None, np.zeros(self.dim))

    def factors(self) -> list[tuple[Domain, slice]]:
        """The parts of a product and their coordinates; any other domain is one part."""
        return [(self, slice(0, self.dim))]

    def corner_lattice(self, offset: tuple[float, ...] | None = None) -> TableLattice | None:
        """The integers of records of K + offset that are means of its vertices; None if not."""
        return None

    def block(self, p: float, weights: Vector, neighbors: Neighbors) -> Block:
        """Records as integers, measured from a centre, and noise that suits the ℓ_p error."""
        return self.moved_block(self, np.zeros(self.dim), p, weights, neighbors)

    def moved_block(
        self, K: Domain, offset: Vector, p: float, weights: Vector, neighbors: Neighbors
    ) -> Block:
        """The block of K, which is this domain moved by the offset."""
        source = K.preimage()
        lattice = source.domain.corner_lattice()
        corners = None if lattice is None else K.vertices()
        if lattice is None or corners is None:
            return K.mapped_block(p, weights, source)
        replaced = neighbors is Neighbors.SUBSTITUTE
        # Sums of differences are measured from the domain's own centre, as good as any.
        body = "difference" if replaced else "shifted"
        found = smallest_ellipsoid(K, p, body, weights=weights)
        center = K.center if found.shift is None else found.shift
        return table_block(lattice, corners, found, center)

    def block_from_zero(self, p: float, weights: Vector) -> Block | None:
        """Records measured from 0, so that K ∪ −K is to be hidden; None if that is not known."""
        if self.is_centered:
            return self.block(p, weights, Neighbors.ADD_REMOVE)
        lattice = self.preimage().domain.corner_lattice()
        corners = None if lattice is None else self.vertices()
        if lattice is None or corners is None:
            return None
        found = smallest_ellipsoid(self, p, "symmetric", weights=weights)
        return table_block(lattice, corners, found, np.zeros(self.dim))

    def mapped_block(
        self, p: float, weights: Vector, source: Preimage, body: str = "shifted"
    ) -> Block:
        """Records of the domain that K is an image of, in the coordinates of K's ellipsoid.

        With the body "symmetric" the ellipsoid is centred at 0.
        """
        found = smallest_ellipsoid(self, p, body, weights=weights)
        center = self.center if found.shift is None else found.shift
        if body == "symmetric":
            center = np.zeros(self.dim)
        inner = source.domain
        gauge = inner.exact_gauge() if center is self.center else None
        if gauge is not None:
            return gauged_block(found, center, gauge, inner.center, source.matrix)
        matrix, offset = source.matrix, source.offset
        return clipped_block(found, center, inner.clips(), inner.center, matrix, offset)

    def both_sides(self) -> Domain:
        """The set that is hidden where sums are measured from 0: of a box the one around K ∪ −K."""
        return self

    @property
    def has_l1(self) -> bool:
        """Whether K has integers that one record moves by a known ℓ₁ norm: `l1_block`."""
        return False

    def l1_block(self, block: Block, p: float, weights: Vector, neighbors: Neighbors) -> Block:
        """The same records as those of a block of K, for independent Laplace noise."""
        raise InvalidInput(
            "laplace is for an ℓ₁ ball, a Box, a Simplex, Choices and products of these; use "
            "'plain-laplace' for a Ball."
        )

    def _set(self, **fields: Any) -> None:
        """Set fields of a frozen domain while it is made; arrays become read-only."""
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __add__(self, other: Any) -> Domain:
        return self.operations.add(self, other)

    def __radd__(self, offset: Any) -> Domain:
        return self.operations.add(self, offset)

    def __mul__(self, other: object) -> Domain:
        return (
            self.operations.multiply(self, other) if isinstance(other, Domain) else NotImplemented
        )

    def __rmatmul__(self, transform: Any) -> Domain:
        return self.operations.map(transform, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))


@dataclass(frozen=True)
class Operations:
    """What `+`, `*` and `@` make of domains: `combine.py`, which knows all kinds, fills it in."""

    add: Callable[[Domain, Any], Domain]
    multiply: Callable[[Domain, Domain], Domain]
    map: Callable[[Any, Domain], Domain]


@dataclass(frozen=True, eq=False)
class Preimage:
    """K = offset + matrix·domain, where `domain` clips records; no matrix stands for identity."""

    domain: Domain
    matrix: Matrix | None
    offset: Vector

    def dense(self) -> Matrix:
        """The matrix itself, of shape (K.dim, domain.dim)."""
        if self.matrix is not None:
            return self.matrix
        if self.domain.dim**2 > LARGEST_ARRAY:
            raise InvalidInput(f"an identity matrix of {self.domain.dim} rows is not built.")
        return np.eye(self.domain.dim)
