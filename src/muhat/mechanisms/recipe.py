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
from numpy.typing import NDArray

from muhat.mechanisms.block_query import BlockQuery, PartQuery
from muhat.mechanisms.columns_query import ColumnsQuery
from muhat.noise import FRACTION_BITS
from muhat.noise.law import Law
from muhat.noise.spread import Spread
from muhat.privacy import Neighbors, Privacy, as_typed, gaussian_mu_squared, pure_within

Floats = NDArray[np.float64]


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
    query: PartQuery | BlockQuery | ColumnsQuery
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
        # A domain of one point has no rows.
        noise = self.law.sample(self.query.rows) if self.query.rows else ()
        answer = self.query.answer(totals, count)
        return [
            (value + int(shift)) * unit
            for value, shift, unit in zip(answer, noise, self.query.units(), strict=True)
        ]

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
        rows = self.query.sum_rows if self.law.independent else self.query.rows
        return Spread(self.law, rows, self.scales, self.factor)

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
