"""How far off the estimated part of the people in a range of cells is: exact, given them.

A range is the difference of two prefixes, which have noise in common: an answer's part of both is
a walk from the coarsest level of its set to the finest, driven by one sign for each end. The two
signs of a level are ±1 with means that follow from where the leaf of a record and the ways to both
ends part; `_square` adds up the cases. With the first cell as one end it is `prefix_variance`.
docs/proofs/local-ranges.md derives all of it.
"""

from __future__ import annotations

import numpy as np

from muhat._arrays import Floats, Integers
from muhat.protocols.encodings.range_levels import CellTree, LevelMix
from muhat.protocols.estimators.range_errors import mean_piece, parted, turns, ways
from muhat.protocols.randomizers.frequency import SubsetResponse

State = tuple[Floats, Floats, Floats]
"""A walk's chance to be here, and the sum of its pieces and its square there, on average."""


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

    All else is as for `prefix_variance`.
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
        total += chance * _square(levels, first, last, level, np.minimum(level, apart), apart)
        chance = np.where(level > apart, parting[parts - 1][ends], 0.0)
        total += chance * _square(levels, first, last, apart, level, apart)
    return total


def _square(
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
