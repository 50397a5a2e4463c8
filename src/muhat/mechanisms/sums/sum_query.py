"""What integer answers about sums have in common, whatever their integers are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction

from muhat._arrays import Integers
from muhat._integers import norm_up
from muhat._plain import Plain
from muhat.noise.law import Shape
from muhat.privacy import Neighbors


class SumQuery(Plain, ABC):
    """Integers v of r rows: sums of values, then perhaps squares of them, then counts."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """r, the number of integers released."""

    @property
    @abstractmethod
    def sum_rows(self) -> int:
        """How many of the rows are sums of values: the first ones."""

    @property
    def square_rows(self) -> int:
        """How many rows of squares follow."""
        return 0

    @property
    def rows_apart(self) -> int:
        """How many of the squares' rows have noise of their own: none, or all."""
        return 0

    @property
    def keeps_total(self) -> bool:
        """Whether the rows add up to the same for any records, if their number is the same."""
        return False

    @property
    def column_counts(self) -> int:
        """How many rows, the last ones, count the recorded values of single columns."""
        return 0

    @property
    def square_reach(self) -> list[Fraction]:
        """How far coordinates reach that have squares, in the coordinates of the lattice."""
        return []

    @property
    def base(self) -> Fraction:
        """What squares are taken from, in units of that reach squared."""
        return Fraction(1)

    @abstractmethod
    def answer(self, totals: Sequence[int], count: int) -> list[int]:
        """v for the exact sums of the records' integers, and the number of records."""

    def each(self, records: Integers) -> list[list[int]]:
        """v of every record by itself, from its integers."""
        return [self.answer(record, 1) for record in records.tolist()]

    def read(self, rows: Sequence[int]) -> list[Fraction]:
        """Sums, squares and counts in `units`, from the noisy rows."""
        return [Fraction(row) for row in rows]

    def noise_read(self, law: Shape) -> Shape:
        """The shape of the noise on what was read, if rows have noise of a law."""
        return law

    @abstractmethod
    def units(self) -> list[Fraction]:
        """How much one unit of v is worth in each row, in the coordinates of the lattice."""

    @abstractmethod
    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        """An upper bound on ‖v − v'‖ over all neighbours, in the ℓ₁, ℓ₂ or ℓ_∞ norm."""


class RowQuery(SumQuery):
    """v = round(B·S/2^t) with a diagonal B of integers, t the `fraction_bits`."""

    fraction_bits: int
    apart: bool = False
    """Whether squares have noise of their own."""

    @property
    @abstractmethod
    def row_multipliers(self) -> tuple[int, ...]:
        """The diagonal of B, one a row."""

    @abstractmethod
    def measured(self, totals: Sequence[int], count: int) -> Sequence[int]:
        """The sums from where they are measured, one a row."""

    @abstractmethod
    def row_steps(self) -> Sequence[Fraction]:
        """How much one of these sums is worth, row by row."""

    @property
    def rows(self) -> int:
        return len(self.row_multipliers)

    @property
    def rows_apart(self) -> int:
        return self.square_rows if self.apart else 0

    def answer(self, totals: Sequence[int], count: int) -> list[int]:
        bits, sums = self.fraction_bits, self.measured(totals, count)
        half = (1 << bits) >> 1
        pairs = zip(self.row_multipliers, sums, strict=True)
        return [(b * total + half) >> bits for b, total in pairs]

    def each(self, records: Integers) -> list[list[int]]:
        # Column by column, as if each were a sum, in whole numbers of any length.
        columns = self.answer(list(records.T.astype(object)), 1)
        return list(map(list, zip(*columns, strict=True)))

    def units(self) -> list[Fraction]:
        whole = 1 << self.fraction_bits
        pairs = zip(self.row_steps(), self.row_multipliers, strict=True)
        return [step * Fraction(whole, b) for step, b in pairs]

    def rounding(self, norm: float) -> int:
        """What rounding v adds to its distance from another: ½ a row and side, if it is rounded."""
        if not self.fraction_bits:
            return 0
        draws = [self.rows - self.rows_apart, self.rows_apart]
        return sum(norm_up([1] * rows, norm) for rows in draws if rows)
