"""The smallest ellipsoid around K − K, or around K with a free shift, for every domain.

Closed forms where they exist; products, sums, images and translations go back to their parts;
lists of corners go to the solver.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from muhat.domains import (
    Ball,
    Box,
    Domain,
    Ellipsoid,
    Image,
    LpBall,
    MomentTensor,
    Points,
    Product,
    SchattenBall,
    Simplex,
    Sum,
    Translate,
    Zonotope,
)
from muhat.domains.base import Vector
from muhat.ellipsoids.finite import around_columns, around_differences, around_shifted
from muhat.ellipsoids.floors import dual_floor, sampled_floor, second_moment
from muhat.ellipsoids.moment_tensors import around_tensors
from muhat.ellipsoids.result import (
    SmallestEllipsoid,
    from_finite,
    norm,
    with_factor,
    with_scales,
)
from muhat.ellipsoids.symmetric_bodies import (
    around_ball,
    around_ellipsoid,
    around_lp_ball,
    around_schatten_ball,
)
from muhat.ellipsoids.zonotopes import around_zonotope
from muhat.errors import InvalidInput

Matrix = NDArray[np.float64]

MOST_VERTICES = 1 << 12
SIZE = {"difference": 2.0, "shifted": 1.0}
"""How much larger than K − c the body is, where K is symmetric about c."""


@singledispatch
def around(K: Domain, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    """The smallest ellipsoid around the "difference" K − K, or around the "shifted" K."""
    corners = K.vertices()
    if corners is None:
        raise InvalidInput(
            f"the smallest ellipsoid around {type(K).__name__} is not known: it has too many "
            "corners to list and no closed form."
        )
    return around_points(corners, body, p, weights, tol)


def around_points(
    points: Matrix, body: str, p: float, weights: Vector, tol: float
) -> SmallestEllipsoid:
    """The solver's ellipsoid around the body of finitely many points, of shape (N, d)."""
    solve = around_differences if body == "difference" else around_shifted
    return from_finite(solve(points.T, p, tol, weights=weights))


