"""Batches in tiles that stay in the cache, each record moved to a public centre and weighted.

Records of a matrix are not transposed unless they are short, and their squares are added up in
whatever order is fast: such a sum tells where a record lies, up to rounding. What is decided from
it leaves `ROOM` for any order, and a record too close to call is looked at again by itself, its
squares added with the coordinates in ascending order. So nothing that comes out depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muhat.records.columns import Batch, Column, FloatArray
from muhat.records.exact import split

Indices = NDArray[np.intp]

ROOM = 2.0**-20
"""Two sums of the squares of d < 2^30 numbers, in any order and with products rounded before they
are added or not, differ by a smaller part of themselves, if they are at least `LEAST`."""

LEAST, LARGEST = 2.0**-1000, 2.0**1000
"""A sum of squares between these neither suffers from underflow nor overflows in any order."""

_TILE_VALUES = 1 << 17
_FEWEST_TALL_ROWS, _MOST_TALL_ROWS = 1 << 10, 1 << 15
_LEAST_WIDE_DIM = 8
_GROUP_VALUES = 1 << 13
_COUNTED_ROWS = 1 << 15
_COPIED_VALUES = 1 << 12
_FEWEST_COPIED_ROWS = 1 << 4


class Records:
    """A batch in floats: a matrix, or columns with not-a-number where nothing is."""

    def __init__(self, batch: Batch) -> None:
        self.rows = batch.rows
        self.matrix = batch.matrix
        self.columns = [floats(column) for column in batch.columns]

    def pick(self, rows: Indices, magnitude: float) -> FloatArray:
        """Some records clipped to ±magnitude, shape (rows, d); not-a-number where not finite."""
        if self.matrix is not None:
            return clipped(self.matrix[rows], magnitude)
        return clipped(np.stack([column[rows] for column in self.columns], axis=1), magnitude)

    def are_within(self, start: int, stop: int, magnitude: float) -> bool:
        """Whether all coordinates from start to stop are there and at most the magnitude."""
        parts = self.columns if self.matrix is None else [self.matrix]
        return all(is_within(part[start:stop], magnitude) for part in parts)


class Tile(NamedTuple):
    """The records from `start` on: y of shape (rows, d), and Σ y_j² in any order, shape (rows,).

    `strays` are the places in the tile of records that may have a coordinate which is missing,
    not finite or beyond the magnitude, or whose squares could overflow: their y is not what it
    should be. The arrays are buffers, valid until the next tile is taken.
    """

    start: int
    values: FloatArray
    squares: FloatArray
    strays: Indices


class Tiles:
    """Tiles of y = weights∘(x − center), x clipped to ±magnitude; holds buffers, so one a thread.

    A coordinate that is missing or not finite counts as the centre's.
    """

    def __init__(self, center: FloatArray, weights: FloatArray, magnitude: float) -> None:
        self._dim = len(center)
        self._center = center
        self._weights = None if (weights == 1).all() else weights
        self._magnitude = magnitude
        self._reach = _reach(center, weights, magnitude)
        self._group = -(-_GROUP_VALUES // self._dim)
        self._group_center = np.tile(center, self._group)
        self._group_weights = np.tile(weights, self._group)
        self._values = self._term = self._sums = np.empty(0)

    def of(self, records: Records) -> Iterator[Tile]:
        """All records, in order."""
        size = self._tile_rows(records)
        self._reserve(size, size)
        for start in range(0, records.rows, size):
            stop = min(start + size, records.rows)
            squares = self._sums[: stop - start]
            values = self._moved(records, start, stop)
            self._add_squares(records, values, squares)
            yield Tile(start, values, squares, self._strays(records, start, stop, squares))

    def settled(self, records: Records) -> Iterator[Tile]:
        """All records, in order, with every y as it should be."""
        for tile in self.of(records):
            if len(tile.strays):
                values = self._offsets(records, tile.start + tile.strays)
                tile.values[tile.strays] = values.T
                tile.squares[tile.strays] = sum_of_squares(values)
            yield tile

    def squares(self, records: Records) -> Iterator[tuple[int, FloatArray]]:
        """Σ y_j² of all records, in any order of its terms: the first record, and some sums.

        More than a tile at once, for what is done with them to be fast too.
        """
        size = self._tile_rows(records)
        block = max(_COUNTED_ROWS // size, 1) * size
        self._reserve(size, block)
        for first in range(0, records.rows, block):
            last = min(first + block, records.rows)
            squares = self._sums[: last - first]
            for start in range(first, last, size):
                stop = min(start + size, last)
                values = self._moved(records, start, stop)
                self._add_squares(records, values, squares[start - first : stop - first])
            strays = self._strays(records, first, last, squares)
            if len(strays):
                squares[strays] = self.exact_squares(records, first + strays)
            yield first, squares

    def add_in_ascending_order(self, records: Records) -> bool:
        """Whether those sums are already `exact_squares`."""
        return self._wide(records) is None

    def exact_squares(self, records: Records, rows: Indices) -> FloatArray:
        """Σ y_j² of some records with j ascending."""
        size = self._tile_rows(records)
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        return np.concatenate([sum_of_squares(self._offsets(records, part)) for part in parts])

    def _offsets(self, records: Records, rows: Indices) -> FloatArray:
        """y of some records, shape (d, rows)."""
        values = transposed(records.pick(rows, self._magnitude))
        np.subtract(values, self._center[:, np.newaxis], out=values)
        if self._weights is not None:
            np.multiply(values, self._weights[:, np.newaxis], out=values)
        values[~np.isfinite(values)] = 0.0
        return values

    def _tile_rows(self, records: Records) -> int:
        rows = _TILE_VALUES // self._dim
        if self._wide(records) is not None:
            return max(rows // self._group, 1) * self._group
        return min(max(rows, _FEWEST_TALL_ROWS), _MOST_TALL_ROWS)

    def _wide(self, records: Records) -> FloatArray | None:
        """The matrix of long records, which stay as they lie, one after another; else None."""
        return records.matrix if self._dim >= _LEAST_WIDE_DIM else None

    def _reserve(self, tile_rows: int, sums: int) -> None:
        if len(self._values) < tile_rows * self._dim:
            self._values = np.empty(tile_rows * self._dim)
        if len(self._term) < tile_rows:
            self._term = np.empty(tile_rows)
        if len(self._sums) < sums:
            self._sums = np.empty(sums)

    def _moved(self, records: Records, start: int, stop: int) -> FloatArray:
        """y of shape (rows, d): long records as they lie, else every coordinate contiguous."""
        rows = stop - start
        buffer = self._values[: rows * self._dim]
        matrix = self._wide(records)
        if matrix is not None:
            wide = buffer.reshape(rows, self._dim)
            self._move_wide(matrix[start:stop], wide)
            return wide
        tall = buffer.reshape(self._dim, rows)
        if records.matrix is not None:
            np.subtract(records.matrix[start:stop].T, self._center[:, np.newaxis], out=tall)
        else:
            for column, center, place in zip(records.columns, self._center, tall, strict=True):
                np.subtract(column[start:stop], center, out=place)
        if self._weights is not None:
            np.multiply(tall, self._weights[:, np.newaxis], out=tall)
        return tall.T

    def _move_wide(self, records: FloatArray, out: FloatArray) -> None:
        """Several records at a time: numpy is slow at loops of fewer than 8192 values."""
        whole = len(records) // self._group * self._group
        shape = (-1, self._group * self._dim)
        many, places = records[:whole].reshape(shape), out[:whole].reshape(shape)
        np.subtract(many, self._group_center, out=places)
        if whole < len(records):
            np.subtract(records[whole:], self._center, out=out[whole:])
        if self._weights is not None:
            np.multiply(places, self._group_weights, out=places)
            np.multiply(out[whole:], self._weights, out=out[whole:])

    def _add_squares(self, records: Records, values: FloatArray, out: FloatArray) -> None:
        if self._wide(records) is not None:
            np.einsum("ij,ij->i", values, values, out=out)
        else:
            sum_of_squares(values.T, out, self._term[: len(values)])

    def _strays(self, records: Records, start: int, stop: int, squares: FloatArray) -> Indices:
        if np.maximum.reduce(squares) < self._reach:
            return np.empty(0, np.intp)
        strays = (~(squares < self._reach)).nonzero()[0]
        if records.are_within(start, stop, self._magnitude):
            strays = strays[~(squares[strays] < LARGEST)]
        return strays


def is_wide(values: NDArray[Any]) -> bool:
    """Whether the records of a tile lie one after another."""
    return values.shape[1] > 1 and values.flags.c_contiguous


def sum_of_squares(
    vectors: Sequence[FloatArray] | FloatArray,
    total: FloatArray | None = None,
    term: FloatArray | None = None,
) -> FloatArray:
    """total = Σ v_j² over the coordinates, in ascending order, one record an entry."""
    total = np.square(vectors[0], out=total)
    for vector in vectors[1:]:
        term = np.square(vector, out=term)
        np.add(total, term, out=total)
    return total


def transposed(rows: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Records of shape (rows, d) with their coordinates as contiguous rows, shape (d, rows)."""
    if out is None:
        out = np.empty(rows.shape[::-1])
    # In parts that stay in the first cache, or every line would be fetched d times over; short
    # ones, because the lines of very long records compete for the same places in it.
    step = max(_COPIED_VALUES // rows.shape[1], _FEWEST_COPIED_ROWS)
    for start in range(0, len(rows), step):
        out[:, start : start + step] = rows[start : start + step].T
    return out


def floats(column: Column) -> FloatArray:
    """The column as the nearest floats, not-a-number where nothing is."""
    high, low = split(column)
    values = high if low is None else high + low
    if column.valid is None or column.valid.all():
        return values
    return np.where(column.valid, values, np.nan)


def clipped(values: FloatArray, magnitude: float) -> FloatArray:
    """Every value clipped to ±magnitude; what is not finite becomes not-a-number."""
    inside: FloatArray = np.clip(values, -magnitude, magnitude)
    # x − x is 0 for a finite x and not-a-number for any other.
    inside += values - values
    return inside


def is_within(values: FloatArray, magnitude: float) -> bool:
    """Whether all values are there and at most the magnitude."""
    least, most = np.minimum.reduce(values, axis=None), np.maximum.reduce(values, axis=None)
    return bool(-magnitude <= least and most <= magnitude)


def _reach(center: FloatArray, weights: FloatArray, magnitude: float) -> float:
    """A record whose sum of squares is below this has every coordinate within the magnitude.

    Rounding is monotone: a coordinate beyond ±magnitude has a computed square of at least that of
    the magnitude itself, and a sum of squares is at least each of them, in whatever order.
    """
    if (np.abs(center) > magnitude).any():
        return 0.0
    with np.errstate(all="ignore"):
        above = np.square((magnitude - center) * weights)
        below = np.square((-magnitude - center) * weights)
    return float(min(above.min(), below.min(), LARGEST))


_ENOUGH_VALUES = 1 << 18
_FEWEST_ROWS, _MOST_ROWS = 1 << 10, 1 << 15


class Waiting:
    """Records of d coordinates, taken from tiles of any layout; not shared between threads."""

    def __init__(self, dim: int) -> None:
        self._enough = min(max(_ENOUGH_VALUES // dim, _FEWEST_ROWS), _MOST_ROWS)
        self._wide = np.empty((0, dim))
        self._wide_rows = 0
        self._tall: list[FloatArray] = []
        self._tall_rows = 0
        # Where wide ones are transposed to; kept, because page faults cost more than the copy.
        self._taken = np.empty(0)

    def put(self, values: FloatArray, places: Indices) -> bool:
        """Keep some records of a tile of shape (rows, d); whether there are enough now."""
        if is_wide(values):
            stop = self._wide_rows + len(places)
            if len(self._wide) < stop:
                self._grow(max(stop, self._enough) + len(values))
            # In any other mode numpy would fill a copy first.
            np.take(values, places, axis=0, out=self._wide[self._wide_rows : stop], mode="clip")
            self._wide_rows = stop
        else:
            self._tall.append(np.take(values.T, places, axis=1))
            self._tall_rows += len(places)
        return self._wide_rows + self._tall_rows >= self._enough

    def take(self) -> FloatArray:
        """All of them, shape (d, rows), valid until the next is put."""
        rows, dim = self._wide_rows, self._wide.shape[1]
        taken = self._taken[: rows * dim].reshape(dim, rows)
        transposed(self._wide[:rows], taken)
        if self._tall:
            taken = np.concatenate([taken, *self._tall], axis=1)
        self._wide_rows = self._tall_rows = 0
        self._tall = []
        return taken

    def _grow(self, rows: int) -> None:
        wide = np.empty((rows, self._wide.shape[1]))
        wide[: self._wide_rows] = self._wide[: self._wide_rows]
        self._wide, self._taken = wide, np.empty(wide.size)
