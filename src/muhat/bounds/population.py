"""The mean of a distribution on K from n independent draws: Nikolov and Tang's second reading.

A mechanism is unbiased for populations if E M(X) = μ(P) for every distribution P on K, X being n
draws of it. After a random permutation of the records it is then unbiased for every dataset, too,
so that its error is that of the noise and that of the draw, in squares:

    E‖M(X) − μ(P)‖₂² = E‖M(X) − μ(X)‖₂² + tr cov(P)/n.

Bounds on every dataset hold for every P, and tr cov(P) is at most the squared radius of the
smallest ball around K, which some P attains. NT24 say that on P, or on a Q within 1/n of it in
total variation, the error is of the order Γ_p(K)/(nε). Proofs: docs/proofs/bounds.md.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from muhat import _check
from muhat.bounds.lower_bound import LowerBound
from muhat.bounds.unbiased import SUBSTITUTION, near
from muhat.domains import Domain
from muhat.domains.vectors import Matrix, Vector
from muhat.privacy import Privacy

UNBIASED = (
    "The mechanism is unbiased for the mean of every distribution on the domain, of which the "
    "records are independent draws."
)

_SAFE = 1e-9
"""More than the roundings of a distance, and than what the search leaves."""

_ENOUGH = 1e-10
_STEPS = 1_000
_DIRECTIONS = 64
_ROUNDS = 4


def largest_spread(K: Domain) -> tuple[float, float]:
    """Certified bounds on the largest (tr cov P)^½ of a distribution P on K.

    It is the radius of the smallest ball around K: for every centre c, tr cov(P) ≤ E‖X − c‖₂², and
    the least over c of the largest is attained. Equal but for rounding where K has a centre of
    symmetry, few corners, or is a product of such.

    >>> from muhat.domains import Box, Simplex
    >>> ["%.6f, %.6f" % largest_spread(K) for K in (Box([0, 0], [6, 8]), Simplex(dim=4))]
    ['5.000000, 5.000000', '0.866025, 0.866025']
    """
    parts = [_of_part(part) for part, _ in K.factors()]
    least, most = (math.hypot(*ends) for ends in zip(*parts, strict=True))
    return least * (1 - _SAFE), most * (1 + _SAFE)


def population_error(K: Domain, *, n: int, noise: float) -> float:
    """The error of an unbiased mean of n records of K against their population's mean, at most.

    `noise` is the root mean square ℓ₂ error against the mean of the records; the error is at most
    (noise² + R²/n)^½ whatever distribution on K the records are drawn from, independently.

    >>> from muhat.domains import Ball
    >>> round(population_error(Ball(radius=1, dim=10), n=1000, noise=0.0141), 4)
    0.0346
    """
    n = _check.count("n", n)
    return math.hypot(noise, largest_spread(K)[1] / math.sqrt(n)) * (1 + 1e-12)


def population_bounds(
    K: Domain, bounds: tuple[LowerBound, ...], gamma: float, *, n: int, privacy: Privacy
) -> tuple[LowerBound, ...]:
    """What follows from bounds on unbiased means of n records of K, ℓ₂ errors, for populations.

    `gamma` is a certified floor of Γ₂(K − K). The first is about every distribution, or about those
    next to it; the last about one on the smallest ball around K.
    """
    given = (SUBSTITUTION, UNBIASED)
    every = [bound for bound in bounds if bound.datasets == "every" and bound.value is not None]
    best = max(every, key=lambda bound: bound.value or 0.0, default=None)
    if best is None:
        there = near(gamma / n, privacy, K.dim, given, replaced=True, drawn=True)
    else:
        there = (replace(best, datasets="population", assumptions=given),)
    noise = 0.0 if best is None else best.value or 0.0
    value = math.hypot(noise, largest_spread(K)[0] / math.sqrt(n)) * (1 - 1e-12)
    theorem = "with the draw of the records" if noise else "the draw of the records alone"
    worst = LowerBound(
        value, "unbiased", "class", theorem, "derived", given, privacy.describe(), "Halmos 1946"
    )
    return (*there, worst)


def _of_part(K: Domain) -> tuple[float, float]:
    ones, directions = np.ones(K.dim), _directions(K.dim)
    if K.is_symmetric:
        # A point and the one opposite to it.
        least = max(float(np.linalg.norm(_climb(K, each, K.center))) for each in directions)
        return least, K.farthest(ones)
    corners = K.vertices()
    if corners is not None:
        return _around(corners - K.center)[:2]
    found, center = np.zeros((0, K.dim)), np.zeros(K.dim)
    for _ in range(_ROUNDS):
        farther = [_climb(K, each, K.center + center) + center for each in directions]
        found = np.unique(np.vstack([found, *farther]), axis=0)
        least, _, center = _around(found)
    return least, K.farthest(ones)


def _directions(dim: int) -> list[Vector]:
    """All kinds of directions: of ones, along some axes, and in between."""
    places = np.arange(1, dim + 1)
    between = [np.cos(turn * places + turn) for turn in range(1, _DIRECTIONS + 1)]
    return [np.ones(dim), *np.eye(min(dim, _DIRECTIONS), dim), *between]


def _climb(K: Domain, direction: Vector, center: Vector) -> Vector:
    """x − c for an x of K that is extreme along it; on the way ‖x − c‖ never falls."""
    size = 0.0
    for _ in range(_STEPS):
        direction = K.extreme_point(direction) - center
        farther = float(np.linalg.norm(direction))
        if farther <= size * (1 + _ENOUGH):
            break
        size = farther
    return direction


def _around(points: Matrix) -> tuple[float, float, Vector]:
    """The radius of the smallest ball around points, from below and from above, and its centre.

    Weights λ on the points, of shape (m, d), have the spread Σλ‖x − m‖², m = Σλx: a floor of the
    squared radius, and the largest ‖x − m‖² is above it. A step goes towards the farthest point or
    away from the nearest that has weight, whichever gains more (Frank and Wolfe, steps away).
    """
    weights = np.zeros(len(points))
    weights[0] = 1.0
    most = math.inf
    for _ in range(_STEPS):
        squares = ((points - weights @ points) ** 2).sum(axis=1)
        spread, far = float(weights @ squares), int(squares.argmax())
        most = min(most, float(squares[far]))
        if most - spread <= _ENOUGH * most:
            break
        held = np.flatnonzero(weights)
        close = int(held[squares[held].argmin()])
        if squares[far] - spread >= spread - squares[close]:
            step = float((squares[far] - spread) / (2 * squares[far]))
            weights *= 1 - step
            weights[far] += step
        else:
            longest = float(weights[close] / (1 - weights[close]))
            best = longest
            if squares[close] > 0:
                best = min(longest, float((spread - squares[close]) / (2 * squares[close])))
            weights *= 1 + best
            weights[close] = 0.0 if best == longest else weights[close] - best
            weights /= weights.sum()
    return math.sqrt(spread), math.sqrt(most), weights @ points
