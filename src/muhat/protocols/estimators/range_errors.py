"""How far off the estimated parts of the people in the first t cells are: exact, given them.

The estimate is a sum over messages, so its variance is a sum over the sets of levels. For a leaf
that leaves the way to the cut at level D, the answer's part at the levels above D is known, at D
it has the other sign, and below D it is a random sign at every level of the set: `_square` goes
through them from the coarsest. docs/proofs/local-ranges.md derives all of it.
"""

from __future__ import annotations

import numpy as np

from muhat._arrays import Floats, Integers
from muhat.protocols.encodings.range_levels import CellTree, LevelMix
from muhat.protocols.randomizers.frequency import SubsetResponse


def prefix_variance(
    tree: CellTree,
    mix: LevelMix,
    response: SubsetResponse,
    messages: Floats,
    density: Floats,
) -> Floats:
    """The variance of every estimated prefix, given the records, of shape (u + 1,).

    It is exact up to a factor 1 + O(1/n) for n records of which `density`, of shape (u,), lie in
    the cells, if the records are dealt to the messages at random. `messages` is how many speak
    about each set of levels, of shape (sets,), whole or expected. Where a level that is needed has
    no message, it is infinite.
    """
    characters = messages @ mix.characters
    known = characters > 0
    scale = np.divide(1, response.attenuation * characters, where=known, out=np.zeros(len(known)))
    parting = parted(tree, density)
    steps = scale[:, None] * tree.slopes * turns(tree)
    total = np.zeros(tree.cells + 1)
    for levels, count in zip(mix.sets, messages, strict=True):
        pieces = [2.0**rank * steps[level - 1] for rank, level in enumerate(levels)]
        noise = sum(piece**2 / 2.0**rank for rank, piece in enumerate(pieces))
        square = (response.power - response.common) * noise
        mean = np.zeros(tree.cells + 1)
        for parts, chance in enumerate(parting, start=1):
            square = square + response.common * chance * _square(levels, pieces, parts)
            mean += response.attenuation * chance * mean_piece(levels, pieces, parts)
        total += count * (square - mean**2)
    below = np.concatenate([[0.0], np.cumsum(density)])
    total -= below * (1 - below) / max(messages.sum(), 1)
    total[(tree.slopes[~known] > 0).any(axis=0)] = np.inf
    return np.maximum(total, 0.0)


def parted(tree: CellTree, density: Floats) -> list[Floats]:
    """What part of the records leaves the way to each cut at level D = 1 … h, or never (h + 1)."""
    filled = np.zeros((1 << tree.levels) + 1)
    filled[tree.leaves(np.arange(tree.cells)) + 1] = density
    below = np.cumsum(filled)
    leaves = ways(tree)
    found = []
    for level in range(1, tree.levels + 1):
        width = 1 << tree.levels - level
        sibling = (leaves // width ^ 1) * width
        found.append(below[sibling + width] - below[sibling])
    return [*found, below[leaves + 1] - below[leaves]]


def turns(tree: CellTree) -> Floats:
    """+1 where the way to a cut goes left, −1 where it goes right, of shape (levels, u + 1)."""
    bits = ways(tree) >> np.arange(tree.levels)[::-1, None] & 1
    return np.where(bits == 1, -1.0, 1.0)


def ways(tree: CellTree) -> Integers:
    """The leaf after each cut; the last cut, which runs through no node, has the last leaf."""
    return np.minimum(tree.cuts, (1 << tree.levels) - 1)


def mean_piece(levels: tuple[int, ...], pieces: list[Floats], parts: int) -> Floats:
    """The expected sum of the pieces, over the random rows."""
    total = np.zeros_like(pieces[0])
    for level, piece in zip(levels, pieces, strict=True):
        if level <= parts:
            total += piece if level < parts else -piece
    return total


def _square(levels: tuple[int, ...], pieces: list[Floats], parts: int) -> Floats:
    """The expected square of the sum of all characters, each at its sign for the leaf."""
    sum_so_far = np.zeros_like(pieces[0])
    expected, chance = np.zeros_like(pieces[0]), 1.0
    for level, piece in zip(levels, pieces, strict=True):
        if level < parts:
            sum_so_far = sum_so_far + piece
        elif level == parts:
            return np.square(sum_so_far - piece)
        else:
            # The characters of finer levels cancel each other if this sign is −1.
            chance /= 2
            expected += chance * (sum_so_far - piece) ** 2
            sum_so_far = sum_so_far + piece
    return expected + chance * sum_so_far**2
