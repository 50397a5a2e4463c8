"""The best weights of the parts of a marginal workload, for every p, with a certificate.

With c = exp(y) the squared error times the squared sensitivity is a product of two norms of sums
of exponentials of y, so its logarithm

    (2/p)·ln Σ_S M_S·v_S^{p/2} + max_D ln Σ_A g_DA·e^{y_A},    v_S = Σ_A b_AS·e^{−y_A}

is convex: S runs over orbits of tables, D over the ways in which neighbours differ (one way
under add/remove). A Newton method follows the optimality conditions together with the weights λ
of the tables and π of the differences, and 2/p, or what smooths a maximum, goes down to its
place on the way. Whatever it finds certifies itself (`residual_certificate`).
"""

from __future__ import annotations

import math

import numpy as np

from muhat._arrays import Floats
from muhat.workloads.residual_basis import Orbits, totals
from muhat.workloads.residual_certificate import Optimum, Point, Problem, better

LARGEST_SYSTEM = 3000
"""Parts up to which Newton's equations are solved; a simple iteration takes over beyond."""

SIMPLE_STEPS = 2000
STEPS = 60
SMALLEST_WEIGHT = 1e-200
LARGEST_LISTING = 1 << 23
"""Pairs of entries of one row, over all rows, that are listed for products without zeros."""


def best_weights(
    orbits: Orbits, budget: Floats, p: float, tol: float, *, power: float = 1.0
) -> Optimum:
    """Minimise ‖standard deviations‖_p over c ≥ 0 with max_D Σ_A budget_DA·c_A^power ≤ 1.

    `budget` (number of differences, R) is ≥ 0 with a positive entry in every column. For
    power = ½ it is the ℓ₁ length of a column, and c stands for the squared multipliers.
    """
    problem = Problem(orbits, budget, p, power)
    if p == 2 and len(budget) == 1:
        return problem.certify(problem.balanced(np.ones(len(orbits.multiplicity))))
    if len(orbits.parts) > LARGEST_SYSTEM or len(orbits.multiplicity) > 2 * LARGEST_SYSTEM:
        return _simple(problem, tol)
    return newton(problem, tol)


def _simple(problem: Problem, tol: float) -> Optimum:
    """ln t moves a part of its way towards (p/2 − 1)·ln v, which is where it must end.

    v has elasticities between −½ and 0 in t, so with the step 2/(2 + (p/2 − 1)/2) every error
    shrinks; slowly for p = ∞, where the gap says how far it came.
    """
    goal = min(problem.p, 1e6) / 2 - 1
    step = 2 / (2 + goal / 2)
    duals = np.ones(len(problem.orbits.multiplicity))
    if len(problem.budget) > 1:
        raise AssertionError("several differences are solved by Newton's method alone")
    best = found = problem.certify(problem.balanced(duals))
    for _ in range(SIMPLE_STEPS):
        if best.gap <= tol:
            break
        variances = problem.orbits.variances(1 / found.weights)
        logs = (1 - step) * np.log(duals) + step * goal * np.log(variances)
        duals = np.exp(logs - logs.max())
        found = problem.certify(problem.balanced(duals))
        best = better(best, found)
    return best


class _Soft:
    """Weights λ of the functions f in τ·ln Σ M·exp(f/τ), which end at λ ∝ M·exp(f/τ)."""

    def __init__(self, weights: Floats, log_count: Floats, goal: float) -> None:
        self.weights, self.log_count, self.goal = weights, log_count, goal
        self.smoothing, self.closer = 1.0, 0.3

    def linear(self, heights: Floats) -> tuple[Floats, Floats]:
        """(base, ρ): the next weights are base + ρ·(∇f·step − level)."""
        self.smoothing = max(self.goal, self.closer * self.smoothing)
        steepness = self.weights / self.smoothing
        entropy = self.smoothing * (np.log(self.weights) - self.log_count)
        return self.weights + steepness * (heights - entropy), steepness

    def longest(self, weights: Floats, slopes: Floats) -> float:
        """Any step keeps the weights positive: downwards they move exponentially."""
        return 1.0

    def move(self, weights: Floats, slopes: Floats, length: float) -> None:
        relative = length * (weights / self.weights - 1)
        factor = np.where(relative < 0, np.exp(np.minimum(relative, 0)), 1 + relative)
        moved = np.maximum(self.weights * factor, SMALLEST_WEIGHT)
        self.weights = moved / moved.sum()
        self.closer = 0.1 if length > 0.9 else 1.0


