"""Records as points of the unit ball: the smallest ellipsoid around their domain, unrolled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from muhat import domains
from muhat._arrays import LARGEST_ARRAY, matrix, vector
from muhat.domains import Domain
from muhat.domains.base import Preimage
from muhat.domains.vectors import Matrix, Vector, hexed, unhexed
from muhat.ellipsoids import SmallestEllipsoid, smallest_ellipsoid
from muhat.errors import InvalidInput

FLAT = 1e-10
"""Half-axes shorter than this, in units of the coordinates' own, are what rounding leaves of 0."""


@dataclass(frozen=True, eq=False)
class BallMap:
    """A domain of R^d inside the ellipsoid center + axes·(unit ball of R^r).

    Attributes:
        domain: where records lie; others are clipped to it.
        center: shape (d,).
        axes: shape (d,) if the ellipsoid has the coordinates' axes, else (d, r).

    >>> from muhat.domains import Box
    >>> BallMap.around(Box([0, 0], [2, 8])).axes.round(3).tolist()
    [2.236, 4.472]
    """

    domain: Domain
    center: Vector
    axes: Matrix

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Domain):
            kind = type(self.domain).__name__
            raise InvalidInput("must be a Domain", parameter="domain", value=kind)
        dim = self.domain.dim
        object.__setattr__(self, "center", vector("center", self.center, dim=dim))
        if np.ndim(self.axes) == 1:
            axes = vector("axes", self.axes, dim=dim)
            lengths = axes
        else:
            axes = matrix("axes", self.axes, "(coordinates, axes)")
            lengths = np.abs(axes).max(axis=0)
            if axes.shape[0] != dim or axes.shape[1] > dim:
                raise InvalidInput(
                    f"axes must have shape ({dim}, at most {dim}); got {axes.shape}."
                )
        if not (lengths > 0).all():
            raise InvalidInput("axes must be longer than 0.")
        object.__setattr__(self, "axes", axes)

    @classmethod
    def around(cls, domain: Domain, p: float = 2, weights: ArrayLike | None = None) -> Self:
        """The smallest ellipsoid for errors ‖diag(weights)·error‖_p."""
        found = smallest_ellipsoid(domain, p, "shifted", weights=weights)
        center = domain.center if found.shift is None else found.shift
        return cls(domain, center, _half_axes(found))

    @property
    def rank(self) -> int:
        """r, below d if the domain is flat."""
        return int(self.axes.shape[-1])

    @property
    def record_dim(self) -> int:
        """The number of coordinates of a record."""
        return self._source.domain.record_dim

    def squares(self, weights: tuple[float, ...] | None = None) -> Vector:
        """The squares of the half-axes of diag(weights)·ellipsoid, of shape (r,)."""
        axes = self._weighted(weights)
        if axes.ndim == 1:
            return np.asarray(axes**2)
        return np.asarray(np.linalg.svd(axes, compute_uv=False) ** 2)

    def point(self, y: Vector) -> Vector:
        """Where a point of R^r is in the domain's coordinates."""
        moved = self.axes * y if self.axes.ndim == 1 else self.axes @ y
        return np.asarray(self.center + moved)

    def polar(self, records: Matrix) -> tuple[Vector, Matrix]:
        """‖y‖ from 0 to 1 and y/‖y‖, for the point y of every record; shapes (rows,), (rows, r).

        Clipped to the domain first, a coordinate that is not finite counting as the centre's. In
        the centre itself the direction is 0.
        """
        # A warning would depend on the record.
        with np.errstate(all="ignore"):
            inside = self._source.domain.clip(records)
            if self._source.matrix is not None:
                inside = inside @ self._source.matrix.T + self._source.offset
            return self._of_points(inside)

    def stretched(
        self, points: Matrix, weights: tuple[float, ...] | None = None
    ) -> tuple[Vector, Vector]:
        """‖y‖ and ‖diag(weights)·axes·y‖²/‖y‖² for points of the domain, each of shape (rows,)."""
        lengths, directions = self._of_points(points)
        axes = self._weighted(weights)
        mapped = directions * axes if axes.ndim == 1 else directions @ axes.T
        return lengths, np.sum(mapped**2, axis=1)

    def _of_points(self, points: Matrix) -> tuple[Vector, Matrix]:
        offset = points - self.center
        y = offset / self.axes if self.axes.ndim == 1 else offset @ self._inverse.T
        y = np.where(np.isfinite(y), y, 0.0)
        # Measured by the largest coordinate first: its square must stay a float.
        largest = np.abs(y).max(axis=1, keepdims=True)
        y = y / np.where(largest > 0, largest, 1.0)
        length = np.sqrt(np.sum(y**2, axis=1, keepdims=True))
        directions = y / np.where(length > 0, length, 1.0)
        return np.minimum(length * largest, 1.0)[:, 0], directions

    def _weighted(self, weights: tuple[float, ...] | None) -> Matrix:
        if weights is None:
            return self.axes
        stretch = np.array(weights)
        return np.asarray(self.axes * (stretch if self.axes.ndim == 1 else stretch[:, None]))

    def to_dict(self) -> dict[str, Any]:
        """A description as JSON; axes that are all the same are one number."""
        axes: Any = [hexed(row) for row in self.axes] if self.axes.ndim == 2 else hexed(self.axes)
        if self.axes.ndim == 1 and (self.axes == self.axes[0]).all():
            axes = axes[0]
        return {"domain": self.domain.to_dict(), "center": hexed(self.center), "axes": axes}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The map that `to_dict` described."""
        domain, axes = domains.from_dict(fields["domain"]), fields["axes"]
        if isinstance(axes, str):
            made = np.full(domain.dim, float.fromhex(axes))
        elif isinstance(axes[0], str):
            made = np.array(unhexed(axes))
        else:
            made = np.array([unhexed(row) for row in axes])
        return cls(domain, np.array(unhexed(fields["center"])), made)

    @cached_property
    def _source(self) -> Preimage:
        return self.domain.preimage()

    @cached_property
    def _inverse(self) -> Matrix:
        """Of dense axes, with every coordinate in its own unit."""
        units = np.abs(self.axes).max(axis=1)
        units = np.where(units > 0, units, 1.0)
        return np.asarray(np.linalg.pinv(self.axes / units[:, None]) / units)


def _half_axes(found: SmallestEllipsoid) -> Matrix:
    """A vector if diagonal, else as many independent columns as the ellipsoid is wide."""
    wide = found.scales > 0
    if not wide.any():
        raise InvalidInput("the domain is a single point: its mean is known without asking.")
    if found.factor is None and wide.all():
        return found.scales
    dim = len(found.scales)
    if dim**2 > LARGEST_ARRAY:
        raise InvalidInput(f"an ellipsoid of {dim} axes that is flat or oblique is not built.")
    if found.factor is None:
        return np.asarray(np.diag(found.scales)[:, wide])
    units = np.where(wide, found.scales, 1.0)
    left, lengths, _ = np.linalg.svd(found.factor / units[:, None], full_matrices=False)
    kept = lengths > FLAT * lengths[0]
    return np.asarray(units[:, None] * (left * lengths)[:, kept])
