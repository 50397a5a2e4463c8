"""Lower bounds on Γ_p from what is known of simpler bodies.

At an exact optimum for p = 2 and equal weights, M = E^½·tr(E^½) with E = E[ssᵀ] for a measure on
the body, so E = M²/Γ². Any measure and any diagonal D with tr_q(D²) = 1 bound Γ_p from below by
tr((D·E·D)^½); D = d^{1/p−½}·I is one for every p.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from muhat._arrays import Floats
from muhat.ellipsoids.finite import around_differences, around_shifted
from muhat.ellipsoids.result import (
    CLOSED_FORM_ERROR,
    NORM_ERROR,
    SmallestEllipsoid,
    floored,
    norm,
)
from muhat.ellipsoids.verification import UNIT

ExtremePoint = Callable[[Floats], Floats]
"""A point of K that is farthest along a direction."""

LARGEST_DENSE = 2_000
MOMENT_ERROR = 64
"""Roundings a dimension, relative to the whole matrix, of a second moment and its eigenvalues."""

POINT_ERROR = 256
"""Roundings of a coordinate of an extreme point, relative to the domain's size and place."""

LARGEST_ALONG = 500
LARGEST_SAMPLED = 32
"""Extreme points are sampled in at most this many dimensions."""


def second_moment(optimum: SmallestEllipsoid) -> Floats | None:
    """E[ssᵀ] of a measure on the body behind an optimum for p = 2 at equal weights.

    None if there is none at hand, or it is too large for a matrix.
    """
    if len(optimum.scales) > LARGEST_DENSE or optimum.value == 0:
        return None
    if optimum.moment is not None or not optimum.is_exact:
        return optimum.moment
    M = optimum.matrix
    return np.asarray(M @ M / optimum.value**2)


def dual_floor(moment: Floats | None, p: float, weights: Floats, error: float = 0.0) -> float:
    """tr((W·E·W)^½)·d^{1/p−½} ≤ Γ_p of the weighted body; E is right up to error·‖E‖.

    Eigenvalues are lowered by a bound on their error, the rounding of E and of what made it
    included, before the roots are taken: a root would blow up the error of a small one.
    """
    if moment is None:
        return 0.0
    weighted = weights[:, None] * moment * weights
    size = float(np.sqrt(np.sum(weighted**2)))
    lowered = np.linalg.eigvalsh(weighted) - (error + MOMENT_ERROR * len(weights) * UNIT) * size
    roots = np.sqrt(np.maximum(lowered, 0.0))
    shrink = len(weights) ** ((0 if math.isinf(p) else 1 / p) - 0.5)
    return floored(math.fsum(roots.tolist()) * shrink, CLOSED_FORM_ERROR)


def sampled_floor(
    extreme_point: ExtremePoint, sizes: Floats, body: str, p: float, weights: Floats
) -> float:
    """Γ_p of finitely many extreme points of K, the floor of their own certificate.

    The directions are the axes and a fixed sequence that fills the sphere evenly enough. The
    points are computed from numbers as large as `sizes`, one a coordinate, so each lies in K plus
    a small box: Γ is at most that much larger.
    """
    dim = len(sizes)
    if dim > LARGEST_SAMPLED:
        return _spread_floor(extreme_point, sizes, p, weights) / (1 if body == "difference" else 2)
    directions = np.vstack([np.eye(dim), -np.eye(dim), spread_directions(dim)])
    points = np.array([extreme_point(theta / weights) for theta in directions])
    solve = around_differences if body == "difference" else around_shifted
    floor = solve(points.T, p, 1e-4, weights=weights).floor
    return max(0.0, floor - _lost(sizes, body, p, weights))


def _spread_floor(extreme_point: ExtremePoint, sizes: Floats, p: float, weights: Floats) -> float:
    """The dual value of differences of extreme points: along the axes, or along orthogonal signs.

    Half of it is a floor with a free shift: K − K fits into twice the ellipsoid around K.
    """
    dim = len(sizes)
    if dim > LARGEST_ALONG:
        return 0.0
    from scipy.linalg import hadamard

    signs = hadamard(1 << math.ceil(math.log2(dim)))[:, :dim]
    floors = []
    for directions in (np.eye(dim), signs):
        thetas = directions / weights
        along = np.array([extreme_point(theta) - extreme_point(-theta) for theta in thetas])
        floors.append(dual_floor(along.T @ along / len(along), p, weights))
    return max(0.0, max(floors) - _lost(sizes, "difference", p, weights))


def _lost(sizes: Floats, body: str, p: float, weights: Floats) -> float:
    """Γ of the box that computed extreme points may be off by."""
    blur = POINT_ERROR * UNIT * sizes
    order = 2.0 if math.isinf(p) else 2 * p / (p + 2)
    lost = norm(weights * blur, order) * (2 if body == "difference" else 1)
    return lost * (1 + NORM_ERROR)


def spread_directions(dim: int) -> Floats:
    """Normal quantiles of an additive recurrence with the roots of primes, of shape (m, d)."""
    from scipy.special import ndtri

    primes = [n for n in range(2, 20 * dim + 20) if all(n % k for k in range(2, n))][:dim]
    count = min(32 * dim, 1024)
    steps = np.outer(np.arange(1, count + 1), np.sqrt(primes)) % 1
    return np.asarray(ndtri(np.clip(steps, 1e-9, 1 - 1e-9)))
