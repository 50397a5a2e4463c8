"""The dual of the smallest ellipsoid by multiplicative steps with Anderson acceleration.

For a matrix W (m, N), weights w on the columns s_i of W (or on their pairs s_i − s_j) and u on the
rows, Σw = 1, ‖u‖_q = 1, q = p/(p − 2), the dual value is the nuclear norm

    F(w, u) = ‖diag(u)^½ W diag(w)^½‖_*,        max F = Γ_p.

It is linear along any fixed orthogonal factor in √w, and in √u: with P the polar factor at the
weights at hand, F(w', u) ≥ ⟨P, diag(u)^½ W diag(w')^½⟩, with equality at w' = w. The largest right
side is at w' ∝ w·g², g_i = s_iᵀM⁻¹s_i, and in u at e' ∝ (√u·h)^{2q/(2q−1)}, e = u^q, h_j = M_jj. So
each of the two steps climbs. Anderson's acceleration in log w and log e needs one symmetric
eigendecomposition a step and 10 to 60 steps; a step that loses value is taken back.

Any S with SᵀS = Wᵀdiag(u)W serves in place of diag(u)^½W, so many rows cost no more than N of them:
K = S diag(w) Sᵀ = Q diag(c²) Qᵀ gives F = Σc, and R = diag(c)^{−½}QᵀS is the strategy whose columns
have the squared lengths g. If R is square its columns may be divided by their lengths, each by its
own: that strategy is nearly the best long before the weights are.

Nothing here is proved: see `moment_floors` and `workloads.proofs`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from muhat._progress import Progress
from muhat.ellipsoids.interior_point import dual_order, trace_norm
from muhat.ellipsoids.spans import Array

MEMORY = 15
LARGEST_LOG_STEP = 1.0
DEEPEST = 40.0  # weights below exp(−40) of the largest are as good as none
LOSS = 1e-9  # how much of the dual value a step may lose
LEAST_DAMPING = 1e-2


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


@dataclass(frozen=True, eq=False)
class Ascent:
    """Weights w (points) and u (rows) of the best floor, and the strategy of the best value.

    `strategy` R (k, N), k the rank, is scaled so that the longest of its points has length 1.
    """

    weights: Array
    row_weights: Array
    strategy: Array
    value: float
    floor: float
    iterations: int

    @property
    def gap(self) -> float:
        return self.value / self.floor - 1


@dataclass(frozen=True, eq=False)
class _Place:
    """Where the search stands: the logarithms of the weights, and the plain step from there."""

    logs: Array
    step: Array
    floor: float


def ascend(
    points: WeightedPoints,
    rows: Rows,
    rank: int,
    p: float,
    tol: float,
    *,
    limit: int = 200,
    start: tuple[Array, Array] | None = None,
) -> Ascent:
    """Climb until the gap is `tol`, or `limit` eigendecompositions are used up.

    `rank` is the dimension that the points span, `start` the weights of points and rows to begin
    with, equal ones if it is None. Raises FloatingPointError if not even the first evaluation
    succeeds.

    >>> W = np.tril(np.ones((2, 2)))
    >>> f"{ascend(Columns(2), TotalOfRows(W), 2, 2.0, 1e-9).value:.6f}"  # the golden ratio
    '1.618034'
    """
    with np.errstate(all="ignore"), Progress(limit, "planning") as progress:
        return _WeightSearch(points, rows, rank, p, progress).run(tol, limit, start)


class _WeightSearch:
    def __init__(
        self, points: WeightedPoints, rows: Rows, rank: int, p: float, progress: Progress
    ) -> None:
        self.points, self.rows, self.rank, self.progress = points, rows, rank, progress
        self.p, self.q = p, dual_order(p)
        self.split, self.single = points.count, isinstance(points, Columns)
        self.value, self.floor, self.steps = np.inf, 0.0, 0
        self.strategy = np.zeros((0, 0))
        self.best: tuple[Array, Array] = np.zeros(0), np.zeros(0)
        self.history: list[tuple[Array, Array]] = []

    def run(self, tol: float, limit: int, start: tuple[Array, Array] | None) -> Ascent:
        w, u = start or (np.ones(self.points.count), np.ones(self.rows.count))
        e = np.ones(len(u)) if np.isinf(self.q) else u**self.q
        logs = np.log(np.maximum(np.concatenate([w, e]), 1e-300))
        here: _Place | None = None
        damping, plain = 1.0, True
        while True:
            there = self._try(logs)
            if here is None and there is None:
                raise FloatingPointError("the points do not span their space in floats")
            if self.value <= self.floor * (1 + tol) or self.steps == limit:
                break
            if there is not None and (here is None or there.floor >= here.floor * (1 - LOSS)):
                here, damping = there, min(1.0, 2 * damping)
                plain, logs = self._next(here, damping)
                continue
            assert here is not None
            damping = damping / 2 if plain else damping
            if damping < LEAST_DAMPING:
                break
            self.history.clear()
            plain, logs = True, here.logs + damping * here.step
        return Ascent(*self.best, self.strategy, self.value, self.floor, self.steps)

    def _try(self, logs: Array) -> _Place | None:
        self.steps += 1
        self.progress.advance(1)
        try:
            return self._evaluate(logs)
        except (np.linalg.LinAlgError, FloatingPointError):
            return None

    def _evaluate(self, logs: Array) -> _Place:
        w = _normalised(logs[: self.split])
        e = _normalised(logs[self.split :])
        u = np.ones(len(e)) if np.isinf(self.q) else np.asarray(e ** (1 / self.q))
        S = self.rows.root(u)
        squares, Q = np.linalg.eigh(self.points.moment(S, w))
        c, Q = np.sqrt(squares[-self.rank :]), Q[:, -self.rank :]
        R = (Q / np.sqrt(c)).T @ S
        g, h = self.points.squares(R), self.rows.variances(u, S, Q, c)
        floor = float(c.sum())
        longest = float(g.max())
        value = float(np.sqrt(longest * trace_norm(h, self.p / 2)))
        if not (np.isfinite(value) and np.isfinite(floor) and floor > 0):
            raise FloatingPointError("the weights have lost a direction")
        if floor > self.floor:
            self.floor, self.best = floor, (w, u)
        if value < self.value:
            self.value, self.strategy = value, R / np.sqrt(longest)
        if self.single and len(R) == R.shape[1]:
            self._even_out(R, np.sqrt(g), self.rows.even_variances(u, Q, c, np.sqrt(g)))
        step = np.concatenate([2 * np.log(np.maximum(g, 1e-300) / floor), self._row_step(e, u, h)])
        return _Place(np.log(np.concatenate([w, e])), step, floor)

    def _even_out(self, R: Array, lengths: Array, variances: Array | None) -> None:
        """Columns of one length are worth more than the longest divided away, if R is square."""
        if variances is not None:
            value = float(np.sqrt(trace_norm(variances, self.p / 2)))
            if value < self.value:
                self.value, self.strategy = value, R / lengths

    def _row_step(self, e: Array, u: Array, h: Array) -> Array:
        if np.isinf(self.q):
            return np.zeros(len(e))
        power = self.q / (self.q - 0.5)
        logs = power * (0.5 * np.log(u) + np.log(np.maximum(h, 1e-300)))
        return np.asarray(np.log(_normalised(logs)) - np.log(e))

    def _next(self, here: _Place, damping: float) -> tuple[bool, Array]:
        """Anderson's mixture of the last steps, weighted by what the weights matter."""
        self.history.append((here.logs, here.step))
        del self.history[: -MEMORY - 1]
        if len(self.history) == 1 or damping < 1:
            return True, here.logs + damping * here.step
        logs = np.array([logs for logs, _ in self.history])
        steps = np.array([step for _, step in self.history])
        matter = np.exp(here.logs / 2)
        changes = np.diff(steps, axis=0)
        try:
            mix = np.linalg.lstsq((changes * matter).T, here.step * matter, rcond=1e-8)[0]
        except np.linalg.LinAlgError:
            return True, here.logs + here.step
        step = here.step - mix @ (np.diff(logs, axis=0) + changes)
        return False, here.logs + np.clip(step, -LARGEST_LOG_STEP, LARGEST_LOG_STEP)


def _inverse(matrix: Array) -> Array | None:
    """The inverse of a square matrix, if it has one."""
    if matrix.shape[0] != matrix.shape[1]:
        return None
    try:
        return np.asarray(np.linalg.inv(matrix), np.float64)
    except np.linalg.LinAlgError:
        return None


def _normalised(logs: Array) -> Array:
    """exp(logs), not too small, with the sum 1."""
    weights = np.exp(np.maximum(logs - logs.max(), -DEEPEST))
    return np.asarray(weights / weights.sum())
