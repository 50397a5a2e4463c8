"""What is proved of a factorisation, whatever found it: sensitivity and standard deviations.

**Sensitivity.** R is a matrix of floats; its columns (or differences of columns) are measured with
a bound on the rounding, and R is divided by that.

**Standard deviations.** Let W = L·R exactly. For any Y (N, k) with ‖I − RY‖₂ ≤ η < 1

    L = WY·(RY)^{−1},    so a row of L is at most ‖(WY)_j‖/(1 − η) long.

Under substitution W = L·R + o·1ᵀ, and L = (WY − o·1ᵀY)(RY)^{−1}, o = W·1/N − L·R·1/N; R and Y are
centred, so that 1ᵀY and R·1 are roundings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Floats
from muhat.ellipsoids.interior_point import trace_norm
from muhat.ellipsoids.verification import FUNCTION_ERROR, TINY, UNIT, Unverified, gamma
from muhat.workloads.base import Scaled, SumOfWorkloads, Workload
from muhat.workloads.explicit import Explicit
from muhat.workloads.kron import Kron
from muhat.workloads.linear_map import BLOCK
from muhat.workloads.ranges import Ranges
from muhat.workloads.stack import Stack

LARGEST_PAIRS = 1 << 26
PRECISE, ROUGH = 1e-11, 1e-10
"""A defect for which ‖|R||Y|‖ ≤ ‖R‖‖Y‖ is good enough."""


@dataclass(frozen=True, eq=False)
class Inverse:
    """Y of shape (N, k), and η ≥ ‖I − RY‖₂."""

    matrix: Floats
    defect: float


def sensitivity(R: Floats, *, pairs: bool) -> float:
    """A proved upper bound on the longest column of R (k, N), or difference of two columns."""
    k, N = R.shape
    squares = np.sum(R**2, axis=0)
    longest = float(squares.max(initial=0.0)) * (1 + gamma(k + 4)) + TINY
    if not pairs:
        return float(np.sqrt(longest)) * (1 + 4 * UNIT)
    if N * N > LARGEST_PAIRS:
        return 2 * float(np.sqrt(longest)) * (1 + 4 * UNIT)
    apart = 0.0
    width = max(1, BLOCK // N)
    for start in range(0, N, width):
        block = R[:, start : start + width]
        lengths = squares[start : start + width, None] + squares - 2 * (block.T @ R)
        apart = max(apart, float(lengths.max()))
    # Inner products and squares err by γ_k·|r_i||r_j|, and |r_i|² + |r_j|² + 2|r_i||r_j| ≤ 4·max².
    return float(np.sqrt(max(apart, 0.0) + 4 * gamma(k + 8) * longest)) * (1 + 4 * UNIT)


def of_unit_sensitivity(R: Floats, *, pairs: bool) -> Floats:
    """R divided by its sensitivity: one person moves R·x by at most 1, which is proved."""
    R = R / sensitivity(R, pairs=pairs)
    excess = sensitivity(R, pairs=pairs)
    return R if excess <= 1 else R / (excess * (1 + 8 * UNIT))


def right_inverse(R: Floats, *, centred: bool = False) -> Inverse:
    """R⁺ and how far R·R⁺ is from the identity; Unverified if R has no full row rank.

    With `centred`, the columns of R⁺ add up to 0, as the rows of R do.
    """
    from scipy.linalg import solve_triangular

    k, N = R.shape
    if k > N:
        raise Unverified("the strategy has more rows than cells.")
    try:
        if k == N:
            Y = np.asarray(np.linalg.inv(R), np.float64)
        else:
            Q, triangle = np.linalg.qr(R.T)
            Y = Q @ solve_triangular(triangle, np.eye(k), trans="T", check_finite=False)
    except np.linalg.LinAlgError:
        raise Unverified("the strategy is singular.") from None
    Y = Y - Y.mean(axis=0) if centred else Y
    off = np.eye(k) - R @ Y
    if PRECISE < np.linalg.norm(off) < 0.1:
        Y = Y + Y @ off
        Y = Y - Y.mean(axis=0) if centred else Y
        off = np.eye(k) - R @ Y
    size = float(np.linalg.norm(R) * np.linalg.norm(Y)) + k
    if gamma(N + 4) * size > ROUGH:
        size = float(np.linalg.norm(np.abs(R) @ np.abs(Y))) + k
    defect = (float(np.linalg.norm(off)) + gamma(N + 4) * size) * (1 + gamma(2 * k * N + 16))
    if not defect < 0.1:
        raise Unverified("the strategy is too ill-conditioned for a proof.")
    return Inverse(Y, defect)


def row_lengths(W: Workload, Y: Floats) -> Floats:
    """Proved upper bounds on the lengths of the rows of W·Y, Y (N, k), of shape (m,).

    Sums of a matrix err by γ_N·|W||Y|. Other workloads add and multiply in another order, but no
    sum of theirs has larger terms than the longest row of W has against Y.
    """
    N, k = Y.shape
    if isinstance(W, Explicit):
        lengths = np.sqrt(_squares(W.matrix @ Y) + TINY)
        error = np.sqrt(_squares(np.abs(W.matrix) @ np.abs(Y) + TINY)) * gamma(N + 4)
        return np.asarray((lengths + error) * (1 + gamma(N + k + 8)))
    reach = longest_row(W) * float(np.linalg.norm(Y)) * (1 + gamma(2 * N + k + 8))
    # Squared distances of points, for ranges, cancel by roundings of the largest of the points.
    spread = float(_squares(_range_points(Y)).max()) if _has_ranges(W) else 0.0
    squares = squared_rows(W, Y) + TINY + 4 * gamma(k + 8) * spread * _largest_weight(W) ** 2
    return np.asarray((np.sqrt(squares) + gamma(4 * N + 16) * reach) * (1 + gamma(k + 8)))


def longest_row(W: Workload) -> float:
    """A row length that no intermediate sum of a product with W exceeds, relative to a vector's.

    The parts of a sum may cancel; those of other workloads are rows of theirs.
    """
    if isinstance(W, SumOfWorkloads):
        return sum(longest_row(part) for part in W.parts)
    if isinstance(W, Scaled):
        return abs(W.factor) * longest_row(W.inner)
    if isinstance(W, Stack):
        parts = zip(W.parts, W.weights, strict=True)
        return max(weight * longest_row(part) for part, weight in parts)
    if isinstance(W, Kron):
        return math.prod(longest_row(factor) for factor in W.factors)
    return float(W.row_norms().max())


def squared_rows(W: Workload, Y: Floats) -> Floats:
    """The squared lengths of the rows of W·Y, of shape (m,), without holding W·Y."""
    if isinstance(W, Explicit):
        return _squares(W.matrix @ Y)
    if isinstance(W, Ranges):
        return _squared_ranges(Y)
    if isinstance(W, Scaled):
        return W.factor**2 * squared_rows(W.inner, Y)
    if isinstance(W, Stack):
        parts = zip(W.parts, W.weights, strict=True)
        return np.concatenate([weight**2 * squared_rows(part, Y) for part, weight in parts])
    rows, k = W.shape[0], Y.shape[1]
    total = np.zeros(rows)
    width = max(1, BLOCK // max(rows, 1))
    for start in range(0, k, width):
        total += _squares(W.apply(np.ascontiguousarray(Y[:, start : start + width])))
    return total


def standard_deviations(W: Workload, R: Floats, Y: Inverse, offset: Floats | None) -> Floats:
    """Proved upper bounds on the lengths of the rows of L, of shape (m,)."""
    lengths = row_lengths(W, Y.matrix)
    slack = Y.defect
    if offset is not None:
        N = len(Y.matrix)
        off = np.abs(Y.matrix.sum(axis=0)) + gamma(N) * np.abs(Y.matrix).sum(axis=0)
        drift = float(np.linalg.norm(off)) * (1 + gamma(N + 8))
        moved = np.abs(R.sum(axis=1)) + gamma(N) * np.abs(R).sum(axis=1)
        slack += drift * float(np.linalg.norm(moved)) / N * (1 + gamma(N + 8))
        largest = float(np.abs(offset).max()) * (1 + gamma(4 * N))
        lengths = lengths + (np.abs(offset) + gamma(4 * N) * largest) * drift
    if not slack < 0.5:
        raise Unverified("the strategy is too ill-conditioned for a proof.")
    return np.asarray(lengths / (1 - slack) * (1 + 4 * UNIT))


def value_of(deviations: Floats, p: float) -> float:
    """‖deviations‖_p, rounded up."""
    return trace_norm(deviations, p) * (1 + gamma(len(deviations) + 8) + FUNCTION_ERROR)


def _has_ranges(W: Workload) -> bool:
    """Whether `squared_rows` takes distances of points for some of the rows."""
    if isinstance(W, Scaled):
        return _has_ranges(W.inner)
    if isinstance(W, Stack):
        return any(map(_has_ranges, W.parts))
    return isinstance(W, Ranges)


def _largest_weight(W: Workload) -> float:
    if isinstance(W, Scaled):
        return abs(W.factor) * _largest_weight(W.inner)
    if isinstance(W, Stack):
        parts = zip(W.parts, W.weights, strict=True)
        return max(weight * _largest_weight(part) for part, weight in parts)
    return 1.0


def _squares(block: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", block, block))


def _range_points(Y: Floats) -> Floats:
    """q_t, the sum of the first t rows of Y, t ≤ n, about their mean, of shape (n + 1, k)."""
    sums = np.zeros((len(Y) + 1, Y.shape[1]))
    np.cumsum(Y, axis=0, out=sums[1:])
    return np.asarray(sums - sums.mean(axis=0))


def _squared_ranges(Y: Floats) -> Floats:
    """‖q_e − q_s‖² for all s < e: what a range adds up to is the difference of two prefixes."""
    points = _range_points(Y)
    gram = points @ points.T
    lengths = np.diag(gram)
    apart = np.maximum(lengths[:, None] + lengths - 2 * gram, 0.0)
    return np.asarray(apart[np.triu_indices(len(points), 1)])
