"""The nearest point of a convex hull that is known through its extreme points.

They are added one at a time, the one farthest towards x first, and the nearest point of those
found so far is a small least squares problem with weights ≥ 0 that add up to 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from muhat.domains.vectors import Matrix, Vector

MOST_CORNERS = 400
TOLERANCE = 1e-9


def nearest_to_corners(
    x: Vector, extreme_point: Callable[[Vector], Vector], center: Vector, size: float
) -> Vector:
    """The point of the hull nearest to x, of shape (d,), up to about 1e-5 of its size."""
    corners = extreme_point(x - center)[None]
    nearest: Vector = np.asarray(corners[0])
    for _ in range(MOST_CORNERS):
        if np.linalg.norm(x - nearest) <= TOLERANCE * size:
            return np.asarray(x)
        corner = extreme_point(x - nearest)
        if (x - nearest) @ (corner - nearest) <= TOLERANCE * size**2:
            break
        corners = np.vstack([corners, corner])
        parts = _parts(corners, x, size)
        corners, parts = corners[parts > 0], parts[parts > 0]
        nearest = np.asarray(parts @ corners)
    return nearest


def _parts(corners: Matrix, x: Vector, size: float) -> Vector:
    """Weights ≥ 0 with sum 1 whose mean of the corners is nearest to x."""
    from scipy.optimize import nnls

    # One heavy row asks for the sum 1; dividing makes it exact.
    heavy = 1e4
    system = np.vstack([(corners - x).T / size, np.full(len(corners), heavy)])
    target = np.append(np.zeros(len(x)), heavy)
    parts, _ = nnls(system, target)
    return np.asarray(parts / parts.sum())
