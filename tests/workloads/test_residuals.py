"""The residual-basis factorisation of marginals: against dense solves, and against itself."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from muhat.ellipsoids.finite import around_columns, around_differences
from muhat.errors import InvalidInput
from muhat.workloads import marginals, stack
from muhat.workloads import residual_differences as differences_module
from muhat.workloads import residual_optimum as optimum_module
from muhat.workloads.residual_basis import closure, orbits_of
from muhat.workloads.residual_certificate import Point, Problem
from muhat.workloads.residual_differences import ResidualDifferences, without_total
from muhat.workloads.residuals import (
    factorize_marginal_stack,
    factorize_marginals,
    is_marginal,
    weighted_tables,
)

ADULT = (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2)
SMALL = [
    ((2, 3), [(0,), (1,)]),
    ((2, 3, 2), [(0, 1), (1, 2)]),
    ((2, 2, 2), [(0, 1), (0, 2), (1, 2)]),
    ((3, 2, 2), [(), (0,), (1,), (2,), (0, 1, 2)]),
    ((4, 4), [(0,), (1,), (0, 1)]),
    ((1, 3), [(0,), (0, 1)]),
    ((2, 2, 2, 3), [(0, 1), (1, 2), (2, 3), (0, 3)]),
]
ORDERS = [2, 3, 16, math.inf]


def norm(values, p):
    return values.max() if math.isinf(p) else np.sum(values**p) ** (1 / p)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize(("cells", "sets"), SMALL)
def test_error_is_that_of_a_dense_solve(cells, sets, p):
    W = marginals(cells, sets=sets)
    for neighbors, around in (("add-remove", around_columns), ("substitute", around_differences)):
        f = factorize_marginals(W, p, neighbors)
        dense = around(W.dense(), p=p)
        assert f.gap <= 1.1e-9
        assert f.value >= dense.floor * (1 - 1e-12)
        assert f.floor <= dense.value * (1 + 1e-12)
        assert f.value == pytest.approx(dense.value, rel=1e-8)


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize(("cells", "sets"), SMALL)
def test_decoder_times_strategy_is_the_workload(cells, sets, neighbors):
    W = marginals(cells, sets=sets)
    f = factorize_marginals(W, 3, neighbors)
    L, R = f.decoder.dense(), f.strategy.dense()
    offset = 0 if f.offset is None else f.offset[:, None]
    np.testing.assert_allclose(L @ R + offset, W.dense(), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(L, axis=1), f.standard_deviations, rtol=1e-12)
    assert f.value == pytest.approx(norm(f.standard_deviations, 3), rel=1e-10)
    np.testing.assert_allclose(f.variances(), f.standard_deviations**2)
    np.testing.assert_allclose(f.decoder.transposed(np.eye(len(L))).T, L, atol=1e-12)
    np.testing.assert_allclose(f.strategy.transposed(np.eye(len(R))).T, R, atol=1e-12)
    np.testing.assert_allclose(f.strategy.column_norms(), np.linalg.norm(R, axis=0), rtol=1e-12)
    pairs = [R[:, i] - R[:, j] for i, j in itertools.combinations(range(R.shape[1]), 2)]
    moved = R.T if neighbors == "add-remove" else np.array(pairs)
    assert np.linalg.norm(moved, axis=1).max() == pytest.approx(1, rel=1e-8)


def test_three_way_tables_of_adult_have_the_published_errors():
    W = marginals(ADULT, order=3)
    assert factorize_marginals(W).value / math.sqrt(W.shape[0]) == pytest.approx(10.5153, abs=1e-4)
    worst = factorize_marginals(W, math.inf)
    assert worst.value**2 == pytest.approx(236.8, abs=0.05)
    assert (worst.table_deviations**2).max() == pytest.approx(worst.value**2, rel=1e-9)
    for p in (2.5, 4, 100, 1e5):
        assert factorize_marginals(W, p).gap <= 1e-9
    for p in (2, math.inf):
        assert factorize_marginals(W, p, "substitute").gap <= 1e-9


def test_thirty_attributes_need_no_histogram():
    W = marginals((10,) * 30, order=3)
    f = factorize_marginals(W)
    assert f.value / math.sqrt(W.shape[0]) == pytest.approx(49.463, abs=1e-3)
    assert f.table_deviations.shape == (4060,)
    assert len(f.subsets) == 4526
    with pytest.raises(InvalidInput, match="histogram"):
        f.strategy.apply(np.zeros(1))


def test_every_weight_vector_is_a_floor():
    W = marginals((2, 3, 4, 5), order=2)
    orbits = orbits_of(W.cells, W.sets, np.ones(len(W.sets)))
    budget = (orbits.part_count * orbits.part_cost)[None]
    generator = np.random.default_rng(5)
    for p in ORDERS:
        best = factorize_marginals(W, p)
        problem = Problem(orbits, budget, p, 1.0)
        for _ in range(20):
            found = problem.certify(
                Point(
                    generator.normal(size=len(orbits.parts)),
                    generator.dirichlet(np.ones(len(orbits.multiplicity))),
                    np.ones(1),
                )
            )
            assert found.floor <= best.value
            assert found.value >= best.floor


def test_exchangeable_attributes_share_an_orbit():
    ones = np.ones(3)
    chain = orbits_of((2, 2, 2), [(0, 1), (1, 2), ()], ones)
    assert chain.label.tolist() == [0, 1, 0]
    weighted = orbits_of((2, 2, 2), [(0, 1), (1, 2), ()], np.array([1.0, 2.0, 1.0]))
    assert len(set(weighted.label.tolist())) == 3
    full = orbits_of((5,) * 10, list(itertools.combinations(range(10), 3)), np.ones(120))
    assert full.parts == ((), (0,), (0, 0), (0, 0, 0))
    assert full.part_count.tolist() == [1, 10, 45, 120]


def test_symmetry_changes_nothing():
    sets = [(0, 1), (1, 2), (2, 3), (0, 3)]
    cells = (3, 3, 3, 3)
    nearly = np.array([1, 1 + 1e-9, 1 - 1e-9, 1 + 2e-9])
    parts = [stack_of(cells, sets, np.ones(4)), stack_of(cells, sets, nearly)]
    values = [factorize_marginal_stack(part, 4).value for part in parts]
    assert values[0] == pytest.approx(values[1], rel=1e-8)


def stack_of(cells, sets, weights):
    return stack([marginals(cells, sets=[axes]) for axes in sets], weights.tolist())


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
def test_weights_of_tables_are_those_of_a_dense_solve(neighbors):
    W = stack([2 * marginals((2, 3, 2), sets=[(0, 1), ()]), marginals((2, 3, 2), order=1)], [3, 1])
    assert is_marginal(W)
    assert not is_marginal(
        stack([W, marginals((2, 3, 2), order=1) + marginals((2, 3, 2), order=1)])
    )
    assert [weight for _, weight in weighted_tables(W)] == [6, 6, 1, 1, 1]
    f = factorize_marginal_stack(W, 4, neighbors)
    offset = 0 if f.offset is None else f.offset[:, None]
    np.testing.assert_allclose(
        f.decoder.dense() @ f.strategy.dense() + offset, W.dense(), atol=1e-12
    )
    around = around_columns if neighbors == "add-remove" else around_differences
    assert f.value == pytest.approx(around(W.dense(), p=4).value, rel=1e-8)


def test_random_tables_are_solved_to_a_small_gap():
    generator = np.random.default_rng(11)
    for _ in range(25):
        d = int(generator.integers(1, 8))
        cells = tuple(int(size) for size in generator.choice([1, 2, 2, 3, 5, 10, 50], d))
        sets = {
            tuple(sorted(generator.choice(d, min(d, int(order)), replace=False).tolist()))
            for order in generator.integers(0, 5, 8)
        }
        W = marginals(cells, sets=sorted(sets))
        for p, neighbors in itertools.product((3, 1000, math.inf), ("add-remove", "substitute")):
            assert factorize_marginals(W, p, neighbors).gap <= 1.1e-9


def test_a_public_total_leaves_nothing_to_protect():
    f = factorize_marginals(marginals((3, 1), sets=[(), (1,)]), 2, "substitute")
    assert f.value == f.floor == f.gap == 0
    assert f.strategy.shape == (0, 3)
    np.testing.assert_array_equal(f.offset, [1, 1])
    np.testing.assert_array_equal(f.standard_deviations, [0, 0])


def test_transform_over_patterns_is_the_sum_of_their_costs():
    W = marginals((2, 2, 3, 3, 3, 7), order=3)
    orbits = without_total(orbits_of(W.cells, W.sets, np.ones(len(W.sets))))
    every = ResidualDifferences.of(orbits.members, orbits.sizes, orbits.parts)
    assert every.exact
    weights = np.random.default_rng(0).exponential(size=len(orbits.parts))
    numbers = np.arange(math.prod(every.shape))
    np.testing.assert_allclose(every.spent(weights), every.costs(numbers) @ weights, atol=1e-10)
    assert (every.costs(numbers) <= every.largest * (1 + 1e-12)).all()


def test_costs_are_distances_of_columns():
    cells = (2, 3, 2)
    f = factorize_marginals(marginals(cells, order=2), 2, "substitute")
    R = f.strategy.dense()
    orbits = without_total(orbits_of(cells, list(f.tables), np.ones(3)))
    patterns = ResidualDifferences.of(orbits.members, orbits.sizes, orbits.parts)
    first = {orbits.part_of(axes): c for axes, c in zip(f.subsets, f.coefficients, strict=True)}
    weights = np.array([first[part] for part in orbits.parts])
    for x, y in itertools.combinations(np.ndindex(*cells), 2):
        counts = np.zeros((1, len(orbits.members)), np.int64)
        for axis in range(3):
            counts[0, orbits.label[axis]] += x[axis] != y[axis]
        column = [np.ravel_multi_index(cell, cells) for cell in (x, y)]
        distance = np.sum((R[:, column[0]] - R[:, column[1]]) ** 2)
        assert (patterns.costs_of(counts) @ weights)[0] == pytest.approx(distance, rel=1e-9)


@pytest.mark.parametrize("listed", [1, 6])
def test_bounded_patterns_give_a_valid_value_and_floor(monkeypatch, listed):
    W = marginals((2, 3, 4, 5, 9), order=2)
    exact = factorize_marginals(W, 4, "substitute")
    monkeypatch.setattr(differences_module, "LARGEST_LISTING", listed)
    monkeypatch.setattr(differences_module, "LARGEST_BOUNDED", listed)
    bounded = factorize_marginals(W, 4, "substitute")
    assert bounded.floor <= exact.value <= bounded.value * (1 + 1e-9)
    assert bounded.gap < 0.25
    R = bounded.strategy.dense()
    squares = np.sum(R**2, axis=0)
    assert (squares[:, None] + squares - 2 * R.T @ R).max() <= 1 + 1e-9


@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
def test_large_systems_are_solved_without_newton(monkeypatch, neighbors):
    W = marginals((2, 3, 4, 5, 9), order=2)
    exact = factorize_marginals(W, 4, neighbors)
    monkeypatch.setattr(optimum_module, "LARGEST_SYSTEM", 1)
    monkeypatch.setattr(differences_module, "LARGEST_SYSTEM", 1)
    simple = factorize_marginals(W, 4, neighbors)
    assert simple.floor <= exact.value * (1 + 1e-9)
    assert exact.floor <= simple.value * (1 + 1e-9)
    assert simple.gap <= (1e-9 if neighbors == "add-remove" else 0.5)


def test_closure_has_every_subset_once():
    assert closure((2, 1, 3), [(0, 1, 2), (0,)]) == ((), (0,), (2,), (0, 2))


def test_bad_input_is_refused():
    W = marginals((2, 3), order=1)
    with pytest.raises(InvalidInput, match="p must be at least 2"):
        factorize_marginals(W, 1)
    with pytest.raises(InvalidInput, match="neighbors"):
        factorize_marginals(W, 2, "swap")
    with pytest.raises(InvalidInput, match="tol"):
        factorize_marginals(W, 2, tol=0)
    with pytest.raises(InvalidInput, match="subsets of attributes"):
        factorize_marginals(marginals((2,) * 24, order=24))
    with pytest.raises(InvalidInput, match="only marginals"):
        list(weighted_tables(W + W))
