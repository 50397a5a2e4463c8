"""Counts of cells from noisy counts of blocks of several sizes, by least squares.

Blocks of every size are counted with independent noise of the same variance; each size divides the
next, and the number of all people is known. The best linear estimates without bias follow in two
passes: upwards a block's own count is averaged with the sum of its parts, downwards what the parts
lack is dealt out among them. In the same way, but for two ends instead of all cells, their errors
are found. docs/proofs/shuffle-sums.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from muhat._arrays import Floats, Integers
from muhat.errors import InvalidInput

MOST_SIZES = 6
"""More sizes of blocks gain next to nothing for any number of cells that there can be."""


@dataclass(frozen=True)
class BlockTree:
    """`cells` in blocks of `sizes`, which begin with 1 and ascend, each a divisor of the next.

    The last block of a size may have fewer cells than others, and variances are multiples of that
    of one count.

    >>> tree = BlockTree(cells=4, sizes=(1, 2))
    >>> tree.smoothed([np.array([1.0, 1, 0, 3]), np.array([2.0, 3])], 5).tolist()
    [1.0, 1.0, 0.0, 3.0]
    >>> tree.variance(np.array([0, 0]), np.array([2, 3])).round(3).tolist()
    [0.333, 0.583]
    """

    cells: int
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        steps = itertools.pairwise(self.sizes)
        chain = all(after > size and after % size == 0 for size, after in steps)
        if self.sizes[:1] != (1,) or not chain or self.sizes[-1] >= self.cells:
            raise InvalidInput("blocks must begin with single cells, each size dividing the next.")

    @property
    def padded(self) -> int:
        """The cells of all blocks together, some of which nobody can be in."""
        return -(-self.cells // self.sizes[-1]) * self.sizes[-1]

    @property
    def _steps(self) -> list[tuple[int, int]]:
        """Every size and that of the blocks which hold it, all cells at last."""
        return list(itertools.pairwise((*self.sizes, self.padded)))

    @cached_property
    def weights(self) -> list[Floats]:
        """The variance of every block's count, as far as its own parts tell, a size each."""
        found = [(np.arange(self.padded) < self.cells).astype(np.float64)]
        for size, parent in self._steps[:-1]:
            parts = found[-1].reshape(-1, parent // size).sum(axis=1)
            found.append(parts / (1 + parts))
        return found

    def smoothed(self, counted: Sequence[Floats], people: int) -> Floats:
        """The counts of the cells from those of all blocks, a size each, of shape (cells,)."""
        below = [np.where(self.weights[0] > 0, counted[0], 0.0)]
        for own, (size, parent) in zip(counted[1:], self._steps, strict=False):
            sums = below[-1].reshape(-1, parent // size).sum(axis=1)
            parts = self.weights[len(below) - 1].reshape(-1, parent // size).sum(axis=1)
            below.append((parts * own + sums) / (1 + parts))
        found = np.array([float(people)])
        for estimate, weights, (size, parent) in reversed(
            list(zip(below, self.weights, self._steps, strict=True))
        ):
            tile, weight = (each.reshape(-1, parent // size) for each in (estimate, weights))
            lacking = found - tile.sum(axis=1)
            found = (tile + weight * _ratio(lacking, weight.sum(axis=1))[:, None]).reshape(-1)
        return found[: self.cells]

    def variance(self, starts: Integers, ends: Integers) -> Floats:
        """Of the estimated counts of the cells from starts to ends − 1, of their shape.

        Given the count of a block, that of its cells before a cut has the mean α·count and some
        variance β; α and β of the blocks that a cut runs through follow from the smaller ones.
        """
        at_start, at_end, shared = _End(starts), _End(ends), np.zeros(len(starts))
        for weights, (size, parent) in zip(self.weights, self._steps, strict=True):
            sums = np.concatenate([[0.0], np.cumsum(weights)])
            one = at_start.inside(weights, sums, size, parent)
            other = at_end.inside(weights, sums, size, parent)
            same = starts // size == ends // size
            alike = np.where(same, one.before + at_start.part * other.crossed, one.sum)
            product = alike - one.sum * _ratio(other.sum, one.whole)
            shared = np.where(same, shared, 0.0)
            shared += np.where(starts // parent == ends // parent, product, 0.0)
            at_start.rise(one)
            at_end.rise(other)
        return np.maximum(at_start.variance + at_end.variance - 2 * shared, 0.0)

    @cached_property
    def average(self) -> float:
        """The mean of the variance over all ranges, from any edge of a cell to any other.

        Σ_{s<t} Var(P_s − P_t) = (u + 1)·Σ_t Var(P_t) − Var(Σ_t P_t) for the counts P of prefixes.
        """
        edges = np.arange(self.cells + 1)
        apart = len(edges) * float(self.variance(0 * edges, edges).sum())
        part = np.maximum(self.cells - np.arange(float(self.padded)), 0.0)
        together = 0.0
        for weights, (size, parent) in zip(self.weights, self._steps, strict=True):
            tile, weight = (each.reshape(-1, parent // size) for each in (part, weights))
            whole, mean = weight.sum(axis=1), (weight * tile).sum(axis=1)
            part = _ratio(mean, whole)
            together += float(np.sum((weight * tile**2).sum(axis=1) - mean * part))
        return (apart - together) / (len(edges) * self.cells / 2)


@dataclass(frozen=True)
class _Inside:
    """What a block's parts have before a cut: all of some, and a part of the one it crosses."""

    before: Floats
    crossed: Floats
    sum: Floats
    square: Floats
    whole: Floats


class _End:
    """A cut, on its way from single cells to all of them."""

    def __init__(self, cuts: Integers) -> None:
        self.cuts = cuts
        self.part = np.zeros(len(cuts))
        self.variance = np.zeros(len(cuts))

    def inside(self, weights: Floats, sums: Floats, size: int, parent: int) -> _Inside:
        """The parts of the block of the size `parent` that the cut runs through."""
        first, crossed = self.cuts // parent * (parent // size), self.cuts // size
        last = np.minimum(first + parent // size, len(weights))
        # The cut after the last cell runs through no block.
        weight = np.append(weights, 0.0)[crossed]
        before = sums[crossed] - sums[first]
        return _Inside(
            before,
            self.part * weight,
            before + self.part * weight,
            before + self.part**2 * weight,
            sums[last] - sums[first],
        )

    def rise(self, inside: _Inside) -> None:
        """To the blocks of the next size."""
        part = _ratio(inside.sum, inside.whole)
        self.variance += inside.square - inside.sum * part
        self.part = part


def _ratio(part: Floats, whole: Floats) -> Floats:
    """part/whole, and 0 where there is nothing."""
    return np.divide(part, whole, where=whole > 0, out=np.zeros(np.shape(whole)))


@lru_cache(maxsize=64)
def best_sizes(cells: int, count: int) -> BlockTree | None:
    """The tree of so many sizes, powers of two, with the least variance over all ranges.

    None if there are not so many.
    """
    powers = [1 << bit for bit in range(1, (cells - 1).bit_length())]
    chains = itertools.combinations(powers, count - 1)
    trees = (BlockTree(cells, (1, *chain)) for chain in chains)
    return min(trees, key=lambda tree: tree.average, default=None)
