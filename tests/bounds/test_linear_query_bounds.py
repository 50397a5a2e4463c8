"""Lower bounds for linear queries: the known numbers, and no mechanism below them."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muhat.bounds import LowerBound, divergences, linear_queries, minimum_width
from muhat.bounds.schatten import schatten_floor
from muhat.ellipsoids.finite import around_columns, around_differences
from muhat.errors import InvalidInput
from muhat.privacy import GDP, ZCDP, ApproxDP, PureDP, gaussian_mu_squared
from muhat.workloads import identity, kron, marginals, matrix, parity, prefix, ranges, stack
from muhat.workloads.nuclear import nuclear_norm

RANDOM = matrix(np.random.default_rng(3).integers(-4, 5, (4, 7)))
WORKLOADS = [
    identity(5),
    prefix(6),
    ranges(4),
    parity(3, 1),
    parity(3, 2),
    marginals((2, 3), order=1),
    marginals((2, 2, 2), order=[0, 2]),
    kron(prefix(2), ranges(2)),
    stack([prefix(4), identity(4)], [1.0, 3.0]),
    prefix(3) + 2 * identity(3),
    RANDOM,
]
PROMISES = [
    *(PureDP(epsilon=e) for e in (0.01, 0.5, 1.0, 4.0)),
    *(
        ApproxDP(epsilon=e, delta=d)
        for e, d in itertools.product((0.001, 0.1, 1.0, 5.0), (1e-12, 1e-6, 1e-3, 0.3))
    ),
    *(ZCDP(rho=r) for r in (1e-8, 0.001, 0.1, 1.0, 5.0)),
    *(GDP(mu=m) for m in (1e-6, 0.01, 0.5, 1.0, 4.0)),
]


def noise_scale(privacy, rank):
    """σ such that noise σ·F·z keeps the promise, z of covariance I and F·B₂ around the body."""
    if isinstance(privacy, PureDP):  # density ∝ exp(−ε‖F⁻¹z‖₂): the radius is Gamma(rank, 1/ε)
        return math.sqrt(rank + 1) / privacy.epsilon
    return 1 / math.sqrt(gaussian_mu_squared(privacy))


def name(value):
    return value.describe() if hasattr(value, "describe") else str(value)


def strongest(bounds, mechanisms, datasets="every", source="derived"):
    return max(
        bound.value
        for bound in bounds
        if (bound.mechanisms, bound.datasets, bound.source) == (mechanisms, datasets, source)
        and bound.value is not None
        and "Schatten" not in bound.theorem
    )


@pytest.mark.parametrize("p", [2, 3, np.inf])
@pytest.mark.parametrize("workload", WORKLOADS, ids=name)
def test_no_bound_is_above_what_a_mechanism_achieves(workload, p):
    dense = workload.dense()
    for make, relation in ((around_columns, "add-remove"), (around_differences, "substitute")):
        solved = make(dense, p)
        for privacy in PROMISES:
            # (E‖z‖_p²)^½ ≥ √tr_{p/2}: no mechanism's error in either metric is smaller.
            achieved = solved.value * noise_scale(privacy, solved.factor.shape[1])
            bounds = linear_queries(workload, privacy, p, neighbors=relation, floor=solved.floor)
            assert bounds
            for bound in bounds:
                assert bound.value is None or bound.value <= achieved
                assert bound.promise == privacy.describe()
                assert LowerBound.from_dict(bound.to_dict()) == bound
                assert bound.sentence()


def test_a_constant_that_is_too_large_would_be_caught():
    solved = around_columns(prefix(6).dense())
    (privacy,) = (GDP(mu=0.01),)
    achieved = solved.value / 0.01
    bound = strongest(linear_queries(prefix(6), privacy, floor=solved.floor), "additive")
    assert bound <= achieved < bound * 1.0001


@pytest.mark.parametrize("workload", WORKLOADS, ids=name)
@pytest.mark.parametrize("privacy", PROMISES, ids=name)
def test_weaker_statements_have_smaller_numbers(workload, privacy):
    floor = around_columns(workload.dense()).floor
    bounds = linear_queries(workload, privacy, floor=floor)
    ours = strongest(bounds, "additive")
    for bound in bounds:
        if bound.value is not None and bound.source == "paper":
            assert bound.value < ours
        if bound.value is not None and bound.mechanisms == "any":
            # A cell may hold any number of records: nobody errs less than additive noise.
            assert bound.value < ours if bound.is_conditional else bound.value == ours


def test_the_constant_for_approximate_privacy():
    bounds = linear_queries(parity(4, 2), ApproxDP(epsilon=1.0, delta=1e-6), floor=1.0)
    additive = strongest(bounds, "additive")
    assert additive == pytest.approx(1 / (math.sqrt(2) * math.sinh(0.5)), rel=1e-4)
    gaussian = 1 / math.sqrt(gaussian_mu_squared(ApproxDP(epsilon=1.0, delta=1e-6)))
    assert gaussian / additive == pytest.approx(3.11, abs=0.01)
    coins = strongest(bounds, "unbiased", "some")
    assert coins == pytest.approx(0.960, abs=6e-4)
    assert strongest(bounds, "any", "some") == additive


def test_the_constant_for_concentrated_privacy():
    bounds = linear_queries(parity(4, 2), ZCDP(rho=0.1), floor=1.0)
    every = strongest(bounds, "unbiased")
    assert 1 / math.sqrt(0.2) / every == pytest.approx(1.052, abs=5e-4)
    assert every == pytest.approx(1 / math.sqrt(math.expm1(0.2)), rel=1e-11)
    assert 1 / math.sqrt(0.2) / strongest(bounds, "unbiased", "some") == pytest.approx(
        1.017, abs=5e-4
    )
    assert 1 < 1 / math.sqrt(0.2) / strongest(bounds, "additive") < 1.0003


def test_gaussian_noise_is_nearly_the_best_additive_noise_for_gaussian_privacy():
    for mu, ratio in ((0.1, 1 + 1e-11), (0.5, 1 + 1e-11), (1.0, 1 + 3e-8), (2.0, 1.027)):
        bounds = linear_queries(identity(4), GDP(mu=mu), floor=1.0)
        assert 1 < 1 / mu / strongest(bounds, "additive") < ratio
        assert strongest(bounds, "unbiased") == pytest.approx(
            1 / math.sqrt(math.expm1(mu**2)), rel=1e-11
        )


@pytest.mark.parametrize("epsilon", [0.01, 0.7, 1.0, 3.0])
def test_randomised_response_attains_the_pure_bound(epsilon):
    # One cell, one bit in the answer: report N(x = 1) flipped with probability 1/(1 + e^ε).
    flip = 1 / (1 + math.exp(epsilon))
    deviation = math.sqrt(flip * (1 - flip)) / (1 - 2 * flip)
    bound = strongest(linear_queries(identity(1), PureDP(epsilon=epsilon), floor=1.0), "unbiased")
    assert bound <= deviation * (1 + 1e-12)
    assert bound == pytest.approx(deviation, rel=1e-11)


def laws():
    """Pairs of laws on five points."""
    weights = st.lists(st.floats(0.001, 1.0), min_size=5, max_size=5)
    return st.tuples(weights, weights, st.lists(st.floats(-3, 3), min_size=5, max_size=5))


def pair_of(case):
    first, second, points = (np.array(part) for part in case)
    return first / first.sum(), second / second.sum(), points


def least_spread(P, Q, y):
    """(Var_P + Var_Q)/2 and the squared distance of the means."""
    means = P @ y, Q @ y
    spread = (P @ (y - means[0]) ** 2 + Q @ (y - means[1]) ** 2) / 2
    return float(spread), float((means[0] - means[1]) ** 2)


@given(laws())
def test_the_pair_inequality_holds_for_any_pair_at_its_own_privacy(case):
    P, Q, y = pair_of(case)
    spread, distance = least_spread(P, Q, y)
    loss = float(np.max(np.abs(np.log(P / Q))))
    # ρ for this very pair: the largest D_α/α, here by a fine grid and its limits.
    orders = np.concatenate([[1 + 1e-9], np.linspace(1.01, 60, 600), [1e3, 1e6]])[:, None]
    rho = 0.0
    for A, B in ((P, Q), (Q, P)):
        log_terms = orders * np.log(A) + (1 - orders) * np.log(B)
        top = log_terms.max(axis=1, keepdims=True)
        divergence = top + np.log(np.exp(log_terms - top).sum(axis=1, keepdims=True))
        rho = max(rho, float(np.max(divergence / (orders * (orders - 1)))))
        rho = max(rho, float(A @ np.log(A / B)))
    for delta in (1e-9, 0.05):
        kept = np.maximum(P - math.exp(loss / 3) * Q, 0).sum()
        other = np.maximum(Q - math.exp(loss / 3) * P, 0).sum()
        implied = max(kept, other, delta)
        if loss > 0 and implied < 1:
            pair = math.exp(divergences.log_pair_approx(loss / 3, implied))
            assert distance <= spread * pair * (1 + 1e-9) + 1e-12
    if rho > 1e-12:
        assert distance <= spread * math.exp(divergences.log_pair_zcdp(rho)) * (1 + 1e-3) + 1e-12


def test_the_concentrated_pair_is_attained_by_two_points():
    # r constant: P = (1 ± κ)/2, Q mirrored; both divergences are 2κ·artanh κ.
    for s in (0.01, 0.5, 2.0):
        kappa = math.tanh(s)
        divergence = 2 * kappa * s
        assert math.exp(divergences.log_pair_zcdp(divergence)) == pytest.approx(
            4 * math.sinh(s) ** 2, rel=1e-12
        )
        P, Q, y = (
            np.array([(1 + kappa) / 2, (1 - kappa) / 2]),
            np.array([(1 - kappa) / 2, (1 + kappa) / 2]),
            np.array([1.0, -1.0]),
        )
        spread, distance = least_spread(P, Q, y)
        assert distance == pytest.approx(spread * 4 * math.sinh(s) ** 2, rel=1e-9)


@pytest.mark.parametrize("mu", [1e-9, 5e-5, 1e-4, 0.01, 0.7, 2.0, 2.9, 3.1, 8.0, 40.0])
def test_the_gaussian_pair_is_integrated_to_the_last_digits_and_rounded_up(mu):
    with mpmath.workdps(40):
        m = mpmath.mpf(mu)
        rest = mpmath.exp(-(m**2) / 8) * mpmath.quad(
            lambda x: 2 * mpmath.npdf(x) / mpmath.cosh(m * x / 2),
            [0, 1 / (1 + m), 4 / (1 + m), 1, 3, 8, 20],
        )
        exact = float(mpmath.log(4 * (1 - rest) / rest))
    found = divergences.log_pair_gdp(mu)
    assert exact <= found <= exact + (2e-8 if mu < 1e-4 else 3e-12)


@pytest.mark.parametrize("rho", [1e-12, 1e-3, 0.1, 1.0, 30.0, 1000.0])
def test_the_concentrated_pair_is_better_than_chi_squared_and_worse_than_gaussian(rho):
    assert (
        math.log(2 * rho) <= divergences.log_pair_zcdp(rho) <= divergences.log_one_sided_zcdp(rho)
    )
    assert divergences.log_pair_gdp(math.sqrt(2 * rho)) <= divergences.log_pair_zcdp(rho) + 1e-7


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1.0, 1e-6), (0.01, 1e-5), (1e-3, 1e-3), (1e-9, 1e-12), (30.0, 0.5)]
)
def test_groups_only_help(epsilon, delta):
    group, pair = (
        divergences.log_group_approx(epsilon, delta),
        divergences.log_pair_approx(epsilon, delta),
    )
    assert group <= pair
    achieved = -math.log(gaussian_mu_squared(ApproxDP(epsilon=epsilon, delta=delta)))
    assert -group <= achieved


def test_groups_help_where_delta_is_large():
    gain = divergences.log_pair_approx(1e-3, 1e-3) - divergences.log_group_approx(1e-3, 1e-3)
    assert math.exp(gain / 2) > 10


@pytest.mark.parametrize("workload", WORKLOADS, ids=name)
def test_the_schatten_bound_is_the_sum_of_singular_values(workload):
    dense = workload.dense()
    norm = np.linalg.norm(dense, "nuc")
    rows, columns = dense.shape
    closed = nuclear_norm(workload)
    assert closed is None or closed == pytest.approx(norm, rel=1e-12)
    for p in (2, 3.5, np.inf):
        found = schatten_floor(workload, p)
        expected = rows ** (1 / p - 0.5) * norm / math.sqrt(columns)
        assert expected * (1 - 1e-9) <= found <= expected
        assert found <= around_columns(dense, p).value


def test_the_schatten_bound_is_tight_where_all_cells_look_alike():
    for workload in (identity(7), parity(5, 2), marginals((2, 3, 2), order=[0, 1, 2])):
        solved = around_columns(workload.dense())
        assert schatten_floor(workload) == pytest.approx(solved.floor, rel=1e-7)


def test_the_schatten_bound_of_large_workloads_is_cheap():
    n = 10**6
    assert schatten_floor(prefix(n)) == pytest.approx(
        math.sqrt(n) * (math.log(n) + np.euler_gamma + math.log(16 / math.pi)) / math.pi, rel=1e-6
    )
    assert schatten_floor(prefix(2**60)) > schatten_floor(prefix(2**24)) * 2**18
    assert schatten_floor(kron(ranges(64), ranges(64))) == pytest.approx(
        schatten_floor(ranges(64)) ** 2, rel=1e-9
    )
    assert schatten_floor(parity(60, 3), 4) == pytest.approx(math.comb(60, 3) ** 0.75, rel=1e-9)
    # ResidualPlanner's optimal root mean square errors at unit noise.
    adult = marginals((100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2), order=3)
    thirty = marginals((10,) * 30, order=3)
    for W, error in ((adult, 10.5153), (thirty, 49.463)):
        assert schatten_floor(W) / math.sqrt(W.shape[0]) == pytest.approx(error, rel=1e-5)
    assert schatten_floor(kron(prefix(2**20), matrix(np.eye(3)))) is None
    huge = stack([prefix(2**20), 2 * identity(2**20)])
    assert schatten_floor(huge) == pytest.approx(schatten_floor(prefix(2**20)), rel=1e-9)
    assert schatten_floor(stack([matrix(np.ones((1, 2)))])) == pytest.approx(1.0)


def test_the_schatten_bound_of_integrals_stays_below_the_sums(monkeypatch):
    exact = nuclear_norm(prefix(4000)), nuclear_norm(ranges(4000))
    monkeypatch.setattr("muhat.workloads.nuclear.LARGEST_SUM", 64)
    for value, workload in zip(exact, (prefix(4000), ranges(4000)), strict=True):
        assert 0.8 * value < nuclear_norm(workload) <= value


def test_both_floors_are_listed_and_the_cheap_one_stands_in():
    floor = around_columns(prefix(6).dense()).floor
    listed = linear_queries(prefix(6), ZCDP(rho=0.1), floor=floor)
    cheap = [bound for bound in listed if "Schatten" in bound.theorem]
    assert len(cheap) == 1
    assert cheap[0].value < strongest(listed, "additive")
    (privacy,) = (ApproxDP(epsilon=1.0, delta=1e-6),)
    assert [bound.mechanisms for bound in linear_queries(prefix(6), privacy, floor=floor)] == [
        "unbiased",
        "unbiased",
        "any",
        "additive",
        "additive",
        "additive",
        "any",
    ]


def test_the_reduction_is_said_in_words_with_its_number():
    bounds = linear_queries(prefix(6), ApproxDP(epsilon=0.5, delta=1e-9), floor=1.0)
    (reduced,) = [bound for bound in bounds if bound.is_conditional]
    assert reduced.datasets == "some"
    assert any("Conditional on Bhaskara" in sentence for sentence in reduced.assumptions)
    for bound in (reduced, LowerBound.from_dict(reduced.to_dict())):
        assert "Conditional on Bhaskara" in bound.sentence()
        assert "any real numbers, without bound" in bound.sentence()
    twice = ApproxDP(epsilon=1.0, delta=math.exp(0.5) * 1e-9)
    assert reduced.value == pytest.approx(
        strongest(linear_queries(prefix(6), twice, floor=1.0), "unbiased", "some"), rel=1e-9
    )
    nothing = linear_queries(prefix(6), ApproxDP(epsilon=2.0, delta=0.2), floor=1.0)[-1]
    assert nothing.value is None
    assert "at least 1" in nothing.assumptions[-1]


def test_the_papers_constant_stands_beside_ours_where_its_proof_allows():
    pure = linear_queries(prefix(6), PureDP(epsilon=1.0), floor=1.0)
    assert strongest(pure, "additive", source="paper") == pytest.approx(
        1 / (16 * math.expm1(3.0)), rel=1e-11
    )
    tiny = linear_queries(prefix(6), ApproxDP(epsilon=1.0, delta=1e-9), floor=1.0)
    assert strongest(tiny, "additive", source="paper") == pytest.approx(
        1 / (16 * math.expm1(3.0)), rel=1e-6
    )
    for workload, delta in ((prefix(6), 1e-2), (ranges(3), 1e-9)):
        bounds = linear_queries(workload, ApproxDP(epsilon=1.0, delta=delta), floor=1.0)
        (paper,) = [bound for bound in bounds if bound.source == "paper"]
        assert paper.value is None
        assert "κ is at least" in paper.assumptions[-1]


def test_the_papers_range_of_delta_shrinks_with_the_true_width():
    # With κ = 2, as the paper's Lemma 2.14 says, this δ would be allowed.
    n = 4096
    epsilon, ceiling = 0.1, math.sqrt(n) * 3
    with_two = epsilon * 2 / (12 * ceiling) * -math.expm1(-epsilon) / 2
    privacy = ApproxDP(epsilon=epsilon, delta=with_two / 4)
    bounds = linear_queries(prefix(n), privacy, floor=1.0)
    assert [bound.value for bound in bounds if bound.source == "paper"] == [None]


@pytest.mark.parametrize(
    "arguments",
    [
        (np.eye(3), ZCDP(rho=0.1), 2),
        ("prefix", ZCDP(rho=0.1), 2),
        (prefix(3), ZCDP(rho=0.1), 1),
        (prefix(3), ZCDP(rho=0.1), float("nan")),
        (prefix(3), ZCDP(rho=0.1), "2"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments):
    with pytest.raises(InvalidInput):
        linear_queries(*arguments)


def test_floors_and_neighbours_that_make_no_sense_are_refused():
    for keywords in ({"floor": -1.0}, {"floor": float("nan")}, {"neighbors": "replace"}):
        with pytest.raises(InvalidInput):
            linear_queries(prefix(3), ZCDP(rho=0.1), **{"floor": 1.0, **keywords})
    with pytest.raises(InvalidInput, match="workload"):
        minimum_width(np.eye(3))


def test_the_floor_comes_from_the_factorisation():
    given = linear_queries(prefix(8), ZCDP(rho=0.1), floor=around_columns(prefix(8).dense()).floor)
    found = linear_queries(prefix(8), ZCDP(rho=0.1))
    assert strongest(found, "additive") == pytest.approx(strongest(given, "additive"), rel=1e-4)


def widest_vertex(A):
    """κ by listing every choice of columns and signs."""
    dim, number = A.shape
    longest = 0.0
    for chosen in itertools.combinations(range(number), dim):
        M = A[:, chosen].T
        if abs(np.linalg.det(M)) < 1e-9:
            continue
        for signs in itertools.product((1, -1), repeat=dim):
            theta = np.linalg.solve(M, signs)
            if np.abs(A.T @ theta).max() <= 1 + 1e-9:
                longest = max(longest, float(np.linalg.norm(theta)))
    return 2 / longest if longest else 0.0


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_the_width_of_prefix_sums_is_not_two(n):
    exact = 2 / math.sqrt(4 * n - 3)
    assert widest_vertex(prefix(n).dense()) == pytest.approx(exact, rel=1e-9)
    for workload in (prefix(n), matrix(prefix(n).dense())):
        width = minimum_width(workload)
        assert width.lower <= exact <= width.upper
        assert width.exact
        assert float(width) == pytest.approx(exact, rel=1e-9)
    # The direction that is narrowest: alternating suffix sums.
    theta = -np.diff(np.append((-1.0) ** np.arange(n), 0.0))
    reach = np.abs(prefix(n).transposed(theta)).max()
    assert 2 * reach / np.linalg.norm(theta) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_the_width_of_small_matrices_is_that_of_all_vertices(seed):
    numbers = np.random.default_rng(seed)
    dim = int(numbers.integers(1, 5))
    number = dim + int(numbers.integers(0, 5))
    A = numbers.integers(-2, 3, (dim, number)).astype(float)
    A[0, 0] = 1
    if seed % 2:
        A += numbers.standard_normal(A.shape) * 0.1
    if seed % 3 == 0 and dim > 1:
        A[-1] = A[0] - A[1:-1].sum(axis=0)
    exact = widest_vertex(A)
    width = minimum_width(matrix(A))
    assert width.lower <= exact * (1 + 1e-9) + 1e-300
    assert exact <= width.upper * (1 + 1e-9) + 1e-12
    assert width.exact or seed % 3 == 0


@pytest.mark.parametrize(
    "workload",
    [
        identity(3),
        parity(2, 1),
        parity(3, 2),
        parity(2, 0),
        marginals((2, 3), sets=[(1,)]),
        marginals((2, 2), order=1),
        ranges(3),
        ranges(1),
        kron(identity(2), prefix(2)),
        kron(prefix(2), prefix(2)),
        kron(parity(2, 1), matrix([[1.0, 2.0]])),
        3 * prefix(2),
        stack([prefix(2), identity(2)]),
        matrix([[1, 1, 2, 0], [1, -1, 0, 0]]),
    ],
    ids=name,
)
def test_the_width_of_structured_workloads_is_that_of_their_matrix(workload):
    exact = widest_vertex(workload.dense())
    width = minimum_width(workload)
    assert width.lower <= exact * (1 + 1e-9)
    assert exact <= width.upper * (1 + 1e-9)
    assert width.lower > 0 or exact == 0
    assert "κ" in repr(width)


def test_the_width_of_larger_matrices_is_an_honest_interval():
    A = np.random.default_rng(5).standard_normal((12, 30))
    width = minimum_width(matrix(A))
    assert 0 < width.lower < width.upper
    assert not width.exact
    directions = np.random.default_rng(6).standard_normal((12, 20_000))
    widths = 2 * np.abs(A.T @ directions).max(axis=0) / np.linalg.norm(directions, axis=0)
    assert width.lower <= widths.min()
    for n in (20, 60):
        inside = minimum_width(matrix(prefix(n).dense()))
        assert inside.lower <= 2 / math.sqrt(4 * n - 3) <= inside.upper


def test_the_width_of_huge_workloads_is_not_searched():
    large = minimum_width(stack([prefix(2**12)]))
    assert large.lower == 0
    assert large.upper == pytest.approx(2.0)
    endless = minimum_width(stack([prefix(2**30)]))
    assert math.isinf(endless.upper)
    assert not endless.exact
