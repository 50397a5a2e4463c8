"""How many records lie within each of some public distances from a public centre.

A record's cell is found from the record alone: from its sum of squares, by element-wise operations
with the coordinates in ascending order. Every record has exactly one. Rounding may put a record
that lies on an edge into the cell next to it; one record still changes one count, so the
sensitivity of the counts does not depend on any rounding.

Sums of squares that were added up in another order are told by them too, but for those that the
order could put on either side of an edge: they are added up again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from muhat.data.base import Source
from muhat.data.cell_loops import LOADER, Moved
from muhat.data.cells import Cells
from muhat.data.engine import Accumulator, Sums, read_once, record_integers
from muhat.data.states import Numbers, joined
from muhat.domains.integers import Lattice, TiledSums
from muhat.records.columns import Batch, FloatArray, Floats
from muhat.records.tiles import (
    LARGEST,
    LEAST,
    ROOM,
    Indices,
    Records,
    Tiles,
    Waiting,
    clipped,
    floats,
    is_within,
    sum_of_squares,
)


@dataclass(frozen=True, eq=False)
class Frame:
    """Where distances are measured: y = weights∘(x − center), after clipping x to ±magnitude.

    A coordinate that is missing or not finite counts as the centre's.
    """

    center: FloatArray
    weights: FloatArray
    magnitude: float

    def tiles(self) -> Tiles:
        """What cuts batches into tiles of y."""
        return Tiles(self.center, self.weights, self.magnitude)


def distance_counts(source: Source, frame: Frame, edges: FloatArray) -> list[int]:
    """One pass: the records whose distance ‖y‖ falls into each cell.

    Cell i holds distances above edges[i − 1] and up to edges[i], the last cell everything beyond
    too.
    """
    return _counted(read_once(source, lambda: DistanceCounter(frame, edges)))


def line_counts(source: Source, frame: Frame, edges: FloatArray) -> list[int]:
    """One pass: the records of one coordinate whose y falls into each cell, edges as above."""
    return _counted(read_once(source, lambda: LineCounter(frame, edges)))


def excess_sums(source: Source, frame: Frame, inner: float, lattice: Lattice) -> Sums:
    """One pass: exact sums on a lattice of y·max(0, 1 − inner/‖y‖), what lies beyond a radius."""
    return _summed(read_once(source, lambda: ExcessAccumulator(frame, inner, lattice)))


def bounded_sums(source: Source, lattice: Lattice, magnitude: float) -> Sums:
    """One pass: exact sums on a lattice of records whose coordinates are clipped to ±magnitude."""
    return _summed(read_once(source, lambda: BoundedAccumulator(lattice, magnitude)))


def _counted(counters: Sequence[_Counter]) -> list[int]:
    total: list[int] = reduce(operator.add, [each.counts for each in counters]).tolist()
    return total


def _summed(accumulators: Sequence[BoundedAccumulator | ExcessAccumulator]) -> Sums:
    total = tuple(sum(parts) for parts in zip(*(each.total for each in accumulators), strict=True))
    return Sums(total, sum(each.rows for each in accumulators))


def _together(ball: TiledSums | None, others: Accumulator) -> list[int]:
    if ball is None:
        return others.total
    return [one + other for one, other in zip(ball.total, others.total, strict=True)]


def _batch(values: FloatArray) -> Batch:
    """Records of shape (d, rows)."""
    return Batch(values.shape[1], [Floats(coordinate) for coordinate in values])


class _Counter:
    """Counts the records of batches by cells; not shared between threads."""

    def __init__(self, frame: Frame, cells: Cells, *, squared: bool) -> None:
        self._tiles = frame.tiles()
        self._cells = cells
        self._line = None
        if len(frame.center) == 1:
            self._line = Moved(frame.center[0], frame.weights[0], frame.magnitude, squared)
        self.counts: NDArray[np.int64] = np.zeros(cells.number, np.int64)
        self.rows = 0

    def _looped(self, records: Records) -> bool:
        """Count all records, if they have one coordinate and a loop that does it is loaded."""
        count = None if self._line is None else LOADER.after(records.rows)
        if count is None or self._line is None:
            return False
        values = records.columns[0] if records.matrix is None else records.matrix[:, 0]
        self._cells.count_in_loop(count, values, self._line, self.counts)
        return True

    def state(self) -> Numbers:
        """The records seen, and how many lie in each cell."""
        return joined(self.rows, self.counts)

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        self.counts += state[1:]


class DistanceCounter(_Counter):
    """Counts records by their distance."""

    def __init__(self, frame: Frame, edges: FloatArray) -> None:
        self._radial = RadialCells(edges)
        super().__init__(frame, self._radial.cells, squared=True)

    def add(self, batch: Batch) -> None:
        """Count every record of the batch; one of which nothing is there lies at the centre."""
        self.rows += batch.rows + batch.absent
        self.counts[0] += batch.absent
        # A warning would depend on the data.
        with np.errstate(all="ignore"):
            records = Records(batch)
            if self._looped(records):
                return
            ascending = self._tiles.add_in_ascending_order(records)
            for first, squares in self._tiles.squares(records):
                exact = None if ascending else partial(self._exact, records, first)
                self.counts += self._radial.count(squares, exact)

    def _exact(self, records: Records, first: int, places: Indices) -> FloatArray:
        return self._tiles.exact_squares(records, first + places)


class LineCounter(_Counter):
    """Counts records of one coordinate by where they lie."""

    def __init__(self, frame: Frame, edges: FloatArray) -> None:
        super().__init__(frame, Cells(edges), squared=False)

    def add(self, batch: Batch) -> None:
        """Count every record of the batch; one of which nothing is there lies at the centre."""
        self.rows += batch.rows + batch.absent
        self.counts[self._cells.of(np.zeros(1))] += batch.absent
        with np.errstate(all="ignore"):
            records = Records(batch)
            if self._looped(records):
                return
            for tile in self._tiles.settled(records):
                self.counts += self._cells.counts(self._cells.of(tile.values[:, 0]))


class ExcessAccumulator:
    """Adds up what records have beyond an inner radius, on a lattice about 0."""

    def __init__(self, frame: Frame, inner: float, lattice: Lattice) -> None:
        self._tiles = frame.tiles()
        self._inner = inner
        # In ascending order too, the root of such a sum is at most the inner radius. A record
        # there has no excess, and nothing is added for it if that is what a lattice makes of 0.
        nothing = record_integers(lattice, _batch(np.zeros((lattice.record_dim, 1))))
        skips = inner**2 >= LEAST and not nothing.any()
        self._skipped = inner**2 * (1 - ROOM) if skips else -1.0
        self._outside = Waiting(len(frame.center))
        ball = lattice.tiled_sums()
        self._ball = ball if ball is not None and ball.is_about_zero else None
        self._others = Accumulator(lattice)
        self.rows = 0

    @property
    def total(self) -> list[int]:
        """Σ q, one Python integer a sum."""
        self._add_outside()
        return _together(self._ball, self._others)

    def add(self, batch: Batch) -> None:
        """Add the integers of every record; one of which nothing is there adds none."""
        self.rows += batch.rows + batch.absent
        with np.errstate(all="ignore"):
            for tile in self._tiles.settled(Records(batch)):
                outside = (tile.squares > self._skipped).nonzero()[0]
                if self._outside.put(tile.values, outside):
                    self._add_outside()

    def state(self) -> Numbers:
        """The records seen, and Σ q."""
        return joined(self.rows, self.total)

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        self._others.absorb(joined(0, 0, state[1:]))

    def _add_outside(self) -> None:
        values = self._outside.take()
        if not values.size:
            return
        with np.errstate(all="ignore"):
            squares = sum_of_squares(values)
            # A record at the centre itself has no direction and nothing beyond.
            part = np.maximum(1.0 - self._inner / np.maximum(np.sqrt(squares), self._inner), 0.0)
            np.multiply(values, part, out=values)
            if self._ball is None:
                self._others.add(_batch(values))
                return
            squares *= part * part
            huge = (~(squares < LARGEST)).nonzero()[0]
            self._others.add(_batch(values[:, huge]))
            self._ball.add(values.T, squares, huge)


class BoundedAccumulator:
    """Adds up batches on a lattice after clipping every coordinate to ±magnitude."""

    def __init__(self, lattice: Lattice, magnitude: float) -> None:
        self._magnitude = magnitude
        self._ball = lattice.tiled_sums()
        self._tiles = None if self._ball is None else self._ball.tiles(magnitude)
        self._strays = Waiting(lattice.record_dim)
        self._others = Accumulator(lattice)
        self.rows = 0

    @property
    def total(self) -> list[int]:
        """Σ q, one Python integer a sum."""
        self._add_strays()
        return _together(self._ball, self._others)

    def add(self, batch: Batch) -> None:
        """Add the integers of every record of the batch."""
        self.rows += batch.rows + batch.absent
        if self._ball is None or self._tiles is None:
            self._others.add(bounded(batch, self._magnitude))
            return
        with np.errstate(all="ignore"):
            records = Records(batch)
            for tile in self._tiles.of(records):
                if len(tile.strays):
                    self._put_aside(records.pick(tile.start + tile.strays, self._magnitude))
                self._ball.add(tile.values, tile.squares, tile.strays)

    def state(self) -> Numbers:
        """The records seen, and Σ q."""
        return joined(self.rows, self.total)

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        self._others.absorb(joined(0, 0, state[1:]))

    def _put_aside(self, strays: FloatArray) -> None:
        if self._strays.put(strays, np.arange(len(strays))):
            self._add_strays()

    def _add_strays(self) -> None:
        self._others.add(_batch(self._strays.take()))


def bounded(batch: Batch, magnitude: float) -> Batch:
    """The batch in floats, each coordinate clipped; what is not finite becomes not-a-number."""

    def inside(values: FloatArray) -> FloatArray:
        if values.size and is_within(values, magnitude):
            return values
        return clipped(values, magnitude)

    with np.errstate(all="ignore"):
        if batch.matrix is not None:
            return Batch(batch.rows, (), inside(batch.matrix), batch.absent)
        columns = [Floats(inside(floats(column))) for column in batch.columns]
        return Batch(batch.rows, columns, None, batch.absent)


class RadialCells:
    """Cell i holds distances above edges[i − 1] and up to edges[i], the last all beyond too."""

    def __init__(self, edges: FloatArray) -> None:
        with np.errstate(all="ignore"):
            self.cells = Cells(np.square(edges))

    def count(
        self, squares: FloatArray, exact: Callable[[Indices], FloatArray] | None
    ) -> NDArray[np.int64]:
        """How many records each cell has, from sums of squares.

        If they were added up in any order, `exact` gives the sums in ascending order for records
        by their places.
        """
        if exact is None:
            return self.cells.counts(self.cells.of(squares))
        cells = self.cells.of(squares * (1 - ROOM))
        unsure = self.cells.are_beyond(squares * (1 + ROOM), cells)
        unsure |= ~((squares >= LEAST) & (squares < LARGEST))
        near = unsure.nonzero()[0]
        if len(near):
            cells[near] = self.cells.of(exact(near))
        return self.cells.counts(cells)
