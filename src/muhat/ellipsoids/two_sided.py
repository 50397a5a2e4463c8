"""Ellipsoids around K ∪ −K for a K that is not centred at 0."""

from __future__ import annotations

import numpy as np

from muhat.domains import Domain, Points, Simplex
from muhat.domains.base import Vector
from muhat.ellipsoids.bodies import around
from muhat.ellipsoids.finite import around_columns
from muhat.ellipsoids.floors import dual_floor, second_moment
from muhat.ellipsoids.result import (
    SmallestEllipsoid,
    from_finite,
    norm,
    with_factor,
    with_scales,
)
from muhat.errors import InvalidInput


def around_both_sides(K: Domain, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    """The smallest ellipsoid around K ∪ −K.

    A simplex has the ellipsoid of the cross-polytope ±e_i. Lists of points go to the solver. For
    a K that is symmetric about c ≠ 0, (x, 1) lies in E/s ⊕ 1/(1−s) with E around K − c; the image
    under (z, t) ↦ z + tc is M = E/s + ccᵀ/(1−s), and s = a/(a + b) gives √tr M = a + b at p = 2,
    a = Γ(K − c), b = ‖c‖.
    """
    if isinstance(K, Simplex):
        ones = np.ones(K.dim)
        return with_scales(ones, norm(weights, p), p, weights, contacts=K.dim)
    if isinstance(K, Points):
        return from_finite(around_columns(K.points.T, p, tol, weights=weights))
    if not K.is_symmetric:
        corners = K.vertices()
        if corners is None:
            raise InvalidInput(f"no ellipsoid is known around both sides of {K!r:.60}.")
        return from_finite(around_columns(corners.T, p, tol, weights=weights))
    inner = around(K, "shifted", p, weights, tol)
    s = inner.value / (inner.value + norm(weights * K.center, p))
    factor = np.column_stack([inner.root / np.sqrt(s), K.center / np.sqrt(1 - s)])
    moment = second_moment(around(K, "shifted", 2, np.ones(K.dim), tol))
    if moment is not None:
        moment = moment + np.outer(K.center, K.center)
    floors = (inner.floor, _farthest_point(K, p, weights), dual_floor(moment, p, weights))
    return with_factor(factor, max(floors), p, weights)


def _farthest_point(K: Domain, p: float, weights: Vector) -> float:
    """‖x‖_p of a point x of K far from 0: a segment ±x has Γ_p = ‖x‖_p."""
    return norm(weights * K.extreme_point(K.center), p) * (1 - 1e-12)