@around.register
def _(K: Ball, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    return around_ball(K, p, weights).scaled(SIZE[body])


@around.register
def _(K: Ellipsoid, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    return around_ellipsoid(K, p, weights).scaled(SIZE[body])


@around.register
def _(K: Box, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    return around_lp_ball(K.half_widths, math.inf, p, weights).scaled(SIZE[body])


@around.register
def _(K: LpBall, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    return around_lp_ball(K.half_widths, K.p, p, weights).scaled(SIZE[body])


@around.register
def _(K: SchattenBall, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    return around_schatten_ball(K, p, weights).scaled(SIZE[body])


@around.register
def _(K: Zonotope, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    return around_zonotope(K.generators, p, weights, tol).scaled(SIZE[body])


@around.register
def _(K: MomentTensor, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    return around_tensors(K, body, p, weights)


@around.register
def _(K: Points, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    if K.is_symmetric:
        columns = (K.points - K.center).T
        result = around_columns(columns, p, tol, weights=weights)
        return from_finite(result).scaled(SIZE[body])
    return around_points(K.points, body, p, weights, tol)


@around.register
def _(K: Simplex, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    """At equal weights conv(e_i) has M = 2(I − 11ᵀ/d), conv(0, e_i) has M = 2(I − 11ᵀ/(d+1))."""
    if body == "shifted" or (weights != weights[0]).any():
        return around_points(np.asarray(K.vertices()), body, p, weights, tol)
    corners = K.dim + K.origin
    scales = np.full(K.dim, np.sqrt(2 * (1 - 1 / corners)))
    root = None
    if K.dim <= 2_000:
        # (I − a·11ᵀ)² = I − 11ᵀ/m for m corners if a = (1 − √(1 − d/m))/d.
        a = (1 - np.sqrt(1 - K.dim / corners)) / K.dim
        root = np.sqrt(2.0) * (np.eye(K.dim) - a)
    value = norm(weights * scales, p)
    return SmallestEllipsoid(scales, root, value, value, contacts=corners * (corners - 1) // 2)


@around.register
def _(K: Translate, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    return around(K.inner, body, p, weights, tol)


@around.register
def _(K: Product, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    pairs = zip(K.parts, K.blocks, strict=True)
    parts = [around(part, body, p, weights[block], tol) for part, block in pairs]
    return _product(parts, p, weights)


@around.register
def _(K: Sum, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    ones = np.ones(K.dim)
    moments = [second_moment(around(part, body, 2, ones, tol)) for part in K.parts]
    known = [moment for moment in moments if moment is not None]
    total = np.sum(known, axis=0) if len(known) == len(moments) else None
    parts = [around(part, body, p, weights, tol) for part in K.parts]
    floor = max(dual_floor(total, p, weights), sampled_floor(K, body, p, weights))
    return _sum(parts, floor, p, weights)


@around.register
def _(K: Image, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    """M = T·M_K·Tᵀ; exact for balls and ellipsoids, by the solver where corners can be listed."""
    corners = K.vertices()
    if corners is not None and len(corners) <= MOST_VERTICES:
        return around_points(corners, body, p, weights, tol)
    inner, T = K.inner, K.transform
    lengths = np.linalg.norm(weights[:, None] * T, axis=0)
    lengths = np.maximum(lengths, lengths.max() * 1e-6)
    factor = T @ around(inner, body, 2, lengths, tol).root
    if isinstance(inner, Ball | Ellipsoid):
        floor = norm(weights * np.linalg.norm(factor, axis=1), p)
        return with_factor(factor, floor, p, weights, contacts=K.dim)
    moment = second_moment(around(inner, body, 2, np.ones(inner.dim), tol))
    floor = 0.0 if moment is None else dual_floor(T @ moment @ T.T, p, weights)
    return with_factor(factor, max(floor, sampled_floor(K, body, p, weights)), p, weights)


def _product(parts: Sequence[SmallestEllipsoid], p: float, weights: Vector) -> SmallestEllipsoid:
    """Blocks combine like the sides of a box: Γ = ‖(Γ_1, …, Γ_m)‖_{2p/(p+2)}."""
    sizes = np.array([part.value for part in parts])
    order = 2.0 if math.isinf(p) else 2 * p / (p + 2)
    power = 0.0 if math.isinf(p) else 2 / (p + 2)
    floor = norm(np.array([part.floor for part in parts]), order)
    stretch = np.zeros(len(parts))
    if sizes.any():
        relative = sizes / sizes.max()
        total = np.sqrt(np.sum(relative**order))
        stretch[sizes > 0] = total * relative[sizes > 0] ** (power - 1)
    blocks = [part.scaled(t) for part, t in zip(parts, stretch, strict=True)]
    if all(block.factor is None for block in blocks):
        return with_scales(np.concatenate([b.scales for b in blocks]), floor, p, weights)
    from scipy.linalg import block_diag

    return with_factor(block_diag(*[block.root for block in blocks]), floor, p, weights)


def _sum(
    parts: Sequence[SmallestEllipsoid], floor: float, p: float, weights: Vector
) -> SmallestEllipsoid:
    """M = Σ M_i/s_i with s_i = Γ_i/ΣΓ contains the sum, by Cauchy–Schwarz: Γ ≤ ΣΓ_i."""
    floor = max([floor, *(part.floor for part in parts)])
    total = sum(part.value for part in parts)
    grown = [part.scaled(math.sqrt(total / part.value)) for part in parts if part.value > 0]
    if not grown:
        return parts[0]
    if all(part.factor is None for part in grown):
        scales = np.sqrt(np.sum([part.scales**2 for part in grown], axis=0))
        return with_scales(scales, floor, p, weights)
    return with_factor(np.hstack([part.root for part in grown]), floor, p, weights)
