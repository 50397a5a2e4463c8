"""Smallest ellipsoids around bodies that are symmetric about their centre: closed forms.

Each function returns an ellipsoid around K − c. Weights w measure the error as ‖diag(w)z‖_p, so
the body in question is diag(w)(K − c); the ellipsoid is returned in the coordinates of K. Values
are rounded up and floors down by bounds on the error of their formulas.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from muhat.domains import Ball, Ellipsoid, SchattenBall
from muhat.domains.vectors import Vector
from muhat.ellipsoids.result import (
    CLOSED_FORM_ERROR,
    SmallestEllipsoid,
    norm,
    with_factor,
    with_scales,
)
from muhat.ellipsoids.verification import UNIT, Unverified, gamma

Matrix = NDArray[np.float64]


def around_ball(K: Ball, p: float, weights: Vector) -> SmallestEllipsoid:
    """A ball is its own ellipsoid."""
    scales = np.full(K.dim, K.radius)
    floor = norm(weights * scales, p)
    return with_scales(scales, floor, p, weights, contacts=K.dim, error=4 * UNIT, is_exact=True)


def around_ellipsoid(K: Ellipsoid, p: float, weights: Vector) -> SmallestEllipsoid:
    """So is an ellipsoid, for every p and all weights: M − A must be positive."""
    floor = norm(weights * K.half_widths, p)
    if K.is_diagonal:
        return with_scales(
            K.half_widths, floor, p, weights, contacts=K.dim, error=8 * UNIT, is_exact=True
        )
    # The value is that of M = A itself; its computed root is enlarged until it contains A.
    return with_factor(
        K.factor * (1 + _root_error(K.matrix, K.factor)),
        floor,
        p,
        weights,
        contacts=K.dim,
        scales=K.half_widths,
        error=8 * UNIT,
        is_exact=True,
    )


def _root_error(A: Matrix, F: Matrix) -> float:
    """ε with A ⪯ (1 + ε)²·F·Fᵀ, F a computed triangular root, proved with the inverse of F.

    ‖F⁻¹(A − FFᵀ)F⁻ᵀ‖ ≤ ‖W(A − FFᵀ)Wᵀ‖_F/(1 − η)² for any W with ‖I − WF‖ ≤ η.
    """
    from muhat.ellipsoids.spans import span_of
    from muhat.ellipsoids.verification import whitening

    try:
        white = whitening(F, span_of(np.eye(len(F))))
    except Unverified:
        return 0.5
    W, size = np.abs(white.matrix), np.abs(F) @ np.abs(F).T + np.abs(A)
    rest = np.abs(A - F @ F.T) + gamma(len(A) + 4) * size
    moved = W @ rest @ W.T * (1 + gamma(2 * len(A) + 8))
    excess = float(np.sqrt(np.sum(moved**2))) * (1 + gamma(A.size + 8)) / (1 - white.defect) ** 2
    return excess / 2


def around_lp_ball(half_widths: Vector, r: float, p: float, weights: Vector) -> SmallestEllipsoid:
    """{‖x/s‖_r ≤ 1}: Γ_p = ‖s‖_κ with 1/κ = 1/p + max(0, ½ − 1/r), and M is diagonal.

    For r ≤ 2 M = diag(s²). For r > 2 the largest Σ x_j²/m_j is ‖s²/m‖_{r/(r−2)} by Hölder, and
    Lagrange gives m_j ∝ s_j^{4q/(p + 2q)} with q = r/(r − 2) (a box: q = 1).
    """
    sides = weights * half_widths
    largest = float(sides.max())
    relative = sides / largest
    dim = len(sides)
    error = CLOSED_FORM_ERROR
    if r <= 2:
        floor = norm(sides, p)
        return with_scales(half_widths, floor, p, weights, contacts=dim, error=error, is_exact=True)
    q = 1.0 if math.isinf(r) else r / (r - 2)
    power = 0.0 if math.isinf(p) else 4 * q / (p + 2 * q)
    size = norm(relative ** (2 - power), q)
    scales = largest * np.sqrt(size) * relative ** (power / 2) / weights
    inverse_order = (0 if math.isinf(p) else 1 / p) + 0.5 - (0 if math.isinf(r) else 1 / r)
    # The ends of a Hadamard matrix's rows hold it: a power of two of them.
    contacts = 1 << math.ceil(math.log2(dim))
    floor = norm(sides, 1 / inverse_order)
    return with_scales(scales, floor, p, weights, contacts=contacts, error=error, is_exact=True)


def around_schatten_ball(K: SchattenBall, p: float, weights: Vector) -> SmallestEllipsoid:
    """Matrices with ‖σ(X)‖_r ≤ radius."""
    # Rotations of rows and columns leave K as it is and act irreducibly, so M = m²·I at equal
    # weights; m is the largest Frobenius norm: of rank one for orders up to 2, else of full rank.
    rank = min(K.shape)
    inverse = 0 if math.isinf(K.p) else 1 / K.p
    reach = K.radius * rank ** max(0.0, 0.5 - inverse)
    # The uniform measure on the orbit has E[ssᵀ] = (reach²/d)·I; the best D gives this value.
    order = 2.0 if math.isinf(p) else 2 * p / (p + 2)
    floor = reach / math.sqrt(K.dim) * norm(weights, order)
    scales = np.full(K.dim, reach)
    is_exact = bool((weights == weights[0]).all())
    if is_exact:
        floor = norm(weights * scales, p)
    return with_scales(scales, floor, p, weights, error=CLOSED_FORM_ERROR, is_exact=is_exact)
