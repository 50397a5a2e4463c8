"""Exact draws of whole numbers: the discrete Laplace law, uniform numbers, biased coins.

    discrete_laplace    P(k) = (1 − q)/(1 + q)·q^|k| with q = e^−rate, for a rational rate
    uniform_below       0, 1, …, bound − 1, each as likely as the other
    coins               true with a rational probability

Nothing is approximated: a decision is taken from finitely many random bits only if every
continuation of them leads to the same one.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat.errors import InvalidInput
from muhat.noise.density import FRACTION_BITS, LAPLACE
from muhat.noise.entropy import WORD_BITS, Words, system_words
from muhat.noise.norms import RealNumbers
from muhat.noise.strips import draw

LEAST_RATE = Fraction(1, 1 << 50)
"""Below it a sample might not be an int64."""

_BITS = FRACTION_BITS + 1


def discrete_laplace(rate: Fraction, size: int, words: Words = system_words) -> NDArray[np.int64]:
    """Independent discrete Laplace noise of scale 1/rate, of shape (size,), exactly distributed.

    The difference of two geometric numbers ⌊E/rate⌋, E standard exponential: P(⌊E/rate⌋ ≥ k) is
    e^{−rate·k}.

    >>> discrete_laplace(Fraction(1, 2), 3).shape
    (3,)
    """
    if not rate >= LEAST_RATE:
        raise InvalidInput("rate must be at least 2^-50: the noise would not fit 64 bits.")
    size = _check.count("size", size, least=0)
    both = geometric(rate, 2 * size, words)
    return both[:size] - both[size:]


def uniform_below(bound: int, words: Words = system_words) -> int:
    """A whole number from 0 up to bound − 1, uniform; the bound is at most 2^64."""
    bound = _check.count("bound", bound, most=1 << WORD_BITS)
    unused = WORD_BITS - (bound - 1).bit_length()
    while True:
        found = int(words(1)[0]) >> unused
        if found < bound:
            return found


def coins(probability: Fraction, size: int, words: Words = system_words) -> NDArray[np.bool_]:
    """Independent coins, of shape (size,), each true with exactly this probability."""
    if not 0 <= probability <= 1:
        raise InvalidInput("probability must lie between 0 and 1.")
    size = _check.count("size", size, least=0)
    scaled = probability * (1 << WORD_BITS)
    first = scaled.numerator // scaled.denominator
    if first >> WORD_BITS:
        return np.ones(size, bool)
    drawn = words(size)
    heads: NDArray[np.bool_] = drawn < np.uint64(first)
    # The bits so far agree with the probability's: what follows them decides.
    for index in np.flatnonzero(drawn == np.uint64(first)):
        heads[index] = coins(scaled - first, 1, words)[0]
    return heads


def geometric(rate: Fraction, size: int, words: Words) -> NDArray[np.int64]:
    """⌊E/rate⌋ for independent standard exponentials E, the absolute values of Laplace samples."""
    sample = draw(LAPLACE, size, words)
    floors = sample.floors
    # |t| lies between m and m + 1 units of 2^-55; four roundings of 2^-53 are below 2^-50.
    least = np.maximum(floors, ~floors).astype(np.float64)
    unit = 2.0**-_BITS / float(rate)
    quotient = least * unit
    slack = quotient * 2.0**-50 + 2 * unit
    found: NDArray[np.int64] = np.floor(quotient).astype(np.int64)
    unsure = np.floor(quotient - slack) != np.floor(quotient + slack)
    unsure[list(sample.settled)] = True
    for index in np.flatnonzero(unsure).tolist():
        settled = sample.settled.get(index)
        floor = int(floors[index]) if settled is None else settled.floor
        ahead = [] if settled is None else list(settled.next_words)
        found[index] = _quotient(rate, RealNumbers([floor], _BITS, {0: ahead}), words)
    return found


def _quotient(rate: Fraction, number: RealNumbers, words: Words) -> int:
    """⌊|t|/rate⌋, with as many more bits of t as it takes."""
    while True:
        (least,) = number.magnitudes()
        divisor = rate.numerator << number.bits
        low, high = (m * rate.denominator // divisor for m in (least, least + 1))
        if low == high:
            return low
        number.refine(words)
