"""Arrays of numbers, by one name each; and public ones as they are given: checked, read-only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.errors import InvalidInput

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

LARGEST_LIST = 1 << 16
"""Vertices are listed up to this number ..."""

LARGEST_ARRAY = 1 << 24
"""... and this many numbers in all."""


def vector(name: str, value: Any, *, dim: int | None = None) -> Floats:
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


def matrix(name: str, value: Any, meaning: str, *, columns: int | None = None) -> Floats:
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


def numbers(name: str, value: Any, *, least_axes: int) -> Floats:
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


def _check_sizes(name: str, array: Floats) -> None:
    if not np.isfinite(array).all():
        raise InvalidInput("must be finite", parameter=name)
    if np.abs(array).max() > 1e150:
        raise InvalidInput(
            "must not exceed 1e150; measure the column in another unit", parameter=name
        )


def signs(count: int, width: int) -> Floats | None:
    """All 2^count sign vectors, of shape (2^count, count), if vectors of this width may be listed.

    >>> signs(2, 2).tolist()
    [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]
    """
    if count > 16 or (1 << count) * max(count, width) > LARGEST_ARRAY:
        return None
    codes = np.arange(1 << count)[:, None]
    return np.where(codes >> np.arange(count) & 1, 1.0, -1.0)
