"""Column generation: the smallest ellipsoid around a set that is known by its farthest points.

Each round solves the problem for a few points of the set, and asks the set which of its points
lie farthest outside the ellipsoid found. The weights on the few points are dual feasible for the
whole set, so they give a floor; the proved distance of the farthest point scales the ellipsoid to
one that contains the set, so it gives a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from muhat.ellipsoids.interior_point import Dual, Start, solve_dual
from muhat.ellipsoids.spans import Array, Indices, Span
from muhat.ellipsoids.verification import (
    Unverified,
    Whitening,
    dual_floor,
    largest_norm,
    value_of,
    whitening,
)

Watch = Callable[[float], None]

ROUNDS = 80
INNER = 0.2  # how much of the tolerance the solver may use up
LIGHT = 1e-3  # of the largest weight: what points begin with that are found later
BLENDS = (1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-6, 1e-4)


@dataclass(frozen=True)
class FoundEllipsoid:
    """Points far out, of shape (d, k), their labels (k, …), and a bound on max ‖W(s − v)‖.

    `seen` is the largest ‖W(s − v)‖ that is likely: a guide, while `bound` is proved. `start` are
    weights (k,) of the points and a D (d,) that are nearly the best, where they are known.
    """

    labels: Indices
    points: Array
    bound: float
    seen: float
    start: Start | None = None


class GeneratedBody(Protocol):
    """A set of points that can be searched.

    `roundings` is what the entries of its points carry, relatively, and `slip` (d,) absolutely;
    `complete` says that `start` gives all points.
    """

    span: Span
    shifted: bool
    roundings: int
    slip: Array | None

    @property
    def complete(self) -> bool: ...

    def start(self, p: float, weights: Array) -> FoundEllipsoid:
        """Points that span the set, and whatever else is likely to touch the ellipsoid.

        The ellipsoid is the smallest in ‖diag(weights)·‖_p.
        """

    def farthest(self, W: Array, shift: Array, wanted: int, enough: float) -> FoundEllipsoid:
        """Up to `wanted` points of large ‖W(s − v)‖, and a proved bound on it over the set.

        The bound is tight unless a point beyond `enough` is returned.
        """

    def half_widths(self) -> tuple[Array, Array]:
        """A centre (0 without a shift), and proved bounds on |s − centre|, coordinate-wise."""


@dataclass(frozen=True)
class GeneratedOutcome:
    """What `smallest_around` found; `points` (d, k) carry the dual `weights` (k,)."""

    factor: Array
    shift: Array
    value: float
    floor: float
    labels: Indices
    points: Array
    weights: Array
    diagonal: Array
    iterations: int
    converged: bool


class _PointSearch:
    def __init__(
        self,
        body: GeneratedBody,
        p: float,
        tol: float,
        weights: Array,
        rounds: int,
        watch: Watch | None,
    ) -> None:
        self.body, self.p, self.tol, self.omega = body, p, tol, weights
        self.rounds, self.watch = rounds, watch
        self.rows = body.span.rows
        self.value, self.floor = np.inf, 0.0
        self.factor = self.shift = np.zeros(0)
        self.labels, self.points = np.zeros(0, np.intp), np.zeros((len(weights), 0))
        self.support: tuple[Indices, Array, Array, Array] | None = None
        self.start: Start | None = None
        self.iterations = 0

    @property
    def gap(self) -> float:
        return self.value / self.floor - 1 if self.floor > 0 else np.inf

    def run(self) -> GeneratedOutcome:
        first = self.body.start(self.p, self.omega)
        self._add(first)
        self.start = first.start
        thorough = self.body.complete or self.start is not None
        inner = INNER * self.tol if thorough else max(INNER * self.tol, 1e-3)
        for turn in range(self.rounds):
            try:
                dual = solve_dual(
                    self.omega[:, None] * self.points,
                    self.p,
                    inner,
                    shifted=self.body.shifted,
                    start=self.start,
                )
            except (FloatingPointError, np.linalg.LinAlgError):
                break
            self.iterations += dual.iterations
            self._raise_floor(dual.weights, dual.diagonal)
            shift = self._on_span(dual.shift / self.omega) if self.body.shifted else dual.shift
            white = self._best_whitening(dual, shift, max(0.5 * self.tol, 2 * inner))
            if white is None:
                break
            # The last round asks for the bound itself, however far out the points found are.
            enough = 1 + 0.3 * self.tol if turn < self.rounds - 1 else np.inf
            found = self.body.farthest(white.matrix, shift, self._wanted(), enough)
            self._lower_value(white, shift, found.bound)
            if self.watch is not None:
                self.watch(self.gap)
            if self.gap <= self.tol:
                break
            grown = self._add(found, dual)
            if not grown and inner <= INNER * self.tol:
                break
            excess = 0.1 * max(found.seen - 1, 0.0)
            inner = max(INNER * self.tol, min(inner, excess) if grown else 0.1 * inner)
        if not np.isfinite(self.value):
            self._fall_back()
        assert self.support is not None
        labels, points, weights, diagonal = self.support
        return GeneratedOutcome(
            self.factor,
            self.shift,
            self.value,
            min(self.floor, self.value),
            labels,
            points,
            weights,
            diagonal,
            self.iterations,
            self.gap <= self.tol,
        )

    def _wanted(self) -> int:
        rank = self.body.span.rank
        return int(min(4 * rank + 20, rank * (rank + 1) // 2 + 10))

    def _on_span(self, shift: Array) -> Array:
        """The shift on the affine hull of the set: the other rows follow from `rows`."""
        anchor = self.points[:, 0]
        moved = anchor + self.body.span.extension @ (shift - anchor)[self.rows]
        moved[self.rows] = shift[self.rows]
        return np.asarray(moved)

    def _add(self, found: FoundEllipsoid, dual: Dual | None = None) -> bool:
        """Take the new points in; drop old ones that neither carry weight nor touch."""
        known = {tuple(np.atleast_1d(label)) for label in self.labels}
        new = [
            k for k, label in enumerate(found.labels) if tuple(np.atleast_1d(label)) not in known
        ]
        if not new:
            return False
        keep = np.ones(len(self.labels), bool)
        rank = self.body.span.rank
        if dual is not None and len(keep) > max(200, 2 * rank * (rank + 1)):
            keep = dual.weights > 1e-9 * dual.weights.max()
        if dual is not None and self.start is not None:
            light = np.full(len(new), LIGHT * dual.weights.max())
            self.start = np.concatenate([dual.weights[keep], light]), dual.diagonal
        if len(self.labels):
            self.labels = np.concatenate([self.labels[keep], found.labels[new]])
            self.points = np.hstack([self.points[:, keep], found.points[:, new]])
        else:
            self.labels, self.points = found.labels[new], found.points[:, new]
        return True

    def _raise_floor(self, weights: Array, diagonal: Array) -> None:
        floor = dual_floor(
            self.omega[:, None] * self.points,
            weights,
            diagonal,
            self.p,
            shifted=self.body.shifted,
            roundings=self.body.roundings + 1,
            slip=weighted_slip(self.body, self.omega),
        )
        if self.support is None or floor > self.floor:
            self.floor = floor
            self.support = self.labels, self.points, weights, diagonal

    def _lower_value(self, white: Whitening, shift: Array, radius: float) -> None:
        try:
            factor, _ = white.scaled_factor(radius)
        except Unverified:
            return
        value = value_of(factor, self.p, self.omega)
        if value < self.value:
            self.value, self.factor, self.shift = value, factor, shift

    def _best_whitening(self, dual: Dual, shift: Array, gap: float) -> Whitening | None:
        """The verified form of the solver's M, repaired where it is slack or too thin."""
        root = dual.factor[self.rows] / self.omega[self.rows, None]
        best, white = self._judge(root, shift)
        if np.isinf(self.p):
            best, white = min(
                (best, white), self._judge(self._raised(dual), shift), key=lambda pair: pair[0]
            )
        if best > self.floor * (1 + gap):
            _, widths = self.body.half_widths()
            box = _box_scales(self.omega * widths, self.p)[self.rows] / self.omega[self.rows]
            for blend in BLENDS:
                wider = np.hstack([root, np.sqrt(blend) * np.diag(box)])
                found = self._judge(wider, shift)
                best, white = min((best, white), found, key=lambda pair: pair[0])
        return white

    def _judge(self, root: Array | None, shift: Array) -> tuple[float, Whitening | None]:
        """The value that a root would have around the points at hand."""
        if root is None:
            return np.inf, None
        try:
            white = whitening(root, self.body.span)
            points = self.points - shift[:, None] if self.body.shifted else self.points
            radius = largest_norm(white.matrix, points, self.body.roundings)
            factor, _ = white.scaled_factor(radius)
        except Unverified:
            return np.inf, None
        return value_of(factor, self.p, self.omega), white

    def _raised(self, dual: Dual) -> Array | None:
        """At p = ∞ diagonals below the largest are raised to it, free of charge."""
        if not np.isfinite(dual.factor).all():
            return None
        diagonal = np.sum(dual.factor**2, axis=1)
        more = np.sqrt(np.maximum(diagonal.max() - diagonal, 0))
        wide = np.hstack([dual.factor, np.diag(more)]) / self.omega[:, None]
        span = self.body.span
        if span.rank == span.dim:
            return np.asarray(wide[self.rows])
        # The part of the ellipsoid on the span: M_J⁻¹ = EᵀM⁻¹E.
        triangle = np.asarray(np.linalg.qr(wide.T, mode="r")).T
        if not (np.abs(np.diag(triangle)) > 1e-12 * np.abs(triangle).max()).all():
            return None
        inverse = np.asarray(np.linalg.qr(np.linalg.solve(triangle, span.extension), mode="r"))
        if not (np.abs(np.diag(inverse)) > 0).all():
            return None
        return np.linalg.inv(inverse)

    def _fall_back(self) -> None:
        """The ellipsoid around the bounding box, and equal weights: always valid, never good."""
        count = self.points.shape[1]
        self._raise_floor(np.full(count, 1 / count), np.ones(len(self.omega)))
        center, widths = self.body.half_widths()
        rows = self.rows
        scales = _box_scales(self.omega * widths, self.p) / self.omega
        root = np.diag(np.maximum(scales[rows], 1e-280))
        white = whitening(root, self.body.span)
        shift = self._on_span(center) if self.body.shifted else center
        self._lower_value(white, shift, self.body.farthest(white.matrix, shift, 1, np.inf).bound)


