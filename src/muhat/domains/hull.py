"""The nearest point of a domain's convex hull: where the mean of its records lies.

Balls, boxes and simplices project in closed form. Elsewhere the hull is known through its
extreme points: they are added one at a time, the one farthest towards x first, and the nearest
point of those found so far is a small least squares problem with weights ≥ 0 that add up to 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from muhat.domains.ball import Ball
from muhat.domains.base import Domain
from muhat.domains.box import Box
from muhat.domains.ellipsoid import Ellipsoid
from muhat.domains.lp_ball import LpBall
from muhat.domains.schatten_ball import SchattenBall
from muhat.domains.simplex import Simplex
from muhat.domains.vectors import Matrix, Vector, vector

MOST_CORNERS = 400
TOLERANCE = 1e-9


def nearest_in_hull(K: Domain, point: ArrayLike) -> Vector:
    """The point of conv(K) nearest to x, of shape (d,), up to about 1e-5 of K's size.

    >>> nearest_in_hull(Ball(radius=1, dim=2), [3.0, 0.0]).tolist()
    [1.0, 0.0]
    """
    x = vector("point", point, dim=K.dim)
    if isinstance(K, Ball | Box | Simplex):
        return np.asarray(K.clip(x))
    if isinstance(K, Ellipsoid | LpBall | SchattenBall) and np.allclose(K.clip(x), x, 1e-12, 0):
        return np.asarray(x)
    size = float(np.max(K.half_widths)) or 1.0
    corners = K.extreme_point(x - K.center)[None]
    nearest: Vector = np.asarray(corners[0])
    for _ in range(MOST_CORNERS):
        if np.linalg.norm(x - nearest) <= TOLERANCE * size:
            return np.asarray(x)
        corner = K.extreme_point(x - nearest)
        if (x - nearest) @ (corner - nearest) <= TOLERANCE * size**2:
            break
        corners = np.vstack([corners, corner])
        shares = _shares(corners, x, size)
        corners, shares = corners[shares > 0], shares[shares > 0]
        nearest = np.asarray(shares @ corners)
    return nearest


def _shares(corners: Matrix, x: Vector, size: float) -> Vector:
    """Weights ≥ 0 with sum 1 whose mean of the corners is nearest to x."""
    from scipy.optimize import nnls

    # One heavy row asks for the sum 1; dividing makes it exact.
    heavy = 1e4
    system = np.vstack([(corners - x).T / size, np.full(len(corners), heavy)])
    target = np.append(np.zeros(len(x)), heavy)
    shares, _ = nnls(system, target)
    return np.asarray(shares / shares.sum())
