"""A cell that holds a record of a given rank, drawn by the exponential mechanism.

Cells 0 … u are in order, F(c) is the number of records in cells up to c, and a the target of a
search (`noisy_search.py`). The loss of a cell is how far F is from the target there,

    ℓ(c) = max(0, F(c − 1) + ½ − a, a + ½ − F(c)),      P(c) ∝ exp(−η·ℓ(c)):

for a public rank m, a = m − ½, the records that would have to move for the cell to hold the record
of that rank. If a person moves F − a by at most x, every exponent moves by at most ηx, so the
choice has a range of 2ηx: it is purely 2ηx-private, and (2ηx)²/8-zCDP. It takes the place of the T
halvings of a search and what they would have spent, Laplace or normal noise on T questions:

    η = T·S/2 (pure)   or   η = √T·S (zCDP), in units of 2^-54, S that of one question.

Its rank error grows with the logarithm of the number of cells, where T noisy comparisons would each
need T, or √T, times their noise. Further questions with noise, for an interval, are those of a
search.

The law is exact: exponents are whole numbers, weights are enclosed between integers, and a uniform
number gets as many bits as it takes to fall between two of them.
Proof: docs/proofs/choices-by-rank.md.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from muhat._plain import Key
from muhat.mechanisms.quantiles.choice import Choice, Choosing
from muhat.mechanisms.quantiles.noisy_search import SEARCH_KEYS
from muhat.mechanisms.quantiles.search_walk import Counts, Tally
from muhat.noise import FRACTION_BITS
from muhat.noise.discrete import uniform_below
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.exact import exponential, multiply

_FIRST_PRECISION = 2 * WORD_BITS
_HALF = Fraction(1, 2)


class ChosenByRank(Choosing):
    """The cell is drawn when the counts are there."""

    def _part(self, tally: Tally, rounds: int) -> int:
        """The cell, drawn from the counts of all of them."""
        if tally.block_bits or len(tally.up_to) != self._last + 1:
            raise AssertionError("a choice is among all cells at once")
        if not rounds:
            return 0
        return chosen(tally.up_to, self._target, self._choice.least_rate, self._words)


@dataclass(frozen=True)
class RankChoice(Choice, keys=(*SEARCH_KEYS, Key("rate", text=True))):
    """A search whose halvings are one choice.

    >>> from muhat.noise.laws import INDEPENDENT
    >>> choice = RankChoice(256, INDEPENDENT["laplace"], Fraction(1))
    >>> choice.rank_error(0.99)
    20
    >>> counts = np.zeros(256, np.int64)
    >>> counts[[30, 70]] = 1000
    >>> choice.find(counts, rank=500), choice.find(counts, rank=1500)
    (30, 70)
    """

    finder = "exponential mechanism"

    name = "exponential"
    walk = ChosenByRank

    @property
    def spent(self) -> int:
        """A person moves exponents by ⌈2^54·η·x⌉."""
        return self._spent_by(math.ceil(self.rate * self.record_weight * self.contributions))

    @property
    def least_rate(self) -> int:
        """The only one."""
        return self.rate

    @cached_property
    def rate(self) -> int:
        """2^54·η, a whole number, below what T questions spend by more than ⌈·⌉ may add."""
        rounds, multiplier = self.rounds, max(self.multiplier - 4, 0)
        if self._pure:
            return rounds * multiplier // 2
        return math.isqrt(rounds * multiplier**2)

    @property
    def typical_error(self) -> float:
        """√2/η: ranks are off by a two-sided exponential law where records lie evenly."""
        return math.sqrt(2) / self._per_rank

    @property
    def _per_rank(self) -> float:
        return self.rate / (1 << FRACTION_BITS)

    def words(self) -> str:
        """What is done, in a few words."""
        return self._described("a choice")

    def _ranks(self, log_confidence: float) -> int:
        """A cell with the rank exists, and is e^{ηg} times as likely as one that is too far off.

        g = τ + 1 for a public rank, and τ for a fraction of a secret number.
        """
        if self.cells < 2:
            return 0
        odds = math.exp(log_confidence) / -math.expm1(log_confidence)
        reach = math.log((self.cells - 1) * odds) / self._per_rank * (1 + 1e-12)
        return max(0, math.ceil(reach) - (self.quantile is None))


class Level(NamedTuple):
    """Cells in a row, from `first` to before `behind`, of the same exponent."""

    exponent: int
    first: int
    behind: int


def levels_of(
    up_to: Counts, target: Fraction, rate: int, reach: int
) -> tuple[list[list[Level]], int]:
    """The cells by their exponents 2^54·η·ℓ, as whole numbers, up to `reach` above the least.

    Rounded down where the target is no multiple of ½. Lists of levels whose exponents ascend, and
    how many cells lie beyond.

    >>> levels_of(np.array([2, 2, 5]), Fraction(3, 2), 10, 100)[0]
    [[Level(exponent=0, first=0, behind=1)], [Level(exponent=10, first=1, behind=3)]]
    """
    below = math.floor(rate * (_HALF + target))  # left of the target: this − rate·F(c)
    above = math.floor(rate * (_HALF - target))  # right of it: this + rate·F(c − 1)
    before = np.concatenate([np.zeros(1, up_to.dtype), up_to[:-1]])
    left = int(np.searchsorted(up_to, -(-below // rate), "left"))
    right = int(np.searchsorted(before, -above // rate, "right"))
    found = [[Level(0, left, right)]] if left < right else []
    if right < left:
        # Empty cells in between are off on both sides, and the larger loss counts.
        level = int(before[right])
        left = right = left if below - rate * level >= above + rate * level else right
    least = 0
    if not found:
        sides = [below - rate * int(up_to[left - 1])] if left else []
        sides += [above + rate * int(before[right])] if right < len(before) else []
        least = min(sides)
    start = int(np.searchsorted(up_to[:left], -((least + reach - below) // rate), "left"))
    stop = right + int(np.searchsorted(before[right:], (least + reach - above) // rate, "right"))
    leftward = [
        Level(below - rate * count, start + first, start + behind)
        for count, first, behind in _runs(up_to[start:left])
    ]
    rightward = [
        Level(above + rate * count, right + first, right + behind)
        for count, first, behind in _runs(before[right:stop])
    ]
    found += [side for side in (leftward[::-1], rightward) if side]
    return found, start + len(up_to) - stop


def _runs(ascending: Counts) -> list[tuple[int, int, int]]:
    """The different numbers of a list, and where each begins and ends."""
    if not len(ascending):
        return []
    edges = (np.flatnonzero(np.diff(ascending)) + 1).tolist()
    first = [0, *edges]
    return list(zip(ascending[first].tolist(), first, [*edges, len(ascending)], strict=True))


def chosen(up_to: Counts, target: Fraction, rate: int, words: Words = system_words) -> int:
    """A cell, with probability exactly ∝ exp(−exponent/2^54).

    A uniform number of [0, 1) is known by its first bits, the heights at which the weights of the
    levels lie on top of each other by enclosures, those of cells too far off by an upper bound;
    all become finer until the number lies within one level, whose cells are alike.
    """
    bits, drawn, precision = 0, 0, _FIRST_PRECISION
    while True:
        drawn, bits = drawn << WORD_BITS | int(words(1)[0]), bits + WORD_BITS
        levels, lower, upper = _heights(up_to, target, rate, precision)
        index = enclosed_index(drawn, bits, lower, upper)
        if index is not None:
            level = levels[index]
            return level.first + uniform_below(level.behind - level.first, words)
        precision *= 2


def enclosed_index(drawn: int, bits: int, lower: list[int], upper: list[int]) -> int | None:
    """Between which heights a uniform number lies that begins with these bits, if that is sure.

    `lower` and `upper` enclose the heights 0, w_0, w_0 + w_1, … of so many weights, and at last
    that of all, with those that are not listed.
    """
    low = drawn * lower[-1] >> bits
    high = -(-(drawn + 1) * upper[-1] >> bits)
    index = bisect_right(upper, low) - 1
    return index if index < len(lower) - 2 and high <= lower[index + 1] else None


def _heights(
    up_to: Counts, target: Fraction, rate: int, precision: int
) -> tuple[list[Level], list[int], list[int]]:
    """Levels, and enclosures of 0, w_0, w_0 + w_1, … and of all, as integers over 2^precision.

    Cells beyond the levels weigh less than 2^−precision each.
    """
    sides, beyond = levels_of(up_to, target, rate, precision << FRACTION_BITS)
    least = min(side[0].exponent for side in sides)
    lower, upper = [], []
    ratios: dict[int, tuple[int, int]] = {}
    for side in sides:
        exponent = side[0].exponent
        weight = exponential(exponent - least, FRACTION_BITS, precision)
        for level in side:
            if gap := level.exponent - exponent:
                if gap not in ratios:
                    ratios[gap] = exponential(gap, FRACTION_BITS, precision)
                weight, exponent = multiply(weight, ratios[gap], precision), level.exponent
            cells = level.behind - level.first
            lower.append(weight[0] * cells)
            upper.append(weight[1] * cells)
    levels = [level for side in sides for level in side]
    # The last entries are all cells, those beyond counted as none and as 2^−precision each.
    return (
        levels,
        [*accumulate(lower, initial=0), sum(lower)],
        [*accumulate(upper, initial=0), sum(upper) + beyond],
    )
