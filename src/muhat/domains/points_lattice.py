"""The integers of categories: a count of records for each of finitely many cells."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import Floats, matrix
from muhat.domains.integers import ClipFunction, TableLattice
from muhat.domains.vectors import LARGEST_OFFSET
from muhat.errors import InvalidInput
from muhat.records.columns import Column, FloatArray, Mask, whole_records
from muhat.records.exact import Steps, read, split
from muhat.records.norms import norms

MOST_POINTS = 1_000_000
_CHUNK_VALUES = 1 << 16


@dataclass(frozen=True)
class PointsLattice(TableLattice):
    """One-hot integers: a record is one of `size` cells, and the sums are counts.

    Without `coordinates` a record is its code 0 … size − 1, in one column. With them (the listed
    points as little-endian float64 in C order) it has d columns, and its cell is that of the
    nearest listed point, the first of them at a tie. A record that is missing, not finite or
    no known code goes to the cell `default`, which is public.

    >>> PointsLattice.of(5).record_dim, PointsLattice.of([[0, 0], [1, 1]], nearest=True).record_dim
    (1, 2)
    """

    kind = "points"
    sum_type = np.int64  # counts fit, and there may be many of them
    of_any_width = True
    size: int
    default: int = 0
    coordinates: bytes | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _check.count("points", self.size, most=MOST_POINTS))
        cell = _check.count("default", self.default, least=0, most=self.size - 1)
        object.__setattr__(self, "default", cell)
        if self.coordinates is not None and (
            not self.coordinates or len(self.coordinates) % (8 * self.size)
        ):
            raise InvalidInput("coordinates must be as many float64 for every point.")

    @classmethod
    def of(
        cls, points: int | ArrayLike, *, nearest: bool = False, default: int = 0
    ) -> PointsLattice:
        """The lattice of listed points of shape (n, d), or of their number.

        With `nearest` records are points of R^d, else codes, whatever the points are.
        """
        try:
            size = operator.index(points)  # type: ignore[arg-type]
        except TypeError:
            listed = matrix("points", points, "(n, d), one point a row")
            words = np.ascontiguousarray(listed, "<f8").tobytes() if nearest else None
            return cls(len(listed), default, words)
        if nearest:
            raise InvalidInput("points must be listed for records to move to the nearest one.")
        return cls(size, default)

    @property
    def dim(self) -> int:
        return self.size

    @property
    def record_dim(self) -> int:
        # 1 for codes, d for points.
        return 1 if self.coordinates is None else len(self.coordinates) // (8 * self.size)

    @property
    def clipped_dim(self) -> int:
        """The number of coordinates of a listed point."""
        return self.record_dim

    @property
    def width(self) -> int:
        return self.record_dim  # cells are only counted

    def for_width(self, columns: int) -> PointsLattice:
        if columns == self.record_dim:
            return self
        if columns != 1:
            raise InvalidInput(
                f"records of points are one column of codes, or {self.record_dim} columns of "
                f"coordinates; got {columns} columns."
            )
        return PointsLattice.of(self.size)

    @property
    def part_bits(self) -> int:
        return 0

    def corner_totals(self, totals: Sequence[int], count: int) -> Sequence[int]:
        return totals

    @property
    def points(self) -> Floats | None:
        """The listed points, of shape (n, d), if records move to them."""
        if self.coordinates is None:
            return None
        return np.frombuffer(self.coordinates, "<f8").reshape(self.size, -1).astype(np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Integers, and a digest in place of a long list, so that a digest of it is stable."""
        fields: dict[str, Any] = {"kind": "points", "size": self.size, "default": self.default}
        if self.coordinates is not None:
            fields["record_dim"] = self.record_dim
            fields["coordinates_sha256"] = hashlib.sha256(self.coordinates).hexdigest()
        return fields

    def kernel(self) -> PointsKernel:
        return PointsKernel(self)

    def clip_function(self) -> ClipFunction:
        """What moves records to the nearest listed point; of incomplete ones to the default."""
        kernel, points = self.kernel(), self.points
        if points is None:
            raise ValueError("listed points are needed to move records to them")

        def function(columns: Sequence[Column]) -> list[FloatArray]:
            codes = kernel.codes(columns)
            return [np.asarray(coordinate[codes]) for coordinate in points.T]

        return function


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
    records = [np.where(known, read(column, 0.0), 0.0) for column in columns]
    # Records far out are pulled in along their ray: squares must stay floats.
    shrink = LARGEST_OFFSET / np.maximum(norms(records, np.inf), LARGEST_OFFSET)
    return nearest_codes(np.stack(records) * shrink, points)


def nearest_codes(records: FloatArray, points: FloatArray) -> Steps:
    """The index of the nearest of the points, shape (d, N), for each record, shape (d, rows)."""
    codes = np.empty(records.shape[1], np.int64)
    step = max(1, _CHUNK_VALUES // points.shape[1])
    for start in range(0, len(codes), step):
        some = records[:, start : start + step]
        distances = np.zeros((some.shape[1], points.shape[1]))
        for values, coordinate in zip(some, points, strict=True):
            distances += np.square(values[:, None] - coordinate)
        # The first of equal ones, as numpy documents.
        codes[start : start + step] = np.argmin(distances, axis=1)
    return codes
