"""Exact parts of discrete Laplace noise: negative binomial numbers of shape 1/parts.

    negative_binomial   NB(1/h, a), a = e^−rate: the sum of h of them is geometric
    laplace_part       the difference of two: the sum of h of them is discrete Laplace

Take G things, P(G ≥ k) = a^k, and permute them uniformly at random. Mark every cycle of the
permutation with probability 1/h: the marked cycles together hold NB(1/h, a) things. Nothing in
this is irrational but G, which `discrete` draws, so with few parts it is done as it is said.

With many parts hardly a cycle is marked. Their number is Poisson of mean −ln(1 − a)/h, and one
random word mostly tells that it is 0, from thresholds that enclose the Poisson law. A marked
cycle is then one chosen at random from a permutation of its own. Proofs: shared-noise.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Integers
from muhat.errors import InvalidInput
from muhat.noise.discrete import LEAST_RATE, coins, geometric
from muhat.noise.enclosures import falling_exponential
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.exact import Enclosure, exponential, multiply
from muhat.noise.inversion import Cumulative, inverted

FEW_PARTS = 32
"""Up to here all cycles are drawn: a permutation has at most −ln(1 − a) < 35 on average."""


def negative_binomial(
    parts: int, rate: Fraction, size: int, words: Words = system_words
) -> Integers:
    """Independent NB(1/parts, e^−rate) numbers, of shape (size,), exactly distributed.

    With h = parts and a = e^−rate: P(0) = (1 − a)^(1/h), P(k + 1)/P(k) = a(k + 1/h)/(k + 1).

    >>> negative_binomial(10, Fraction(1, 2), 3).shape
    (3,)
    """
    parts = _check.count("parts", parts)
    if not rate >= LEAST_RATE:
        raise InvalidInput("rate must be at least 2^-50: the noise would not fit 64 bits.")
    rate = Fraction(rate)
    size = _check.count("size", size, least=0)
    found = np.zeros(size, np.int64)
    if parts <= FEW_PARTS:
        for rows, lengths in _cycles(geometric(rate, size, words), words):
            marked = coins(Fraction(1, parts), rows.size, words)
            found[rows[marked]] += lengths[marked]
    else:
        counts = inverted(_MarkedCycles(rate, parts), size, words)
        owners = np.repeat(np.arange(size), counts)
        np.add.at(found, owners, _random_cycle(rate, owners.size, words))
    return found


def laplace_part(rate: Fraction, parts: int, size: int, words: Words = system_words) -> Integers:
    """One person's part of discrete Laplace noise, of shape (size,).

    Independent parts of `parts` people add up to exactly `discrete_laplace(rate, size)`.

    >>> laplace_part(Fraction(1, 100), 1000, 2).dtype
    dtype('int64')
    """
    size = _check.count("size", size, least=0)
    both = negative_binomial(parts, rate, 2 * size, words)
    return both[:size] - both[size:]


def _cycles(things: Integers, words: Words) -> Iterator[tuple[NDArray[np.intp], Integers]]:
    """The cycle lengths of a random permutation of things[row] things, for every row.

    The cycle of any one thing is uniformly long, and the others are permuted uniformly. Yields
    the rows that have another cycle, and its lengths.
    """
    rows, left = np.arange(things.size), things
    while True:
        some = left > 0
        rows, left = rows[some], left[some]
        if not rows.size:
            return
        lengths = _below(left, words) + 1
        yield rows, lengths
        left = left - lengths


def _random_cycle(rate: Fraction, size: int, words: Words) -> Integers:
    """The length of a cycle chosen at random from a permutation of 1 + G things: P(l) ∝ a^l/l."""
    chosen = np.empty(size, np.int64)
    for before, (rows, lengths) in enumerate(_cycles(geometric(rate, size, words) + 1, words)):
        taken = coins(Fraction(1, before + 1), rows.size, words)
        chosen[rows[taken]] = lengths[taken]
    return chosen


def _below(bounds: Integers, words: Words) -> Integers:
    """Uniform whole numbers from 0 up to bound − 1, one for each bound."""
    drawn, unsigned = words(bounds.size), bounds.view(np.uint64)
    found = drawn % unsigned
    # The 2^64 words are cut into runs as long as the bound; the last one may be incomplete.
    incomplete = np.flatnonzero(drawn - found > -unsigned)
    if incomplete.size:
        found[incomplete] = _below(bounds[incomplete], words).view(np.uint64)
    return found.view(np.int64)


@dataclass(frozen=True)
class _MarkedCycles:
    """The Poisson law of mean −ln(1 − a)/parts."""

    rate: Fraction
    parts: int

    def cumulative(self, precision: int) -> Cumulative:
        return _cumulative(self.rate, self.parts, precision)


@lru_cache(maxsize=64)
def _cumulative(rate: Fraction, parts: int, precision: int) -> Cumulative:
    """Encloses P(count ≤ m) over 2^precision, for m = 0, 1, … until P(m) < 2^(−precision/4)."""
    mean = _mean(rate, parts, precision)
    weight = (
        exponential(mean[1], precision, precision)[0],
        exponential(mean[0], precision, precision)[1],
    )
    lower, upper = [weight[0]], [weight[1]]
    while weight[1] >> (precision - precision // 4):
        product = multiply(weight, mean, precision)
        weight = product[0] // len(lower), -(-product[1] // len(lower))
        lower.append(lower[-1] + weight[0])
        upper.append(min(upper[-1] + weight[1], 1 << precision))
    return tuple(lower), tuple(upper)


def _mean(rate: Fraction, parts: int, precision: int) -> Enclosure:
    """Encloses −ln(1 − e^−rate)/parts over 2^precision."""
    least, most = falling_exponential(rate, precision)
    low, _ = _falling_logarithm(1 - least, precision)
    _, high = _falling_logarithm(1 - most, precision)
    return low // parts, -(-high // parts)


def _falling_logarithm(value: Fraction, precision: int) -> Enclosure:
    """Encloses −ln(value), 0 < value ≤ 1, over 2^precision.

    With m = 2^k·value in [1, 2) it is k·ln 2 − ln m, and ln m = 2·artanh((m − 1)/(m + 1)).
    """
    doublings = max(0, value.denominator.bit_length() - value.numerator.bit_length() - 1)
    while value * (1 << doublings) < 1:
        doublings += 1
    scaled = value * (1 << doublings)
    two = _area_tangent(Fraction(1, 3), precision)
    rest = _area_tangent((scaled - 1) / (scaled + 1), precision)
    return max(0, 2 * (doublings * two[0] - rest[1])), 2 * (doublings * two[1] - rest[0])


def _area_tangent(ratio: Fraction, precision: int) -> Enclosure:
    """Encloses artanh(ratio) = ratio + ratio³/3 + ratio⁵/5 + …, 0 ≤ ratio ≤ 1/3."""
    working = precision + WORD_BITS
    total = power = (ratio.numerator << working) // ratio.denominator
    square = power * power >> working
    count = 1
    while power:
        count += 2
        power = power * square >> working
        total += power // count
    # All is rounded down. A power is at most 2 units too small, its term 3, and the terms left
    # out are below 3 together.
    return total >> WORD_BITS, -(-(total + 2 * count + 4) >> WORD_BITS)
