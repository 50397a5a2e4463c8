"""Bodies known through an oracle: points far out in a given metric, and a proved bound."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from muhat.ellipsoids.generation import FoundEllipsoid
from muhat.ellipsoids.spans import Array, Span, span_of
from muhat.ellipsoids.verification import gamma
from muhat.errors import InvalidInput

SPAN_QUERIES = 4


class OracleBody:
    """A symmetric body S; `oracle(W)` gives points (d, k) of S and a bound on max ‖Ws‖."""

    shifted = False
    roundings = 0
    complete = False

    def __init__(
        self,
        oracle: Callable[[Array], tuple[ArrayLike, float]],
        dim: int,
        start: Array | None,
    ) -> None:
        self.oracle, self.dim, self.asked = oracle, dim, 0
        along = [self._ask(axis[None]) for axis in np.eye(dim)]
        self.widths = np.array([bound for _, bound in along])
        # Points of a body are computed in floats: they may lie outside it by this much.
        self.slip: Array | None = gamma(8 * dim + 32) * self.widths
        if start is None:
            start = self._spanning(np.hstack([points for points, _ in along]))
        if len(start) != dim:
            raise InvalidInput(f"start must have {dim} rows; got {len(start)}.")
        self.first = start
        self.span: Span = span_of(start)
        self._check_span()

    def _ask(self, W: Array) -> tuple[Array, float]:
        points, bound = self.oracle(W)
        points, bound = np.array(points, dtype=np.float64), float(bound)
        if points.ndim == 1:
            points = points[:, None]
        if points.ndim != 2 or len(points) != self.dim or not np.isfinite(points).all():
            raise InvalidInput(f"the oracle must return finite points of shape ({self.dim}, k).")
        if not (np.isfinite(bound) and bound >= 0):
            raise InvalidInput("the oracle must return a finite bound of at least 0.")
        return points, bound

    def _spanning(self, found: Array) -> Array:
        """The points found along each coordinate, and more off the span of those found."""
        for _ in range(SPAN_QUERIES * self.dim):
            left, sizes, _ = np.linalg.svd(found, full_matrices=True)
            rank = int(np.sum(sizes > 1e-9 * max(sizes[0], 1e-300)))
            if rank == self.dim:
                break
            points, bound = self._ask(left[:, rank:].T)
            if bound <= 1e-9 * max(sizes[0], 1e-300):
                break
            found = np.hstack([found, points])
        return found

    def _check_span(self) -> None:
        """Refuse a start that misses a direction of the body."""
        rest = np.setdiff1d(np.arange(self.dim), self.span.rows)
        if len(rest):
            off = np.eye(self.dim)[rest]
            off[:, self.span.rows] -= self.span.extension[rest]
            sizes = np.where(self.widths[rest] > 0, self.widths[rest], 1.0)
            if self._ask(off / sizes[:, None])[1] > 1e-9:
                raise InvalidInput("start must span the body; the oracle knows points beyond it.")

    def start(self) -> FoundEllipsoid:
        return self._found(self.first, np.inf)

    def _found(self, points: Array, bound: float) -> FoundEllipsoid:
        labels = np.arange(self.asked, self.asked + points.shape[1])
        self.asked += points.shape[1]
        return FoundEllipsoid(labels, points, bound, bound)

    def farthest(self, W: Array, shift: Array, wanted: int, enough: float) -> FoundEllipsoid:
        points, bound = self._ask(W)
        norms = np.sqrt(np.sum((W @ points) ** 2, axis=0))
        order = np.argsort(-norms)[:wanted]
        return self._found(points[:, order[norms[order] > 1]], bound)

    def half_widths(self) -> tuple[Array, Array]:
        return np.zeros(self.dim), self.widths
