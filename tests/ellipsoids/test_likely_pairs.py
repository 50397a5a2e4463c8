"""Where many pairs matter they are found by their weights: the ellipsoid is what a search finds."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.ellipsoids import likely_pairs as module
from muhat.ellipsoids.finite import around_differences
from muhat.ellipsoids.likely_pairs import likely_pairs, pays


@pytest.mark.parametrize(
    ("kind", "p"), [("normal", 2), ("flat", 2), ("weighted", 4), ("normal", np.inf)]
)
def test_likely_pairs_and_a_search_end_at_the_same_ellipsoid(kind, p, monkeypatch):
    rng = np.random.default_rng(5)
    points = rng.standard_normal((31, 42))
    if kind == "flat":
        points = rng.standard_normal((31, 30)) @ points[:30]
    weights = np.linspace(1, 3, 31) if kind == "weighted" else None
    fast = around_differences(points, p, weights=weights)
    monkeypatch.setattr(module, "MOST_POINTS", 0)
    searched = around_differences(points, p, weights=weights)
    assert fast.converged
    assert fast.gap <= 1e-9
    assert fast.value == pytest.approx(searched.value, rel=2e-9)
    assert fast.floor == pytest.approx(searched.floor, rel=2e-9)
    assert fast.iterations < searched.iterations


def test_pairs_that_the_weights_miss_are_searched_for(monkeypatch):
    points = np.random.default_rng(6).standard_normal((35, 45))
    whole = around_differences(points)
    monkeypatch.setattr(module, "LIGHTER", 0.3)
    assert around_differences(points).value == pytest.approx(whole.value, rel=2e-9)


def test_few_dimensions_many_points_and_sets_that_floats_cannot_span_are_left_to_the_search():
    assert pays(30, 180, 30)
    assert not pays(29, 40, 29)
    assert not pays(30, 181, 30)
    assert not pays(90, 41, 40)
    assert likely_pairs(np.zeros((40, 41)), 40, 2.0) is None
