"""The noise of running sums is rounded as if it had been computed exactly."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from math import floor

import numpy as np
import pytest

from keyed_entropy import drawn_once
from muhat.mechanisms.arithmetic import certified_rounding as rounding
from muhat.noise.real_normal import RealNormals


class Words:
    """The same words on every run; counts how often it was asked."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.calls = 0

    def __call__(self, count: int) -> np.ndarray:
        self.calls += 1
        return self.generator.integers(0, 1 << 64, count, np.uint64, endpoint=False)


def falling_weights(size: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.sort(rng.integers(1 << 30, 1 << 40, size))[::-1].copy()


def exact_noise(weights: np.ndarray, seed: int, refinements: int) -> list[Fraction]:
    """M from its definition, in rationals, with many more bits of the same normals."""
    size = len(weights)
    normals = RealNormals.draw(size, Words(seed))
    for _ in range(refinements):
        normals.refine()
    z = [Fraction(value, 1 << normals.bits) for value in normals.integers()]
    f = [Fraction(1)]
    for k in range(1, size):
        f.append(f[-1] * Fraction(2 * k - 1, 2 * k))
    filtered = [sum(f[t - s] * z[s] for s in range(t + 1)) for t in range(size)]
    d = weights.tolist()
    found, running = [], Fraction(0)
    for t in range(size):
        found.append(d[t] * filtered[t] + running)
        if t + 1 < size:
            running += (d[t] - d[t + 1]) * filtered[t]
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 17, 64, 200])
def test_noise_is_correctly_rounded(size):
    weights = falling_weights(size, size)
    found = rounding.rounded_noise([weights], Words(size))[:, 0]
    truth = exact_noise(weights, size, 1)
    assert found.tolist() == [floor(value + Fraction(1, 2)) for value in truth]


@pytest.mark.parametrize("size", [5, 100, 5000])
def test_the_slow_path_gives_the_same_numbers(size):
    """One exact digit decides next to nothing: more bits of the same normals are drawn."""
    weights = falling_weights(size, size)
    quick, slow = Words(7), Words(7)
    fast = rounding.rounded_noise([weights], quick)
    assert (rounding.rounded_noise([weights], slow, levels=1) == fast).all()


def test_an_enclosure_that_is_too_wide_draws_more_bits_and_changes_nothing(monkeypatch):
    weights = falling_weights(300, 1)
    quick, slow = Words(3), Words(3)
    fast = rounding.rounded_noise([weights], quick)
    convolve = rounding.convolve

    def blurred(first, second):
        product = convolve(first, second)
        blur = 1.0 if len(product.whole) < 9 else 0.0
        return dataclasses.replace(product, error=product.error + blur)

    monkeypatch.setattr(rounding, "convolve", blurred)
    assert (rounding.rounded_noise([weights], slow) == fast).all()
    assert slow.calls > quick.calls


def test_what_is_undecided_is_said_to_be():
    """Numbers at a half, exactly, are never decided."""
    weights = np.array([4, 4, 2])
    product = rounding.ExactProduct([np.array([1 << 17, 1 << 18, 1 << 20])], np.zeros(3), 2.0**-40)
    rounded, undecided = rounding.round_sums(weights, product)
    # U = 1/8, 1/4, 1: M = 1/2, 1, 2·1 + 2·(1/4)
    assert undecided.tolist() == [True, False, True]
    assert rounded[1] == 1


def test_a_planted_error_in_a_weight_is_caught():
    weights = falling_weights(50, 3)
    found = rounding.rounded_noise([weights], Words(9))[:, 0]
    wrong = weights.copy()
    wrong[0] += 1
    truth = exact_noise(wrong, 9, 1)
    assert found.tolist() != [floor(value + Fraction(1, 2)) for value in truth]


@pytest.mark.parametrize("weights", [[1, 2], [1 << 41, 1], [1, 0]])
def test_weights_that_could_overflow_are_refused(weights):
    with pytest.raises(ArithmeticError, match="weights"):
        rounding.rounded_noise([np.array(weights)])


def test_coefficients_are_enclosed():
    words = rounding.square_root_words(500, 2)
    exact = Fraction(1)
    for k in range(500):
        exact = exact if k == 0 else exact * Fraction(2 * k - 1, 2 * k)
        value = int(words[k, 0]) << 64 | int(words[k, 1])
        assert 0 <= exact * (1 << 126) - value <= 2


@drawn_once
def many(weights: tuple[int, ...], count: int) -> np.ndarray:
    return rounding.rounded_noise([np.array(weights)] * count).astype(np.float64)


@pytest.mark.parametrize("planted", [None, "scale", "order"])
def test_noise_has_the_covariance_of_the_factor(planted):
    """Whitened, the noise is a sample of independent standard normals; 6 standard errors."""
    size, count = 6, 1500
    weights = np.array([9, 8, 6, 5, 3, 2]) << 30
    noise = many(tuple(weights), count).copy()
    if planted == "scale":
        noise[-1] *= 1.3
    if planted == "order":
        noise = noise[::-1]
    f = np.cumprod(np.append(1.0, 1 - 0.5 / np.arange(1, size)))
    root = np.array([[f[t - s] if s <= t else 0.0 for s in range(size)] for t in range(size)])
    ones = np.tril(np.ones((size, size)))
    factor = ones @ np.diag(weights) @ np.linalg.inv(root)
    white = np.linalg.solve(factor, noise)
    moments = white @ white.T / count
    errors = np.where(np.eye(size), np.sqrt(2 / count), np.sqrt(1 / count))
    agrees = (np.abs(moments - np.eye(size)) < 6 * errors).all()
    assert agrees == (planted is None)
