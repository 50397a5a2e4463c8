"""The differences x_i − x_j of many points, searched without forming the N² pairs.

The farthest pair in a whitened metric is looked for in two ways. A local search walks from a
direction to the two points that are extreme in it, and from there to the direction between them;
it finds pairs to add, quickly. When it finds none, every pair is examined, block by block, in
order of the distance from a central point: two points whose distances from it add up to less than
the longest pair known cannot be farther apart, so most blocks are skipped.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from muhat.ellipsoids.generation import FoundEllipsoid, spread_out
from muhat.ellipsoids.likely_pairs import likely_pairs, pays
from muhat.ellipsoids.point_sets import spanning_columns
from muhat.ellipsoids.spans import Array, Indices, Span, span_of
from muhat.ellipsoids.verification import TINY, UNIT, gamma

EVERY_PAIR = 400
WALKS = 3
FAR_STARTS, EVEN_STARTS = 32, 96
CENTER_STEPS = 100
ROWS, COLUMNS = 512, 8192


class Differences:
    """{x_i − x_j} for the columns of `points`, of shape (d, N); labels are pairs (i, j)."""

    roundings = 1
    slip: Array | None = None
    shifted = False

    def __init__(self, points: Array) -> None:
        self.points = points
        high, low = points.max(axis=1), points.min(axis=1)
        self.moved = points - (low + (high - low) / 2)[:, None]
        self.widths = high - low
        self.span: Span = span_of(points - points[:, :1], np.abs(points).max(axis=1))

    @property
    def weighted(self) -> bool:
        """Whether the pairs to begin with are told by weights on all of them."""
        return pays(len(self.points), self.points.shape[1], self.span.rank)

    @property
    def complete(self) -> bool:
        if self.weighted:
            return False
        N, rank = int(self.points.shape[1]), self.span.rank
        return min(3000, max(EVERY_PAIR, 3 * rank * (rank + 1) // 4)) >= N * (N - 1) // 2

    def _found(self, labels: Indices, bound: float, seen: float) -> FoundEllipsoid:
        first, second = labels[:, 0], labels[:, 1]
        return FoundEllipsoid(labels, self.points[:, first] - self.points[:, second], bound, seen)

    def start(self, p: float, weights: Array) -> FoundEllipsoid:
        if self.complete:
            i, j = np.triu_indices(self.points.shape[1], 1)
            return self._found(np.column_stack([i, j]), np.inf, np.inf)
        if self.weighted and (
            likely := likely_pairs(weights[:, None] * self.moved, self.span.rank, p)
        ):
            return replace(self._found(likely[0], np.inf, np.inf), start=likely[1])
        rows = self.span.rows
        even = self.moved[rows] / self.widths[rows, None]
        moved = even - even.mean(axis=1)[:, None]
        squares, V = np.linalg.eigh(moved @ moved.T)
        whitened = (V / np.sqrt(np.maximum(squares, 1e-20 * squares[-1]))).T @ moved
        walked = np.vstack([_walk(even), _walk(whitened)])
        spanning = spanning_columns(self.points[rows] - self.points[rows, :1])
        pairs = np.vstack([np.column_stack([spanning, np.zeros_like(spanning)]), walked])
        return self._found(_distinct(pairs), np.inf, np.inf)

    def farthest(self, W: Array, shift: Array, wanted: int, enough: float) -> FoundEllipsoid:
        """As `Body.farthest`; every pair is examined only if the local search stays in `enough`."""
        Z = W @ self.moved
        size = np.sqrt(np.sum((np.abs(W) @ np.abs(self.moved) + TINY) ** 2, axis=0))
        # One rounding in `moved`, d in the product, one in the centring below.
        slack = 2 * gamma(W.shape[1] + 8) * float(size.max())
        Z = Z - _central_point(Z)[:, None]
        norms = np.sqrt(np.sum(Z**2, axis=0))
        slack += 4 * gamma(len(W) + 4) * float(norms.max())
        pairs = _walk(Z) if not self.complete else np.zeros((0, 2), np.intp)
        lengths = np.sqrt(np.sum((Z[:, pairs[:, 0]] - Z[:, pairs[:, 1]]) ** 2, axis=0))
        bound = 2 * float(norms.max())
        if lengths.max(initial=0.0) <= enough:
            longest, more = _examine_every_pair(Z, norms, float(lengths.max(initial=0.0)))
            bound = min(bound, longest)
            pairs = np.vstack([pairs, more])
            lengths = np.sqrt(np.sum((Z[:, pairs[:, 0]] - Z[:, pairs[:, 1]]) ** 2, axis=0))
        bound = (bound + slack) * (1 + 8 * UNIT)
        seen = float(lengths.max(initial=0.0))
        outside = np.flatnonzero(lengths > 1)
        outside = outside[np.argsort(-lengths[outside])]
        if self.complete:
            outside = outside[:0]
        chosen = spread_out(Z[:, pairs[:, 0]] - Z[:, pairs[:, 1]], outside, wanted)
        return self._found(_distinct(pairs[chosen]), bound, seen)

    def half_widths(self) -> tuple[Array, Array]:
        return np.zeros(len(self.points)), self.widths * (1 + 4 * UNIT)


def _distinct(pairs: Indices) -> Indices:
    """Each unordered pair once, in the order of first appearance."""
    pairs = np.sort(pairs, axis=1)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    _, first = np.unique(pairs, axis=0, return_index=True)
    return pairs[np.sort(first)]


def _walk(Z: Array) -> Indices:
    """Pairs (k, 2) that are the farthest from each other along their own direction, nearly."""
    norms = np.sum(Z**2, axis=0)
    order = np.argsort(-norms)
    even = order[:: max(1, len(order) // EVEN_STARTS)]
    directions = np.hstack([np.eye(len(Z)), Z[:, order[:FAR_STARTS]], Z[:, even]])
    pairs: list[Indices] = []
    for _ in range(WALKS):
        along = directions.T @ Z
        first, second = along.argmax(axis=1), along.argmin(axis=1)
        pairs.append(np.column_stack([first, second]))
        directions = Z[:, first] - Z[:, second]
    return _distinct(np.vstack(pairs))


def _central_point(Z: Array) -> Array:
    """A point near the centre of the smallest ball around the points (Bădoiu and Clarkson)."""
    center = Z.mean(axis=1)
    for k in range(1, CENTER_STEPS + 1):
        distances = np.sum((Z - center[:, None]) ** 2, axis=0)
        center = center + (Z[:, int(distances.argmax())] - center) / (k + 1)
    return np.asarray(center)


def _examine_every_pair(Z: Array, norms: Array, known: float) -> tuple[float, Indices]:
    """A bound on the longest pair, proved up to the roundings of Z, and pairs beyond `known`.

    Squares are |z_i|² + |z_j|² − 2⟨z_i, z_j⟩, whose rounding is relative to (|z_i| + |z_j|)².
    """
    order = np.argsort(-norms)
    reach = norms[order] * (1 + gamma(len(Z) + 4))
    order = order[reach + reach[0] >= known]
    reach = reach[: len(order)]
    X, squares = Z[:, order], np.sum(Z[:, order] ** 2, axis=0)
    left = np.vstack([-2 * X, np.ones(len(order))]).T
    right = np.vstack([X, squares])
    limit, longest = known**2, 0.0
    pairs: list[Indices] = []
    for i in range(0, len(order), ROWS):
        # Rows ascend in `order` and so descend in reach: partners end where the sum falls short.
        end = int(np.searchsorted(-reach, -(known - reach[i]), side="right"))
        block = left[i : i + ROWS]
        for j in range(i, end, COLUMNS):
            lengths = block @ right[:, j : min(j + COLUMNS, end)]
            best = lengths.argmax(axis=1)
            found = lengths[np.arange(len(block)), best] + squares[i : i + ROWS]
            longest = max(longest, float(found.max()))
            beyond = np.flatnonzero(found > limit)
            if len(beyond):
                pairs.append(np.column_stack([order[i + beyond], order[j + best[beyond]]]))
    error = 4 * gamma(len(Z) + 6) * float(reach[0] ** 2) if len(reach) else 0.0
    bound = max(known, float(np.sqrt(longest + error)) * (1 + 4 * UNIT))
    return bound, np.vstack(pairs) if pairs else np.zeros((0, 2), np.intp)
