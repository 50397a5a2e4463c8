"""Convolution with a proved error: never off by more than it says, and by far less than allowed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from muhat.mechanisms.arithmetic import exact_convolution as exact


def kronecker(first: list[int], second: list[int], bits: int) -> list[int]:
    """The convolution by one product of big integers; entries are below 2^(bits−1) in size."""
    size = len(first)

    def packed(values: list[int]) -> int:
        halves = len(values) // 2
        if not halves:
            return values[0]
        return packed(values[:halves]) + (packed(values[halves:]) << (bits * halves))

    width = bits // 8
    product = (packed(first) * packed(second)).to_bytes(2 * size * width + 8, "little", signed=True)
    found, carry = [], 0
    for t in range(size):
        digit = int.from_bytes(product[t * width : (t + 1) * width], "little") + carry
        carry = digit >> (bits - 1)
        found.append(digit - (carry << bits))
    return found


def words_of(values: list[int], count: int) -> list[np.ndarray]:
    return [
        np.array([value >> (64 * k) & (2**64 - 1) for value in values], np.uint64)
        for k in range(count - 1, -1, -1)
    ]


def value_of(digits: exact.Digits, index: int) -> Fraction:
    leading = sum(
        Fraction(int(digit[index]), 1 << 10 * (level + 1))
        for level, digit in enumerate(digits.leading)
    )
    return leading + Fraction(float(digits.rest[index]))


def numbers(kind: str, size: int, bits: int, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    if kind == "largest":
        return [(1 << bits) - 1] * size
    if kind == "alternating":
        return [((1 << bits) - 1) * (-1) ** k for k in range(size)]
    drawn = [int.from_bytes(rng.bytes(16), "little") - (1 << 127) for _ in range(size)]
    return [value >> (127 - bits) for value in drawn]


@pytest.mark.parametrize("kind", ["random", "largest", "alternating"])
@pytest.mark.parametrize("levels", [1, 3, 5, 7])
def test_digits_stand_for_the_numbers(kind, levels):
    values = numbers(kind, 40, 122, 1)
    digits = exact.split(words_of(values, 2), 119, levels, 1.0)
    for index, value in enumerate(values):
        assert abs(value_of(digits, index) - Fraction(value, 1 << 119)) <= digits.loss
    for digit in digits.leading[1:]:
        assert np.abs(digit).max() <= 512


@pytest.mark.parametrize("kind", ["random", "largest", "alternating"])
@pytest.mark.parametrize("size", [1, 2, 3, 100, 3000])
@pytest.mark.parametrize("levels", [3, 5])
def test_convolution_is_within_its_error(kind, size, levels):
    first, second = numbers(kind, size, 122, 2), numbers(kind, size, 119, 3)
    transforms = [
        exact.transform(exact.split(words_of(values, 2), 119, levels, 0.0))
        for values in (first, second)
    ]
    product = exact.convolve(*transforms)
    truth = kronecker(first, second, 304)
    worst = Fraction(0)
    for t in range(size):
        found = Fraction(float(product.rest[t])) + sum(
            Fraction(int(whole[t]), 1 << 10 * (weight + 2))
            for weight, whole in enumerate(product.whole)
        )
        worst = max(worst, abs(found - Fraction(truth[t], 1 << 238)))
    assert worst <= Fraction(product.error)
    assert product.error < 2.0 ** (-10 * levels - 10 + 3) * size


@pytest.mark.parametrize("power", [4, 8, 11, 14])
def test_fourier_transforms_err_by_less_than_half_the_bound(power):
    rng = np.random.default_rng(power)
    size = 1 << (power - 1)
    for _ in range(3):
        first, second = (rng.integers(-512, 513, size) for _ in range(2))
        truth = np.array(kronecker(first.tolist(), second.tolist(), 64), np.float64)
        length = 1 << power
        spectrum = np.fft.rfft(first.astype(float), length) * np.fft.rfft(
            second.astype(float), length
        )
        found = np.fft.irfft(spectrum, length)[:size]
        allowed = exact.transform_error(length, 1) * np.linalg.norm(first) * np.linalg.norm(second)
        assert np.abs(found - truth).max() <= allowed / 2


def test_vectors_too_long_for_the_digits_are_refused():
    digits = exact.Digits([np.full(8, 1 << 30)], np.zeros(8), 0.0)
    long = exact.transform(digits)
    with pytest.raises(ArithmeticError, match="smaller digits"):
        exact.convolve(long, long)
