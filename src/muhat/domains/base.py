"""What every domain can say about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from muhat.domains.clips import Clip, GaugeClip
from muhat.domains.lattice_gauges import Gauge
from muhat.domains.vectors import (
    LARGEST_ARRAY,
    Matrix,
    Vector,
    vector,
)
from muhat.errors import InvalidInput


class Domain(ABC):
    """A public, bounded set K of R^d in which every record lies after clipping.

    Where K is not convex (finitely many points, tensors), its support function, widths and
    vertices are those of its convex hull, where the mean lies. `center` is a point c of the
    hull, of shape (d,): the centre of symmetry if `is_symmetric`, else an interior point.
    `half_widths`, of shape (d,), is half the width of K along each axis, 0 where K is flat.

    `K + L` is the Minkowski sum, `K + v` a translation, `K * L` the product (coordinates one
    after the other), `T @ K` the image under a matrix.
    """

    kind: ClassVar[str]
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

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A description as JSON, stable enough to be hashed."""

    @classmethod
    @abstractmethod
    def from_fields(cls, fields: dict[str, Any]) -> Domain:
        """The domain that `to_dict` described."""

    @property
    def dim(self) -> int:
        """The dimension d."""
        return len(self.center)

    @property
    def is_symmetric(self) -> bool:
        """Whether K − c = −(K − c) is known, so that K − K = 2(K − c)."""
        return True

    @property
    def lifts(self) -> bool:
        """Whether records are given in other coordinates than those of K."""
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

    def preimage(self) -> Preimage:
        """K as the affine image of a domain that records can be clipped to."""
        return Preimage(self, None, np.zeros(self.dim))

    def _set(self, **fields: Any) -> None:
        """Set fields of a frozen domain while it is made; arrays become read-only."""
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __add__(self, other: Any) -> Domain:
        from muhat.domains.combine import minkowski_sum, translate

        return minkowski_sum(self, other) if isinstance(other, Domain) else translate(self, other)

    def __radd__(self, offset: Any) -> Domain:
        return self.__add__(offset)

    def __mul__(self, other: object) -> Domain:
        from muhat.domains.combine import product

        if not isinstance(other, Domain):
            return NotImplemented
        return product(self, other)

    def __rmatmul__(self, transform: Any) -> Domain:
        from muhat.domains.combine import linear_image

        return linear_image(transform, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))


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
