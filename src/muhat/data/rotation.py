"""Public random rotations of records: random signs, then a fast Walsh–Hadamard transform.

    x ↦ H·D·x,   D = diag(±1), H the Hadamard matrix of d̄ = 2^⌈log₂ d⌉ rows (H·Hᵀ = d̄·I)

Records are padded with zeros to d̄ coordinates. A rotated record is found from the record alone,
by additions in an order that d̄ fixes, so whatever they round to is the same for every batch
split; with whole numbers they are exact. The signs are public: privacy never rests on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from muhat.data.base import Source
from muhat.data.changed import ChangedSource
from muhat.data.distances import bounded
from muhat.data.engine import read_once
from muhat.data.grid_counts import Window, WindowCounts
from muhat.data.grids import UniformGrid
from muhat.data.states import Numbers, joined
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.records.columns import Batch, FloatArray, Floats

_BLOCK_VALUES = 1 << 18


@dataclass(frozen=True, eq=False)
class Rotation:
    """H·D for records of d = len(signs) coordinates, each sign +1 or −1.

    >>> rotation = Rotation(np.array([1.0, -1.0, 1.0]))
    >>> rotation.padded, rotation.forward([1.0, 2.0, 3.0]).tolist()
    (4, [2.0, 6.0, -4.0, 0.0])
    >>> rotation.back([2.0, 6.0, -4.0, 0.0]).tolist()
    [1.0, 2.0, 3.0]
    """

    signs: FloatArray

    @classmethod
    def drawn(cls, dim: int, words: Words = system_words) -> Rotation:
        """Independent fair signs."""
        bits = np.unpackbits(words(-(-dim // WORD_BITS)).view(np.uint8))[:dim]
        return cls(np.where(bits, -1.0, 1.0))

    @property
    def dim(self) -> int:
        """d, the coordinates of a record."""
        return len(self.signs)

    @property
    def padded(self) -> int:
        """d̄, the least power of two that is not below d."""
        return padded(self.dim)

    def forward(self, record: Sequence[float] | FloatArray) -> FloatArray:
        """H·D·x of one vector, of shape (d̄,)."""
        tile = np.zeros((self.padded, 1))
        tile[: self.dim, 0] = self.signs * np.asarray(record)
        transform(tile)
        return tile[:, 0]

    def back(self, rotated: Sequence[float] | FloatArray) -> FloatArray:
        """The first d coordinates of (H·D)⁻¹·y = D·H·y/d̄, of shape (d,)."""
        tile = np.array(rotated, np.float64)[:, None]
        transform(tile)
        return np.asarray(self.signs * tile[: self.dim, 0] / self.padded)


def padded(dim: int) -> int:
    """2^⌈log₂ d⌉."""
    return 1 << (dim - 1).bit_length()


def transform(tile: FloatArray) -> None:
    """H·tile in place, for a C-ordered tile of shape (2^k, rows): k·2^k additions a column.

    >>> tile = np.eye(4)
    >>> transform(tile)
    >>> tile.tolist()[1]
    [1.0, -1.0, 1.0, -1.0]
    """
    size, rows = tile.shape
    difference = np.empty(tile.size // 2)
    half = 1
    while half < size:
        pairs = tile.reshape(size // (2 * half), 2, half, rows)
        upper, lower = pairs[:, 0], pairs[:, 1]
        place = difference.reshape(upper.shape)
        np.subtract(upper, lower, out=place)
        np.add(upper, lower, out=upper)
        lower[...] = place
        half *= 2


@dataclass(frozen=True, eq=False)
class Preparation:
    """What is done to a record before it is searched or summed, by itself.

    In this order: coordinates are clipped to ±magnitude, missing ones count as 0, or as those of
    `fill`, of shape (d,); the record is shortened to length `ball`; it is rounded to multiples of
    `step`, which become integers; it is rotated. None stands for leaving a part out.
    """

    dim: int
    magnitude: float
    ball: float | None = None
    step: float | None = None
    rotation: Rotation | None = None
    fill: FloatArray | None = None

    @property
    def prepared_dim(self) -> int:
        """The coordinates of a prepared record."""
        return self.dim if self.rotation is None else self.rotation.padded

    def tiles(self, batch: Batch) -> Iterator[FloatArray]:
        """Prepared records as columns of tiles of shape (coordinates, rows).

        A tile is valid until the next is taken.
        """
        rows = max(_BLOCK_VALUES // self.prepared_dim, 1)
        buffer = np.empty(self.prepared_dim * min(rows, max(batch.rows, batch.absent, 1)))
        clipped = bounded(batch, self.magnitude)
        for start in range(0, batch.rows, rows):
            tile = _shaped(buffer, self.prepared_dim, min(rows, batch.rows - start))
            self._take(tile, clipped, start)
            self._finish(tile)
            yield tile
        for start in range(0, batch.absent, rows):
            tile = _shaped(buffer, self.prepared_dim, min(rows, batch.absent - start))
            tile[: self.dim] = np.nan
            self._finish(tile)
            yield tile

    def batches(self, batch: Batch) -> Iterator[Batch]:
        """Prepared records; a batch is valid until the next is taken."""
        for tile in self.tiles(batch):
            yield Batch(tile.shape[1], [Floats(values) for values in tile])

    def _take(self, tile: FloatArray, batch: Batch, start: int) -> None:
        stop = start + tile.shape[1]
        if batch.matrix is not None:
            tile[: self.dim] = batch.matrix[start:stop].T
        else:
            for place, column in zip(tile, batch.columns, strict=False):
                place[:] = column.values[start:stop]

    def _finish(self, tile: FloatArray) -> None:
        tile[self.dim :] = 0.0
        # A sum is finite if and only if all of it is: magnitudes leave room for that.
        if not np.isfinite(tile.sum()):
            fill = np.zeros(self.dim) if self.fill is None else self.fill
            for values, value in zip(tile, fill, strict=False):
                values[np.isnan(values)] = value
        if self.ball is not None:
            _shorten(tile, self.ball)
        if self.step is not None:
            np.divide(tile, self.step, out=tile)
            np.rint(tile, out=tile)
        if self.rotation is not None:
            np.multiply(tile[: self.dim], self.rotation.signs[:, None], out=tile[: self.dim])
            transform(tile)


def _shaped(buffer: FloatArray, dim: int, rows: int) -> FloatArray:
    return buffer[: dim * rows].reshape(dim, rows)


def _shorten(tile: FloatArray, length: float) -> None:
    """Move records that are longer towards 0."""
    squares = np.square(tile[0])
    for values in tile[1:]:
        squares += np.square(values)
    np.multiply(tile, length / np.maximum(np.sqrt(squares), length), out=tile)


class PreparedSource(ChangedSource):
    """A source whose records are prepared on the way."""

    def __init__(self, source: Source, preparation: Preparation) -> None:
        super().__init__(source, preparation.batches)
        self.columns = tuple(str(index) for index in range(preparation.prepared_dim))
        self.types = ("float64",) * preparation.prepared_dim


def prepared_counts(
    source: Source, preparation: Preparation, grid: UniformGrid, windows: Sequence[Window]
) -> list[WindowCounts]:
    """One pass: exact counts of a window of every prepared coordinate, all on the same grid.

    As `count_windows`, many coordinates at once: there is one window a coordinate, in order, and
    their blocks are of equal size.
    """
    counters = read_once(source, lambda: _CoordinateCounter(preparation, grid, windows))
    table: NDArray[np.int64] = reduce(add, (each.table for each in counters))
    found = []
    for counts, window in zip(table, windows, strict=True):
        inside = counts[1 : window.blocks + 1]
        total = int(counts.sum())
        found.append(WindowCounts(int(counts[0]), inside, total, total))
    return found


class _CoordinateCounter:
    """Counts the blocks of one window a coordinate, for one thread."""

    def __init__(
        self, preparation: Preparation, grid: UniformGrid, windows: Sequence[Window]
    ) -> None:
        if [window.column for window in windows] != list(range(preparation.prepared_dim)):
            raise AssertionError("there is one window a coordinate")
        if len({window.block_bits for window in windows}) != 1:
            raise AssertionError("the windows' blocks differ in size")
        self._preparation = preparation
        self._grid = grid
        self._bits = windows[0].block_bits
        self._firsts = np.array([window.first for window in windows], np.int64)[:, None]
        self._lasts = np.array([window.blocks + 1 for window in windows], np.int64)[:, None]
        width = max(window.blocks for window in windows) + 2
        self._starts = width * np.arange(len(windows), dtype=np.int64)[:, None]
        # The first entry holds what lies before a window, the one after it what lies behind.
        self.table = np.zeros((len(windows), width), np.int64)
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Count every record of the batch."""
        self.rows += batch.rows + batch.absent
        flat = self.table.reshape(-1)
        for tile in self._preparation.tiles(batch):
            places = self._grid.codes(tile)
            places -= self._firsts
            places >>= self._bits
            places += 1
            np.clip(places, 0, self._lasts, out=places)
            places += self._starts
            np.add.at(flat, places.reshape(-1), 1)

    def state(self) -> Numbers:
        """The records seen, and the table."""
        return joined(self.rows, self.table)

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        self.table += state[1:].reshape(self.table.shape)
