"""Products of maps that are never multiplied out: one after the other, and Kronecker's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from muhat._arrays import Floats
from muhat.workloads.cells import width_of, writable
from muhat.workloads.linear_map import BLOCK, LinearMap


class Composition(LinearMap):
    """A·B for a map A (m, N) and a matrix B (N, k)."""

    def __init__(self, outer: LinearMap, inner: Floats) -> None:
        self.outer, self.inner = outer, inner
        self.shape = (outer.shape[0], inner.shape[1])

    def apply(self, x: Floats) -> Floats:
        return self.outer.apply(self.inner @ x)

    def transposed(self, y: Floats) -> Floats:
        return np.asarray(self.inner.T @ self.outer.transposed(y))

    def row_norms(self) -> Floats:
        total = np.zeros(self.shape[0])
        width = max(1, BLOCK // self.shape[0])
        for start in range(0, self.shape[1], width):
            block = self.outer.apply(np.ascontiguousarray(self.inner[:, start : start + width]))
            total += np.einsum("ij,ij->i", block, block)
        return np.sqrt(total)

    def __repr__(self) -> str:
        return f"<{self.outer!r} after a matrix of {self.inner.shape}>"


class Multiple(LinearMap):
    """c·A for a number c and a map A."""

    def __init__(self, factor: float, inner: LinearMap) -> None:
        self.factor, self.inner, self.shape = factor, inner, inner.shape

    def apply(self, x: Floats) -> Floats:
        return self.factor * self.inner.apply(x)

    def transposed(self, y: Floats) -> Floats:
        return self.factor * self.inner.transposed(y)

    def row_norms(self) -> Floats:
        return abs(self.factor) * self.inner.row_norms()

    def column_norms(self) -> Floats:
        return abs(self.factor) * self.inner.column_norms()

    def __repr__(self) -> str:
        return f"<{self.factor:g} times {self.inner!r}>"


class Centred(LinearMap):
    """A·(I − J/N), J all ones: what a map A (m, N) says of differences between cells.

    >>> from muhat.workloads import prefix
    >>> Centred(prefix(4)).apply(np.ones(4)).tolist()
    [0.0, 0.0, 0.0, 0.0]
    """

    def __init__(self, inner: LinearMap) -> None:
        self.inner, self.shape = inner, inner.shape

    def apply(self, x: Floats) -> Floats:
        return self.inner.apply(x - x.mean(axis=0))

    def transposed(self, y: Floats) -> Floats:
        found = self.inner.transposed(y)
        return np.asarray(found - found.mean(axis=0))

    def row_norms(self) -> Floats:
        squares = self.inner.row_norms() ** 2
        left = squares - self.inner.apply(np.ones(self.shape[1])) ** 2 / self.shape[1]
        # Of a row whose entries are all the same only rounding is left.
        return np.sqrt(np.where(left > squares * 2.0**-40, left, 0.0))

    def __repr__(self) -> str:
        return f"<{self.inner!r} of differences>"


class KroneckerMap(LinearMap):
    """F₁ ⊗ F₂ ⊗ … for matrices or maps; products go along one axis at a time."""

    def __init__(self, factors: Sequence[LinearMap | Floats]) -> None:
        self.factors = tuple(factors)
        rows = math.prod(factor.shape[0] for factor in self.factors)
        columns = math.prod(factor.shape[1] for factor in self.factors)
        self.shape = (rows, columns)

    def apply(self, x: Floats) -> Floats:
        return self._along_axes(x, transposed=False)

    def transposed(self, y: Floats) -> Floats:
        return self._along_axes(y, transposed=True)

    def row_norms(self) -> Floats:
        writable("the row norms", self.shape[0])
        return kronecker([_norms(factor, axis=1) for factor in self.factors])

    def column_norms(self) -> Floats:
        writable("the column norms", self.shape[1])
        return kronecker([_norms(factor, axis=0) for factor in self.factors])

    def _along_axes(self, array: Floats, *, transposed: bool) -> Floats:
        """Factors that shrink their axis come first, so that little is held in between."""
        inner, outer = (0, 1) if transposed else (1, 0)
        writable("the product", self.shape[outer] * width_of(array))
        sizes = [factor.shape[inner] for factor in self.factors]
        result = np.asarray(array, dtype=np.float64)
        growth = [factor.shape[outer] / max(factor.shape[inner], 1) for factor in self.factors]
        for axis in sorted(range(len(sizes)), key=growth.__getitem__):
            factor = self.factors[axis]
            before = math.prod(sizes[:axis])
            block = result.reshape(before, sizes[axis], -1)
            moved = _along(factor, block, transposed=transposed)
            sizes[axis] = factor.shape[outer]
            result = np.ascontiguousarray(moved)
        return result.reshape(self.shape[outer], *array.shape[1:])

    def __repr__(self) -> str:
        shapes = " ⊗ ".join(f"{rows} × {columns}" for rows, columns in self.shapes)
        return f"<KroneckerMap {shapes}>"

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """The shapes of the factors."""
        return [cast("tuple[int, int]", factor.shape) for factor in self.factors]


def kronecker(vectors: Sequence[Floats]) -> Floats:
    """v₁ ⊗ v₂ ⊗ … of vectors."""
    product = vectors[0]
    for vector in vectors[1:]:
        product = np.asarray(np.kron(product, vector), np.float64)
    return product


def times(number: float, factor: LinearMap | Floats) -> LinearMap | Floats:
    """number·factor, of the same kind."""
    if isinstance(factor, np.ndarray):
        return np.asarray(number * factor)
    if isinstance(factor, KroneckerMap):
        first, *others = factor.factors
        return KroneckerMap([times(number, first), *others])
    return Multiple(number, factor)


def _along(factor: LinearMap | Floats, block: Floats, *, transposed: bool) -> Floats:
    """The factor along the middle axis of a block of shape (before, n, after)."""
    if isinstance(factor, np.ndarray):
        matrix = factor.T if transposed else factor
        return np.asarray(matrix @ block)
    columns = np.ascontiguousarray(block.transpose(1, 0, 2)).reshape(block.shape[1], -1)
    moved = factor.transposed(columns) if transposed else factor.apply(columns)
    return moved.reshape(len(moved), block.shape[0], -1).transpose(1, 0, 2)


def _norms(factor: LinearMap | Floats, axis: int) -> Floats:
    if isinstance(factor, np.ndarray):
        return np.asarray(np.linalg.norm(factor, axis=axis))
    return factor.row_norms() if axis == 1 else factor.column_norms()
