"""The constants of the lower bounds follow from what a promise implies."""

from __future__ import annotations

import math

import numpy as np
import pytest

import muhat as mh
from muhat.bounds import divergences, pairs
from muhat.bounds.promised import one_sided, pair, two_sided


def test_each_kind_has_the_sharpest_constants_that_are_proved_for_it():
    pure, rho, mu = mh.PureDP(epsilon=1.5), mh.ZCDP(rho=0.3), mh.GDP(mu=0.8)
    assert one_sided(pure) == pair(pure) == divergences.log_one_sided_pure(1.5)
    assert two_sided(pure) == divergences.log_two_sided_pure(1.5)
    assert one_sided(rho) == divergences.log_one_sided_zcdp(0.3)
    assert two_sided(rho) == divergences.log_two_sided_zcdp(0.3)
    assert pair(rho) == pairs.log_pair_zcdp(0.3)
    assert one_sided(mu) == divergences.log_one_sided_zcdp(0.32)
    assert two_sided(mu) == divergences.log_two_sided_zcdp(0.32)
    assert pair(mu) == pairs.log_pair_gdp(0.8)
    approximate = mh.ApproxDP(epsilon=1.0, delta=1e-6)
    assert one_sided(approximate) is two_sided(approximate) is None
    assert pair(approximate) == divergences.log_pair_approx(1.0, 1e-6)


def test_one_order_bounds_the_variance_of_the_likelihood_ratio_from_two_on():
    low, high = mh.RDP(alpha=1.9, epsilon=0.4), mh.RDP(alpha=2.0, epsilon=0.4)
    assert one_sided(low) is two_sided(low) is None
    assert one_sided(high) == divergences.log_one_sided_zcdp(0.2)
    assert two_sided(high) == divergences.log_two_sided_renyi(0.4)
    assert pair(low) == pairs.log_pair_zcdp(0.4)
    assert pair(high) == min(pair(low), one_sided(high))


@pytest.mark.parametrize("size", [2, 3, 6])
def test_no_three_laws_are_farther_apart_than_their_divergences_of_order_two_allow(size):
    """Two neighbours P₊, P₋ of P₀ that are neighbours of each other, at random; nearly attained."""
    generator, closest = np.random.default_rng(3), 0.0
    for _ in range(4000):
        spread = generator.uniform(0.01, 1.5)
        laws = np.exp(spread * generator.normal(size=(3, size)))
        middle, up, down = laws / laws.sum(axis=1, keepdims=True)
        laws = [middle, up, down]
        most = max(math.log(np.sum(p**2 / q)) for p in laws for q in laws)
        apart = math.log(np.sum((up - down) ** 2 / middle))
        assert apart <= divergences.log_two_sided_renyi(most) + 1e-9
        closest = max(closest, math.exp(apart - divergences.log_two_sided_renyi(most)))
    assert closest > 0.2, "a bound that is five times too small would have been found"
