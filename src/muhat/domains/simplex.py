"""The simplex: parts of a whole, or one-hot records.

Ellipsoids around it have closed forms at equal weights, and a certified pair at others.
Permutations of the coordinates leave conv(e_i) and conv(0, e_i) as they are, so M has the form
α·(I − 11ᵀ/d) + β·11ᵀ/d.

    difference  conv(e_i): M = 2(I − 11ᵀ/d); conv(0, e_i): M = 2(I − 11ᵀ/(d+1))
    shifted     conv(e_i): M = (1 − 1/d)(I − 11ᵀ/d); conv(0, e_i): the weights w on each e_i and
                1 − dw on 0 have the covariance w·(I − 11ᵀ/d) + w(1 − dw)·11ᵀ/d, and
                y = dw = (4 − a + √(a² + 8a))/8, a = (d−1)², is the best of them
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from muhat._arrays import LARGEST_ARRAY, vector
from muhat.domains.base import Domain
from muhat.domains.blocks import Block
from muhat.domains.integers import Clip
from muhat.domains.simplex_groups import around_grouped_corners
from muhat.domains.simplex_lattice import SimplexLattice, nearest_parts
from muhat.domains.vectors import Matrix, Vector, by_columns, dimension, pulled_in, records
from muhat.ellipsoids.floors import dual_floor
from muhat.ellipsoids.result import (
    CLOSED_FORM_ERROR,
    NORM_ERROR,
    SmallestEllipsoid,
    floored,
    norm,
    with_factor,
    with_scales,
)
from muhat.ellipsoids.symmetric_bodies import LARGEST_ROOT, around_alike
from muhat.ellipsoids.verification import gamma
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors

MOST_WEIGHTED = {"difference": 40, "shifted": 200}
"""Coordinates up to which unequal weights go to the solver."""

MOST_CORNERS = 5_000
"""Corners up to which a simplex is released: its noise is moved onto the total by a matrix."""

MOST_TABLED, MOST_UNEVEN, LARGEST_UNEVEN = 40, 300, 500
"""Corners up to which parts have the noise of their own ellipsoid, those of unequal weights too,
and up to which unequal weights have an ellipsoid of their own."""

LEAST_GAIN = 1.01
"""From here on Laplace noise of several scales, or on a total, is worth a matrix."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Simplex(Domain):
    """conv(e_1, …, e_d): x ≥ 0 with Σx = 1; with `origin`, conv(0, e_1, …, e_d): Σx ≤ 1.

    The centre is the centroid. Records outside move to the nearest point.

    >>> Simplex(dim=3).clip([2.0, 0.0, 0.0]).tolist()
    [1.0, 0.0, 0.0]
    >>> Simplex(dim=3, origin=True).support([-1, -2, -3])
    0.0
    """

    kind = "simplex"
    clips_to_nearest = True
    origin: bool
    center: Vector
    half_widths: Vector

    def __init__(self, dim: int, origin: bool = False) -> None:
        size = dimension(dim)
        if not isinstance(origin, bool | np.bool_):
            raise InvalidInput("must be True or False", parameter="origin", value=f"{origin!r:.40}")
        self._set(
            origin=bool(origin),
            center=np.full(size, 1 / (size + bool(origin))),
            half_widths=np.full(size, 0.5 if size > 1 or origin else 0.0),
        )

    @property
    def is_symmetric(self) -> bool:
        return self.dim + self.origin <= 2

    @property
    def most_nonzero(self) -> int:
        return 1

    @property
    def bounding_box(self) -> tuple[Vector, Vector]:
        upper = np.ones(self.dim)
        return upper - 2 * self.half_widths, upper

    def support(self, direction: ArrayLike) -> float:
        theta = vector("direction", direction, dim=self.dim)
        return max(0.0, float(theta.max())) if self.origin else float(theta.max())

    def reach(self, directions: Matrix) -> Vector:
        largest = directions.max(axis=-1)
        if self.origin:
            largest = np.maximum(largest, 0.0)
        return np.asarray(largest - directions @ self.center)

    def extreme_point(self, direction: ArrayLike) -> Vector:
        theta = vector("direction", direction, dim=self.dim)
        point = np.zeros(self.dim)
        best = int(np.argmax(theta))
        if theta[best] > 0 or not self.origin:
            point[best] = 1.0
        return point

    def clip(self, points: ArrayLike) -> Matrix:
        x = pulled_in(records(points, self.center))
        return by_columns(nearest_parts, x, self.origin)

    def farthest(self, weights: Vector) -> float:
        # ‖diag(w)(e_i − c)‖² = w_i²(1 − 2c) + c²Σw², and c²Σw² for the origin.
        c = float(self.center[0])
        rest = c * c * float(weights @ weights)
        corner = float(np.max(weights)) ** 2 * (1 - 2 * c) + rest
        # 1 − 2c is negative for one coordinate only: a point, or the segment [0, 1].
        return float(np.sqrt(max(corner, rest if self.origin else 0.0)))

    def half_volume(self, weights: Vector) -> tuple[int, float] | None:
        """Of conv(w_i·e_i) it is Πw·√Σw⁻²/r!, with the origin Πw/r!.

        K − K has C(2r, r) times the volume of a simplex of r dimensions (Rogers and Shephard).
        """
        rank = self.dim - 1 + self.origin
        logs = np.log(weights)
        edge = 0.0 if self.origin else float(np.logaddexp.reduce(-2 * logs)) / 2
        known = math.lgamma(2 * rank + 1) - 3 * math.lgamma(rank + 1) - rank * math.log(2)
        return rank, known + math.fsum(logs.tolist()) + edge - 1e-12 * self.dim

    def vertices(self) -> Matrix | None:
        if self.dim * (self.dim + 1) > LARGEST_ARRAY:
            return None
        return np.eye(self.dim + 1, self.dim) if self.origin else np.eye(self.dim)

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        if (weights == weights[0]).all():
            return around_simplex(self.dim, self.origin, body, p, weights)
        if self.dim <= MOST_WEIGHTED[body]:
            return super().ellipsoid(body, p, weights, tol)
        return around_weighted_simplex(self.dim, self.origin, body, p, weights)

    def two_sided_ellipsoid(self, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        # That of the cross-polytope ±e_i.
        return with_scales(np.ones(self.dim), norm(weights, p), p, weights, contacts=self.dim)

    def corner_lattice(self, offset: tuple[float, ...] | None = None) -> SimplexLattice:
        return SimplexLattice(self.dim, self.origin, offset)

    def moved_block(
        self, K: Domain, offset: Vector, p: float, weights: Vector, neighbors: Neighbors
    ) -> Block:
        corners = self.dim + self.origin
        if corners > MOST_CORNERS:
            raise InvalidInput(f"a simplex of more than {MOST_CORNERS} corners is not released.")
        uneven = bool((weights != weights[0]).any())
        if corners <= (MOST_UNEVEN if uneven else MOST_TABLED):
            return super().moved_block(K, offset, p, weights, neighbors)
        # Equal noise on every corner's part, then onto the total: the best there is at equal
        # weights, but for pure privacy (one row more) and a secret number with the corner 0.
        lattice = K.corner_lattice()
        assert lattice is not None
        onto_total = np.eye(corners) - 1 / corners
        return Block(lattice, np.ones(corners), K.center, onto_total[: self.dim])

    def block_from_zero(self, p: float, weights: Vector) -> Block:
        lattice = SimplexLattice(self.dim, self.origin)
        return Block(lattice, np.ones(self.dim), np.zeros(self.dim), from_zero=True)

    @property
    def has_l1(self) -> bool:
        return True

    def l1_block(self, block: Block, p: float, weights: Vector, neighbors: Neighbors) -> Block:
        # One record replaced by another moves two parts by 1 at most: of their scales only the
        # two smallest count, so that all are equal but for that of the largest weight.
        replaced = neighbors is Neighbors.SUBSTITUTE and not block.from_zero
        if not replaced or not 2 < self.dim + self.origin <= MOST_UNEVEN:
            return self.block_from_zero(p, weights)
        scales, shares, gain = laplace_scales(self.dim, self.origin, p, weights)
        if gain < LEAST_GAIN:
            return self.block_from_zero(p, weights)
        # The noise of the total, which is public, is taken from every part by its share.
        onto_total = np.eye(self.dim) - shares[:, None]
        table = np.vstack([np.diag(1 / scales), np.zeros((int(self.origin), self.dim))])
        lattice = SimplexLattice(self.dim, self.origin)
        return Block(lattice, np.ones(self.dim), shares, onto_total * scales, table=table)

    def clips(self, offset: tuple[float, ...] | None = None) -> tuple[Clip, ...]:
        return (SimplexLattice(self.dim, self.origin, offset),)

    @classmethod
    def built(cls, dim: int, origin: bool) -> Self:
        return cls(dim, origin)

    def __repr__(self) -> str:
        return f"Simplex(dim={self.dim}{', origin=True' if self.origin else ''})"


def laplace_scales(d: int, origin: bool, p: float, weights: Vector) -> tuple[Vector, Vector, float]:
    """Scales of Laplace noise on every part, shares of the total's noise, and what they gain.

    1/b + 1/b' ≤ ε for the two smallest scales: with b = 1 for all parts but one of scale t the
    noise is in proportion to 1 + 1/t. Parts that add up to a public total have the variance
    v(1 − v/Σv) each if the noise of the total is taken away by the shares v/Σv.

    >>> scales, shares, gain = laplace_scales(20, False, 2.0, np.array([10.0] + [1.0] * 19))
    >>> round(float(scales[0]), 2), round(gain, 2)
    (0.58, 1.12)
    """
    from scipy.optimize import minimize_scalar

    heavy = int(np.argmax(weights))

    def parts(log: float) -> tuple[Vector, Vector]:
        scales = np.ones(d)
        scales[heavy] = math.exp(log)
        return scales, np.zeros(d) if origin else scales**2 / np.sum(scales**2)

    def error(log: float) -> float:
        scales, shares = parts(log)
        return (1 + math.exp(-log)) * norm(weights * scales * np.sqrt(1 - shares), p)

    found = minimize_scalar(error, bounds=(-10.0, 0.0), method="bounded")
    best = min((0.0, float(found.x)), key=error)
    return *parts(best), 2 * norm(weights, p) / error(best)


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
    """For K − K the smallest that treats corners of equal weights alike; a free shift one apart.

    For one large weight and others that are equal the latter is the smallest of all, too, by
    symmetry. Floors are from measures: corners with the probabilities u ∝ (w·D)², D² ∝ w^{p−2}:
    two of them at random, given that they differ, have E = 2(diag u − uuᵀ)/(1 − Σu²), one of them
    the covariance diag u − uuᵀ. If no weight stands out, tr((D·W·E·W·D)^½) is close to √2·‖w‖_p,
    the value of equal noise.
    """
    plain = around_simplex(d, origin, body, p, np.ones(d))
    value = norm(weights * plain.scales, p) * (1 + NORM_ERROR)
    # The segment between the two corners of the largest weights, or half of it.
    pair = norm(np.sort(weights)[-2:], p) / (1 if body == "difference" else 2)
    floors = [floored(pair)]
    if d <= LARGEST_ROOT:
        powers = (0.0, 2.0, 6.0, 14.0) if math.isinf(p) else (p - 2,)
        floors += [_corner_floor(d, origin, body, p, weights, power) for power in powers]
    if 2 < d + origin <= LARGEST_UNEVEN:
        if body == "difference":
            uneven = around_grouped_corners(d, origin, p, weights, max(floors))
        else:
            uneven = _around_one_corner(d, origin, p, weights, max(floors))
        if uneven is not None and uneven.value < value:
            return uneven
        floors.append(0.0 if uneven is None else uneven.floor)
    return replace(plain, value=value, floor=max(floors), is_exact=False)


def _around_one_corner(
    d: int, origin: bool, p: float, weights: Vector, floor: float
) -> SmallestEllipsoid:
    """zᵀM⁻z = Σ a_i z_i² over the corners' parts z, Σz = 0, with one a for a corner by itself.

    About the point with the parts π a corner is at a_i(1 − 2π_i) + Σaπ² = 1: a ∝ 1/(1 − 2π), and
    π = ρ for one corner, (1 − ρ)/(m − 1) for the others.
    """
    from scipy.optimize import minimize_scalar

    m = d + origin
    heavy = int(np.argmax(weights))

    def parts(at: float) -> tuple[Vector, Vector]:
        """1/a and π of every corner."""
        pi = np.full(m, (1 - at) / (m - 1))
        pi[heavy] = at
        b = 1 - 2 * pi
        return np.asarray(b * (1 + float(np.sum(pi**2 / b)))), pi

    def scales(b: Vector) -> Vector:
        # M = diag(b) − bbᵀ/Σb; the corner 0 is no coordinate.
        rest = (b.sum() - b)[:d] / b.sum()
        return np.asarray(np.sqrt(b[:d] * rest))

    best = minimize_scalar(
        lambda at: math.log(norm(weights * scales(parts(at)[0]), p)),
        bounds=(1 / m, 0.5 - 1e-9),
        method="bounded",
        options={"xatol": 1e-10},
    )
    b, pi = parts(float(best.x))
    root = np.sqrt(b)
    direction = root / np.sqrt(np.sum(b))
    factor = (root[:, None] * (np.eye(m) - np.outer(direction, direction)))[:d]
    if math.isfinite(p):
        sizes = weights * scales(b)
        D = (sizes / norm(sizes, p)) ** (p / 2 - 1) * (1 - CLOSED_FORM_ERROR)
        moment = (np.diag(pi) - np.outer(pi, pi))[:d, :d]
        floor = max(floor, dual_floor(moment, 2, weights * D))
    error = gamma(4 * m + 64) + CLOSED_FORM_ERROR
    found = with_factor(factor, floor, p, weights, scales=scales(b), error=error)
    return replace(found, shift=pi[:d])


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
