"""The strategy with a few buffers: exact lengths, a verified inverse, a certified ratio."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import toeplitz

from muhat.workloads.buffered import SCALE_BITS, BufferedRoot, ExponentialSum, buffered_root
from muhat.workloads.toeplitz_floor import prefix_floor


@pytest.mark.parametrize("size", [1, 2, 7, 60])
def test_lengths_are_at_least_those_of_the_columns_exactly(size):
    root = buffered_root(size)
    whole = 1 << SCALE_BITS
    square = Fraction(0)
    lengths = [Fraction(x) for x in root.lengths(0, size)]
    for k in range(size):
        c = sum(
            Fraction(weight, whole) * Fraction(decay, whole) ** k
            for weight, decay in zip(root.weights, root.decays, strict=True)
        )
        square += c * c if k else 1
        length = lengths[size - 1 - k]
        assert square <= length**2 <= square * (1 + Fraction(1, 1 << 34))


def test_lengths_of_a_block_are_those_of_the_whole():
    root = buffered_root(500)
    assert (root.lengths(100, 200) == root.lengths(0, 500)[100:200]).all()
    assert (np.diff(root.lengths(0, 500)) <= 0).all()


def test_far_from_the_end_lengths_are_hardly_longer_than_those_of_the_columns():
    root = buffered_root(9000)
    lengths = root.lengths(0, 9000)
    squares = np.cumsum(root.coefficients() ** 2)[::-1]
    assert (lengths**2 >= squares).all()
    assert np.allclose(lengths**2, squares, rtol=2e-3)
    assert np.allclose(lengths[-4096:] ** 2, squares[-4096:], rtol=1e-9)
    assert len(set(lengths.tolist())) < 4096 + 100


@pytest.mark.parametrize("size", [1, 2, 60, 1000, 10**6, 1 << 22])
def test_the_inverse_is_one_to_a_hundred_bits(size):
    root = buffered_root(size)
    assert root.discrepancy < Fraction(1, 1 << 100)
    assert min(root.inverse.weights) > 0
    rests = list(root.inverse.rests)
    assert rests == sorted(rests)


def test_a_digit_of_the_inverse_that_is_wrong_is_noticed():
    root = buffered_root(60)
    right = root.inverse
    rests = [*right.rests[:-1], right.rests[-1] + (1 << 60)]
    other = BufferedRoot(root.size, root.decays, root.weights)
    other.__dict__["inverse"] = ExponentialSum(tuple(rests), right.weights)
    assert other.discrepancy > Fraction(1, 1 << 70)


@pytest.mark.parametrize("size", [1, 2, 30, 300])
def test_deviations_are_those_of_the_dense_decoder(size):
    root = buffered_root(size)
    matrix = np.tril(toeplitz(root.coefficients()))
    decoder = np.cumsum(root.lengths(0, size)[:, None] * np.linalg.inv(matrix), axis=0)
    exact = np.linalg.norm(decoder, axis=1)
    assert (root.standard_deviations >= exact * (1 - 1e-12)).all()
    assert np.allclose(root.standard_deviations, exact, rtol=5e-6)


def test_the_error_is_nearly_that_of_the_square_root():
    root = buffered_root(4096)
    assert len(root.decays) == 7
    ratio = (np.linalg.norm(root.standard_deviations) / prefix_floor(4096, 2.0)) ** 2
    assert 1 < ratio < 1.025


@pytest.mark.parametrize("weights", [(1 << 47, 3 << 47), (1 << 46, 1 << 40)])
def test_a_strategy_whose_inverse_is_not_understood_is_noticed(weights):
    """Weights of more than 1 in all make the inverse alternate in sign."""
    root = BufferedRoot(50, (1 << 46, (1 << 48) - (1 << 40)), weights)
    if sum(weights) > 1 << 48:
        with pytest.raises(ArithmeticError), np.errstate(all="ignore"):
            _ = root.standard_deviations
    else:
        assert (root.standard_deviations > 0).all()
