"""Multiplicative steps against the interior point method, and floors against exact traces."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from muhat.ellipsoids.finite import around_columns, around_differences
from muhat.ellipsoids.moment_floors import (
    floor_of,
    gram_defect,
    gram_floor,
    nearly_orthonormal,
    pair_floor,
    root_trace_floor,
    spread_floor,
)
from muhat.ellipsoids.moment_spectra import (
    Columns,
    Explicitly,
    FewRows,
    ManyRows,
    Pairs,
    TotalOfRows,
)
from muhat.ellipsoids.multiplicative import ascend
from muhat.ellipsoids.verification import Unverified

INF = np.inf


def gaussian(rows, columns, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, columns))


def prefix(n):
    return np.tril(np.ones((n, n)))


def many(A):
    return ManyRows(len(A), lambda u: (A.T * u) @ A, lambda X: np.sum((A @ X) ** 2, axis=1))


@pytest.mark.parametrize("p", [2, 3, 4, 16, INF])
@pytest.mark.parametrize("A", [prefix(12), gaussian(9, 14), gaussian(6, 6)])
def test_columns_reach_the_optimum_at_every_order(A, p):
    exact = around_columns(A, p).value
    found = ascend(Columns(A.shape[1]), FewRows(A), len(A), p, 1e-6)
    assert found.gap <= 1e-6
    assert found.floor <= exact * (1 + 1e-9)
    assert found.value >= exact * (1 - 1e-9)
    lengths = np.linalg.norm(found.strategy, axis=0)
    assert lengths.max() == pytest.approx(1)


def test_weights_that_lose_a_direction_have_a_strategy_all_the_same():
    """At p = ∞ the best second moment may be flat: what floats see of it may be below 0."""
    A, w, u = gaussian(6, 6), np.array([0.3, 0.2, 0.3, 0.2, 0.0, 0.0]), np.ones(6)
    found = Explicitly(Columns(6), FewRows(A), 6).evaluate(w, u)
    exact = np.linalg.svd(A * np.sqrt(w), compute_uv=False).sum()
    assert found.floor == pytest.approx(exact, rel=1e-7)
    R = found.strategy()
    L = A @ np.linalg.inv(R)
    assert np.allclose(found.h, np.sum(L**2, axis=1), rtol=1e-6)
    assert np.allclose(found.g, np.sum(R**2, axis=0))


@pytest.mark.parametrize("p", [2, 4, INF])
def test_pairs_reach_the_optimum(p):
    A = prefix(12)
    rows = TotalOfRows(A) if p == 2 else FewRows(A)
    found = ascend(Pairs(12), rows, 11, p, 1e-5)
    assert found.gap <= 1e-5
    assert found.value == pytest.approx(around_differences(A, p).value, rel=2e-5)


@pytest.mark.parametrize("p", [3, 8, INF])
def test_many_rows_need_only_the_dimensions_of_the_columns(p):
    A = gaussian(80, 6)
    found = ascend(Columns(6), many(A), 6, p, 1e-6, limit=500)
    assert found.strategy.shape == (6, 6)
    assert found.value == pytest.approx(around_columns(A, p, 1e-7).value, rel=1e-5)


def test_a_root_of_the_gram_matrix_serves_for_the_matrix():
    A = gaussian(50, 7)
    triangle = np.linalg.cholesky(A.T @ A).T
    whole = ascend(Columns(7), TotalOfRows(A), 7, 2, 1e-8)
    small = ascend(Columns(7), TotalOfRows(triangle), 7, 2, 1e-8)
    assert small.value == pytest.approx(whole.value, rel=1e-7)


def test_the_laplacian_has_the_second_moment_of_the_pairs():
    pairs = Pairs(5)
    w, S = np.arange(1.0, 11.0), gaussian(3, 5)
    differences = S[:, pairs.first] - S[:, pairs.second]
    assert np.allclose(pairs.moment(S, w), (differences * w) @ differences.T)
    assert np.allclose(pairs.squares(S), np.sum(differences**2, axis=0))


def test_too_few_steps_leave_a_gap_and_say_so():
    found = ascend(Columns(64), TotalOfRows(prefix(64)), 64, 2, 1e-12, limit=2)
    assert found.iterations == 2
    assert found.gap > 1e-6
    assert found.floor < 16.798852 < found.value


def test_points_that_do_not_span_are_refused():
    A = np.ones((3, 4))
    with pytest.raises(FloatingPointError):
        ascend(Columns(4), TotalOfRows(np.full((3, 4), np.nan)), 3, 2, 1e-6)
    with pytest.raises(FloatingPointError):
        ascend(Columns(4), many(A), 4, 4, 1e-6)


def exact_root_trace(A, w):
    with mpmath.workdps(40):
        M = mpmath.matrix(A.tolist())
        E = M * mpmath.diag([mpmath.mpf(float(x)) for x in w]) * M.T
        return sum(mpmath.sqrt(abs(x)) for x in mpmath.eigsy(E, eigvals_only=True))


@pytest.mark.parametrize("seed", range(5))
def test_floors_are_below_the_trace_in_high_precision(seed):
    A, w = gaussian(6, 9, seed), np.abs(gaussian(9, 1, seed + 20))[:, 0]
    exact = exact_root_trace(A, w)
    found = gram_floor(A.T @ A, w, len(A) + 2)
    assert 0 <= 1 - found / float(exact) < 1e-9
    moment = (A * w) @ A.T
    found = root_trace_floor(moment, np.sqrt(np.diag(moment)), 9 + 4)
    assert mpmath.mpf(found) <= exact
    assert found == pytest.approx(float(exact), rel=1e-9)


def test_floors_of_pairs_are_below_the_trace_in_high_precision():
    pairs, A = Pairs(7), gaussian(5, 7)
    w = np.abs(gaussian(21, 1))[:, 0]
    exact = exact_root_trace(A[:, pairs.first] - A[:, pairs.second], w)
    found = pair_floor(A, pairs.laplacian(w))
    assert mpmath.mpf(found) <= exact
    assert found == pytest.approx(float(exact), rel=1e-9)
    u = np.abs(gaussian(5, 1, 3))[:, 0]
    weighted = pair_floor(np.sqrt(u)[:, None] * A, pairs.laplacian(w))
    assert pair_floor(A, pairs.laplacian(w), u) == pytest.approx(weighted, rel=1e-9)


def test_errors_of_the_moment_lower_the_floor():
    moment = np.diag([1.0, 1e-6])
    sizes = np.sqrt(np.diag(moment))
    sharp, blunt = root_trace_floor(moment, sizes, 0), root_trace_floor(moment, sizes, 10**12)
    assert blunt < sharp <= 1 + 1e-3
    assert root_trace_floor(np.zeros((2, 2)), np.zeros(2), 0) == 0


def test_thin_directions_are_left_out_where_they_would_spoil_the_floor():
    squares = 10.0 ** -np.arange(0, 20, 2.0)
    Q = np.linalg.qr(gaussian(10, 10))[0]
    moment = (Q * squares) @ Q.T
    found = root_trace_floor(moment, np.sqrt(np.diag(moment)), 0)
    assert 0.99 * np.sqrt(squares).sum() < found <= np.sqrt(squares).sum()


def test_spread_weights_bound_the_differences():
    A = prefix(10)
    v = np.full(10, 0.1)
    trace = gram_floor(A.T @ A, v, 0)
    floor = spread_floor(trace, float(np.linalg.norm(A @ v)), v)
    assert 0.5 * around_differences(A).value < floor <= around_differences(A).value
    assert spread_floor(1.0, 0.0, np.ones(1)) == 0


def test_the_gram_matrix_is_above_its_triangle_up_to_the_defect():
    A = gaussian(30, 5)
    gram = A.T @ A
    triangle = np.linalg.cholesky(gram).T
    assert gram_defect(gram, triangle, 32) < 1e-11
    assert gram_defect(gram, triangle * (1 + 1e-6), 32) > 1e-6
    with pytest.raises(Unverified):
        gram_defect(gram, 2 * triangle, 32)


def test_a_floor_is_normalised_by_its_weights():
    assert floor_of(3.0, np.full(4, 0.25), np.ones(1), 2) == pytest.approx(3)
    assert floor_of(3.0, np.full(4, 1.0), np.full(9, 4.0), 2) == pytest.approx(3 / 4)
    assert floor_of(3.0, np.zeros(4), np.ones(1), 2) == 0
    assert nearly_orthonormal(np.eye(4)[:, :3]) == pytest.approx(1)
    assert nearly_orthonormal(1.5 * np.eye(2)) >= 1.5
