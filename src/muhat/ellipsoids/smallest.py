"""The smallest ellipsoid around a body: the best Gaussian noise, and what cannot be beaten.

For a symmetric body S and p in [2, ∞]:

    Γ_p(S)² = min tr_{p/2}(M)   over M with sᵀM⁻¹s ≤ 1 for all s in S,

where tr_q(M) is the ℓ_q norm of the diagonal of M. `value` is √tr_{p/2}(M) of the ellipsoid
returned, `floor` is proved to be at most Γ_p(S).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat import _check
from muhat.domains import Ball, Box, Domain, Ellipsoid
from muhat.domains.base import Vector, vector
from muhat.errors import InvalidInput

BODIES = ("difference", "symmetric", "shifted")
LARGEST_MATRIX = 20_000


@dataclass(frozen=True, eq=False)
class SmallestEllipsoid:
    """{s : sᵀM⁻¹s ≤ 1} with M = F·Fᵀ, or M = diag(scales²) where `factor` is None.

    `scales` are the square roots of M's diagonal, of shape (d,); `factor` is F, of shape (d, k).
    """

    scales: Vector
    factor: NDArray[np.float64] | None
    value: float
    floor: float

    @property
    def gap(self) -> float:
        """value/floor − 1: how far, at most, the value is above the least possible."""
        return self.value / self.floor - 1 if self.floor > 0 else 0.0

    @property
    def diagonal(self) -> Vector:
        """The diagonal of M."""
        return np.asarray(self.scales**2)

    @property
    def matrix(self) -> NDArray[np.float64]:
        """M itself, of shape (d, d)."""
        if len(self.scales) > LARGEST_MATRIX:
            raise InvalidInput(
                f"a matrix of {len(self.scales)} × {len(self.scales)} is not built; "
                "use `diagonal` instead."
            )
        return np.diag(self.diagonal) if self.factor is None else self.factor @ self.factor.T

    def __repr__(self) -> str:
        return (
            f"SmallestEllipsoid(dim={len(self.scales)}, value={self.value:.6g}, "
            f"floor={self.floor:.6g}, gap={self.gap:.1e})"
        )


def smallest_ellipsoid(
    K: Domain,
    p: float = 2,
    body: str = "difference",
    tol: float = 1e-9,
    *,
    weights: ArrayLike | None = None,
) -> SmallestEllipsoid:
    """The smallest ellipsoid around K − K, K ∪ −K, or K with a free shift.

    Weights w measure the error as ‖diag(w)·z‖_p: the value is Γ_p of the weighted body, the
    ellipsoid returned is in the coordinates of K.

    >>> from muhat.domains import Box
    >>> smallest_ellipsoid(Box([0, 0], [1, 2])).value
    3.0
    """
    p = _check.norm_order(p)
    _check.one_of("body", body, BODIES)
    _check.positive("tol", tol)
    w = np.ones(K.dim) if weights is None else weight_vector(weights, K.dim)
    if body == "symmetric" and K.center.any():
        return _around_both_sides(K, p, w)
    size = 2.0 if body == "difference" else 1.0
    return _around(K, p, w, size)


def gamma(K: Domain, p: float = 2, body: str = "difference") -> float:
    """Γ_p of the body: √tr_{p/2} of its smallest ellipsoid."""
    return smallest_ellipsoid(K, p, body).value


def weight_vector(weights: ArrayLike, dim: int) -> Vector:
    """Weights above zero, one a coordinate, or InvalidInput."""
    w = vector("weights", weights, dim=dim)
    if not (w > 0).all():
        raise InvalidInput("weights must be greater than 0.")
    return w


def norm(values: NDArray[np.float64], p: float) -> float:
    """‖values‖_p, without overflow on the way."""
    largest = float(np.max(np.abs(values)))
    if largest == 0 or np.isinf(p):
        return largest
    return float(largest * np.sum((np.abs(values) / largest) ** p) ** (1 / p))


@singledispatch
def _around(K: Domain, p: float, weights: Vector, size: float) -> SmallestEllipsoid:
    """The smallest ellipsoid around size·(K − c)."""
    raise InvalidInput(f"no smallest ellipsoid is known for {type(K).__name__}.")


@_around.register
def _(K: Ball, p: float, weights: Vector, size: float) -> SmallestEllipsoid:
    scales = np.full(K.dim, size * K.radius)
    value = norm(weights * scales, p)
    return SmallestEllipsoid(scales, None, value, value)


@_around.register
def _(K: Box, p: float, weights: Vector, size: float) -> SmallestEllipsoid:
    # ellipsoids.md: with half-sides s the optimum is M_jj = c·s_j^{4/(p+2)}, Γ = ‖s‖_{2p/(p+2)}.
    sides = weights * K.half_widths * size
    largest = float(sides.max())
    relative = sides / largest
    order = 2.0 if np.isinf(p) else 2 * p / (p + 2)
    power = 0.0 if np.isinf(p) else 2 / (p + 2)
    scales = largest * np.sqrt(np.sum(relative**order)) * relative**power / weights
    value = norm(sides, order)
    return SmallestEllipsoid(scales, None, value, value)


@_around.register
def _(K: Ellipsoid, p: float, weights: Vector, size: float) -> SmallestEllipsoid:
    value = norm(weights * K.half_widths * size, p)
    return SmallestEllipsoid(K.half_widths * size, K.factor * size, value, value)


def _around_both_sides(K: Domain, p: float, weights: Vector) -> SmallestEllipsoid:
    """An ellipsoid around K ∪ −K for a K that is not centred at 0.

    (x, 1) lies in the ellipsoid E/s ⊕ 1/(1−s) around (K − c, 1); its image under (z, t) ↦ z + tc
    is M = E/s + ccᵀ/(1−s), and s = a/(a + b) gives √tr M = a + b at p = 2, a = Γ(K − c), b = ‖c‖.
    """
    inner = _around(K, p, weights, 1.0)
    s = inner.value / (inner.value + norm(weights * K.center, p))
    root = np.diag(inner.scales) if inner.factor is None else inner.factor
    factor = np.column_stack([root / np.sqrt(s), K.center / np.sqrt(1 - s)])
    scales = np.sqrt(np.sum(factor**2, axis=1))
    value = norm(weights * scales, p)
    floor = max(inner.floor, _farthest_point(K, p, weights), _dual_value(K, p, weights))
    return SmallestEllipsoid(scales, factor, value, min(value, floor))


def _farthest_point(K: Domain, p: float, weights: Vector) -> float:
    """‖x‖_p of a point x of K far from 0: a segment ±x has Γ_p = ‖x‖_p."""
    outwards = K.center / np.linalg.norm(K.center) * K.half_widths.max() * 1e6
    return norm(weights * K.clip(K.center + outwards), p)


def _dual_value(K: Domain, p: float, weights: Vector) -> float:
    """tr((E[ssᵀ])^½)·d^{1/p−½} ≤ Γ_p for s = c + z, z from the dual optimum of K − c at p = 2.

    There M = E[zzᵀ]^½·tr(E[zzᵀ]^½), so E[zzᵀ] = M²/Γ². Any measure on K gives a lower bound, and
    D = d^{1/p−½}·I is feasible in the dual for every p.
    """
    if K.dim > 2_000:
        return 0.0
    inner = _around(K, 2, weights, 1.0)
    M = weights[:, None] * inner.matrix * weights
    center = weights * K.center
    second_moment = M @ M / inner.value**2 + np.outer(center, center)
    roots = np.sqrt(np.maximum(np.linalg.eigvalsh(second_moment), 0))
    shrink = 1.0 if p == 2 else K.dim ** ((0 if np.isinf(p) else 1 / p) - 0.5)
    return float(roots.sum() * shrink * (1 - 1e-10))
