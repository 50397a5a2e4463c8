"""How many records lie within each of some public distances from a public centre.

A record's cell is found from the record alone, by element-wise operations with the coordinates
in ascending order, and every record has exactly one. Rounding may put a record that lies on an
edge into the cell next to it; one record still changes one count, so the sensitivity of the
counts does not depend on any rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muhat.data.base import Source
from muhat.data.columns import Batch, Column, FloatArray, Floats
from muhat.data.engine import Sums, read_once
from muhat.data.exact import split
from muhat.data.kernel import Accumulator
from muhat.domains.lattice import Lattice

_BLOCK_VALUES = 1 << 19
_MOST_ROWS = 1 << 16
_TILE_VALUES = 1 << 12


@dataclass(frozen=True, eq=False)
class Frame:
    """Where distances are measured: y = weights∘(x − center), after clipping x to ±magnitude.

    A coordinate that is missing or not finite counts as the centre's.
    """

    center: FloatArray
    weights: FloatArray
    magnitude: float


def distance_counts(source: Source, frame: Frame, edges: FloatArray) -> list[int]:
    """One pass: the records whose distance ‖y‖ falls into each cell.

    Cell i holds distances above edges[i − 1] and up to edges[i], the last cell everything beyond
    too.
    """
    counters = read_once(source, lambda: DistanceCounter(frame, edges))
    return [sum(parts) for parts in zip(*(each.counts.tolist() for each in counters), strict=True)]


def excess_sums(source: Source, frame: Frame, inner: float, lattice: Lattice) -> Sums:
    """One pass: exact sums on a lattice of y·max(0, 1 − inner/‖y‖), what lies beyond a radius."""
    return _summed(read_once(source, lambda: ExcessAccumulator(frame, inner, lattice)))


def bounded_sums(source: Source, lattice: Lattice, magnitude: float) -> Sums:
    """One pass: exact sums on a lattice of records whose coordinates are clipped to ±magnitude."""
    return _summed(read_once(source, lambda: BoundedAccumulator(lattice, magnitude)))


def _summed(accumulators: Sequence[BoundedAccumulator | ExcessAccumulator]) -> Sums:
    total = tuple(sum(parts) for parts in zip(*(each.total for each in accumulators), strict=True))
    return Sums(total, sum(each.rows for each in accumulators))


class Offsets:
    """Batches as blocks of y and ‖y‖²; holds buffers, so one a thread."""

    def __init__(self, frame: Frame) -> None:
        # Arrays of no dimension: numpy converts a plain float anew in every call.
        self._centers = [np.array(value) for value in frame.center]
        self._weights = [None if value == 1 else np.array(value) for value in frame.weights]
        self._magnitude = frame.magnitude
        self._block = max(min(_BLOCK_VALUES // len(frame.center), _MOST_ROWS), 1)
        self._tile: FloatArray = np.empty((len(frame.center), 0))

    def blocks(self, batch: Batch) -> Iterator[tuple[FloatArray, FloatArray]]:
        """y of shape (d, rows) and Σ y_j² of shape (rows,), valid until the next is taken."""
        batch = bounded(batch, self._magnitude)
        for start in range(0, batch.rows, self._block):
            tile = self._filled(batch, start, min(start + self._block, batch.rows))
            for values, center, weight in zip(tile, self._centers, self._weights, strict=True):
                np.subtract(values, center, out=values)
                if weight is not None:
                    np.multiply(values, weight, out=values)
            squares = _sum_of_squares(tile)
            if not np.isfinite(squares).all():
                tile[~np.isfinite(tile)] = 0.0
                squares = _sum_of_squares(tile)
            yield tile, squares

    def _filled(self, batch: Batch, start: int, stop: int) -> FloatArray:
        """The records from start to stop with their coordinates as contiguous rows."""
        rows, dim = stop - start, len(self._tile)
        if self._tile.shape[1] < rows:
            self._tile = np.empty((dim, rows))
        tile: FloatArray = self._tile[:, :rows]
        if batch.matrix is None:
            for place, column in zip(tile, batch.columns, strict=True):
                place[:] = column.values[start:stop]
            return tile
        matrix = batch.matrix[start:stop]
        # In tiles that stay in the first cache, or every line would be fetched d times over.
        step = max(_TILE_VALUES // dim, 1 << 6)
        for first in range(0, rows, step):
            tile[:, first : first + step] = matrix[first : first + step].T
        return tile


def _sum_of_squares(tile: FloatArray) -> FloatArray:
    """Σ y_j² with j ascending, one record an entry."""
    total: FloatArray = np.square(tile[0])
    term = np.empty(len(total))
    for values in tile[1:]:
        np.square(values, out=term)
        np.add(total, term, out=total)
    return total


class DistanceCounter:
    """Counts the records of batches by their distance; not shared between threads."""

    def __init__(self, frame: Frame, edges: FloatArray) -> None:
        self._offsets = Offsets(frame)
        self._squares = np.square(edges)
        self.counts: NDArray[np.int64] = np.zeros(len(edges), np.int64)
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Count every record of the batch; one of which nothing is there lies at the centre."""
        self.rows += batch.rows + batch.absent
        self.counts[0] += batch.absent
        # A warning would depend on the data.
        with np.errstate(all="ignore"):
            for _, squares in self._offsets.blocks(batch):
                places = np.searchsorted(self._squares, squares, side="left")
                np.minimum(places, len(self.counts) - 1, out=places)
                self.counts += np.bincount(places, minlength=len(self.counts))


