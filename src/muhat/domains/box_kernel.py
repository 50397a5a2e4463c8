"""Records onto a box lattice: one coordinate at a time, one record at a time.

Rounding is the magic add: with m = 1.5·2^(52+e), the float y + m has the spacing 2^e, so the
addition itself rounds y to the grid, and the bits of the result minus the bits of m are q.
docs/proofs/integers.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from muhat._integers import round_half_even
from muhat.domains import box_loops
from muhat.domains.box_totals import ByGroup, Each, Together, Way, counted
from muhat.records.columns import Column, Decimals, Floats, Integers, Mask, whole_records
from muhat.records.exact import COARSEST_EXACT, Steps, decimal_steps, integer_steps
from muhat.records.loader import Loader
from muhat.records.tiles import transposed

BITS = 45
"""A record's integers are at most 2^45 in size, and at least 2^44 at the far end."""

SQUARE_UNIT = 1 << BITS
"""Squares of integers of 45 bits are rounded to multiples of this."""

SQUARE_ERROR = 1
"""s is nearer to q²/SQUARE_UNIT than this: ½ for rounding, 2^−8 for the product of two floats."""

Summed = TypeVar("Summed")


class Words(NamedTuple):
    """q = word − offset of every value, modulo 2^64; the words of missing values mean nothing.

    With an offset the words are the bits of magic sums; without, the integers themselves.
    `finite` says that no value is infinite or not a number.
    """

    words: Steps
    offset: int
    finite: bool


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of a box lattice, with the constants of its magic add."""

    exponent: int
    center: int
    lower: int
    upper: int
    absent: int = 0

    @cached_property
    def scale_exponent(self) -> int:
        """Powers of two that keep every constant a normal float; 0 unless bounds are extreme."""
        return 0 if abs(self.exponent) <= 900 else min(max(-self.exponent, -1000), 1000)

    @cached_property
    def grid(self) -> float:
        """The step after scaling."""
        return math.ldexp(1.0, self.exponent + self.scale_exponent)

    @cached_property
    def magic(self) -> float:
        """m: adding it rounds to the grid."""
        return 1.5 * 2.0**52 * self.grid

    @cached_property
    def bits(self) -> int:
        """The bits of m: what q = 0 looks like after the magic add."""
        return int(np.float64(self.magic).view(np.int64))

    @cached_property
    def ends(self) -> tuple[float, float]:
        """m + lower·g and m + upper·g, both exact."""
        return self.magic + self.lower * self.grid, self.magic + self.upper * self.grid

    @cached_property
    def shift(self) -> float | None:
        """m − c if it is exact, so that one addition does all; else None."""
        if abs(self.center) >= 1 << 51:
            return None
        return self.magic - self.center * self.grid

    @cached_property
    def scaled_center(self) -> float:
        """The centre after scaling."""
        return math.ldexp(float(self.center), self.exponent + self.scale_exponent)

    @cached_property
    def square_grid(self) -> float:
        """The step of the squares of q·grid: 2^45·grid², or 2^45 where that is out of range."""
        return SQUARE_UNIT * (1.0 if self.squares_alone else self.grid**2)

    @cached_property
    def line(self) -> box_loops.Line | None:
        """The constants of a loop over floats; None where they need more than an addition."""
        if self.shift is None or self.scale_exponent or self.squares_alone:
            return None
        least, most = self.ends
        absent = self.magic + self.absent * self.grid
        square_magic = 1.5 * 2.0**52 * self.square_grid
        return box_loops.Line(self.shift, least, most, self.magic, absent, square_magic)

    @property
    def squares_alone(self) -> bool:
        """Whether q itself is squared, because (q·grid)² might not be a normal float."""
        return abs(self.exponent + self.scale_exponent) > 400

    def square(self, rounded: NDArray[np.float64]) -> None:
        """The magic sums of every value, in place, as those of the squares on their own grid."""
        np.subtract(rounded, self.magic, out=rounded)
        if self.squares_alone:
            np.divide(rounded, self.grid, out=rounded)
        np.multiply(rounded, rounded, out=rounded)
        np.add(rounded, 1.5 * 2.0**52 * self.square_grid, out=rounded)

    def add_magic(self, values: NDArray[np.float64], out: NDArray[np.float64]) -> bool:
        """out = the clamped magic sum of every value; not-a-number stays itself.

        True where the clamp had nothing to do: then all values are finite.
        """
        if self.scale_exponent:
            values = np.multiply(values, 2.0**self.scale_exponent, out=out)
        if self.shift is not None:
            np.add(values, self.shift, out=out)
        else:
            # x − c is exact wherever the clamp does not decide, so this too rounds once.
            np.subtract(values, self.scaled_center, out=out)
            np.add(out, self.magic, out=out)
        # Looking twice is faster than writing once; not-a-number is between nothing.
        least, most = self.ends
        lowest, highest = (
            np.minimum.reduce(out, initial=most),
            np.maximum.reduce(out, initial=least),
        )
        if least <= lowest and highest <= most:
            return True
        np.clip(out, least, most, out=out)
        return False

    def words(self, column: Column, buffer: NDArray[np.float64]) -> Words:
        """The words of a column; magic sums are in the buffer, which is as long."""
        place = (self.exponent, self.center, self.lower, self.upper)
        if isinstance(column, Decimals):
            return Words(decimal_steps(column, *place), 0, True)
        if isinstance(column, Integers) and self.exponent <= COARSEST_EXACT:
            return Words(integer_steps(column, *place), 0, True)
        inside = self.add_magic(column.values.astype(np.float64, copy=False), buffer)
        return Words(buffer.view(np.int64), self.bits, inside or isinstance(column, Integers))


@dataclass(frozen=True, eq=False)
class _Constants:
    """What the magic adds of many coordinates need, each of shape (d,)."""

    shifts: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    magic: NDArray[np.float64]
    square_magic: NDArray[np.float64]
    absent: Steps

    @classmethod
    def of(cls, coordinates: Sequence[Coordinate]) -> _Constants:
        lower, upper = np.array([coordinate.ends for coordinate in coordinates]).T.copy()
        return cls(
            np.array([coordinate.shift for coordinate in coordinates], np.float64),
            lower,
            upper,
            np.array([coordinate.magic for coordinate in coordinates]),
            1.5 * 2.0**52 * np.array([coordinate.square_grid for coordinate in coordinates]),
            np.array([coordinate.absent for coordinate in coordinates], np.int64),
        )

    @property
    def bits(self) -> Steps:
        return self.magic.view(np.int64)


class BoxKernel:
    """Puts blocks of records on a box lattice; holds buffers, so one a thread.

    If asked for, squares and numbers of recorded values come after the sums.
    """

    def __init__(
        self, coordinates: Sequence[Coordinate], *, squares: bool = False, counts: bool = False
    ) -> None:
        self.coordinates = coordinates
        self.squares, self.counts = squares, counts
        self._buffer = np.empty(0)

    @property
    def absent(self) -> Steps | None:
        """What a record adds of which nothing is there; None stands for zeros."""
        places = [coordinate.absent for coordinate in self.coordinates]
        if not any(places):
            return None
        squares = [
            round_half_even(int(float(place) * float(place)), SQUARE_UNIT) for place in places
        ] * self.squares
        return np.array([*places, *squares, *[0] * len(places) * self.counts], np.int64)

    def sums(self, columns: Sequence[Column], *, drop: bool) -> tuple[list[int], int]:
        """Σ q of every coordinate over a block of at most 2^17 records, and records counted."""
        present = whole_records(columns) if drop else None
        rows = len(columns[0].values)
        return self._summed(columns, present, Together(rows)), counted(present, rows)

    def group_sums(
        self, columns: Sequence[Column], groups: NDArray[Any], size: int, *, drop: bool
    ) -> tuple[list[Steps], Steps]:
        """Σ q by group of every coordinate over a block of at most 2^17 records, and records.

        `groups` (rows,) are the groups of the records, whole numbers below `size`.
        """
        present = whole_records(columns) if drop else None
        way = ByGroup(groups, size)
        return self._summed(columns, present, way), way.counts

    def sums_of_rows(
        self, rows: NDArray[np.float64], *, drop: bool
    ) -> tuple[Sequence[int] | Steps, int]:
        """As `sums`, of records of shape (rows, d), many coordinates at a time: the same bits."""
        wide = self._wide
        if wide is None:
            return self.sums([Floats(column) for column in transposed(rows)], drop=drop)
        kept = np.isfinite(rows)
        whole = np.asarray(kept.all(axis=1)) if drop else None
        kept = kept if whole is None else np.broadcast_to(whole[:, np.newaxis], rows.shape)
        rounded = np.clip(rows + wide.shifts, wide.lower, wide.upper)
        words = rounded.view(np.int64)
        if not kept.all():
            words[...] = np.where(kept, words, wide.bits + wide.absent)
        parts = [np.add.reduce(words - wide.bits, axis=0)]
        if self.squares:
            rounded -= wide.magic
            rounded *= rounded
            rounded += wide.square_magic
            words -= wide.square_magic.view(np.int64)
            parts.append(np.add.reduce(words, axis=0))
        if self.counts:
            parts.append(np.count_nonzero(kept, axis=0))
        counted = len(rows) if whole is None else int(np.count_nonzero(whole))
        return np.concatenate(parts), counted

    @cached_property
    def _wide(self) -> _Constants | None:
        """The constants of all coordinates; None where one of them needs more than an addition."""
        plain = all(c.shift is not None and not c.scale_exponent for c in self.coordinates)
        if not plain or any(coordinate.squares_alone for coordinate in self.coordinates):
            return None
        return _Constants.of(self.coordinates)

    def integers(self, columns: Sequence[Column], *, drop: bool) -> Steps:
        """q of every record of a block, shape (rows, d); dropped records are rows of zeros."""
        present = whole_records(columns) if drop else None
        return np.stack(self._summed(columns, present, Each(len(columns[0].values))), axis=1)

    def _summed(
        self, columns: Sequence[Column], present: Mask | None, way: Way[Summed]
    ) -> list[Summed]:
        """What is made of the integers of all coordinates, then of their squares.

        Last, what is made of the values that are recorded in each.
        """
        totals, squares, counts = [], [], []
        loops = _LOADER.after(len(columns) * len(columns[0].values))
        for coordinate, column in zip(self.coordinates, columns, strict=True):
            found = None
            if loops and coordinate.line and isinstance(column, Floats):
                found = way.looped(loops, column, present, coordinate.line)
            if found is None:
                found = self._by_words(coordinate, column, present, way)
            total, square, recorded = found
            totals.append(total)
            squares += [square] * self.squares
            counts += [recorded] * self.counts
        return [*totals, *squares, *counts]

    def _by_words(
        self, coordinate: Coordinate, column: Column, present: Mask | None, way: Way[Summed]
    ) -> tuple[Summed, Summed, Summed]:
        words, offset, kept = self._words(coordinate, column, present)
        total = way.total(words, offset)
        square = way.total(*self._squared(coordinate, words, offset)) if self.squares else total
        return total, square, way.recorded(kept)

    def _words(
        self, coordinate: Coordinate, column: Column, present: Mask | None
    ) -> tuple[Steps, int, Mask | None]:
        """Words and an offset, q = word − offset, valid until the next; recorded values."""
        rows = len(column.values)
        if len(self._buffer) < rows:
            self._buffer = np.empty(rows)
        words, offset, finite = coordinate.words(column, self._buffer[:rows])
        kept = present
        if kept is None:
            kept = column.valid if finite else column.present()
        if kept is not None and kept.all():
            kept = None
        if kept is not None:
            words[~kept] = offset + coordinate.absent
        return words, offset, kept

    @staticmethod
    def _squared(coordinate: Coordinate, words: Steps, offset: int) -> tuple[Steps, int]:
        """The squares as words and an offset, in the place of the words."""
        rounded = words.view(np.float64)
        if not offset:
            # Whole numbers came without a magic add; as floats they are exact.
            rounded = words.astype(np.float64) * coordinate.grid + coordinate.magic
        coordinate.square(rounded)
        magic = np.float64(1.5 * 2.0**52 * coordinate.square_grid)
        return rounded.view(np.int64), int(magic.view(np.int64))


_LOADER = Loader(box_loops.checked)
