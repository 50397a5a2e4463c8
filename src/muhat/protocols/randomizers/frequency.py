"""A randomised answer to "which of 2^b buckets?": subset selection, in one byte.

    P(Y | v) = keep / C(g−1, k−1)          if the set Y of k buckets holds v,
               (1 − keep) / C(g−1, k)      if it does not,        keep = k·E/(k·E + g − k)

with g = 2^b buckets and E a rational just below e^ε, so that no two buckets make an answer more
than e^ε times as likely. One bit is Warner's randomised response, k = 1 is k-ary randomised
response; in between it has the least variance of all frequency oracles when k/g is close to
1/(e^ε + 1). Buckets are the values of a public linear hash (`range_levels`), and what an answer
tells is read off in its characters

    φ_I(Y) = Σ_{v in Y} (−1)^⟨I,v⟩,     E[φ_I(Y) | v] = attenuation·(−1)^⟨I,v⟩,

of which each has the same variance, and any two none in common if the bucket is uniform.
Source: Ye and Barg (2018) for subsets; docs/proofs/local-ranges.md for all that is used.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Bytes, Integers
from muhat.errors import InvalidInput
from muhat.noise.discrete import coins
from muhat.noise.enclosures import falling_exponential
from muhat.noise.entropy import Words, system_words
from muhat.privacy import as_typed
from muhat.protocols.encodings.range_levels import MOST_BITS
from muhat.protocols.randomizers.randomizer import uniform_numbers

MOST_ANSWERS = 256
"""An answer is one byte."""

LARGEST_EPSILON = 64
"""Nothing is gained above it, and digits of e^ε would cost a device any amount of time."""

_RATIO_BITS = 64


@dataclass(frozen=True)
class SubsetResponse:
    """Sets of `chosen` out of 2^bits buckets that keep ε-DP about the bucket.

    >>> response = SubsetResponse(bits=2, chosen=1, epsilon=1.0)
    >>> response.answers, f"{float(response.keep):.4f}", f"{response.variance:.4f}"
    (4, '0.4754', '3.6917')
    """

    bits: int
    chosen: int
    epsilon: float

    def __post_init__(self) -> None:
        bits = _check.count("bits", self.bits, most=MOST_BITS)
        object.__setattr__(self, "bits", bits)
        chosen = _check.count("chosen", self.chosen, most=(1 << bits) // 2)
        object.__setattr__(self, "chosen", chosen)
        object.__setattr__(self, "epsilon", _check.positive("epsilon", self.epsilon))
        if self.answers > MOST_ANSWERS:
            raise InvalidInput(
                f"chosen must leave at most {MOST_ANSWERS} sets, which fit a byte; {chosen} of "
                f"{self.buckets} buckets make {self.answers}."
            )

    @property
    def buckets(self) -> int:
        """g = 2^bits."""
        return 1 << self.bits

    @property
    def answers(self) -> int:
        """C(g, k): an answer is the place of its set in lexicographic order."""
        return math.comb(self.buckets, self.chosen)

    @cached_property
    def ratio(self) -> Fraction:
        """E ≤ e^ε, by less than 2^-60 of it: how much likelier an answer that holds a bucket is.

        Above ε = `LARGEST_EPSILON` it stays what it is there.
        """
        amount = min(as_typed(self.epsilon), Fraction(LARGEST_EPSILON))
        precision = _RATIO_BITS + 2 * math.ceil(amount)
        return 1 / falling_exponential(amount, precision)[1]

    @cached_property
    def keep(self) -> Fraction:
        """The chance that an answer holds the bucket that is the case."""
        return holding_chance(self.ratio, self.buckets, self.chosen)

    @cached_property
    def exposure(self) -> Fraction:
        """The chance, for either of two buckets, that the answer holds exactly one of them.

        Only then do the two make it differently likely.
        """
        others = self.buckets - self.chosen
        return (self.keep * others + (1 - self.keep) * self.chosen) / (self.buckets - 1)

    @cached_property
    def attenuation(self) -> float:
        """E[φ_I(Y) | v]·(−1)^⟨I,v⟩ = (g·keep − k)/(g − 1), for I ≠ 0."""
        return float((self.buckets * self.keep - self.chosen) / (self.buckets - 1))

    @property
    def power(self) -> float:
        """E[φ_I(Y)² | v] = k(g − k)/(g − 1), for I ≠ 0 and every v."""
        return self.chosen * (self.buckets - self.chosen) / (self.buckets - 1)

    @cached_property
    def common(self) -> float:
        """E[φ_I(Y)·φ_J(Y) | v]·(−1)^⟨I⊕J,v⟩, for different I, J ≠ 0; the same for all of them."""
        g, k, keep = self.buckets, self.chosen, self.keep
        both = keep * Fraction(k - 1, g - 1)
        one = both + (1 - keep) * Fraction(k, g - 1)
        two = Fraction(0)
        if g > 2:
            pairs = keep * (k - 1) * (k - 2) + (1 - keep) * k * (k - 1)
            two = pairs / ((g - 1) * (g - 2))
        return float(keep - one - 2 * both + 2 * two)

    @property
    def information(self) -> float:
        """attenuation²/power: what one answer tells about one character; 1/its variance."""
        return self.attenuation**2 / self.power

    @property
    def variance(self) -> float:
        """(E·κ + 1 − κ)²/(κ(1 − κ)(E − 1)²), κ = k/g: of a rare bucket's frequency, n = 1.

        At its least, κ = 1/(E + 1), it is 4E/(E − 1)²; for one bit it is ((E + 1)/(E − 1))².
        """
        return 1 / ((self.buckets - 1) * self.information)

    @cached_property
    def sets(self) -> Integers:
        """The buckets of every answer, of shape (answers, chosen)."""
        return np.array(list(itertools.combinations(range(self.buckets), self.chosen)))

    @cached_property
    def characters(self) -> NDArray[np.float64]:
        """φ_I of every answer, whole numbers, of shape (answers, buckets)."""
        parity = np.bitwise_count(self.sets[:, :, None] & np.arange(self.buckets)) & 1
        return np.asarray((1.0 - 2.0 * parity).sum(axis=1))

    def likelihood(self, answer: int, bucket: int) -> Fraction:
        """The exact probability of an answer, given the bucket."""
        g, k = self.buckets, self.chosen
        if bucket in self.sets[answer]:
            return self.keep / math.comb(g - 1, k - 1)
        return (1 - self.keep) / math.comb(g - 1, k)

    def respond(self, buckets: Integers, words: Words = system_words) -> Bytes:
        """An answer for each bucket, of shape (rows,), exactly distributed.

        As many words are asked for whatever the buckets are.
        """
        rows = len(buckets)
        # Sets that hold bucket 0 come first, and v ⊕ (a set with bucket 0) is one with bucket v.
        holding = math.comb(self.buckets - 1, self.chosen - 1)
        kept = coins(self.keep, rows, words)
        inside = uniform_numbers(holding, rows, words)
        outside = holding + uniform_numbers(self.answers - holding, rows, words)
        return np.asarray(self._moved[buckets, np.where(kept, inside, outside)])

    @cached_property
    def _moved(self) -> Bytes:
        """The place of {v ⊕ w: w in Y} for every bucket v and answer Y."""
        moved = np.sort(np.arange(self.buckets)[:, None, None] ^ self.sets, axis=2)
        digits = self.buckets ** np.arange(self.chosen)[::-1]
        # Numbers in base g keep the lexicographic order.
        return np.searchsorted(self.sets @ digits, moved @ digits).astype(np.uint8)


def holding_chance(ratio: Fraction, size: int, chosen: int) -> Fraction:
    """k·E/(k·E + m − k): how often a set of k of m holds what makes it E times likelier."""
    inside = chosen * ratio
    return inside / (inside + size - chosen)
