"""The noise of running sums, rounded to integers as if it had been computed exactly.

The noise on the t-th running sum is the real number

    M_t = D_t·U_t + Σ_{s<t} (D_s − D_{s+1})·U_s,    U = F·z,

with standard normals z, positive integers D_0 ≥ D_1 ≥ …, and the Toeplitz matrix F of
f(0) = 1, f(k) = (1 − 1/(2k))·f(k−1), whose square is the running sum. M = A·D·F⁻¹·z. U is
enclosed by `exact_convolution`, M by integers; where the enclosure contains a half, more bits
of z are drawn, of the same z, and it is computed again. So what comes out is round(M_t), with no
other error than that nothing is ever rounded to a half.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Integers
from muhat.mechanisms.arithmetic.exact_convolution import (
    DIGIT_BITS,
    MANTISSA,
    Digits,
    ExactProduct,
    Transformed,
    convolve,
    split,
    transform,
)
from muhat.noise.entropy import Words, system_words
from muhat.noise.real_normal import RealNormals

LARGEST_WEIGHT = 1 << 40
"""D_0 is at most this: then no sum of products below leaves 64 bits."""

FIRST_LEVELS = 5
"""Digits that are multiplied exactly at first; two more with every attempt."""

FRACTION = 60
"""Bits below the point that the decision to round up or down looks at."""

_LIMB = 20
_LIMB_MASK = np.int64((1 << _LIMB) - 1)


def rounded_noise(
    weights: list[Integers], source: Words = system_words, *, levels: int = FIRST_LEVELS
) -> Integers:
    """round(M) for independent noise in every column, of shape (n, d).

    `weights` has the integers D of each column, not increasing, of shape (n,). `levels` is odd.
    """
    size = len(weights[0])
    root = transform(square_root_digits(size, levels))
    columns = []
    for column in weights:
        normals = RealNormals.draw(size, source)
        columns.append(_rounded(column, normals, root, levels))
    return np.stack(columns, axis=1)


def _rounded(weights: Integers, normals: RealNormals, root: Transformed, levels: int) -> Integers:
    """round(M) for one column, with as many bits of z as that takes."""
    while True:
        while normals.bits < DIGIT_BITS * levels + MANTISSA + 11:
            normals.refine()
        words = [normals.floors, *normals.words]
        product = convolve(root, transform(split(words, normals.bits, levels, 1.0)))
        rounded, undecided = round_sums(weights, product)
        if not undecided.any():
            return rounded
        levels += 2
        root = transform(square_root_digits(len(weights), levels))


def square_root_digits(size: int, levels: int) -> Digits:
    """The digits of f(0), …, f(size − 1)."""
    count = -(-(DIGIT_BITS * levels + MANTISSA + 13) // 64)
    words = square_root_words(size, count)
    return split([words[:, k] for k in range(count)], 64 * count - 2, levels, 2.0)


@lru_cache(maxsize=1)
def square_root_words(size: int, count: int) -> NDArray[np.uint64]:
    """floor(2^(64·count − 2)·f(k)) or 1 less, as words of 64 bits, the highest first.

    The recurrence runs with 32 bits more, and loses at most one unit of these a step.
    """
    value = 1 << (64 * count + 30)
    parts = [(value >> 32).to_bytes(8 * count, "big")]
    for k in range(1, size):
        value = value * (2 * k - 1) // (2 * k)
        parts.append((value >> 32).to_bytes(8 * count, "big"))
    words = np.frombuffer(b"".join(parts), ">u8").reshape(size, count).astype(np.uint64)
    words.setflags(write=False)
    return words


def round_sums(weights: Integers, product: ExactProduct) -> tuple[Integers, NDArray[np.bool_]]:
    """round(M_t) from an enclosure of U, and where the enclosure does not decide it."""
    falls = weights[:-1] - weights[1:]
    if weights[0] > LARGEST_WEIGHT or weights[-1] <= 0 or (falls < 0).any():
        raise ArithmeticError("the weights must fall from at most 2^40 and stay above 0")
    limbs, error = _limbs(product)
    # D_t and all D_s − D_{s+1} add up to D_0, so nothing below leaves 2^40·2^22.
    sums = []
    for limb in limbs:
        total = weights * limb
        total[1:] += np.cumsum(falls * limb[:-1])
        sums.append(total)
    carry = np.zeros_like(weights)
    digits = []
    for total in sums[:0:-1]:
        total += carry
        digits.append(total & _LIMB_MASK)
        carry = total >> _LIMB
    whole = sums[0] + carry
    fraction = np.zeros_like(weights)
    for place, digit in enumerate(digits[::-1][: FRACTION // _LIMB]):
        fraction += digit << np.int64(FRACTION - _LIMB * (place + 1))
    # One unit for the digits left out, one for rounding up here.
    slack = math.ceil(error * float(weights[0]) * 2.0**FRACTION) + 2
    half = np.int64(1 << (FRACTION - 1))
    if slack >= half:
        return whole, np.ones(len(weights), np.bool_)
    return whole + (fraction >= half), np.abs(fraction - half) <= slack


def _limbs(product: ExactProduct) -> tuple[list[Integers], float]:
    """U as Σ_i limbs[i]·2^(−20i), all but the first in [0, 2^20), and the error of that."""
    levels = len(product.whole)
    # The float rest becomes an integer in units of 2^−20 of the last whole digit.
    unit = DIGIT_BITS * (levels + 1) + _LIMB
    low = np.rint(np.ldexp(product.rest, unit)).astype(np.int64)
    limbs, carry = [low & _LIMB_MASK], low >> _LIMB
    for weight in range(levels - 1, 0, -2):
        total = product.whole[weight] + (product.whole[weight - 1] << DIGIT_BITS) + carry
        limbs.append(total & _LIMB_MASK)
        carry = total >> _LIMB
    total = product.whole[0] + carry
    limbs += [total & _LIMB_MASK, total >> _LIMB]
    if np.abs(limbs[-1]).max() >> 22:
        raise ArithmeticError("noise of a million standard deviations")
    return limbs[::-1], (product.error + math.ldexp(1.0, -unit)) * (1 + 2.0**-30)
