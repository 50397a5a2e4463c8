"""The image of a domain under a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from muhat._arrays import LARGEST_ARRAY, matrix, vector
from muhat.domains.base import Domain, Preimage
from muhat.domains.norms import p_norm, singular_values_down
from muhat.domains.vectors import Matrix, Vector, check_scale
from muhat.ellipsoids.combined import (
    MOST_CORNERS,
    around_image,
    around_points,
    image_lengths,
)
from muhat.ellipsoids.floors import dual_floor, sampled_floor
from muhat.ellipsoids.result import SmallestEllipsoid
from muhat.errors import InvalidInput


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Image(Domain):
    """{T·x : x in K} for a matrix T of shape (d, K.dim), made by `T @ K`.

    T may be singular or not square: the image may be flat. Records are given in the coordinates
    of K: `preimage()`.
    """

    kind = "image"
    transform: Matrix
    inner: Domain
    center: Vector
    half_widths: Vector
    lower: Vector
    upper: Vector

    def __init__(self, transform: ArrayLike, inner: Domain) -> None:
        T = matrix("transform", transform, "(rows, columns)", columns=inner.dim)
        with np.errstate(over="ignore", invalid="ignore"):
            self._set(transform=T, inner=inner, center=vector("center", T @ inner.center))
            corners = self.vertices()
            if corners is None:
                below, above = inner.reach(-T), inner.reach(T)
                lower, upper = self.center - below, self.center + above
                half_widths = np.asarray(below + above) / 2
            else:
                # Corners show exactly where the image is flat, which a difference would blur.
                lower, upper = corners.min(axis=0), corners.max(axis=0)
                half_widths = np.asarray(upper - lower) / 2
        check_scale(half_widths, flat=True)
        self._set(half_widths=half_widths, lower=lower, upper=upper)

    @property
    def is_symmetric(self) -> bool:
        return self.inner.is_symmetric

    @property
    def is_listed(self) -> bool:
        return self.inner.is_listed

    @property
    def bounding_box(self) -> tuple[Vector, Vector]:
        return self.lower, self.upper

    def preimage(self) -> Preimage:
        source = self.inner.preimage()
        T = self.transform if source.matrix is None else self.transform @ source.matrix
        return Preimage(source.domain, T, self.transform @ source.offset)

    def reach(self, directions: Matrix) -> Vector:
        return self.inner.reach(directions @ self.transform)

    def extreme_point(self, direction: ArrayLike) -> Vector:
        theta = vector("direction", direction, dim=self.dim)
        return np.asarray(self.transform @ self.inner.extreme_point(theta @ self.transform))

    def clip(self, points: ArrayLike) -> Matrix:
        raise InvalidInput(
            "an image T @ K does not clip: give records in the coordinates of K "
            "(`preimage()`), or an inner domain with `clip=`."
        )

    def farthest(self, weights: Vector) -> float:
        corners = self.vertices()
        if corners is not None:
            return float(p_norm((corners - self.center) * weights, 2).max())
        corner = np.maximum(self.center - self.lower, self.upper - self.center)
        stretch = float(np.linalg.norm(weights[:, None] * self.transform, 2))
        return min(
            float(p_norm(weights * corner, 2)),
            stretch * self.inner.farthest(np.ones(self.inner.dim)),
        )

    def vertices(self) -> Matrix | None:
        corners = self.inner.vertices()
        if corners is None or len(corners) * self.dim > LARGEST_ARRAY:
            return None
        return corners @ self.transform.T

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        corners = self.vertices()
        if corners is not None and len(corners) <= MOST_CORNERS:
            return around_points(corners, body, p, weights, tol)
        lengths = image_lengths(self.transform, weights)
        found = self.inner.ellipsoid(body, 2, lengths, tol)
        if self.inner.image_root(self.transform) is not None:
            return around_image(self.transform, found, None, p, weights)
        floor = max(
            dual_floor(self.moment(body, tol), p, weights),
            sampled_floor(self.extreme_point, self.point_sizes(), body, p, weights),
        )
        return around_image(self.transform, found, floor, p, weights)

    def moment(self, body: str, tol: float) -> Matrix | None:
        inner = self.inner.moment(body, tol)
        return None if inner is None else self.transform @ inner @ self.transform.T

    def point_sizes(self) -> Vector:
        return np.asarray(np.abs(self.transform) @ self.inner.point_sizes())

    def inner_axes(self) -> Vector | None:
        root = self.inner.image_root(self.transform)
        return None if root is None else singular_values_down(root)

    def __repr__(self) -> str:
        rows, columns = self.transform.shape
        return f"({rows} × {columns} matrix) @ ({self.inner!r})"
