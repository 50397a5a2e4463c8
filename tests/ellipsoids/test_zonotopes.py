"""Zonotopes: the farthest corner by halves and by directions, and ellipsoids without a gap."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import muhat as mh
from muhat.ellipsoids import zonotope_corners
from muhat.ellipsoids.finite import around_columns
from muhat.ellipsoids.zonotope_corners import ZonotopeCorners, is_searched
from muhat.ellipsoids.zonotopes import around_zonotope

RNG = np.random.default_rng(21)
FEW = {
    "plane": RNG.normal(size=(2, 7)),
    "space": RNG.normal(size=(3, 9)),
    "parallel": np.array([[1.0, 2, -1, 0, 1], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1]]),
    "coplanar": np.array([[1.0, 0, 1, 1, 2], [0, 1, 1, -1, 1], [0, 0, 0, 0, 1]]),
    "four": RNG.normal(size=(4, 8)),
    "flat": np.outer([1.0, 2, 3], [1.0, -1, 2]) + np.outer([0.0, 1, 0], [1.0, 1, 0]),
    "one": np.array([[2.0], [1.0]]),
}


def corners_of(A):
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=A.shape[1])))
    return A @ signs.T


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("listed", [True, False], ids=["halves", "directions"])
def test_the_farthest_corner_is_the_farthest_of_all(name, listed, monkeypatch):
    A = FEW[name]
    if not listed:
        monkeypatch.setattr(zonotope_corners, "MOST_LISTED", 0)
    body, corners = ZonotopeCorners(A), corners_of(A)
    rows = body.span.rows
    for _ in range(20):
        W = np.zeros((len(rows), len(A)))
        W[:, rows] = RNG.normal(size=(len(rows), len(rows)))
        far = np.linalg.norm(W @ corners, axis=0).max()
        found = body.farthest(W / far * 2, np.zeros(len(A)), 4, math.inf)
        assert 2 <= found.bound <= 2 * (1 + 1e-9)
        assert found.seen == pytest.approx(2, rel=1e-12)


def test_a_search_that_is_cut_short_still_bounds_the_farthest_corner(monkeypatch):
    monkeypatch.setattr(zonotope_corners, "MOST_LISTED", 0)
    monkeypatch.setattr(zonotope_corners, "MOST_CONES", 4)
    A = FEW["space"]
    far = np.linalg.norm(corners_of(A), axis=0).max()
    found = ZonotopeCorners(A).farthest(np.eye(3) / far, np.zeros(3), 4, math.inf)
    assert 1 <= found.bound < 3


@pytest.mark.parametrize("p", [2, 4, math.inf])
@pytest.mark.parametrize("name", FEW)
def test_the_ellipsoid_is_that_of_the_corners(name, p):
    A = FEW[name]
    found = around_zonotope(A, p, np.ones(len(A)), 1e-9)
    assert found.value == pytest.approx(around_columns(corners_of(A), p).value, rel=1e-8)
    assert found.gap <= 1e-9


@pytest.mark.parametrize("p", [2, math.inf])
@pytest.mark.parametrize("shape", [(5, 12), (3, 20), (6, 18), (2, 60), (3, 40), (4, 30)], ids=str)
def test_many_generators_leave_no_gap(shape, p):
    A = np.random.default_rng(4).normal(size=shape)
    weights = np.ones(shape[0])
    weights[0] = 10.0
    found = around_zonotope(A, p, weights, 1e-9)
    assert found.gap <= 1e-9
    drawn = A @ np.sign(RNG.normal(size=(5000, shape[0])) @ A).T
    assert np.sum((np.linalg.solve(found.factor, drawn)) ** 2, axis=0).max() <= 1 + 1e-9


def test_what_cannot_be_searched_has_the_certified_pair():
    assert is_searched(20, 10)
    assert is_searched(500, 3)
    assert not is_searched(21, 5)
    assert not is_searched(501, 3)
    many = mh.smallest_ellipsoid(mh.Zonotope(np.random.default_rng(6).normal(size=(6, 30))))
    assert 1e-3 < many.gap < math.sqrt(math.pi / 2) - 1
