"""New domains from old: sums, products, images, translations.

Where the result is a body of a known kind it is that kind, with its own clipping and its closed
forms; else a `MinkowskiSum`, `Product`, `Image` or `Translate` keeps the parts.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from muhat._arrays import LARGEST_ARRAY, matrix, vector
from muhat.domains.ball import Ball
from muhat.domains.base import Domain, Operations
from muhat.domains.box import Box
from muhat.domains.ellipsoid import Ellipsoid
from muhat.domains.image import Image
from muhat.domains.lp_ball import LpBall
from muhat.domains.norms import p_norm
from muhat.domains.points import Points
from muhat.domains.product import Product
from muhat.domains.schatten_ball import SchattenBall
from muhat.domains.sums import MinkowskiSum
from muhat.domains.translate import Translate
from muhat.domains.vectors import Matrix, Vector
from muhat.domains.zonotope import Zonotope
from muhat.errors import InvalidInput


def add(K: Domain, other: Any) -> Domain:
    """K + L for a domain, K + v for a vector."""
    return minkowski_sum(K, other) if isinstance(other, Domain) else translate(K, other)


def translate(K: Domain, offset: Any) -> Domain:
    """{x + offset : x in K}.

    >>> translate(Ball(radius=1, dim=2), [3, 4])
    Ball(radius=1, dim=2, center=[3, 4])
    """
    v = vector("offset", offset, dim=K.dim)
    match K:
        case Ball():
            return Ball(K.radius, K.dim, K.center + v)
        case Box():
            return _moved_box(K, [Fraction(shift) for shift in v.tolist()])
        case Ellipsoid():
            return Ellipsoid(K.diagonal if K.is_diagonal else K.matrix, K.center + v)
        case LpBall():
            return LpBall(K.p, K.radius, K.dim, K.center + v, K.scale)
        case SchattenBall():
            return SchattenBall(K.p, K.shape, K.radius, K.center + v)
        case Points():
            return Points(K.points + v)
        case Zonotope():
            source = K.preimage()
            if K.source is None or not isinstance(source.domain, Box):
                return Zonotope(K.generators, K.center + v)
            return Zonotope.from_box(source.dense(), source.domain, source.offset + v)
        case Product():
            pairs = zip(K.parts, K.blocks, strict=True)
            return Product([translate(part, v[block]) for part, block in pairs])
        case Translate():
            return translate(K.inner, K.offset + v)
    return Translate(K, v) if v.any() else K


def minkowski_sum(K: Domain, L: Domain) -> Domain:
    """{x + y : x in K, y in L}.

    >>> minkowski_sum(Box([0, 0], [1, 1]), Box([5, 5], [6, 7]))
    Box(lower=[5, 5], upper=[7, 8])
    """
    if K.dim != L.dim:
        raise InvalidInput(
            f"domains that are added must have as many coordinates; got {K.dim} and {L.dim}."
        )
    for one, other in ((K, L), (L, K)):
        if isinstance(one, Points) and len(one.points) == 1:
            return translate(other, one.points[0])
    match K, L:
        case Ball(), Ball():
            return Ball(K.radius + L.radius, K.dim, K.center + L.center)
        case Box(), Box():
            bounds = [(a + c, b + d) for (a, b), (c, d) in zip(K.bounds, L.bounds, strict=True)]
            return Box([low for low, _ in bounds], [high for _, high in bounds])
        case LpBall(), LpBall() if K.p == L.p and np.array_equal(K.scale, L.scale):
            return LpBall(K.p, K.radius + L.radius, K.dim, K.center + L.center, K.scale)
        case SchattenBall(), SchattenBall() if (K.p, K.shape) == (L.p, L.shape):
            return SchattenBall(K.p, K.shape, K.radius + L.radius, K.center + L.center)
        case ((Zonotope() | Box()), (Zonotope() | Box())) if K.dim**2 <= LARGEST_ARRAY:
            return _sum_of_zonotopes(K, L)
    return MinkowskiSum([*_terms(K), *_terms(L)])


def product(K: Domain, L: Domain) -> Domain:
    """{(x, y) : x in K, y in L}, the coordinates of K first.

    >>> product(Box([0], [1]), Box([5], [6]))
    Box(lower=[0, 5], upper=[1, 6])
    """
    left, right = _factors(K), _factors(L)
    last, first = left[-1], right[0]
    if isinstance(last, Box) and isinstance(first, Box):
        bounds = last.bounds + first.bounds
        box = Box([low for low, _ in bounds], [high for _, high in bounds])
        left, right = [*left[:-1], box], right[1:]
    parts = [*left, *right]
    return parts[0] if len(parts) == 1 else Product(parts)


def linear_image(transform: Any, K: Domain) -> Domain:
    """{T·x : x in K}.

    >>> linear_image([[2, 0], [0, 2]], Ball(radius=1, dim=2))
    Ball(radius=2, dim=2)
    """
    T = matrix("transform", transform, "(rows, columns)", columns=K.dim)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if isinstance(K, Ball | LpBall | Ellipsoid) and not K.half_widths.any():
            return Points((T @ K.center)[None])
        scales = _scales(T)
        known = None if scales is None else _scaled(K, scales)
        return known or _transformed(K, T)


def _scaled(K: Domain, scales: Vector) -> Domain | None:
    """diag(scales)·K of the same kind, where there is one."""
    sizes = np.abs(scales)
    is_uniform = bool((sizes == sizes[0]).all())
    match K:
        case Box():
            factors = [Fraction(scale) for scale in scales.tolist()]
            ends = [
                sorted((low * factor, high * factor))
                for (low, high), factor in zip(K.bounds, factors, strict=True)
            ]
            return Box([low for low, _ in ends], [high for _, high in ends])
        case Ball() if is_uniform:
            return Ball(K.radius * float(sizes[0]), K.dim, K.center * scales)
        case Ball():
            return _ellipsoid((K.radius * sizes) ** 2, K.center * scales)
        case Ellipsoid() if K.is_diagonal:
            return _ellipsoid(K.diagonal * sizes**2, K.center * scales)
        case LpBall():
            return LpBall(K.p, K.radius, K.dim, K.center * scales, K.scale * sizes)
        case SchattenBall() if is_uniform and (scales == scales[0]).all():
            radius = K.radius * float(sizes[0])
            return SchattenBall(K.p, K.shape, radius, K.center * scales)
        case Product():
            parts = [
                _scaled(part, scales[block]) or _transformed(part, np.diag(scales[block]))
                for part, block in zip(K.parts, K.blocks, strict=True)
            ]
            return Product(parts)
    return None


def _transformed(K: Domain, T: Matrix) -> Domain:
    """T·K of a known kind, or else the Image."""
    is_square = T.shape[0] == T.shape[1]
    match K:
        case Points():
            return Points(K.points @ T.T)
        case Box():
            return Zonotope.from_box(T, K)
        case Zonotope():
            source = K.preimage()
            if K.source is None or not isinstance(source.domain, Box):
                return Zonotope(T @ K.generators, T @ K.center)
            return Zonotope.from_box(T @ source.dense(), source.domain, T @ source.offset)
        case Ellipsoid() if is_square and K.rank < K.dim and np.linalg.cond(T) <= 1e6:
            return Ellipsoid(_symmetric(T @ K.matrix @ T.T), T @ K.center)
        case Ball() | Ellipsoid() if is_square:
            return _ellipsoid_of_root(K.image_root(T), T @ K.center) or Image(T, K)
        case Translate():
            return translate(linear_image(T, K.inner), T @ K.offset)
        case Image():
            return linear_image(T @ K.transform, K.inner)
    return Image(T, K)


def _ellipsoid(A: Matrix, center: Vector) -> Ellipsoid | None:
    """The ellipsoid, or None if it is too flat to be one."""
    try:
        return Ellipsoid(A if A.ndim == 1 else _symmetric(A), center)
    except InvalidInput:
        return None


def _symmetric(A: Matrix) -> Matrix:
    return np.asarray((A + A.T) / 2)


def _ellipsoid_of_root(root: Matrix, center: Vector) -> Ellipsoid | None:
    """root·(unit ball), or None if its matrix would lose the short axes to rounding."""
    lengths = p_norm(root, 2)
    if not (lengths > 0).all() or not np.isfinite(lengths).all():
        return None
    if np.linalg.cond(root / lengths[:, None]) > 1e6:
        return None
    return _ellipsoid(root @ root.T, center)


def _scales(T: Matrix) -> Vector | None:
    """The diagonal of an invertible diagonal matrix, or None."""
    if T.shape[0] != T.shape[1] or np.count_nonzero(T) != len(T):
        return None
    diagonal = np.diag(T).copy()
    return diagonal if diagonal.all() else None


def _sum_of_zonotopes(K: Zonotope | Box, L: Zonotope | Box) -> Zonotope:
    if isinstance(K, Zonotope) and isinstance(L, Zonotope) and not (K.source or L.source):
        return Zonotope(np.hstack([K.generators, L.generators]), K.center + L.center)
    one, other = (
        part.box_preimage() if isinstance(part, Zonotope) else part.preimage() for part in (K, L)
    )
    box = product(one.domain, other.domain)
    if not isinstance(box, Box):
        raise AssertionError("the preimage of a zonotope is a box")
    return Zonotope.from_box(
        np.hstack([one.dense(), other.dense()]), box, one.offset + other.offset
    )


def _moved_box(box: Box, offset: list[Fraction]) -> Box:
    moved = [
        (low + shift, high + shift) for (low, high), shift in zip(box.bounds, offset, strict=True)
    ]
    return Box([low for low, _ in moved], [high for _, high in moved])


def _terms(K: Domain) -> tuple[Domain, ...]:
    return K.parts if isinstance(K, MinkowskiSum) else (K,)


def _factors(K: Domain) -> list[Domain]:
    return list(K.parts) if isinstance(K, Product) else [K]


OPERATIONS = Operations(add, product, linear_image)
