"""Factorisations of workloads with more queries than cells, in the N dimensions of the cells.

The best strategy depends on W only through WᵀW at p = 2, and through Wᵀdiag(u)W and the lengths
of the rows of W·R⁻¹ at p > 2: W itself, all n(n+1)/2 ranges for instance, is never built.
"""

from __future__ import annotations

import numpy as np

from muhat._arrays import Floats
from muhat.ellipsoids.mirrored import MirroredPairs, centred, is_mirrored
from muhat.ellipsoids.moment_floors import floor_of, gram_defect, gram_floor, pair_floor
from muhat.ellipsoids.moment_spectra import (
    Columns,
    DualProblem,
    Explicitly,
    FewRows,
    ManyRows,
    Pairs,
    Rows,
    TotalOfRows,
)
from muhat.ellipsoids.multiplicative import climb
from muhat.ellipsoids.verification import Unverified
from muhat.workloads.base import Scaled, Workload
from muhat.workloads.explicit import Explicit
from muhat.workloads.identity import Identity
from muhat.workloads.kron import Kron
from muhat.workloads.linear_map import BLOCK
from muhat.workloads.marginals import Marginals
from muhat.workloads.parity import Parity
from muhat.workloads.pooled import pooled_start
from muhat.workloads.prefix import Prefix
from muhat.workloads.proofs import squared_rows
from muhat.workloads.ranges import Ranges
from muhat.workloads.running_totals import RunningTotals
from muhat.workloads.solution import CLIMB, Solution, steps_for
from muhat.workloads.stack import Stack

LARGEST_EXACT = float(1 << 53)
THIN = 1e-10
"""A squared pivot of WᵀW below this part of the diagonal is a matter for the dense solver."""


def solve_gram(W: Workload, p: float, tol: float, *, pairs: bool) -> Solution | None:
    """The best strategy for W of full column rank; None if W is not, or nearly not."""
    N = W.shape[1]
    gram = W.gram()
    size = float(np.diag(gram).max())
    if not (size > 0 and np.isfinite(size)):
        return None
    unit = 2.0 ** (2 * round(np.log2(size) / 2))
    triangle = _triangle(gram / unit)
    if triangle is None:
        return None
    # Under substitution queries may be worth nothing, and only they tell some cells apart.
    moved = W.dense() / np.sqrt(unit) if pairs and W.shape[0] <= N else None
    if p == 2:
        rows: Rows = TotalOfRows(triangle)
    elif moved is not None:
        rows = FewRows(moved - moved.mean(axis=1)[:, None])
    else:
        scale = 1 / np.sqrt(unit)
        rows = ManyRows(
            W.shape[0],
            lambda u: weighted_gram(W, u) / unit,
            lambda X: squared_rows(W, X * scale),
        )
    points = Pairs(N) if pairs else Columns(N)
    problem = _problem(W, gram, unit, points, rows, p)
    try:
        start = pooled_start(W, gram / unit, p) if pairs else None
        limit = steps_for(N, started=start is not None)
        if start is not None and isinstance(problem, MirroredPairs):
            start = problem.together(start[0]), start[1]
        ascent = climb(problem, p, 0.9 * tol, limit=limit, start=start)
    except (FloatingPointError, np.linalg.LinAlgError):
        return None
    u = ascent.row_weights
    roundings = gram_roundings(W, weighted=p > 2)
    weighted = gram / unit if p == 2 or moved is not None else weighted_gram(W, u) / unit
    if isinstance(points, Pairs):
        known = problem if isinstance(problem, MirroredPairs) else points
        laplacian = known.laplacian(ascent.weights)
        if moved is None:
            trace = _pair_trace(weighted, laplacian, roundings)
        else:
            trace = pair_floor(moved, laplacian, None if p == 2 else u)
    elif isinstance(problem, RunningTotals):
        trace = problem.floor(ascent.weights)
    else:
        trace = gram_floor(weighted, ascent.weights, roundings)
    floor = floor_of(trace, ascent.weights, u, p)
    root = float(np.sqrt(unit))
    return Solution(ascent.strategy, ascent.value * root, floor * root, CLIMB)