class _Hard:
    """Weights λ of the functions f in max f = θ, with slacks s = θ − f: λ·s goes to 0."""

    def __init__(self, heights: Floats, tol: float) -> None:
        self.least = 0.05 * tol / len(heights)
        self.weights = np.full(len(heights), 1 / len(heights))
        self.slack = heights.max() - heights + 0.3
        self.closer = 0.2
        self.shift = np.zeros(0)

    def linear(self, heights: Floats) -> tuple[Floats, Floats]:
        """(base, ρ), as above, with the product λ·s aimed lower than it is."""
        barrier = max(self.closer * float(self.weights @ self.slack) / len(heights), self.least)
        steepness = self.weights / self.slack
        self.shift = heights + self.slack
        return barrier / self.slack + steepness * self.shift, steepness

    def longest(self, weights: Floats, slopes: Floats) -> float:
        """The part of a step that keeps weights and slacks positive; a single one has none."""
        if len(weights) == 1:
            return 1.0
        inward = np.concatenate(
            [1 - weights / self.weights, (self.shift + slopes) / self.slack]
        ).max()
        return min(1.0, 0.98 / float(inward)) if inward > 0 else 1.0

    def move(self, weights: Floats, slopes: Floats, length: float) -> None:
        if len(weights) == 1:
            return
        self.weights = self.weights + length * (weights - self.weights)
        self.slack = self.slack - length * (self.shift + slopes)
        self.closer = 0.02 if length > 0.9 else 0.2 if length > 0.3 else 0.8


class _SparseRows:
    """Gradients of the tables' functions: few entries a row, so products skip the zeros."""

    def __init__(self, orbits: Orbits) -> None:
        order = np.argsort(orbits.rows, kind="stable")
        self.rows, self.columns = orbits.rows[order], orbits.columns[order]
        self.values = self.scaled = orbits.values[order]
        self.shape = len(orbits.multiplicity), len(orbits.parts)
        count = np.bincount(self.rows, minlength=self.shape[0])
        self.listed = int(np.sum(count**2)) <= LARGEST_LISTING
        if not self.listed:
            return
        start = np.cumsum(count) - count
        self.left = np.repeat(np.arange(len(self.rows)), count[self.rows])
        within = np.arange(len(self.left)) - np.repeat(
            np.cumsum(count[self.rows]) - count[self.rows], count[self.rows]
        )
        self.right = start[self.rows[self.left]] + within
        self.place = self.columns[self.left] * self.shape[1] + self.columns[self.right]

    def at(self, logs: Floats) -> Floats:
        """Move to ln c, and give the values ln v."""
        raised = self.values * np.exp(-logs)[self.columns]
        variances = totals(self.rows, raised, self.shape[0])
        self.scaled = -raised / variances[self.rows]
        return np.log(variances)

    def dot(self, step: Floats) -> Floats:
        """The gradients times a step."""
        return totals(self.rows, self.scaled * step[self.columns], self.shape[0])

    def pull(self, weights: Floats) -> Floats:
        """The sum of the gradients with weights."""
        return totals(self.columns, self.scaled * weights[self.rows], self.shape[1])

    def gram(self, weights: Floats) -> Floats:
        """Σ weight·gradient·gradientᵀ."""
        if not self.listed:
            dense = np.zeros(self.shape)
            dense[self.rows, self.columns] = self.scaled
            return np.asarray((dense.T * weights) @ dense)
        pairs = self.scaled[self.left] * self.scaled[self.right] * weights[self.rows[self.left]]
        size = self.shape[1]
        return totals(self.place, pairs, size * size).reshape(size, size)


