"""Which number of a record is looked at, before it goes to a cell of a public grid.

    Coordinates      one of its coordinates
    Distance         ‖x − c‖₂ for a public centre c
    Rotated          one of the coordinates of H·D·(x − c), a public rotation (`data.rotation`)
    EqualCells       the cell of a record's only number between public bounds

If there are several numbers to look at, the nonce of a message says at which. A number is found
in floats; the promise rests on the answer about its cell, whatever the cell is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from muhat import _check
from muhat._arrays import Bytes, Floats, Integers
from muhat._plain import Plain
from muhat.data.rotation import padded, transform
from muhat.errors import InvalidInput

MOST_COORDINATES = 1 << 20

_LARGEST = 1e300
_BLOCK_VALUES = 1 << 18


class RangeLook(Plain, ABC, tag="kind"):
    """Which number of a record is looked at, before it goes to a cell of a public grid.

    If there are several numbers to look at, the nonce of a message says at which.
    """

    if TYPE_CHECKING:  # fields of some

        @property
        def dim(self) -> int:
            """The coordinates of a record."""

        @property
        def numbers(self) -> int:
            """How many numbers of a record are looked at, by different people."""

    @abstractmethod
    def values(self, records: Floats, drawn: Integers) -> Floats:
        """The number of every record that its message is about, of shape (rows,)."""


@dataclass(frozen=True)
class Coordinates(RangeLook):
    """The coordinates `indices` of records of `dim`; all of them by default.

    A missing one has no number (NaN), and goes to the middle cell of the grid.
    """

    dim: int
    indices: tuple[int, ...] | None = None
    kind: ClassVar[str] = "coordinates"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", _check.count("dim", self.dim, most=MOST_COORDINATES))
        object.__setattr__(self, "indices", _indices(self.indices, self.dim))

    @property
    def numbers(self) -> int:
        """How many numbers of a record are looked at, by different people."""
        return len(self.indices or ())

    def values(self, records: Floats, drawn: Integers) -> Floats:
        chosen = records[np.arange(len(records)), np.array(self.indices)[drawn]]
        return np.where(np.isfinite(chosen), chosen, np.nan)


@dataclass(frozen=True)
class Distance(RangeLook):
    """‖x − center‖₂. A missing coordinate counts as that of the centre.

    >>> Distance((1.0, 1.0)).values(np.array([[4.0, 5.0], [np.nan, 3.0]]), np.zeros(2, np.int64))
    array([5., 2.])
    """

    center: tuple[float, ...]
    kind: ClassVar[str] = "distance"
    numbers: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", _center(self.center))

    @property
    def dim(self) -> int:
        """The coordinates of a record."""
        return len(self.center)

    def values(self, records: Floats, drawn: Integers) -> Floats:
        """The distance of every record, of shape (rows,); inf beyond the floats."""
        with np.errstate(over="ignore"):
            squares = np.square(_shifted(records, self.center)).sum(axis=1)
        return np.asarray(np.sqrt(squares))


@dataclass(frozen=True)
class Rotated(RangeLook):
    """Coordinates `indices` of H·D·(x − center), D = diag(signs); all 2^⌈log₂ d⌉ by default.

    A missing coordinate of the record counts as that of the centre.

    >>> rotated = Rotated(signs=(1, -1, 1), center=(0.0, 0.0, 0.0))
    >>> rotated.values(np.array([[1.0, 2.0, 3.0]] * 4), np.arange(4))
    array([ 2.,  6., -4.,  0.])
    """

    signs: tuple[int, ...]
    center: tuple[float, ...]
    indices: tuple[int, ...] | None = None
    kind: ClassVar[str] = "rotated"

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", _center(self.center))
        signs = tuple(int(_check.real("a sign", sign)) for sign in self.signs)
        if len(signs) != self.dim or not set(signs) <= {1, -1}:
            raise InvalidInput("signs must be +1 or -1, one for every coordinate of the centre.")
        object.__setattr__(self, "signs", signs)
        object.__setattr__(self, "indices", _indices(self.indices, padded(self.dim)))

    @property
    def dim(self) -> int:
        """The coordinates of a record."""
        return len(self.center)

    @property
    def numbers(self) -> int:
        """How many numbers of a record are looked at, by different people."""
        return len(self.indices or ())

    def values(self, records: Floats, drawn: Integers) -> Floats:
        chosen = np.array(self.indices)[drawn]
        size = padded(self.dim)
        found = np.empty(len(records))
        step = max(_BLOCK_VALUES // size, 1)
        for start in range(0, len(records), step):
            shifted = _shifted(records[start : start + step], self.center)
            tile = np.zeros((size, len(shifted)))
            tile[: self.dim] = np.clip(shifted, -_LARGEST, _LARGEST).T
            tile[: self.dim] *= np.array(self.signs)[:, None]
            transform(tile)
            found[start : start + step] = tile[
                chosen[start : start + step], np.arange(len(shifted))
            ]
        return found


def drawn_numbers(look: RangeLook, nonces: Bytes) -> Integers:
    """Which of the numbers each message is about, of shape (rows,): bytes 0 to 3 of its nonce."""
    drawn = np.ascontiguousarray(nonces).view("<u4")[:, 0].astype(np.uint64)
    return (drawn * np.uint64(look.numbers) >> np.uint64(32)).astype(np.int64)


def _shifted(records: Floats, center: Sequence[float]) -> Floats:
    with np.errstate(all="ignore"):
        difference = records - np.array(center)
        return np.where(np.isfinite(records), difference, 0.0)


def _indices(indices: Sequence[int] | None, dim: int) -> tuple[int, ...]:
    if indices is None:
        return tuple(range(dim))
    found = tuple(_check.count("an index", index, least=0, most=dim - 1) for index in indices)
    if not found or len(set(found)) != len(found):
        raise InvalidInput("indices must be different, and at least one.")
    return found


def _center(center: Sequence[float]) -> tuple[float, ...]:
    found = tuple(_check.real("a coordinate of the centre", value) for value in center)
    if not 0 < len(found) <= MOST_COORDINATES:
        raise InvalidInput(f"the centre must have from 1 to {MOST_COORDINATES} coordinates.")
    return found
