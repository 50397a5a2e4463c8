"""Exact tables of counts, sums, squares and products by public groups, all in one pass.

A value x of a column with bounds is u = (x − centre)/half-width, clipped to [−1, 1] and rounded to
u = k/m with an integer |k| ≤ m ≤ 2^24. A record adds to the tables of its cells

    1,   k,   l = ⌊(m² − k²)/m⌋ for 1 − u²,   p = k·k′/2^24, rounded, for a product of two columns:

whole numbers, and those of a record depend on nothing but the record. k² + l² ≤ m² and
2|k| + l ≤ 2m: squares beside sums move nothing farther (docs/proofs/moment-tables.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._integers import round_half_even
from muhat._plain import Plain
from muhat.data.base import Source
from muhat.data.categories import Categories
from muhat.data.cell_kernel import Axes, checked_sets
from muhat.data.coding import Coder
from muhat.data.moment_kernel import (
    PRODUCT_UNIT,
    STEP_BITS,
    MomentAccumulator,
    MomentTables,
    Row,
    ValueKernel,
    cells_of,
)
from muhat.data.shared import Pass, Reading, carried_out
from muhat.data.sources import open_source
from muhat.data.units import People
from muhat.domains.lattice import BoxLattice
from muhat.errors import InvalidInput

Tables = dict[Axes, NDArray[Any]]
"""A table of whole numbers for every grouping, of the sizes of its axes."""


@dataclass(frozen=True, order=True)
class Family(Plain):
    """Tables that one integer of a record is added to, by any groupings, and who counts.

    `term` has no column (the number of records), one (Σk) or two different ones (Σp), sorted.
    Only records count that have a value in each of the columns `recorded`, sorted too. Where a
    column of the term is not among those and a value is missing all the same, it is the centre.
    Squares ride with the family of their column and are no family of their own.
    """

    recorded: tuple[str, ...]
    term: tuple[str, ...]

    def __post_init__(self) -> None:
        for name, columns in (("recorded", self.recorded), ("term", self.term)):
            if any(before >= after for before, after in pairwise(columns)):
                raise InvalidInput("must be sorted, and no column twice", parameter=name)
        if len(self.term) > 2:
            raise InvalidInput("must have at most two columns", parameter="term")


@dataclass(frozen=True)
class MomentColumn(Plain):
    """A column of numbers with public bounds, and its integers.

    u = k/m stands for x = center + u·half_width, with m the `reach`; both floats are exact. The
    ends of the bounds are within half a step, half_width/m, of ±half_width. A constant (low =
    high) has m = 1, k = 0 and half_width = 0.

    >>> salary = MomentColumn("salary", 0, 200_000)
    >>> salary.center, salary.half_width, salary.reach, salary.step
    (100000.0, 100000.0, 12800000, Fraction(1, 128))
    """

    name: str
    low: int | float
    high: int | float

    def __post_init__(self) -> None:
        exact = self.reach * self.step
        try:
            is_float = Fraction(float(exact)) == exact
        except OverflowError:
            is_float = False
        if not is_float:
            raise InvalidInput(
                f"the bounds of {self.name!r:.60} are too close together or too far apart."
            )

    @cached_property
    def lattice(self) -> BoxLattice:
        """The integers q of 45 bits that are rounded to k = q/2^21."""
        return BoxLattice.around([self.low], [self.high])

    @cached_property
    def reach(self) -> int:
        """m: the largest k in size, at most 2^24 and at least 1."""
        return max(round_half_even(self.lattice.reach[0], 1 << STEP_BITS), 1)

    @cached_property
    def step(self) -> Fraction:
        """What one step of k is worth, a power of two; 0 for a constant."""
        return self.lattice.grid[0] * (1 << STEP_BITS) if any(self.lattice.reach) else Fraction(0)

    @property
    def center(self) -> float:
        """What k = 0 stands for."""
        return self.lattice.center[0]

    @property
    def half_width(self) -> float:
        """What k = m stands for, from the centre."""
        return float(self.reach * self.step)


def reach(family: Family, columns: Mapping[str, MomentColumn]) -> int:
    """The largest integer in size that one record adds to a cell of the family, at least 1.

    A record adds a vector of length at most this where squares are added beside, in ℓ₂ and, with
    half of each square, in ℓ₁.

    >>> salary, age = MomentColumn("salary", 0, 200_000), MomentColumn("age", 0, 128)
    >>> columns = {"salary": salary, "age": age}
    >>> reach(Family((), ("salary",)), columns), reach(Family((), ("age", "salary")), columns)
    (12800000, 12800000)
    """
    if len(family.term) < 2:
        return columns[family.term[0]].reach if family.term else 1
    first, second = (columns[name].reach for name in family.term)
    return max(round_half_even(first * second, PRODUCT_UNIT), 1)


def step(family: Family, columns: Mapping[str, MomentColumn]) -> Fraction:
    """What 1 in a table of the family is worth: in records, in u, or in products of two u.

    That of squares, in 1 − u², is the same as that of their column's sums.
    """
    if not family.term:
        return Fraction(1)
    worth = Fraction(1 if len(family.term) == 1 else PRODUCT_UNIT)
    for name in family.term:
        worth /= columns[name].reach
    return worth


class MomentSource:
    """Records with values and groups; made from arguments and metadata alone.

    The columns of `source` are those of the values, then those of the categories, without the
    ones that are values too.
    """

    def __init__(
        self, source: Source, columns: Sequence[MomentColumn], categories: Sequence[Categories]
    ) -> None:
        self._source = source
        self._columns = tuple(columns)
        self._coders = tuple(Coder(each) for each in categories)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of values."""
        return tuple(column.name for column in self._columns)

    @property
    def by(self) -> tuple[str | int, ...]:
        """The names of the columns that make groups: the axes of all tables."""
        return tuple(coder.categories.name for coder in self._coders)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells of every axis."""
        return tuple(coder.size for coder in self._coders)

    @property
    def cells(self) -> tuple[int, ...]:
        """The same with one more, the last, for values in none of them where records have such."""
        return cells_of(self._coders)

    def rows(self) -> int:
        """How many records there are, from metadata or by counting lines."""
        return self._source.rows()

    def tables(
        self,
        wanted: Mapping[Family, tuple[Axes, ...]],
        squares: Collection[Family] = (),
        *,
        undeclared: bool = False,
    ) -> dict[tuple[Family, bool], Tables]:
        """One pass: for each family and each of its groupings the exact table.

        Under (family, False) are the numbers of records, Σk or Σp, under (family, True), for the
        families in `squares`, Σl. A grouping is a tuple of axes, () for none; a table has them in
        the order given.

        A record with a value that is in no cell of an axis is in no table with that axis, and in
        all others: a table is then no marginal of another. With `undeclared` it is, of one
        histogram of shape `cells`, since such records are in the last cell of the axis. Raises
        DataChanged and SourceFailed as `exact_sums` does.
        """
        return carried_out(self.reading(wanted, squares, undeclared=undeclared))

    def reading(
        self,
        wanted: Mapping[Family, tuple[Axes, ...]],
        squares: Collection[Family] = (),
        *,
        undeclared: bool = False,
    ) -> Reading[dict[tuple[Family, bool], Tables]]:
        """`tables`, as a reading that may share its pass."""
        rows = {}
        sets = {family: checked_sets(self.shape, given) for family, given in wanted.items()}
        for family in wanted:
            rows[family, False] = self._row(family, squared=False)
        for family in squares:
            if family not in sets or len(family.term) != 1:
                raise InvalidInput("must be families of one column", parameter="squares")
            rows[family, True] = self._row(family, squared=True)
        if not rows:
            return {}
        coders, places = self._coders, self._places()
        tables = MomentTables(coders, {row: sets[key[0]] for key, row in rows.items()})
        kernels = [ValueKernel(column.lattice, column.reach) for column in self._columns]
        yield Pass(self._source, lambda: MomentAccumulator(kernels, coders, places, tables))
        found = tables.tables()
        if undeclared:
            return {key: found[row] for key, row in rows.items()}
        return {
            key: {axes: self._declared(table, axes) for axes, table in found[row].items()}
            for key, row in rows.items()
        }

    def _declared(self, table: NDArray[Any], axes: Axes) -> NDArray[Any]:
        """A table without the cells for values in none of the others."""
        inside = tuple(slice(self.shape[axis]) for axis in axes)
        return np.array(table[inside], table.dtype)

    def _row(self, family: Family, *, squared: bool) -> Row:
        places = {name: place for place, name in enumerate(self.columns)}
        for name in (*family.recorded, *family.term):
            _check.one_of("a column", name, places)
        recorded, term = (
            tuple(places[name] for name in names) for names in (family.recorded, family.term)
        )
        return Row(tuple(sorted(recorded)), term, squared)

    def _places(self) -> list[int]:
        """Where in a record the values of every axis stand."""
        order = _read_columns(self.columns, self.by)
        return [order.index(name) for name in self.by]


def open_moments(
    data: Any,
    columns: Sequence[MomentColumn],
    categories: Sequence[Categories],
    *,
    people: People | None = None,
) -> MomentSource:
    """The data as values with groups, or InvalidInput; no value is read.

    `data` is what `open_source` accepts. One column may be both, a column of values and, by bins
    or numbers that are listed, an axis of groups. `people` as `open_source` has them.
    """
    names = [column.name for column in columns]
    axes = [each.name for each in categories]
    for role, given in (("columns", names), ("categories", axes)):
        if len(set(given)) < len(given):
            raise InvalidInput("must not name a column twice", parameter=role)
    for each in categories:
        if each.name in names and each.kind == "text":
            raise InvalidInput(
                f"column {each.name!r:.80} has bounds, so its categories must not be text.",
            )
    chosen = _read_columns(names, axes)
    coders = [
        *(None for _ in names),
        *(Coder(each) for each in categories if each.name not in names),
    ]
    # Without columns there is only something to count.
    if chosen or people is not None:
        source = open_source(data, chosen, len(chosen), coders=coders, people=people)
    else:
        source = open_source(data)
    return MomentSource(source, columns, categories)


def _read_columns(values: Sequence[str], by: Sequence[str | int]) -> list[str | int]:
    """The columns that are read, each once: those of values first."""
    return [*values, *(name for name in by if name not in values)]
