"""How many records lie in each bin of the real line: equal bins, all of them, occupied ones listed.

A bin is a whole number of steps of a fine grid wide, and its ends lie between two points of that
grid. So a number and the point of the grid nearest to it are always in the same bin, and which
bin that is follows from the number alone, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from muhat import _check
from muhat._arrays import Integers
from muhat._plain import Key, Plain
from muhat.data.base import Source
from muhat.data.distances import bounded
from muhat.data.engine import read_once
from muhat.data.states import Numbers, joined
from muhat.errors import InvalidInput
from muhat.records.columns import Batch, FloatArray

STEP_BITS = 50
"""A bin has between 2^50 and 2^51 steps."""

REACH_BITS = 44
"""Numbers beyond 2^44 bins count as that: further out float64 hardly tells two bins apart."""

_LARGEST_WIDTH = 1e200
_COMPACT = 1 << 20
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class BinGrid(Plain, keys=("exponent", Key("steps", text=True))):
    """Bins of `steps` steps of 2^exponent each.

    Moved by a `shift`, a whole number of steps from 0 to steps − 1, bin k holds the points i of
    the grid with k·steps ≤ i + shift < (k + 1)·steps.

    >>> grid = BinGrid.of_width(10.0)
    >>> grid.width, grid.numbers(np.array([-6.0, -4.0, 4.0, 6.0, 1e6]), grid.middle).tolist()
    (10.0, [-1, 0, 0, 1, 100000])
    """

    exponent: int
    steps: int

    def __post_init__(self) -> None:
        if not 1 << STEP_BITS <= self.steps <= 1 << (STEP_BITS + 1):
            raise InvalidInput("a bin has between 2^50 and 2^51 steps.")

    @classmethod
    def of_width(cls, width: float) -> BinGrid:
        """Bins of this width."""
        size = _check.positive("width", width)
        if not 1 / _LARGEST_WIDTH <= size <= _LARGEST_WIDTH:
            raise InvalidInput(
                "must lie between 1e-200 and 1e200", parameter="width", value=f"{size:g}"
            )
        fraction, exponent = math.frexp(size)
        return cls(exponent - STEP_BITS - 1, math.ceil(fraction * 2 ** (STEP_BITS + 1)))

    @property
    def width(self) -> float:
        """The width of a bin; at most 2^-50 of it more than was asked for."""
        return math.ldexp(float(self.steps), self.exponent)

    @property
    def step(self) -> Fraction:
        """The width of a step."""
        return Fraction(2) ** self.exponent

    @property
    def reach(self) -> float:
        """The largest number that is told from larger ones."""
        return math.ldexp(self.width, REACH_BITS)

    @property
    def middle(self) -> int:
        """The shift that has 0 in the middle of a bin."""
        return self.steps // 2

    def numbers(self, values: FloatArray, shift: int | Integers) -> Integers:
        """The bin of every number, in the shape of the numbers; they must be finite.

        `shift` may be an array that broadcasts against them.
        """
        inside = np.clip(values, -self.reach, self.reach)
        # The remainder of a division of floats is exact, and so is what it leaves but for a
        # rounding of at most 2^-8 bins.
        rest = np.fmod(inside, self.width)
        whole = np.rint((inside - rest) / self.width).astype(np.int64)
        points = np.rint(np.ldexp(rest, -self.exponent)).astype(np.int64)
        return np.asarray(whole + (points + shift) // self.steps)

    def center(self, number: int, shift: int) -> Fraction:
        """The middle of a bin, exactly; its ends lie half a step below its first point."""
        return (Fraction((2 * number + 1) * self.steps - 1, 2) - shift) * self.step


@dataclass(frozen=True, eq=False)
class BinCounts:
    """The occupied bins, ascending, and how many records each has. It is data: never show it."""

    numbers: Integers
    counts: Integers

    @classmethod
    def of(cls, numbers: Integers) -> BinCounts:
        """The bins of some records, counted."""
        return merged([cls(numbers, np.ones(len(numbers), np.int64))])

    def __repr__(self) -> str:
        return "BinCounts()"


def count_bins(source: Source, grids: Sequence[BinGrid], shifts: Sequence[int]) -> list[BinCounts]:
    """One pass over the source: the occupied bins of every column and their counts.

    There is a grid and a shift a column. A missing or non-finite value is in no bin.
    Raises DataChanged and SourceFailed as `exact_sums` does.
    """
    accumulators = read_once(source, lambda: BinCounter(grids, shifts))
    return [merged([each.counts(j) for each in accumulators]) for j in range(len(grids))]


class BinCounter:
    """Counts the records of batches by their bins; not shared between threads.

    What it holds grows with the number of occupied bins, not with the number of records.
    """

    def __init__(self, grids: Sequence[BinGrid], shifts: Sequence[int]) -> None:
        self._pairs = list(zip(grids, shifts, strict=True))
        self._parts: list[list[BinCounts]] = [[] for _ in self._pairs]
        self._waiting = [0] * len(self._pairs)
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Count every record of the batch."""
        self.rows += batch.rows + batch.absent
        # A warning would depend on the data.
        with np.errstate(all="ignore"):
            floats = bounded(batch, _LARGEST)
            for column, (grid, shift) in enumerate(self._pairs):
                values = values_of(floats, column)
                numbers = grid.numbers(values[~np.isnan(values)], shift)
                self._keep(column, BinCounts.of(numbers))

    def counts(self, column: int) -> BinCounts:
        """The occupied bins of a column so far."""
        return merged(self._parts[column])

    def state(self) -> Numbers:
        """The records seen; for every column how many bins, their numbers and their counts."""
        columns = [self.counts(column) for column in range(len(self._pairs))]
        return joined(
            self.rows, *(joined(len(each.numbers), each.numbers, each.counts) for each in columns)
        )

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        start = 1
        for column in range(len(self._pairs)):
            size = int(state[start])
            numbers, counts = state[start + 1 : start + 1 + 2 * size].reshape(2, size)
            self._keep(column, BinCounts(numbers, counts))
            start += 1 + 2 * size

    def _keep(self, column: int, part: BinCounts) -> None:
        """Put a part aside; merge them when they have grown to twice what was merged."""
        parts = self._parts[column]
        parts.append(part)
        self._waiting[column] += len(part.numbers)
        if self._waiting[column] > max(_COMPACT, len(parts[0].numbers)):
            self._parts[column] = [merged(parts)]
            self._waiting[column] = 0


def values_of(batch: Batch, column: int) -> FloatArray:
    """A column of a batch in floats, as `bounded` returns it."""
    if batch.matrix is not None:
        return np.asarray(batch.matrix[:, column])
    return np.asarray(batch.columns[column].values, np.float64)


def merged(parts: Sequence[BinCounts]) -> BinCounts:
    """All parts as one, each bin once, ascending: the same whatever order they come in."""
    empty = np.empty(0, np.int64)
    numbers = np.concatenate([empty, *(part.numbers for part in parts)])
    counts = np.concatenate([empty, *(part.counts for part in parts)])
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    first = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)])
    return BinCounts(numbers[first], np.add.reduceat(counts[order], first) if len(first) else empty)
