"""Tallies as SQL: whole numbers of every record, made, clipped and added up where the records are.

A value becomes t, the integer nearest to (x − c)/g, or one beyond the box where that is far away;
then q, which is t between two integers, or the integer that stands for a missing value. Whatever
the engine's floats, casts and nulls do, q is one of the integers that the box has: that is all that
privacy rests on (docs/proofs/sql.md). That t is what the kernels make of the same value makes the
sums equal, bit for bit.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from muhat._integers import round_half_even
from muhat.data.base import Adds
from muhat.data.sql_cells import block_of, code_of
from muhat.data.sql_dialect import MAGIC, CannotPush, Dialect, SqlColumn
from muhat.data.sql_query import Query, Stage
from muhat.data.tallies import (
    BlockCell,
    BoxSquare,
    BoxStep,
    CoderCell,
    MomentSquare,
    MomentStep,
    RecordCell,
    Summand,
    SumTable,
    Tallies,
    Whole,
    one_table,
    rows_of,
    tallies_of,
)
from muhat.domains.box_kernel import BITS, SQUARE_UNIT, Coordinate
from muhat.records.exact import COARSEST_EXACT

LOG = logging.getLogger(__name__)
"""Where it is said, for information, that a pass has no SQL."""

_NEAR = 1 << BITS + 1
"""t is exact if it is at most so large; every box ends before."""

_WIDE = 1 << 126
_NARROW = 1 << 62


Answers = TypeVar("Answers", bound=Adds)


Ask = Callable[[Query], Iterable[Sequence[int | None]]]
"""Runs a query: the rows of its answer, the groups' columns first."""


def compiled(tally: SumTable, columns: Sequence[SqlColumn], dialect: Dialect) -> Query:
    """The query of a tally, or CannotPush."""
    return _Compiler(columns, dialect).query(tally)


def queries_of(
    accumulator: object, columns: Sequence[SqlColumn | None], dialect: Dialect
) -> list[list[Query]] | None:
    """What an accumulator adds up, as the queries of each tally; None if some of it has no SQL."""
    tallies = tallies_of(accumulator)
    known = [column for column in columns if column is not None]
    if tallies and len(known) == len(columns):
        with contextlib.suppress(CannotPush):
            return [_parts(tally, known, dialect) for tally in tallies]
    LOG.info("what is asked has no SQL: muhat reads the rows and adds them up")
    return None


def _parts(tally: SumTable, columns: Sequence[SqlColumn], dialect: Dialect) -> list[Query]:
    """The queries of a tally, none of them longer than the engine likes."""
    query = compiled(tally, columns, dialect)
    if dialect.most_names is None or query.names <= dialect.most_names:
        return [query]
    if len(tally.sums) < 2:
        raise CannotPush
    return [query for half in tally.halves() for query in _parts(half, columns, dialect)]


def answered(
    accumulator: Answers, queries: Sequence[Sequence[Query]], ask: Ask
) -> list[Answers] | None:
    """The accumulator, with what the queries found in it; None if anything failed."""
    try:
        found = [one_table([each.tallied(ask(each)) for each in parts]) for parts in queries]
        # Queries of one pass that do not see the same records are none.
        if len({rows_of(each) for each in found}) > 1 or not isinstance(accumulator, Tallies):
            return None
        accumulator.absorb(accumulator.tallied(found))
    except Exception:
        return None
    return [accumulator]


