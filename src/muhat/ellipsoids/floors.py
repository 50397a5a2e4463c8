"""Lower bounds on Γ_p from what is known of simpler bodies.

At an exact optimum for p = 2 and equal weights, M = E^½·tr(E^½) with E = E[ssᵀ] for a measure on
the body, so E = M²/Γ². Any measure and any diagonal D with tr_q(D²) = 1 bound Γ_p from below by
tr((D·E·D)^½); D = d^{1/p−½}·I is one for every p.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from muhat.domains import Domain
from muhat.domains.base import Vector
from muhat.ellipsoids.finite import around_differences, around_shifted
from muhat.ellipsoids.result import SmallestEllipsoid

Matrix = NDArray[np.float64]

EXACT = 1e-9
"""A gap up to which an ellipsoid counts as the optimum; the floor is lowered by as much."""

LARGEST_DENSE = 2_000
LARGEST_SAMPLED = 32
"""Extreme points are sampled in at most this many dimensions."""


def second_moment(optimum: SmallestEllipsoid) -> Matrix | None:
    """E[ssᵀ] of a measure on the body behind an optimum for p = 2 at equal weights.

    None if the optimum is not exact, or too large for a matrix.
    """
    if optimum.gap > EXACT or optimum.value == 0 or len(optimum.scales) > LARGEST_DENSE:
        return None
    M = optimum.matrix
    return np.asarray(M @ M / optimum.value**2)


def dual_floor(moment: Matrix | None, p: float, weights: Vector) -> float:
    """tr((W·E·W)^½)·d^{1/p−½} ≤ Γ_p of the weighted body."""
    if moment is None:
        return 0.0
    weighted = weights[:, None] * moment * weights
    roots = np.sqrt(np.maximum(np.linalg.eigvalsh(weighted), 0.0))
    shrink = len(weights) ** ((0 if math.isinf(p) else 1 / p) - 0.5)
    return float(roots.sum() * shrink * (1 - 2 * EXACT))


def sampled_floor(K: Domain, body: str, p: float, weights: Vector) -> float:
    """Γ_p of finitely many extreme points of K, the floor of their own certificate.

    The directions are the axes and a fixed sequence that fills the sphere evenly enough.
    """
    if K.dim > LARGEST_SAMPLED:
        return 0.0
    directions = np.vstack([np.eye(K.dim), -np.eye(K.dim), _spread_directions(K.dim)])
    points = np.array([K.extreme_point(theta / weights) for theta in directions])
    solve = around_differences if body == "difference" else around_shifted
    return solve(points.T, p, 1e-4, weights=weights).floor


def _spread_directions(dim: int) -> Matrix:
    """Normal quantiles of an additive recurrence with the roots of primes, of shape (m, d)."""
    from scipy.special import ndtri

    primes = [n for n in range(2, 20 * dim + 20) if all(n % k for k in range(2, n))][:dim]
    count = min(32 * dim, 1024)
    steps = np.outer(np.arange(1, count + 1), np.sqrt(primes)) % 1
    return np.asarray(ndtri(np.clip(steps, 1e-9, 1 - 1e-9)))
