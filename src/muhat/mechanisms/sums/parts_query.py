"""Counts of corners, or the sums of the parts of a whole, as they are: they have a public total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from muhat.domains.integers import TableLattice
from muhat.errors import DataChanged, InvalidInput
from muhat.mechanisms.sums.sum_query import SumQuery
from muhat.privacy import Neighbors


@dataclass(frozen=True, eq=False)
class PartsQuery(SumQuery, keys=("corners", "fraction_bits")):
    """v = ⌊S/2^t⌋ for the sums S of all corners' parts but the last, which has what is left.

    t, the `fraction_bits`, is at most that of a part, so that all v of n records add up to
    n·2^(bits of a part − t).
    """

    lattice: TableLattice
    corners: int
    fraction_bits: int = 0

    count_multiplier = None
    from_zero = False

    def __post_init__(self) -> None:
        if not 0 <= self.fraction_bits <= self.lattice.part_bits:
            raise InvalidInput("parts have no more fractional bits than a whole.")

    @property
    def rows(self) -> int:
        return self.corners

    @property
    def sum_rows(self) -> int:
        return self.corners

    @property
    def keeps_total(self) -> bool:
        return True

    @property
    def _whole(self) -> int:
        """What the rows of one record add up to."""
        return 1 << self.lattice.part_bits - self.fraction_bits

    def answer(self, totals: Sequence[int], count: int) -> list[int]:
        parts = self.lattice.corner_totals(totals, count)
        if sum(parts) != count << self.lattice.part_bits:
            raise DataChanged("the number of records changed between counting and reading.")
        first = [int(part) >> self.fraction_bits for part in parts[:-1]]
        return [*first, count * self._whole - sum(first)]

    def units(self) -> list[Fraction]:
        return [Fraction(1, self._whole)] * self.rows

    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        """‖S − S'‖₁ is at most 2k wholes where k records are replaced; rounding moves all rows by
        less than 1, but for the last: that one moves by what the others do together.
        """
        if norm != 1:
            raise InvalidInput("parts of a whole are released in the ℓ₁ norm.")
        moved = contributions * (2 if neighbors is Neighbors.SUBSTITUTE else 1)
        rounding = 2 * (self.rows - 1) if self.fraction_bits else 0
        return Fraction(moved * self._whole + rounding)
