"""A mechanism, ready to run: an integer query, a law of noise, and the way back to the domain.

A recipe proves itself when it is made: the exact sensitivity of its query, in the norm of its
law, is at most √strength_squared units of the noise. That inequality is the promise; nothing
else in the plan can break it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from muhat._arrays import Floats
from muhat.mechanisms.sums.ball_query import BallQuery
from muhat.mechanisms.sums.block_query import BlockQuery, PartQuery
from muhat.mechanisms.sums.columns_query import ColumnsQuery
from muhat.noise import FRACTION_BITS
from muhat.noise.law import SHAPES, Law
from muhat.noise.spread import Spread
from muhat.privacy import Neighbors, Privacy, as_typed, gaussian_mu_squared, pure_within

SQUARES_SHARE = 0.05
"""Of ε, or of the squared budget of normal noise, what squares take where they are not free."""


@dataclass(frozen=True)
class Protection:
    """What a recipe must guarantee, whatever it computes.

    `strength_squared` is ε² if the noise is `pure`, else μ² of normal noise.
    """

    neighbors: Neighbors
    strength_squared: Fraction
    contributions: int
    pure: bool

    @classmethod
    def of(
        cls,
        promise: Privacy,
        neighbors: Neighbors,
        contributions: int,
        *,
        pure: bool | None = None,
    ) -> Protection:
        """What a promise asks of pure or of normal noise; by default of the kind it is named for.

        Pure noise keeps every promise, normal noise all but pure ones.
        """
        kind = not promise.admits_normal if pure is None else pure
        return cls(neighbors, _strength_squared(promise, kind), contributions, kind)

    def check(self, law: Law, moved: Fraction) -> None:
        """The proof of a recipe: no neighbours are farther apart, in the norm of its noise."""
        if law.is_pure != self.pure:
            raise AssertionError("the noise is of another kind than the promise was worked out for")
        if moved**2 > self.strength_squared * (1 << 2 * FRACTION_BITS):
            raise AssertionError("the query is more sensitive than the promise allows")


@dataclass(frozen=True, eq=False)
class Recipe:
    """Exact sums in, noisy sums out.

    `transform` maps the lattice's r coordinates to the domain's d, where they differ: a matrix of
    shape (d, r), or of shape (d,) if it is diagonal. `center` is the point that sums are measured
    from, None if they are a number of records.
    """

    name: str
    law: Law
    query: PartQuery | BlockQuery | ColumnsQuery | BallQuery
    protection: Protection
    transform: Floats | None = None
    center: Floats | None = None

    def __post_init__(self) -> None:
        moved = self.query.sensitivity(
            self.law.sensitivity_norm, self.protection.neighbors, self.protection.contributions
        )
        self.protection.check(self.law, moved)

    def run(self, totals: Sequence[int], count: int) -> list[Fraction]:
        """The noisy rows in the lattice's coordinates: sums, squares and counts if released."""
        query = self.query
        pairs = zip(query.answer(totals, count), self._noise(), strict=True)
        noisy = [value + shift for value, shift in pairs]
        read = query.read(noisy) if isinstance(query, ColumnsQuery) else map(Fraction, noisy)
        return [row * unit for row, unit in zip(read, query.units(), strict=True)]

    def _noise(self) -> list[int]:
        """Noise for every row: of one draw, or one for the squares and one for the others."""
        # A domain of one point has no rows.
        drawn = [int(x) for x in self.law.sample(self.noise_rows)] if self.query.rows else []
        beside = self.query.rows - self.noise_rows
        if not beside:
            return drawn
        squares = [int(x) for x in self.law.sample(beside)]
        sums = self.query.sum_rows
        return [*drawn[:sums], *squares, *drawn[sums:]]

    @property
    def noise_rows(self) -> int:
        """How many rows have noise together with the sums; squares may have noise of their own."""
        query = self.query
        if isinstance(query, BallQuery | ColumnsQuery) and query.apart:
            return query.rows - query.square_rows
        return query.rows

    @cached_property
    def row_scales(self) -> Floats:
        """The noise's scale in each row of the query, in the lattice's coordinates."""
        return np.array([float(unit * (1 << FRACTION_BITS)) for unit in self.query.units()])

    @property
    def sum_scales(self) -> Floats:
        """The noise's scale in each row of the sums, without squares and counts."""
        return self.row_scales[: self.query.sum_rows]

    @cached_property
    def factor(self) -> Floats | None:
        """F with noise on the sums = F·(noise of unit scale), or None if F is diagonal."""
        if self.transform is None or self.transform.ndim == 1:
            return None
        return self.transform * self.sum_scales

    @cached_property
    def scales(self) -> Floats:
        """The scale of the noise on each coordinate of the sum, in the domain's coordinates."""
        if self.factor is not None:
            return np.asarray(np.linalg.norm(self.factor, axis=1))
        return self.sum_scales if self.transform is None else self.sum_scales * self.transform

    @property
    def sum_spread(self) -> Spread:
        """The noise on the sums, in the domain's coordinates."""
        rows = self.query.sum_rows if self.law.independent else self.noise_rows
        turned = isinstance(self.query, ColumnsQuery) and self.query.turned
        # Sums and counts are read off rows that have the noise of the cube.
        law = SHAPES["diamond-norm"] if turned else self.law
        return Spread(law, rows, self.scales, self.factor)

    @property
    def square_spread(self) -> Spread | None:
        """The noise on squares of unit size; None if none are released."""
        query = self.query
        if not isinstance(query, ColumnsQuery | BallQuery) or not query.square_rows:
            return None
        place = slice(query.sum_rows, query.sum_rows + query.square_rows)
        rows = query.rows - self.noise_rows or self.noise_rows
        rows = query.sum_rows if self.law.independent else rows
        return Spread(self.law, rows, self.row_scales[place])

    def to_domain(self, coordinates: Sequence[Fraction]) -> Floats:
        """A vector of the lattice's coordinates in the domain's, relative to the centre."""
        values = np.array([float(value) for value in coordinates])
        if self.transform is None:
            return values
        if self.transform.ndim == 1:
            return np.asarray(self.transform * values)
        return np.asarray(self.transform @ values)

    def to_dict(self) -> dict[str, Any]:
        """All that decides the release, in integers, for the plan's digest."""
        query = self.query
        return {
            "mechanism": self.name,
            "law": self.law.name,
            "lattice": None if query.lattice is None else query.lattice.to_dict(),
            "query": query.to_dict(),
            "contributions": self.protection.contributions,
            "neighbors": self.protection.neighbors.value,
        }


@lru_cache(maxsize=256)
def _strength_squared(promise: Privacy, pure: bool) -> Fraction:
    """ε² of the pure noise that keeps the promise, or μ² of normal noise, exactly."""
    return as_typed(pure_within(promise)) ** 2 if pure else gaussian_mu_squared(promise)
