"""Cells of a line as counts, in blocks of several sizes: histograms, dyadic trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from muhat import _check
from muhat._arrays import Floats, Integers
from muhat._integers import root_up
from muhat._plain import Key
from muhat.errors import InvalidInput
from muhat.noise.entropy import Words, system_words
from muhat.protocols.encodings.encoding import FINEST, Encoding, Sensitivity
from muhat.protocols.encodings.equal_cells import EqualCells

MOST_NUMBERS = 1 << 20
MOST_CELLS = 1 << 40


@dataclass(frozen=True)
class TreeEncoding(Encoding, keys=("cells", "blocks", "dim", "scale", Key("look", optional=True))):
    """Cells of a line, for each of `dim` coordinates, counted in blocks of several sizes.

    A record has a cell from 0 to cells − 1 a coordinate: outside it is clipped, a missing one is
    in the middle. For every coordinate and every size in `blocks`, a divisor of `cells`, there
    are cells/size numbers: `scale` for the block that holds the cell, 0 for the others. With
    blocks of one cell alone it is a histogram. With a `look` a record has a number a coordinate
    instead, and its cell is that of the look, which has at most as many.

    >>> TreeEncoding(cells=4, blocks=(1, 2)).integers(np.array([[3.0]])).tolist()
    [[0, 0, 0, 1, 0, 1]]
    """

    cells: int
    blocks: tuple[int, ...]
    dim: int = 1
    scale: int = 1
    look: EqualCells | None = None

    kind: ClassVar[str] = "tree"

    def __post_init__(self) -> None:
        limits = {"cells": (2, MOST_CELLS), "dim": (1, MOST_NUMBERS), "scale": (1, 1 << FINEST)}
        for name, (least, most) in limits.items():
            number = _check.count(name, getattr(self, name), least=least, most=most)
            object.__setattr__(self, name, number)
        sizes = tuple(_check.count("a block", size, most=self.cells // 2) for size in self.blocks)
        object.__setattr__(self, "blocks", sizes)
        for size in sizes:
            if self.cells % size:
                raise InvalidInput(f"blocks must divide the {self.cells} cells; got {size}.")
        if not self.blocks or len(set(self.blocks)) != len(self.blocks):
            raise InvalidInput("blocks must be different sizes, at least one.")
        if self.dim * sum(self.widths) > MOST_NUMBERS:
            raise InvalidInput(f"a tree must have at most {MOST_NUMBERS} numbers.")
        if self.look is not None and self.look.cells > self.cells:
            raise InvalidInput("the tree must have at least as many cells as its look.")

    @property
    def widths(self) -> tuple[int, ...]:
        """How many blocks there are of every size."""
        return tuple(self.cells // size for size in self.blocks)

    @property
    def record_dim(self) -> int:
        return self.dim

    @property
    def sensitivity(self) -> Sensitivity:
        """A replaced record moves two blocks of each size, for each coordinate."""
        moved = 2 * self.dim * len(self.blocks)
        length = root_up(Fraction(moved * self.scale**2))
        return Sensitivity(self.dim * sum(self.widths), Fraction(moved * self.scale), length)

    @property
    def low(self) -> int:
        """Not in the block."""
        return 0

    @property
    def high(self) -> int:
        """In the block."""
        return self.scale

    @property
    def unit(self) -> Fraction:
        """A record counts 1."""
        return Fraction(1, self.scale)

    def at(self, bits: int) -> Self:
        """Finer counts, for finer noise: see `Encoding`."""
        return replace(self, scale=1 << (bits - 1))

    def integers(self, records: Floats, words: Words = system_words) -> Integers:
        """The blocks that hold a record, of shape (people, numbers): see `Encoding`."""
        cells = self._cells(records)
        people, width = len(cells), sum(self.widths)
        found = np.zeros((people, self.dim, width), np.int64)
        rows, columns = np.arange(people)[:, None], np.arange(self.dim)
        start = 0
        for size, count in zip(self.blocks, self.widths, strict=True):
            found[rows, columns, start + cells // size] = self.scale
            start += count
        return found.reshape(people, self.dim * width)

    def _cells(self, records: Floats) -> Integers:
        if self.look is not None:
            return self.look.codes(records)
        with np.errstate(invalid="ignore"):
            cells = np.clip(np.floor(records), 0, self.cells - 1)
        return np.where(np.isfinite(records), cells, self.cells // 2).astype(np.int64)

    def counts(self, sums: Sequence[int]) -> list[Floats]:
        """How many records every block holds, from the sums: of shape (dim, blocks) a size."""
        whole = np.array(sums, np.float64).reshape(self.dim, -1) / self.scale
        return np.split(whole, np.cumsum(self.widths)[:-1], axis=1)
