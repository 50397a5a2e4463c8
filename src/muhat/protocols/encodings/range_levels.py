"""The tree of cells, and which of its levels a message speaks about.

Cells 0 … u − 1 are spread over the 2^h leaves of a binary tree, h = ⌈log₂ u⌉; the bits of a leaf,
from the first, are the ways taken at the levels 1 … h. A message is about b levels
a_1 < … < a_b, drawn publicly, and each has a *row* r_i: the bit of its own level, and random bits
of the levels above it. Together they are a public linear hash

    leaf x ↦ bucket (⟨r_1, x⟩, …, ⟨r_b, x⟩) of b bits.

A character of the bucket, the parity of some of these bits, is one Walsh function of the leaf: the
sum of the rows, whose last bit is that of the finest level among them. Averaged over the random
bits above, it tells left from right below the node that holds the leaf: a Haar wavelet. So this
is Haar with Hadamard response for b = 1 (Cormode, Kulkarni and Srivastava 2019), k-ary response
for b = h, and hierarchical histograms over any tree with 2, 4, 8 … branches are mixtures of such
sets of levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Bytes, Floats, Integers
from muhat._plain import Plain
from muhat.errors import InvalidInput

MOST_LEVELS = 20
MOST_BITS = 8
MOST_SETS = 1 << 12
WEIGHT_BITS = 32
ROW_BITS = 64


@dataclass(frozen=True)
class CellTree:
    """u cells, in order, on the leaves of a binary tree, spread over its nodes as evenly as can be.

    >>> tree = CellTree(3)
    >>> tree.levels, tree.leaves(np.arange(3)).tolist(), tree.cuts.tolist()
    (2, [0, 1, 2], [0, 1, 2, 4])
    """

    cells: int

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "cells", _check.count("cells", self.cells, least=2, most=1 << MOST_LEVELS)
        )

    @property
    def levels(self) -> int:
        """h = ⌈log₂ u⌉."""
        return (self.cells - 1).bit_length()

    def leaves(self, cells: Integers) -> Integers:
        """⌊cell·2^h/u⌋: the leaf of every cell."""
        return (cells << self.levels) // self.cells

    @cached_property
    def cuts(self) -> Integers:
        """Where the first t cells end among the leaves, of shape (u + 1,).

        If a leaf without a cell leaves two places for the cut, it is at the even one, which lies
        between two nodes of the level above.
        """
        cuts = self.leaves(np.arange(self.cells + 1))
        spare = np.diff(cuts, prepend=-1) > 1
        return np.where(spare & (cuts % 2 == 1), cuts - 1, cuts)

    @cached_property
    def slopes(self) -> Floats:
        """m_j(t), of shape (levels, u + 1): the first t cells hold cuts[t]/2^h + Σ_j m_j·δ_j.

        δ_j is what the left half of the node at level j that the cut runs through has more than
        its right half; m is the distance of the cut to the nearer end of the node, over its width.
        """
        widths = self._widths[:, None]
        places = self.cuts % widths
        return np.asarray(np.minimum(places, widths - places) / widths)

    @cached_property
    def nodes(self) -> Integers:
        """The node at each level that a cut runs through, of shape (levels, u + 1)."""
        inside = np.minimum(self.cuts, (1 << self.levels) - 1)
        return np.asarray(inside // self._widths[:, None])

    @property
    def _widths(self) -> Integers:
        """How many leaves a node has, from the root (level 1) on."""
        return 1 << np.arange(self.levels, 0, -1)


@dataclass(frozen=True)
class LevelMix(Plain):
    """Sets of levels, all of the same size, and how often each is drawn.

    >>> mix = LevelMix(levels=2, sets=((1,), (2,)), weights=(1 << 31, 1 << 31))
    >>> mix.bits, mix.averages.tolist(), mix.apart(1), mix.apart(2)
    (1, [0.5, 0.5], Fraction(3, 4), Fraction(1, 2))
    """

    levels: int
    sets: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]
    """Of 2^32, one for each set."""

    def __post_init__(self) -> None:
        levels = _check.count("levels", self.levels, most=MOST_LEVELS)
        if not 0 < len(self.sets) == len(self.weights) <= MOST_SETS:
            raise InvalidInput(f"there must be from 1 to {MOST_SETS} sets, each with a weight.")
        sets = tuple(
            tuple(_check.count("a level", level, most=levels) for level in each)
            for each in self.sets
        )
        weights = tuple(_check.count("a weight", each) for each in self.weights)
        if sum(weights) != 1 << WEIGHT_BITS:
            raise InvalidInput("the weights must add up to 2^32.")
        for each in sets:
            if not 0 < len(each) == len(sets[0]) <= MOST_BITS or sorted(set(each)) != list(each):
                raise InvalidInput(
                    f"sets must hold equally many levels, 1 to {MOST_BITS}, each once, in order."
                )
            if sum(each) - len(each) > ROW_BITS:
                raise InvalidInput(f"the rows of a set must not need more than {ROW_BITS} bits.")
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "sets", sets)
        object.__setattr__(self, "weights", weights)

    @property
    def bits(self) -> int:
        """b, the levels of a message and the bits of its bucket."""
        return len(self.sets[0])

    @cached_property
    def characters(self) -> Floats:
        """How many characters of a message are of each level, of shape (sets, levels).

        2^(i−1) for the i-th level of a set, from the coarsest.
        """
        table = np.zeros((len(self.sets), self.levels))
        for row, each in zip(table, self.sets, strict=True):
            row[np.array(each) - 1] = 2.0 ** np.arange(self.bits)
        return table

    @cached_property
    def chances(self) -> Floats:
        """The probability of every set, of shape (sets,)."""
        return np.array(self.weights) / (1 << WEIGHT_BITS)

    @property
    def averages(self) -> Floats:
        """The characters of each level in a message on average, of shape (levels,)."""
        return self.chances @ self.characters

    def apart(self, level: int) -> Fraction:
        """The chance of different buckets for two leaves whose ways part at this level."""
        together = Fraction(0)
        for each, weight in zip(self.sets, self.weights, strict=True):
            if level not in each:
                finer = sum(other > level for other in each)
                together += Fraction(weight, (1 << WEIGHT_BITS) << finer)
        return 1 - together

    def drawn(self, nonces: Bytes) -> Integers:
        """The set of every message, of shape (rows,): from bytes 4 to 7 of its nonce."""
        numbers = np.ascontiguousarray(nonces).view("<u4")[:, 1]
        return np.searchsorted(self._ends, numbers, side="right").astype(np.int64)

    def rows(self, nonces: Bytes) -> Integers:
        """The rows as masks of a leaf's bits, of shape (rows, b): from bytes 8 to 15."""
        drawn = self.drawn(nonces)
        stream = np.ascontiguousarray(nonces).view("<u8")[:, 1:]
        above = self._above[drawn]
        free = (stream >> self._starts[drawn]) & ((np.uint64(1) << above) - np.uint64(1))
        shift = np.uint64(self.levels - 1) - above
        return np.asarray((free << np.uint64(1) | np.uint64(1)) << shift).astype(np.int64)

    def buckets(self, leaves: Integers, nonces: Bytes) -> Integers:
        """The bucket of every leaf under the hash of its message, of shape (rows,)."""
        parities = np.bitwise_count(self.rows(nonces) & leaves[:, None]) & 1
        return np.asarray((parities.astype(np.int64) << np.arange(self.bits)).sum(axis=1))

    @cached_property
    def _ends(self) -> NDArray[np.uint64]:
        return np.cumsum(np.array(self.weights, np.uint64))

    @cached_property
    def _above(self) -> NDArray[np.uint64]:
        """How many levels lie above each of a set."""
        return np.array(self.sets, np.uint64) - np.uint64(1)

    @cached_property
    def _starts(self) -> NDArray[np.uint64]:
        return np.cumsum(self._above, axis=1, dtype=np.uint64) - self._above
