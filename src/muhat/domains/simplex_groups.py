"""The smallest ellipsoid around the differences of a simplex's corners, by groups of weights.

Corners of equal weights may change places, so the best form is one number a pair of groups: the
squared distance d_gh ≤ 1 of a corner of g from one of h, for parts z with Σz = 0

    q(z) = −½·Σ d_ij z_i z_j = ½·Σ_g d_gg·Σ_{i in g} z_i² − ½·Σ d_gh s_g s_h

with s_g the sum of the parts of g. M = q⁻¹ is convex in q, and q linear in d: minimise over a box.
Pairs that are held at d = 1 carry the dual's measure, each by how fast the value would fall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Floats, Integers
from muhat.domains.vectors import Matrix, Vector
from muhat.ellipsoids.floors import dual_floor
from muhat.ellipsoids.result import CLOSED_FORM_ERROR, SmallestEllipsoid, norm, with_factor
from muhat.ellipsoids.verification import gamma, inverse_root

MOST_GROUPS, LEAST_WEIGHT = 8, 1e-4
"""More distinct weights than so many are grouped by their logarithms, down to a part of the
largest."""

STEPS = 500

POWERS = (16.0, 512.0, 8192.0)
"""Orders of the norm of the diagonal that stand for the largest entry, one after the other."""

LARGEST_DRIFT = 1e-6


def around_grouped_corners(
    d: int, origin: bool, p: float, weights: Vector, floor: float
) -> SmallestEllipsoid | None:
    """Around K − K; the floor is the larger of the one given and of the measure found.

    None where floats cannot tell whether it contains.
    """
    group = groups_of(np.append(weights, 0.0) if origin else weights)
    sizes = np.bincount(group)
    typical = _typical(weights / weights.max(), group[:d], len(sizes), p)
    problem = _Distances(sizes, typical)
    powers = (p / 2,) if math.isfinite(p) else POWERS
    logs = np.zeros(len(problem.first))
    for power in powers:
        logs = problem.best(logs, power)
    parts = problem.parts(np.minimum(np.exp(logs), 1.0))
    if parts is None or not parts.drift < LARGEST_DRIFT:
        return None
    held = (problem.squares * parts.variances)[group][:d]
    # Where the largest entry alone counts, D makes the weights of a group equal.
    uneven = (typical[group][:d] * weights.max() / weights) ** 2 if math.isinf(p) else 1.0
    spread = _dual_squares((held / held.max()) ** (powers[-1] - 1) * uneven, p)
    pulls = problem.pulls(logs, powers[-1])
    measured = dual_floor(_pair_moment(group, sizes, pulls)[:d, :d], 2, weights * np.sqrt(spread))
    factor = parts.factor(group)[:d]
    error = parts.drift + gamma(8 * len(group) + 64) + CLOSED_FORM_ERROR
    return with_factor(factor, max(floor, measured), p, weights, error=error)


def groups_of(weights: Vector) -> Integers:
    """The group of every corner, numbered by rising weights.

    >>> groups_of(np.array([1.0, 10.0, 1.0, 0.0])).tolist()
    [1, 2, 1, 0]
    """
    levels, group = np.unique(weights, return_inverse=True)
    if len(levels) > MOST_GROUPS:
        # The corner 0 has no weight, and a group of its own.
        logs = np.log(np.maximum(weights, weights.max() * LEAST_WEIGHT))
        least = logs[weights > 0].min()
        at = np.maximum((logs - least) / (logs.max() - least), 0.0)
        cells = np.where(weights > 0, np.rint(at * (MOST_GROUPS - 2)), -1.0)
        _, group = np.unique(cells, return_inverse=True)
    return np.asarray(group.ravel(), np.int64)


@dataclass(frozen=True, eq=False)
class _Parts:
    """M for given distances: 1/a_g in a group, and the variance of its sum L·Lᵀ (k, k)."""

    sizes: Integers
    inside: Floats
    root: Matrix
    drift: float

    @property
    def variances(self) -> Floats:
        """Of a part in each group."""
        sums = np.sum(self.root**2, axis=1)
        return np.asarray((1 - 1 / self.sizes) / self.inside + sums / self.sizes**2)

    def factor(self, group: Integers) -> Matrix:
        """F (m, m − 1) with M = F·Fᵀ: parts about the mean of their group, and its mean."""
        columns = [self.root[group] / self.sizes[group][:, None]]
        for each, inside in enumerate(self.inside):
            about = np.zeros((len(group), self.sizes[each] - 1))
            about[group == each] = _zero_sums(int(self.sizes[each])) / math.sqrt(inside)
            columns.append(about)
        return np.hstack(columns)


def _zero_sums(n: int) -> Matrix:
    """An orthonormal basis of the vectors whose entries add up to 0, of shape (n, n − 1)."""
    steps = np.tril(np.ones((n, n)), -1)[1:]
    counts = np.arange(1, n)
    steps[counts - 1, counts] = -counts
    return np.asarray((steps / np.sqrt(counts * (counts + 1.0))[:, None]).T)


class _Distances:
    """‖diag(W·M·W)‖ as a function of the logarithms of squared distances between groups."""

    def __init__(self, sizes: Integers, weights: Vector) -> None:
        self.sizes, self.squares = sizes, weights**2
        # A group of one corner has no distance inside.
        first, second = np.triu_indices(len(sizes))
        kept = (first < second) | (sizes[first] > 1)
        self.first, self.second = first[kept], second[kept]
        self.basis = _zero_sums(len(sizes))

    def parts(self, distances: Floats) -> _Parts | None:
        """M for these distances; None if they are no distances."""
        inside, form = self._form(distances)
        found = inverse_root(form, gamma(8 * len(form) + 64))
        if found is None:
            return None
        # M contains what it should, up to the drift.
        root, drift = found
        return _Parts(self.sizes, inside, self.basis @ root, drift)

    def best(self, start: Floats, power: float) -> Floats:
        """Logarithms of the best distances."""
        from scipy.optimize import minimize

        def falling(logs: Floats) -> tuple[float, Floats]:
            value, slopes = self._evaluated(np.exp(logs), power)
            return value, slopes * np.exp(logs)

        best = minimize(
            falling,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(-30.0, 0.0)] * len(start),
            options={"maxiter": STEPS, "ftol": 1e-13, "gtol": 1e-10},
        )
        return np.asarray(best.x)

    def pulls(self, logs: Floats, power: float) -> Matrix:
        """How fast the value falls with the distance of each pair of groups, (k, k)."""
        slopes = self._evaluated(np.exp(logs), power)[1]
        pulls = np.zeros((len(self.sizes), len(self.sizes)))
        pulls[self.first, self.second] = np.maximum(-slopes, 0.0)
        return pulls

    def _form(self, distances: Floats) -> tuple[Floats, Matrix]:
        """a of each group, and the form of the groups' sums in the basis."""
        k = len(self.sizes)
        table = np.zeros((k, k))
        table[self.first, self.second] = distances
        # With one corner Σz² = s², so that any number would do.
        table[np.diag_indices(k)] = np.where(self.sizes > 1, np.diag(table), 1.0)
        inside = np.diag(table) / 2
        table = np.triu(table) + np.triu(table, 1).T
        form = np.diag(inside / self.sizes) - table / 2
        return inside, np.asarray(self.basis.T @ form @ self.basis)

    def _evaluated(self, distances: Floats, power: float) -> tuple[float, Floats]:
        """The logarithm of the norm, and its slope with each distance."""
        found = self.parts(distances)
        if found is None:
            return 1e6, np.zeros(len(distances))
        sizes = self.squares * found.variances
        top = float(sizes.max())
        total = float(np.sum(self.sizes * (sizes / top) ** power))
        rise = self.sizes * self.squares * (sizes / top) ** (power - 1) / (top * total)
        spread = found.root @ found.root.T
        held = (spread * (rise / self.sizes**2)) @ spread
        slopes = held[self.first, self.second].copy()
        alone = self.first == self.second
        g = self.first[alone]
        inside = -rise[g] * (1 - 1 / self.sizes[g]) / (2 * found.inside[g] ** 2)
        slopes[alone] = inside - held[g, g] * (1 / self.sizes[g] - 1) / 2
        return math.log(top) + math.log(total) / power, slopes


