"""The error that every private mean has on the records or on neighbours inside them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import muhat as mh
from muhat.bounds import in_neighbor


def test_randomised_response_meets_the_pure_bound():
    """Two records, two outputs: telling which mean it is fails exactly so often."""
    for epsilon in (0.1, 1.0, 5.0):
        fails = 1 / (1 + math.exp(epsilon))
        assert in_neighbor(mh.PureDP(epsilon=epsilon)) == pytest.approx(fails, rel=1e-11)
        assert in_neighbor(mh.PureDP(epsilon=epsilon)) <= fails


def test_the_normal_mechanism_meets_the_gaussian_bound():
    """Rounding the noisy mean to the nearer of the two: wrong with probability Φ(−μ/2)."""
    from scipy.stats import norm

    for mu in (0.01, 1.0, 6.0):
        assert in_neighbor(mh.GDP(mu=mu)) == pytest.approx(norm.cdf(-mu / 2), rel=1e-11)


def test_a_weaker_promise_has_a_smaller_bound():
    for promises in (
        [mh.ZCDP(rho=rho) for rho in np.geomspace(1e-6, 50, 40)],
        [mh.GDP(mu=mu) for mu in np.geomspace(1e-6, 50, 40)],
        [mh.ApproxDP(epsilon=1, delta=delta) for delta in np.geomspace(1e-12, 0.9, 40)],
    ):
        values = [in_neighbor(promise) for promise in promises]
        assert values == sorted(values, reverse=True)
        assert all(0 <= value < 0.5 for value in values)
    assert in_neighbor(mh.ZCDP(rho=1e9)) == 0
    assert in_neighbor(mh.PureDP(epsilon=1e4)) == 0


def test_what_gaussian_privacy_implies_is_never_above_its_own_bound():
    """A μ-GDP mean is μ²/2-zCDP, so the bound of that promise must hold for it."""
    for mu in np.geomspace(0.01, 10, 30):
        assert in_neighbor(mh.ZCDP(rho=mu**2 / 2)) <= in_neighbor(mh.GDP(mu=mu)) + 1e-12


def test_a_plan_for_unbounded_records_tells_its_error_in_these_units():
    plan = mh.plan_mean(domain=mh.Reals(3, 1e4), n=4000, privacy=mh.ZCDP(rho=0.5))
    expected = plan.error_at(2.0) / (2 * 2.0 / (2 * 4000))
    assert plan.instance_ratio == pytest.approx(expected)
    assert "half of the records' diameter" in plan.describe()
    assert plan.to_dict()["instance_ratio"] == plan.instance_ratio
