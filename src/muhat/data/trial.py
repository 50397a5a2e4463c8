"""Public rows on which an engine shows that its sums are those of the embedded engine.

They lie where sums would tell: at the ends of boxes and next to them, on ties between two integers,
on the edges of bins, at labels and texts that are nearly labels, at the ends of what a type can
hold, and where there is no value. All of it is made of public arguments alone.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from muhat.data.coding import Coder
from muhat.data.tallies import (
    BlockCell,
    BoxSquare,
    BoxStep,
    CoderCell,
    KeptCell,
    MomentProduct,
    MomentSquare,
    MomentStep,
    RecordCell,
    SumTable,
    Whole,
)

_FLOATS = [math.nan, math.inf, -math.inf, 1.7976931348623157e308, -1.7976931348623157e308, 5e-324]
_NUMBERS = [0, 1, -1, 3, Fraction(1, 3), Fraction(-7, 2), 2**53 + 1, -(2**62), 2**63 - 1, -(2**63)]
_TEXTS = ["", " ", "other", "\\x66", "o'clock", 'a "quoted" b', "é", "e\u0301", "x;--", "0"]
_MOST_EDGES = 24
"""So many edges and labels of a column are tried, evenly spread."""


def trial_values(tallies: Sequence[SumTable], column: int, kind: Any) -> list[Any]:
    """Values of a column of an Arrow type, each once, of which None is not one.

    Floats have 64 bits.
    """
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return [True, False]
    coders = [
        cell.coder
        for cell in _cells(tallies)
        if isinstance(cell, CoderCell) and cell.column == column
    ]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return list(dict.fromkeys([*_texts(coders), *_TEXTS]))
    wanted: list[Any] = [
        *_NUMBERS,
        *_near_boxes(tallies, column),
        *_near_cells(tallies, column, coders),
    ]
    made = [value for number in wanted for value in _of_type(Fraction(number), kind)]
    if pa.types.is_floating(kind):
        made += _FLOATS
    return list(dict.fromkeys(made))


def trial_table(
    values: Sequence[Sequence[Any]], kinds: Sequence[Any], *, missing: bool = True
) -> Any:
    """Every value of every column in rows of Arrow, x0, x1, …, and rows without any.

    Columns go through their values with steps of their own, so that values meet in many ways;
    where nothing is missing, in their order.
    """
    import pyarrow as pa

    rows = max(map(len, values)) * (1 + missing)
    made = {}
    for place, (one, kind) in enumerate(zip(values, kinds, strict=True)):
        listed = [*one, None] if missing else one
        step = 1 + place * missing
        step = step if math.gcd(step, len(listed)) == 1 else 1
        taken = [listed[row * step % len(listed)] for row in range(rows)]
        made[f"x{place}"] = pa.array(taken, kind)
    return pa.table(made)


def same(value: Any, other: Any) -> bool:
    """Whether two values are one; not a number is one."""
    return bool(value == other or (value != value and other != other))


def _cells(tallies: Sequence[SumTable]) -> Iterator[RecordCell]:
    for tally in tallies:
        for cell in tally.by:
            yield from cell.axes if isinstance(cell, KeptCell) else (cell,)


def _steps(number: Whole | None) -> Iterator[BoxStep]:
    if isinstance(number, BoxStep):
        yield number
    elif isinstance(number, BoxSquare | MomentStep | MomentSquare):
        yield from _steps(number.step)
    elif isinstance(number, MomentProduct):
        yield from _steps(number.first)
        yield from _steps(number.second)


def _near_boxes(tallies: Sequence[SumTable], column: int) -> Iterator[Fraction]:
    """Numbers at the ends of boxes and in them, whole steps of their grids, ties, and between."""
    steps = {step for tally in tallies for each in tally.sums for step in _steps(each.number)}
    for step in steps:
        if step.column != column:
            continue
        place, grid = step.coordinate, Fraction(2) ** step.coordinate.exponent
        for whole in {0, place.lower, place.upper, place.lower // 3, place.upper * 5 // 7 + 1}:
            for part in (Fraction(0), Fraction(1, 2), Fraction(-1, 2), Fraction(2, 7)):
                yield (place.center + whole + part) * grid


def _near_cells(
    tallies: Sequence[SumTable], column: int, coders: Sequence[Coder]
) -> Iterator[Fraction]:
    """Numbers at edges, labels and blocks of a grid, and next to them."""
    found: list[Any] = []
    for coder in coders:
        known = coder.categories
        numbers: Sequence[Any] = known.edges or (() if coder.is_text else known.values)
        found += _some([number for number in numbers if math.isfinite(number)])
    for cell in _cells(tallies):
        if isinstance(cell, BlockCell) and cell.column == column:
            grid = cell.grid
            size = 1 << cell.block_bits
            ends = range(cell.first, cell.first + size * (cell.blocks + 1), size)
            found += [grid.lower, grid.upper]
            found += [
                grid.lower + (end + half) * grid.step for end in _some(ends) for half in (0, 0.5)
            ]
    for number in found:
        near = float(number)
        yield Fraction(number)
        yield from (Fraction(math.nextafter(near, side)) for side in (-math.inf, math.inf))


def _texts(coders: Sequence[Coder]) -> Iterator[str]:
    """Labels, and texts that some compare as if they were labels."""
    for coder in coders:
        labels = coder.categories.values if coder.is_text else ()
        for label in _some(list(map(str, labels))):
            yield from (label, label + " ", label.swapcase(), label[:1])


def _some(listed: Sequence[Any]) -> list[Any]:
    stride = -(-len(listed) // _MOST_EDGES) or 1
    return [*listed[::stride], *listed[-1:]]


def _of_type(number: Fraction, kind: Any) -> Iterator[Any]:
    """The nearest that a type has to a number, if it has any."""
    import pyarrow as pa

    if pa.types.is_floating(kind):
        if abs(number) <= Fraction(sys.float_info.max):
            yield float(number)
    elif pa.types.is_integer(kind):
        ends = np.iinfo(kind.to_pandas_dtype())
        if ends.min <= round(number) <= ends.max:
            yield round(number)
    elif pa.types.is_decimal(kind):
        units = round(number * 10**kind.scale)
        if abs(units) < 10**kind.precision:
            yield Decimal(units).scaleb(-kind.scale)