def _problem(
    W: Workload, gram: Floats, unit: float, points: Columns | Pairs, rows: Rows, p: float
) -> DualProblem:
    """What is climbed: by structure where there is some."""
    if p == 2 and isinstance(points, Pairs):
        moved = centred(gram / unit)
        if is_mirrored(moved):
            return MirroredPairs(moved)
    if p == 2 and isinstance(points, Columns) and isinstance(W, Prefix):
        return RunningTotals(W.n, 1 / float(np.sqrt(unit)))
    rank = W.shape[1] - 1 if isinstance(points, Pairs) else W.shape[1]
    return Explicitly(points, rows, rank)


def weighted_gram(W: Workload, u: Floats) -> Floats:
    """Wᵀdiag(u)W, of shape (N, N), for weights u ≥ 0 of the queries, of shape (m,)."""
    if isinstance(W, Explicit):
        return np.asarray((W.matrix.T * u) @ W.matrix)
    if isinstance(W, Ranges):
        return _weighted_ranges(W.n, u)
    if isinstance(W, Scaled):
        return W.factor**2 * weighted_gram(W.inner, u)
    if isinstance(W, Stack):
        parts = zip(W.parts, W.weights, W.offsets, W.offsets[1:], strict=False)
        grams = [w**2 * weighted_gram(part, u[start:end]) for part, w, start, end in parts]
        return np.asarray(sum(grams))
    N = W.shape[1]
    total = np.empty((N, N))
    width = max(1, BLOCK // W.shape[0])
    for start in range(0, N, width):
        block = W.apply(np.eye(N, min(width, N - start), -start))
        total[:, start : start + width] = W.transposed(u[:, None] * block)
    return (total + total.T) / 2


def gram_roundings(W: Workload, *, weighted: bool = False) -> int:
    """How many relative roundings an entry of WᵀW, or Wᵀdiag(u)W, may carry; 0 if it is exact.

    Whole numbers below 2^53 add up without error, in any order.
    """
    if isinstance(W, Scaled):
        return gram_roundings(W.inner, weighted=weighted) + 3
    if isinstance(W, Stack):
        parts = [gram_roundings(part, weighted=weighted) for part in W.parts]
        return max(parts) + 3 + len(parts)
    if isinstance(W, Ranges) and weighted:
        return 2 * W.n + 2
    if weighted:
        return W.shape[0] + 4 if isinstance(W, Explicit) else 2 * sum(W.shape) + 16
    if isinstance(W, Identity | Prefix | Ranges | Parity | Marginals):
        return 0
    if isinstance(W, Explicit):
        whole = bool((W.matrix == np.rint(W.matrix)).all())
        return 0 if whole and float(np.sum(W.matrix**2)) < LARGEST_EXACT else W.shape[0] + 2
    if isinstance(W, Kron):
        return sum(gram_roundings(factor) + 1 for factor in W.factors)
    return 2 * sum(W.shape) + 16


def _weighted_ranges(n: int, u: Floats) -> Floats:
    """(WᵀUW)_ij = Σ u over the ranges that start by min(i, j) and end from max(i, j) on."""
    table = np.zeros((n, n))
    table[np.triu_indices(n)] = u
    sums = np.cumsum(np.cumsum(table[:, ::-1], axis=1)[:, ::-1], axis=0)
    index = np.arange(n)
    return np.asarray(sums[np.minimum.outer(index, index), np.maximum.outer(index, index)])


def _triangle(gram: Floats) -> Floats | None:
    """S upper triangular with SᵀS = gram, or None where that is not safe."""
    lengths = np.sqrt(np.diag(gram))
    if not (lengths > 0).all():
        return None
    try:
        even = np.linalg.cholesky(gram / lengths[:, None] / lengths).T
    except np.linalg.LinAlgError:
        return None
    return None if float(np.diag(even).min()) ** 2 < THIN else np.asarray(even * lengths)


def _pair_trace(gram: Floats, laplacian: Floats, roundings: int) -> float:
    """At most tr((W Λ Wᵀ)^½): WᵀW ⪰ (1 − η)SᵀS, and the trace of a root is monotone."""
    triangle = _triangle(gram)
    if triangle is None:
        return 0.0
    try:
        defect = gram_defect(gram, triangle, roundings)
    except Unverified:
        return 0.0
    return pair_floor(triangle, laplacian) * float(np.sqrt(1 - defect)) * (1 - 1e-15)
