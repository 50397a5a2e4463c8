"""The sums of a box lattice in one loop that touches a value once, where numba is installed.

numpy takes a column apart in steps: add, clamp, mask, square, sum. A compiled loop does all of it
while a value is in a register, to the same bits: the same additions, comparisons and one product.
When it is loaded, and when it is used, says `records/loader.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsInt

import numpy as np
from numpy.typing import NDArray

from muhat.records.columns import FloatArray, Floats, Mask
from muhat.records.exact import Steps
from muhat.records.loader import compiler, if_they_agree, read_only


class Line(NamedTuple):
    """What one coordinate's magic adds need, as floats and their bits; see box_kernel."""

    shift: float
    lower: float
    upper: float
    magic: float
    absent: float
    square_magic: float


@dataclass(frozen=True)
class Loops:
    """Of a block of at most 2^17 values: Σ q, Σ of the rounded squares, and values recorded.

    What counts is decided by `present`, or, where that is None, by the column.
    """

    whole: Callable[..., tuple[SupportsInt, SupportsInt, SupportsInt]]
    grouped: Callable[..., None]

    def sums(self, column: Floats, present: Mask | None, line: Line) -> tuple[int, int, int]:
        """Of all values."""
        total, squares, recorded = self.whole(*_plain(column, present), line)
        return int(total), int(squares), int(recorded)

    def group_sums(
        self, column: Floats, present: Mask | None, line: Line, groups: NDArray[Any], size: int
    ) -> Steps:
        """By group, and all its records, of shape (4, size); `groups` (rows,) are below `size`."""
        sums = np.zeros((size, 4), np.int64)
        kind = np.uint8 if groups.dtype == np.uint8 else np.int64
        self.grouped(*_plain(column, present), line, np.require(groups, kind, ["C", "A"]), sums)
        return sums.T


def checked() -> Loops | None:
    """The loops, if they can be had and do what their source does; else None."""
    return if_they_agree(compiled, _agree)


def compiled() -> Loops:
    """The loops, compiled or from numba's cache."""
    numba = compiler()
    types = numba.types
    numba.extending.register_jitable(_steps)
    line = types.NamedUniTuple(types.float64, 6, Line)
    block = read_only(types.float64), read_only(types.boolean), line
    whole = types.UniTuple(types.int64, 3)(*block)
    grouped = [
        types.void(*block, read_only(groups), types.int64[:, ::1])
        for groups in (types.uint8, types.int64)
    ]
    return Loops(
        numba.njit(whole, nogil=True, cache=True)(_whole),
        numba.njit(grouped, nogil=True, cache=True)(_grouped),
    )


def _steps(value: float, kept: bool, line: Line) -> tuple[np.int64, np.int64]:
    """q of one value, and its rounded square."""
    rounded = min(max(value + line.shift, line.lower), line.upper) if kept else line.absent
    size = rounded - line.magic
    square = size * size + line.square_magic
    return (
        np.float64(rounded).view(np.int64) - np.float64(line.magic).view(np.int64),
        np.float64(square).view(np.int64) - np.float64(line.square_magic).view(np.int64),
    )


def _whole(values: FloatArray, mask: Mask, line: Line) -> tuple[np.int64, np.int64, np.int64]:
    total = squares = recorded = np.int64(0)
    for row in range(values.size):
        kept = np.isfinite(values[row]) and (mask.size == 0 or mask[row])
        steps, square = _steps(values[row], kept, line)
        total += steps
        squares += square
        recorded += kept
    return total, squares, recorded


def _grouped(values: FloatArray, mask: Mask, line: Line, groups: NDArray[Any], sums: Steps) -> None:
    for row in range(values.size):
        kept = np.isfinite(values[row]) and (mask.size == 0 or mask[row])
        steps, square = _steps(values[row], kept, line)
        group = groups[row]
        sums[group, 0] += steps
        sums[group, 1] += square
        sums[group, 2] += kept
        sums[group, 3] += 1


def _plain(column: Floats, present: Mask | None) -> tuple[FloatArray, Mask]:
    """Values and a mask, empty for none, as they were compiled for: others would be refused."""
    kept = column.valid if present is None else present
    mask = np.empty(0, bool) if kept is None else np.require(kept, bool, ["C", "A"])
    return np.require(column.values, np.float64, ["C", "A"]), mask


def _agree(loops: Loops) -> bool:
    """Whether the loops do to values that try every branch what their source does, uncompiled."""
    line = Line(_MAGIC - 0.25, _MAGIC - 2.0**40, _MAGIC + 2.0**45, _MAGIC, _MAGIC + 3.0, _SQUARES)
    values = np.concatenate([np.ldexp(_FRACTIONS, power) for power in range(-60, 60, 4)] + [_ODD])
    values = np.concatenate([values, -values])
    mask, sevenths = np.arange(len(values)) % 5 > 0, np.arange(len(values)) % 7
    source = Loops(_whole, _grouped)
    with np.errstate(all="ignore"):
        for column, groups in (
            (Floats(values), sevenths),
            (Floats(values, mask), sevenths.astype(np.uint8)),
        ):
            (total, by_group), expected = (
                (each.sums(column, None, line), each.group_sums(column, None, line, groups, 7))
                for each in (loops, source)
            )
            if total != expected[0] or not np.array_equal(by_group, expected[1]):
                return False
    return True


_MAGIC = 1.5 * 2.0**52
_SQUARES = 1.5 * 2.0**97
_FRACTIONS = 1 + np.arange(16) * np.pi / 51
_ODD = np.array([0.0, 0.25, 0.5, 0.75, 5e-324, 1e308, np.inf, np.nan])
