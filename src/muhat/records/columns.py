"""What a batch of records is made of: columns by type, each with a mask of what is there.

Types are told apart once, from the schema: floats (and everything that is exactly a float),
64-bit integers, and decimals. Anything else is refused by its type, never by a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.errors import InvalidInput

FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Floats:
    """A column of float64; smaller floats, integers and booleans are converted exactly."""

    values: FloatArray
    valid: Mask | None = None

    def part(self, start: int, stop: int) -> Floats:
        """The rows from start up to stop."""
        return Floats(self.values[start:stop], _part(self.valid, start, stop))

    def pick(self, rows: NDArray[np.intp]) -> Floats:
        """The rows with these indices."""
        return Floats(self.values[rows], _pick(self.valid, rows))

    def every(self, step: int, first: int, valid: Mask | None) -> Floats:
        """Every `step`-th row from `first` on, with another mask."""
        return Floats(self.values[first::step], valid)

    def present(self) -> Mask:
        """True where there is a finite value."""
        finite = np.isfinite(self.values)
        if self.valid is not None:
            finite &= self.valid
        return finite


@dataclass(frozen=True)
class Integers:
    """A column of int64 or uint64, which need not be exact as floats; or codes of categories."""

    values: NDArray[Any]
    valid: Mask | None = None

    def part(self, start: int, stop: int) -> Integers:
        """The rows from start up to stop."""
        return Integers(self.values[start:stop], _part(self.valid, start, stop))

    def pick(self, rows: NDArray[np.intp]) -> Integers:
        """The rows with these indices."""
        return Integers(self.values[rows], _pick(self.valid, rows))

    def every(self, step: int, first: int, valid: Mask | None) -> Integers:
        """Every `step`-th row from `first` on, with another mask."""
        return Integers(self.values[first::step], valid)

    def present(self) -> Mask:
        """True where there is a value."""
        return np.ones(len(self.values), bool) if self.valid is None else self.valid


@dataclass(frozen=True)
class Decimals:
    """A column of unscaled · 10^−scale; unscaled in 64-bit limbs, lowest first, of shape (n, k)."""

    values: NDArray[np.uint64]
    scale: int
    valid: Mask | None = None

    def part(self, start: int, stop: int) -> Decimals:
        """The rows from start up to stop."""
        return Decimals(self.values[start:stop], self.scale, _part(self.valid, start, stop))

    def pick(self, rows: NDArray[np.intp]) -> Decimals:
        """The rows with these indices."""
        return Decimals(self.values[rows], self.scale, _pick(self.valid, rows))

    def every(self, step: int, first: int, valid: Mask | None) -> Decimals:
        """Every `step`-th row from `first` on, with another mask."""
        return Decimals(self.values[first::step], self.scale, valid)

    def present(self) -> Mask:
        """True where there is a value."""
        return np.ones(len(self.values), bool) if self.valid is None else self.valid

    def unscaled(self, row: int) -> int:
        """The unscaled integer of one row, at any width."""
        total = 0
        for limb in reversed(self.values[row].tolist()):
            total = total << 64 | limb
        width = 64 * self.values.shape[1]
        return total - (1 << width) if total >> (width - 1) else total


Column = Floats | Integers | Decimals


@dataclass(frozen=True)
class Batch:
    """Some records: `columns`, one a coordinate, or `matrix` of shape (rows, d), C-ordered.

    `absent` more records follow of which nothing could be read: every value is missing. `gaps` are
    their places among all records of the batch, ascending, where they did not come last.
    """

    rows: int
    columns: Sequence[Column] = ()
    matrix: FloatArray | None = None
    absent: int = 0
    gaps: tuple[int, ...] = ()


def column_of(values: NDArray[Any], valid: Mask | None = None) -> Column:
    """A 1-D numpy array of an accepted type as a column."""
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        native = values.dtype.newbyteorder("=")
        return Integers(values.astype(native, copy=False), valid)
    return Floats(values.astype(np.float64, copy=False), valid)


def whole_records(columns: Sequence[Column]) -> Mask:
    """True for the records of which every coordinate is there and finite."""
    whole = columns[0].present().copy()
    for column in columns[1:]:
        whole &= column.present()
    return whole


def require_numeric(dtype: np.dtype[Any], name: str) -> None:
    """Refuse a numpy type that is not a real number of at most 64 bits."""
    if dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise InvalidInput(
            f"{name} has type {dtype}, which cannot be averaged. "
            "Convert it to float64, to an integer type or to bool first."
        )


def _part(valid: Mask | None, start: int, stop: int) -> Mask | None:
    return None if valid is None else valid[start:stop]


def _pick(valid: Mask | None, rows: NDArray[np.intp]) -> Mask | None:
    return None if valid is None else valid[rows]
