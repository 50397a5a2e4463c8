"""Ellipsoids around points, and around products, sums and images from those of their parts.

And around K ∪ −K, for a K that is not centred at 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from muhat._arrays import Floats
from muhat.ellipsoids.finite import around_columns, around_differences, around_shifted
from muhat.ellipsoids.floors import dual_floor
from muhat.ellipsoids.result import (
    CLOSED_FORM_ERROR,
    SmallestEllipsoid,
    floored,
    from_finite,
    norm,
    with_factor,
    with_scales,
)
from muhat.ellipsoids.verification import gamma

SIZE = {"difference": 2.0, "shifted": 1.0}
"""How much larger than K − c the body is, where K is symmetric about c."""


def around_points(
    points: Floats, body: str, p: float, weights: Floats, tol: float
) -> SmallestEllipsoid:
    """The solver's ellipsoid around the body of finitely many points, of shape (N, d)."""
    if body == "difference":
        return from_finite(around_differences(points.T, p, tol, weights=weights))
    return from_finite(around_shifted(points.T, p, tol, weights=weights), shifted=True)


def image_lengths(transform: Floats, weights: Floats) -> Floats:
    """The weights of K's coordinates for which its ellipsoid is good around T·K."""
    lengths = np.linalg.norm(weights[:, None] * transform, axis=0)
    return np.asarray(np.maximum(lengths, lengths.max() * 1e-6))


def around_image(
    transform: Floats,
    found: SmallestEllipsoid,
    floor: float | None,
    p: float,
    weights: Floats,
) -> SmallestEllipsoid:
    """M = T·M_K·Tᵀ, from the ellipsoid around K; without a floor K is one itself, and M exact."""
    root = found.root
    factor = transform @ root
    # Each entry of the product is off by at most γ|T||F|.
    sizes = np.abs(transform) @ np.abs(root)
    blur = gamma(len(root) + 4) * np.sqrt(np.sum(sizes**2, axis=1))
    scales = np.sqrt(np.sum(factor**2, axis=1)) * (1 + gamma(factor.shape[1] + 4)) + blur
    if floor is None:
        least = np.maximum(scales - 2 * blur, 0.0)
        floor = norm(weights * least, p) * found.floor / found.value
        made = with_factor(
            factor, floor, p, weights, contacts=len(factor), scales=scales, error=CLOSED_FORM_ERROR
        )
        return replace(made, is_exact=True)
    shift = None if found.shift is None else transform @ found.shift
    return replace(with_factor(factor, floor, p, weights, scales=scales), shift=shift)


def shifts_of(centers: Sequence[Floats], parts: Sequence[SmallestEllipsoid]) -> list[Floats] | None:
    """Where the ellipsoids of the parts are centred; None if all are at their own centre."""
    if all(part.shift is None for part in parts):
        return None
    pairs = zip(centers, parts, strict=True)
    return [center if part.shift is None else part.shift for center, part in pairs]


def around_product(
    parts: Sequence[SmallestEllipsoid], p: float, weights: Floats
) -> SmallestEllipsoid:
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


def around_sum(
    parts: Sequence[SmallestEllipsoid], floor: float, p: float, weights: Floats
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


MOST_CORNERS = 1 << 12
"""Corners up to which the solver takes them: of images, and of any K for K ∪ −K."""

MIXED = (1.0, 0.95, 0.9, 0.8, 0.65, 0.5, 0.35)
MOST_MIXED = 256
"""Parts of a measure around the centre, beside a point far from 0; one is tried in more
dimensions."""


def around_opposite_points(
    points: Floats, p: float, weights: Floats, tol: float
) -> SmallestEllipsoid:
    """The solver's ellipsoid around finitely many points, of shape (N, d), and their opposites."""
    return from_finite(around_columns(points.T, p, tol, weights=weights))


def around_both_sides(
    inner: SmallestEllipsoid,
    center: Floats,
    far: Floats,
    measure: tuple[Floats | None, int | None],
    p: float,
    weights: Floats,
) -> SmallestEllipsoid:
    """Around K ∪ −K, from the ellipsoid around K and where that is centred.

    With E around K and c its centre, (x, 1) lies in the ellipsoid E/s ⊕ 1/(1−s) around (c, 0);
    the image under (z, t) ↦ z + tc is M = E/s + ccᵀ/(1−s), and s = a/(a + b) gives √tr M = a + b
    at p = 2, a = Γ(K − c), b = ‖c‖. For the floor: `far` is a point of K, and `measure` the second
    moment of a measure on K − c whose mean is 0, if one is known, and on how many points it is. A
    mixture of both is a measure on K.
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
    # A segment ±x has Γ_p = ‖x‖_p.
    floors: list[tuple[float, int | None]] = [(floored(norm(weights * far, p), 1e-12), 1)]
    moment, points = measure
    if moment is not None:
        around = moment + np.outer(center, center)
        apart = np.outer(far, far)
        parts = MIXED if len(far) <= MOST_MIXED else MIXED[:1]
        mixed = (part * around + (1 - part) * apart for part in parts)
        best = max(dual_floor(each, p, weights, error=1e-12) for each in mixed)
        floors.append((best, None if points is None else points + 1))
    floors.append((inner.floor, None))
    floor, contacts = max(floors, key=lambda each: each[0])
    grown = np.hypot(inner.scales / np.sqrt(s), np.abs(center) / np.sqrt(rest))
    return with_factor(
        factor, floor, p, weights, contacts=contacts, scales=grown, error=CLOSED_FORM_ERROR
    )
