"""The smallest ellipsoid around a union of ellipsoids centred at 0: matrix weights.

The union of L_k·B₂ has a continuum of points; its dual weights are matrices P_k = Q_kQ_kᵀ with
Σ‖Q_k‖_F² = 1, and the dual value is ‖A‖_*, A = [D L_1Q_1, D L_2Q_2, …]. With A = V diag(c) U its
polar factor VU splits into blocks U_k, and Q_k ← L_kᵀD U_k, normalised, never lowers the value
(it alternates two maximisations of ⟨VU, A⟩). Where this stalls (p = ∞, mostly), column generation
takes over from the points found.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat.ellipsoids.finite import (
    FiniteResult,
    check_tolerance,
    coordinate_weights,
    finish,
    finite_matrix,
)
from muhat.ellipsoids.generation import GeneratedOutcome, smallest_around, weighted_slip
from muhat.ellipsoids.interior_point import dual_order, trace_norm
from muhat.ellipsoids.oracles import OracleBody
from muhat.ellipsoids.spans import Array
from muhat.ellipsoids.threads import one_thread
from muhat.ellipsoids.verification import (
    Unverified,
    dual_floor,
    spectral_norm_bound,
    value_of,
    whitening,
)
from muhat.errors import InvalidInput

STEPS = 4000
LOOK = 20
STALLED = 1e-13


def around_ellipsoids(
    factors: Sequence[ArrayLike],
    p: float = 2,
    tol: float = 1e-9,
    *,
    weights: ArrayLike | None = None,
) -> FiniteResult:
    """The smallest ellipsoid around the union of the ellipsoids L_k·B₂, L_k of shape (d, r_k).

    >>> f"{around_ellipsoids([np.diag([1.0, 2.0])]).value:.8f}"  # its own: √(1 + 4)
    '2.23606798'
    """
    p, tol = _check.norm_order(p), check_tolerance(tol)
    if isinstance(factors, np.ndarray) and factors.ndim == 2:
        raise InvalidInput("factors must be a list of matrices; got one matrix.")
    matrices = [finite_matrix("factors", factor) for factor in factors]
    if not matrices or len({len(matrix) for matrix in matrices}) != 1:
        raise InvalidInput("factors must be one matrix or more, all with as many rows.")
    dim = len(matrices[0])
    omega, unit = coordinate_weights(weights, dim)
    largest = max(float(np.abs(matrix).max()) for matrix in matrices)
    scale = float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if largest > 0 else 1.0
    union = [matrix / scale for matrix in matrices]
    with one_thread(), np.errstate(all="ignore"):
        body = OracleBody(lambda W: _farthest(union, W), dim, np.hstack(union))
        outcome = None
        if body.span.rank:
            outcome = _by_matrix_weights(body, union, p, tol, omega)
            if not outcome.converged:
                body.first = np.hstack([outcome.points, np.hstack(union)])
                other = smallest_around(body, p, tol, omega)
                outcome = min(outcome, other, key=lambda found: found.value - found.floor)
        return finish(body, outcome, p, tol, omega, scale, unit)


def _farthest(union: list[Array], W: Array) -> tuple[Array, float]:
    """The axes of each ellipsoid in the metric of W, and a proved bound on the longest."""
    points, bound = [], 0.0
    for L in union:
        image = W @ L
        size = np.abs(W) @ np.abs(L)
        error = 4 * (L.shape[0] + 4) * 2.0**-53 * float(np.sqrt(np.sum(size**2)))
        bound = max(bound, spectral_norm_bound(image) + error)
        points.append(L @ np.linalg.svd(image, full_matrices=False)[2].T)
    return np.hstack(points), bound


def _by_matrix_weights(
    body: OracleBody, union: list[Array], p: float, tol: float, omega: Array
) -> GeneratedOutcome:
    scaled = [omega[:, None] * L for L in union]
    blocks = np.cumsum([L.shape[1] for L in union])[:-1]
    Q = [np.eye(L.shape[1]) / np.sqrt(sum(L.shape[1] for L in union)) for L in union]
    rank, order = body.span.rank, dual_order(p)
    used = body.widths > 0
    e = used / used.sum()
    best, before = np.inf, 0.0
    step = 0
    for step in range(1, STEPS + 1):
        D: Array = np.asarray(used if p == 2 else e ** (1 / (2 * order)), np.float64)
        A = np.hstack([D[:, None] * (L @ q) for L, q in zip(scaled, Q, strict=True)])
        V, c, U = np.linalg.svd(A, full_matrices=False)
        V, c, U = V[:, :rank], c[:rank], U[:rank]
        m = V**2 @ c
        if step % LOOK == 0:
            floor = float(c.sum())
            gap = _plain_gap(V, c, D, m, scaled, p)
            best = min(best, gap)
            if gap <= 0.1 * tol or (floor < before * (1 + STALLED) and gap > best / 2):
                break
            before = floor
        polar = np.split(V @ U, blocks, axis=1)
        Q = [L.T @ (D[:, None] * part) for L, part in zip(scaled, polar, strict=True)]
        size = np.sqrt(sum(float(np.sum(q**2)) for q in Q))
        Q = [q / size for q in Q]
        if p > 2:
            e = np.where(used, np.maximum(m, 1e-18 * m.max()), 0.0)
            e = e / e.sum()
    return _outcome(body, union, Q, (V, c, D), p, tol, omega, step)


def _plain_gap(V: Array, c: Array, D: Array, m: Array, scaled: list[Array], p: float) -> float:
    """value/floor − 1 of the M that belongs to D and the weights, in plain floats."""
    if not c[-1] > 0:
        return np.inf
    white = V.T * D / np.sqrt(c)[:, None]
    longest = max(float(np.linalg.norm(white @ L, 2)) for L in scaled)
    diagonal = m[D > 0] / D[D > 0] ** 2
    size = np.sqrt(trace_norm(D**2, dual_order(p)))
    return longest * float(np.sqrt(trace_norm(diagonal, p / 2))) / float(c.sum() / size) - 1


def _outcome(
    body: OracleBody,
    union: list[Array],
    Q: list[Array],
    decomposition: tuple[Array, Array, Array],
    p: float,
    tol: float,
    omega: Array,
    steps: int,
) -> GeneratedOutcome:
    """Points and weights from the axes of P_k, and the verified M; all of it proved again."""
    points, weights = [], []
    for L, q in zip(union, Q, strict=True):
        axes, sizes, _ = np.linalg.svd(q)
        points.append(L @ axes[:, : len(sizes)])
        weights.append(sizes**2)
    stacked, w = np.hstack(points), np.concatenate(weights)
    V, c, D = decomposition
    floor = dual_floor(
        omega[:, None] * stacked, w, D, p, roundings=1, slip=weighted_slip(body, omega)
    )
    rows = body.span.rows
    value, factor = np.inf, np.zeros((body.dim, 0))
    safe = np.where(D > 0, D, 1.0)
    try:
        root = (V * np.sqrt(c) / (safe * omega)[:, None])[rows]
        white = whitening(root, body.span)
        radius = body.farthest(white.matrix, np.zeros(body.dim), 1, np.inf).bound
        factor, _ = white.scaled_factor(radius)
        value = value_of(factor, p, omega)
    except Unverified:
        pass
    return GeneratedOutcome(
        factor,
        np.zeros(body.dim),
        value,
        floor,
        np.arange(len(w)),
        stacked,
        w / w.sum(),
        D,
        steps,
        value <= floor * (1 + tol),
    )
