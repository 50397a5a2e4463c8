"""Factorisations of every workload: what is claimed holds, and it is the best known or better."""

from __future__ import annotations

import math

import numpy as np
import pytest

import muhat as mh
from muhat.ellipsoids.finite import around_columns, around_differences
from muhat.errors import InvalidInput
from muhat.workloads import identity, kron, marginals, matrix, parity, prefix, ranges, stack
from muhat.workloads.factorize import factorize

INF = math.inf
RELATIONS = ["add-remove", "substitute"]


def gaussian(rows, columns, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, columns))


def check(f, tol=1e-10):
    """Everything that a factorisation claims, against its dense matrices."""
    R, L = np.asarray(f.strategy), np.asarray(f.decoder)
    W = f.workload.dense()
    product = np.asarray(f.decoder @ f.strategy)
    if f.offset is not None:
        product = product + f.offset[:, None]
    assert np.abs(product - W).max() <= tol * np.abs(W).max()
    if f.neighbors is mh.Neighbors.ADD_REMOVE:
        assert np.sqrt(np.sum(R**2, axis=0)).max(initial=0) <= 1 + 1e-15
        assert f.offset is None
    else:
        for i in range(R.shape[1]):
            assert np.sqrt(np.sum((R - R[:, i : i + 1]) ** 2, axis=0)).max(initial=0) <= 1 + 1e-15
    lengths = np.linalg.norm(L, axis=1)
    size = lengths.max(initial=0.0)
    assert (f.standard_deviations >= lengths * (1 - 1e-14) - 1e-14 * size).all()
    assert (f.standard_deviations <= lengths + 1e-5 * size).all()
    assert f.variances() == pytest.approx(f.standard_deviations**2)
    value = size if math.isinf(f.p) else np.sum((lengths / size) ** f.p) ** (1 / f.p) * size
    assert f.value >= value * (1 - 1e-14)
    assert f.value == pytest.approx(value, rel=1e-5)
    assert 0 < f.floor <= f.value
    assert np.linalg.matrix_rank(R) == len(R)
    return f


@pytest.mark.parametrize(
    ("n", "p", "value"),
    [
        (2, 2, (1 + math.sqrt(5)) / 2),
        (2, 4, 1.3635556460),
        (2, INF, 2 / math.sqrt(3)),
        (16, 2, 6.7576147280),
        (16, 4, 3.3847244944),
        (16, INF, 1.7044802441),
    ],
)
def test_short_prefixes_have_the_reference_values(n, p, value):
    f = check(factorize(prefix(n), p))
    assert f.value == pytest.approx(value, rel=2e-9)
    assert f.gap <= 1e-8


@pytest.mark.parametrize(
    ("p", "value"), [(2, 40.390630652), (4, 10.103242586), (INF, 2.5327161370)]
)
def test_prefix_256_is_certified_at_every_order(p, value):
    f = check(factorize(prefix(256), p))
    assert f.gap <= 1e-6
    assert f.floor <= value * (1 + 1e-10) <= f.value * (1 + 2e-10)


@pytest.mark.parametrize(("n", "total"), [(64, 11024.3815034), (256, 276929.3084)])
def test_all_ranges_reach_the_best_known_total(n, total):
    f = factorize(ranges(n))
    assert f.value**2 == pytest.approx(total, rel=2e-6)
    assert f.gap <= 1e-6
    assert not isinstance(f.decoder, np.ndarray) or f.decoder.size < 1 << 23


def test_prefix_256_under_substitution_beats_every_hand_made_strategy():
    f = check(factorize(prefix(256), neighbors="substitute", tol=1e-4))
    assert f.gap <= 1e-4
    assert f.value**2 < 2424.9 < 2546  # doubling the sensitivity gives 6526


def test_a_gaussian_workload_is_certified():
    f = check(factorize(matrix(gaussian(200, 500)), tol=1e-3))
    assert f.gap <= 1e-3


@pytest.mark.slow
def test_prefix_and_ranges_of_1024_cells_are_certified():
    f = factorize(prefix(1024), tol=1e-4)
    assert f.gap <= 1e-4
    assert f.value**2 == pytest.approx(8944.329, rel=2e-4)
    f = factorize(ranges(1024), tol=1e-4)
    assert f.gap <= 1e-4
    assert f.value**2 == pytest.approx(6484329.0, rel=2e-4)


