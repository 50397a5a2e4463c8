"""The image of a domain under a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from muhat.domains.base import Domain, Preimage
from muhat.domains.norms import p_norm
from muhat.domains.vectors import (
    LARGEST_ARRAY,
    Matrix,
    Vector,
    check_scale,
    hexed,
    matrix,
    unhexed,
    vector,
)
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

    def to_dict(self) -> dict[str, Any]:
        return {
            "domain": self.kind,
            "transform": [hexed(row) for row in self.transform],
            "inner": self.inner.to_dict(),
        }

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Image:
        from muhat.domains import from_dict

        return cls([unhexed(row) for row in fields["transform"]], from_dict(fields["inner"]))

    def __repr__(self) -> str:
        rows, columns = self.transform.shape
        return f"({rows} × {columns} matrix) @ ({self.inner!r})"
