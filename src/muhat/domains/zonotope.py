"""The zonotope: the image of a cube, a sum of segments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from math import comb
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from muhat._arrays import matrix, signs, vector
from muhat.domains.base import Domain, Preimage
from muhat.domains.blocks import Block, gauged_block
from muhat.domains.box import Box
from muhat.domains.gauges import FacetGauge, Gauge
from muhat.domains.integers import Clip
from muhat.domains.norms import p_norm
from muhat.domains.vectors import (
    Matrix,
    Vector,
    center_vector,
    check_scale,
    hexed,
    offsets,
    short,
    unhexed,
)
from muhat.ellipsoids import smallest_ellipsoid
from muhat.ellipsoids.combined import SIZE
from muhat.ellipsoids.result import SmallestEllipsoid
from muhat.ellipsoids.zonotopes import around_zonotope
from muhat.errors import InvalidInput

MOST_FACETS = 200_000
"""Pairs of facets up to which records are moved into a zonotope: all of up to 20 generators."""

_TOGETHER = 1 << 13

FLAT = 1e-10


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Zonotope(Domain):
    """c + A·[−1, 1]^k with generators A, of shape (d, k).

    Records are points of K, moved to its boundary along the ray from the centre if they lie
    outside. The image `T @ box` has records of that box itself (`source`, where
    K = source.offset + source.matrix·source.domain), and so A @ Box([-1] * k, [1] * k) is the
    same set with records in the coordinates of the generators.

    >>> Zonotope([[1, 1], [0, 2]]).support([1, 0])
    2.0
    """

    kind = "zonotope"
    generators: Matrix
    center: Vector
    half_widths: Vector
    source: Preimage | None

    def __init__(self, generators: ArrayLike, center: ArrayLike | None = None) -> None:
        columns = matrix("generators", generators, "(d, k), one generator a column")
        half_widths = np.abs(columns).sum(axis=1)
        check_scale(half_widths, flat=True)
        self._set(
            generators=columns,
            center=center_vector(center, len(columns)),
            half_widths=half_widths,
            source=None,
        )

    @classmethod
    def from_box(cls, transform: ArrayLike, box: Box, offset: ArrayLike | None = None) -> Self:
        """offset + transform·box, with records in the coordinates of the box."""
        T = matrix("transform", transform, "(rows, columns)", columns=box.dim)
        moved = np.asarray(center_vector(offset, len(T)))
        zonotope = cls(T * box.half_widths, T @ box.center + moved)
        zonotope._set(source=Preimage(box, T, moved))
        return zonotope

    def preimage(self) -> Preimage:
        return super().preimage() if self.source is None else self.source

    def box_preimage(self) -> Preimage:
        """K as the image of a box: of the generators' [−1, 1]^k, or of what it is the image of."""
        if self.source is not None:
            return self.source
        ones = np.ones(self.generators.shape[1])
        return Preimage(Box(-ones, ones), self.generators, self.center)

    def reach(self, directions: Matrix) -> Vector:
        return np.asarray(np.abs(directions @ self.generators).sum(axis=-1))

    def extreme_point(self, direction: ArrayLike) -> Vector:
        theta = vector("direction", direction, dim=self.dim)
        return np.asarray(self.center + self.generators @ np.sign(theta @ self.generators))

    @cached_property
    def facets(self) -> Matrix | None:
        """n with K − c = {z : |⟨n, z⟩| ≤ 1 for all n} on its span; None if they are too many."""
        return facet_normals(self.generators)

    @cached_property
    def _gauge(self) -> Gauge | None:
        """How far out the nearest point of the span lies."""
        return None if self.facets is None else FacetGauge(tuple(map(tuple, self.facets.tolist())))

    def exact_gauge(self) -> Gauge | None:
        # Along rays alone a record beside a flat zonotope would stay beside it.
        return self._gauge if span_basis(self.generators).shape[1] == self.dim else None

    def mapped_block(
        self, p: float, weights: Vector, source: Preimage, body: str = "shifted"
    ) -> Block:
        if source.domain is not self or body != "shifted" or self._gauge is None:
            return super().mapped_block(p, weights, source, body)
        # The map to the coordinates of the ellipsoid drops what lies beside a flat one.
        found = smallest_ellipsoid(self, p, body, weights=weights)
        return gauged_block(found, self.center, self._gauge, self.center, None)

    def clips(self, offset: tuple[float, ...] | None = None) -> tuple[Clip, ...]:
        if self.exact_gauge() is None:
            self._refuse()
        return super().clips(offset)

    def clip(self, points: ArrayLike) -> Matrix:
        if self.facets is None or self.source is not None:
            self._refuse()
        basis = span_basis(self.generators)
        offset = offsets(points, self.center) @ basis @ basis.T
        gauge = np.abs(offset @ self.facets.T).max(axis=-1)
        return np.asarray(self.center + offset / np.maximum(gauge, 1.0)[..., None])

    def _refuse(self) -> NoReturn:
        if self.source is not None:
            raise InvalidInput(
                "the image of a box does not clip: give records in the coordinates of the box "
                "(`preimage()`), or an inner domain with `clip=`."
            )
        raise InvalidInput(
            "records cannot be moved into this zonotope: it is flat, or has too many facets. Give "
            "them in the coordinates of its generators, A @ mh.Box([-1] * k, [1] * k), or an inner "
            "domain with `clip=`."
        )

    def farthest(self, weights: Vector) -> float:
        weighted = weights[:, None] * self.generators
        used = weighted[:, weighted.any(axis=0)]
        if used.shape[1] <= 12:
            corners = signs(used.shape[1], len(used))
            if corners is not None and used.shape[1] > 0:
                return float(p_norm(corners @ used.T, 2).max())
        bounds = [
            float(p_norm(weights * self.half_widths, 2)),
            float(p_norm(weighted.T, 2).sum()),
        ]
        return min(bounds)

    def log_half_volume(self) -> float | None:
        return self._log_volume

    @cached_property
    def _log_volume(self) -> float | None:
        """ln of 2^d·Σ|det| over all choices of d generators, which tile it."""
        used = self.generators[:, self.generators.any(axis=0)]
        if not self.dim <= used.shape[1] or comb(used.shape[1], self.dim) > MOST_FACETS:
            return None
        lengths = p_norm(used.T, 2)
        even, total = (used / lengths).T, 0.0
        choices = combinations(range(len(even)), self.dim)
        while chosen := list(islice(choices, _TOGETHER)):
            places = np.array(chosen)
            # Of unit vectors a determinant is right to that.
            sizes = np.maximum(np.abs(np.linalg.det(even[places])) - 2.0**-36, 0.0)
            total += float(sizes @ np.prod(lengths[places] / lengths.max(), axis=1))
        if total <= 0:
            return None
        return math.log(total) + self.dim * (math.log(2) + math.log(lengths.max())) - 1e-12

    def vertices(self) -> Matrix | None:
        used = self.generators[:, self.generators.any(axis=0)]
        corners = signs(used.shape[1], self.dim)
        return None if corners is None else np.asarray(self.center + corners @ used.T)

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        return around_zonotope(self.generators, p, weights, tol).scaled(SIZE[body])

    def to_dict(self) -> dict[str, Any]:
        if self.source is not None:
            return {
                "domain": self.kind,
                "transform": [hexed(row) for row in self.source.dense()],
                "box": self.source.domain.to_dict(),
                "offset": hexed(self.source.offset),
            }
        return {
            "domain": self.kind,
            "generators": [hexed(row) for row in self.generators],
            "center": hexed(self.center),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        if "box" in fields:
            transform = [unhexed(row) for row in fields["transform"]]
            return cls.from_box(transform, Box.from_dict(fields["box"]), unhexed(fields["offset"]))
        return cls([unhexed(row) for row in fields["generators"]], unhexed(fields["center"]))

    def __repr__(self) -> str:
        center = "" if not self.center.any() else f", center={short(self.center)}"
        return f"Zonotope(dim={self.dim}, generators={self.generators.shape[1]}{center})"


def span_basis(generators: Matrix) -> Matrix:
    """Orthonormal columns (d, r) that span the generators; the axes themselves if r = d."""
    used = generators[:, generators.any(axis=0)]
    left, sizes, _ = np.linalg.svd(used / p_norm(used.T, 2), full_matrices=False)
    rank = int(np.sum(sizes > FLAT))
    return np.eye(rank) if rank == len(used) else np.asarray(left[:, :rank])


def facet_normals(generators: Matrix) -> Matrix | None:
    """n of shape (m, d) with A·[−1, 1]^k = {z : |⟨n, z⟩| ≤ 1 for all n} on the span of A.

    Every facet is parallel to r − 1 independent generators, r their rank. None if there are too
    many choices of those.
    """
    basis = span_basis(generators)
    rank = basis.shape[1]
    used = basis.T @ generators[:, generators.any(axis=0)]
    if rank < 2:
        normals = np.ones((1, rank))
    elif comb(used.shape[1], rank - 1) > MOST_FACETS:
        return None
    else:
        even = (used / p_norm(used.T, 2)).T
        choices, found = combinations(range(len(even)), rank - 1), []
        while chosen := list(islice(choices, _TOGETHER)):
            _, independent, across = np.linalg.svd(even[np.array(chosen)])
            found.append(across[independent[:, -1] > FLAT, -1])
        normals = np.concatenate(found)
    return np.asarray(normals / np.abs(normals @ used).sum(axis=1)[:, None] @ basis.T)
