"""What the server makes of people's answers: how many are in cells, ranges and quantiles.

At every node of the tree the answers tell, without bias, how much more of the people are in its
left half than in its right half. With all of them at the root these differences give the part of
the people in every node, and those of a node's halves add up to its own: nothing is left to be made
consistent, since every message that speaks of a node, whichever levels it spoke of, has been
counted with the weight of generalised least squares. docs/proofs/local-ranges.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muhat import _check
from muhat._arrays import Bytes, Floats, Integers
from muhat.data.rotation import transform
from muhat.errors import InvalidInput
from muhat.protocols.encodings.range_cells import drawn_numbers
from muhat.protocols.encodings.range_levels import CellTree, LevelMix
from muhat.protocols.estimators.range_errors import prefix_variance
from muhat.protocols.randomizers.frequency import SubsetResponse
from muhat.protocols.randomizers.randomizer import Randomizer
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer
from muhat.release.quantile_grids import AnyGrid


@dataclass(frozen=True, eq=False, repr=False)
class RangeCounts:
    """Estimated parts of the people in ranges of cells; they have errors, and may be negative.

    They are of those whose messages arrived. `monotone`, `density` and `quantile` repair what
    cannot be; all else is unbiased, given that there is a message about every level.
    """

    grid: AnyGrid
    mix: LevelMix
    response: SubsetResponse
    messages: Floats
    """How many speak about each set of levels, of shape (sets,)."""
    differences: Floats
    """Left half less right half of the node 2^(level−1) + place, of shape (2^h,); [0] is unused."""

    @cached_property
    def tree(self) -> CellTree:
        """The cells of the grid as leaves."""
        return CellTree(self.grid.cells)

    @property
    def users(self) -> int:
        """How many messages there were."""
        return int(self.messages.sum())

    def prefix(self) -> Floats:
        """The part of the people in the first t cells for t = 0 … u, of shape (u + 1,)."""
        tree = self.tree
        places = tree.nodes + (1 << np.arange(tree.levels))[:, None]
        parts = tree.cuts / (1 << tree.levels)
        return np.asarray(parts + (tree.slopes * self.differences[places]).sum(axis=0))

    def histogram(self) -> Floats:
        """The part of the people in every cell, of shape (u,)."""
        return np.diff(self.prefix())

    def standard_error(self) -> Floats:
        """Of every prefix, of shape (u + 1,), given the records; with estimated parts put in."""
        variance = prefix_variance(
            self.tree, self.mix, self.response, self.messages, self.density()
        )
        return np.sqrt(variance)

    def monotone(self) -> Floats:
        """A prefix that never falls, from 0 to 1, of shape (u + 1,).

        From the root down, a half that would have less than nothing, or more than its node, gets
        nothing, or all. Where people are few this takes most of the noise away.
        """
        parts = np.ones(1)
        for level in range(self.tree.levels):
            wanted = self.differences[1 << level : 2 << level]
            moved = np.clip(wanted, -parts, parts)
            parts = np.stack([parts + moved, parts - moved], axis=1).reshape(-1) / 2
        below = np.concatenate([[0.0], np.cumsum(parts)])[self.tree.cuts]
        # The sum of all parts is 1 but for rounding.
        return np.asarray(np.minimum(below / below[-1], 1.0))

    def density(self) -> Floats:
        """The parts of the cells that `monotone` gives: none is negative, together they are 1."""
        return np.diff(self.monotone())

    def quantile(self, q: float) -> float:
        """The least value of the grid that the part q of the people does not exceed."""
        return self.grid.value(self.quantile_cell(q))

    def quantile_cell(self, q: float) -> int:
        """The first cell up to which the monotone prefix reaches q, from 0 to 1."""
        q = _check.real("q", q)
        if not 0 <= q <= 1:
            raise InvalidInput("must lie between 0 and 1", parameter="q", value=f"{q:g}")
        return int(np.searchsorted(self.monotone()[1:], q, side="left"))

    def __repr__(self) -> str:
        return f"RangeCounts({self.users} messages, {self.grid.cells} cells)"


def range_counts(randomizer: Randomizer, nonces: Bytes, payloads: Bytes) -> RangeCounts:
    """The counts of the only number that was looked at, from valid messages in any order."""
    found = several_range_counts(randomizer, nonces, payloads)
    if len(found) != 1:
        raise InvalidInput(f"{len(found)} numbers were looked at; use several_range_counts().")
    return found[0]


def several_range_counts(
    randomizer: Randomizer, nonces: Bytes, payloads: Bytes
) -> tuple[RangeCounts, ...]:
    """The counts of each of the numbers that were looked at."""
    if not isinstance(randomizer, RangeRandomizer):
        raise InvalidInput("the round's randomizer does not count.")
    numbers, mix, response = randomizer.look.numbers, randomizer.mix, randomizer.response
    about = drawn_numbers(randomizer.look, nonces)
    sets = len(mix.sets)
    drawn = np.bincount(about * sets + mix.drawn(nonces), minlength=numbers * sets)
    messages = drawn.reshape(numbers, sets).astype(np.float64)
    sums = _node_sums(randomizer, about, nonces, payloads)
    level = np.repeat(np.arange(mix.levels), 1 << np.arange(mix.levels))
    found = []
    for count, sum_of in zip(messages, sums, strict=True):
        weights = (response.attenuation * (count @ mix.characters))[level]
        differences = np.zeros(1 << mix.levels)
        np.divide(sum_of[1:], weights, out=differences[1:], where=weights > 0)
        found.append(RangeCounts(randomizer.grid, mix, response, count, differences))
    return tuple(found)


def _node_sums(
    randomizer: RangeRandomizer, about: Integers, nonces: Bytes, payloads: Bytes
) -> Floats:
    """Σ over messages of φ·(sign of its row at the node), of shape (numbers, 2^h).

    Whole numbers below 2^53 add up exactly, in whatever order the messages come.
    """
    mix, response = randomizer.mix, randomizer.response
    rows, levels = mix.rows(nonces), np.array(mix.sets)[mix.drawn(nonces)]
    size = 1 << mix.levels
    table = np.zeros(randomizer.look.numbers * size)
    for character in range(1, response.buckets):
        parts = [bit for bit in range(mix.bits) if character >> bit & 1]
        row = np.bitwise_xor.reduce(rows[:, parts], axis=1)
        # Without the bit of its finest level, a row is a Walsh function of that level's nodes.
        places = (row | size) >> (mix.levels + 1 - levels[:, parts[-1]])
        values = response.characters[payloads[:, 0], character]
        table += np.bincount(about * size + places, values, minlength=len(table))
    sums = table.reshape(-1, size)
    for level in range(mix.levels):
        nodes = slice(1 << level, 2 << level)
        tile = np.ascontiguousarray(sums[:, nodes].T)
        transform(tile)
        sums[:, nodes] = tile.T
    return sums
