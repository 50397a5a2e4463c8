"""Public vectors and matrices as domains take them: checked, finite, read-only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat import _check
from muhat.errors import InvalidInput

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

LARGEST_OFFSET = 1e150
"""Records farther out are first pulled in to here: their squares must stay floats."""

LARGEST_DIM = 10_000_000

LARGEST_LIST = 1 << 16
"""A domain lists its vertices up to this number ..."""

LARGEST_ARRAY = 1 << 24
"""... and this many numbers in all."""


def vector(name: str, value: Any, *, dim: int | None = None) -> Vector:
    """A read-only finite vector of public numbers, or InvalidInput."""
    array = numbers(name, value, least_axes=1)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInput(
            "must be a list of numbers, one a column", parameter=name, value=f"shape {array.shape}"
        )
    _check_sizes(name, array)
    if dim is not None and array.size != dim:
        raise InvalidInput(
            f"must have {dim} entries, one a coordinate", parameter=name, value=str(array.size)
        )
    array.flags.writeable = False
    return array


def matrix(name: str, value: Any, meaning: str, *, columns: int | None = None) -> Matrix:
    """A read-only finite matrix of public numbers, or InvalidInput that says what it means."""
    array = numbers(name, value, least_axes=0)
    if array.ndim != 2 or array.size == 0:
        raise InvalidInput(f"must have shape {meaning}", parameter=name, value=str(array.shape))
    if columns is not None and array.shape[1] != columns:
        raise InvalidInput(
            f"must have shape {meaning} with {columns} columns",
            parameter=name,
            value=str(array.shape),
        )
    _check_sizes(name, array)
    array.flags.writeable = False
    return array


def numbers(name: str, value: Any, *, least_axes: int) -> Matrix:
    """A new array of floats from numbers of any kind but complex ones, or InvalidInput."""
    try:
        array = np.asarray(value)
        is_text = array.dtype == object and any(isinstance(x, str | bytes) for x in array.flat)
        if array.dtype.kind not in "biufO" or is_text:
            raise TypeError
        # Adding 0.0 turns −0.0 into 0.0, so that equal sets have equal descriptions.
        return np.array(array, dtype=np.float64, ndmin=least_axes, order="C") + 0.0
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("must be numbers", parameter=name, value=type(value).__name__) from None


def _check_sizes(name: str, array: Matrix) -> None:
    if not np.isfinite(array).all():
        raise InvalidInput("must be finite", parameter=name)
    if np.abs(array).max() > 1e150:
        raise InvalidInput(
            "must not exceed 1e150; measure the column in another unit", parameter=name
        )


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


def signs(count: int, width: int) -> Matrix | None:
    """All 2^count sign vectors, of shape (2^count, count), if vectors of this width may be listed.

    >>> signs(2, 2).tolist()
    [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]
    """
    if count > 16 or (1 << count) * max(count, width) > LARGEST_ARRAY:
        return None
    codes = np.arange(1 << count)[:, None]
    return np.where(codes >> np.arange(count) & 1, 1.0, -1.0)


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
