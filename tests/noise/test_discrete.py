"""Exact draws of whole numbers: their laws, and errors that are told apart."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from muhat.errors import InvalidInput
from muhat.noise.discrete import coins, discrete_laplace, uniform_below

FALSE_ALARM = 1e-7


def test_discrete_laplace_has_its_law_and_a_rounded_laplace_is_told_apart():
    size = 20_000
    draws = np.clip(discrete_laplace(Fraction(2), size), -3, 3)
    counts = np.bincount(draws + 3, minlength=7)
    k = np.arange(-3, 4)
    q = np.exp(-2)
    exact = (1 - q) / (1 + q) * q ** np.abs(k)
    exact[[0, -1]] = q**3 / (1 + q)
    assert stats.chisquare(counts, exact * size).pvalue > FALSE_ALARM
    rounded = np.sinh(1) * q ** np.abs(k)
    rounded[3] = 1 - np.exp(-1)
    rounded[[0, -1]] = np.exp(-5) / 2
    assert rounded.sum() == pytest.approx(1)
    assert stats.chisquare(counts, rounded * size).pvalue < FALSE_ALARM


def test_a_small_rate_gives_a_large_scale():
    """The mean of |Z|·rate is close to 1 for a small rate; 5.5 standard errors of 1/√size."""
    rate, size = Fraction(1, 1 << 40), 3_000
    sizes = np.abs(discrete_laplace(rate, size)) * float(rate)
    assert abs(sizes.mean() - 1) < 5.5 / np.sqrt(size)
    with pytest.raises(InvalidInput, match="2\\^-50"):
        discrete_laplace(Fraction(1, 1 << 51), 1)


def test_uniform_numbers_and_coins_have_their_chances():
    size = 6_000
    counts = np.bincount([uniform_below(6) for _ in range(size)], minlength=6)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    heads = int(coins(Fraction(1, 3), 10 * size).sum())
    assert stats.binomtest(heads, 10 * size, 1 / 3).pvalue > FALSE_ALARM
    assert stats.binomtest(heads, 10 * size, 0.36).pvalue < FALSE_ALARM
    assert uniform_below(1) == 0
    assert coins(Fraction(1), 3).all()
    assert not coins(Fraction(0), 3).any()
