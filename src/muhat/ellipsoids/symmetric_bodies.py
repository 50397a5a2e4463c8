"""Smallest ellipsoids around bodies that are symmetric about their centre: closed forms.

Each function returns an ellipsoid around K − c. Weights w measure the error as ‖diag(w)z‖_p, so
the body in question is diag(w)(K − c); the ellipsoid is returned in the coordinates of K.
"""

from __future__ import annotations

import math

import numpy as np

from muhat.domains import Ball, Ellipsoid, SchattenBall
from muhat.domains.base import Vector
from muhat.ellipsoids.result import SmallestEllipsoid, norm, with_factor, with_scales


def around_ball(K: Ball, p: float, weights: Vector) -> SmallestEllipsoid:
    """A ball is its own ellipsoid."""
    scales = np.full(K.dim, K.radius)
    return with_scales(scales, norm(weights * scales, p), p, weights, contacts=K.dim)


def around_ellipsoid(K: Ellipsoid, p: float, weights: Vector) -> SmallestEllipsoid:
    """So is an ellipsoid, for every p and all weights: M − A must be positive."""
    floor = norm(weights * K.half_widths, p)
    if K.is_diagonal:
        return with_scales(K.half_widths, floor, p, weights, contacts=K.dim)
    return with_factor(K.factor, floor, p, weights, contacts=K.dim)


def around_lp_ball(half_widths: Vector, r: float, p: float, weights: Vector) -> SmallestEllipsoid:
    """{‖x/s‖_r ≤ 1}: Γ_p = ‖s‖_κ with 1/κ = 1/p + max(0, ½ − 1/r), and M is diagonal.

    For r ≤ 2 M = diag(s²). For r > 2 the largest Σ x_j²/m_j is ‖s²/m‖_{r/(r−2)} by Hölder, and
    Lagrange gives m_j ∝ s_j^{4q/(p + 2q)} with q = r/(r − 2) (a box: q = 1).
    """
    sides = weights * half_widths
    largest = float(sides.max())
    relative = sides / largest
    dim = len(sides)
    if r <= 2:
        return with_scales(half_widths, norm(sides, p), p, weights, contacts=dim)
    q = 1.0 if math.isinf(r) else r / (r - 2)
    power = 0.0 if math.isinf(p) else 4 * q / (p + 2 * q)
    size = norm(relative ** (2 - power), q)
    scales = largest * np.sqrt(size) * relative ** (power / 2) / weights
    inverse_order = (0 if math.isinf(p) else 1 / p) + 0.5 - (0 if math.isinf(r) else 1 / r)
    # The ends of a Hadamard matrix's rows hold it: a power of two of them.
    contacts = 1 << math.ceil(math.log2(dim))
    return with_scales(scales, norm(sides, 1 / inverse_order), p, weights, contacts)


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
    if (weights == weights[0]).all():
        floor = norm(weights * scales, p)
    return with_scales(scales, floor * (1 - 1e-14), p, weights)
