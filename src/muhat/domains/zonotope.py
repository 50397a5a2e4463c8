"""The zonotope: the image of a cube, a sum of segments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from muhat._arrays import matrix, signs, vector
from muhat.domains.base import Domain, Preimage
from muhat.domains.box import Box
from muhat.domains.norms import p_norm
from muhat.domains.vectors import Matrix, Vector, center_vector, check_scale, hexed, short, unhexed
from muhat.ellipsoids.combined import SIZE
from muhat.ellipsoids.result import SmallestEllipsoid
from muhat.ellipsoids.zonotopes import around_zonotope
from muhat.errors import InvalidInput


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Zonotope(Domain):
    """c + A·[−1, 1]^k with generators A, of shape (d, k).

    Records are given in the coordinates of `preimage().domain`: the box [−1, 1]^k of the
    generators or, for an image `T @ box`, that box itself (`source`, where
    K = source.offset + source.matrix·source.domain).

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
        if self.source is not None:
            return self.source
        ones = np.ones(self.generators.shape[1])
        return Preimage(Box(-ones, ones), self.generators, self.center)

    def reach(self, directions: Matrix) -> Vector:
        return np.asarray(np.abs(directions @ self.generators).sum(axis=-1))

    def extreme_point(self, direction: ArrayLike) -> Vector:
        theta = vector("direction", direction, dim=self.dim)
        return np.asarray(self.center + self.generators @ np.sign(theta @ self.generators))

    def clip(self, points: ArrayLike) -> Matrix:
        raise InvalidInput(
            "a zonotope does not clip: give records in the coordinates of its generators "
            "(`preimage()`), or an inner domain with `clip=`."
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
