"""Ellipsoids around simplices: closed forms at equal weights, a certified pair at others.

Permutations of the coordinates leave conv(e_i) and conv(0, e_i) as they are, so M has the form
α·(I − 11ᵀ/d) + β·11ᵀ/d.

    difference  conv(e_i): M = 2(I − 11ᵀ/d); conv(0, e_i): M = 2(I − 11ᵀ/(d+1))
    shifted     conv(e_i): M = (1 − 1/d)(I − 11ᵀ/d); conv(0, e_i): the weights w on each e_i and
                1 − dw on 0 have the covariance w·(I − 11ᵀ/d) + w(1 − dw)·11ᵀ/d, and
                y = dw = (4 − a + √(a² + 8a))/8, a = (d−1)², is the best of them
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from muhat.domains.vectors import Vector
from muhat.ellipsoids.floors import dual_floor
from muhat.ellipsoids.result import CLOSED_FORM_ERROR, NORM_ERROR, SmallestEllipsoid, floored, norm
from muhat.ellipsoids.symmetric_bodies import LARGEST_ROOT, around_alike


def around_simplex(d: int, origin: bool, body: str, p: float, weights: Vector) -> SmallestEllipsoid:
    """Around K − K, or K with a free shift; the weights are all the same."""
    corners = d + origin
    if corners == 1:
        return SmallestEllipsoid(np.zeros(d), np.zeros((d, 0)), 0.0, 0.0)
    if body == "difference":
        # e_i − e_j needs across·½ = 1; with 0, e_i is 1 long if along·(d + 1) = across.
        along = 2 / (d + 1) if origin else 0.0
        pairs = corners * (corners - 1) // 2
        return around_alike(d, 2.0, along, p, weights, contacts=pairs)
    if not origin:
        return around_alike(d, 1 - 1 / d, 0.0, p, weights, contacts=d)
    # With r = √(1 + 8/a): y = ½ + 1/(1 + r), free of cancellation, and so is 1 − y.
    a = (d - 1) ** 2
    r = math.sqrt(1 + 8 / a) if a else math.inf
    y, rest = 0.5 + 1 / (1 + r), (4 / a / (1 + r) ** 2 if a else 0.5)
    w = y / d
    size = (d - 1) * math.sqrt(w) + math.sqrt(w * rest)
    across, along = math.sqrt(w) * size, math.sqrt(w * rest) * size
    # Corners e_i and 0, seen from the shift w·(1, …, 1).
    reach = max((1 - 1 / d) / across + rest**2 / (d * along), y**2 / (d * along))
    found = around_alike(d, across * reach, along * reach, p, weights, contacts=d + 1)
    floor = min(found.floor, d ** ((0 if math.isinf(p) else 1 / p) - 0.5) * size * weights[0])
    return replace(found, floor=floor * (1 - CLOSED_FORM_ERROR), shift=np.full(d, w))


def around_weighted_simplex(
    d: int, origin: bool, body: str, p: float, weights: Vector
) -> SmallestEllipsoid:
    """The ellipsoid of equal weights, and what it costs at others; its floor from a measure.

    Corners with the probabilities u ∝ (w·D)², D² ∝ w^{p−2}: two of them at random, given that
    they differ, have E = 2(diag u − uuᵀ)/(1 − Σu²), one of them the covariance diag u − uuᵀ. If
    no weight stands out, tr((D·W·E·W·D)^½) is close to √2·‖w‖_p, the value of equal noise.
    """
    plain = around_simplex(d, origin, body, p, np.ones(d))
    value = norm(weights * plain.scales, p) * (1 + NORM_ERROR)
    # The segment between the two corners of the largest weights, or half of it.
    pair = norm(np.sort(weights)[-2:], p) / (1 if body == "difference" else 2)
    floors = [floored(pair)]
    if d <= LARGEST_ROOT:
        powers = (0.0, 2.0, 6.0, 14.0) if math.isinf(p) else (p - 2,)
        floors += [_corner_floor(d, origin, body, p, weights, power) for power in powers]
    return replace(plain, value=value, floor=max(floors), is_exact=False)


def _corner_floor(
    d: int, origin: bool, body: str, p: float, weights: Vector, power: float
) -> float:
    """The dual value of random corners for D² ∝ w^power."""
    squares = (weights / weights.max()) ** power
    order = 1.0 if math.isinf(p) else (math.inf if p == 2 else p / (p - 2))
    D = np.sqrt(squares / (norm(squares, order) * (1 + CLOSED_FORM_ERROR)))
    u = np.maximum((weights * D / (weights * D).max()) ** 2, 1e-9)
    u = u / (math.fsum(u.tolist()) + origin * float(u.mean()))
    moment = np.diag(u) - np.outer(u, u)
    if body == "difference":
        rest = 1 - math.fsum(u.tolist()) if origin else 0.0
        moment *= 2 / (1 - math.fsum((u**2).tolist()) - rest**2)
    return dual_floor(moment, 2, weights * D)
