"""Exact draws of the discrete Gaussian law: P(k) ∝ exp(−k²/(2·variance)), k a whole number.

By rejection from discrete Laplace noise of the whole scale t = ⌊σ⌋ + 1 (Canonne, Kamath and
Steinke 2020): −|k|/t − γ(k) = −k²/(2σ²) − const for γ(k) = (|k| − σ²/t)²/(2σ²), so a proposal k
is kept with probability e^−γ(k), that is if a standard exponential number is at least γ(k).
That number is known to 55 fractional bits, which mostly decide in floats with a proved error;
otherwise it gets more bits and is compared in rationals.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat.errors import InvalidInput
from muhat.noise.density import FRACTION_BITS, LAPLACE
from muhat.noise.discrete import discrete_laplace
from muhat.noise.entropy import Words, system_words
from muhat.noise.norms import RealNumbers
from muhat.noise.strips import BLOCK, draw

MOST_VARIANCE = Fraction(1 << 80)
LEAST_VARIANCE = Fraction(1, 1 << 80)
"""Between them samples are int64 and the floats of a decision are far from their limits."""

_BITS = FRACTION_BITS + 1


def discrete_gaussian(
    variance: Fraction, size: int, words: Words = system_words
) -> NDArray[np.int64]:
    """Independent whole numbers with P(k) ∝ exp(−k²/(2·variance)), of shape (size,), exactly.

    `variance` is the parameter σ²; the variance of the law itself is a little below it.

    >>> discrete_gaussian(Fraction(9, 4), 3).shape
    (3,)
    """
    if not LEAST_VARIANCE <= variance <= MOST_VARIANCE:
        raise InvalidInput("variance must lie between 2^-80 and 2^80.")
    variance = Fraction(variance)  # an int or a float would be divided inexactly
    size = _check.count("size", size, least=0)
    scale = math.isqrt(math.floor(variance)) + 1
    found = np.empty(size, np.int64)
    missing = np.arange(size)
    while missing.size:
        rejected = [missing[:0]]
        for begin in range(0, missing.size, BLOCK):
            places = missing[begin : begin + BLOCK]
            proposed = discrete_laplace(Fraction(1, scale), places.size, words)
            found[places] = proposed
            rejected.append(places[~_kept(proposed, variance / scale, variance, words)])
        missing = np.concatenate(rejected)
    return found


def _kept(
    proposed: NDArray[np.int64], centre: Fraction, variance: Fraction, words: Words
) -> NDArray[np.bool_]:
    """Which proposals are kept: those with an exponential number of at least γ."""
    sample = draw(LAPLACE, proposed.size, words)
    floors = sample.floors
    sizes = np.abs(proposed)
    reached = np.maximum(floors, ~floors).astype(np.float64) * 2.0**-_BITS
    gap = sizes.astype(np.float64) - float(centre)
    wanted = gap * gap * float(1 / (2 * variance))
    # Roundings move γ by less than (11γ + 4)·2^-53, as centre ≤ σ, and the number by less than
    # its 2^-53 and the 2^-55 that are not drawn yet: shared-noise.md.
    unsure = np.abs(reached - wanted) <= (reached + wanted + 1) * 2.0**-48
    unsure[list(sample.settled)] = True
    kept: NDArray[np.bool_] = reached > wanted
    for index in np.flatnonzero(unsure).tolist():
        settled = sample.settled.get(index)
        floor = int(floors[index]) if settled is None else settled.floor
        ahead = [] if settled is None else list(settled.next_words)
        exponent = (int(sizes[index]) - centre) ** 2 / (2 * variance)
        kept[index] = _reaches(exponent, RealNumbers([floor], _BITS, {0: ahead}), words)
    return kept


def _reaches(exponent: Fraction, number: RealNumbers, words: Words) -> bool:
    """Whether |t| is at least the exponent, with as many more bits of t as it takes."""
    while True:
        (least,) = number.magnitudes()
        wanted = exponent * (1 << number.bits)
        if least >= wanted:
            return True
        if least + 1 <= wanted:
            return False
        number.refine(words)
