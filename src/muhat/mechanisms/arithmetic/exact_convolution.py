"""Convolution of real vectors to far more bits than a float holds, with a proved error.

Each vector is written in balanced digits of base 2^10, some leading ones and a float for all that
follows:  a = a_0·2^(−10) + a_1·2^(−20) + … + rest.  The products of leading digits are integers,
and the Fourier transform in floats has an error below ½ for them, proved below: rounding makes
them exact. What involves later digits is small, and stays in floats.

The error of a transform. Let u = 2^−53. A radix-2 step adds (error u), and multiplies by roots
of unity (error √5·u; Brent, Percival and Zimmermann 2007) which are themselves off by at most
4u: together less than 8u of the 2-norm. Radix-4 steps do the same work with fewer products. A
convolution of length N = 2^L takes three transforms and one product, so
‖computed − exact‖_∞ ≤ (24·L + 4)·u·‖a‖₂·‖b‖₂. Twice that is allowed for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats, Integers

Complexes = NDArray[np.complex128]

DIGIT_BITS = 10
WORD_BITS = 64
MANTISSA = 53
_SLACK = 1 + 2.0**-30
"""Covers the rounding of the norms themselves."""


@dataclass(frozen=True)
class Digits:
    """A vector as Σ_i leading[i]·2^(−10(i+1)) + rest, up to `loss` in every entry."""

    leading: list[Integers]
    rest: Floats
    loss: float


@dataclass(frozen=True)
class Transformed:
    """The Fourier transforms of digits, with what bounds their errors need.

    `norms` are those of the leading digits, times 2^(−10(i+1)), and of the rest; `total` is at
    least the sum of the absolute values of the vector.
    """

    size: int
    length: int
    spectra: list[Complexes]
    rest: Complexes
    norms: list[float]
    total: float
    loss: float


@dataclass(frozen=True)
class ExactProduct:
    """The first n entries of a convolution: Σ_w whole[w]·2^(−10(w+2)) + rest, up to `error`."""

    whole: list[Integers]
    rest: Floats
    error: float


def split(words: Sequence[NDArray[Any]], bits: int, levels: int, unknown: float) -> Digits:
    """The digits of numbers in fixed point with `bits` fractional bits.

    `words` hold 64 bits of every number each, the highest first and in two's complement. The
    number itself may be up to `unknown` units of the last bit away.
    """
    columns = [word.view(np.uint64) for word in reversed(words)]
    low = bits - DIGIT_BITS
    digits = [words[0].view(np.int64) >> np.int64(low - WORD_BITS * (len(words) - 1))]
    for _ in range(1, levels):
        low -= DIGIT_BITS
        digits.append(_window(columns, low, DIGIT_BITS))
    width = min(low, MANTISSA)
    rest = _window(columns, low - width, width).astype(np.float64) * 2.0**-width
    # Balanced digits are half as large, and so is the error of their products.
    up = rest >= 0.5
    rest = (rest - up) * math.ldexp(1.0, -DIGIT_BITS * levels)
    for level in range(levels - 1, 0, -1):
        digit = digits[level] + up
        up = digit >= 1 << (DIGIT_BITS - 1)
        digits[level] = digit - (up.astype(np.int64) << DIGIT_BITS)
    digits[0] = digits[0] + up
    loss = math.ldexp(unknown, -bits) + math.ldexp(1.0, -DIGIT_BITS * levels - width)
    return Digits(digits, rest, loss)


def _window(columns: Sequence[NDArray[np.uint64]], low: int, width: int) -> Integers:
    """Bits low, …, low + width − 1 of numbers whose words are given lowest first."""
    index, shift = divmod(low, WORD_BITS)
    window = columns[index] >> np.uint64(shift)
    if shift + width > WORD_BITS:
        window |= columns[index + 1] << np.uint64(WORD_BITS - shift)
    return (window & np.uint64((1 << width) - 1)).view(np.int64)


def transform(digits: Digits) -> Transformed:
    """The transforms of a vector's digits, long enough for a convolution without wrapping."""
    size = len(digits.rest)
    length = max(2, 1 << (2 * size - 1).bit_length())
    norms, total = [], float(np.sum(np.abs(digits.rest)))
    for level, digit in enumerate(digits.leading):
        scale = math.ldexp(1.0, -DIGIT_BITS * (level + 1))
        norms.append(scale * _norm(digit.astype(np.float64)))
        total += scale * float(np.sum(np.abs(digit)))
    return Transformed(
        size,
        length,
        [np.fft.rfft(digit.astype(np.float64), length) for digit in digits.leading],
        np.fft.rfft(digits.rest, length),
        [*norms, _norm(digits.rest)],
        total * _SLACK + size * digits.loss,
        digits.loss,
    )


def _norm(vector: Floats) -> float:
    return math.sqrt(float(np.sum(vector * vector))) * _SLACK


def transform_error(length: int, products: int) -> float:
    """How far a sum of `products` convolutions may be off, by Σ‖a‖₂·‖b‖₂."""
    return (48 * math.log2(length) + 8 + 4 * products) * 2.0**-MANTISSA


def convolve(first: Transformed, second: Transformed) -> ExactProduct:
    """Σ_s first[t − s]·second[s] for t < n."""
    levels, size, length = len(first.spectra), first.size, first.length
    unit = transform_error(length, levels + 2)
    whole = []
    for weight in range(levels):
        pairs = [(i, weight - i) for i in range(weight + 1)]
        scale = math.ldexp(1.0, DIGIT_BITS * (weight + 2))
        if unit * scale * sum(first.norms[i] * second.norms[j] for i, j in pairs) >= 0.5:
            raise ArithmeticError("vectors of this length need smaller digits")
        spectrum = first.spectra[0] * second.spectra[weight]
        for i, j in pairs[1:]:
            spectrum += first.spectra[i] * second.spectra[j]
        whole.append(np.rint(np.fft.irfft(spectrum, length)[:size]).astype(np.int64))
    # What is left of second for digit i of first: the digits that no whole product took.
    tail, tail_norm = second.rest.copy(), second.norms[-1]
    spectrum = np.zeros_like(tail)
    error = 0.0
    for i in range(levels):
        scale = math.ldexp(1.0, -DIGIT_BITS * (i + 1))
        spectrum += (first.spectra[i] * scale) * tail
        error += first.norms[i] * tail_norm
        j = levels - 1 - i
        tail += second.spectra[j] * math.ldexp(1.0, -DIGIT_BITS * (j + 1))
        tail_norm += second.norms[j]
    spectrum += first.rest * tail
    error = unit * (error + first.norms[-1] * tail_norm)
    rest = np.fft.irfft(spectrum, length)[:size]
    error += first.loss * second.total + second.loss * first.total
    return ExactProduct(whole, rest, error * _SLACK)