def smallest_around(
    body: GeneratedBody,
    p: float,
    tol: float,
    weights: Array,
    *,
    rounds: int = ROUNDS,
    watch: Watch | None = None,
) -> GeneratedOutcome:
    """The smallest ellipsoid around a body of positive rank, in ‖diag(weights)·‖_p.

    `watch` is told the gap after each of at most so many rounds.
    """
    return _PointSearch(body, p, tol, weights, rounds, watch).run()


def weighted_slip(body: GeneratedBody, weights: Array) -> Array | None:
    """The body's slip in weighted coordinates."""
    return None if body.slip is None else np.asarray(body.slip * weights)


def _box_scales(half_widths: Array, p: float) -> Array:
    """√M_jj of the smallest ellipsoid around a box: M_jj = c·s_j^{4/(p+2)}."""
    largest = float(half_widths.max())
    relative = half_widths / largest
    order = 2.0 if np.isinf(p) else 2 * p / (p + 2)
    power = 0.0 if np.isinf(p) else 2 / (p + 2)
    return np.asarray(largest * np.sqrt(np.sum(relative**order)) * relative**power)


def spread_out(whitened: Array, order: Indices, wanted: int) -> list[int]:
    """Indices from `order`, best first, of columns that do not nearly repeat one another."""
    candidates = order[: 12 * wanted]
    vectors = whitened[:, candidates]
    vectors = vectors / np.maximum(np.sqrt(np.sum(vectors**2, axis=0)), 1e-300)
    alike = np.abs(vectors.T @ vectors) > 0.98
    chosen: list[int] = []
    blocked = np.zeros(len(candidates), bool)
    for k in range(len(candidates)):
        if not blocked[k]:
            chosen.append(k)
            blocked |= alike[k]
            if len(chosen) == wanted:
                break
    return [int(candidates[k]) for k in chosen]
