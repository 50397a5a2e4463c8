"""The Minkowski sum of domains."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from muhat._arrays import LARGEST_ARRAY, LARGEST_LIST, vector
from muhat.domains.base import Domain, Preimage
from muhat.domains.norms import p_norm
from muhat.domains.vectors import Matrix, Vector, check_scale
from muhat.ellipsoids.combined import around_sum, shifts_of
from muhat.ellipsoids.floors import LARGEST_DENSE, dual_floor, sampled_floor
from muhat.ellipsoids.result import SmallestEllipsoid
from muhat.errors import InvalidInput


@dataclass(frozen=True, eq=False, repr=False, init=False)
class MinkowskiSum(Domain):
    """K_1 + … + K_m = {x_1 + … + x_m : x_i in K_i}, made by `K + L`.

    A record is given by its parts x_1, …, x_m, one after the other: `preimage()`.
    """

    kind = "sum"
    parts: tuple[Domain, ...]
    center: Vector
    half_widths: Vector

    def __init__(self, parts: Sequence[Domain]) -> None:
        if not parts or len({part.dim for part in parts}) > 1:
            raise InvalidInput(
                "domains that are added must have as many coordinates; "
                f"got {[part.dim for part in parts]}."
            )
        center = np.sum([part.center for part in parts], axis=0)
        half_widths = np.sum([part.half_widths for part in parts], axis=0)
        check_scale(half_widths, flat=True)
        self._set(parts=tuple(parts), center=center, half_widths=half_widths)

    @property
    def is_symmetric(self) -> bool:
        return all(part.is_symmetric for part in self.parts)

    @property
    def bounding_box(self) -> tuple[Vector, Vector]:
        lower, upper = zip(*(part.bounding_box for part in self.parts), strict=True)
        return np.sum(lower, axis=0), np.sum(upper, axis=0)

    def preimage(self) -> Preimage:
        sources = [part.preimage() for part in self.parts]
        return Preimage(
            reduce(operator.mul, [source.domain for source in sources]),
            np.hstack([source.dense() for source in sources]),
            np.sum([source.offset for source in sources], axis=0),
        )

    def reach(self, directions: Matrix) -> Vector:
        return np.asarray(np.sum([part.reach(directions) for part in self.parts], axis=0))

    def extreme_point(self, direction: ArrayLike) -> Vector:
        theta = vector("direction", direction, dim=self.dim)
        points = [part.extreme_point(theta) for part in self.parts]
        return np.asarray(np.sum(points, axis=0))

    def clip(self, points: ArrayLike) -> Matrix:
        raise InvalidInput(
            "a sum of domains does not clip: give records in the coordinates of its parts "
            "(`preimage()`), or an inner domain with `clip=`."
        )

    def farthest(self, weights: Vector) -> float:
        lower, upper = self.bounding_box
        corner = np.maximum(self.center - lower, upper - self.center)
        parts = math.fsum(part.farthest(weights) for part in self.parts)
        return min(parts, float(p_norm(weights * corner, 2)))

    def vertices(self) -> Matrix | None:
        total = np.zeros((1, self.dim))
        for part in self.parts:
            corners = part.vertices()
            if corners is None or not _is_listable(len(total) * len(corners), self.dim):
                return None
            total = (total[:, None] + corners).reshape(-1, self.dim)
        return total

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        found = [part.ellipsoid(body, p, weights, tol) for part in self.parts]
        floors = (
            dual_floor(self.moment(body, tol), p, weights),
            sampled_floor(self.extreme_point, self.point_sizes(), body, p, weights),
            *(each.floor for each in found),
        )
        shifts = shifts_of([part.center for part in self.parts], found)
        shift = None if shifts is None else np.asarray(np.sum(shifts, axis=0))
        return replace(around_sum(found, max(floors), p, weights), shift=shift)

    def moment(self, body: str, tol: float) -> Matrix | None:
        if self.dim > LARGEST_DENSE:
            return None
        known = [m for part in self.parts if (m := part.moment(body, tol)) is not None]
        return np.asarray(np.sum(known, axis=0)) if len(known) == len(self.parts) else None

    def point_sizes(self) -> Vector:
        return np.asarray(np.sum([part.point_sizes() for part in self.parts], axis=0))

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


def _is_listable(count: int, dim: int) -> bool:
    return count <= LARGEST_LIST and count * dim <= LARGEST_ARRAY
