"""Cells of values in SQL: of labels, of bins, of codes, and of blocks of a grid.

Whatever is compared is compared exactly, as `number_cells.py` has it: with floats where a column
is of floats, with whole numbers where it is of whole numbers, byte by byte where it is of text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from muhat.data.coding import Coder
from muhat.data.grids import UniformGrid
from muhat.data.number_cells import EXACT
from muhat.data.sql_dialect import MAGIC, CannotPush, Dialect, SqlColumn
from muhat.data.tallies import BlockCell

_BRANCHES = 8
"""Labels that are compared one after another; more of them are halved first."""

_MOST_LABELS = 1 << 12
_SMALLEST = 1e-290


def code_of(column: SqlColumn, coder: Coder, dialect: Dialect) -> str:
    """The code of a value: that of the label it is, of the bin it is in, or `coder.absent`."""
    known, absent = coder.categories, coder.absent
    if len(known.edges) + len(known.values) * (not isinstance(known.values, range)) > _MOST_LABELS:
        raise CannotPush
    if (column.kind == "text") != coder.is_text:
        raise CannotPush
    if coder.is_text:
        words = {str(label).encode(): cell for cell, label in enumerate(known.values)}
        if any(b"\0" in word for word in words):
            raise CannotPush
        pairs = [(dialect.text(word.decode()), words[word]) for word in sorted(words)]
        return _equal(dialect.same_bytes(column.value), pairs, absent)
    compared = _compared(column, dialect)
    value = compared.value
    first = _first_of_run(known.values)
    if first is not None:
        ends = f"{compared.least(first)} AND {compared.least(first + len(known.values) - 1)}"
        found = f"CASE WHEN {value} BETWEEN {ends} AND {compared.is_whole} "
        found += f"THEN CAST({value} AS BIGINT) - ({first}) ELSE {absent} END"
    elif known.edges:
        found = _binned(compared, known.edges, absent)
    else:
        numbers = sorted((Fraction(label), cell) for cell, label in enumerate(known.values))
        exact = [(number, cell) for number, cell in numbers if compared.has(number)]
        pairs = [(compared.least(number), cell) for number, cell in exact]
        found = _equal(value, pairs, absent)
    return f"CASE WHEN {dialect.is_there(column)} THEN {found} ELSE {absent} END"


def _first_of_run(labels: Sequence[Any]) -> int | None:
    """The first of whole numbers that are exact as floats and follow one another; else None."""
    if isinstance(labels, range):
        return 0
    if not labels or any(Fraction(label).denominator > 1 for label in labels):
        return None
    first = int(labels[0])
    if [int(label) for label in labels] != [*range(first, first + len(labels))]:
        return None
    return first if -EXACT <= first <= EXACT - len(labels) else None


def block_of(cell: BlockCell, column: SqlColumn, dialect: Dialect) -> str:
    """Where a value lies in a window of a grid, by the grid's own floats."""
    grid, real = cell.grid, dialect.real
    if not isinstance(grid, UniformGrid) or column.kind == "text" or grid.step < _SMALLEST:
        raise CannotPush
    # Whatever lies further out has the code of these, and nothing overflows between them.
    beyond = math.nextafter(grid.lower + (grid.cells + 1) * grid.step, math.inf)
    if not math.isfinite(beyond - grid.lower):
        raise CannotPush
    if column.kind == "integer":
        ends = math.floor(grid.lower), math.ceil(beyond)
        if max(map(abs, ends)) > EXACT or (ends[0] < 0 and not column.signed):
            raise CannotPush
        value = dialect.as_real(f"LEAST(GREATEST({column.value}, {ends[0]}), {ends[1]})")
    else:
        value = _real(column)
        value = f"LEAST(GREATEST({value}, {real(grid.lower)}), {real(beyond)})"
    # A quarter of a step is in the first cell as all that is less: no quotient is too small.
    distance = f"GREATEST({value} - {real(grid.lower)}, {real(grid.step / 4)})"
    magic = real(MAGIC)
    code = f"CAST({distance} / {real(grid.step)} + {magic} - {magic} AS BIGINT)"
    # From whole blocks before the first cell of all, so that nothing that is shifted is negative.
    before = (cell.first >> cell.block_bits) + 1
    shift = (before << cell.block_bits) - cell.first
    code = f"LEAST(GREATEST({code}, 0), {grid.cells - 1})"
    place = f"{dialect.upper(f'({code} + {shift})', cell.block_bits)} + {1 - before}"
    missing = cell.blocks + 2 if cell.drop else cell.place(grid.middle)
    clipped = f"LEAST(GREATEST({place}, 0), {cell.blocks + 1})"
    return f"CASE WHEN {dialect.is_there(column)} THEN {clipped} ELSE {missing} END"


