"""The samplers once more, slowly, from their mathematical description alone.

Nothing is imported from the library: the constants are written out, the sums come from mpmath's
theta function and from logarithms, and a trial is judged at the corners of what its bits allow.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
from numpy.typing import NDArray

STRIPS = 64  # strips in a unit
U_BITS = 14  # of u in the first word
X_BITS = 49  # of x in the first word: with the strips' 6 bits, 55 in all
PRECISION = 1600

REJECT = "reject"
OPEN = "open"


class Replay:
    """A source that gives the words it was told to, and fails when it has no more."""

    def __init__(self, words: Iterable[int]) -> None:
        self.words = list(words)

    def __call__(self, count: int) -> NDArray[np.uint64]:
        assert count <= len(self.words), "more words were drawn than the test provides"
        given, self.words = self.words[:count], self.words[count:]
        return np.array(given, np.uint64)


def mpf(number: Fraction) -> mpmath.mpf:
    return mpmath.mpf(number.numerator) / number.denominator


def density(law: str, t: Fraction) -> mpmath.mpf:
    return mpmath.exp(-mpf(t * t / 2 if law == "normal" else t))


@cache
def height(law: str) -> mpmath.mpf:
    """W, the sum of the density at 0, 1/64, 2/64, …"""
    with mpmath.workprec(PRECISION):
        if law == "laplace":
            return 1 / (1 - mpmath.exp(-mpmath.mpf(1) / STRIPS))
        q = mpmath.exp(-mpmath.mpf(1) / (2 * STRIPS**2))
        return (1 + mpmath.jtheta(3, 0, q)) / 2


@cache
def normal_sums() -> list[mpmath.mpf]:
    with mpmath.workprec(PRECISION):
        sums = [mpmath.mpf(0)]
        for k in range(26 * STRIPS):
            sums.append(sums[-1] + density("normal", Fraction(k, STRIPS)))
        return sums


def partial_sum(law: str, k: int) -> mpmath.mpf:
    """S_k, the sum of the first k terms of W."""
    with mpmath.workprec(PRECISION):
        if law == "laplace":
            return height(law) * (1 - mpmath.exp(-mpmath.mpf(k) / STRIPS))
        return normal_sums()[k]


def strip_at(law: str, u: Fraction) -> int:
    """The k with S_k ≤ u·W < S_{k+1}."""
    if law == "laplace":
        return int(mpmath.floor(-STRIPS * mpmath.log(mpf(1 - u))))
    sums = normal_sums()
    low, high = 0, len(sums) - 1
    assert mpf(u) * height(law) < sums[high], "deeper in the tail than the reference goes"
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sums[middle] <= mpf(u) * height(law) else (low, middle)
    return low


def accepts(law: str, u: Fraction, k: int, x: Fraction) -> bool:
    return bool(mpf(u) * height(law) - partial_sum(law, k) < density(law, (k + x) / STRIPS))


def trial(law: str, words: list[int]) -> int | str:
    """floor(2^55·t), REJECT, or OPEN when so many words do not decide.

    The words are used in the documented order: sign, 14 bits of u, 49 bits of x; then 64 bits
    of u; then, in turn, 64 bits of u and 64 bits of x. Below zero x is read complemented.
    """
    binary = [format(word, "064b") for word in words]
    negative = binary[0][0] == "1"
    u_text = binary[0][1 : 1 + U_BITS] + "".join(binary[1:2] + binary[2::2])
    x_text = binary[0][1 + U_BITS :] + "".join(binary[3::2])
    if negative:
        x_text = x_text.translate(str.maketrans("01", "10"))
    u = [Fraction(int(u_text, 2) + corner, 2 ** len(u_text)) for corner in (0, 1)]
    x = [Fraction(int(x_text, 2) + corner, 2 ** len(x_text)) for corner in (0, 1)]
    if u[1] == 1:
        return OPEN
    with mpmath.workprec(PRECISION):
        strips = {strip_at(law, corner) for corner in u}
        if len(strips) > 1:
            return OPEN
        (k,) = strips
        verdicts = {accepts(law, a, k, b) for a in u for b in x}
    if len(verdicts) > 1:
        return OPEN
    if verdicts == {False}:
        return REJECT
    magnitude = (k + x[0]) / STRIPS * 2**55
    # t lies between these two; neither end is attained, with probability one.
    ends = (magnitude, magnitude + Fraction(2**X_BITS, 2 ** len(x_text)))
    return int(-ends[1] // 1) if negative else int(ends[0] // 1)


@cache
def boundary(law: str, k: int, x: Fraction, bits: int) -> int:
    """floor(2^bits·u) for the u at which a trial in strip k at x changes its verdict."""
    with mpmath.workprec(PRECISION):
        edge = (partial_sum(law, k) + density(law, (k + x) / STRIPS)) / height(law)
        return int(mpmath.floor(edge * 2**bits))


@cache
def threshold(law: str, k: int, bits: int) -> int:
    """floor(2^bits·S_k/W)."""
    with mpmath.workprec(PRECISION):
        return int(mpmath.floor(partial_sum(law, k) / height(law) * 2**bits))


def words_of(u: int, u_bits: int, x: int, *, negative: bool = False) -> list[int]:
    """The first two words of a trial with the given 78 (or fewer) bits of u and 49 of x."""
    u <<= U_BITS + 64 - u_bits
    drawn = x ^ (2**X_BITS - 1) if negative else x
    return [negative << 63 | (u >> 64) << X_BITS | drawn, u % 2**64]
