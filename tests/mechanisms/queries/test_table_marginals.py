"""Noise on tables: exact in the ℓ₁ norm, consistent, and of the size it states."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from agreeing import disagreement

from muhat.errors import InvalidInput
from muhat.mechanisms.queries.residual_fit import fit_residuals
from muhat.mechanisms.queries.residual_query import ResidualQuery
from muhat.mechanisms.queries.table_marginals import TableMarginals
from muhat.noise import FRACTION_BITS
from muhat.noise.laws import LAWS
from muhat.privacy import Neighbors
from muhat.workloads import marginals, stack
from muhat.workloads.residuals import factorize_marginal_stack, factorize_marginals

BOTH = [Neighbors.ADD_REMOVE, Neighbors.SUBSTITUTE]
W = marginals((3, 4, 1, 2), sets=[(0, 1), (1, 3), (), (2, 3)])
LAPLACE = LAWS["laplace"]


def query_for(neighbors):
    return TableMarginals(
        W.cells, W.sets, (1.0,) * 4, (5 << 50, 3 << 50, 1 << 50, 2 << 50), neighbors is BOTH[1]
    )


def margins_of(sets, counts):
    return {
        axes: counts.sum(axis=tuple(axis for axis in range(counts.ndim) if axis not in axes))
        for axes in sets
    }


@pytest.mark.parametrize("neighbors", BOTH)
def test_no_two_neighbours_are_farther_apart_than_the_sensitivity(neighbors):
    q = query_for(neighbors)
    columns = []
    for cell in np.ndindex(*W.cells):
        one = np.zeros(W.cells, np.int64)
        one[cell] = 1
        columns.append(np.array(q.encode(margins_of(q.sets, one)), dtype=object))
    if neighbors is Neighbors.SUBSTITUTE:
        columns = [a - b for a, b in itertools.combinations(columns, 2)]
    farthest = max(sum(abs(entry) for entry in column) for column in columns)
    assert farthest == q.sensitivity(1.0, neighbors, 1)
    assert q.sensitivity(1.0, neighbors, 4) == 4 * farthest


@pytest.mark.parametrize("neighbors", BOTH)
def test_release_without_noise_is_exact(neighbors):
    q = query_for(neighbors)
    x = np.random.default_rng(0).poisson(5, W.cells)
    answers = q.release(margins_of(q.sets, x), lambda k: np.zeros(k, np.int64))
    np.testing.assert_allclose(answers, W @ x.ravel(), atol=1e-10)


def spread_is_as_stated(q, stated, runs=1000):
    """As Laplace noise has a fourth moment of 6 squared variances, √(5/runs) is one standard
    error at most; 5.5 of them leave a chance below 1e-7 an answer."""
    generator = np.random.default_rng(5)
    x = np.random.default_rng(0).poisson(5, W.cells)
    margins = margins_of(q.sets, x)

    def sample(k):
        return np.rint(generator.laplace(size=k) * 2.0**FRACTION_BITS).astype(np.int64)

    errors = np.array([q.release(margins, sample) for _ in range(runs)]) - W @ x.ravel()
    np.testing.assert_allclose(errors[:, stated == 0], 0, atol=1e-9)
    ratio = np.mean(errors[:, stated > 0] ** 2, axis=0) / stated[stated > 0] ** 2
    return bool((np.abs(ratio - 1) <= 5.5 * math.sqrt(5 / runs)).all())


@pytest.mark.parametrize("neighbors", BOTH)
def test_simulated_errors_have_the_stated_deviations(neighbors):
    q = query_for(neighbors)
    stated = q.scales * math.sqrt(LAPLACE.variance(1))
    assert spread_is_as_stated(q, stated)
    wrong = replace(q, multipliers=tuple(2 * m for m in q.multipliers))
    assert not spread_is_as_stated(wrong, stated)


def test_answers_agree_with_each_other():
    q = query_for(Neighbors.ADD_REMOVE)
    x = np.random.default_rng(0).poisson(5, W.cells)
    answers = q.release(margins_of(q.sets, x), LAPLACE.sample)
    assert disagreement(W, answers) < 1e-8 * np.abs(answers).max()


@pytest.mark.parametrize("p", [2, 5, math.inf])
@pytest.mark.parametrize("neighbors", BOTH)
def test_the_better_of_tables_and_residuals_is_chosen(p, neighbors):
    many = marginals((30, 20, 10, 8), order=2)
    f = factorize_marginals(many, p, neighbors)
    chosen = fit_residuals(f, LAPLACE, Fraction(1, 4), neighbors, 3)
    assert isinstance(chosen, TableMarginals)
    allowed = Fraction(1, 4) * (1 << 2 * FRACTION_BITS)
    moved = chosen.sensitivity(1.0, neighbors, 3)
    assert allowed * Fraction(999, 1000) <= moved**2 <= allowed
    assert isinstance(fit_residuals(f, LAWS["normal"], Fraction(1), neighbors, 1), ResidualQuery)


def test_weighted_tables_come_out_multiplied():
    V = stack([marginals((9, 8), sets=[(0,), (0, 1)]), -2 * marginals((9, 8), sets=[(0,)])])
    f = factorize_marginal_stack(V)
    q = fit_residuals(f, LAPLACE, Fraction(1), Neighbors.ADD_REMOVE, 1)
    x = np.random.default_rng(0).poisson(5, V.cells)
    answers = q.release(margins_of(q.sets, x), LAPLACE.sample)
    np.testing.assert_allclose(answers[81:], -2 * answers[:9])
    assert q.to_dict()["table_weights"][-1] == (-2.0).hex()


def test_bad_input_is_refused():
    q = query_for(Neighbors.SUBSTITUTE)
    with pytest.raises(InvalidInput, match="ℓ₁"):
        q.sensitivity(2.0, Neighbors.SUBSTITUTE, 1)
    with pytest.raises(InvalidInput, match="public"):
        q.sensitivity(1.0, Neighbors.ADD_REMOVE, 1)
    with pytest.raises(InvalidInput, match="margins must hold"):
        q.release({}, LAPLACE.sample)
