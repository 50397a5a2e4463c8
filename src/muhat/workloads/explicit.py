"""Matrices that are given as they are."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.workloads.base import Workload
from muhat.workloads.cells import product, sizes

Cells = NDArray[np.int64]

LARGEST_ENTRY, LEAST_ENTRY = 1e150, 1e-150
LEAST_BESIDE = 1e-100
"""Squares of entries must stay floats, and beside each other."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Explicit(Workload, keys=("rows", "cells", "entries")):
    """A dense matrix of shape (m, N).

    A column of zeros is a cell that no query counts: it is allowed, and its records cost and
    change nothing. `cells` is the shape of the histogram, (N,) if left out.
    """

    kind = "matrix"
    matrix: Floats
    cells: tuple[int, ...] = field(init=False)
    shape: tuple[int, int] = field(init=False)

    def __init__(self, matrix: ArrayLike, cells: tuple[int, ...] | None = None) -> None:
        array = _exact_floats(matrix)
        if array.ndim != 2 or not array.size:
            raise InvalidInput(
                f"the matrix must have shape (m, N), one query a row; got {array.shape}."
            )
        check_entries(array)
        shape = _histogram(cells, array.shape[1])
        self._set(matrix=array, cells=shape, shape=array.shape)

    def apply(self, x: Floats) -> Floats:
        return np.asarray(self.matrix @ x)

    def transposed(self, y: Floats) -> Floats:
        return np.asarray(self.matrix.T @ y)

    def gram(self) -> Floats:
        self._refuse_large_gram()
        return np.asarray(self.matrix.T @ self.matrix)

    def dense(self) -> Floats:
        return self.matrix.copy()

    def to_dict(self) -> dict[str, Any]:
        entries = base64.b64encode(self.matrix.astype("<f8").tobytes()).decode("ascii")
        return {
            "workload": self.kind,
            "rows": self.shape[0],
            "cells": list(self.cells),
            "entries": entries,
        }

    @classmethod
    def built(cls, rows: int, cells: tuple[int, ...], entries: str) -> Explicit:
        numbers = np.frombuffer(base64.b64decode(entries), dtype="<f8")
        return cls(numbers.reshape(rows, -1), cells)

    def describe(self) -> str:
        return f"{self.shape[0]:,} queries of {self.shape[1]:,} cells"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Sparse(Workload, keys=("rows", "cells", "starts", "columns", "entries")):
    """A sparse matrix of shape (m, N), kept by rows (scipy's csr)."""

    kind = "sparse"
    matrix: Any
    cells: tuple[int, ...] = field(init=False)
    shape: tuple[int, int] = field(init=False)

    def __init__(self, matrix: Any, cells: tuple[int, ...] | None = None) -> None:
        from scipy.sparse import csr_array

        try:
            array = csr_array(matrix, copy=True)
            array.sum_duplicates()
            array.data = _exact_floats(array.data)
        except (TypeError, ValueError):
            raise InvalidInput("the matrix must be sparse and of numbers.") from None
        array.eliminate_zeros()
        if array.ndim != 2:
            raise InvalidInput(f"the matrix must have shape (m, N); got {array.shape}.")
        check_entries(array.data)
        rows, columns = int(array.shape[0]), int(array.shape[1])
        self._set(matrix=array, cells=_histogram(cells, columns), shape=(rows, columns))

    def apply(self, x: Floats) -> Floats:
        return np.asarray(self.matrix @ x)

    def transposed(self, y: Floats) -> Floats:
        return np.asarray(self.matrix.T @ y)

    def gram(self) -> Floats:
        self._refuse_large_gram()
        return np.asarray((self.matrix.T @ self.matrix).toarray())

    def row_norms(self) -> Floats:
        return np.asarray(np.sqrt((self.matrix**2).sum(axis=1)), dtype=np.float64).ravel()

    def column_norms(self) -> Floats:
        return np.asarray(np.sqrt((self.matrix**2).sum(axis=0)), dtype=np.float64).ravel()

    def to_dict(self) -> dict[str, Any]:
        return {
            "workload": self.kind,
            "rows": self.shape[0],
            "cells": list(self.cells),
            "starts": self.matrix.indptr.tolist(),
            "columns": self.matrix.indices.tolist(),
            "entries": [value.hex() for value in self.matrix.data.tolist()],
        }

    @classmethod
    def built(
        cls, rows: int, cells: tuple[int, ...], starts: Cells, columns: Cells, entries: Floats
    ) -> Sparse:
        from scipy.sparse import csr_array

        shape = (rows, product("cells", cells))
        return cls(csr_array((entries, columns, starts), shape=shape), cells)

    def describe(self) -> str:
        return f"{self.shape[0]:,} sparse queries of {self.shape[1]:,} cells"


def explicit(matrix: Any, cells: tuple[int, ...] | None = None) -> Explicit | Sparse:
    """A workload from a dense array or a scipy sparse one."""
    return Sparse(matrix, cells) if hasattr(matrix, "tocsr") else Explicit(matrix, cells)


def check_entries(entries: NDArray[Any]) -> None:
    """Refuse entries that are not finite, all zero, or whose squares leave the floats."""
    if not np.isfinite(entries).all():
        raise InvalidInput("the matrix must be finite; it holds NaN or infinity.")
    sizes = np.abs(entries[entries != 0])
    if not sizes.size:
        raise InvalidInput("the matrix must ask for something; every entry is 0.")
    least, largest = float(sizes.min()), float(sizes.max())
    if not LEAST_ENTRY <= largest <= LARGEST_ENTRY:
        raise InvalidInput(
            f"the largest entry of the matrix must lie between {LEAST_ENTRY:g} and "
            f"{LARGEST_ENTRY:g}; got {largest:g}."
        )
    if least < LEAST_BESIDE * largest:
        raise InvalidInput(
            f"the entries of the matrix must be 0, or at least {LEAST_BESIDE:g} of the largest; "
            f"got {least:g}."
        )


def _exact_floats(value: Any) -> Floats:
    """The numbers as floats, or InvalidInput where they are none or would change."""
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidInput("the matrix must not be a masked array. Fill it: .filled(0).")
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "buifO":
            raise TypeError
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("the matrix must be an array of real numbers.") from None
    if given.dtype.kind in "iuO" and not np.array_equal(array.astype(object), given.astype(object)):
        raise InvalidInput(
            "the matrix must hold numbers that floats can hold: integers beyond 2^53 cannot."
        )
    return array + 0.0  # −0 and 0 are one number, and the digest must agree


def _histogram(cells: tuple[int, ...] | None, columns: int) -> tuple[int, ...]:
    if cells is None:
        return (columns,)
    shape = sizes("cells", cells)
    if product("cells", shape) != columns:
        raise InvalidInput(
            f"must multiply to the {columns} columns of the matrix",
            parameter="cells",
            value=str(shape),
        )
    return shape
