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

Where cells have public weights w(c), whole numbers, P(c) ∝ w(c)·exp(−η·ℓ(c)): no person moves a
weight, so the range stays what it is.

The law is exact: exponents are whole numbers, weights are enclosed between integers, and a uniform
number gets as many bits as it takes to fall between two of them.
Proof: docs/proofs/choices-by-rank.md.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from muhat import _check
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

    _choice: RankChoice

    def _part(self, tally: Tally, rounds: int) -> int:
        """The cell, drawn from the counts of all of them."""
        if tally.block_bits or len(tally.up_to) != self._last + 1:
            raise AssertionError("a choice is among all cells at once")
        if not rounds:
            return 0
        return self._choice.drawn(tally.up_to, self._target, self._words)


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

    weights: tuple[int, ...] | None = None
    """A public whole number for each cell, in proportion to which it is chosen; None: all alike."""

    def __post_init__(self) -> None:
        if self.weights is not None:
            _check.count("weights", len(self.weights), least=self.cells, most=self.cells)
            for weight in self.weights:
                _check.count("weights", weight)
        super().__post_init__()

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

    def drawn(self, up_to: Counts, target: Fraction, words: Words) -> int:
        """A cell, from the counts of all of them."""
        ends = None if self.weights is None else list(accumulate(self.weights, initial=0))
        return chosen(up_to, target, self.rate, words, ends)

    def _ranks(self, log_confidence: float) -> int:
        """A cell with the rank exists, and is e^{ηg} times as likely as one that is too far off.

        g = τ + 1 for a public rank, and τ for a fraction of a secret number.
        """
        if self.cells < 2:
            return 0
        odds = math.exp(log_confidence) / -math.expm1(log_confidence)
        cells = sum(self.weights) / min(self.weights) if self.weights else self.cells
        reach = math.log((cells - 1) * odds) / self._per_rank * (1 + 1e-12)
        return max(0, math.ceil(reach) - (self.quantile is None))


class Level(NamedTuple):
    """Cells in a row, from `first` to before `behind`, of the same exponent."""

    exponent: int
    first: int
    behind: int


def levels_of(up_to: Counts, target: Fraction, rate: int, reach: int) -> list[list[Level]]:
    """The cells by their exponents 2^54·η·ℓ, as whole numbers, up to `reach` above the least.

    Rounded down where the target is no multiple of ½. Lists of levels whose exponents ascend.

    >>> levels_of(np.array([2, 2, 5]), Fraction(3, 2), 10, 100)
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
    return found + [side for side in (leftward[::-1], rightward) if side]


def _runs(ascending: Counts) -> list[tuple[int, int, int]]:
    """The different numbers of a list, and where each begins and ends."""
    if not len(ascending):
        return []
    edges = (np.flatnonzero(np.diff(ascending)) + 1).tolist()
    first = [0, *edges]
    return list(zip(ascending[first].tolist(), first, [*edges, len(ascending)], strict=True))


def chosen(
    up_to: Counts,
    target: Fraction,
    rate: int,
    words: Words = system_words,
    ends: Sequence[int] | None = None,
) -> int:
    """A cell, with probability exactly ∝ exp(−exponent/2^54).

    `ends` are 0, w(0), w(0) + w(1), … if the cells have weights, which it is in proportion to, too.

    A uniform number of [0, 1) is known by its first bits, the heights at which the weights of the
    levels lie on top of each other by enclosures, those of cells too far off by an upper bound;
    all become finer until the number lies within one level, whose cells differ in weight alone.
    """
    ends = range(len(up_to) + 1) if ends is None else ends
    bits, drawn, precision = 0, 0, _FIRST_PRECISION
    while True:
        drawn, bits = drawn << WORD_BITS | int(words(1)[0]), bits + WORD_BITS
        levels, lower, upper = _heights(up_to, target, rate, precision, ends)
        index = enclosed_index(drawn, bits, lower, upper)
        if index is not None:
            first, behind = (ends[cell] for cell in levels[index][1:])
            return bisect_right(ends, first + uniform_below(behind - first, words)) - 1
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
    up_to: Counts, target: Fraction, rate: int, precision: int, ends: Sequence[int]
) -> tuple[list[Level], list[int], list[int]]:
    """Levels, and enclosures of 0, w_0, w_0 + w_1, … and of all, as integers over 2^precision.

    Cells beyond the levels weigh less than 2^−precision each, times their own weight.
    """
    sides = levels_of(up_to, target, rate, precision << FRACTION_BITS)
    least, beyond = min(side[0].exponent for side in sides), ends[-1]
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
            room = ends[level.behind] - ends[level.first]
            beyond -= room
            lower.append(weight[0] * room)
            upper.append(weight[1] * room)
    levels = [level for side in sides for level in side]
    # The last entries are all cells, those beyond counted as none and as 2^−precision each unit.
    return (
        levels,
        [*accumulate(lower, initial=0), sum(lower)],
        [*accumulate(upper, initial=0), sum(upper) + beyond],
    )
