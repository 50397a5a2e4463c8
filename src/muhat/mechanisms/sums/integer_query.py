"""The integer answer to which noise is added, and its exact sensitivity.

A release sums the records' integers into S, and maps them by a fixed-point matrix B with t
fractional bits: v = (B·S + 2^(t−1)) >> t. B is diagonal here: what its rows are, and how far one
record moves them, a lattice says. Everything is a Python integer; floats only choose the
proportions of B.

Sensitivity: rounding moves each of the r rows of v by less than ½ on either side, so two
neighbours differ by at most ‖B·(S − S')‖/2^t + ‖(1, …, 1)‖ in any norm; without the last term if
t = 0, where nothing is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from muhat._integers import whole_root_down
from muhat._plain import Key
from muhat.domains.integers import SumLattice
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.sum_query import RowQuery
from muhat.noise import FRACTION_BITS
from muhat.noise.law import ScaleFamily
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors

Measured = TypeVar("Measured", bound=RowQuery)

WHOLE = Fraction(1)

PRECISION_BITS = 50
"""The smallest multiplier has at least this many bits: B is off by less than 2^−50."""

TOO_STRONG = (
    "the promise is too strong for exact arithmetic: the noise on the sum would be more "
    "than 10^10 times the whole domain. Choose a larger epsilon, rho or mu."
)


@dataclass(frozen=True)
class IntegerQuery(
    RowQuery, keys=(Key("multipliers", "row_multipliers"), "fraction_bits", "from_zero")
):
    """v = round(B·S/2^t), of r rows.

    Without a `lattice` the only row is the number of records. `from_zero` measures sums from 0,
    as a sum with a secret number of records needs it, and not from where it is best.
    """

    lattice: SumLattice | None
    multipliers: tuple[int, ...]
    fraction_bits: int
    from_zero: bool = False

    @property
    def count_multiplier(self) -> int | None:
        """The multiplier of the number of records; None if it is not released."""
        return self.multipliers[0] if self.lattice is None else None

    @property
    def sum_rows(self) -> int:
        return 0 if self.lattice is None else self.rows

    @property
    def row_multipliers(self) -> tuple[int, ...]:
        if self.lattice is None:
            return self.multipliers
        return self.lattice.row_multipliers(self.multipliers, self.from_zero)

    def measured(self, totals: Sequence[int], count: int) -> Sequence[int]:
        if self.lattice is None:
            return (count,)
        return self.lattice.measured(totals, count, self.from_zero)

    def row_steps(self) -> Sequence[Fraction]:
        return [Fraction(1)] if self.lattice is None else self.lattice.row_steps(self.from_zero)

    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        replaced = neighbors is Neighbors.SUBSTITUTE
        if self.lattice is None:
            moved = 0 if replaced else self.multipliers[0]
        else:
            moved = self.lattice.sensitivity(self.multipliers, norm, replaced, self.from_zero)
        return Fraction(contributions * moved, 1 << self.fraction_bits) + self.rounding(norm)


def fit(
    lattice: SumLattice | None,
    proportions: Sequence[float],
    law: ScaleFamily,
    protection: Protection,
    share: Fraction,
    *,
    from_zero: bool = False,
) -> IntegerQuery:
    """The query in these proportions, one a multiplier, that is as large as a share allows."""

    def query(multipliers: Sequence[int], bits: int) -> IntegerQuery:
        return IntegerQuery(lattice, tuple(multipliers), bits, from_zero)

    return scaled_to(query, proportions, law, protection, share)


def scaled_to(
    query: Callable[[Sequence[int], int], Measured],
    proportions: Sequence[float],
    law: ScaleFamily,
    protection: Protection,
    share: Fraction = WHOLE,
) -> Measured:
    """The query with multipliers in these proportions that is as large as the promise allows.

    `query` makes it of multipliers and fractional bits. Its sensitivity, in units of the noise
    (2^54), is at most the root of a `share` of what the promise allows, μ² or ε².
    """
    norm, strength_squared = law.sensitivity_norm, protection.strength_squared(law.kind) * share
    least = Fraction(min(proportions))
    relative = [int(Fraction(x) / least * (1 << 60)) for x in proportions]
    trial = query(relative, 1)
    slack = trial.rounding(norm)
    moved = trial.sensitivity(norm, protection.neighbors, protection.contributions)
    reach = math.ceil(2 * (moved - slack))
    # 2^60·√strength·2^(54+t)/reach, the least multiplier, must have PRECISION_BITS bits.
    bits = PRECISION_BITS + 2 - 60 - FRACTION_BITS + math.log2(reach) - _log2(strength_squared) / 2
    t = max(0, math.ceil(bits))
    room = whole_root_down(strength_squared * (1 << 2 * (FRACTION_BITS + t))) - (slack << t)
    if room < slack << (t + 20):
        # Below this the rounding of v would cost more than a millionth of the noise.
        raise InvalidInput(TOO_STRONG)
    return query([x * room // reach for x in relative], t)


def _log2(value: Fraction) -> float:
    return math.log2(value.numerator) - math.log2(value.denominator)
