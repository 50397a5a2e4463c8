"""Ellipsoids around K ∪ −K for a K that is not centred at 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from muhat.domains import Domain, Image, MomentTensor, Points, Simplex, Translate
from muhat.domains.vectors import Vector
from muhat.ellipsoids.bodies import around, moment_of
from muhat.ellipsoids.finite import around_columns
from muhat.ellipsoids.floors import dual_floor
from muhat.ellipsoids.moment_tensors import around_tensors
from muhat.ellipsoids.result import (
    CLOSED_FORM_ERROR,
    SmallestEllipsoid,
    floored,
    from_finite,
    norm,
    with_factor,
    with_scales,
)

MOST_CORNERS = 1 << 12


def around_both_sides(K: Domain, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    """The smallest ellipsoid around K ∪ −K.

    A simplex has the ellipsoid of the cross-polytope ±e_i, tensors one of their own, and lists of
    points go to the solver. Else, with E around K and c its centre, (x, 1) lies in the ellipsoid
    E/s ⊕ 1/(1−s) around (c, 0); the image under (z, t) ↦ z + tc is M = E/s + ccᵀ/(1−s), and
    s = a/(a + b) gives √tr M = a + b at p = 2, a = Γ(K − c), b = ‖c‖.
    """
    if isinstance(K, Simplex):
        floor = norm(weights, p)
        return with_scales(np.ones(K.dim), floor, p, weights, contacts=K.dim)
    if isinstance(K, MomentTensor):
        return around_tensors(K, "symmetric", p, weights)
    if isinstance(K, Points | Image | Translate):
        corners = K.vertices()
        if corners is not None and (isinstance(K, Points) or len(corners) <= MOST_CORNERS):
            return from_finite(around_columns(corners.T, p, tol, weights=weights))
    inner = around(K, "shifted", p, weights, tol)
    center = K.center if inner.shift is None else inner.shift
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
    moment = moment_of(K, "shifted", tol) if K.is_symmetric else None
    if moment is not None:
        moment = moment + np.outer(center, center)
    floors = (inner.floor, _farthest_point(K, p, weights), dual_floor(moment, p, weights))
    grown = np.hypot(inner.scales / np.sqrt(s), np.abs(center) / np.sqrt(rest))
    return with_factor(factor, max(floors), p, weights, scales=grown, error=CLOSED_FORM_ERROR)


def _farthest_point(K: Domain, p: float, weights: Vector) -> float:
    """‖x‖_p of a point x of K far from 0: a segment ±x has Γ_p = ‖x‖_p."""
    return floored(norm(weights * K.extreme_point(K.center), p), 1e-12)
