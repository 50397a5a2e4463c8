"""Symmetric means of columns as a plan has them: their promise, their split, their error."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import muhat as mh
from muhat.data import open_source
from muhat.mechanisms.learning.symmetric_error import IntervalMoments, Search
from muhat.mechanisms.learning.symmetric_method import SymmetricMethod, stray_square

PROMISE = mh.ApproxDP(epsilon=2, delta=1e-6)


def planned(n: int = 4000, scales: Any = (1.0,), weights: Any = None, **options: Any) -> Any:
    scales = np.array(scales)
    given = {"offset": True, "contributions": 1, **options}
    order = given.pop("order", 4.0)
    promise = given.pop("promise", PROMISE)
    weighted = np.ones(len(scales)) if weights is None else np.array(weights)
    return SymmetricMethod.planned(n, promise, order, scales, weighted, **given)


@pytest.mark.parametrize("scales", [(1.0,), (1.0, 1.0, 1.0), (0.1, 5.0), (1.0,) * 7])
@pytest.mark.parametrize("promise", [PROMISE, mh.ApproxDP(epsilon=0.7, delta=1 / 3e5)])
def test_the_columns_spend_no_more_than_the_promise(scales: Any, promise: Any) -> None:
    method = planned(10**6, scales, promise=promise)
    epsilon, delta = method.means.spent
    assert Fraction(99, 100) * promise.amounts[0] < epsilon <= promise.amounts[0]
    assert Fraction(99, 100) * promise.amounts[1] < delta <= promise.amounts[1]
    assert len(scales) > 1 or (epsilon, delta) == promise.amounts
    assert method.keeps(promise, 1, 10**6)


def test_a_method_keeps_its_own_promise_and_number_only() -> None:
    method = planned()
    assert not method.keeps(PROMISE, 1, 4001)
    assert not method.keeps(PROMISE, 2, 4000)
    assert not method.keeps(mh.ApproxDP(epsilon=3, delta=1e-6), 1, 4000)
    weak = replace(method, promise=mh.ApproxDP(epsilon=1, delta=1e-6))
    assert not weak.keeps(weak.promise, 1, 4000)
    assert planned(contributions=2).keeps(PROMISE, 2, 4000)


def test_the_split_minimises_the_weighted_noise() -> None:
    scales, weights = np.array([1.0, 8.0, 0.2]), np.array([1.0, 0.5, 3.0])
    method = planned(10**6, scales, weights)
    shares = [float(column.epsilon / 2) for column in method.means.columns]
    wished = (weights * scales) ** (2 / 3)
    assert shares == pytest.approx(wished / wished.sum(), abs=2e-6)


def test_a_column_of_small_scale_has_enough_to_find_its_interval() -> None:
    method = planned(20_000, (1.0, 10.0, 1e-4))
    assert method.failure < 1e-9
    assert method.least_n <= 20_000
    (large, *_) = sorted(float(column.epsilon / 2) for column in method.means.columns)[::-1]
    assert 1 / 3 < large < 0.9


def test_the_first_rows_stay_as_many_for_another_number_of_records() -> None:
    method = planned(scales=(1.0, 2.0))
    more = method.with_records(10**6)
    assert {column.first for column in more.means.columns} == {method.means.columns[0].first}
    assert more.failure == method.failure
    assert {column.n for column in more.means.columns} == {10**6}
    # For every number in between the bias is no larger than both ends together.
    most = method.with_records(1 << 40).biases
    for n in np.geomspace(4000, 2.0**40, 30).astype(int):
        assert (method.with_records(int(n)).biases <= method.biases + most).all()


def test_rows_are_read_in_their_columns() -> None:
    rng = np.random.default_rng(4)
    means = np.array([5.0, -1e6, 0.003])
    scales = np.array([1.0, 10.0, 1e-4])
    rows = rng.standard_normal((20_000, 3)) * scales + means
    method = planned(20_000, scales * 1.5)
    found = method.run(open_source(rows, None, 3))
    assert (np.abs(found.value - means) < 8 * (method.noise.standard_error + scales / 100)).all()
    assert found.failure is None
    assert found.noise is method.noise
    assert [step.name for step in found.steps] == ["interval", "mean"]
    inside = (rows > found.ball.lower) & (rows < found.ball.upper)
    assert inside.all()


def test_records_without_a_common_place_have_no_value() -> None:
    rows = np.random.default_rng(5).uniform(-1e9, 1e9, 4000)
    found = planned().run(open_source(rows, None, 1))
    assert found.failure == "the records have no common place"
    assert np.isnan(found.value).all()
    assert (found.noise, found.ball) == (None, None)
    assert [step.name for step in found.steps] == ["interval"]
    # One column without a place is enough to have none.
    both = np.column_stack([rows, np.zeros(4000)])
    assert planned(scales=(1.0, 1.0)).run(open_source(both, None, 2)).failure is not None


def test_a_stream_is_refused() -> None:
    class Stream:
        columns = ("x",)

    with pytest.raises(mh.InvalidInput, match="fixed order"):
        planned().admit(Stream())
    planned().admit(open_source(np.zeros(4000), None, 1))


@pytest.mark.parametrize("order", [2.0, 2.5, 4.0, 8.0])
def test_errors_of_stray_intervals_vanish_with_the_noise_and_the_crowd(order: float) -> None:
    law = IntervalMoments(1.0, order, 1.0)
    bounds = [stray_square(Search(n, 10.0, 1.0, 20), law, 15.0) for n in (100, 200, 400, 1600)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 1e-30
    assert stray_square(Search(1, 10.0, 1.0, 20), law, 15.0) >= 15.0**2


def test_a_stray_interval_is_bounded_by_its_exact_error() -> None:
    """Records at 0 but for some far away: the exact error of the search, by its two bins."""
    n, far, threshold, rate = 40, 60.0, 3, 0.4
    part = 1 / far**2
    law = IntervalMoments(1.0, 2.0, 1.0)
    rng = np.random.default_rng(6)
    q = math.exp(-rate)
    trials = 200_000
    away = rng.binomial(n, part, trials)
    noise = rng.geometric(1 - q, (2, 2, trials))
    noisy = np.array([n - away, away]) + noise[0] - noise[1]
    astray = (noisy[1] > noisy[0]) & (away > 0) | (noisy.max(axis=0) <= threshold)
    exact = float(np.mean(astray * (15.0 + far * (away > 0)) ** 2))
    spread = float(np.std(astray * (15.0 + far * (away > 0)) ** 2)) / math.sqrt(trials)
    assert exact <= stray_square(Search(n, 10.0, rate, threshold), law, 15.0) + 6 * spread


def test_the_error_is_finite_where_only_the_variance_is_known() -> None:
    method = planned(20_000, order=2.0)
    (column,) = method.means.columns
    # Hölder's inequality says nothing at λ = 2.
    assert math.sqrt(column.mse_bound) > 10
    assert method.rmse < 0.1
    assert method.rmse > math.hypot(method.noise_error, 1 / math.sqrt(20_000))
    assert planned(4, order=2.0).rmse > 10


def test_the_summary_names_the_first_rows_only() -> None:
    method = planned()
    assert str(method.means.columns[0].first) in method.summary
    assert (method.name, method.label) == ("symmetric", "symmetric")
    assert planned(offset=False).name == "karwa-vadhan"
    assert planned(offset=False).biases[0] > 1e5 * method.biases[0]
