"""Proofs in floating point: that an ellipsoid contains a set, and that no smaller one can.

**Containment.** The ellipsoid is L·B₂ with L triangular, in the coordinates that decide the others
(`spans`). For any matrix W with ‖I − WL‖₂ ≤ η < 1,

    ‖L⁻¹s‖ = ‖(WL)⁻¹Ws‖ ≤ ‖Ws‖/(1 − η).

W is the computed inverse. With u = 2⁻⁵³ and γ_n = nu/(1 − nu) a product of matrices of inner
length n, summed in any order, errs by at most γ_n|A||B| entry by entry (conventional
multiplication; underflow is bounded apart), so both ‖I − WL‖_F and ‖Ws‖ are bounded by what was
computed plus that much. Scaling L by t rounds each entry once, which costs u·‖|W||L|‖_F more of η.

**Floor.** tr((DΣD)^½) is the nuclear norm of A = D Y diag(w)^½, and ‖A‖_* ≥ tr(VᵀAZᵀ)/(‖V‖‖Z‖)
for *any* V and Z, so singular vectors are only a guess; ‖V‖ is bounded through ‖VᵀV − I‖_F.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat.ellipsoids.interior_point import dual_order, trace_norm
from muhat.ellipsoids.spans import Array, Span
from muhat.errors import MuhatError

UNIT = 2.0**-53
TINY = 1e-290  # more than all that underflow can take from a sum of products here
FUNCTION_ERROR = 32 * UNIT  # powers and roots are accurate to a few units in the last place


class Unverified(MuhatError, ArithmeticError):
    """No proof that the ellipsoid contains the set; it must not be used."""


@dataclass(frozen=True, eq=False)
class Whitening:
    """W ≈ L⁻¹ of shape (r, d) that reads `rows` alone: ‖L⁻¹s‖ ≤ ‖Ws‖/(1 − defect)."""

    matrix: Array
    triangle: Array
    defect: float
    span: Span

    def scaled_factor(self, radius: float) -> tuple[Array, float]:
        """F = t·E·L with the set inside F·B₂, if ‖Ws‖ ≤ radius on the set; and t."""
        t = radius / (1 - self.defect) * (1 + 8 * UNIT)
        triangle = self.triangle * t
        if not (np.isfinite(triangle).all() and (np.abs(np.diag(triangle)) > TINY).all()):
            raise Unverified("the ellipsoid has no finite, positive size.")
        factor = self.span.extension @ triangle
        factor[self.span.rows] = triangle
        return factor, t


def gamma(n: int) -> float:
    """γ_n: the relative error of n roundings."""
    return n * UNIT / (1 - n * UNIT)


def inverse_root(form: Array, rounding: float) -> tuple[Array, float] | None:
    """F with FFᵀ ≈ form⁻¹, and a drift: FᵀAF ⪰ (1 − drift)·I, so that (FFᵀ)⁻¹ ⪯ A/(1 − drift).

    `rounding` bounds what the products lose, relatively; None for a form that floats do not see as
    positive.
    """
    try:
        root = np.linalg.inv(np.linalg.cholesky(form)).T
    except np.linalg.LinAlgError:
        return None
    left = root.T @ form @ root - np.eye(len(form))
    reach = np.abs(root).T @ np.abs(form) @ np.abs(root)
    return root, float(np.sqrt(np.sum(left**2)) + rounding * np.sqrt(np.sum(reach**2)))


def whitening(root: Array, span: Span) -> Whitening:
    """A proved whitening of M = root·rootᵀ on the rows of the span; root of shape (r, k).

    Raises Unverified if root is not finite, is singular, or is too ill-conditioned for a proof.
    """
    from scipy.linalg import solve_triangular

    rank = span.rank
    if root.shape[0] != rank or root.shape[1] < rank or not np.isfinite(root).all():
        raise Unverified("the factor is not a finite matrix of the rank of the set.")
    L = np.asarray(np.linalg.qr(root.T, mode="r")).T
    L = L * np.where(np.diag(L) < 0, -1.0, 1.0)
    if not (np.isfinite(L).all() and (np.diag(L) > TINY).all()):
        raise Unverified("the factor is singular on the span of the set.")
    W = np.tril(solve_triangular(L, np.eye(rank), lower=True, check_finite=False))
    if not np.isfinite(W).all():
        raise Unverified("the factor is singular on the span of the set.")
    size = np.abs(W) @ np.abs(L) + np.eye(rank) + TINY
    # (r + 2) roundings in WL − I, one more for the scaling of L, and one for `size` itself.
    error = np.abs(W @ L - np.eye(rank)) + gamma(rank + 4) * size
    defect = float(np.sqrt(np.sum(error**2))) * (1 + gamma(rank**2 + 4))
    if not defect < 0.5:
        raise Unverified("the factor is too ill-conditioned for a proof.")
    matrix = np.zeros((rank, span.dim))
    matrix[:, span.rows] = W
    return Whitening(matrix, L, defect, span)


def largest_norm(W: Array, columns: Array, roundings: int = 0) -> float:
    """A proved upper bound on max ‖Ws‖ over the columns s, of shape (d, N).

    `roundings`: how many relative roundings the entries of the columns carry themselves.
    """
    return float(norm_bounds(W, columns, roundings).max(initial=0.0))


def norm_bounds(W: Array, columns: Array, roundings: int = 0) -> Array:
    """Proved upper bounds on ‖Ws‖ for each column s, of shape (N,)."""
    computed = W @ columns
    size = np.abs(W) @ np.abs(columns) + TINY
    inner, outer = W.shape[1], len(W)
    norms = np.sqrt(np.sum(computed**2, axis=0) + TINY)
    errors = gamma(inner + roundings + 3) * np.sqrt(np.sum(size**2, axis=0))
    return np.asarray((norms + errors) * (1 + gamma(outer + inner + 8)))


def spectral_norm_bound(matrix: Array) -> float:
    """A proved upper bound on ‖matrix‖₂: B = UΣVᵀ + residual for the computed U, Σ, V."""
    U, sizes, Vt = np.linalg.svd(matrix, full_matrices=False)
    scaled = U * sizes
    residual = np.abs(matrix - scaled @ Vt)
    residual += gamma(len(sizes) + 4) * (np.abs(matrix) + np.abs(scaled) @ np.abs(Vt))
    rest = float(np.sqrt(np.sum(residual**2))) * (1 + gamma(matrix.size + 8))
    return (float(sizes[0]) * _spectral_bound(U) * _spectral_bound(Vt.T) + rest) * (1 + 8 * UNIT)


def value_of(factor: Array, p: float, weights: Array | None = None) -> float:
    """√tr_{p/2}(diag(w) F Fᵀ diag(w)), rounded up."""
    if not factor.size:
        return 0.0
    sizes = np.sqrt(np.sum(factor**2, axis=1))
    sizes = sizes if weights is None else sizes * weights
    up = 1 + gamma(sum(factor.shape) + 8) + FUNCTION_ERROR
    return trace_norm(sizes, p) * up


def dual_floor(
    columns: Array,
    weights: Array,
    diagonal: Array,
    p: float,
    *,
    shifted: bool = False,
    roundings: int = 1,
    slip: Array | None = None,
) -> float:
    """A proved lower bound on Γ_p of the columns (d, N), from any weights (N,) and D ≥ 0 (d,).

    With `shifted`, on Γ_p with a free shift. Nothing about the weights or D needs to be optimal.
    `roundings` as in `largest_norm`; `slip` (d,): how far each coordinate of a column may be from
    that of a point of the set.
    """
    used = weights > 0
    Y, w = columns[:, used], weights[used]
    if not Y.size or not np.isfinite(w).all() or not (diagonal >= 0).all():
        return 0.0
    d, N = Y.shape
    loss = 0.0
    if slip is not None:
        loss = float(np.sqrt(min(d, N) * np.sum((diagonal * slip) ** 2))) * (1 + gamma(d + 8))
    if shifted:
        # Moving Σ from the exact mean m to v adds (m − v)(m − v)ᵀ, at most ‖D(m − v)‖ in the trace.
        origin = Y[:, :1]
        moved = Y - origin
        mean = (moved @ w / w.sum())[:, None]
        error = gamma(2 * N + 8) * (np.abs(moved) @ w / w.sum() + TINY)
        loss += float(np.sqrt(np.sum((diagonal * error) ** 2)))
        # The two subtractions round relative to |moved| and |mean|, each column by itself; a
        # nuclear norm is at most √rank times the Frobenius norm.
        slip = 3 * UNIT * (np.abs(moved) + np.abs(mean))
        spread = float(np.sqrt(np.sum((diagonal[:, None] * slip) ** 2 * (w / w.sum()))))
        loss = (loss + np.sqrt(min(d, N)) * spread) * (1 + gamma(d * N + 8))
        Y = moved - mean
    A = diagonal[:, None] * Y * np.sqrt(w)
    nuclear = _nuclear_floor(A, roundings + 4)
    down = 1 - gamma(N + d + 16) - FUNCTION_ERROR
    order = dual_order(p)
    size = np.sqrt(trace_norm(diagonal**2, order))
    if not size > 0:
        return 0.0
    mass = np.sqrt(np.sum(w))
    return max(0.0, float((nuclear / mass - loss) / size * down))


def _nuclear_floor(A: Array, roundings: int) -> float:
    """A proved lower bound on the nuclear norm, entries carrying so many relative roundings."""
    U, _, Z = np.linalg.svd(A, full_matrices=False)
    return paired_floor(A, U, Z, roundings)


def paired_floor(A: Array, U: Array, Z: Array, roundings: int) -> float:
    """⟨A, UZ⟩/(‖U‖₂‖Z‖₂) ≤ ‖A‖_*, rounded down, for any U and Z; the singular vectors are best."""
    core = U.T @ A
    pairing = float(np.sum(np.sum(core * Z, axis=1)))
    size = float(np.sum(np.sum((np.abs(U).T @ np.abs(A)) * np.abs(Z), axis=1)))
    # d roundings in UᵀA, N + r + 1 in the two sums, and those that A and `size` carry.
    error = gamma(2 * sum(A.shape) + roundings + 8) * (size + TINY)
    return max(0.0, pairing - error) / (_spectral_bound(U) * _spectral_bound(Z.T))


def _spectral_bound(U: Array) -> float:
    """A proved upper bound on ‖U‖₂ for U with nearly orthonormal columns."""
    n, k = U.shape
    gram = np.abs(U.T @ U - np.eye(k)) + gamma(n + 3) * (np.abs(U).T @ np.abs(U) + np.eye(k))
    return float(np.sqrt(1 + np.sqrt(np.sum(gram**2)) * (1 + gamma(k**2 + 8)))) * (1 + 4 * UNIT)
