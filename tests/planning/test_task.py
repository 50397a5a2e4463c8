"""Which noise is taken where the largest error counts."""

from __future__ import annotations

import math

import numpy as np
import pytest

import muhat as mh
from muhat.planning import task

POINTS = np.random.default_rng(0).normal(size=(12, 6))


def error_of(domain, weights, n=1000, statistic="mean", privacy=None) -> float:
    plan = mh.plan_mean if statistic == "mean" else mh.plan_sum
    promise = privacy or mh.ZCDP(0.5)
    return plan(domain=domain, n=n, privacy=promise, weights=weights, p=math.inf).expected_error


@pytest.mark.parametrize(
    ("domain", "weights", "gain"),
    [
        (mh.Simplex(20), [10.0] + [1.0] * 19, 0.4),
        (mh.Simplex(20), [10.0] * 2 + [1.0] * 18, 0.35),
        (mh.Points(POINTS), [1.0] * 6, 0.08),
        (mh.MomentTensor(2, 2), [10.0, 1.0, 1.0], 0.15),
    ],
    ids=["one share", "two shares", "points", "squares"],
)
def test_the_largest_error_has_noise_of_the_order_that_errs_least(
    domain, weights, gain, monkeypatch
):
    found = error_of(domain, weights)
    for order in (2.0, 4.0, math.inf):
        monkeypatch.setattr(task, "ORDERS", (order,))
        assert found <= error_of(domain, weights) * (1 + 1e-9)
    assert found < (1 - gain) * error_of(domain, weights)


def test_sums_of_a_secret_number_do_too(monkeypatch):
    domain, weights = mh.Points(POINTS), [3.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    found = error_of(domain, weights, None, "sum")
    monkeypatch.setattr(task, "ORDERS", (math.inf,))
    assert found < 0.95 * error_of(domain, weights, None, "sum")


def test_the_error_of_noise_of_another_order_is_what_is_drawn(monkeypatch):
    """The root mean square of 1,000 draws, whose own error is about 2 %: 6 of them are 12 %.

    Planted: noise of the order ∞, which errs far more.
    """
    weights = np.array([10.0] + [1.0] * 9)
    asked = {"domain": mh.Simplex(10), "n": 10, "privacy": mh.ZCDP(0.5), "weights": weights}
    plan = mh.plan_mean(**asked, p=math.inf)
    records = np.eye(10)
    drawn = np.array([plan.release(records).value for _ in range(1000)])
    largest = np.abs((drawn - records.mean(axis=0)) * weights).max(axis=1)
    measured = math.sqrt(np.mean(largest**2))
    assert measured == pytest.approx(plan.expected_error, rel=0.12)
    monkeypatch.setattr(task, "ORDERS", (math.inf,))
    assert mh.plan_mean(**asked, p=math.inf).expected_error > 1.4 * measured
