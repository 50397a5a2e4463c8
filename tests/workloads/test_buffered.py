"""The strategy with a few buffers: exact lengths, a verified inverse, a certified ratio."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import toeplitz

from muhat.workloads.buffered import SCALE_BITS, BufferedRoot, buffered_root
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
