"""The smallest ellipsoid around x^{⊗ℓ} − y^{⊗ℓ} for an even order, |x|, |y| ≤ 1, at any weights.

Let X = x^{⊗ℓ/2}, of length at most 1, and Z = XXᵀ − YYᵀ, whose entries are those of
x^{⊗ℓ} − y^{⊗ℓ}. For every set A of coordinates of X, B the others,

    q_A(Z) = ½·((Σ_A Z_aa)² + ‖Z‖² − ‖Z_BB‖²) ≤ 1

(docs/proofs/ellipsoids.md). So is every mean of such forms, and M = (Σ μ_A q_A)⁻¹ contains: what is
left is to choose shares μ of sets, a convex problem. For order 2 the best of these is the best of
all that have been tried; one set, that of all coordinates, is the best at equal weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from muhat._arrays import Floats, Integers
from muhat.domains.moment_basis import TensorBasis
from muhat.domains.vectors import Matrix, Vector
from muhat.ellipsoids.result import CLOSED_FORM_ERROR, SmallestEllipsoid, with_factor
from muhat.ellipsoids.verification import gamma, inverse_root

Sets = tuple[tuple[int, ...], ...]

LEAST_SHARE = 1e-5
"""Sets of smaller shares are left out: a release lists them, and they are worth little."""

ENOUGH = 2e-5
"""What another set must gain."""

ROUNDS, STEPS = 40, 300
POWERS = (32.0, 512.0)
"""Orders of the norm of the diagonal that stand for the largest entry, one after the other."""

LARGEST_DRIFT = 1e-6
MOST_HALVES = 130
"""Coordinates of X up to which sets are looked for."""


@dataclass(frozen=True, eq=False)
class WeightedSets:
    """M⁻¹ = Σ μ_A q_A for sets A of coordinates of x^{⊗ℓ/2}, with shares μ that add up to 1."""

    K: TensorBasis
    sets: Sets
    shares: Floats

    @classmethod
    def whole(cls, K: TensorBasis) -> WeightedSets:
        """The set of all coordinates alone: the best of order 2 at equal weights."""
        half = TensorBasis(K.order // 2, K.record_dim)
        return cls(K, (tuple(range(half.dim)),), np.ones(1))

    @cached_property
    def half(self) -> Halves:
        """How coordinates of x^{⊗ℓ/2} make those of x^{⊗ℓ}."""
        return Halves.of(self.K)

    @cached_property
    def form(self) -> tuple[Floats, Matrix]:
        """The diagonal of M⁻¹ but for the lengths, (dim,), and the block of all even moments."""
        inside = np.array([self.half.inside(A) for A in self.sets])
        diagonal = self.half.covered(inside, self.shares)
        lengths = inside * self.half.roots
        block = np.diag(diagonal[self.half.doubled]) + lengths.T * (self.shares / 2) @ lengths
        return diagonal, block

    @cached_property
    def matrix(self) -> Matrix:
        """M, of shape (dim, dim)."""
        diagonal, block = self.form
        M = np.diag(1 / diagonal)
        M[np.ix_(self.half.doubled, self.half.doubled)] = np.linalg.inv(block)
        return M

    def ellipsoid(self, floor: float, p: float, weights: Vector) -> SmallestEllipsoid | None:
        """M around K − K; None where floats cannot tell whether it contains."""
        diagonal, block = self.form
        rounding = gamma(len(block) ** 2 + len(self.sets) + 64)
        found = inverse_root(block, rounding)
        if found is None or not found[1] < LARGEST_DRIFT:
            return None
        root, drift = found
        factor = np.diag(1 / np.sqrt(diagonal))
        factor[np.ix_(self.half.doubled, self.half.doubled)] = root
        error = drift + rounding + CLOSED_FORM_ERROR
        return with_factor(factor, floor, p, weights, error=error)


@dataclass(frozen=True, eq=False)
class Halves:
    """How the coordinates a of X = x^{⊗ℓ/2} make those of x^{⊗ℓ}: X_a·X_b is a part of a + b.

    `places`, of shape (D, D), is the coordinate of each pair, `parts` how much of its square is
    the pair's, `doubled` the coordinate of a + a, and X_a² = `roots`_a times that one.
    """

    dim: int
    places: Integers
    parts: Matrix
    doubled: Integers
    roots: Floats

    @classmethod
    def of(cls, K: TensorBasis) -> Halves:
        """For an even order."""
        half = TensorBasis(K.order // 2, K.record_dim)
        rows = half.indices
        pairs = np.concatenate(
            [np.repeat(rows, len(rows), axis=0), np.tile(rows, (len(rows), 1))], axis=1
        )
        where = {tuple(row): place for place, row in enumerate(K.indices.tolist())}
        listed = [where[tuple(row)] for row in np.sort(pairs, axis=1).tolist()]
        places = np.array(listed, np.int64).reshape(len(rows), len(rows))
        m = half.multiplicities
        doubled = np.diag(places).copy()
        return cls(
            K.dim,
            places,
            np.outer(m, m) / K.multiplicities[places],
            doubled,
            m / np.sqrt(K.multiplicities[doubled]),
        )

    def inside(self, A: Sequence[int]) -> Floats:
        """1 in the set and 0 beside it, of shape (D,)."""
        indicator = np.zeros(len(self.doubled))
        indicator[list(A)] = 1.0
        return indicator

    def covered(self, inside: Matrix, shares: Floats) -> Floats:
        """½·Σ μ_A·(the part of each coordinate's square that is not of two outside A), (dim,)."""
        outside = (1 - inside).T * shares @ (1 - inside)
        covering = self.parts * (shares.sum() - outside)
        return np.bincount(self.places.ravel(), covering.ravel(), minlength=self.dim) / 2


def weighted_sets(K: TensorBasis, p: float, weights: Vector) -> WeightedSets:
    """Nearly the best sets and shares for the error ‖diag(weights)·‖_p; all coordinates at least.

    Sets are added one by one, each the one that the shares found so far would gain most from.
    """
    every = WeightedSets.whole(K)
    half, D = every.half, len(every.sets[0])
    if D == 1 or D > MOST_HALVES:
        return every
    problem = _Problem(half, weights)
    inside = np.vstack([np.ones((1, D)), np.eye(D)])
    logs = np.append(0.0, np.full(D, -3.0))
    powers = (p / 2,) if math.isfinite(p) else POWERS
    reached = math.inf
    for _ in range(ROUNDS):
        logs, value = problem.best_shares(inside, logs, powers[0])
        slopes = problem.evaluated(inside, _shares(logs), powers[0])[1]
        new, slope = slopes.steepest(np.vstack([inside, _levels(slopes.singles)]))
        if value > reached - ENOUGH or slope < slopes.mean * (1 + ENOUGH):
            break
        reached = value
        inside, logs = np.vstack([inside, new]), np.append(logs, logs.max() - 5)
    for power in powers[1:]:
        logs, _ = problem.best_shares(inside, logs, power)
    shares = _shares(logs)
    shares[0] = max(shares[0], 2 * LEAST_SHARE)  # without the set of all, M may have no end
    kept = shares > LEAST_SHARE
    sets = tuple(tuple(np.flatnonzero(row).tolist()) for row in inside[kept])
    found = WeightedSets(K, sets, shares[kept] / shares[kept].sum())
    return found if problem.value(found, p) < problem.value(every, p) * (1 - ENOUGH) else every


def _shares(logs: Floats) -> Floats:
    sizes = np.exp(logs - logs.max())
    return np.asarray(sizes / sizes.sum())


def _levels(sizes: Floats) -> Matrix:
    """The sets of the largest entries, one a size."""
    order = np.argsort(-sizes, kind="stable")
    inside = np.zeros((len(sizes), len(sizes)))
    for count in range(len(sizes)):
        inside[count:, order[count]] = 1.0
    return inside


@dataclass(frozen=True, eq=False)
class _Slopes:
    """What sets are worth: a quadratic form in their indicators, and what the shares have of it."""

    pairs: Matrix
    lengths: Matrix
    mean: float = 0.0

    @property
    def singles(self) -> Floats:
        """What a coordinate is worth in all."""
        return np.asarray(self.pairs.sum(axis=0) + np.diag(self.lengths))

    def of(self, inside: Matrix) -> Floats:
        """Of each set, a row of `inside`."""
        outside = 1 - inside
        return np.asarray(
            np.einsum("ka,ab,kb->k", inside, self.lengths, inside)
            + self.pairs.sum()
            - np.einsum("ka,ab,kb->k", outside, self.pairs, outside)
        )

    def steepest(self, starts: Matrix) -> tuple[Floats, float]:
        """The best set that changing one coordinate at a time leads to."""
        inside, values = starts.copy(), self.of(starts)
        D = inside.shape[1]
        while True:
            best = int(values.argmax())
            turned = np.abs(inside[best] - np.eye(D))
            turned = turned[turned.any(axis=1)]
            reached = self.of(turned)
            if not len(turned) or reached.max() <= values[best] * (1 + 1e-12):
                return inside[best], float(values[best])
            inside[best], values[best] = turned[reached.argmax()], float(reached.max())


class _Problem:
    """‖diag(W·M·W)‖ in the norm of order `power`, as a function of shares."""

    def __init__(self, half: Halves, weights: Vector) -> None:
        self.half, self.squares = half, (weights / weights.max()) ** 2

    def value(self, found: WeightedSets, p: float) -> float:
        """√ of that norm of order p/2, up to a factor of the weights."""
        variances = self.squares * np.diag(found.matrix)
        top = float(variances.max())
        if math.isinf(p):
            return math.sqrt(top)
        return math.sqrt(top * float(np.sum((variances / top) ** (p / 2))) ** (2 / p))

    def best_shares(self, inside: Matrix, start: Floats, power: float) -> tuple[Floats, float]:
        """Logarithms of shares, and of the value."""
        from scipy.optimize import minimize

        def falling(logs: Floats) -> tuple[float, Floats]:
            shares = _shares(logs)
            value, slopes = self.evaluated(inside, shares, power)
            return value, -shares * (slopes.of(inside) - slopes.mean)

        options = {"maxiter": STEPS, "ftol": 1e-11, "gtol": 1e-8}
        bounds = [(-30.0, 5.0)] * len(start)
        start = np.maximum(start - start.max(), -30.0)
        best = minimize(falling, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return np.asarray(best.x), float(best.fun)

    def evaluated(self, inside: Matrix, shares: Floats, power: float) -> tuple[float, _Slopes]:
        """The logarithm of the norm, and how fast it falls with the share of a set."""
        half = self.half
        diagonal = half.covered(inside, shares)
        lengths = inside * half.roots
        block = np.diag(diagonal[half.doubled]) + lengths.T * (shares / 2) @ lengths
        inverse = np.linalg.inv(block)
        variances = 1 / diagonal
        variances[half.doubled] = np.diag(inverse)
        sizes = self.squares * variances
        top = float(sizes.max())
        total = float(np.sum((sizes / top) ** power))
        # d ln‖·‖ = Σ rise·d(variance), and dM = −M·d(M⁻¹)·M.
        rise = self.squares * (sizes / top) ** (power - 1) / (top * total)
        curve = rise / diagonal**2
        held = (inverse * rise[half.doubled]) @ inverse
        curve[half.doubled] = np.diag(held)
        pairs = half.parts * curve[half.places] / 2
        slopes = _Slopes(pairs, held * np.outer(half.roots, half.roots) / 2)
        mean = float(shares @ slopes.of(inside))
        return math.log(top) + math.log(total) / power, replace(slopes, mean=mean)
