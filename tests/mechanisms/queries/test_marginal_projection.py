"""Projection: non-negative, consistent, and never farther from the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from agreeing import disagreement

from muhat.errors import InvalidInput
from muhat.mechanisms.queries import marginal_projection as projection
from muhat.mechanisms.queries.marginal_projection import project_marginals
from muhat.mechanisms.queries.nonnegative import project_answers
from muhat.workloads import identity, marginals, prefix, ranges, stack
from muhat.workloads.residuals import factorize_marginals


def noisy_marginals(cells, order, records, scale, seed=1):
    """Tables of skewed records, with the noise of the best strategy."""
    W = marginals(cells, order=order)
    generator = np.random.default_rng(seed)
    codes = np.stack(
        [np.minimum(generator.geometric(0.4, records) - 1, size - 1) for size in cells], axis=1
    )
    tables = [np.zeros(shape) for shape in W.table_shapes]
    for axes, table in zip(W.sets, tables, strict=True):
        np.add.at(table, tuple(codes[:, axis] for axis in axes), 1)
    truth = W.answers_from(tables)
    f = factorize_marginals(W)
    noise = f.decoder.apply(generator.normal(size=f.decoder.shape[1]))
    return W, truth, truth + scale * noise, scale * f.standard_deviations


def distance(first, second, deviations):
    return float(np.sum(((first - second) / deviations) ** 2))


def test_small_histograms_are_fitted_as_by_least_squares():
    from scipy.optimize import nnls

    W, truth, noisy, spread = noisy_marginals((3, 4, 5), 2, 60, 2.0)
    answers, x = project_answers(W, noisy, spread)
    _, error = nnls(W.dense() / spread[:, None], noisy / spread)
    assert distance(answers, noisy, spread) == pytest.approx(error**2, rel=1e-4)
    assert x.min() >= 0
    np.testing.assert_allclose(W @ x, answers)
    assert distance(answers, truth, spread) <= distance(noisy, truth, spread)
    np.testing.assert_array_equal(project_marginals(W, noisy, spread), answers)


def test_a_public_total_is_kept():
    W, truth, noisy, spread = noisy_marginals((3, 4, 5), 2, 60, 2.0)
    answers, x = project_answers(W, noisy, spread, total=60)
    assert x.sum() == pytest.approx(60)
    assert x.min() >= 0
    assert distance(answers, truth, spread) <= distance(noisy, truth, spread)
    empty, x = project_answers(W, noisy, spread, total=-3)
    assert not empty.any()
    assert not x.any()


def test_prefix_sums_become_monotone():
    generator = np.random.default_rng(0)
    truth = np.cumsum(generator.poisson(0.5, 200))
    noisy = truth + generator.normal(size=200) * 5
    answers, _ = project_answers(prefix(200), noisy, np.full(200, 5.0))
    assert (np.diff(answers) >= -1e-9).all()
    assert np.std(answers - truth) < 0.7 * np.std(noisy - truth)


def test_answers_of_a_histogram_stay_as_they_are():
    x = np.array([3.0, 0.0, 1.0, 7.0])
    for W in (identity(4), prefix(4), ranges(4)):
        answers, found = project_answers(W, W @ x, np.ones(W.shape[0]), tolerance=1e-12)
        np.testing.assert_allclose(answers, W @ x, atol=1e-5)
        np.testing.assert_allclose(found, x, atol=1e-5)


def test_exact_answers_count_most():
    W = marginals((2, 2), sets=[(), (0,)])
    answers = project_marginals(W, [10.0, 3.0, 9.0], [0.0, 1.0, 1.0])
    assert answers[0] == pytest.approx(10, abs=0.01)
    np.testing.assert_allclose(answers[1:], [2, 8], atol=0.01)


def test_tables_that_form_a_chain_need_no_histogram(monkeypatch):
    # Tables over (0, 1) and (1, 2) that agree on 1 always belong to a histogram, so that both
    # ways have the same answer.
    W = marginals((3, 4, 3), sets=[(0, 1), (1, 2)])
    noisy = np.random.default_rng(4).normal(2, 4, W.shape[0])
    spread = np.repeat([1.0, 2.0], 12)
    for total in (None, 30.0):
        fitted = project_answers(W, noisy, spread, total, tolerance=1e-9, iterations=20_000)[0]
        monkeypatch.setattr(projection, "LARGEST_HISTOGRAM", 0)
        tables = project_marginals(W, noisy, spread, total, tolerance=1e-7, iterations=20_000)
        monkeypatch.undo()
        np.testing.assert_allclose(tables, fitted, atol=1e-4)


def test_large_domains_get_consistent_tables():
    W, truth, noisy, spread = noisy_marginals((10,) * 7, 2, 500, 3.0)
    assert W.shape[1] > projection.LARGEST_HISTOGRAM
    for total in (None, 500):
        answers = project_marginals(W, noisy, spread, total, tolerance=1e-3)
        assert answers.min() >= 0
        assert disagreement(W, answers) < 0.05 * spread.max()
        assert distance(answers, truth, spread) < 0.75 * distance(noisy, truth, spread)
        sums = [table.sum() for table in W.tables(answers)]
        np.testing.assert_allclose(sums, sums[0])
        if total is not None:
            assert sums[0] == pytest.approx(total)


def test_weights_of_tables_are_taken_off_and_put_back(monkeypatch):
    plain = marginals((3, 4, 3), sets=[(0, 1), (1, 2)])
    W = stack([marginals((3, 4, 3), sets=[axes]) for axes in plain.sets], [2.0, 5.0])
    factor = np.repeat([2.0, 5.0], 12)
    noisy = np.random.default_rng(4).normal(2, 4, 24)
    monkeypatch.setattr(projection, "LARGEST_HISTOGRAM", 0)
    expected = project_marginals(plain, noisy, np.ones(24), tolerance=1e-6)
    found = project_marginals(W, factor * noisy, factor, tolerance=1e-6)
    np.testing.assert_allclose(found, factor * expected, atol=1e-9)
    assert disagreement(W, found) < 1e-4


def test_disagreement_is_noticed():
    W = marginals((2, 2), order=1)
    assert disagreement(W, [1, 2, 3, 0]) == 0
    assert disagreement(W, [1, 2, 3, 5]) == 5


def test_an_iteration_cap_ends_it(monkeypatch):
    W, _, noisy, spread = noisy_marginals((10,) * 6, 2, 100, 3.0)
    answers = project_marginals(W, noisy, spread, iterations=1)
    assert answers.min() >= 0
    assert math.isfinite(disagreement(W, answers))


def test_tables_without_a_single_count_become_even(monkeypatch):
    monkeypatch.setattr(projection, "LARGEST_HISTOGRAM", 0)
    W = marginals((2, 2), order=1)
    np.testing.assert_allclose(project_marginals(W, [-5.0] * 4, [1.0] * 4), 0, atol=0.1)


def test_bad_input_is_refused():
    W = prefix(3)
    with pytest.raises(InvalidInput, match="answers must have shape"):
        project_answers(W, [1.0], [1.0, 1.0, 1.0])
    with pytest.raises(InvalidInput, match="deviations must not be negative"):
        project_answers(W, [1.0, 2.0, 3.0], [1.0, -1.0, 1.0])
    with pytest.raises(InvalidInput, match="cells is not fitted"):
        project_answers(prefix(1 << 25), [], [])
    with pytest.raises(InvalidInput, match="total"):
        project_answers(W, [1.0, 2.0, 3.0], [1.0, 1.0, 1.0], total=math.nan)
