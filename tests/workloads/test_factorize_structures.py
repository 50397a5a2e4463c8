"""Closed forms, Kronecker products and strategies taken apart, against dense solutions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import muhat as mh
from muhat.ellipsoids.finite import around_columns, around_differences
from muhat.workloads import identity, kron, matrix, parity, prefix, ranges
from muhat.workloads.apart import column_distance, factorize_apart, nuclear_floor, uniform_floor
from muhat.workloads.dense_factors import distinct_columns
from muhat.workloads.factorize import factorize
from muhat.workloads.identity import Identity
from muhat.workloads.products import Composition, KroneckerMap, Multiple

INF = math.inf
ORDERS = [2, 3, INF]


def gaussian(rows, columns, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, columns))


@pytest.mark.parametrize(("dim", "width"), [(8, 2), (5, 1), (6, 3), (4, 4), (7, 0)])
def test_parities_cost_exactly_their_number(dim, width):
    W = parity(dim, width)
    f = factorize(W)
    assert f.value == pytest.approx(W.shape[0], rel=1e-13)
    assert f.value**2 >= W.shape[0] ** 2
    assert f.gap < 1e-13
    assert factorize(W, INF).value == pytest.approx(math.sqrt(W.shape[0]), rel=1e-13)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize(("dim", "width"), [(3, 1), (4, 2), (4, 3), (3, 3), (5, 4)])
def test_parities_under_substitution_are_the_solver_s_optimum(dim, width, p):
    W = parity(dim, width)
    f = factorize(W, p, "substitute")
    assert f.value == pytest.approx(around_differences(W.dense(), p).value, rel=1e-8)
    assert f.gap < 1e-13


def test_large_parities_and_histograms_are_never_built():
    f = factorize(parity(20, 2))
    assert f.value == pytest.approx(190)
    assert f.strategy.shape == (190, 1 << 20)
    f = factorize(identity(10**7), neighbors="add-remove")
    assert isinstance(f.strategy, Identity)
    assert f.is_diagonal


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("n", [2, 3, 10])
def test_histograms_under_substitution_have_the_closed_form(n, p):
    power = 0 if math.isinf(p) else 1 / p
    f = factorize(identity(n), p, "substitute")
    assert f.value == pytest.approx(n ** (power - 0.5) * math.sqrt(2 * (n - 1)), rel=1e-12)
    assert f.value == pytest.approx(around_differences(np.eye(n), p).value, rel=1e-8)
    assert f.strategy.shape == (n - 1, n)


def test_long_histograms_under_substitution_keep_their_cells():
    f = factorize(identity(5000), neighbors="substitute")
    assert f.value == pytest.approx(math.sqrt(2 * 5000))
    assert 0 < f.gap < 1.1e-4
    x = np.arange(5000.0)
    assert np.allclose(f.decoder @ (f.strategy @ x), x)


@pytest.mark.parametrize("p", ORDERS)
def test_kronecker_products_are_the_dense_optimum(p):
    for W in (
        kron(prefix(3), prefix(4)),
        kron(matrix(gaussian(2, 3)), matrix(gaussian(3, 4, 1))),
        kron(prefix(2), ranges(3), identity(2)),
    ):
        f = factorize(W, p)
        exact = around_columns(W.dense(), p)
        assert f.floor <= exact.value * (1 + 1e-12)
        assert f.value >= exact.floor * (1 - 1e-12)
        assert f.value == pytest.approx(exact.value, rel=1e-5)
        assert np.allclose(f.decoder @ f.strategy, W.dense())
        assert (np.linalg.norm(f.strategy.dense(), axis=0) <= 1 + 1e-14).all()
        assert np.linalg.norm(f.decoder.dense(), axis=1) == pytest.approx(
            f.standard_deviations, rel=1e-9
        )


def test_two_dimensional_prefixes_and_ranges_have_the_products_of_the_optima():
    f = factorize(kron(prefix(64), prefix(64)))
    assert f.value**2 == pytest.approx(79637.64, rel=2e-6)
    assert f.gap < 1e-6
    f = factorize(kron(ranges(64), ranges(64)))
    assert f.value**2 == pytest.approx(121.537e6, rel=1e-5)
    assert f.gap < 1e-6
    one = factorize(ranges(64))
    assert f.standard_deviations[:2080] == pytest.approx(
        one.standard_deviations * one.standard_deviations[0], rel=1e-5
    )


def test_products_along_axes_are_the_matrices_they_stand_for():
    A, B = gaussian(3, 4), gaussian(2, 5, 1)
    map_ = KroneckerMap([A, prefix(3), B])
    dense = np.kron(np.kron(A, prefix(3).dense()), B)
    x, y = gaussian(60, 3, 2), gaussian(18, 2, 3)
    assert np.allclose(map_.dense(), dense)
    assert np.allclose(map_ @ x, dense @ x)
    assert np.allclose(map_ @ x[:, 0], dense @ x[:, 0])
    assert np.allclose(map_.transposed(y), dense.T @ y)
    assert np.allclose(map_.row_norms(), np.linalg.norm(dense, axis=1))
    assert np.allclose(map_.column_norms(), np.linalg.norm(dense, axis=0))
    after = Composition(ranges(4), A.T)
    assert np.allclose(after.dense(), ranges(4).dense() @ A.T)
    assert np.allclose(after.row_norms(), np.linalg.norm(after.dense(), axis=1))
    assert np.allclose(after.transposed(np.ones(10)), after.dense().T @ np.ones(10))
    twice = Multiple(-2.0, prefix(3))
    assert np.allclose(twice.dense(), -2 * prefix(3).dense())
    assert np.allclose(twice.row_norms(), 2 * prefix(3).row_norms())
    assert np.allclose(twice.column_norms(), 2 * prefix(3).column_norms())


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize(
    "W", [kron(prefix(4), prefix(5)), kron(ranges(3), identity(4)), prefix(12)]
)
def test_a_strategy_taken_apart_is_valid_and_not_far_off(W, p):
    f = factorize_apart(factorize(W, p))
    R = np.asarray(f.strategy)
    for i in range(R.shape[1]):
        assert np.linalg.norm(R - R[:, [i]], axis=0).max() <= 1 + 1e-14
    assert np.allclose(f.decoder @ f.strategy, W.dense())
    best = factorize(W, p, "substitute")
    assert f.floor <= best.value
    assert best.floor <= f.value <= 1.5 * best.value
    assert f.neighbors is mh.Neighbors.SUBSTITUTE


def test_large_products_under_substitution_state_an_honest_gap():
    f = factorize(kron(prefix(64), prefix(72)), neighbors="substitute")
    assert 0.01 < f.gap < 0.5
    columns = f.strategy.transposed(np.eye(f.strategy.shape[0], 40)).T
    assert columns.shape == (40, 4608)
    x, y = np.zeros(4608), np.zeros(4608)
    x[0], y[-1] = 1, 1
    assert np.linalg.norm(f.strategy @ (x - y)) <= 1


def test_distances_of_columns_are_bounded_for_every_kind_of_strategy():
    R = gaussian(4, 6)
    R /= np.linalg.norm(R, axis=0)
    S = np.abs(gaussian(3, 5, 1))
    S /= np.linalg.norm(S, axis=0)
    for map_ in (KroneckerMap([R, S]), KroneckerMap([S, S]), KroneckerMap([S, identity(3)])):
        dense = map_.dense()
        apart = max(np.linalg.norm(dense - dense[:, [i]], axis=0).max() for i in range(6))
        assert apart <= column_distance(map_) <= 2.001
    assert column_distance(Multiple(1.0, prefix(3))) == pytest.approx(2)
    assert column_distance(Multiple(1.0, prefix(3)), nonnegative=True) == pytest.approx(2**0.5)


@pytest.mark.parametrize(
    "W",
    [
        prefix(30),
        ranges(9),
        identity(5),
        parity(4, 2),
        3 * prefix(5),
        kron(prefix(3), ranges(3)),
        matrix(gaussian(6, 9)),
        matrix(gaussian(9, 4)),
    ],
)
def test_nuclear_norms_are_bounded_from_below_and_nearly_exact(W):
    exact = np.linalg.svd(W.dense(), compute_uv=False).sum()
    assert exact * (1 - 1e-6) <= nuclear_floor(W) <= exact * (1 + 1e-13)
    for p in ORDERS:
        assert uniform_floor(W, p) <= factorize(W, p, "substitute").value


def test_distinct_columns_stand_for_all():
    A = gaussian(3, 9)
    A[:, 4] = -A[:, 1]
    A[:, 6] = A[:, 1]
    A[:, 8] = 0
    A[0, 8] = -0.0
    for signed in (True, False):
        chosen, place, signs = distinct_columns(A, signed=signed)
        assert (A[:, chosen][:, place] * signs == A).all()
        assert len(chosen) == (7 if signed else 8)
        assert (np.diff(chosen) > 0).all()
