"""Tallies as SQL: whole numbers of every record, made, clipped and added up where the records are.

A value becomes t, the integer nearest to (x − c)/g, or nothing where that is far beyond the box or
is no number; then q, which is t between two integers, one of these two, or the integer that stands
for a missing value. Whatever the engine's floats, casts and nulls do, q is one of the integers that
the box has: that is all that privacy rests on (docs/proofs/sql.md). That t is what the kernels make
of the same value makes the sums equal, bit for bit.
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
from muhat.data.sql_dialect import CannotPush, Dialect, SqlColumn
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

_MAGIC = 1.5 * 2.0**52
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
        sums = ["count(*)", *(self._sum(each) for each in tally.sums)]
        levels: list[list[str]] = [[] for _ in range(max(self._levels.values(), default=-1) + 1)]
        for text, name in self._named.items():
            levels[self._levels[name]].append(f"{text} AS {name}")
        stages = [Stage(tuple(level)) for level in levels]
        stages.append(Stage((*keys, *(f"{text} AS s{k}" for k, text in enumerate(sums))), keys))
        if codes:
            groups = tuple(f"g{k}" for k in range(len(codes)))
            stages.append(Stage(tuple(f"{code} AS g{k}" for k, code in enumerate(codes))))
            totals = (f"sum(s{k})" for k in range(len(sums)))
            stages.append(Stage((*groups, *totals), groups))
        return Query(tuple(stages), tuple(cell.cells for cell in tally.by))

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

    def _sum(self, summand: Summand) -> str:
        there = [self._name(self._dialect.is_there(self._columns[c])) for c in summand.recorded]
        every = self._name(" AND ".join(there), *there) if there else None
        counted = "" if every is None else f" FILTER (WHERE {every})"
        if summand.number is None:
            return f"count(*){counted}"
        return self._dialect.total(self._whole(summand.number), counted)

    def _whole(self, number: Whole) -> str:
        """The name of a whole number."""
        if isinstance(number, BoxStep):
            return self._clipped(number)
        if isinstance(number, BoxSquare):
            return self._squared(self._clipped(number.step), number.step.coordinate)
        if isinstance(number, MomentStep):
            q = self._clipped(number.step)
            return self._name(_rounded(q, 46, 21), q)
        if isinstance(number, MomentSquare):
            k, m = self._whole(number.step), number.reach
            return self._name(self._dialect.quotient(f"({m * m} - {k} * {k})", m), k)
        first, second = self._whole(number.first), self._whole(number.second)
        return self._name(_rounded(f"{first} * {second}", 49, 24), first, second)

    def _squared(self, q: str, place: Coordinate) -> str:
        """s, by the kernel's own floats, and between two integers whatever they do."""
        dialect = self._dialect
        most = float(max(map(abs, (place.lower, place.upper, place.absent))))
        bound = round_half_even(int(most * most), SQUARE_UNIT)
        real = dialect.as_real(q)
        product = self._name(f"{real} * {real}", q)
        magic, scale = dialect.real(_MAGIC * SQUARE_UNIT), dialect.real(1 / SQUARE_UNIT)
        square = self._name(
            dialect.whole(
                product, (0, most * most), lambda x: f"({x} + {magic} - {magic}) * {scale}"
            ),
            product,
        )
        inside = f"{square} BETWEEN 0 AND {bound}"
        return self._name(f"CASE WHEN {inside} THEN {square} ELSE {bound} END", square)

    def _clipped(self, number: BoxStep) -> str:
        """q: one of the integers from lower to upper, or `absent`."""
        place, column = number.coordinate, self._columns[number.column]
        if column.kind == "text":
            raise CannotPush
        if column.kind == "integer" and place.exponent > COARSEST_EXACT:
            column = SqlColumn(self._dialect.as_real(column.value), "float")
        value = self._name(column.value)
        column = replace(column, value=value)
        if column.kind == "float":
            nearest, center = self._nearest_to_float(value, place)
        else:
            nearest, center = self._nearest_to_integer(column, place)
        side = f"CASE WHEN {value} < {center} THEN {place.lower} ELSE {place.upper} END"
        t = self._name(f"COALESCE({nearest}, {side})", value)
        clipped = self._dialect.clip(t, place.lower, place.upper)
        there = self._dialect.is_there(column)
        return self._name(f"CASE WHEN {there} THEN {clipped} ELSE {place.absent} END", t)

    def _nearest_to_float(self, value: str, place: Coordinate) -> tuple[str, str]:
        """t of a float, by the kernel's own addition, and the centre."""
        if place.scale_exponent:
            raise CannotPush
        real = self._dialect.real
        center, magic, scale = map(real, (place.scaled_center, place.magic, 1 / place.grid))

        def scaled(x: str) -> str:
            shifted = f"({x} - {center} + {magic}"
            if place.shift is not None:
                shifted = f"({x} + {real(place.shift)}"
            return f"{shifted} - {magic}) * {scale}"

        reach = math.ldexp(1.0, place.exponent + BITS + 4)
        near = (place.scaled_center - reach, place.scaled_center + reach)
        return self._dialect.whole(value, near, scaled), center

    def _nearest_to_integer(self, column: SqlColumn, place: Coordinate) -> tuple[str, str]:
        """t of a whole number U that stands for U/10^scale, and the centre in the same units.

        t is the integer nearest to (U·factor − center·unit)/unit, found in whole numbers alone.
        """
        dialect, value = self._dialect, column.value
        unit = 10**column.scale << max(place.exponent, 0)
        factor = 1 << max(-place.exponent, 0)
        if max((abs(place.center) + 2 * _NEAR) * unit, factor) >= _WIDE:
            raise CannotPush
        low = -((_NEAR - place.center) * unit // factor)
        high = (place.center + _NEAR) * unit // factor
        center = -(-place.center * unit // factor)
        narrow = max((abs(place.center) + 2 * _NEAR) * unit, factor) < _NARROW
        narrow = narrow and (column.narrow or (column.kind == "integer" and column.signed))
        if column.kind == "integer":
            least, most = (-1 << 63, (1 << 63) - 1) if column.signed else (0, (1 << 64) - 1)
            low, high, center = max(low, least), min(high, most), min(max(center, least), most)
        if low > high:
            return "CAST(NULL AS BIGINT)", str(center)
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
        inside = f"{value} BETWEEN {low} AND {high}"
        return f"CASE WHEN {inside} THEN CAST({nearest} AS BIGINT) END", str(center)


def _rounded(whole: str, bits: int, unit: int) -> str:
    """An integer of fewer than `bits` bits in units of 2^unit, ties to even: no float at all."""
    # Not negative once it is shifted, and as even as it was.
    shifted = f"({whole} + {1 << bits})"
    odd = f"(({shifted} >> {unit}) & 1)"
    return f"((({shifted} + {(1 << unit - 1) - 1} + {odd}) >> {unit}) - {1 << bits - unit})"


def _signed(number: int) -> str:
    return f"({number})" if number < 0 else str(number)
