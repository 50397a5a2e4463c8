"""The square-root factorisation of running sums: exact identities, and certified numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from muhat.domains.norms import p_norm
from muhat.errors import InvalidInput
from muhat.workloads import toeplitz
from muhat.workloads.identity import Identity
from muhat.workloads.prefix import Prefix
from muhat.workloads.toeplitz_deviations import DEVIATION_ERROR, deviations
from muhat.workloads.toeplitz_floor import prefix_floor, root_diagonal, singular_values

sizes = pytest.mark.parametrize("size", [1, 2, 3, 10, 257])


def exact_coefficients(size: int) -> list[Fraction]:
    f = [Fraction(1)]
    for k in range(1, size):
        f.append(f[-1] * Fraction(2 * k - 1, 2 * k))
    return f


def test_the_coefficients_square_to_the_running_sum():
    f = exact_coefficients(60)
    for t in range(60):
        assert sum(f[k] * f[t - k] for k in range(t + 1)) == 1
    found = toeplitz.square_root(60)
    assert all(
        abs(Fraction(x) / y - 1) < Fraction(1, 1 << 45) for x, y in zip(found, f, strict=True)
    )


def test_no_column_of_the_strategy_is_longer_than_one():
    for size in (1, 2, 5, 300):
        f = exact_coefficients(size)
        lengths = [Fraction(x) for x in toeplitz.column_lengths(size)]
        square = Fraction(0)
        for j in range(size - 1, -1, -1):
            square += f[size - 1 - j] ** 2
            assert square <= lengths[j] ** 2 <= square * (1 + Fraction(1, 1 << 38))


@sizes
def test_decoder_times_strategy_is_the_running_sum(size):
    decoder, strategy = toeplitz.SquareRootDecoder(size), toeplitz.SquareRootStrategy(size)
    ones = np.tril(np.ones((size, size)))
    assert np.allclose(decoder.dense() @ strategy.dense(), ones, atol=1e-12)
    assert np.allclose(decoder.transposed(np.eye(size)), decoder.dense().T, atol=1e-12)
    assert np.allclose(strategy.transposed(np.eye(size)), strategy.dense().T, atol=1e-12)
    assert np.allclose(strategy.column_norms(), np.linalg.norm(strategy.dense(), axis=0))
    vector = np.arange(size) + 1.0
    assert np.allclose(decoder @ vector, decoder.dense() @ vector)
    assert np.allclose(strategy @ vector, strategy.dense() @ vector)


@sizes
def test_deviations_are_the_row_lengths_of_the_decoder_rounded_up(size):
    exact = np.linalg.norm(toeplitz.SquareRootDecoder(size).dense(), axis=1)
    found = toeplitz.answer_deviations(size)
    assert (found >= exact * (1 - 1e-13)).all()
    assert (found <= exact * (1 + 2.1 * DEVIATION_ERROR)).all()


def test_deviations_hold_at_single_rows_of_a_long_prefix():
    """Row t is the decoder's transpose of a unit vector."""
    size = 20_000
    decoder = toeplitz.SquareRootDecoder(size)
    for row in (0, 1, 50, 9_999, 19_998, 19_999):
        exact = np.linalg.norm(decoder.transposed(np.eye(1, size, row)[0]))
        assert exact * (1 - 1e-9) <= decoder.row_norms()[row] <= exact * (1 + 2.1e-6)


def test_an_exponential_sum_that_does_not_fit_is_noticed():
    wrong = toeplitz.square_root(100) * np.linspace(1, 1.001, 100)
    with pytest.raises(ArithmeticError, match="accurate"):
        deviations(wrong, toeplitz.column_lengths(100))


@sizes
def test_singular_values_and_the_root_have_closed_forms(size):
    ones = np.tril(np.ones((size, size)))
    assert np.allclose(np.linalg.svd(ones, compute_uv=False), singular_values(size))
    values, vectors = np.linalg.eigh(ones.T @ ones)
    diagonal = vectors**2 @ np.sqrt(values)
    assert np.allclose(root_diagonal(size), diagonal, rtol=1e-9)
    assert (root_diagonal(size) <= diagonal * (1 + 1e-11)).all()


@pytest.mark.parametrize("p", [2.0, 3.0, 4.0, 16.0, math.inf])
@pytest.mark.parametrize("size", [1, 2, 30, 300])
def test_the_floor_is_below_the_value(size, p):
    factors = toeplitz.factorize_prefix(Prefix(size), p)
    assert factors.floor <= factors.value
    assert factors.floor >= size ** ((0 if math.isinf(p) else 1 / p) - 1) * np.sum(
        singular_values(size)
    ) * (1 - 1e-8)
    assert factors.gap < 0.07


def test_the_floor_of_two_cells_is_below_the_golden_ratio():
    golden = (1 + math.sqrt(5)) / 2
    assert 2.599 < prefix_floor(2, 2.0) ** 2 < golden**2


def test_the_floor_at_256_is_below_the_known_optimum_and_close():
    assert 1624 < prefix_floor(256, 2.0) ** 2 < 1631.4


def test_total_error_at_4096_is_as_promised():
    factors = toeplitz.factorize_prefix(Prefix(4096))
    assert (factors.value / factors.floor) ** 2 < 1.025
    assert round(factors.value**2, -1) == 48120


@pytest.mark.slow
def test_total_error_at_a_million_is_as_promised():
    factors = toeplitz.factorize_prefix(Prefix(10**6))
    assert (factors.value / factors.floor) ** 2 < 1.017
    assert len(factors.standard_deviations) == 10**6


def test_normalised_columns_are_better_than_plain_ones_for_every_p():
    size = 500
    plain = np.sqrt(np.cumsum(toeplitz.square_root(size) ** 2))
    for p in (2.0, 4.0, math.inf):
        factors = toeplitz.factorize_prefix(Prefix(size), p)
        assert factors.value < p_norm(plain, p) * plain[-1]


def test_refusals_are_clear():
    with pytest.raises(InvalidInput, match="prefix"):
        toeplitz.factorize_prefix(Identity(5))
    with pytest.raises(InvalidInput, match="substitution"):
        toeplitz.factorize_prefix(Prefix(10**5), neighbors="substitute")
    with pytest.raises(InvalidInput, match="at least 2"):
        toeplitz.factorize_prefix(Prefix(10), 1.0)
    with pytest.raises(InvalidInput, match="not factorised"):
        toeplitz.factorize_prefix(Prefix(1 << 23))
