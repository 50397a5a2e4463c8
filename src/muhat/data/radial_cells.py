"""Which of some public distances a record lies within, found from its sum of squares.

Nearly all records are told by the leading bits of the sum alone, from a table. Those near an edge
are compared with it, and those that the order of the sum could put on either side are left to
the one definition: the sum of squares with the coordinates in ascending order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from muhat.records.columns import FloatArray
from muhat.records.tiles import LARGEST, LEAST, ROOM, Indices

_MANTISSA_BITS = 52
_MOST_BITS = 10
_MOST_BINS = 1 << 15


class RadialCells:
    """Cell i holds distances above edges[i − 1] and up to edges[i], the last all beyond too."""

    def __init__(self, edges: FloatArray) -> None:
        with np.errstate(all="ignore"):
            self._edges: FloatArray = np.square(edges)
            around = np.stack([self._edges * (1 - ROOM), self._edges * (1 + ROOM)])
        words = np.clip(around, LEAST, LARGEST).view(np.int64)
        octaves = int(words[1, -1] - words[0, 0] >> _MANTISSA_BITS) + 1
        bits = min((_MOST_BINS // octaves).bit_length() - 1, _MOST_BITS)
        self._shift = _MANTISSA_BITS - bits
        bins = words >> self._shift
        # One bin more at either end stands for everything below, or above.
        self._first = bins[0, 0] - 1
        before, after = bins - self._first
        passed = np.bincount(after + 1)
        self._table = np.minimum(np.cumsum(passed), len(edges) - 1)
        self._unsure = len(edges)
        for near in (before, after):
            self._table[near] = self._unsure
        if around[0, 0] < LEAST:
            self._table[0] = self._unsure
        if around[1, -1] > LARGEST:
            self._table[-1] = self._unsure

    def count(
        self, squares: FloatArray, exact: Callable[[Indices], FloatArray]
    ) -> NDArray[np.int64]:
        """How many records each cell has, from sums of squares in any order.

        `exact` gives the sums in ascending order for records by their places.
        """
        bins = np.right_shift(squares.view(np.int64), self._shift)
        np.subtract(bins, self._first, out=bins)
        cells = np.take(self._table, bins, mode="clip", out=bins)
        counts = np.bincount(cells, minlength=self._unsure + 1)
        sure = counts[:-1]
        if counts[-1]:
            near = np.flatnonzero(cells == self._unsure)
            sure += self._count_near(squares[near], near, exact)
        return sure

    def _count_near(
        self, squares: FloatArray, places: Indices, exact: Callable[[Indices], FloatArray]
    ) -> NDArray[np.int64]:
        cells = self._cells(squares * (1 - ROOM))
        differ = cells != self._cells(squares * (1 + ROOM))
        unsure = np.flatnonzero(differ | ~((squares >= LEAST) & (squares < LARGEST)))
        if len(unsure):
            cells[unsure] = self._cells(exact(places[unsure]))
        return np.bincount(cells, minlength=len(self._edges))

    def _cells(self, squares: FloatArray) -> NDArray[np.intp]:
        found = np.searchsorted(self._edges, squares, side="left")
        return np.minimum(found, len(self._edges) - 1)
