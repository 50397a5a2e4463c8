"""Records into cells: their codes, or the nearest listed point; counted exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat.data.box_kernel import whole_records
from muhat.data.columns import Column, FloatArray, Mask
from muhat.data.exact import Steps, split
from muhat.domains.lattice import PointsLattice
from muhat.domains.vectors import LARGEST_OFFSET

_CHUNK_VALUES = 1 << 16


class PointsKernel:
    """Counts blocks of records in the cells of a lattice."""

    def __init__(self, lattice: PointsLattice) -> None:
        self._size, self._default = lattice.size, lattice.default
        points = lattice.points
        # Coordinates as contiguous rows, shape (d, N).
        self._points = None if points is None else np.ascontiguousarray(points.T)
        self.absent: Steps = np.zeros(self._size, np.int64)
        self.absent[self._default] = 1

    def sums(self, columns: Sequence[Column], *, drop: bool) -> tuple[Steps, int]:
        """The count of every cell over a block, and records counted."""
        codes, known = self._cells(columns)
        if drop:
            codes = codes[known]
        return np.bincount(codes, minlength=self._size), len(codes)

    def integers(self, columns: Sequence[Column], *, drop: bool) -> Steps:
        """One-hot records, shape (rows, N); dropped records are rows of zeros."""
        codes, known = self._cells(columns)
        listed = np.zeros((len(codes), self._size), np.int64)
        listed[np.arange(len(codes)), codes] = 1
        if drop:
            listed[~known] = 0
        return listed

    def codes(self, columns: Sequence[Column]) -> Steps:
        """The cell of every record."""
        return self._cells(columns)[0]

    def _cells(self, columns: Sequence[Column]) -> tuple[Steps, Mask]:
        """The cell of every record, and which of them are known: the others have the default."""
        if self._points is None:
            (column,) = columns
            known, codes = _whole_codes(column, self._size)
        else:
            known = whole_records(columns)
            codes = _nearest(columns, known, self._points)
        return np.where(known, codes, self._default), known


def _whole_codes(column: Column, size: int) -> tuple[Mask, Steps]:
    """Which values are whole numbers from 0 up to size, and those numbers (0 for the others)."""
    high, low = split(column)
    known = (high >= 0) & (high < size) & (np.floor(high) == high)
    if low is not None:
        known &= low == 0
    if column.valid is not None:
        known &= column.valid
    return known, np.where(known, high, 0.0).astype(np.int64)


def _nearest(columns: Sequence[Column], known: Mask, points: FloatArray) -> Steps:
    """The index of the nearest listed point for every known record, the first at a tie."""
    records = np.empty((len(columns), len(known)))
    largest = np.zeros(len(known))
    for column, place in zip(columns, records, strict=True):
        high, low = split(column)
        place[:] = high if low is None else high + low
        place[~known] = 0.0
        np.maximum(largest, np.abs(place), out=largest)
    # Records far out are pulled in along their ray: squares must stay floats.
    records *= LARGEST_OFFSET / np.maximum(largest, LARGEST_OFFSET)
    codes = np.empty(len(known), np.int64)
    step = max(1, _CHUNK_VALUES // points.shape[1])
    for start in range(0, len(known), step):
        some = records[:, start : start + step]
        distances = np.zeros((some.shape[1], points.shape[1]))
        for values, coordinate in zip(some, points, strict=True):
            distances += np.square(values[:, None] - coordinate)
        # The first of equal ones, as numpy documents.
        codes[start : start + step] = np.argmin(distances, axis=1)
    return codes
