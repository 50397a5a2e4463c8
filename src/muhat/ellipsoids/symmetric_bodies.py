"""Smallest ellipsoids around bodies that are symmetric about their centre: closed forms.

Each function returns an ellipsoid around K − c. Weights w measure the error as ‖diag(w)z‖_p, so
the body in question is diag(w)(K − c); the ellipsoid is returned in the coordinates of K. Values
are rounded up and floors down by bounds on the error of their formulas.
"""

from __future__ import annotations

import math

import numpy as np

from muhat._arrays import Floats
from muhat.ellipsoids.result import (
    CLOSED_FORM_ERROR,
    SmallestEllipsoid,
    norm,
    with_factor,
    with_scales,
)
from muhat.ellipsoids.spans import span_of
from muhat.ellipsoids.verification import UNIT, Unverified, gamma, whitening

LARGEST_ROOT = 2_000
"""Coordinates up to which a root of M is built."""


def around_axes(half_widths: Floats, p: float, weights: Floats, error: float) -> SmallestEllipsoid:
    """A ball, or an ellipsoid along the axes, is its own ellipsoid for every p and all weights."""
    floor = norm(weights * half_widths, p)
    dim = len(half_widths)
    return with_scales(half_widths, floor, p, weights, contacts=dim, error=error, is_exact=True)


def around_ellipsoid(
    A: Floats, factor: Floats, half_widths: Floats, p: float, weights: Floats
) -> SmallestEllipsoid:
    """So is any ellipsoid: M − A must be positive. `factor` is a computed root of A."""
    # The value is that of M = A itself; its computed root is enlarged until it contains A.
    return with_factor(
        factor * (1 + _root_error(A, factor)),
        norm(weights * half_widths, p),
        p,
        weights,
        contacts=len(A),
        scales=half_widths,
        error=8 * UNIT,
        is_exact=True,
    )


def around_root(root: Floats, p: float, weights: Floats) -> SmallestEllipsoid:
    """root·(unit ball), flat or not, where the root itself says what the body is."""
    scales = np.linalg.norm(root, axis=1)
    return with_factor(
        root,
        norm(weights * scales, p),
        p,
        weights,
        contacts=root.shape[1],
        scales=scales,
        error=gamma(root.shape[1] + 8),
        is_exact=True,
    )


def _root_error(A: Floats, F: Floats) -> float:
    """ε with A ⪯ (1 + ε)²·F·Fᵀ, F a computed triangular root, proved with the inverse of F.

    ‖F⁻¹(A − FFᵀ)F⁻ᵀ‖ ≤ ‖W(A − FFᵀ)Wᵀ‖_F/(1 − η)² for any W with ‖I − WF‖ ≤ η.
    """
    try:
        white = whitening(F, span_of(np.eye(len(F))))
    except Unverified:
        return 0.5
    W, size = np.abs(white.matrix), np.abs(F) @ np.abs(F).T + np.abs(A)
    rest = np.abs(A - F @ F.T) + gamma(len(A) + 4) * size
    moved = W @ rest @ W.T * (1 + gamma(2 * len(A) + 8))
    excess = float(np.sqrt(np.sum(moved**2))) * (1 + gamma(A.size + 8)) / (1 - white.defect) ** 2
    return excess / 2


def around_lp_ball(half_widths: Floats, r: float, p: float, weights: Floats) -> SmallestEllipsoid:
    """{‖x/s‖_r ≤ 1}: Γ_p = ‖s‖_κ with 1/κ = 1/p + max(0, ½ − 1/r), and M is diagonal.

    For r ≤ 2 M = diag(s²). For r > 2 the largest Σ x_j²/m_j is ‖s²/m‖_{r/(r−2)} by Hölder, and
    Lagrange gives m_j ∝ s_j^{4q/(p + 2q)} with q = r/(r − 2) (a box: q = 1).
    """
    sides = weights * half_widths
    largest = float(sides.max())
    dim = int(np.count_nonzero(sides))
    error = CLOSED_FORM_ERROR
    if r <= 2 or not dim:
        floor = norm(sides, p)
        return with_scales(half_widths, floor, p, weights, contacts=dim, error=error, is_exact=True)
    relative = sides / largest
    q = 1.0 if math.isinf(r) else r / (r - 2)
    power = 0.0 if math.isinf(p) else 4 * q / (p + 2 * q)
    size = norm(relative ** (2 - power), q)
    # No noise where there is no width, also at p = ∞, where all others have the same.
    scales = largest * np.sqrt(size) * relative ** (power / 2) * (sides > 0) / weights
    inverse_order = (0 if math.isinf(p) else 1 / p) + 0.5 - (0 if math.isinf(r) else 1 / r)
    # The ends of a Hadamard matrix's rows hold it: a power of two of them.
    contacts = 1 << math.ceil(math.log2(dim))
    floor = norm(sides, 1 / inverse_order)
    return with_scales(scales, floor, p, weights, contacts=contacts, error=error, is_exact=True)


def around_alike(
    d: int, across: float, along: float, p: float, weights: Floats, contacts: int | None = None
) -> SmallestEllipsoid:
    """M = across·(I − 11ᵀ/d) + along·11ᵀ/d around a body that permutations leave as it is.

    Exact, if these are the best for equal weights; beyond LARGEST_ROOT the sphere around it.
    """
    scales = np.full(d, math.sqrt(across * (1 - 1 / d) + along / d))
    floor = norm(weights * scales, p)
    error = gamma(d + 16) + CLOSED_FORM_ERROR
    if d > LARGEST_ROOT:
        sphere = np.full(d, math.sqrt(max(across, along)))
        return with_scales(sphere, floor, p, weights, contacts=contacts, error=error)
    side = (math.sqrt(along) - math.sqrt(across)) / d
    root = math.sqrt(across) * np.eye(d) + side
    return with_factor(
        root,
        floor,
        p,
        weights,
        contacts=contacts,
        scales=scales,
        error=error,
        is_exact=True,
    )