def _typical(weights: Vector, group: Integers, count: int, p: float) -> Floats:
    """The mean of order p of the weights of each group, 0 where there are none."""
    if math.isinf(p):
        largest = np.zeros(count)
        np.maximum.at(largest, group, weights)
        return largest
    sizes = np.maximum(np.bincount(group, minlength=count), 1)
    return np.asarray((np.bincount(group, weights**p, minlength=count) / sizes) ** (1 / p))


def _dual_squares(squares: Floats, p: float) -> Floats:
    """D² in these proportions, of the dual norm 1 and no more."""
    order = 1.0 if math.isinf(p) else (math.inf if p == 2 else p / (p - 2))
    return np.asarray(squares / (norm(squares, order) * (1 + CLOSED_FORM_ERROR)))


def _pair_moment(group: Integers, sizes: Integers, pulls: Matrix) -> Matrix:
    """E[ssᵀ] of differences of corners, pairs of groups as likely as they pull, (m, m)."""
    together = pulls + pulls.T
    counts = np.outer(sizes, sizes) - np.diag(sizes)
    each = np.divide(together, counts, out=np.zeros_like(together), where=counts > 0)
    pairs = each[group][:, group]
    np.fill_diagonal(pairs, 0.0)
    moment = np.diag(pairs.sum(axis=1)) - pairs
    return np.asarray(moment / (pairs.sum() / 2))