class _Compiler:
    """Names for expressions, each in a projection after those that it is made of."""

    def __init__(self, columns: Sequence[SqlColumn], dialect: Dialect) -> None:
        self._columns = columns
        self._dialect = dialect
        self._named: dict[str, str] = {}
        self._levels: dict[str, int] = {}
        self._keys: list[str] = []

    def query(self, tally: SumTable) -> Query:
        """The query of a tally.

        Records are first added up by texts as they are, and then by the codes of these: of one
        and the same text the code is found once, not in every record.
        """
        codes = [self._code(cell) for cell in tally.by]
        keys = tuple(self._keys)
        made = [("count(*)",), *(self._sums(each) for each in tally.sums)]
        sums = [text for texts in made for text in texts]
        units = tuple(self._dialect.units[-len(texts) :] for texts in made)
        levels: list[list[str]] = [[] for _ in range(max(self._levels.values(), default=-1) + 1)]
        for text, name in self._named.items():
            levels[self._levels[name]].append(f"{text} AS {name}")
        stages = [Stage(tuple(level)) for level in levels]
        stages.append(Stage((*keys, *(f"{text} AS s{k}" for k, text in enumerate(sums))), keys))
        if codes:
            groups = tuple(f"g{k}" for k in range(len(codes)))
            stages.append(Stage(tuple(f"{code} AS g{k}" for k, code in enumerate(codes))))
            totals = (f"{self._dialect.total(f's{k}', None)} AS s{k}" for k in range(len(sums)))
            stages.append(Stage((*groups, *totals), groups))
        return Query(tuple(stages), tuple(cell.cells for cell in tally.by), units)

    def _name(self, text: str, *parts: str) -> str:
        """A name for an expression that has these names in it; a column has its own."""
        if text.isidentifier():
            return text
        if text not in self._named:
            name = self._named[text] = f"n{len(self._named)}"
            self._levels[name] = max((self._levels.get(part, -1) + 1 for part in parts), default=0)
        return self._named[text]

    def _code(self, cell: RecordCell) -> str:
        """The code of a cell, in terms of the keys that records are first added up by."""
        if isinstance(cell, CoderCell):
            column = self._columns[cell.column]
            if column.kind != "text":
                return self._key(code_of(column, cell.coder, self._dialect))
            raw = SqlColumn(self._key(self._dialect.same_bytes(column.value)), "text")
            return code_of(raw, cell.coder, self._dialect)
        if isinstance(cell, BlockCell):
            return self._key(block_of(cell, self._columns[cell.column], self._dialect))
        # Only where other values have no cell are records left out.
        kept = [
            f"{self._code(axis)} < {axis.coder.size}"
            for axis in cell.axes
            if axis.coder.absent == axis.coder.size
        ]
        return f"CASE WHEN {' AND '.join(kept)} THEN 1 ELSE 0 END" if kept else "1"

    def _key(self, text: str) -> str:
        """The name of an expression that records are first added up by."""
        name = self._name(text)
        if name not in self._keys:
            self._keys.append(name)
        return name

    def _sums(self, summand: Summand) -> tuple[str, ...]:
        """What a record adds, added up: as one number, or in the parts that the engine adds."""
        dialect = self._dialect
        there = [self._name(dialect.is_there(self._columns[c])) for c in summand.recorded]
        every = self._name(" AND ".join(there), *there) if there else None
        if summand.number is None:
            return (dialect.count(every),)
        parts = dialect.parts(self._whole(summand.number))
        return tuple(dialect.total(part, every) for part in parts)

    def _whole(self, number: Whole) -> str:
        """The name of a whole number."""
        if isinstance(number, BoxStep):
            return self._clipped(number)
        if isinstance(number, BoxSquare):
            return self._squared(self._clipped(number.step), number.step.coordinate)
        if isinstance(number, MomentStep):
            q = self._clipped(number.step)
            return self._name(self._rounded(q, 46, 21), q)
        if isinstance(number, MomentSquare):
            k, m = self._whole(number.step), number.reach
            return self._name(self._dialect.quotient(f"({m * m} - {k} * {k})", m), k)
        first, second = self._whole(number.first), self._whole(number.second)
        return self._name(self._rounded(f"{first} * {second}", 49, 24), first, second)

    def _rounded(self, whole: str, bits: int, unit: int) -> str:
        """An integer of fewer than `bits` bits in units of 2^unit, ties to even, without floats."""
        upper = self._dialect.upper
        # Not negative once it is shifted, and as even as it was.
        shifted = f"({whole} + {1 << bits})"
        odd = self._dialect.lower(upper(shifted, unit), 1)
        nearest = upper(f"({shifted} + {(1 << unit - 1) - 1} + {odd})", unit)
        return f"({nearest} - {1 << bits - unit})"

    def _squared(self, q: str, place: Coordinate) -> str:
        """s, by the kernel's own floats, and between two integers whatever they do."""
        dialect, real = self._dialect, self._dialect.as_real(q)
        most = max(map(abs, (place.lower, place.upper, place.absent)))
        bound = round_half_even(most * most, SQUARE_UNIT)
        magic, scale = dialect.real(MAGIC * SQUARE_UNIT), dialect.real(1 / SQUARE_UNIT)
        square = dialect.whole(f"({real} * {real} + {magic} - {magic}) * {scale}")
        found = self._name(square, q)
        return self._name(dialect.clip(found, 0, bound), found)

    def _clipped(self, number: BoxStep) -> str:
        """q: one of the integers from lower to upper, or `absent`."""
        place, column, dialect = number.coordinate, self._columns[number.column], self._dialect
        if column.kind == "text":
            raise CannotPush
        if column.kind == "integer" and place.exponent > COARSEST_EXACT:
            column = SqlColumn(dialect.as_real(column.value), "float")
        column = replace(column, value=self._name(column.value))
        nearest = self._nearest_to_float if column.kind == "float" else self._nearest_to_integer
        t = nearest(column, place)
        q = dialect.clip(t, place.lower, place.upper)
        there = dialect.is_there(column)
        return self._name(f"CASE WHEN {there} THEN {q} ELSE {place.absent} END", t)

    def _nearest_to_float(self, column: SqlColumn, place: Coordinate) -> str:
        """t of a float, by the kernel's own addition."""
        if place.scale_exponent:
            raise CannotPush
        real = self._dialect.real
        center, magic, scale = map(real, (place.scaled_center, place.magic, 1 / place.grid))
        reach = math.ldexp(1.0, place.exponent + BITS + 4)
        ends = (place.scaled_center - reach, place.scaled_center + reach)
        near = self._dialect.near(column.value, *map(real, ends))
        shifted = f"({near} - {center} + {magic}"
        if place.shift is not None:
            shifted = f"({near} + {real(place.shift)}"
        return self._name(self._dialect.whole(f"{shifted} - {magic}) * {scale}"), column.value)

    def _nearest_to_integer(self, column: SqlColumn, place: Coordinate) -> str:
        """t of a whole number U that stands for U/10^scale.

        t is the integer nearest to (U·factor − center·unit)/unit, found in whole numbers alone.
        """
        dialect = self._dialect
        unit = 10**column.scale << max(place.exponent, 0)
        factor = 1 << max(-place.exponent, 0)
        if max((abs(place.center) + 2 * _NEAR) * unit, factor) >= _WIDE:
            raise CannotPush
        low = -((_NEAR - place.center) * unit // factor)
        high = (place.center + _NEAR) * unit // factor
        narrow = max((abs(place.center) + 2 * _NEAR) * unit, factor) < _NARROW
        narrow = narrow and (column.narrow or (column.kind == "integer" and column.signed))
        if column.kind == "integer":
            least, most = (-1 << 63, (1 << 63) - 1) if column.signed else (0, (1 << 64) - 1)
            if low > most or high < least:
                return str(place.lower if low > most else place.upper)
            low, high = max(low, least), min(high, most)
        value = self._name(dialect.near(column.value, str(low), str(high)), column.value)
        if narrow and unit == 1:
            nearest = f"{value} * {factor} - {_signed(place.center)}"
        else:
            # From an even number of units below all others, so that nothing is negative.
            start = place.center - 2 * _NEAR
            exact = _signed if narrow and column.narrow else dialect.wide
            number = f"CAST({value} AS {dialect.wide_type})" if exact == dialect.wide else value
            rest = f"({number} * {exact(factor)} - {exact(start * unit)})"
            whole, left = dialect.quotient(rest, unit), dialect.remainder(rest, unit)
            odd = dialect.remainder(whole, 2)
            up = f"CASE WHEN 2 * {left} + {odd} > {exact(unit)} THEN 1 ELSE 0 END"
            nearest = f"{whole} + {up} - {2 * _NEAR}"
        t = dialect.whole(nearest)
        if low * factor > (place.center + place.lower) * unit or (
            high * factor < (place.center + place.upper) * unit
        ):
            # In a box so small whole numbers that are near need not reach from end to end.
            ends = f"WHEN {column.value} < {low} THEN {place.lower} "
            ends += f"WHEN {column.value} > {high} THEN {place.upper}"
            t = f"CASE {ends} ELSE {t} END"
        return self._name(t, value)


def _signed(number: int) -> str:
    return f"({number})" if number < 0 else str(number)
