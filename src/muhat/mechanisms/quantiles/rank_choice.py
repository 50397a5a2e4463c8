"""A cell that holds a record of a given rank, drawn by the exponential mechanism.

Cells 0 … u are in order and F(c) is the number of records in cells up to c. The loss of a cell is
how many records would have to move for it to hold the record of rank m,

    ℓ(c) = max(0, F(c − 1) + 1 − m, m − F(c)),      P(c) ∝ exp(−η·ℓ(c)),

and a person with k records moves it by at most k, so η = ε/2k makes the choice purely ε-private.
Its rank error grows with the logarithm of the number of cells over ε, where T = log₂ cells noisy
comparisons would each need T times their noise.

The law is exact: weights are enclosed between integers, and a uniform number gets as many bits as
it takes to fall between two of them. Proof: docs/proofs/unbounded.md.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._plain import Plain
from muhat.errors import InvalidInput
from muhat.noise import FRACTION_BITS
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.exact import Enclosure, exponential

_FIRST_PRECISION = 2 * WORD_BITS


@dataclass(frozen=True)
class RankChoice(Plain, keys=("cells", "multiplier", "contributions")):
    """A choice among `cells` cells, for the strength ε² in all.

    `contributions` is the most records of a person; neighbours replace them.

    >>> choice = RankChoice(256, Fraction(1))
    >>> choice.rank_error(0.99)
    20
    >>> counts = np.zeros(256, np.int64)
    >>> counts[[30, 70]] = 1000
    >>> choice.find(counts, rank=500), choice.find(counts, rank=1500)
    (30, 70)
    """

    cells: int
    strength_squared: Fraction
    contributions: int = 1

    def __post_init__(self) -> None:
        _check.count("cells", self.cells)
        _check.count("contributions", self.contributions)
        if self.multiplier < 1:
            raise InvalidInput("the promise is so strong that its noise drowns every count.")
        if self.privacy_loss**2 > self.strength_squared:
            raise AssertionError("the choice is more sensitive than the promise allows")

    @cached_property
    def multiplier(self) -> int:
        """2^54·η, rounded down to a whole number."""
        whole = math.isqrt(math.floor(self.strength_squared * (1 << 2 * FRACTION_BITS)))
        return whole // (2 * self.contributions)

    @property
    def privacy_loss(self) -> Fraction:
        """2kη, the pure ε that the choice keeps, exactly."""
        return Fraction(2 * self.contributions * self.multiplier, 1 << FRACTION_BITS)

    def rank_error(self, confidence: float = 0.95) -> int:
        """τ: the cell found lies between those of the ranks m − τ and m + τ, at this confidence.

        A cell without loss exists, so each of the others with a loss above τ has a probability of
        at most exp(−η(τ + 1)).
        """
        level = _check.probability("confidence", confidence)
        rate = self.multiplier / (1 << FRACTION_BITS)
        reach = math.log(max(self.cells - 1, 1) / (1 - level)) / rate
        return max(0, math.ceil(reach * (1 + 1e-12)) - 1)

    def find(
        self,
        counts: NDArray[np.int64],
        rank: int | None = None,
        *,
        above: int | None = None,
        words: Words = system_words,
    ) -> int:
        """The cell drawn, given exact counts of all cells; `words` replaces entropy in tests.

        `rank` is counted from 1 at the bottom; `above` says instead how many records are to lie
        above the one sought, so that the rank is N − above with N secret or not.
        """
        if len(counts) != self.cells:
            raise InvalidInput(f"counts must have {self.cells} entries; got {len(counts)}.")
        if (rank is None) == (above is None):
            raise InvalidInput("a choice needs exactly one of rank and above.")
        if above is None:
            sought = _check.count("rank", rank)
        else:
            sought = int(counts.sum()) - _check.count("above", above, least=0)
        losses = rank_losses(counts, sought)
        return draw([self.multiplier * loss for loss in losses], FRACTION_BITS, words)


def rank_losses(counts: NDArray[np.int64], rank: int) -> list[int]:
    """ℓ: how many records would have to move for each cell to hold the record of a rank.

    >>> rank_losses(np.array([2, 0, 3]), 2)
    [0, 1, 1]
    """
    up_to = list(accumulate(counts.tolist()))
    before = [0, *up_to[:-1]]
    return [max(0, b + 1 - rank, rank - u) for b, u in zip(before, up_to, strict=True)]


def draw(exponents: list[int], shift: int, words: Words) -> int:
    """An index i with probability exactly ∝ exp(−exponents[i]/2^shift).

    A uniform number of [0, 1) is known by its first bits, the heights at which the weights lie on
    top of each other by enclosures; both become finer until the number lies within one weight.
    """
    least = min(exponents)
    above = [exponent - least for exponent in exponents]
    bits, drawn, precision = 0, 0, _FIRST_PRECISION
    while True:
        drawn, bits = drawn << WORD_BITS | int(words(1)[0]), bits + WORD_BITS
        lower, upper = _heights(above, shift, precision)
        low = drawn * lower[-1] >> bits
        high = -(-(drawn + 1) * upper[-1] >> bits)
        index = bisect_right(upper, low) - 1
        if index + 1 < len(lower) and high <= lower[index + 1]:
            return index
        precision *= 2


def _heights(exponents: list[int], shift: int, precision: int) -> tuple[list[int], list[int]]:
    """Enclosures of 0, w_0, w_0 + w_1, …, as integers over 2^precision."""
    known: dict[int, Enclosure] = {
        exponent: exponential(exponent, shift, precision) for exponent in set(exponents)
    }
    weights = [known[exponent] for exponent in exponents]
    lower = list(accumulate((low for low, _ in weights), initial=0))
    upper = list(accumulate((high for _, high in weights), initial=0))
    return lower, upper
