"""Floors from points that climbing finds: never above the value, and close to it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import muhat as mh
from muhat.domains import moment_climbing
from muhat.domains.moment_basis import TensorBasis
from muhat.domains.moment_climbing import climbed_floor
from muhat.domains.moment_differences import WeightedSets


@pytest.mark.parametrize("p", [2, 4, math.inf])
@pytest.mark.parametrize("d", [2, 3])
def test_a_floor_meets_the_closed_form_at_equal_weights(d, p):
    K = TensorBasis(2, d)
    value = WeightedSets.whole(K).ellipsoid(0.0, p, np.ones(K.dim)).value
    assert value * (1 - 2e-3) < climbed_floor(K, "difference", p, np.ones(K.dim)) <= value


@pytest.mark.parametrize(("order", "d"), [(3, 2), (4, 2)])
@pytest.mark.parametrize("body", ["symmetric", "difference"])
def test_a_floor_of_higher_orders_is_below_the_best_value_and_close(order, d, body):
    K = mh.MomentTensor(order, d)
    best = mh.smallest_ellipsoid(K, 2, body).value
    if order % 2 == 0 or body == "symmetric":
        assert best * (1 - 3e-3) < climbed_floor(K.basis, body, 2, np.ones(K.dim)) <= best


def test_a_climb_that_stays_where_it_begins_is_a_floor_too(monkeypatch):
    K = TensorBasis(2, 3)
    monkeypatch.setattr(moment_climbing, "CLIMBS", {2: 0})
    value = WeightedSets.whole(K).ellipsoid(0.0, 2, np.ones(6)).value
    assert 0.5 * value < climbed_floor(K, "difference", 2, np.ones(6)) <= value


def test_many_moments_have_no_climbed_floor():
    assert climbed_floor(TensorBasis(2, 20), "difference", 2, np.ones(210)) == 0.0