@pytest.mark.parametrize("p", [2, 3, INF])
def test_long_prefixes_take_the_square_root_factors(p):
    f = factorize(prefix(5000), p)
    assert f.gap < 0.3
    assert not isinstance(f.strategy, np.ndarray)
    g = factorize(prefix(5000), p, "substitute")
    assert f.value < g.value <= f.value * math.sqrt(2) * (1 + 1e-9)
    assert 0 < g.floor < g.value


@pytest.mark.parametrize("p", [2, 2.5, 4, INF])
@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(
    "W",
    [
        matrix(gaussian(5, 8)),
        matrix(gaussian(8, 5)),
        matrix(gaussian(40, 6)),
        matrix(gaussian(6, 6)),
        matrix(gaussian(7, 3) @ gaussian(3, 9, 1)),
        matrix(gaussian(60, 3) @ gaussian(3, 9, 1)),
        matrix([[1.0, 2.0, 3.0]]),
        prefix(9),
        ranges(7),
        -3 * prefix(6),
        prefix(6) + identity(6),
        stack([identity(8), prefix(8), ranges(8)], [1, 2, 0.5]),
        kron(prefix(3), ranges(3)),
        kron(identity(2), prefix(2), matrix([[1.0, 1.0]])),
        identity(7),
        identity((2, 3)),
        parity(4, 2),
        parity(4, 3),
    ],
    ids=lambda W: W.describe()[:40],
)
def test_every_workload_is_factorised_as_it_says(W, p, neighbors):
    f = check(factorize(W, p, neighbors))
    assert f.workload is W
    assert f.p == p
    assert f.gap <= 1e-4


@pytest.mark.parametrize("p", [2, 4, INF])
def test_values_are_those_of_the_ellipsoid_solver(p):
    for seed, shape in enumerate([(4, 9), (6, 6), (12, 5)]):
        A = gaussian(*shape, seed)
        exact = around_columns(A, p)
        f = factorize(matrix(A), p)
        assert f.floor <= exact.value
        assert f.value >= exact.floor * (1 - 1e-13)
        assert f.value == pytest.approx(exact.value, rel=2e-5)


@pytest.mark.parametrize("p", [2, 4, INF])
@pytest.mark.parametrize("W", [prefix(20), ranges(9), matrix(gaussian(12, 31)), stack([prefix(5)])])
def test_substitution_agrees_with_all_pairs_written_out(W, p):
    A = W.dense()
    i, j = np.triu_indices(A.shape[1], 1)
    pairs = around_columns(A[:, i] - A[:, j], p, 1e-7)
    f = factorize(W, p, "substitute")
    assert f.floor <= pairs.value * (1 + 1e-12)
    assert f.value >= pairs.floor * (1 - 1e-12)
    assert f.value == pytest.approx(pairs.value, rel=1e-4)


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_equal_columns_are_treated_alike_to_the_last_bit(neighbors):
    A = gaussian(5, 12)
    A[:, 7] = A[:, 2]
    A[:, 9] = -A[:, 3]
    A[:, 11] = A[:, 2]
    R = check(factorize(matrix(A), 2, neighbors)).strategy
    assert (R[:, 7] == R[:, 2]).all()
    assert (R[:, 11] == R[:, 2]).all()
    if neighbors == "add-remove":
        assert (R[:, 9] == -R[:, 3]).all()


def test_a_cell_that_no_query_counts_gets_no_noise_of_its_own():
    A = gaussian(4, 6)
    A[:, 2] = 0
    f = check(factorize(matrix(A)))
    assert (f.strategy[:, 2] == 0).all()
    without = factorize(matrix(np.delete(A, 2, axis=1)))
    assert f.value == pytest.approx(without.value, rel=1e-8)
    check(factorize(matrix(A), neighbors="substitute"))


def test_repeated_queries_change_the_weights_alone():
    A = gaussian(6, 6)
    once, twice = factorize(matrix(A)), factorize(matrix(np.vstack([A, A])))
    assert twice.value == pytest.approx(once.value * math.sqrt(2), rel=1e-5)


