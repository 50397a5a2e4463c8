"""Differences of a simplex's corners by groups of weights: contained, and none is smaller."""

from __future__ import annotations

import math

import numpy as np
import pytest

import muhat as mh
from muhat.domains.simplex_groups import around_grouped_corners, groups_of

RNG = np.random.default_rng(31)


def weighted(d: int, kind: str) -> np.ndarray:
    if kind == "drawn":
        return np.exp(np.random.default_rng(d).normal(size=d))
    weights = np.ones(d)
    weights[:3] = 10.0
    weights[3:5] = 4.0 if kind == "three groups" else 10.0
    return weights


def corners(d: int, origin: bool) -> np.ndarray:
    return np.eye(d + origin, d)


def farthest(found, d: int, origin: bool) -> float:
    """The largest sᵀM⁻s of two corners."""
    mapped = corners(d, origin) @ np.linalg.pinv(found.root).T
    gram = mapped @ mapped.T
    lengths = np.diag(gram)
    return float((lengths[:, None] + lengths - 2 * gram).max())


@pytest.mark.parametrize("p", [2, 4, math.inf])
@pytest.mark.parametrize("origin", [False, True])
@pytest.mark.parametrize("kind", ["two groups", "three groups"])
def test_few_corners_have_the_solvers_value(kind, origin, p):
    weights = weighted(12, kind)
    found = around_grouped_corners(12, origin, p, weights, 0.0)
    solved = mh.Points(corners(12, origin))
    least = mh.smallest_ellipsoid(solved, p, weights=weights)
    assert found.floor <= least.value * (1 + 1e-9)
    assert least.floor <= found.value <= least.value * (1 + 1e-3)
    assert found.gap < 1e-3


@pytest.mark.parametrize("p", [2, 4, math.inf])
@pytest.mark.parametrize("origin", [False, True])
@pytest.mark.parametrize("d", [60, 200])
def test_many_corners_are_contained_and_the_gap_is_small(d, origin, p):
    for kind in ("two groups", "three groups"):
        found = mh.smallest_ellipsoid(mh.Simplex(d, origin=origin), p, weights=weighted(d, kind))
        assert 1 - 1e-6 < farthest(found, d, origin) <= 1 + 1e-9
        assert found.gap < 1e-3


@pytest.mark.parametrize("p", [2, 4, math.inf])
def test_weights_that_all_differ_are_grouped_and_still_bounded(p):
    weights = weighted(60, "drawn")
    assert len(set(groups_of(weights).tolist())) <= 8
    found = around_grouped_corners(60, True, p, weights, 0.0)
    assert farthest(found, 60, True) <= 1 + 1e-9
    assert 0 < found.gap < (0.05 if p < math.inf else 1.0)


def test_a_floor_is_below_the_error_of_any_noise_that_contains():
    """Ellipsoids of other shapes, scaled until they contain, have no smaller value."""
    weights = weighted(10, "three groups")
    found = around_grouped_corners(10, False, 2, weights, 0.0)
    for _ in range(50):
        shape = RNG.normal(size=(10, 30)) * np.exp(RNG.normal(size=10))[:, None]
        M = shape @ shape.T
        mapped = np.linalg.solve(np.linalg.cholesky(M), np.eye(10))
        lengths = np.sum(mapped**2, axis=0)
        reach = (lengths[:, None] + lengths - 2 * mapped.T @ mapped).max()
        assert math.sqrt(reach * float(weights**2 @ np.diag(M))) > found.floor


def test_shares_have_noise_that_follows_several_weights():
    weights = np.ones(60)
    weights[:2] = 10.0
    plan = mh.plan_mean(domain=mh.Simplex(60), n=1000, privacy=mh.ZCDP(0.5), weights=weights)
    assert plan.expected_error == pytest.approx(0.0219666, rel=1e-4)
    assert plan.certificate is not None
    assert plan.certificate.ratio < 1.005
