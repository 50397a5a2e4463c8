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
Proof: docs/proofs/columns.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from muhat.domains.box_lattice import BoxLattice
from muhat.domains.columns_lattice import SQUARE_ERROR, SQUARE_UNIT, ColumnsLattice
from muhat.mechanisms.integer_query import norm_up, rounded_rows, row_units, scaled_to
from muhat.privacy import Neighbors

SQUARE_BOUND = Fraction(14428, 10_000)
"""Just above C* = 8(5√5 − 11) = 1.44272."""


@dataclass(frozen=True)
class ColumnsQuery:
    """v = round(B·S/2^t): the rows of the sums, then those of the squares, then the counts.

    `sums` has a multiplier a column, so has `squares` if the lattice has squares. `counts` has one
    a column if the lattice counts; without that it may have a single one, for the number of all
    records. With `from_zero` sums are measured from 0 instead of the lattice's centre.
    """

    lattice: ColumnsLattice
    sums: tuple[int, ...]
    squares: tuple[int, ...]
    counts: tuple[int, ...]
    fraction_bits: int
    from_zero: bool = False

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
        """The diagonal of B, one a row."""
        return (*self.sums, *self.squares, *self.counts)

    @property
    def rows(self) -> int:
        """r, the number of integers released."""
        return len(self.row_multipliers)

    @property
    def sum_rows(self) -> int:
        """How many of the rows are sums of values: the first ones."""
        return len(self.sums)

    def answer(self, totals: Sequence[int], count: int) -> list[int]:
        """v for the exact sums on the lattice, and the number of records."""
        measured = self._measured(totals, count)
        return rounded_rows(self.row_multipliers, measured, self.fraction_bits)

    def _measured(self, totals: Sequence[int], count: int) -> list[int]:
        """The sums from where they are measured, one a row."""
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
        counted = [recorded[0]] if self.count_multiplier is not None else recorded
        return [*values, *lacking[: len(self.squares)], *counted[: len(self.counts)]]

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

    def units(self) -> list[Fraction]:
        """How much one unit of v is worth: of the data, of u² = (q/m)², of one record."""
        steps = list(self.box.grid)
        steps += [Fraction(SQUARE_UNIT, m * m) for m in self._reaches[: len(self.squares)]]
        steps += [Fraction(1)] * len(self.counts)
        return row_units(steps, self.row_multipliers, self.fraction_bits)

    def to_dict(self) -> dict[str, Any]:
        """For the plan's digest."""
        return {
            "multipliers": [str(multiplier) for multiplier in self.row_multipliers],
            "fraction_bits": self.fraction_bits,
            "from_zero": self.from_zero,
        }

    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        """An upper bound on ‖v − v'‖ over all neighbours, in the ℓ₁, ℓ₂ or ℓ_∞ norm."""
        replaced = neighbors is Neighbors.SUBSTITUTE
        moved = [self._column_reach(column, norm, replaced) for column in range(self.box.dim)]
        if self.count_multiplier is not None and not replaced:
            moved.append(self.count_multiplier)
        reach = Fraction(contributions * norm_up(moved, norm), 1 << self.fraction_bits)
        return reach + norm_up([1] * self.rows, norm)

    def _column_reach(self, column: int, norm: float, replaced: bool) -> int:
        """How far one record moves the rows of a column."""
        m = self._reaches[column]
        a = self.sums[column] * m
        square = self.squares[column] if self.squares else 0
        b = -(-square * m * m // SQUARE_UNIT)
        c = self.counts[column] if self.lattice.counts else 0
        # Rounding squares to s, and Q, moves a row by less than two of its units for each record.
        slack = square * (2 * SQUARE_ERROR + 1)
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
    *,
    from_zero: bool,
    norm: float,
    neighbors: Neighbors,
    strength_squared: Fraction,
    contributions: int,
) -> ColumnsQuery:
    """The query in these proportions, of sums, squares and counts, that the promise just allows."""
    d, s = len(proportions[0]), len(proportions[1])

    def query(multipliers: Sequence[int], bits: int) -> ColumnsQuery:
        parts = tuple(multipliers)
        sums, squares, counts = parts[:d], parts[d : d + s], parts[d + s :]
        return ColumnsQuery(lattice, sums, squares, counts, bits, from_zero)

    every = [one for part in proportions for one in part]
    return scaled_to(query, every, norm, neighbors, strength_squared, contributions)
