"""The certified pair around a zonotope A·[−1, 1]^k.

With D ≥ 0 diagonal, tr_q(D²) = 1, q = p/(p−2), and Σ 1/m_i = 1,

    M = A·diag(m)·Aᵀ  contains the zonotope,  m_i = U/‖D·a_i‖,  U = Σ‖D·a_i‖,
    L = tr((D·A·(2/π)·arcsin(R)·Aᵀ·D)^½) ≤ Γ_p,  R the cosines between the D·a_i:

the signs of a Gaussian vector with covariance R are a measure on the corners with the second
moment (2/π)·arcsin(R). At the best D, L ≤ Γ_p ≤ U ≤ √(π/2)·L. Where the farthest corner can be
searched for, the solver has the smallest one.
"""

from __future__ import annotations

import math

import numpy as np

from muhat._arrays import Floats
from muhat.ellipsoids.finite import around_body, around_columns
from muhat.ellipsoids.result import (
    CLOSED_FORM_ERROR,
    SmallestEllipsoid,
    floored,
    from_finite,
    with_factor,
)
from muhat.ellipsoids.verification import UNIT, gamma
from muhat.ellipsoids.zonotope_corners import ZonotopeCorners, is_searched

STEPS = 200


def around_zonotope(generators: Floats, p: float, weights: Floats, tol: float) -> SmallestEllipsoid:
    """The smallest ellipsoid around A·[−1, 1]^k, or the certified pair for many generators."""
    used = generators[:, generators.any(axis=0)]
    if not used.size:
        return from_finite(around_columns(np.zeros((len(generators), 1)), p, tol, weights=weights))
    scale = float(np.ldexp(1.0, int(np.frexp(np.abs(used).max())[1])))
    body = ZonotopeCorners(used / scale)
    if is_searched(used.shape[1], body.span.rank):
        return from_finite(around_body(body, p, tol, weights, scale))
    A = weights[:, None] * used
    D = _best_diagonal(A, p)
    lengths = np.linalg.norm(D[:, None] * A, axis=0)
    factor = used * np.sqrt(lengths.sum() / lengths)
    floor = _gaussian_signs(D[:, None] * A, lengths)
    # Σ 1/m_i is a sum of as many quotients as there are generators.
    return with_factor(factor, floor, p, weights, error=gamma(used.shape[1] + 16))


def _best_diagonal(A: Floats, p: float) -> Floats:
    """D with tr_q(D²) = 1 and a large Σ‖D·a_i‖: concave in e = D², climbed by damped steps."""
    dim = len(A)
    if p == 2:
        return np.ones(dim)
    q = 1.0 if math.isinf(p) else p / (p - 2)
    squares = A**2
    e = np.full(dim, dim ** (-1 / q))
    for _ in range(STEPS):
        gradient = squares @ (1 / np.sqrt(np.maximum(squares.T @ e, 1e-300)))
        # At the optimum e^{q−1} ∝ gradient; for q = 1, e·gradient ∝ e.
        target = e * gradient if q == 1 else (gradient ** (1 / (q - 1)) * e) ** 0.5
        e = np.maximum(target / np.sum(target**q) ** (1 / q), 1e-13)
        e /= np.sum(e**q) ** (1 / q)
    return np.asarray(np.sqrt(e))


def _gaussian_signs(DA: Floats, lengths: Floats) -> float:
    """L: the dual value of the signs of correlated normals, rounded down."""
    cosines = np.clip((DA / lengths).T @ (DA / lengths), -1, 1)
    np.fill_diagonal(cosines, 1.0)
    moment = DA @ (2 / math.pi * np.arcsin(cosines)) @ DA.T
    # Near ±1 the arcsine turns an error ε of a cosine into √(2ε); apart from that, into ε.
    slopes = np.minimum(1 / np.sqrt(np.maximum(1 - cosines**2, 1e-300)), 1e8)
    np.fill_diagonal(slopes, 0.0)
    angles = gamma(len(DA) + 16) * (1 + slopes)
    blur = np.abs(DA) @ (angles + gamma(2 * len(angles) + 16)) @ np.abs(DA).T
    error = float(np.sqrt(np.sum(blur**2)))
    size = float(np.sqrt(np.sum(moment**2)))
    lowered = np.linalg.eigvalsh(moment) - error - 64 * len(DA) * UNIT * size
    total = math.fsum(np.sqrt(np.maximum(lowered, 0.0)).tolist())
    # D has a norm of 1 up to rounding.
    return floored(total, CLOSED_FORM_ERROR)