@pytest.mark.parametrize("size", [1e-149, 1e-9, 1e149])
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_the_size_of_a_workload_scales_the_answer(size, neighbors):
    A = gaussian(5, 7)
    plain = factorize(matrix(A), neighbors=neighbors)
    f = check(factorize(matrix(A * size), neighbors=neighbors))
    assert f.value == pytest.approx(plain.value * size, rel=1e-7)
    assert f.floor == pytest.approx(plain.floor * size, rel=1e-7)


@pytest.mark.parametrize("p", [2, INF])
@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("n", [12, 30])
def test_ill_conditioned_workloads_get_well_conditioned_strategies(n, p, neighbors):
    f = check(factorize(matrix(np.vander(np.linspace(0, 1, n))), p, neighbors), tol=1e-9)
    assert np.linalg.cond(f.strategy) < 1e8
    assert f.gap <= 1e-4


def test_constant_answers_need_no_noise_under_substitution():
    for W in (matrix(np.ones((2, 3))), identity(1), parity(3, 0), matrix([[2.0], [1.0]])):
        f = factorize(W, neighbors="substitute")
        assert f.value == f.floor == f.gap == 0
        assert f.strategy.shape == (0, W.shape[1])
        answers = np.asarray(f.decoder @ f.strategy) + f.offset[:, None]
        assert np.allclose(answers, W.dense())
        check(factorize(W))


def test_marginals_are_handed_to_their_own_solver():
    f = factorize(marginals((2, 3), order=1))
    assert f.method == "residuals"
    assert factorize(stack([marginals((2, 3), order=1)], [2])).value == pytest.approx(2 * f.value)


def test_the_power_metric_is_the_moment_times_the_value():
    f = factorize(prefix(4), 4)
    assert f.expected_error() == pytest.approx(3**0.25 * f.value)
    assert f.expected_error(2.0) == pytest.approx(2 * f.expected_error())
    assert factorize(prefix(4)).expected_error() == pytest.approx(factorize(prefix(4)).value)
    with pytest.raises(InvalidInput, match="finite p"):
        factorize(prefix(4), INF).expected_error()
    with pytest.raises(InvalidInput, match="metric"):
        f.expected_error(metric="square")


def test_simulated_answers_have_the_stated_variances():
    rng = np.random.default_rng(5)
    trials = 20_000
    for W in (prefix(8), ranges(5), kron(prefix(2), prefix(3))):
        f = factorize(W)
        x = rng.integers(0, 50, W.shape[1]).astype(float)
        noisy = (np.asarray(f.strategy) @ x)[:, None] + rng.standard_normal(
            (f.strategy.shape[0], trials)
        )
        errors = np.asarray(f.decoder) @ noisy - (W @ x)[:, None]
        ratio = errors.var(axis=1) / f.variances()
        # 5.5 standard errors of a variance, relative √(2/trials): below 1e-6 for all answers.
        allowed = 6.5 * math.sqrt(2 / trials)
        assert np.abs(ratio - 1).max() < allowed
        assert np.abs(1.15 * ratio - 1).max() > allowed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.eye(3),), "W must be a workload"),
        ((prefix(3), 1.5), "p must be at least 2"),
        ((prefix(3), math.nan), "p must be at least 2"),
        ((prefix(3), "2"), "p must be a number"),
        ((prefix(3), 2, "swap"), "neighbors must be one of"),
        ((prefix(3), 2, "add-remove", 0), "tol must be greater than 0"),
        ((prefix(3), 2, "add-remove", 1e-15), "tol must be greater than"),
    ],
)
def test_bad_arguments_are_refused_with_one_sentence(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        factorize(*arguments)


def test_workloads_without_structure_have_a_largest_size():
    from scipy.sparse import eye_array

    with pytest.raises(InvalidInput, match="too large to factorise"):
        factorize(matrix(eye_array(5000)))


def test_the_gap_is_infinite_without_a_floor():
    from dataclasses import replace

    assert replace(factorize(prefix(3)), floor=0.0).gap == INF


def test_the_public_name_is_the_function():
    assert mh.factorize is factorize
    assert repr(factorize(prefix(2), INF)).endswith("γ_(∞) between 1.1547 and 1.1547>")


def test_around_differences_and_factorize_share_one_optimum():
    A = prefix(12).dense()
    assert factorize(prefix(12), neighbors="substitute").value == pytest.approx(
        around_differences(A).value, rel=1e-8
    )
