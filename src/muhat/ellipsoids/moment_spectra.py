"""What multiplicative steps evaluate: second moments of weighted points, and their square roots.

For W (m, N), weights w on the columns s_i of W (or on their pairs s_i − s_j) and u on the rows, any
S with SᵀS = Wᵀdiag(u)W serves in place of diag(u)^½W, so many rows cost no more than N of them:
K = S diag(w) Sᵀ = Q diag(c²) Qᵀ gives the dual value Σc, and R = diag(c)^{−½}QᵀS is the strategy
whose columns have the squared lengths g. If R is square its columns may be divided by their
lengths, each by its own: that strategy is nearly the best long before the weights are. The best
weights may be flat: where floats see no more of c², any c > 0 still makes a strategy.

Structure may know a faster way to the same numbers: whatever has `evaluate` is a `DualProblem`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from muhat.ellipsoids.spans import Array

UNSEEN = 1e-16
"""Of the largest eigenvalue: what is below it are roundings."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The dual value, squared lengths g of the points, variances h of the rows.

    `strategy()` is R (k, N); `even()` is R with columns of length 1 and the variances that go with
    it, None where R is not square or the points are no columns.
    """

    floor: float
    g: Array
    h: Array
    strategy: Callable[[], Array]
    even: Callable[[], tuple[Array, Array] | None]


class DualProblem(Protocol):
    """`count` weights of points and `row_count` weights of rows, and what they are worth."""

    count: int
    row_count: int

    def evaluate(self, w: Array, u: Array) -> Spectrum:
        """At weights w (count,) with Σw = 1, and u (row_count,); LinAlgError where floats fail."""


class Explicitly:
    """Points and rows as they are, by one symmetric eigendecomposition of size k."""

    def __init__(self, points: WeightedPoints, rows: Rows, rank: int) -> None:
        self.points, self.rows, self.rank = points, rows, rank
        self.count, self.row_count = points.count, rows.count

    def evaluate(self, w: Array, u: Array) -> Spectrum:
        S = self.rows.root(u)
        squares, Q = np.linalg.eigh(self.points.moment(S, w))
        squares, Q = squares[-self.rank :], Q[:, -self.rank :]
        c = roots_of(squares)
        R = np.asarray((Q / np.sqrt(c)).T @ S)
        g, h = self.points.squares(R), self.rows.variances(u, S, Q, c)

        def even() -> tuple[Array, Array] | None:
            if not isinstance(self.points, Columns) or len(R) != R.shape[1]:
                return None
            lengths = np.sqrt(g)
            variances = self.rows.even_variances(u, Q, c, lengths)
            return None if variances is None else (R / lengths, variances)

        return Spectrum(float((squares / c).sum()), g, h, lambda: R, even)


def roots_of(squares: Array) -> Array:
    """√c² of eigenvalues, or of the least that floats can see; Σc²/c is about Σ√c²."""
    return np.asarray(np.sqrt(np.maximum(squares, UNSEEN * squares.max(initial=0.0))))


class WeightedPoints(Protocol):
    """What carries the weights: columns, or pairs of columns."""

    count: int

    def moment(self, S: Array, w: Array) -> Array:
        """Σ w_i s_i s_iᵀ for the columns of S (k, N) or their differences, of shape (k, k)."""

    def squares(self, R: Array) -> Array:
        """The squared lengths of the columns of R or of their differences, of shape (count,)."""


class Rows(Protocol):
    """What is summed over the answers: `count` is the number of weights, 1 at p = 2."""

    count: int

    def root(self, u: Array) -> Array:
        """S of shape (k, N) with SᵀS = Wᵀdiag(u)W."""

    def variances(self, u: Array, S: Array, Q: Array, c: Array) -> Array:
        """The squared lengths of the rows of L, W = L·R, R = diag(c)^{−½}QᵀS; (count,)."""

    def even_variances(self, u: Array, Q: Array, c: Array, lengths: Array) -> Array | None:
        """The same for R with the columns divided by `lengths`; None if R is not square."""


class Columns:
    """Weights on the columns themselves: one record more or less."""

    def __init__(self, count: int) -> None:
        self.count = count

    def moment(self, S: Array, w: Array) -> Array:
        return np.asarray((S * w) @ S.T)

    def squares(self, R: Array) -> Array:
        return np.asarray(np.sum(R**2, axis=0))


class Pairs:
    """Weights on the pairs i < j of columns: one record in place of another."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.first, self.second = np.triu_indices(columns, 1)
        self.count = len(self.first)

    def chosen(self, kept: NDArray[np.bool_]) -> Pairs:
        """Some of these pairs, of the same columns."""
        some = copy(self)
        some.first, some.second = self.first[kept], self.second[kept]
        some.count = len(some.first)
        return some

    def laplacian(self, w: Array) -> Array:
        """Λ = Σ w_ij (e_i − e_j)(e_i − e_j)ᵀ, of shape (N, N)."""
        weights = np.zeros((self.columns, self.columns))
        weights[self.first, self.second] = w
        weights += weights.T
        return np.diag(weights.sum(axis=0)) - weights

    def moment(self, S: Array, w: Array) -> Array:
        return np.asarray(S @ self.laplacian(w) @ S.T)

    def squares(self, R: Array) -> Array:
        gram = R.T @ R
        lengths = np.diag(gram)
        return np.asarray((lengths[:, None] + lengths - 2 * gram)[self.first, self.second])


