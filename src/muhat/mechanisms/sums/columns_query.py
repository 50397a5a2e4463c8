"""The integer answers about the columns of a box, and their exact sensitivity.

Of every column j up to three rows are released: the sum of its integers q, the sum of what their
squares lack, Q − s with s ≈ q²/2^45 and Q ≈ m²/2^45, and the number of recorded values. With
u = q/m in [−1, 1] a recorded value adds (u, 1 − u², 1) times (a, b, c), a missing one (0, 0, 0).

How far a column moves, where squares are small enough beside the sums to ride free:

    norm   one value becomes another               a value comes or goes
    ℓ₂     2a                     if b² ≤ 4a²/C*    √(max(a, b)² + c²)
    ℓ₁     2a                     if b ≤ a/2        a + c
    ℓ_∞    max(2a, b)                               max(a, b, c)

with C* = 8(5√5 − 11). The conditions are checked here, in integers; where one fails b is added.
Rows may be `turned`: Σ(m + q) and Σ(m − q) over recorded values take the places of sum and count,
which are read off them again. A value adds between 0 and 2m to each, so both move by at most 2a in
ℓ_∞. Squares `apart` have pure noise of their own, and what they move is added to what the rest
does. Proof: docs/proofs/columns.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from muhat._integers import norm_up
from muhat._plain import Key
from muhat.domains.box_kernel import SQUARE_ERROR, SQUARE_UNIT
from muhat.domains.box_lattice import BoxLattice, ColumnsLattice
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.integer_query import scaled_to
from muhat.mechanisms.sums.sum_query import RowQuery
from muhat.noise.law import ScaleFamily, Shape
from muhat.noise.maximum_norm import DiamondNorm
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors

SQUARE_BOUND = Fraction(14428, 10_000)
"""Just above C* = 8(5√5 − 11) = 1.44272."""


@dataclass(frozen=True)
class ColumnsQuery(
    RowQuery,
    keys=(Key("multipliers", "row_multipliers"), "fraction_bits", "from_zero", "turned", "apart"),
):
    """v = round(B·S/2^t): the rows of the sums, then those of the squares, then the counts.

    `sums` has a multiplier a column, so has `squares` if the lattice has squares. `counts` has one
    a column if the lattice counts; without that it may have a single one, for the number of all
    records. With `from_zero` sums are measured from 0 instead of the lattice's centre. Where rows
    are `turned` there are no multipliers of counts: a column has one for both.
    """

    lattice: ColumnsLattice
    sums: tuple[int, ...]
    squares: tuple[int, ...]
    counts: tuple[int, ...]
    fraction_bits: int
    from_zero: bool = False
    turned: bool = False
    apart: bool = False

    @property
    def box(self) -> BoxLattice:
        """The lattice of the values."""
        return self.lattice.box

    @property
    def count_multiplier(self) -> int | None:
        """The multiplier of the number of all records; None if that is not released."""
        return None if self.lattice.counts or not self.counts else self.counts[0]

    @property
    def row_multipliers(self) -> tuple[int, ...]:
        return (*self.sums, *self.squares, *(self.sums if self.turned else self.counts))

    @property
    def sum_rows(self) -> int:
        return len(self.sums)

    @property
    def square_rows(self) -> int:
        return len(self.squares)

    @property
    def column_counts(self) -> int:
        """The numbers of recorded values, the last rows if there are any."""
        return self.box.dim if self.lattice.counts else 0

    @property
    def square_reach(self) -> list[Fraction]:
        """Half of what is between the ends of every column."""
        return [reach * step for reach, step in zip(self.box.reach, self.box.grid, strict=True)]

    def measured(self, totals: Sequence[int], count: int) -> list[int]:
        d = self.box.dim
        values, rest = list(totals[:d]), list(totals[d:])
        if self.from_zero:
            values = [v + count * c for v, c in zip(values, self.box.center_units, strict=True)]
        recorded = rest[-d:] if self.lattice.counts else [count] * d
        # Where a missing value has a place of its own, every record has a square.
        squared = recorded if self.box.absent is None else [count] * d
        lacking = [
            whole * number - total
            for whole, number, total in zip(self._whole_squares, squared, rest, strict=False)
        ]
        lacking = lacking[: len(self.squares)]
        if self.turned:
            most = [m * number for m, number in zip(self._reaches, recorded, strict=True)]
            above = [m + value for m, value in zip(most, values, strict=True)]
            below = [m - value for m, value in zip(most, values, strict=True)]
            return [*above, *lacking, *below]
        counted = [recorded[0]] if self.count_multiplier is not None else recorded
        return [*values, *lacking, *counted[: len(self.counts)]]

    def read(self, rows: Sequence[int]) -> list[Fraction]:
        if not self.turned:
            return super().read(rows)
        d = self.sum_rows
        pairs = list(zip(rows[:d], rows[-d:], strict=True))
        sums = [Fraction(above - below, 2) for above, below in pairs]
        counts = [Fraction(above + below, 2) for above, below in pairs]
        return [*sums, *map(Fraction, rows[d:-d]), *counts]

    def noise_read(self, law: Shape) -> Shape:
        """The diamond's noise, where sums and counts are read off rows with that of the cube."""
        return DiamondNorm() if self.turned else law

    @cached_property
    def _reaches(self) -> list[int]:
        """m of every column: the largest integer that a value can add, in size."""
        if not self.from_zero:
            return list(self.box.reach)
        ends = zip(self.box.lower, self.box.upper, self.box.center_units, strict=True)
        return [max(abs(low + c), abs(high + c)) for low, high, c in ends]

    @property
    def _whole_squares(self) -> list[int]:
        return [m * m // SQUARE_UNIT for m in self._reaches]

    def row_steps(self) -> list[Fraction]:
        """How much one sum is worth: of the data, of u² = (q/m)², of one record."""
        steps = list(self.box.grid)
        steps += [Fraction(SQUARE_UNIT, m * m) for m in self._reaches[: len(self.squares)]]
        if self.turned:
            steps += [Fraction(1, m) for m in self._reaches]
        return steps + [Fraction(1)] * len(self.counts)

    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        if self.turned and not math.isinf(norm):
            raise InvalidInput("turned rows are released in the norm of the cube.")
        replaced = neighbors is Neighbors.SUBSTITUTE
        columns = range(self.box.dim)
        moved = [self._column_reach(column, norm, replaced) for column in columns]
        if self.count_multiplier is not None and not replaced:
            moved.append(self.count_multiplier)
        farthest = norm_up(moved, norm)
        if self.apart:
            farthest += norm_up([sum(self._square_reach(column)) for column in columns], norm)
        return Fraction(contributions * farthest, 1 << self.fraction_bits) + self.rounding(norm)

    def _square_reach(self, column: int) -> tuple[int, int]:
        """b, the most that a square can add to its row, and what rounding can add to a move."""
        m, square = self._reaches[column], self.squares[column]
        # Rounding squares to s, and Q, moves a row by less than two of its units for each record.
        return -(-square * m * m // SQUARE_UNIT), square * (2 * SQUARE_ERROR + 1)

    def _column_reach(self, column: int, norm: float, replaced: bool) -> int:
        """How far one record moves the rows of a column that have noise together."""
        a = self.sums[column] * self._reaches[column]
        if self.turned:
            return 2 * a
        square = self.squares and not self.apart
        b, slack = self._square_reach(column) if square else (0, 0)
        c = self.counts[column] if self.lattice.counts else 0
        if not replaced:
            return norm_up([_appearing(a, b, norm), c], norm) + slack
        differing = self.sums[column] * self.box.extent[column] if not square else 2 * a
        between = _between(differing, a, b, norm) if square else differing
        if self.box.absent is not None:
            return norm_up([between, c], norm) + slack
        leaving = norm_up([_appearing(a, b, norm), c], norm) if c else 0
        return max(between, leaving) + slack


def _between(differing: int, a: int, b: int, norm: float) -> int:
    """How far (a·u, b·u²) moves when u becomes another: by differing = 2a if squares are free."""
    if math.isinf(norm):
        return max(differing, b)
    free = 2 * b <= a if norm == 1 else b * b * SQUARE_BOUND <= 4 * a * a
    return differing if free else norm_up([differing, b], norm)


def _appearing(a: int, b: int, norm: float) -> int:
    """The longest (a·u, b·(1 − u²)): one of its ends, unless squares are large in ℓ₁."""
    if norm == 1:
        return a if 2 * b <= a else a + b
    return max(a, b)


def fit_columns(
    lattice: ColumnsLattice,
    proportions: tuple[Sequence[float], Sequence[float], Sequence[float]],
    law: ScaleFamily,
    protection: Protection,
    *,
    from_zero: bool,
    turned: bool,
) -> ColumnsQuery:
    """The query in these proportions, of sums, squares and counts, that the promise just allows.

    Squares would add to the noise of the others unless rows have noise of their own.
    """
    apart = lattice.squares and not law.independent
    d, s = len(proportions[0]), len(proportions[1])

    def query(multipliers: Sequence[int], bits: int) -> ColumnsQuery:
        parts = tuple(multipliers)
        sums, squares, counts = parts[:d], parts[d : d + s], parts[d + s :]
        return ColumnsQuery(lattice, sums, squares, counts, bits, from_zero, turned, apart)

    every = [one for part in proportions for one in part]
    return scaled_to(query, every, law, protection)
