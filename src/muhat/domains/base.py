"""What every domain can say about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat.errors import InvalidInput

Vector = NDArray[np.float64]


class Domain(ABC):
    """A public, convex, bounded set K of R^d in which every record lies after clipping.

    `center` is its centre of symmetry c, of shape (d,).
    """

    center: Vector

    @property
    @abstractmethod
    def half_widths(self) -> Vector:
        """Half the width of K along each axis, of shape (d,)."""

    @abstractmethod
    def support(self, direction: ArrayLike) -> float:
        """h_K(θ) = max over x in K of ⟨θ, x⟩."""

    @abstractmethod
    def clip(self, points: ArrayLike) -> NDArray[np.float64]:
        """Each point, of shape (d,) or (n, d), moved into K by itself."""

    @abstractmethod
    def farthest(self, weights: Vector) -> float:
        """An upper bound on ‖diag(weights)·(x − c)‖₂ over x in K."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A description as JSON, stable enough to be hashed."""

    @property
    def dim(self) -> int:
        """The dimension d."""
        return len(self.center)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))


def vector(name: str, value: Any, *, dim: int | None = None) -> Vector:
    """A read-only finite vector of public numbers, or InvalidInput."""
    try:
        array = np.array(value, dtype=np.float64, ndmin=1)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be numbers; got {type(value).__name__}.") from None
    if array.ndim != 1 or array.size == 0:
        raise InvalidInput(
            f"{name} must be a list of numbers, one a column; got shape {array.shape}."
        )
    if not np.isfinite(array).all():
        raise InvalidInput(f"{name} must be finite.")
    if np.abs(array).max() > 1e150:
        raise InvalidInput(f"{name} must not exceed 1e150; measure the column in another unit.")
    if dim is not None and array.size != dim:
        raise InvalidInput(f"{name} must have {dim} entries, one a coordinate; got {array.size}.")
    array.flags.writeable = False
    return array


def check_scale(half_widths: Vector) -> None:
    """Refuse sizes whose squares leave the range of floats: no covariance could be stated."""
    if half_widths.min() < 1e-140 or half_widths.max() > 1e140:
        raise InvalidInput(
            "the domain must be between 1e-140 and 1e140 wide in every coordinate; "
            "measure the column in another unit."
        )


def center_vector(center: ArrayLike | None, dim: int) -> Vector:
    """The given centre, or the origin."""
    return vector("center", np.zeros(dim) if center is None else center, dim=dim)


def rows(points: ArrayLike, dim: int) -> NDArray[np.float64]:
    """Points as an array whose last axis has length d."""
    array = np.asarray(points, dtype=np.float64)
    if array.ndim not in (1, 2) or array.shape[-1] != dim:
        raise InvalidInput(f"points must have shape ({dim},) or (n, {dim}); got {array.shape}.")
    return array


def hexed(values: Vector) -> list[str]:
    """Floats to the last bit, for a digest."""
    return [float(value).hex() for value in values]


def short(values: Vector) -> str:
    """A vector as people read it: all of a short one, the ends of a long one."""
    shown = [f"{value:g}" for value in values]
    if len(shown) > 6:
        shown = [*shown[:3], "…", *shown[-1:]]
    return "[" + ", ".join(shown) + "]"
