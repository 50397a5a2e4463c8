"""Records onto a box lattice: one coordinate at a time, one record at a time.

Rounding is the magic add: with m = 1.5·2^(52+e), the float y + m has the spacing 2^e, so the
addition itself rounds y to the grid, and the bits of the result minus the bits of m are q.
docs/proofs/integers.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from muhat.data.columns import Column, Decimals, Integers, Mask
from muhat.data.exact import COARSEST_EXACT, Steps, decimal_steps, integer_steps
from muhat.domains.lattice import BoxLattice


@dataclass(frozen=True)
class Coordinate:
    """One coordinate of a box lattice, with the constants of its magic add."""

    exponent: int
    center: int
    lower: int
    upper: int

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

    def add_magic(self, values: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """out = the clamped magic sum of every value; not-a-number stays itself."""
        if self.scale_exponent:
            values = np.multiply(values, 2.0**self.scale_exponent, out=out)
        if self.shift is not None:
            np.add(values, self.shift, out=out)
        else:
            # x − c is exact wherever the clamp does not decide, so this too rounds once.
            np.subtract(values, self.scaled_center, out=out)
            np.add(out, self.magic, out=out)
        np.clip(out, *self.ends, out=out)


class BoxKernel:
    """Puts blocks of records on a box lattice; holds buffers, so one a thread."""

    absent: Steps | None = None
    """What a record adds of which nothing is there; None stands for zeros."""

    def __init__(self, lattice: BoxLattice) -> None:
        self._coordinates = [
            Coordinate(*parts)
            for parts in zip(
                lattice.exponents, lattice.center_units, lattice.lower, lattice.upper, strict=True
            )
        ]
        self._buffer = np.empty(0)

    def sums(self, columns: Sequence[Column], *, drop: bool) -> tuple[list[int], int]:
        """Σ q of every coordinate over a block of at most 2^17 records, and records counted."""
        present = whole_records(columns) if drop else None
        totals = [
            signed(int(np.add.reduce(words)) - len(words) * offset)
            for words, offset in self._words(columns, present)
        ]
        return totals, _counted(columns, present)

    def integers(self, columns: Sequence[Column], *, drop: bool) -> Steps:
        """q of every record of a block, shape (rows, d); dropped records are rows of zeros."""
        present = whole_records(columns) if drop else None
        listed = [words - offset for words, offset in self._words(columns, present)]
        return np.stack(listed, axis=1)

    def _words(
        self, columns: Sequence[Column], present: Mask | None
    ) -> Iterator[tuple[Steps, int]]:
        """Words and an offset a coordinate: q = word − offset. Valid until the next is taken."""
        for coordinate, column in zip(self._coordinates, columns, strict=True):
            words, offset = self._encode(coordinate, column)
            kept = column.present() if present is None else present
            if not kept.all():
                words[~kept] = offset
            yield words, offset

    def _encode(self, coordinate: Coordinate, column: Column) -> tuple[Steps, int]:
        place = (coordinate.exponent, coordinate.center, coordinate.lower, coordinate.upper)
        if isinstance(column, Decimals):
            return decimal_steps(column, *place), 0
        if isinstance(column, Integers) and coordinate.exponent <= COARSEST_EXACT:
            return integer_steps(column, *place), 0
        values = column.values.astype(np.float64, copy=False)
        if len(self._buffer) < len(values):
            self._buffer = np.empty(len(values))
        rounded = self._buffer[: len(values)]
        coordinate.add_magic(values, rounded)
        return rounded.view(np.int64), coordinate.bits


def signed(value: int) -> int:
    """The representative of `value` modulo 2^64 that an int64 would show."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def whole_records(columns: Sequence[Column]) -> Mask:
    """True for the records of which every coordinate is there and finite."""
    whole = columns[0].present().copy()
    for column in columns[1:]:
        whole &= column.present()
    return whole


def _counted(columns: Sequence[Column], present: Mask | None) -> int:
    return len(columns[0].values) if present is None else int(np.count_nonzero(present))
