"""Proved lower bounds on the trace of the square root of a second moment.

Γ_p ≥ tr(E^½)/√(Σw·‖u‖_q) for E = Σ w_i s_i s_iᵀ over points of the body, rows weighted by √u
(docs/proofs/ellipsoids.md). E = AAᵀ is known up to the roundings of its sum. For *any* T (r, k)
and Q (k, r)

    tr(E^½) = ‖A‖_* ≥ ⟨A, Q·T·A⟩/(‖Q‖₂‖T·A‖₂) = tr(Q·T·E)/(‖Q‖₂·‖T E Tᵀ‖₂^½),

so the eigenvectors Q and T = diag(c)^{−1}Qᵀ are only a guess. If |E − Ê| ≤ ε·s·sᵀ entry by entry
then every error is at most (ε + a few roundings)·(|T|s)ᵢ(|T|s)ⱼ. Directions so thin that this is
much are left out of Q: they are worth little.
"""

from __future__ import annotations

import numpy as np

from muhat.ellipsoids.interior_point import dual_order, trace_norm
from muhat.ellipsoids.spans import Array
from muhat.ellipsoids.verification import FUNCTION_ERROR, TINY, UNIT, Unverified, gamma

CUTS = (0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
ENOUGH = 3e-7  # a loss that needs no second attempt
BLOCK = 64


def root_trace_floor(moment: Array, sizes: Array, roundings: int) -> float:
    """At most tr(E^½), if |E − moment| ≤ γ_roundings·sizes·sizesᵀ; moment (k, k), sizes (k,).

    >>> root_trace_floor(np.diag([4.0, 9.0]), np.array([2.0, 3.0]), 0) > 5 - 1e-12
    True
    """
    k = len(moment)
    squares, vectors = np.linalg.eigh(moment)
    largest = float(squares[-1])
    if not largest > 0:
        return 0.0
    sizes = np.maximum(sizes, np.sqrt(np.maximum(np.diag(moment), 0.0)))
    sizes = sizes * (1 + gamma(min(roundings, 1 << 40) + k + 16))
    best, kept = 0.0, k + 1
    for cut in CUTS:
        keep = squares > max(cut**2, k * UNIT) * largest
        if keep.sum() == kept:
            continue
        kept = int(keep.sum())
        c, Q = np.sqrt(squares[keep]), vectors[:, keep]
        T = (Q / c).T
        reach, span = np.abs(T) @ sizes + TINY, np.abs(Q).T @ sizes + TINY
        X = _product(T, moment)
        unit = gamma(2 * (BLOCK + k // BLOCK) + roundings + 16)
        # The sum over Q is of k numbers in each of the rows of X, then of the rows.
        pairing = float(np.sum(np.sum(Q.T * X, axis=1))) - (unit + gamma(2 * k)) * float(
            reach @ span
        )
        off = np.linalg.norm(_product(X, T.T) - np.eye(len(c)))
        excess = float(off) * (1 + gamma(k * k + 8)) + unit * (float(reach @ reach) + k)
        found = pairing / (np.sqrt(1 + excess) * nearly_orthonormal(Q)) * (1 - 16 * UNIT)
        best = max(best, float(found))
        if best > float(c.sum()) * (1 - ENOUGH):
            break
    return best


def _product(A: Array, B: Array) -> Array:
    """A·B in blocks of the inner dimension: no entry carries the roundings of a long sum."""
    total = np.zeros((len(A), B.shape[1]))
    for start in range(0, A.shape[1], BLOCK):
        total += A[:, start : start + BLOCK] @ B[start : start + BLOCK]
    return total


def gram_floor(gram: Array, weights: Array, roundings: int) -> float:
    """At most ‖W diag(weights)^½‖_* from WᵀW (N, N), each entry a sum of so many roundings.

    |WᵀW − gram| ≤ γ_roundings·|W|ᵀ|W| ≤ γ_roundings·(lengths of columns)(lengths)ᵀ.
    """
    root = np.sqrt(weights)
    moment = root[:, None] * gram * root
    return root_trace_floor(moment, np.sqrt(np.diag(moment)), roundings + 16)


def pair_floor(A: Array, laplacian: Array, row_weights: Array | None = None) -> float:
    """At most tr((B Λ Bᵀ)^½), B = diag(u)^½A, Λ = Σ w_ij (e_i − e_j)(e_i − e_j)ᵀ (N, N), A (k, N).

    A is centred first, which changes nothing and spares cancellation; Λ's diagonal is taken to be
    what its other entries say. The entries of |B||Λ||B|ᵀ are at most s_a s_b,
    s_a² = 2·Σ_i Λ_ii B_ai².
    """
    moved = A - A.mean(axis=1)[:, None]
    moved = moved if row_weights is None else np.sqrt(row_weights)[:, None] * moved
    N = A.shape[1]
    laplacian = laplacian - np.diag(np.diag(laplacian))
    degrees = -_product(laplacian, np.ones((N, 1)))[:, 0]
    laplacian[np.diag_indices(N)] = degrees
    moment = _product(_product(moved, laplacian), moved.T)
    sizes = np.sqrt(2 * (moved**2 @ degrees)) * (1 + gamma(N + 8))
    # Roundings: three in each entry of B (what is taken off a row of A need not be its mean), and
    # the sums of the degrees and of the two products, in blocks.
    return root_trace_floor((moment + moment.T) / 2, sizes, 3 * (BLOCK + N // BLOCK) + 32)


def spread_floor(root_trace: float, center: float, weights: Array) -> float:
    """At most tr(E^½) for pairs, from weights v of columns: Σv = 1 up to rounding.

    Two columns drawn from v, if they differ, have E = 2(A Aᵀ − (Ab)(Ab)ᵀ)/(1 − Σv²) with
    A = diag(u)^½W diag(v)^½ and b = √v, |b| = 1; and ‖A(I − bbᵀ)‖_* ≥ ‖A‖_* − ‖Ab‖.
    `root_trace` ≤ ‖A‖_*, `center` ≥ ‖Ab‖ = ‖diag(u)^½Wv‖.
    """
    N = len(weights)
    same = float(np.sum(weights**2)) * (1 - gamma(N + 4))
    if N < 2 or same > 1 - 1e-9:
        return 0.0
    return max(0.0, (root_trace - center) * float(np.sqrt(2 / (1 - same))) * (1 - gamma(N + 16)))


def floor_of(root_trace: float, weights: Array, row_weights: Array, p: float) -> float:
    """tr(E^½)/√(Σw·‖u‖_q), rounded down."""
    size = float(weights.sum()) * trace_norm(row_weights, dual_order(p))
    if not size > 0:
        return 0.0
    down = 1 - gamma(len(weights) + len(row_weights) + 16) - FUNCTION_ERROR
    return max(0.0, float(root_trace / np.sqrt(size) * down))


def gram_defect(gram: Array, triangle: Array, roundings: int) -> float:
    """η with WᵀW ⪰ (1 − η)·SᵀS, S the upper triangle (N, N); `roundings` as in `gram_floor`.

    η bounds ‖S^{−ᵀ}(WᵀW − SᵀS)S^{−1}‖; Unverified if it is not small.
    """
    from scipy.linalg import solve_triangular

    N = len(gram)
    Z = solve_triangular(triangle, np.eye(N), check_finite=False)
    inverse = np.linalg.norm(triangle @ Z - np.eye(N))
    inverse += gamma(N + 4) * np.linalg.norm(np.abs(triangle) @ np.abs(Z) + 1)
    lengths = np.sqrt(np.diag(gram)) * (1 + gamma(N + 8))
    away = np.linalg.norm(Z.T @ (gram - triangle.T @ triangle) @ Z)
    reach = np.abs(Z).T @ lengths
    away += gamma(4 * N + roundings + 16) * float(reach @ reach)
    if not (inverse < 0.1 and away < 0.1):
        raise Unverified("the Gram matrix is too ill-conditioned for a proof.")
    return float(away / (1 - inverse) ** 2 * (1 + gamma(N * N + 8)))


def nearly_orthonormal(Q: Array) -> float:
    """A proved upper bound on ‖Q‖₂ for Q (n, k) with nearly orthonormal columns."""
    n, k = Q.shape
    gram = Q.T @ Q
    largest = float(np.diag(gram).max()) * (1 + gamma(n + 4))
    off = np.linalg.norm(gram - np.eye(k)) + gamma(n + 3) * k * (largest + 1)
    return float(np.sqrt(1 + off * (1 + gamma(k * k + 8)))) * (1 + 4 * UNIT)
