"""The sum of one column some of whose values are missing: stairs on it, and on their number.

For a sum a missing value counts as 0, so that its noise is that of complete records; the number of
recorded values, of which the sum is no function, has a small share of ε for itself. Both have the
least noise that a number alone can have. Proof: docs/proofs/stairs.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from muhat._arrays import Floats
from muhat.domains.lattice import ColumnsLattice
from muhat.mechanisms.sums.columns_query import ColumnsQuery
from muhat.mechanisms.sums.integer_query import IntegerQuery
from muhat.mechanisms.sums.recipe import RECIPE_KEYS, Recipe
from muhat.noise.least_stairs import gains, least_stairs
from muhat.noise.protection import Protection
from muhat.noise.stairs import Stairs
from muhat.privacy import Neighbors

NUMBER_SHARE = Fraction(1, 20)
"""Of ε, what the number of recorded values takes, as with other noise."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedSum(Recipe, keys=(*RECIPE_KEYS, "number")):
    """Noise of `law` on a sum, and of `number` on how many values there are in it."""

    number: Stairs

    def __post_init__(self) -> None:
        query, guard = self.query, self.protection
        assert isinstance(query, ColumnsQuery)
        if query.row_multipliers != (1, 1) or query.fraction_bits or query.box.absent is None:
            raise AssertionError("a missing value counts as 0, and numbers are as they are")
        if query.from_zero != (guard.neighbors is Neighbors.ADD_REMOVE):
            raise AssertionError("where records come and go one without a value must add nothing")
        moved, number = _moved(query, guard), Fraction(guard.contributions)
        if not any(
            self.number.keeps(small.promise, number) and self.law.keeps(rest.promise, moved)
            for small, rest in guard.divided(NUMBER_SHARE)
        ):
            raise AssertionError("sum and number are more sensitive than their shares allow")

    @cached_property
    def row_scales(self) -> Floats:
        """The sum's in the unit of its law; the number's, for the same variance, in its own."""
        one = math.sqrt(float(self.number.second_moment) / self.law.variance(1))
        return np.array([float(self.query.units()[0] * self.law.unit), one])

    def _noise(self) -> list[int]:
        return [int(law.sample(1)[0]) for law in (self.law, self.number)]


def counted_sum(
    name: str, lattice: ColumnsLattice, protection: Protection, *, from_zero: bool
) -> Recipe | None:
    """Stairs on the sum and the number of values of one column; None where they gain nothing.

    Where a δ is promised the sum's may be cut at it.
    """
    query = ColumnsQuery(lattice, (1,), (), (1,), 0, from_zero)
    moved = math.ceil(_moved(query, protection))
    center = np.array(lattice.box.center)
    best: tuple[Stairs, Stairs] | None = None
    for small, rest in protection.divided(NUMBER_SHARE):
        law = least_stairs(rest.promise, moved)
        number = least_stairs(small.promise, protection.contributions)
        if law is not None and number is not None and (best is None or gains(law, best[0])):
            best = law, number
    if best is None:
        return None
    return CountedSum(name, best[0], query, protection, None, center, number=best[1])


def _moved(query: ColumnsQuery, protection: Protection) -> Fraction:
    """How far one person moves the sum: the number beside it has a share of its own."""
    alone = IntegerQuery(query.box, query.sums, query.fraction_bits, query.from_zero)
    return alone.sensitivity(1.0, protection.neighbors, protection.contributions)
