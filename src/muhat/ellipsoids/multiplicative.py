"""The dual of the smallest ellipsoid by multiplicative steps with Anderson acceleration.

For a matrix W (m, N), weights w on the columns s_i of W (or on their pairs s_i − s_j) and u on the
rows, Σw = 1, ‖u‖_q = 1, q = p/(p − 2), the dual value is the nuclear norm

    F(w, u) = ‖diag(u)^½ W diag(w)^½‖_*,        max F = Γ_p.

It is linear along any fixed orthogonal factor in √w, and in √u: with P the polar factor at the
weights at hand, F(w', u) ≥ ⟨P, diag(u)^½ W diag(w')^½⟩, with equality at w' = w. The largest right
side is at w' ∝ w·g², g_i = s_iᵀM⁻¹s_i, and in u at e' ∝ (√u·h)^{2q/(2q−1)}, e = u^q, h_j = M_jj. So
each of the two steps climbs. Anderson's acceleration in log w and log e needs one symmetric
eigendecomposition a step and 10 to 60 steps; a step that loses value is taken back.

Nothing here is proved: see `moment_floors` and `workloads.proofs`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._progress import Progress
from muhat.ellipsoids.interior_point import dual_order, trace_norm
from muhat.ellipsoids.moment_spectra import DualProblem, Explicitly, Rows, WeightedPoints
from muhat.ellipsoids.spans import Array

MEMORY = 15
LARGEST_LOG_STEP = 1.0
DEEPEST = 40.0  # weights below exp(−40) of the largest are as good as none
LOSS = 1e-9  # how much of the dual value a step may lose
LEAST_DAMPING = 1e-2


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

    >>> from muhat.ellipsoids.moment_spectra import Columns, TotalOfRows
    >>> W = np.tril(np.ones((2, 2)))
    >>> f"{ascend(Columns(2), TotalOfRows(W), 2, 2.0, 1e-9).value:.6f}"  # the golden ratio
    '1.618034'
    """
    return climb(Explicitly(points, rows, rank), p, tol, limit=limit, start=start)


def climb(
    problem: DualProblem,
    p: float,
    tol: float,
    *,
    limit: int = 200,
    start: tuple[Array, Array] | None = None,
) -> Ascent:
    """As `ascend`, for whatever can be evaluated."""
    with np.errstate(all="ignore"), Progress(limit, "planning") as progress:
        return _WeightSearch(problem, p, progress).run(tol, limit, start)


class _WeightSearch:
    def __init__(self, problem: DualProblem, p: float, progress: Progress) -> None:
        self.problem, self.progress = problem, progress
        self.p, self.q = p, dual_order(p)
        self.split = problem.count
        self.value, self.floor, self.steps = np.inf, 0.0, 0
        self.strategy = np.zeros((0, 0))
        self.best: tuple[Array, Array] = np.zeros(0), np.zeros(0)
        self.history: list[tuple[Array, Array]] = []

    def run(self, tol: float, limit: int, start: tuple[Array, Array] | None) -> Ascent:
        w, u = start or (np.ones(self.problem.count), np.ones(self.problem.row_count))
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
        found = self.problem.evaluate(w, u)
        floor, g, h = found.floor, found.g, found.h
        longest = float(g.max())
        value = float(np.sqrt(longest * trace_norm(h, self.p / 2)))
        if not (np.isfinite(value) and np.isfinite(floor) and floor > 0):
            raise FloatingPointError("the weights have lost a direction")
        if floor > self.floor:
            self.floor, self.best = floor, (w, u)
        if value < self.value:
            self.value, self.strategy = value, found.strategy() / np.sqrt(longest)
        even = found.even()
        if even is not None:
            # Columns of one length are worth more than the longest divided away.
            value = float(np.sqrt(trace_norm(even[1], self.p / 2)))
            if value < self.value:
                self.value, self.strategy = value, even[0]
        step = np.concatenate([2 * np.log(np.maximum(g, 1e-300) / floor), self._row_step(e, u, h)])
        return _Place(np.log(np.concatenate([w, e])), step, floor)

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


def _normalised(logs: Array) -> Array:
    """exp(logs), not too small, with the sum 1."""
    weights = np.exp(np.maximum(logs - logs.max(), -DEEPEST))
    return np.asarray(weights / weights.sum())
