"""Sums and differences along an axis find what products of matrices find."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.ellipsoids.moment_spectra import Columns, Explicitly, TotalOfRows
from muhat.ellipsoids.verification import dual_floor
from muhat.workloads import prefix
from muhat.workloads.dense_factors import solve_dense
from muhat.workloads.factorize import factorize
from muhat.workloads.running_totals import RunningTotals


@pytest.mark.parametrize("n", [2, 3, 17, 40])
def test_the_second_moment_of_prefixes_is_that_of_their_matrix(n):
    w = np.random.default_rng(n).uniform(0.2, 1, n)
    w /= w.sum()
    W = 0.25 * np.tril(np.ones((n, n)))
    found = RunningTotals(n, 0.25).evaluate(w, np.ones(1))
    known = Explicitly(Columns(n), TotalOfRows(W), n).evaluate(w, np.ones(1))
    assert found.floor == pytest.approx(known.floor, rel=1e-12)
    assert np.allclose(found.g, known.g, rtol=1e-10)
    assert np.allclose(found.h, known.h, rtol=1e-12)
    R, S = found.strategy(), known.strategy()
    assert np.allclose(R.T @ R, S.T @ S, rtol=1e-10)
    (even, total), (other, same) = found.even(), known.even()
    assert np.allclose(total, same, rtol=1e-10)
    assert np.allclose(even.T @ even, other.T @ other, rtol=1e-10)


def test_the_floor_of_prefixes_is_proved_and_no_lower_than_that_of_a_matrix():
    w = np.random.default_rng(1).uniform(0.2, 1, 60)
    w /= w.sum()
    W = np.tril(np.ones((60, 60)))
    exact = np.linalg.svd(W * np.sqrt(w), compute_uv=False).sum()
    found = RunningTotals(60).floor(w)
    assert exact * (1 - 1e-9) < found < exact
    assert found == pytest.approx(dual_floor(W, w, np.ones(60), 2), rel=1e-9)


def test_prefixes_are_certified_as_their_matrix_is():
    n = 150
    found, known = factorize(prefix(n)), solve_dense(np.tril(np.ones((n, n))), 2, 1e-6, pairs=False)
    assert found.gap <= 1e-6
    assert found.value == pytest.approx(known.value, rel=1e-6)
    assert found.floor == pytest.approx(known.floor, rel=1e-6)
    assert np.allclose(found.decoder @ found.strategy, np.tril(np.ones((n, n))), atol=1e-9)
