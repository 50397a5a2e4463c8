"""A mechanism, ready to run: an integer query, a law of noise, and the way back to the domain.

A recipe proves itself when it is made: its law of noise keeps the promise although one person
moves the integers of its query, by the exact sensitivity in the norm of the law. Nothing else in
the plan can break it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from muhat._arrays import Floats
from muhat._plain import Key, Plain
from muhat.mechanisms.sums.ball_query import BallQuery
from muhat.mechanisms.sums.block_query import BlockQuery, PartQuery
from muhat.mechanisms.sums.columns_query import ColumnsQuery
from muhat.mechanisms.sums.parts_query import PartsQuery
from muhat.noise.law import Law
from muhat.noise.protection import Protection
from muhat.noise.spread import Spread
from muhat.privacy import Neighbors

SQUARES_SHARE = 0.05
"""Of ε, or of the squared budget of normal noise, what squares take where they are not free."""


RECIPE_KEYS = (
    *(Key("mechanism", "name"), "law"),
    *(Key("lattice", "query.lattice"), "query", "protection"),
)


@dataclass(frozen=True, eq=False)
class Recipe(Plain, keys=RECIPE_KEYS):
    """Exact sums in, noisy sums out.

    `transform` maps the lattice's r coordinates to the domain's d, where they differ: a matrix of
    shape (d, r), or of shape (d,) if it is diagonal. `center` is the point that sums are measured
    from, None if they are a number of records.
    """

    name: str
    law: Law
    query: PartQuery | BlockQuery | ColumnsQuery | BallQuery | PartsQuery
    protection: Protection
    transform: Floats | None = None
    center: Floats | None = None

    def __post_init__(self) -> None:
        moved = self.query.sensitivity(
            self.law.sensitivity_norm, self.protection.neighbors, self.protection.contributions
        )
        replaced = self.protection.neighbors is Neighbors.SUBSTITUTE
        keeps_total = replaced and self.query.keeps_total
        self.protection.check(self.law, moved, self.query.rows, keeps_total=keeps_total)
        if self.query.rows_apart and not self.law.adds_up:
            raise AssertionError("what several draws hide does not follow from what one does")

    def run(self, totals: Sequence[int], count: int) -> list[Fraction]:
        """The noisy rows in the lattice's coordinates: sums, squares and counts if released."""
        query = self.query
        pairs = zip(query.answer(totals, count), self._noise(), strict=True)
        noisy = [value + shift for value, shift in pairs]
        return [row * unit for row, unit in zip(query.read(noisy), query.units(), strict=True)]

    def _noise(self) -> list[int]:
        """Noise for every row: of one draw, or one for the squares and one for the others."""
        # A domain of one point has no rows.
        drawn = [int(x) for x in self.law.sample(self.noise_rows)] if self.query.rows else []
        if not self.query.rows_apart:
            return drawn
        squares = [int(x) for x in self.law.sample(self.query.rows_apart)]
        sums = self.query.sum_rows
        return [*drawn[:sums], *squares, *drawn[sums:]]

    @property
    def noise_rows(self) -> int:
        """How many rows have noise together with the sums; squares may have noise of their own."""
        return self.query.rows - self.query.rows_apart

    @cached_property
    def row_scales(self) -> Floats:
        """The noise's scale in each row of the query, in the lattice's coordinates."""
        return np.array([float(unit * self.law.unit) for unit in self.query.units()])

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
        return Spread(self.query.noise_read(self.law), rows, self.scales, self.factor)

    @property
    def square_spread(self) -> Spread | None:
        """The noise on squares of unit size; None if none are released."""
        query = self.query
        if not query.square_rows:
            return None
        place = slice(query.sum_rows, query.sum_rows + query.square_rows)
        rows = query.rows_apart or self.noise_rows
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