class _DenseRows:
    """Gradients of the differences' functions (1/power)·ln Σ_A budget_A·c_A^power."""

    def __init__(self, budget: Floats, power: float) -> None:
        self.budget, self.power = budget, power
        self.scaled = budget

    def at(self, logs: Floats) -> Floats:
        raised = self.budget * np.exp(self.power * logs)
        spent = raised.sum(axis=1)
        self.scaled = raised / spent[:, None]
        return np.asarray(np.log(spent) / self.power)

    def dot(self, step: Floats) -> Floats:
        return np.asarray(self.scaled @ step)

    def pull(self, weights: Floats) -> Floats:
        return np.asarray(weights @ self.scaled)

    def gram(self, weights: Floats) -> Floats:
        return np.asarray((self.scaled.T * weights) @ self.scaled)


def newton(problem: Problem, tol: float) -> Optimum:
    """Newton's method on the optimality conditions of c and both families of weights.

    With J the gradients of a family's functions, its weights after a step are
    base + ρ·(J·step − level), where the level makes them sum to 1.
    """
    point = problem.balanced(np.ones(len(problem.orbits.multiplicity)))
    best = problem.certify(point)
    logs = point.logs - point.logs.max()
    fall, rise = _SparseRows(problem.orbits), _DenseRows(problem.budget, problem.power)
    tables: _Soft | _Hard = (
        _Hard(fall.at(logs), tol)
        if math.isinf(problem.p)
        else _Soft(point.tables, problem.log_count, 2 / problem.p)
    )
    differences = _Hard(rise.at(logs), tol)
    for _ in range(STEPS):
        if best.gap <= tol:
            break
        hessian = np.zeros((len(logs), len(logs)))
        slope = np.zeros(len(logs))
        families = []
        for family, rows, power in ((tables, fall, 1.0), (differences, rise, problem.power)):
            base, steepness = family.linear(rows.at(logs))
            pull = rows.pull(steepness)
            # The functions' own curvature is power·(diag(|J|) − JᵀJ), row by row.
            hessian += rows.gram(steepness - power * family.weights)
            hessian -= np.outer(pull, pull) / steepness.sum()
            hessian[np.diag_indices_from(hessian)] += power * np.abs(rows.pull(family.weights))
            slope -= rows.pull(base - steepness * ((base.sum() - 1) / steepness.sum()))
            families.append((family, rows, base, steepness, pull))
        # y and y + constant are the same strategy: this term picks one of them.
        loss = rise.pull(differences.weights)
        hessian += np.outer(loss, loss)
        step = _solve(hessian, slope)
        if step is None:
            break
        length = min(1.0, 4 / max(float(np.abs(step).max()), 1e-300))
        moves = []
        for family, rows, base, steepness, pull in families:
            slopes = rows.dot(step) - (base.sum() - 1 + pull @ step) / steepness.sum()
            moves.append((family, base + steepness * slopes, slopes))
            length = min(length, family.longest(*moves[-1][1:]))
        for family, weights, slopes in moves:
            family.move(weights, slopes, length)
        logs = logs + length * step
        logs -= logs.max()
        found = problem.certify(Point(logs, tables.weights, differences.weights))
        if not found.value < math.inf:
            break
        best = better(best, found)
    return best


def _solve(hessian: Floats, slope: Floats) -> Floats | None:
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    from muhat.ellipsoids.threads import one_thread

    # Scaling to a unit diagonal: the parts' shares differ by many orders of magnitude.
    scale = 1 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    scaled = hessian * scale * scale[:, None]
    with one_thread():
        for ridge in (0.0, 1e-14, 1e-11, 1e-8):
            try:
                scaled[np.diag_indices_from(scaled)] = 1 + ridge
                factor = cho_factor(scaled, lower=True, check_finite=False)
            except LinAlgError:
                continue
            found = np.asarray(cho_solve(factor, slope * scale, check_finite=False) * scale)
            return found if np.isfinite(found).all() else None
    return None