class FewRows:
    """W itself, where it has hardly more rows than columns; at every p."""

    def __init__(self, matrix: Array) -> None:
        self.matrix, self.count = matrix, len(matrix)

    @cached_property
    def inverse(self) -> Array | None:
        return _inverse(self.matrix)

    def root(self, u: Array) -> Array:
        return np.asarray(np.sqrt(u)[:, None] * self.matrix)

    def variances(self, u: Array, S: Array, Q: Array, c: Array) -> Array:
        return np.asarray((Q**2 @ c) / u)

    def even_variances(self, u: Array, Q: Array, c: Array, lengths: Array) -> Array | None:
        if self.inverse is None:
            return None
        L = Q * np.sqrt(c) / np.sqrt(u)[:, None]
        return np.asarray(np.sum(((self.matrix * lengths) @ (self.inverse @ L)) ** 2, axis=1))


class TotalOfRows:
    """p = 2: every S with SᵀS = WᵀW gives the same sum of variances."""

    count = 1

    def __init__(self, root: Array) -> None:
        self._root = root

    @cached_property
    def _inverse(self) -> Array | None:
        return _inverse(self._root)

    def root(self, u: Array) -> Array:
        return self._root

    def variances(self, u: Array, S: Array, Q: Array, c: Array) -> Array:
        return np.array([c.sum()])

    def even_variances(self, u: Array, Q: Array, c: Array, lengths: Array) -> Array | None:
        if self._inverse is None:
            return None
        L = (self._root * lengths) @ (self._inverse @ (Q * np.sqrt(c)))
        return np.array([np.sum(L**2)])


class ManyRows:
    """p > 2 and many more rows than columns: W = B·T is known by Bᵀdiag(u)B and row lengths.

    `squared_rows(X)` gives the squared lengths of the rows of B·X, X (k, k); `basis` is T (k, N),
    the identity if it is None.
    """

    def __init__(
        self,
        count: int,
        gram: Callable[[Array], Array],
        squared_rows: Callable[[Array], Array],
        basis: Array | None = None,
    ) -> None:
        self.count, self._gram, self._squared_rows, self._basis = count, gram, squared_rows, basis
        self._triangle: Array = np.zeros((0, 0))
        self._inner: Array = np.zeros((0, 0))

    def root(self, u: Array) -> Array:
        self._triangle = np.asarray(np.linalg.cholesky(self._gram(u)).T, np.float64)
        return self._triangle if self._basis is None else self._triangle @ self._basis

    def variances(self, u: Array, S: Array, Q: Array, c: Array) -> Array:
        from scipy.linalg import solve_triangular

        self._inner = solve_triangular(self._triangle, Q * np.sqrt(c), check_finite=False)
        return self._squared_rows(self._inner)

    def even_variances(self, u: Array, Q: Array, c: Array, lengths: Array) -> Array | None:
        if self._basis is not None or self._inner.shape[0] != self._inner.shape[1]:
            return None
        return self._squared_rows(lengths[:, None] * self._inner)


def _inverse(matrix: Array) -> Array | None:
    """The inverse of a square matrix, if it has one."""
    if matrix.shape[0] != matrix.shape[1]:
        return None
    try:
        return np.asarray(np.linalg.inv(matrix), np.float64)
    except np.linalg.LinAlgError:
        return None