class _Compared(Protocol):
    """Numbers of a column, and others that are compared with them."""

    value: str
    is_whole: str

    def least(self, number: Fraction | float) -> str:
        """The least number that the column may have and that is not below a given one."""

    def has(self, number: Fraction) -> bool:
        """Whether the column may have just this number."""


class _Reals:
    """Floats."""

    def __init__(self, value: str, dialect: Dialect) -> None:
        self.value = value
        self.is_whole = f"{value} = FLOOR({value})"
        self._dialect = dialect

    def least(self, number: Fraction | float) -> str:
        near = float(number)
        return self._dialect.real(near if near >= number else math.nextafter(near, math.inf))

    def has(self, number: Fraction) -> bool:
        return Fraction(float(number)) == number


class _Integers:
    """Whole numbers of 64 bits."""

    is_whole = "TRUE"

    def __init__(self, value: str) -> None:
        self.value = value

    def least(self, number: Fraction | float) -> str:
        return str(math.ceil(number))

    def has(self, number: Fraction) -> bool:
        return number.denominator == 1


def _compared(column: SqlColumn, dialect: Dialect) -> _Compared:
    if column.kind == "integer":
        return _Integers(column.value)
    return _Reals(_real(column), dialect)


def _real(column: SqlColumn) -> str:
    """A column of floats or decimals as floats."""
    value = column.value if column.kind == "float" else column.real
    if value is None:
        raise CannotPush
    return value


def _equal(value: str, pairs: Sequence[tuple[str, int]], absent: int) -> str:
    """The cell of the one of several sorted literals that a value equals."""
    if not pairs:
        return str(absent)
    if len(pairs) <= _BRANCHES:
        branches = " ".join(f"WHEN {value} = {text} THEN {cell}" for text, cell in pairs)
        return f"CASE {branches} ELSE {absent} END"
    middle = len(pairs) // 2
    below, above = _equal(value, pairs[:middle], absent), _equal(value, pairs[middle:], absent)
    return f"CASE WHEN {value} < {pairs[middle][0]} THEN {below} ELSE {above} END"


def _binned(compared: _Compared, edges: Sequence[int | float], absent: int) -> str:
    """The bin [a, b) of a value, the last of them closed."""
    last = edges[-1]
    at_the_end = str(absent)
    if math.isfinite(last) and compared.has(Fraction(last)):
        cell = len(edges) - 2
        at_the_end = f"CASE WHEN {compared.value} = {compared.least(last)} THEN {cell} "
        at_the_end += f"ELSE {absent} END"
    found = [str(absent), *map(str, range(len(edges) - 1)), at_the_end]
    # No value is beyond what is infinite: only finite ones are looked for.
    first, end = math.isinf(edges[0]), len(edges) - math.isinf(last)
    least = [compared.least(edge) for edge in edges[first:end]]
    return _between(compared.value, least, found[first : end + 1])


def _between(value: str, edges: Sequence[str], found: Sequence[str]) -> str:
    """What is found below the first edge, between the first two, and so on."""
    if not edges:
        return found[0]
    middle = len(edges) // 2
    below = _between(value, edges[:middle], found[: middle + 1])
    above = _between(value, edges[middle + 1 :], found[middle + 1 :])
    return f"CASE WHEN {value} < {edges[middle]} THEN {below} ELSE {above} END"
