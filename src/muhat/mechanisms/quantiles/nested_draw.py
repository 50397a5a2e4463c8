"""Cells that divide records, and divide what lies on either side again, from their exact law.

A *division* is a cell c and a rank r of it, F(c − 1) ≤ r ≤ F(c): r records lie below, of which some
may be equal to others above. One of a cell with K records is drawn with probability

    ∝ exp(−E(r)/2^54)/(K + 1),      E(r) = max(⌊h·(r − a)⌋, ⌊h·(a − r)⌋),

where a is the number of records that should lie below: as if every record had a place within its
cell by lot, and the border another one. Weights are enclosed between integers, and a uniform number
gets as many bits as it takes to fall between two of them. No float takes part.
Proof: docs/proofs/choices-by-rank.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, repeat
from typing import NamedTuple

import numpy as np

from muhat.mechanisms.quantiles.nested_turns import Turn
from muhat.mechanisms.quantiles.rank_choice import enclosed_index
from muhat.mechanisms.quantiles.search_walk import Counts
from muhat.noise import FRACTION_BITS
from muhat.noise.discrete import coins, uniform_below
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.exact import exponential, multiply

PRECISION = 2 * WORD_BITS
"""Of weights, at first: ranks are looked at that weigh e^−128 of the best or more."""


def chosen_in_turn(
    up_to: Counts, turns: Sequence[Turn], rates: Sequence[int], words: Words = system_words
) -> list[int]:
    """The cells of all quantiles, ascending: each among the records that earlier ones left it.

    >>> from muhat.mechanisms.quantiles.nested_turns import turns_of
    >>> turns = turns_of((Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)))
    >>> chosen_in_turn(np.array([0, 2, 2, 4, 8]), turns, [1 << 70] * 3)[1:]
    [3, 4]
    """
    parts = {(0, len(turns) + 1): (0, up_to)}
    cells = [0] * len(turns)
    for turn, rate in zip(turns, rates, strict=True):
        first, mine = parts.pop((turn.below, turn.above))
        cell, rank = division(mine, turn.target(int(mine[-1])), rate, words)
        parts[turn.below, turn.place] = first, np.minimum(mine[: cell + 1], rank)
        parts[turn.place, turn.above] = first + cell, mine[cell:] - rank
        cells[turn.place - 1] = first + cell
    return cells


def division(
    up_to: Counts, target: Fraction, rate: int, words: Words = system_words
) -> tuple[int, int]:
    """A cell and a rank of it, from their exact law at 2^54·η = `rate`."""
    bits, drawn, precision = 0, 0, PRECISION
    while True:
        drawn, bits = drawn << WORD_BITS | int(words(1)[0]), bits + WORD_BITS
        ranks, lower, upper = _heights(up_to, target, rate, precision)
        index = enclosed_index(drawn, bits, lower, upper)
        if index is not None:
            return ranks[index].draw(words), ranks[index].rank
        precision *= 2


class CellsOfRank(NamedTuple):
    """The cells that have a rank: `first`, which ends with it, empty ones, and `last`.

    Within a cell both are the same. `before` and `behind` are K + 1 of the two.
    """

    rank: int
    first: int
    last: int
    before: int
    behind: int

    @classmethod
    def of(cls, up_to: Counts, ranks: Counts) -> list[CellsOfRank]:
        """Those with F(c − 1) ≤ r ≤ F(c), for every rank r."""
        first = np.searchsorted(up_to, ranks, "left")
        last = np.minimum(np.searchsorted(up_to, ranks, "right"), len(up_to) - 1)
        before, behind = (
            up_to[cells] - np.where(cells, up_to[cells - 1], 0) + 1 for cells in (first, last)
        )
        columns = [each.tolist() for each in (ranks, first, last, before, behind)]
        return [cls(*each) for each in zip(*columns, strict=True)]

    @property
    def weight(self) -> tuple[int, int]:
        """Σ 1/(K + 1), as numerator and denominator."""
        if self.first == self.last:
            return 1, self.before
        both = self.before * self.behind
        return self.before + self.behind + (self.last - self.first - 1) * both, both

    def draw(self, words: Words) -> int:
        """A cell, with probability ∝ 1/(K + 1)."""
        left, _ = self.weight
        if self.first == self.last or coins(Fraction(self.behind, left), 1, words)[0]:
            return self.first
        if coins(Fraction(self.before, left - self.behind), 1, words)[0]:
            return self.last
        return self.first + 1 + uniform_below(self.last - self.first - 1, words)


def _heights(
    up_to: Counts, target: Fraction, rate: int, precision: int
) -> tuple[list[CellsOfRank], list[int], list[int]]:
    """Ranks, and enclosures of 0, w_0, w_0 + w_1, … and of all, as integers over 2^precision.

    Ranks beyond weigh less than 2^−precision in the average of a cell.
    """
    total, reach = int(up_to[-1]), precision << FRACTION_BITS
    below, above = math.floor(rate * target), math.floor(-rate * target)
    middle = min(max(math.floor(target), 0), total)
    after = min(middle + 1, total)

    def exponent(rank: int) -> int:
        return max(rate * rank + above, below - rate * rank)

    least = min(exponent(middle), exponent(after))
    first = min(max(-((least + reach - below) // rate), 0), middle)
    last = max(min((least + reach - above) // rate, total), after)
    ratio = exponential(rate, FRACTION_BITS, precision)
    sides = []
    # Exponents rise by the rate from rank to rank, on both sides of the target.
    for start, many in ((middle, middle - first + 1), (after, last - after + (after > middle))):
        weight = exponential(exponent(start) - least, FRACTION_BITS, precision)
        times = repeat(ratio, max(many - 1, 0))
        side = accumulate(times, lambda one, by: multiply(one, by, precision), initial=weight)
        sides.append(list(side)[:many])
    ranks = CellsOfRank.of(up_to, np.arange(first, last + 1))
    lower, upper = [], []
    for rank, (low, high) in zip(ranks, sides[0][::-1] + sides[1], strict=True):
        numerator, denominator = rank.weight
        lower.append(low * numerator // denominator)
        upper.append(-(-high * numerator // denominator))
    beyond = 0 if last - first == total else len(up_to)
    return (
        ranks,
        [*accumulate(lower, initial=0), sum(lower)],
        [*accumulate(upper, initial=0), sum(upper) + beyond],
    )
