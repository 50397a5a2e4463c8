"""Finite sets as bodies: ± columns, or points with a free shift."""

from __future__ import annotations

import numpy as np

from muhat.ellipsoids.generation import FoundEllipsoid, spread_out
from muhat.ellipsoids.spans import Array, Indices, Span, span_of
from muhat.ellipsoids.verification import norm_bounds

EVERYTHING = 300
MULTIPLICATIVE_STEPS = 6


class PointSet:
    """The columns of `points`, of shape (d, N), up to sign; with `shifted`, about a free centre."""

    roundings = 1
    slip: Array | None = None

    def __init__(self, points: Array, *, shifted: bool = False) -> None:
        self.points, self.shifted = points, shifted
        self.moved = points - points[:, :1] if shifted else points
        self.span: Span = span_of(self.moved, np.abs(points).max(axis=1))

    @property
    def complete(self) -> bool:
        rank = self.span.rank
        return bool(self.points.shape[1] <= min(3000, max(EVERYTHING, 3 * rank * (rank + 1) // 4)))

    def _found(self, labels: Indices, bound: float) -> FoundEllipsoid:
        return FoundEllipsoid(labels, self.points[:, labels], bound, bound)

    def start(self, p: float, weights: Array) -> FoundEllipsoid:
        N = self.points.shape[1]
        if self.complete:
            return self._found(np.arange(N), np.inf)
        moved = self.moved[self.span.rows]
        rows = np.abs(moved).max(axis=1)
        weights, whitened = multiplicative_steps(moved / rows[:, None], self.shifted)
        rank = self.span.rank
        likely = spread_out(whitened, np.argsort(-weights), 4 * rank)
        first = [0] if self.shifted else []
        return self._found(np.unique([*first, *spanning_columns(moved), *likely]), np.inf)

    def farthest(self, W: Array, shift: Array, wanted: int, enough: float) -> FoundEllipsoid:
        columns = self.points - shift[:, None] if self.shifted else self.points
        norms = norm_bounds(W, columns, self.roundings)
        bound = float(norms.max())
        if self.complete or bound <= 1:
            return self._found(np.zeros(0, np.intp), bound)
        outside = np.flatnonzero(norms > 1)
        outside = outside[np.argsort(-norms[outside])]
        chosen = spread_out(W @ columns, outside, wanted)
        return self._found(np.asarray(chosen, np.intp), bound)

    def half_widths(self) -> tuple[Array, Array]:
        if not self.shifted:
            return np.zeros(len(self.points)), np.abs(self.points).max(axis=1)
        high, low = self.points.max(axis=1), self.points.min(axis=1)
        center = low + (high - low) / 2
        return center, np.maximum(high - center, center - low) * (1 + 1e-15)


def multiplicative_steps(columns: Array, shifted: bool) -> tuple[Array, Array]:
    """Weights after a few steps w ← w·g² at p = 2, and the whitened columns."""
    N = columns.shape[1]
    w = np.full(N, 1 / N)
    X = columns
    for _ in range(MULTIPLICATIVE_STEPS):
        X = columns - (columns @ w)[:, None] if shifted else columns
        squares, V = np.linalg.eigh((X * w) @ X.T)
        squares = np.maximum(squares, 1e-20 * squares[-1])
        whitened = (V / squares**0.25).T @ X
        w = w * np.sum(whitened**2, axis=0) ** 2 + 1e-12 / N
        w = w / w.sum()
    return w, whitened


def spanning_columns(columns: Array) -> Indices:
    """As many columns as the rank, far from each other, that span all of them."""
    from scipy.linalg import qr

    even = columns / np.abs(columns).max(axis=1)[:, None]
    _, order = qr(even, mode="r", pivoting=True, check_finite=False)
    return np.asarray(order[: len(columns)], np.intp)
