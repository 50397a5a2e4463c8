"""The smallest ellipsoid around K − K, or around K with a free shift, for every domain.

Closed forms where they exist; products, sums, images and translations go back to their parts;
lists of corners go to the solver.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
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
from muhat.domains.vectors import Vector
from muhat.ellipsoids.finite import around_columns, around_differences, around_shifted
from muhat.ellipsoids.floors import LARGEST_DENSE, dual_floor, sampled_floor, second_moment
from muhat.ellipsoids.moment_tensors import around_tensors
from muhat.ellipsoids.result import (
    CLOSED_FORM_ERROR,
    SmallestEllipsoid,
    from_finite,
    norm,
    with_factor,
    with_scales,
)
from muhat.ellipsoids.simplices import around_simplex, around_weighted_simplex
from muhat.ellipsoids.symmetric_bodies import (
    around_ball,
    around_ellipsoid,
    around_lp_ball,
    around_schatten_ball,
)
from muhat.ellipsoids.verification import gamma
from muhat.ellipsoids.zonotopes import around_zonotope
from muhat.errors import InvalidInput

Matrix = NDArray[np.float64]

MOST_VERTICES = 1 << 12
MOST_WEIGHTED = {"difference": 40, "shifted": 200}
"""Coordinates up to which a simplex with unequal weights goes to the solver."""

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
    if body == "difference":
        return from_finite(around_differences(points.T, p, tol, weights=weights))
    return from_finite(around_shifted(points.T, p, tol, weights=weights), shifted=True)


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
    if (weights == weights[0]).all():
        return around_simplex(K, body, p, weights)
    if K.dim <= MOST_WEIGHTED[body]:
        return around_points(np.asarray(K.vertices()), body, p, weights, tol)
    return around_weighted_simplex(K, body, p, weights)


@around.register
def _(K: Translate, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    found = around(K.inner, body, p, weights, tol)
    return found if found.shift is None else replace(found, shift=found.shift + K.offset)


@around.register
def _(K: Product, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    pairs = zip(K.parts, K.blocks, strict=True)
    parts = [around(part, body, p, weights[block], tol) for part, block in pairs]
    shifts = _shifts(K.parts, parts)
    shift = None if shifts is None else np.concatenate(shifts)
    return replace(_product(parts, p, weights), shift=shift)


@around.register
def _(K: Sum, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    parts = [around(part, body, p, weights, tol) for part in K.parts]
    floors = (
        dual_floor(moment_of(K, body, tol), p, weights),
        sampled_floor(K, body, p, weights),
        *(part.floor for part in parts),
    )
    shifts = _shifts(K.parts, parts)
    shift = None if shifts is None else np.asarray(np.sum(shifts, axis=0))
    return replace(_sum(parts, max(floors), p, weights), shift=shift)


@around.register
def _(K: Image, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
    """M = T·M_K·Tᵀ; exact for balls and ellipsoids, by the solver where corners can be listed."""
    corners = K.vertices()
    if corners is not None and len(corners) <= MOST_VERTICES:
        return around_points(corners, body, p, weights, tol)
    inner, T = K.inner, K.transform
    lengths = np.linalg.norm(weights[:, None] * T, axis=0)
    lengths = np.maximum(lengths, lengths.max() * 1e-6)
    found = around(inner, body, 2, lengths, tol)
    root = found.root
    factor = T @ root
    # Each entry of the product is off by at most γ|T||F|.
    sizes = np.abs(T) @ np.abs(root)
    blur = gamma(len(root) + 4) * np.sqrt(np.sum(sizes**2, axis=1))
    scales = np.sqrt(np.sum(factor**2, axis=1)) * (1 + gamma(factor.shape[1] + 4)) + blur
    shift = None if found.shift is None else T @ found.shift
    if isinstance(inner, Ball | Ellipsoid):
        least = np.maximum(scales - 2 * blur, 0.0)
        floor = norm(weights * least, p) * found.floor / found.value
        made = with_factor(
            factor, floor, p, weights, contacts=K.dim, scales=scales, error=CLOSED_FORM_ERROR
        )
        return replace(made, is_exact=True)
    floor = dual_floor(moment_of(K, body, tol), p, weights)
    floor = max(floor, sampled_floor(K, body, p, weights))
    return replace(with_factor(factor, floor, p, weights, scales=scales), shift=shift)


def moment_of(K: Domain, body: str, tol: float) -> Matrix | None:
    """E[ssᵀ] of a measure on the body, the best at p = 2 for its parts; None if not known.

    Independent signs (or points, with a free shift) make it a measure on products and sums.
    """
    if isinstance(K, Translate):
        return moment_of(K.inner, body, tol)
    if isinstance(K, Image):
        inner = moment_of(K.inner, body, tol)
        return None if inner is None else K.transform @ inner @ K.transform.T
    if not isinstance(K, Product | Sum):
        return second_moment(around(K, body, 2, np.ones(K.dim), tol))
    if K.dim > LARGEST_DENSE:
        return None
    known = [moment for part in K.parts if (moment := moment_of(part, body, tol)) is not None]
    if len(known) < len(K.parts):
        return None
    if isinstance(K, Sum):
        return np.asarray(np.sum(known, axis=0))
    from scipy.linalg import block_diag

    return np.asarray(block_diag(*known))


def _shifts(domains: Sequence[Domain], parts: Sequence[SmallestEllipsoid]) -> list[Vector] | None:
    """Where the ellipsoids of the parts are centred; None if all are at their own centre."""
    if all(part.shift is None for part in parts):
        return None
    pairs = zip(domains, parts, strict=True)
    return [K.center if part.shift is None else part.shift for K, part in pairs]


def _product(parts: Sequence[SmallestEllipsoid], p: float, weights: Vector) -> SmallestEllipsoid:
    """Blocks combine like the sides of a box: Γ = ‖(Γ_1, …, Γ_m)‖_{2p/(p+2)}."""
    sizes = np.array([part.value for part in parts])
    order = 2.0 if math.isinf(p) else 2 * p / (p + 2)
    power = 0.0 if math.isinf(p) else 2 / (p + 2)
    floor = norm(np.array([part.floor for part in parts]), order)
    stretch = np.zeros(len(parts))
    if sizes.any():
        relative = sizes / sizes.max()
        total = math.sqrt(math.fsum((relative**order).tolist()))
        stretch[sizes > 0] = total * relative[sizes > 0] ** (power - 1)
    blocks = [part.scaled(t) for part, t in zip(parts, stretch, strict=True)]
    scales = np.concatenate([block.scales for block in blocks])
    error = CLOSED_FORM_ERROR
    if all(block.factor is None for block in blocks):
        return with_scales(scales, floor, p, weights, error=error)
    from scipy.linalg import block_diag

    factor = block_diag(*[block.root for block in blocks])
    return with_factor(factor, floor, p, weights, scales=scales, error=error)


def _sum(
    parts: Sequence[SmallestEllipsoid], floor: float, p: float, weights: Vector
) -> SmallestEllipsoid:
    """M = Σ M_i/s_i with s_i = Γ_i/ΣΓ contains the sum, by Cauchy–Schwarz: Γ ≤ ΣΓ_i."""
    total = math.fsum(part.value for part in parts)
    grown = [part.scaled(math.sqrt(total / part.value)) for part in parts if part.value > 0]
    if not grown:
        return parts[0]
    scales = np.sqrt(np.sum([part.scales**2 for part in grown], axis=0))
    error = CLOSED_FORM_ERROR
    if all(part.factor is None for part in grown):
        return with_scales(scales, floor, p, weights, error=error)
    factor = np.hstack([part.root for part in grown])
    return with_factor(factor, floor, p, weights, scales=scales, error=error)
