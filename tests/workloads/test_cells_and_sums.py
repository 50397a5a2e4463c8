"""Cells and sums beside them: strategies for pure privacy, and what they cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

import muhat as mh
from muhat.mechanisms.queries.strategy_factor import SumsFactor
from muhat.privacy import Neighbors
from muhat.workloads import cells_and_sums, matrix, parity, prefix, ranges
from muhat.workloads.cells_and_sums import LEVEL, CellsAndSums, Decoded, with_sums
from muhat.workloads.factorize import factorize

RELATIONS = (Neighbors.ADD_REMOVE, Neighbors.SUBSTITUTE)


def drawn(cells: int, rows: int) -> CellsAndSums:
    draw = np.random.default_rng(cells)
    sums = draw.integers(0, LEVEL // rows // 2, (rows, cells))
    return CellsAndSums(LEVEL - sums.sum(axis=0), sums)


def test_products_and_their_inverses_are_those_of_the_matrix() -> None:
    strategy = drawn(9, 3)
    dense = strategy.dense()
    inverse = np.linalg.pinv(dense)
    vectors = np.random.default_rng(1).normal(size=(12, 4))
    np.testing.assert_allclose(strategy.transposed(vectors), dense.T @ vectors)
    np.testing.assert_allclose(strategy.undo(vectors), inverse @ vectors, rtol=1e-9)
    np.testing.assert_allclose(strategy.undo_transposed(vectors[:9]), inverse.T @ vectors[:9])


@pytest.mark.parametrize("public", [False, True])
def test_the_stated_noise_is_that_of_least_squares(public: bool) -> None:
    workload, strategy = ranges(9), drawn(9, 3)
    decoded = Decoded(workload, strategy, public=public)
    rows = decoded.transposed(np.eye(workload.shape[0])).T
    np.testing.assert_allclose(decoded.dense(), rows, atol=1e-18)
    lengths = np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(decoded.row_norms(), lengths, rtol=1e-6, atol=1e-9 / LEVEL)
    answers = rows @ strategy.dense()
    if public:
        # Only differences between cells are left to the noise: the number of records is known.
        answers = answers + np.outer(decoded.along, np.ones(9))
        covariance = np.linalg.inv(strategy.dense().T @ strategy.dense())
        dense = workload.dense()
        least = covariance - np.outer(covariance.sum(1), covariance.sum(0)) / covariance.sum()
        exact = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", dense, least, dense), 0))
        np.testing.assert_allclose(decoded.row_norms(), exact, atol=1e-6 / LEVEL)
    np.testing.assert_allclose(answers, workload.dense(), atol=1e-9)


def test_every_column_adds_up_to_the_same_whole_number() -> None:
    for workload in (prefix(50), ranges(20), matrix(np.triu(np.ones((30, 30)))), 3 * prefix(40)):
        found = with_sums(factorize(workload))
        assert found is not None
        strategy = found.strategy.inner
        assert strategy.own.min() >= 1
        assert strategy.sums.min() >= 0
        assert ((strategy.own + strategy.sums.sum(axis=0)) == LEVEL).all()
        np.testing.assert_allclose(found.decoder @ found.strategy, workload.dense(), atol=1e-8)


def test_an_integer_factor_is_exact_and_as_sensitive_as_it_says() -> None:
    factor = SumsFactor(drawn(9, 3), 1.0)
    counts = np.array([3**k for k in range(9)], dtype=object) * 10**15
    dense = factor.strategy.dense().astype(np.int64).astype(object)
    assert (factor.apply(counts[:, None]) == (dense @ counts)[:, None]).all()
    columns = dense.T.tolist()
    assert factor.column_size(1) == max(sum(column) for column in columns) == LEVEL
    farthest = max(
        sum(abs(a - b) for a, b in zip(one, other, strict=True))
        for one in columns
        for other in columns
    )
    assert farthest <= factor.column_distance(1)


@pytest.mark.parametrize(
    ("workload", "most"), [(prefix(64), 42.6), (prefix(256), 123), (ranges(128), 617)], ids=repr
)
def test_pure_queries_have_the_error_of_the_best_known_strategies(workload, most) -> None:
    found = with_sums(factorize(workload, tol=0.1))
    assert math.sqrt(2) * found.value <= most


def test_a_long_prefix_is_solved_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = math.sqrt(2) * with_sums(factorize(prefix(96))).value
    monkeypatch.setattr(cells_and_sums, "LARGEST_SOLVED", 40)
    blocks = math.sqrt(2) * with_sums(factorize(prefix(96))).value
    assert whole < blocks < 1.1 * whole
    problem = cells_and_sums._of_prefix(96)
    gram, sums = prefix(96).gram(), np.kron(np.eye(32), np.ones(3))
    unit = np.trace(gram)
    np.testing.assert_allclose(problem.gram * unit, sums @ gram @ sums.T / 3)
    np.testing.assert_allclose(problem.squares * unit, sums @ np.diag(gram))
    point = np.random.default_rng(0).random(64)
    _, slope = problem.value(point)
    steps = 1e-6 * np.eye(64)
    measured = [(problem.value(point + h)[0] - problem.value(point - h)[0]) / 2e-6 for h in steps]
    np.testing.assert_allclose(slope, measured, atol=1e-8)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda one: one.value)
def test_a_purely_private_prefix_of_any_length_is_answered(relation, monkeypatch) -> None:
    monkeypatch.setattr(cells_and_sums, "STEPS", 20)
    plan = mh.plan_queries(prefix(4100), privacy=mh.PureDP(epsilon=1), neighbors=relation)
    assert plan.mechanism == "laplace noise, cells and sums"
    assert dict(plan.alternatives)["laplace noise, every cell"] > 1.5 * plan.expected_error
    counts = np.arange(4100) % 7
    errors = plan.release(counts).value - np.cumsum(counts)
    # No answer is 12 deviations off, but for 10^-6.
    assert (np.abs(errors) <= 12 * plan.standard_error + 1e-6).all()
    assert np.abs(errors).max() > 0


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda one: one.value)
def test_answers_err_as_planned(relation) -> None:
    # The mean of 200 squares of a norm of 64 answers, of relative deviation below 1.2: 5.5 standard
    # errors are less than 0.47. With the noise of every cell alone it would be more than twice.
    plan = mh.plan_queries(prefix(64), privacy=mh.PureDP(epsilon=1), neighbors=relation)
    assert plan.mechanism == "laplace noise, cells and sums"
    counts = np.arange(64) % 5
    exact = np.cumsum(counts)
    squares = [np.sum((plan.release(counts).value - exact) ** 2) for _ in range(200)]
    assert abs(np.mean(squares) / plan.expected_error**2 - 1) < 0.47


def test_parities_have_no_use_for_sums() -> None:
    assert with_sums(factorize(parity(6, 2))) is None
