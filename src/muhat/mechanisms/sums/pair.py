"""The sum of one column and the number of its values, together with the least noise.

The integers are those of the lattice and the count, as they are. A value that comes or goes moves
them by (q, ±1), |q| at most the lattice's reach; one that becomes another moves the sum by twice
that at most, and is two moves where the law knows no others. Proof: docs/proofs/stairs.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from muhat._arrays import Floats
from muhat.domains.lattice import ColumnsLattice
from muhat.mechanisms.sums.columns_query import ColumnsQuery
from muhat.mechanisms.sums.recipe import Recipe
from muhat.noise.pair_stairs import PairStairs, PairSum, least_pair
from muhat.noise.protection import Protection
from muhat.noise.spread import Spread
from muhat.privacy import Neighbors


@dataclass(frozen=True, eq=False)
class PairRecipe(Recipe):
    """A recipe whose law counts moves of values."""

    def __post_init__(self) -> None:
        law, query, guard = self.law, self.query, self.protection
        assert isinstance(law, PairStairs)
        assert isinstance(query, ColumnsQuery)
        plain = query.row_multipliers == (1, 1) and not query.fraction_bits
        if not plain or query.from_zero or query.box.absent is not None:
            raise AssertionError("a pair is a sum and a count as they are")
        if query.box.reach[0] > law.step:
            raise AssertionError("a value moves the sum farther than the law allows for")
        alone = law.replaced or guard.neighbors is Neighbors.ADD_REMOVE
        moves = guard.contributions * (1 if alone else 2)
        guard.check(law, Fraction(moves), query.rows)

    @cached_property
    def row_scales(self) -> Floats:
        """The sum's in its unit, the count's in its own."""
        assert isinstance(self.law, PairStairs)
        whole, one = self.query.units()
        return np.array([float(whole * self.law.unit), float(one) * self.law.count_unit])

    @property
    def from_zero_spread(self) -> Spread:
        """The noise on the sum measured from 0, to which every value adds the centre once."""
        law, center = self.law, self.center
        assert isinstance(law, PairStairs)
        assert center is not None
        parts = self.row_scales * np.array([1.0, float(center[0])])
        length = float(np.linalg.norm(parts))
        first, second = (float(part) / length for part in parts)
        return Spread(PairSum(law, first, second), 1, np.array([length]))


def pair_recipe(name: str, lattice: ColumnsLattice, protection: Protection) -> Recipe | None:
    """The pair with the least error of the mean at the ends of its bounds; None for none."""
    (reach,) = lattice.box.reach
    replaced = protection.neighbors is Neighbors.SUBSTITUTE
    law = least_pair(protection.promise, reach, protection.contributions, replaced)
    if law is None:
        return None
    query = ColumnsQuery(lattice, (1,), (), (1,), 0)
    return PairRecipe(name, law, query, protection, None, np.array(lattice.box.center))
