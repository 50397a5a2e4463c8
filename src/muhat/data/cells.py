"""Which of some public edges a number lies between, by its leading bits and a comparison.

Floats are in the order of their bits, so the leading bits of a number, its bin, say which edges
are surely below it: those of lower bins. Each edge in its own bin takes a comparison; there is
hardly ever more than one. How many comparisons there are depends on the edges alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from muhat.data.cell_loops import Count, Lookup, Moved
from muhat.records.columns import FloatArray
from muhat.records.exact import occurrences

Found = NDArray[np.int64]

_MANTISSA_BITS = 52
_MOST_BITS = 10
_MOST_BINS = 1 << 15
_ALL_BUT_THE_SIGN = np.int64((1 << 63) - 1)


class Cells:
    """Cell i holds numbers above edges[i − 1] and up to edges[i], the last all beyond too.

    >>> Cells(np.array([-1.0, 0.0, 2.0])).of(np.array([-9.0, 0.0, 0.5, 7.0])).tolist()
    [0, 1, 2, 2]
    """

    def __init__(self, edges: FloatArray) -> None:
        self.number = len(edges)
        self._signed = bool(edges[0] < 0)
        # Nothing is beyond the last cell.
        self._edges: FloatArray = np.append(edges[:-1], np.inf)
        words = _words(self._edges[:-1], self._signed) if self.number > 1 else np.zeros(1, np.int64)
        octaves = int(words[-1] >> _MANTISSA_BITS) - int(words[0] >> _MANTISSA_BITS) + 1
        bits = min((_MOST_BINS // octaves).bit_length() - 1, _MOST_BITS)
        self._shift = _MANTISSA_BITS - bits
        bins = words >> self._shift
        # One bin more at either end stands for everything below, or above.
        self._first = bins[0] - 1
        edges_in = np.bincount(bins - self._first)
        self._comparisons = int(edges_in.max())
        self._below = np.append(0, np.minimum(np.cumsum(edges_in), self.number - 1))

    def of(self, values: FloatArray) -> Found:
        """The cell of every number, shape (n,); without negative edges they must not be below 0."""
        bins = np.right_shift(_words(values, self._signed), self._shift)
        np.subtract(bins, self._first, out=bins)
        cells = np.take(self._below, bins, mode="clip", out=bins)
        for _ in range(self._comparisons):
            cells += self.are_beyond(values, cells)
        return cells

    def are_beyond(self, values: FloatArray, cells: Found) -> NDArray[np.bool_]:
        """Which numbers lie beyond a cell of their own."""
        return values > np.take(self._edges, cells)

    def count_in_loop(self, count: Count, values: FloatArray, moved: Moved, counts: Found) -> None:
        """Add how many numbers each cell has, of values that are moved before."""
        lookup = Lookup(self._shift, int(self._first), self._signed, self._comparisons)
        values = np.require(values, np.float64, ["C", "A"])
        count(values, moved, lookup, self._below, self._edges, counts)

    def counts(self, cells: Found) -> Found:
        """How many numbers each cell has."""
        return occurrences(cells, self.number)


def _words(values: FloatArray, signed: bool) -> NDArray[np.int64]:
    """The bits of floats as integers in the order of the floats."""
    words: NDArray[np.int64] = values.view(np.int64)
    if not signed:
        return words
    # The bits of a negative one grow with its size.
    return words ^ ((words >> 63) & _ALL_BUT_THE_SIGN)
