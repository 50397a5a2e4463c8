"""How far off the estimated parts of the people in cells are: exact, given them.

The estimate is a sum over messages, so its variance is a sum over the sets of levels. For the first
t cells and a leaf that leaves the way to the cut at level D, the answer's part at the levels above
D is known, at D it has the other sign, and below D it is a random sign at every level of the set:
`_prefix_square` goes through them from the coarsest.

A range is the difference of two prefixes, which have noise in common: an answer's part of both is
a walk from the coarsest level of its set to the finest, driven by one sign for each end. The two
signs of a level are ±1 with means that follow from where the leaf of a record and the ways to both
ends part; `_range_square` adds up the cases. docs/proofs/local-ranges.md derives all of it.
"""

from __future__ import annotations

import numpy as np

from muhat._arrays import Floats, Integers
from muhat.protocols.encodings.range_levels import CellTree, LevelMix
from muhat.protocols.randomizers.frequency import SubsetResponse

State = tuple[Floats, Floats, Floats]
"""A walk's chance to be here, and the sum of its pieces and its square there, on average."""


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
            square = square + response.common * chance * _prefix_square(levels, pieces, parts)
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


def _prefix_square(levels: tuple[int, ...], pieces: list[Floats], parts: int) -> Floats:
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


def range_variance(
    tree: CellTree,
    mix: LevelMix,
    response: SubsetResponse,
    messages: Floats,
    density: Floats,
    starts: Integers,
    ends: Integers,
) -> Floats:
    """The variance of the estimated parts of the people in the cells from starts to ends − 1.

    All else is as for `prefix_variance`, which it is with the first cell as one end.
    """
    characters = messages @ mix.characters
    known = characters > 0
    scale = np.divide(1, response.attenuation * characters, where=known, out=np.zeros(len(known)))
    parting, signed = parted(tree, density), scale[:, None] * tree.slopes * turns(tree)
    asked = squares_of(tree, starts, ends)
    squares = scale[:, None] ** 2 * asked
    total = np.zeros(len(starts))
    for levels, count in zip(mix.sets, messages, strict=True):
        pieces = [2.0**rank * signed[level - 1] for rank, level in enumerate(levels)]
        noise = sum(2.0**rank * squares[level - 1] for rank, level in enumerate(levels))
        mean = sum(
            chance * mean_piece(levels, pieces, parts)
            for parts, chance in enumerate(parting, start=1)
        )
        moved = response.attenuation * (np.asarray(mean)[ends] - np.asarray(mean)[starts])
        together = _expected_square(tree, levels, pieces, parting, starts, ends)
        square = (response.power - response.common) * noise + response.common * together
        total += count * (square - moved**2)
    below = np.concatenate([[0.0], np.cumsum(density)])
    inside = below[ends] - below[starts]
    total -= inside * (1 - inside) / max(messages.sum(), 1)
    total[(asked[~known] > 0).any(axis=0)] = np.inf
    return np.maximum(total, 0.0)


def squares_of(tree: CellTree, starts: Integers, ends: Integers) -> Floats:
    """The square of what each level has of a range, of shape (levels, ranges)."""
    start, end = tree.slopes[:, starts], tree.slopes[:, ends]
    same = tree.nodes[:, starts] == tree.nodes[:, ends]
    return np.where(same, (end - start) ** 2, end**2 + start**2)


def _expected_square(
    tree: CellTree,
    levels: tuple[int, ...],
    pieces: list[Floats],
    parting: list[Floats],
    starts: Integers,
    ends: Integers,
) -> Floats:
    """Over the records and the random rows, of shape (ranges,)."""
    never = tree.levels + 1
    way = ways(tree)
    # The level at which the ways to the two ends part; the highest bit that tells them apart.
    apart = never - np.frexp((way[starts] ^ way[ends]).astype(np.float64))[1]
    first, last = [piece[starts] for piece in pieces], [piece[ends] for piece in pieces]
    total = np.zeros(len(starts))
    for parts in range(1, never + 1):
        level = np.full(len(starts), parts)
        # A record leaves one way first, or both at the same node: never both where they part.
        chance = np.where((level != apart) | (apart == never), parting[parts - 1][starts], 0.0)
        total += chance * _range_square(levels, first, last, level, np.minimum(level, apart), apart)
        chance = np.where(level > apart, parting[parts - 1][ends], 0.0)
        total += chance * _range_square(levels, first, last, apart, level, apart)
    return total


def _range_square(
    levels: tuple[int, ...],
    first: list[Floats],
    last: list[Floats],
    from_start: Integers,
    from_end: Integers,
    apart: Integers,
) -> Floats:
    """The expected square of all characters' sum, for a leaf that parts at these levels."""
    nothing = np.zeros(len(apart))
    both: State = (nothing + 1, nothing, nothing)
    at_start: State = (nothing, nothing, nothing)
    at_end: State = (nothing, nothing, nothing)
    over = nothing
    for level, start, end in zip(levels, first, last, strict=True):
        mean, other, product = (_sign(level, each) for each in (from_start, from_end, apart))
        # After a −1 the finer characters of that end cancel each other.
        over = (
            over
            + _moved(both, start - end, (1 - mean - other + product) / 4)[2]
            + _moved(at_start, start, (1 - mean) / 2)[2]
            + _moved(at_end, -end, (1 - other) / 2)[2]
        )
        at_start = _added(
            _moved(at_start, -start, (1 + mean) / 2),
            _moved(both, -start - end, (1 + mean - other - product) / 4),
        )
        at_end = _added(
            _moved(at_end, end, (1 + other) / 2),
            _moved(both, start + end, (1 - mean + other - product) / 4),
        )
        both = _moved(both, end - start, (1 + mean + other + product) / 4)
    return over + both[2] + at_start[2] + at_end[2]


def _sign(level: int, parts: Integers) -> Floats:
    """The mean of a row's sign for two leaves that part at this level: 1, then −1, then 0."""
    return np.where(level < parts, 1.0, np.where(level == parts, -1.0, 0.0))


def _moved(state: State, piece: Floats, chance: Floats) -> State:
    here, mean, square = state
    return (
        chance * here,
        chance * (mean + piece * here),
        chance * (square + 2 * piece * mean + piece**2 * here),
    )


def _added(one: State, other: State) -> State:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]
