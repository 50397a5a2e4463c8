"""Ellipsoids around K ∪ −K for a K that is not centred at 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from muhat._arrays import Floats
from muhat.ellipsoids.finite import around_columns
from muhat.ellipsoids.floors import dual_floor
from muhat.ellipsoids.result import (
    CLOSED_FORM_ERROR,
    SmallestEllipsoid,
    floored,
    from_finite,
    norm,
    with_factor,
)

MOST_CORNERS = 1 << 12
"""Corners of images and translations up to which the solver takes them."""


def around_opposite_points(
    points: Floats, p: float, weights: Floats, tol: float
) -> SmallestEllipsoid:
    """The solver's ellipsoid around finitely many points, of shape (N, d), and their opposites."""
    return from_finite(around_columns(points.T, p, tol, weights=weights))


def around_both_sides(
    inner: SmallestEllipsoid,
    center: Floats,
    far: Floats,
    moment: Floats | None,
    p: float,
    weights: Floats,
) -> SmallestEllipsoid:
    """Around K ∪ −K, from the ellipsoid around K and where that is centred.

    With E around K and c its centre, (x, 1) lies in the ellipsoid E/s ⊕ 1/(1−s) around (c, 0);
    the image under (z, t) ↦ z + tc is M = E/s + ccᵀ/(1−s), and s = a/(a + b) gives √tr M = a + b
    at p = 2, a = Γ(K − c), b = ‖c‖. For the floor: `far` is a point of K, and `moment` the second
    moment of a measure on K − c whose mean is 0, if one is known.
    """
    size, distance = inner.value, norm(weights * center, p)
    if distance == 0:
        return replace(inner, shift=None)
    if size == 0:
        scales = np.abs(center)
        return with_factor(center[:, None], distance, p, weights, scales=scales)
    # Any split contains the body; one that vanishes would divide by 0.
    rest = max(distance / (size + distance), 2.0**-50)
    s = 1 - rest
    factor = np.column_stack([inner.root / np.sqrt(s), center / np.sqrt(rest)])
    if moment is not None:
        moment = moment + np.outer(center, center)
    # A segment ±x has Γ_p = ‖x‖_p.
    farthest = floored(norm(weights * far, p), 1e-12)
    floor = max(inner.floor, farthest, dual_floor(moment, p, weights))
    grown = np.hypot(inner.scales / np.sqrt(s), np.abs(center) / np.sqrt(rest))
    return with_factor(factor, floor, p, weights, scales=grown, error=CLOSED_FORM_ERROR)
