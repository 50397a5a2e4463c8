"""What is made of the integers of a box's coordinate: their sum, their sums by group, or each.

The integers come as words and an offset (box_kernel), or are made in a loop of their own
(box_loops), to the same sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from muhat.domains.box_loops import Line, Loops
from muhat.records.columns import Floats, Mask
from muhat.records.exact import Steps, occurrences, signed

Made = TypeVar("Made", covariant=True)


class Way(Protocol[Made]):
    """What is made of the words of a coordinate: their sum, their sums by group, or each."""

    def total(self, words: Steps, offset: int) -> Made:
        """Of words and an offset."""

    def recorded(self, kept: Mask | None) -> Made:
        """Of the values that are there: a mask, None for all."""

    def looped(
        self, loops: Loops, column: Floats, present: Mask | None, line: Line
    ) -> tuple[Made, Made, Made] | None:
        """All three in one loop: of the integers, their squares, and what is recorded."""


@dataclass(frozen=True)
class Together:
    """The sum over a block of so many records."""

    rows: int

    def total(self, words: Steps, offset: int) -> int:
        return signed(int(np.add.reduce(words)) - len(words) * offset)

    def recorded(self, kept: Mask | None) -> int:
        return counted(kept, self.rows)

    def looped(
        self, loops: Loops, column: Floats, present: Mask | None, line: Line
    ) -> tuple[int, int, int]:
        return loops.sums(column, present, line)


class ByGroup:
    """Sums by group: `groups` (rows,) of the records are whole numbers below `size`."""

    def __init__(self, groups: NDArray[Any], size: int) -> None:
        self._groups, self._size = groups, size

    @cached_property
    def counts(self) -> Steps:
        """How many records each group has, shape (size,)."""
        return occurrences(self._places, self._size)

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        return self._groups.astype(np.intp, copy=False)

    def total(self, words: Steps, offset: int) -> Steps:
        sums = np.zeros(self._size, np.int64)
        np.add.at(sums, self._places, words)
        # Modulo 2^64, as without groups.
        return sums - self.counts * np.int64(offset)

    def recorded(self, kept: Mask | None) -> Steps:
        if kept is None:
            return self.counts
        return occurrences(self._places[kept], self._size)

    def looped(
        self, loops: Loops, column: Floats, present: Mask | None, line: Line
    ) -> tuple[Steps, Steps, Steps]:
        total, square, recorded, self.counts = loops.group_sums(
            column, present, line, self._groups, self._size
        )
        return total, square, recorded


@dataclass(frozen=True)
class Each:
    """The integers of each of so many records."""

    rows: int

    def total(self, words: Steps, offset: int) -> Steps:
        return words - offset

    def recorded(self, kept: Mask | None) -> Steps:
        return np.ones(self.rows, np.int64) if kept is None else kept.astype(np.int64)

    def looped(self, loops: Loops, column: Floats, present: Mask | None, line: Line) -> None:
        return None


def counted(kept: Mask | None, rows: int) -> int:
    return rows if kept is None else int(np.count_nonzero(kept))
