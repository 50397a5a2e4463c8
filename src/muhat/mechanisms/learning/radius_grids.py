"""Public radii that a search chooses from: geometric ones, or roots of whole numbers.

A search reads how many records lie within each radius. Geometric radii are few enough for one
pass; roots of whole numbers take one for every dozen rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat._plain import Key, Plain
from muhat.mechanisms.quantiles.noisy_search import MOST_ROUNDS, NoisySearch

SMALLEST = 2.0**-42
"""The least geometric radius, as a part of the largest: what records that are all equal get."""

NORMAL_CELLS, PURE_CELLS = 4096, 256
"""How many geometric radii there are: with pure noise every round costs more."""

_BITS = 12
"""Rounds that one pass serves."""

CountWithin = Callable[[Floats], NDArray[np.int64]]
"""A pass: how many records have a length in each cell between the given radii, the last cell
all that are longer, too."""


class RadiusGrid(Protocol):
    """Radii in ascending order, and a way to search them."""

    @property
    def cells(self) -> int:
        """How many radii there are."""

    def find(self, search: NoisySearch, total: int, rank: int, count: CountWithin) -> float:
        """The radius of the record of this rank among all, by a search over the cells."""

    def to_dict(self) -> dict[str, Any]:
        """The grid as plain data."""


@dataclass(frozen=True, eq=False)
class Radii(Plain):
    """Listed radii, of shape (cells,)."""

    edges: Floats

    @property
    def cells(self) -> int:
        """How many radii there are."""
        return len(self.edges)

    def find(self, search: NoisySearch, total: int, rank: int, count: CountWithin) -> float:
        """One pass, then all rounds."""
        return float(self.edges[search.find(count(self.edges), rank)])


def geometric_radii(largest: float, smallest: float | None = None, *, pure: bool) -> Radii:
    """Radii a fixed ratio apart, up to the largest."""
    low = largest * SMALLEST if smallest is None else min(smallest, largest / 2)
    return Radii(np.geomspace(low, largest, PURE_CELLS if pure else NORMAL_CELLS))


@dataclass(frozen=True)
class SquaredLengths(Plain, keys=(Key("largest_square", text=True), "cells")):
    """√0, √1, …, √largest_square: the lengths of vectors of whole numbers.

    Beyond 2^62 whole numbers, only every 2^k-th: floats do not tell those between apart.
    """

    largest_square: int

    @property
    def _block_bits(self) -> int:
        return max(self.largest_square.bit_length() - MOST_ROUNDS + 1, 0)

    @property
    def cells(self) -> int:
        """largest_square + 1, or as many blocks as cover them."""
        return (self.largest_square >> self._block_bits) + 1

    def find(self, search: NoisySearch, total: int, rank: int, count: CountWithin) -> float:
        """A pass for every dozen rounds, each within the cells that the last one left."""
        walk = search.start(total, rank)
        while walk.rounds_left:
            taken = min(_BITS, walk.rounds_left)
            behind = walk.rounds_left - taken
            # The last cell of every block, after the one before all of them if there is one.
            cells = [walk.left - 1 + (block << behind) for block in range((1 << taken) + 1)]
            before = 0 if walk.left else 1
            counts = count(np.array([self._edge(cell) for cell in cells[before:]]))
            walk.descend(0 if before else int(counts[0]), counts[1 - before :], taken)
        return self._radius(walk.cell)

    def _radius(self, cell: int) -> float:
        """The length of the longest vector in a cell."""
        return math.sqrt(((cell + 1) << self._block_bits) - 1)

    def _edge(self, cell: int) -> float:
        """A float whose square is not below that length's, and below the next whole number's."""
        radius = self._radius(cell)
        return math.nextafter(radius, math.inf) if radius else 0.0
