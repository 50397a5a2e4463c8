"""A noisy search under way: halving an interval of cells, then questions about where it ends.

After T halvings one cell v is left. The noisy counts on the way show on which side of some cells
the rank's true cell lies, but these cells are where halving happened to ask: the nearest one that
is clear may be far away although many in between would be clear, too. Further questions go there:
each asks, on the side that is less well known, between the last cell that is clear and the next
one that is not, at the geometric mean of their distances from v, or nearer to where their noisy
counts say that the end is. Clear is what the noise does not explain, and for an interval of the
population what noise and the draw of a sample do not explain: the end that is less well known of
the two kinds is asked about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from muhat.mechanisms.quantiles.noisy_search import NoisySearch

Counts = NDArray[np.int64]

PLACING = 0.95
"""Further questions are placed where they shorten the interval of this confidence."""

BEYOND = 1.15
"""By what factor more than clear a count should be where the next question is asked."""


@dataclass(frozen=True)
class Comparison:
    """A round, as it may be shown: F(cell) minus the target, with its noise, in records."""

    cell: int
    excess: float


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """Exact numbers of records up to the ends of blocks of cells. Data: never show it.

    Block i ends with cell `first` + (i + 1)·2^block_bits − 1, and `up_to[i]` records lie up to
    there. Blocks beyond the last cell of the grid have no records and may be left out.
    """

    first: int
    block_bits: int
    up_to: Counts

    @classmethod
    def of(cls, first: int, block_bits: int, before: int, counts: Counts) -> Tally:
        """From the records before the first block, and those in each."""
        return cls(first, block_bits, before + np.cumsum(counts, dtype=np.int64))

    def end(self, block: int) -> int:
        """The last cell of a block."""
        return self.first + ((block + 1) << self.block_bits) - 1

    def records(self, block: int) -> int:
        """F at the end of a block: beyond the last one F stays what it is."""
        return int(self.up_to[min(block, len(self.up_to) - 1)])

    def block(self, cell: int) -> int | None:
        """The block of a cell, if it is one of those that were counted."""
        found = (cell - self.first) >> self.block_bits
        return found if 0 <= found < len(self.up_to) else None


class Walk:
    """A search under way: an interval of 2^rounds_left cells that begins at `left`.

    What it is depends on the data through noisy comparisons alone, so it may decide which counts
    are taken next. `clear` are what noisy counts must exceed to show an end of an interval, one
    for each kind of interval that is wanted: public numbers.
    """

    clear: tuple[float, ...]

    def __init__(self, search: NoisySearch, target: Fraction, noise: list[int]) -> None:
        self.left: int = 0
        self.rounds_left: int = search.rounds
        self.clear = (search.clear(PLACING),) if search.further else ()
        self._search = search
        self._last = search.cells - 1
        self._target = target
        self._noise = iter(noise)
        self._rounds: list[Comparison] = []
        self._tallies: list[Tally] = []

    def __repr__(self) -> str:
        return f"Walk(left={self.left}, rounds_left={self.rounds_left})"

    @property
    def cell(self) -> int:
        """The first cell of the interval: the answer once no rounds are left."""
        return min(self.left, self._last)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The rounds carried out so far, with their noisy counts: all that was paid for."""
        return tuple(self._rounds)

    def descend(self, before: int, counts: Counts, rounds: int) -> None:
        """Carry out the next rounds, given exact counts of 2^rounds equal parts of the interval.

        `before` is the number of records in cells before the interval. Parts beyond the last
        cell have no records and may be left out.
        """
        self.follow(Tally.of(self.left, self.rounds_left - rounds, before, counts), rounds)

    def follow(self, tally: Tally, rounds: int) -> None:
        """Carry out the next rounds on a tally of the interval; after the last one, the others."""
        behind = self.rounds_left - rounds
        if not 0 <= rounds <= self.rounds_left or not 0 < len(tally.up_to) <= 1 << rounds:
            raise AssertionError("the counts do not fit the interval")
        if (tally.first, tally.block_bits) != (self.left, behind):
            raise AssertionError("the counts are of another interval")
        if self._search.further:
            self._tallies.append(tally)
        part = self._part(tally, rounds)
        self.rounds_left = behind
        self.left += part << behind
        if not self.rounds_left:
            for _ in range(self._search.further):
                self._compare(*self._place(self._wish()))

    def _part(self, tally: Tally, rounds: int) -> int:
        """The part of the interval that is left, of 2^rounds equal ones."""
        part = 0
        for level in reversed(range(rounds)):
            middle = part + (1 << level) - 1
            if self._compare(tally, middle) < 0:
                part += 1 << level
        return part

    def _compare(self, tally: Tally, block: int) -> int:
        """One round: ⌊S·(F − target)⌋ with its noise."""
        multiplier = self._search.multiplier
        moved = math.floor(multiplier * (tally.records(block) - self._target))
        excess = moved + next(self._noise)
        cell = min(tally.end(block), self._last)
        self._rounds.append(Comparison(cell, excess / multiplier))
        return excess

    def _wish(self) -> int:
        """The cell about which it is best to ask next, judged by noisy counts alone."""
        found = self.cell
        # Distances from the edge below the cell that was found, on its two sides.
        below = [
            Question(found - one.cell, -one.excess) for one in self._rounds if one.cell < found
        ]
        above = [
            Question(one.cell - found + 1, one.excess) for one in self._rounds if one.cell >= found
        ]
        gaps = [
            Gap.among(asked, clear, outside)
            for clear in self.clear
            for asked, outside in ((below, found + 1), (above, self._last - found + 2))
        ]
        place = max(range(len(gaps)), key=lambda place: gaps[place].width)
        distance = gaps[place].between()
        if place % 2 == 0:
            return max(found - distance, 0)
        return min(found + distance - 1, self._last)

    def _place(self, cell: int) -> tuple[Tally, int]:
        """The finest counts that are at hand about a cell, and its block in them."""
        for tally in reversed(self._tallies):
            block = tally.block(cell)
            if block is not None:
                return tally, block
        return self._tallies[0], len(self._tallies[0].up_to) - 1


class Question(NamedTuple):
    """A question: how far from the cell found, and what it showed, in records on its side."""

    distance: int
    excess: float


class Gap(NamedTuple):
    """The farthest question that is not clear, nearer than all clear ones, and the next one."""

    inner: Question
    outer: Question
    clear: float

    @classmethod
    def among(cls, asked: Sequence[Question], clear: float, outside: int) -> Gap:
        """Where nothing is clear it ends `outside`."""
        outer = min(
            (one for one in asked if one.excess > clear), default=Question(outside, math.inf)
        )
        inner = max(
            (one for one in asked if one.distance < outer.distance), default=Question(1, 0.0)
        )
        return cls(inner, outer, clear)

    @property
    def width(self) -> float:
        """By what factor the end may be farther away than is known."""
        return max(self.outer.distance, 1) / max(self.inner.distance, 1)

    def between(self) -> int:
        """A distance between the two, or the inner one again if there is none.

        Their geometric mean; where both noisy counts are known, and between them a little more
        than what is clear, the geometric mean of that and of the place where a line would have it.
        """
        (near, low), (far, high) = self.inner, self.outer
        if far - near < 2:
            return max(near, 1)
        middle = math.sqrt(near) * math.sqrt(far)
        wanted = BEYOND * self.clear
        if low < wanted < high < math.inf:
            middle = math.sqrt(middle * (near + (far - near) * (wanted - low) / (high - low)))
        return min(max(int(middle), near + 1), far - 1)
