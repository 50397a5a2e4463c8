"""Matrices that know their structure and are never built unless somebody asks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from muhat._arrays import Floats
from muhat.errors import InvalidInput

LARGEST_DENSE = 1 << 26
"""The most numbers that `dense()` writes out."""

BLOCK = 1 << 22
"""How many numbers a product with many vectors holds at a time."""


class LinearMap(ABC):
    """A real matrix of shape (m, N) that is known by what it does to vectors.

    `map @ x` takes x of shape (N,) or (N, k), or another map; `map.transposed(y)` is Aᵀy.
    """

    shape: tuple[int, int]

    __array_ufunc__ = None  # numpy leaves `array @ map` to us

    @abstractmethod
    def apply(self, x: Floats) -> Floats:
        """A·x for x of shape (N,) or (N, k)."""

    @abstractmethod
    def transposed(self, y: Floats) -> Floats:
        """Aᵀ·y for y of shape (m,) or (m, k)."""

    def row_norms(self) -> Floats:
        """The Euclidean length of every row, of shape (m,)."""
        return np.asarray(np.linalg.norm(self.dense(), axis=1))

    def column_norms(self) -> Floats:
        """The Euclidean length of every column, of shape (N,)."""
        return np.asarray(np.linalg.norm(self.dense(), axis=0))

    def dense(self) -> Floats:
        """The matrix itself, of shape (m, N); refused where it would not fit."""
        rows, columns = self.shape
        if rows * columns > LARGEST_DENSE:
            raise InvalidInput(
                f"a dense matrix of {rows} × {columns} is not built; multiply by it instead."
            )
        if columns <= rows:
            return self.apply(np.eye(columns))
        return np.ascontiguousarray(self.transposed(np.eye(rows)).T)

    def __matmul__(self, other: Any) -> Floats:
        if isinstance(other, LinearMap):
            other = other.dense()
        return self.apply(operand("the vector", other, self.shape[1]))

    def __rmatmul__(self, other: Any) -> Floats:
        array = np.asarray(other)
        return self.transposed(operand("the vector", array.T, self.shape[0])).T

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        return self.dense() if dtype is None else self.dense().astype(dtype)


def operand(name: str, value: ArrayLike, length: int) -> Floats:
    """One vector or several side by side, as floats with `length` rows, or InvalidInput."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("must be numbers", parameter=name, value=type(value).__name__) from None
    if array.ndim not in (1, 2) or array.shape[0] != length:
        raise InvalidInput(
            f"must have shape ({length},) or ({length}, k)", parameter=name, value=str(array.shape)
        )
    return array