class ExcessAccumulator:
    """Adds up what records have beyond an inner radius, on a lattice about 0."""

    def __init__(self, frame: Frame, inner: float, lattice: Lattice) -> None:
        self._offsets = Offsets(frame)
        self._inner = inner
        self._sums = Accumulator(lattice)
        self.rows = 0

    @property
    def total(self) -> list[int]:
        """Σ q, one Python integer a sum."""
        return self._sums.total

    def add(self, batch: Batch) -> None:
        """Add the integers of every record; one of which nothing is there adds none."""
        self.rows += batch.rows + batch.absent
        with np.errstate(all="ignore"):
            for tile, squares in self._offsets.blocks(batch):
                length = np.sqrt(squares)
                # A record at the centre itself has no direction and nothing beyond.
                part = np.maximum(1.0 - self._inner / np.maximum(length, self._inner), 0.0)
                for values in tile:
                    np.multiply(values, part, out=values)
                columns = [Floats(values) for values in tile]
                self._sums.add(Batch(tile.shape[1], columns))


class BoundedAccumulator:
    """Adds up batches on a lattice after clipping every coordinate to ±magnitude."""

    def __init__(self, lattice: Lattice, magnitude: float) -> None:
        self._inner = Accumulator(lattice)
        self._magnitude = magnitude
        self.rows = 0

    @property
    def total(self) -> list[int]:
        """Σ q, one Python integer a sum."""
        return self._inner.total

    def add(self, batch: Batch) -> None:
        """Add the integers of every record of the batch."""
        self._inner.add(bounded(batch, self._magnitude))
        self.rows = self._inner.rows


def bounded(batch: Batch, magnitude: float) -> Batch:
    """The batch in floats, each coordinate clipped; what is not finite becomes not-a-number."""
    with np.errstate(all="ignore"):
        if batch.matrix is not None:
            return Batch(batch.rows, (), _clipped(batch.matrix, magnitude), batch.absent)
        columns = [Floats(_clipped(_values(column), magnitude)) for column in batch.columns]
        return Batch(batch.rows, columns, None, batch.absent)


def _values(column: Column) -> FloatArray:
    high, low = split(column)
    values = high if low is None else high + low
    if column.valid is None or column.valid.all():
        return values
    return np.where(column.valid, values, np.nan)


def _clipped(values: FloatArray, magnitude: float) -> FloatArray:
    if values.size and -magnitude <= values.min() and values.max() <= magnitude:
        return values
    # x − x is 0 for a finite x and not-a-number for any other.
    clipped: FloatArray = np.clip(values, -magnitude, magnitude) + (values - values)
    return clipped
