"""Vectors as domains take, move, write and show them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import Floats, vector
from muhat.errors import InvalidInput

Vector = Floats
Matrix = Floats

LARGEST_OFFSET = 1e150
"""Records farther out are first pulled in to here: their squares must stay floats."""

LARGEST_DIM = 10_000_000


def check_scale(half_widths: Vector, *, flat: bool = False) -> None:
    """Refuse sizes whose squares leave the range of floats: no covariance could be stated.

    With `flat`, a coordinate may also have no width at all.
    """
    sizes = half_widths[half_widths != 0] if flat else half_widths
    if sizes.size and not (sizes.min() >= 1e-140 and sizes.max() <= 1e140):
        raise InvalidInput(
            "the domain must be between 1e-140 and 1e140 wide in every coordinate; "
            "measure the column in another unit."
        )


def center_vector(center: ArrayLike | None, dim: int) -> Vector:
    """The given centre, or the origin."""
    return vector("center", np.zeros(dim) if center is None else center, dim=dim)


def dimension(dim: object) -> int:
    """A number of coordinates that vectors can have, or InvalidInput."""
    return _check.count("dim", dim, most=LARGEST_DIM)


def rows(points: ArrayLike, dim: int) -> Matrix:
    """Points as an array whose last axis has length d."""
    try:
        array = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(
            "must be numbers", parameter="points", value=type(points).__name__
        ) from None
    if array.ndim not in (1, 2) or array.shape[-1] != dim:
        raise InvalidInput(
            f"must have shape ({dim},) or (n, {dim})", parameter="points", value=str(array.shape)
        )
    return array


def records(points: ArrayLike, center: Vector) -> Matrix:
    """Records with the centre's coordinate wherever one is not finite."""
    array = rows(points, len(center))
    return np.where(np.isfinite(array), array, center)


def offsets(points: ArrayLike, center: Vector) -> Matrix:
    """x − c for each record, within reach of squares."""
    return pulled_in(records(points, center) - center)


def pulled_in(array: Matrix) -> Matrix:
    """Each row, as it is up to 1e150, else shortened to there along its own ray."""
    largest = np.abs(array).max(axis=-1, keepdims=True)
    return np.asarray(array * (LARGEST_OFFSET / np.maximum(largest, LARGEST_OFFSET)))


def by_columns(function: Callable[..., Matrix], points: Matrix, *arguments: object) -> Matrix:
    """What a kernel's function of coordinates, of shape (d, n), makes of points as rows."""
    columns = np.ascontiguousarray(np.atleast_2d(points).T)
    return np.ascontiguousarray(function(columns, *arguments).T).reshape(points.shape)


def hexed(values: Vector) -> list[str]:
    """Floats to the last bit, for a digest."""
    return [value.hex() for value in values.tolist()]


def unhexed(values: list[str]) -> list[float]:
    """The floats that `hexed` wrote."""
    return [float.fromhex(value) for value in values]


def short(values: Vector) -> str:
    """A vector as people read it: all of a short one, the ends of a long one."""
    shown = [f"{value:g}" for value in values]
    if len(shown) > 6:
        shown = [*shown[:3], "…", *shown[-1:]]
    return "[" + ", ".join(shown) + "]"
