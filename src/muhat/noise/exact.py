"""Accept or reject one trial with big integers, drawing as many more bits as that takes.

The strips k = 0, 1, 2, … of a density lie on top of each other like floors of a building:
strip k occupies heights [S_k, S_k + w_k), w_k = exp(−E(k)), S_k = w_0 + … + w_{k−1}, and the
building is W = w_0 + w_1 + … high. A trial is a height u·W and a place x, both uniform. The
height picks the strip k with probability w_k/W, and what it has above S_k is uniform on
[0, w_k): the trial is accepted when that is below exp(−E(k + x)).

Numbers are enclosed between integers over 2^precision. A verdict is given only when it is the
same for all numbers that start with the bits drawn so far; hence the bits not drawn are still
uniform afterwards, whatever the verdict.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

from muhat.noise.density import CELL_BITS, WITHIN_BITS, Density
from muhat.noise.entropy import WORD_BITS, Words

Enclosure = tuple[int, int]
"""Integers (lower, upper) with lower ≤ 2^precision·(the number) ≤ upper."""

PRECISION = 512
REJECTED = -1


@dataclass(frozen=True)
class Sample:
    """An accepted trial: floor(2^55·t), and words that hold the next bits of t already drawn."""

    floor: int
    next_words: tuple[int, ...]


@dataclass(frozen=True)
class WordStack:
    """Enclosures of S_0, …, S_K and of W, as integers over 2^precision."""

    precision: int
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    total: Enclosure


def exponential(numerator: int, shift: int, precision: int) -> Enclosure:
    """Encloses exp(−numerator/2^shift) for numerator ≥ 0.

    With y = numerator/2^shift, exp(−y) = exp(−y/2^j)^(2^j), where j makes y/2^j < 2^−8.
    """
    halvings = max(0, numerator.bit_length() - shift + 8)
    working = precision + WORD_BITS
    small = (numerator << working) >> (shift + halvings)
    total = term = 1 << working
    count = 0
    while term:
        count += 1
        term = (term * small >> working) // count
        total += -term if count & 1 else term
    # Each term is at most 2 units too small, the terms left out add up to less than 2 units
    # (the series alternates), and rounding the argument down costs at most 1.
    slack = 2 * count + 3
    enclosure = total - slack, min(total + slack, 1 << working)
    for _ in range(halvings):
        enclosure = multiply(enclosure, enclosure, working)
    lower, upper = enclosure
    return lower >> WORD_BITS, -(-upper >> WORD_BITS)


def multiply(first: Enclosure, second: Enclosure, precision: int) -> Enclosure:
    """Encloses the product of two numbers that are not negative."""
    return first[0] * second[0] >> precision, -(-first[1] * second[1] >> precision)


@lru_cache(maxsize=16)
def stack(density: Density, precision: int) -> WordStack:
    """The strips of a density up to the first with a weight below 2^(−precision/4).

    E has degree two, so the ratios w_{k+1}/w_k shrink by the same factor from strip to strip.
    """
    one = 1 << precision
    start, shift = density.exponent(1, 0)
    after, _ = density.exponent(2, 0)
    weight = one, one
    ratio = exponential(start, shift, precision)
    factor = exponential(after - 2 * start, shift, precision)
    lower, upper = [0], [0]
    while weight[1] >> (precision - precision // 4):
        lower.append(lower[-1] + weight[0])
        upper.append(upper[-1] + weight[1])
        weight = multiply(weight, ratio, precision)
        ratio = multiply(ratio, factor, precision)
    # The ratios do not grow, so a geometric series is above all the strips left out.
    tail = -(-weight[1] * one // (one - ratio[1]))
    total = lower[-1] + weight[0], upper[-1] + tail
    return WordStack(precision, tuple(lower), tuple(upper), total)


def verdict(density: Density, u: int, u_bits: int, x: int, x_bits: int) -> int | None:
    """The strip of an accepted trial, REJECTED, or None if the bits so far do not tell.

    u and x are the first bits of two numbers: u/2^u_bits ≤ (number) ≤ (u + 1)/2^u_bits.
    """
    precision = PRECISION
    while precision < 4 * u_bits:
        precision *= 2
    strips = stack(density, precision)
    low = u * strips.total[0] >> u_bits
    high = -(-(u + 1) * strips.total[1] >> u_bits)
    strip = bisect_right(strips.upper, low) - 1
    if strip + 1 == len(strips.lower) or high > strips.lower[strip + 1]:
        return None
    place = (strip << x_bits) + x
    least, _ = exponential(*density.exponent(place + 1, x_bits), precision)
    _, most = exponential(*density.exponent(place, x_bits), precision)
    if high <= strips.lower[strip] + least:
        return strip
    if low >= strips.upper[strip] + most:
        return REJECTED
    return None


def settle(density: Density, first: int, second: int, words: Words) -> Sample | None:
    """The sample of a trial that begins with two given words, or None if it is rejected.

    The first word is the sign, then CELL_BITS of u, then WITHIN_BITS of x; the second goes on
    with u; every further pair goes on with u and x. Below zero the bits of x are read
    complemented: t = −(k + x)/2^m is then, in two's complement, the strip ~k followed by the
    bits as they were drawn.
    """
    negative = first >> (WORD_BITS - 1)
    flip = -negative
    u = (first >> WITHIN_BITS) % (1 << CELL_BITS) << WORD_BITS | second
    x = drawn = first % (1 << WITHIN_BITS)
    u_bits, x_bits = CELL_BITS + WORD_BITS, WITHIN_BITS
    next_words: list[int] = []
    while (strip := verdict(density, u, u_bits, (x ^ flip) % (1 << x_bits), x_bits)) is None:
        more_u, more_x = (int(word) for word in words(2))
        u, u_bits = u << WORD_BITS | more_u, u_bits + WORD_BITS
        x, x_bits = x << WORD_BITS | more_x, x_bits + WORD_BITS
        next_words.append(more_x)
    if strip == REJECTED:
        return None
    return Sample(((strip ^ flip) << WITHIN_BITS) + drawn, tuple(next_words))
