"""Choices: every record picks at most k of d things.

The polytope {0 ≤ x ≤ 1, Σx ≤ k} has the vertices with at most k ones and else zeros. Two of them
differ by a signed vector with at most k ones and at most k minus ones, so one record replaced by
another moves the sum by √min(2k, d) at most, and one that comes or goes by √k.
docs/proofs/choices.md has the proofs, of the ellipsoids too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat import _check
from muhat._arrays import vector
from muhat._integers import norm_up
from muhat._plain import Key
from muhat.domains.base import Domain
from muhat.domains.blocks import Block
from muhat.domains.integers import Clip
from muhat.domains.parts_lattice import PartsLattice
from muhat.domains.vectors import Matrix, Vector, by_columns, dimension, pulled_in, records
from muhat.ellipsoids import SmallestEllipsoid
from muhat.ellipsoids.floors import dual_floor
from muhat.ellipsoids.symmetric_bodies import LARGEST_ROOT, around_alike
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors
from muhat.records.columns import FloatArray
from muhat.records.norms import total

_HALVINGS = 52
MOST_THINGS = 5_000
"""Things up to which choices are released: noise on the total is spread by a matrix."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Choices(Domain):
    """{x : 0 ≤ x_j ≤ 1, Σx ≤ most}, most < dim: records that pick at most so many of d things.

    Ones stand for what was picked. Records outside move to the nearest point; what is missing
    counts as most/(2d), the centre.

    >>> Choices(dim=4, most=2).support([3, 1, 2, -1])
    5.0
    >>> Choices(dim=4, most=2).clip([1.0, 1.0, 1.0, 1.0]).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """

    kind = "choices"
    clips_to_nearest = True
    most: int
    center: Vector
    half_widths: Vector

    def __init__(self, dim: int, most: int) -> None:
        size, picked = dimension(dim), _check.count("most", most)
        if picked >= size:
            raise InvalidInput(
                "must be less than dim", parameter="most", value=str(picked), hint="Use a Box."
            )
        center, half_widths = np.full(size, picked / (2 * size)), np.full(size, 0.5)
        self._set(most=picked, center=center, half_widths=half_widths)

    @property
    def is_symmetric(self) -> bool:
        return False

    @property
    def most_nonzero(self) -> int:
        return self.most

    @property
    def bounding_box(self) -> tuple[Vector, Vector]:
        return np.zeros(self.dim), np.ones(self.dim)

    def reach(self, directions: Matrix) -> Vector:
        largest = np.partition(directions, -self.most, axis=-1)[..., -self.most :]
        return np.asarray(np.maximum(largest, 0.0).sum(axis=-1) - directions @ self.center)

    def support(self, direction: ArrayLike) -> float:
        theta = vector("direction", direction, dim=self.dim)
        return float(np.maximum(np.sort(theta)[-self.most :], 0.0).sum())

    def extreme_point(self, direction: ArrayLike) -> Vector:
        theta = vector("direction", direction, dim=self.dim)
        point = np.zeros(self.dim)
        point[np.argsort(theta)[-self.most :]] = 1.0
        return np.where(theta > 0, point, 0.0)

    def clip(self, points: ArrayLike) -> Matrix:
        x = pulled_in(records(points, self.center))
        return by_columns(nearest_choices, x, self.most)

    def farthest(self, weights: Vector) -> float:
        # The k largest weights at 1, the others at 0: (1 − c)² = c² + 1 − 2c.
        c, squares = float(self.center[0]), np.sort(weights**2)
        return math.sqrt(c * c * squares.sum() + (1 - 2 * c) * squares[-self.most :].sum())

    def ellipsoid(self, body: str, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        d, k = self.dim, self.most
        if body == "difference":
            signs = np.array([[k, 0], [k, min(k, d - k)]])
            return self._around(*self._hardest(), signs.sum(axis=1), signs @ [1, -1], p, weights)
        # A number of things with the mean and the variance of d fair coins, if it may be so many.
        y, across, along = d / (2 * k), 0.25, 0.25
        if 2 * k <= d:
            # Else all k with probability y, or none.
            r = math.sqrt((d - 1) * (d - k) / k)
            rest = (2 / (r + math.sqrt(r * r + 8))) ** 2
            y = 1 - rest
            across, along = k * y * (1 - k / d) / (d - 1), k * k * y * rest / d
        picked = np.arange(k + 1)
        found = self._around(across, along, picked, picked, p, weights, k * y)
        return replace(found, shift=np.full(d, k * y / d))

    def two_sided_ellipsoid(self, p: float, weights: Vector, tol: float) -> SmallestEllipsoid:
        # As many things at random as are the hardest to hide.
        d = self.dim
        picked = np.arange(1, self.most + 1)
        across, along = picked * (1 - picked / d) / (d - 1), picked**2 / d
        best = int(np.argmax((d - 1) * np.sqrt(across) + np.sqrt(along)))
        return self._around(float(across[best]), float(along[best]), picked, picked, p, weights)

    def _hardest(self) -> tuple[float, float]:
        """E[ssᵀ] of the best measure on K − K: across the total, a dimension, and along it."""
        d, k = self.dim, self.most
        others = min(k, d - k)
        if (k - others) ** 2 >= d:
            return 1.0, 1.0
        # k more things, and with probability 1 − u as many others less as possible.
        across, along = k + others - (k - others) ** 2 / d, (k - others) ** 2 / d
        more = others * (2 * k - others) / d
        less = others + more
        rate = (d - 1) * less**2
        u = (more**2 * across - rate * along) / (rate * more + more**2 * less)
        u = min(max(u, 0.0), 1.0)
        return (across - u * less) / (d - 1), along + u * more

    def _around(
        self,
        across: float,
        along: float,
        lengths: NDArray[np.int64],
        totals: NDArray[np.int64],
        p: float,
        weights: Vector,
        start: float = 0.0,
    ) -> SmallestEllipsoid:
        """M = E^½·tr(E^½) of a measure on the body, grown until it holds all of the body.

        E = across·(I − 11ᵀ/d) + along·11ᵀ/d. The body's corners are the permutations of points
        with these squared `lengths` and `totals`, seen from where the total is `start`.
        """
        d = self.dim
        size = (d - 1) * math.sqrt(across) + math.sqrt(along)
        M = np.sqrt([across, along]) * size
        outside = (lengths - totals**2 / d) / M[0] + (totals - start) ** 2 / d / M[1]
        grown = max(1.0, float(outside.max())) * (1 + 1e-14)
        found = around_alike(d, M[0] * grown, M[1] * grown, p, weights)
        floor = size * float(weights.min()) * d ** ((0 if math.isinf(p) else 1 / p) - 0.5)
        moment = None
        if d <= LARGEST_ROOT:
            moment = across * np.eye(d) + (along - across) / d
            floor = max(floor * (1 - 1e-9), dual_floor(moment, p, weights))
        least = min(found.floor, floor * (1 - 1e-12))
        return replace(found, floor=least, moment=moment, is_exact=False)

    def moved_block(
        self, K: Domain, offset: Vector, p: float, weights: Vector, neighbors: Neighbors
    ) -> Block:
        if self.dim > MOST_THINGS:
            raise InvalidInput(f"choices of more than {MOST_THINGS} things are not released.")
        if neighbors is not Neighbors.SUBSTITUTE:
            return super().moved_block(K, offset, p, weights, neighbors)
        start = tuple(offset.tolist())
        across, along = self._hardest()
        # M⁻¹ ∝ I + g·11ᵀ: equal noise on every thing, and on √g times the total.
        g = (math.sqrt(across / along) - 1) / self.dim
        if g <= 0:
            return Block(ChoicesLattice(self.dim, self.most, offset=start), np.ones(1), offset)
        spread = g / (1 + g * self.dim)
        onto = np.column_stack([np.eye(self.dim) - spread, np.full(self.dim, spread)])
        lattice = ChoicesLattice(self.dim, self.most, with_total=True, offset=start)
        return Block(lattice, np.array([1.0, 1 / math.sqrt(g)]), offset, onto)

    def block_from_zero(self, p: float, weights: Vector) -> Block:
        lattice = ChoicesLattice(self.dim, self.most)
        return Block(lattice, np.ones(1), np.zeros(self.dim), from_zero=True)

    @property
    def has_l1(self) -> bool:
        return True

    def l1_block(self, block: Block, p: float, weights: Vector, neighbors: Neighbors) -> Block:
        # Σ_j |s_j| ≤ min(2k, d), whichever things are picked.
        return self.block_from_zero(p, weights)

    def clips(self, offset: tuple[float, ...] | None = None) -> tuple[Clip, ...]:
        return (ChoicesLattice(self.dim, self.most, offset=offset),)

    @classmethod
    def built(cls, dim: int, most: int) -> Self:
        return cls(dim, most)

    def __repr__(self) -> str:
        return f"Choices(dim={self.dim}, most={self.most})"


@dataclass(frozen=True)
class ChoicesLattice(
    PartsLattice, keys=("dim", "most", "with_total", Key("offset", optional=True))
):
    """Integers 0 ≤ q ≤ 2^44 with Σq ≤ most·2^44, standing for q·2^−44.

    Sums have a row a thing and, `with_total`, one more for all of them together, whose multiplier
    is the second.

    >>> ChoicesLattice(5, 2).sensitivity([1], 1, replaced=True, from_zero=False) / 2**44
    4.0
    """

    kind = "choices"
    size: int
    most: int
    with_total: bool = False
    offset: tuple[float, ...] | None = None

    @property
    def total(self) -> int:
        return self.most * self.unit

    @property
    def is_whole(self) -> bool:
        return False

    @property
    def center(self) -> tuple[float, ...]:
        return (self.most / (2 * self.size),) * self.size

    @property
    def center_units(self) -> tuple[int, ...]:
        return (self.total // (2 * self.size),) * self.size

    def nearest(self, points: FloatArray) -> FloatArray:
        return nearest_choices(points, self.most)

    @property
    def steps(self) -> tuple[Fraction, ...]:
        return (Fraction(1, self.unit),) * (1 + self.with_total)

    def row_multipliers(self, multipliers: Sequence[int], from_zero: bool) -> tuple[int, ...]:
        return (multipliers[0],) * self.size + tuple(multipliers[1:])

    def row_steps(self, from_zero: bool) -> list[Fraction]:
        return [Fraction(1, self.unit)] * (self.size + self.with_total)

    def measured(self, totals: Sequence[int], count: int, from_zero: bool) -> Sequence[int]:
        return [*totals, sum(totals)] if self.with_total else totals

    def sensitivity(
        self, multipliers: Sequence[int], norm: float, replaced: bool, from_zero: bool
    ) -> int:
        # Norms are convex, so the farthest is a corner: k things more, and either none or as many
        # others as possible less.
        each, *total = (b * self.unit for b in multipliers)
        k = self.most
        fewer = {0, min(k, self.size - k) if replaced else 0}
        moves = ([*[each] * (k + m), *[c * (k - m) for c in total]] for m in fewer)
        return max(norm_up(moved, norm) for moved in moves)


def nearest_choices(x: FloatArray, most: int) -> FloatArray:
    """The nearest y with 0 ≤ y ≤ 1 and Σy ≤ k, for each column of x: clip(x − τ, 0, 1), τ ≥ 0.

    τ is 0, or within 1 of the (k+1)-th largest coordinate: one below leaves k + 1 ones, one above
    k coordinates at most. So all are measured from that one, and cut where they end at 0 or at 1
    anyway. Each record by itself, its sums in ascending order.
    """
    nearest: FloatArray = np.clip(x, 0.0, 1.0)
    outside = np.flatnonzero(~(total(nearest) <= most))
    if len(outside):
        pivot = np.sort(x[:, outside], axis=0)[-1 - most]
        relative = np.clip(x[:, outside] - pivot, -1.0, 2.0)
        low, high = np.maximum(-pivot, -1.0), np.ones(len(outside))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            much = total(np.clip(relative - middle, 0.0, 1.0)) > most
            low, high = np.where(much, middle, low), np.where(much, high, middle)
        nearest[:, outside] = np.clip(relative - high, 0.0, 1.0)
    return nearest
