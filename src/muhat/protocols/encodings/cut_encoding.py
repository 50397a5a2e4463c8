"""Where a number of a record lies between public cuts, as whole numbers whose sums tell it of all.

2^h − 1 cuts make 2^h cells, the leaves of a binary tree. For each of the tree's 2^h − 1 nodes a
person has a number: +scale if the cell is in the left half of the node, −scale if it is in the
right half, 0 if it is elsewhere. With the number of people, which is public, the sums give the
counts of all cells (`cut_counts`): half as many numbers as counts of all blocks, and no less said.

    radius   ‖weights∘(x − center)‖ for a public centre
    place    the cell of a public grid that a number lies in

A number of the record is found in floats. What is sent depends on its cell alone, and how far
that moves if the record is replaced is known exactly. docs/proofs/shuffle-chain.md.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from muhat import _check
from muhat._arrays import Floats, Integers
from muhat._integers import root_up
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.noise.entropy import Words, system_words
from muhat.protocols.encodings.encoding import FINEST, Encoding, Sensitivity
from muhat.release.quantile_grids import AnyGrid

MOST_LEVELS = 16
MOST_COORDINATES = 1 << 20

_LARGEST = 1e150
"""Squares of distances stay floats."""


class CutLook(Plain, ABC, tag="kind"):
    """Which number of a record is compared with the cuts."""

    if TYPE_CHECKING:  # the same for all of some

        @property
        def record_dim(self) -> int:
            """The coordinates of a record."""

    @abstractmethod
    def values(self, records: Floats) -> Floats:
        """The number of every record, of shape (rows,)."""


@dataclass(frozen=True)
class Radius(CutLook):
    """‖weights∘(x − center)‖₂. A missing coordinate counts as that of the centre.

    >>> Radius((1.0, 1.0)).values(np.array([[4.0, 5.0], [np.nan, 3.0]]))
    array([5., 2.])
    """

    center: tuple[float, ...]
    weights: tuple[float, ...] | None = None

    kind: ClassVar[str] = "radius"

    def __post_init__(self) -> None:
        center = tuple(_check.real("a coordinate of the centre", each) for each in self.center)
        if not 0 < len(center) <= MOST_COORDINATES:
            raise InvalidInput(f"the centre must have from 1 to {MOST_COORDINATES} coordinates.")
        object.__setattr__(self, "center", center)
        if self.weights is not None:
            weights = tuple(_check.positive("a weight", each) for each in self.weights)
            if len(weights) != len(center):
                raise InvalidInput("there must be a weight for every coordinate of the centre.")
            object.__setattr__(self, "weights", weights)

    @property
    def record_dim(self) -> int:
        """The coordinates of a record."""
        return len(self.center)

    def moved(self, records: Floats) -> Floats:
        """weights∘(x − center), of the records' shape."""
        with np.errstate(all="ignore"):
            difference = np.where(np.isfinite(records), records - np.array(self.center), 0.0)
            if self.weights is not None:
                difference *= np.array(self.weights)
        return np.clip(difference, -_LARGEST, _LARGEST)

    def values(self, records: Floats) -> Floats:
        """The distance of every record, of shape (rows,)."""
        return np.asarray(np.sqrt(np.square(self.moved(records)).sum(axis=1)))


@dataclass(frozen=True)
class CutPlace(CutLook):
    """The cell of a grid that a number lies in; a missing one is in the middle cell."""

    grid: AnyGrid

    kind: ClassVar[str] = "place"
    record_dim: ClassVar[int] = 1

    def values(self, records: Floats) -> Floats:
        """The cell of every record, of shape (rows,)."""
        numbers = records[:, 0]
        cells = np.where(np.isfinite(numbers), self.grid.codes(numbers), self.grid.middle)
        return cells.astype(np.float64)


@dataclass(frozen=True)
class CutEncoding(Encoding):
    """A number of a record and 2^h − 1 public cuts, in ascending order; equal ones are allowed.

    A record is in the cell of the first cut that its number does not exceed, or in the last cell.

    >>> encoding = CutEncoding(Radius((0.0,)), cuts=(1.0, 2.0, 4.0))
    >>> encoding.integers(np.array([[0.5], [-3.0], [9.0]])).tolist()
    [[1, 1, 0], [-1, 0, 1], [-1, 0, -1]]
    """

    look: CutLook
    cuts: tuple[float, ...]
    scale: int = 1

    kind: ClassVar[str] = "cuts"

    def __post_init__(self) -> None:
        cuts = tuple(_check.real("a cut", cut) for cut in self.cuts)
        object.__setattr__(self, "cuts", cuts)
        _check.count("scale", self.scale, most=1 << FINEST)
        count = len(cuts) + 1
        if count < 2 or count & (count - 1) or self.levels > MOST_LEVELS:
            raise InvalidInput(f"there must be 1, 3, 7, … or {(1 << MOST_LEVELS) - 1} cuts.")
        if any(after < before for before, after in itertools.pairwise(cuts)):
            raise InvalidInput("cuts must be in ascending order.")

    @property
    def levels(self) -> int:
        """h."""
        return len(self.cuts).bit_length()

    @property
    def record_dim(self) -> int:
        return self.look.record_dim

    @property
    def sensitivity(self) -> Sensitivity:
        """Two cells differ most if they are on different sides of the root.

        Its number moves by 2·scale then, and of every further level two numbers by scale each.
        """
        h = self.levels
        length = root_up(Fraction((2 * h + 2) * self.scale**2))
        return Sensitivity(len(self.cuts), Fraction(2 * h * self.scale), length)

    @property
    def low(self) -> int:
        """In the right half."""
        return -self.scale

    @property
    def high(self) -> int:
        """In the left half."""
        return self.scale

    @property
    def unit(self) -> Fraction:
        """A record counts 1."""
        return Fraction(1, self.scale)

    def cells(self, records: Floats) -> Integers:
        """The cell of every record, of shape (people,)."""
        found = np.searchsorted(np.array(self.cuts), self.look.values(records), side="left")
        return np.asarray(found, np.int64)

    def at(self, bits: int) -> Self:
        """Finer counts, for finer noise: see `Encoding`."""
        return replace(self, scale=1 << (bits - 1))

    def integers(self, records: Floats, words: Words = system_words) -> Integers:
        """The signs of the halves a record is in, of shape (people, numbers): see `Encoding`."""
        cells, h = self.cells(records), self.levels
        found = np.zeros((len(cells), len(self.cuts)), np.int64)
        rows = np.arange(len(cells))
        for level in range(h):
            below = cells >> (h - level - 1)
            found[rows, (1 << level) - 1 + (below >> 1)] = self.scale * (1 - 2 * (below & 1))
        return found


def padded(cuts: Sequence[float], levels: int) -> tuple[float, ...]:
    """2^levels − 1 cuts: these, and the last of them as often as it takes."""
    return (*cuts, *[cuts[-1]] * ((1 << levels) - 1 - len(cuts)))
