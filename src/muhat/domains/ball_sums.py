"""Exact sums on a ball lattice, of records that have been moved to its centre.

The integers are those that the kernel gives each record. One that is surely inside is rounded to
the grid and added, nothing else: if its sum of squares in any order is at most r²(1 − ROOM), then
the kernel's own is at most r², so the kernel clips it by the factor 1; and ‖q‖g ≤ ‖y‖ + √d·g/2
is less than r, because r/g ≥ 2^44, so the kernel accepts what it has rounded. The others wait, and
go through the kernel's steps together. On a line the kernel puts them at either end, so all are
rounded and clamped there, without waiting. docs/proofs/integers.md has the steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat._integers import power_of_two
from muhat.domains.ball_kernel import acceptance_limit
from muhat.records.columns import FloatArray, Mask
from muhat.records.exact import signed
from muhat.records.tiles import ROOM, Indices, Tiles, Waiting, is_wide, sum_of_squares

_MOST_DIM = 1 << 20
_MOST_EXPONENT = 100
_MOST_RECORDS = 1 << 17
_CHUNK_VALUES = 1 << 14
_GROUP_VALUES = 1 << 11

Words = NDArray[np.int64]


class BallSums:
    """Adds records up on a ball lattice; not shared between threads."""

    def __init__(
        self,
        center: Sequence[float],
        clip_radius: float,
        exponent: int,
        radius: int,
        axes: Sequence[float] | None,
    ) -> None:
        dim, grid = len(center), power_of_two(exponent)
        self._center, self._axes, self._radius = center, axes, clip_radius
        self._surely_inside = clip_radius**2 * (1 - ROOM)
        self._limit = acceptance_limit(radius, dim, grid)
        # An array of no dimension: numpy converts a plain float anew in every call.
        self._magic = np.array(1.5 * 2.0**52 * float(grid))
        self._bits = int(self._magic.view(np.int64))
        self._waiting = Waiting(dim)
        self._buffer = np.empty(0)
        self._words: Words = np.zeros(dim, np.int64)
        self._records = 0
        self._total: NDArray[Any] = np.zeros(dim, object)

    @staticmethod
    def is_for(dim: int, clip_radius: float) -> bool:
        """Whether there are few enough coordinates, and the kernel does not scale y."""
        return dim <= _MOST_DIM and abs(math.frexp(clip_radius)[1]) <= _MOST_EXPONENT

    def tiles(self, magnitude: float) -> Tiles:
        """What moves records to the centre, after clipping their coordinates to ±magnitude."""
        center = np.array(self._center)
        axes = np.ones(len(center)) if self._axes is None else np.array(self._axes)
        return Tiles(center, axes, magnitude)

    @property
    def is_about_zero(self) -> bool:
        """Whether records are where they should be without being moved: y = x."""
        return self._axes is None and not any(self._center)

    @property
    def total(self) -> list[int]:
        """Σ q, one Python integer a sum."""
        self._clip_waiting()
        self._carry()
        return list(self._total.tolist())

    def add(self, values: FloatArray, squares: FloatArray, strays: Indices) -> None:
        """Add records but for some: y of shape (rows, d), and Σ y_j² up to rounding, shape (rows,).

        The sums of squares of all but the strays are below `LARGEST`. The values are overwritten.
        """
        if len(strays):
            values[strays] = 0.0
        if self._ends is None:
            outside = ~(squares <= self._surely_inside)
            outside[strays] = False
            others = outside.nonzero()[0]
            if 2 * len(others) > len(values) and not is_wide(values):
                # Not worth telling them apart: the kernel's steps are right for every record.
                self._clip(values.T)
                return
            if len(others):
                enough = self._waiting.put(values, others)
                values[others] = 0.0
                if enough:
                    self._clip_waiting()
        np.add(values, self._magic, out=values)
        words = values.view(np.int64)
        if self._ends is not None:
            # As integers: whatever a float is, none is beyond an end.
            np.clip(words, *self._ends, out=words)
        self._add_words(_sums(words), len(values))

    @cached_property
    def _ends(self) -> tuple[int, int] | None:
        """The bits of the magic sums of −r and r on a line: all records' lie between them.

        None in more dimensions, and where it is not proved that the kernel puts all records
        outside at these ends, and accepts them there.
        """
        magic = float(self._magic)
        # What the kernel does to a record next to an end, or beyond it, is off by less than this.
        least, most = (magic + self._radius * (1 + error) for error in (-(2.0**-50), 2.0**-50))
        if len(self._center) > 1 or least != most or not (most - magic) ** 2 <= self._limit:
            return None
        low, high = np.array([magic - (most - magic), most]).view(np.int64).tolist()
        return low, high

    def _clip_waiting(self) -> None:
        values = self._waiting.take()
        if values.size:
            self._clip(values)

    def _clip(self, values: FloatArray) -> None:
        """Add y·r/max(√s, r), shape (d, rows), or the centre if not proved inside the ball."""
        with np.errstate(all="ignore"):
            shrink = np.sqrt(sum_of_squares(values))
            np.maximum(shrink, self._radius, out=shrink)
            np.divide(self._radius, shrink, out=shrink)
            words, accepted = self._rounded(values, shrink)
            if not accepted.all():
                shrink[~accepted] = 0.0
                words, _ = self._rounded(values, shrink)
        self._add_words(words, len(shrink))

    def _rounded(self, values: FloatArray, shrink: FloatArray) -> tuple[Words, Mask]:
        """Σ of the words of y·shrink, shape (d,), and which records are proved inside the ball."""
        words = []
        norms = np.zeros(len(shrink))
        for part, factors, terms in self._chunks(values, shrink):
            np.multiply(part, factors, out=terms)
            np.add(terms, self._magic, out=terms)
            words.append(np.add.reduce(terms.view(np.int64), axis=1))
            np.subtract(terms, self._magic, out=terms)
            np.square(terms, out=terms)
            # The limit has room for any order.
            norms += np.add.reduce(terms, axis=0)
        return np.concatenate(words), norms <= self._limit

    def _chunks(
        self, values: FloatArray, factors: FloatArray
    ) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Some coordinates at a time, each beside the factors, and a buffer of the same shape."""
        rows = len(factors)
        step = max(_CHUNK_VALUES // rows, 1)
        if len(self._buffer) < 2 * step * rows:
            self._buffer = np.empty(2 * step * rows)
        repeated, terms = self._buffer[: 2 * step * rows].reshape(2, step, rows)
        # Written out, because numpy is slow at repeating them itself.
        repeated[:] = factors
        for start in range(0, len(values), step):
            part = values[start : start + step]
            yield part, repeated[: len(part)], terms[: len(part)]

    def _add_words(self, words: Words, records: int) -> None:
        # Modulo 2^64, which is enough: the sum of so many integers of 45 bits has 62.
        if self._records + records > _MOST_RECORDS:
            self._carry()
        self._words += words
        self._records += records

    def _carry(self) -> None:
        words = [signed(word - self._records * self._bits) for word in self._words.tolist()]
        self._total += np.array(words, object)
        self._words.fill(0)
        self._records = 0


def _sums(words: Words) -> Words:
    """Σ over the records, several of them at a time if they are short."""
    rows, dim = words.shape
    group = max(_GROUP_VALUES // dim, 1)
    if is_wide(words) and rows % group == 0:
        words = np.add.reduce(words.reshape(-1, group * dim), axis=0).reshape(-1, dim)
    return np.asarray(np.add.reduce(words, axis=0))
