"""Domains: support functions, clipping, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.domains import from_dict

RNG = np.random.default_rng(1)
A = np.array([[4.0, 1.0, 0.2], [1.0, 3.0, -0.5], [0.2, -0.5, 1.0]])
DOMAINS = [
    mh.Ball(radius=2, dim=3, center=[1, -2, 3]),
    mh.Box(lower=[-1, 0, 10], upper=[1, 5, 11]),
    mh.Ellipsoid(A, center=[1, 2, 3]),
]


@pytest.mark.parametrize("K", DOMAINS, ids=repr)
def test_support_is_the_largest_product_with_a_clipped_point(K):
    cloud = K.clip(K.center + RNG.normal(size=(200_000, 3)) * 50)
    for direction in RNG.normal(size=(5, 3)):
        best = (cloud @ direction).max()
        assert best <= K.support(direction) * (1 + 1e-12) + 1e-9
        assert best >= K.support(direction) - 0.05 * np.linalg.norm(direction) * 3


@pytest.mark.parametrize("K", DOMAINS, ids=repr)
def test_clipping_keeps_points_inside_and_is_idempotent(K):
    inside = K.center + 0.1 * K.half_widths * RNG.uniform(-1, 1, (100, 3))
    assert np.allclose(K.clip(inside), inside, rtol=1e-14)
    once = K.clip(K.center + RNG.normal(size=(1000, 3)) * 100)
    assert np.allclose(K.clip(once), once, rtol=1e-12)


@pytest.mark.parametrize("K", DOMAINS, ids=repr)
def test_half_widths_and_farthest_agree_with_the_support_function(K):
    axes = np.eye(3)
    widths = [(K.support(e) + K.support(-e)) / 2 for e in axes]
    assert np.allclose(K.half_widths, widths)
    weights = np.array([1.0, 2.0, 0.5])
    cloud = K.clip(K.center + RNG.normal(size=(100_000, 3)) * 50)
    far = np.linalg.norm((cloud - K.center) * weights, axis=1).max()
    assert far <= K.farthest(weights) * (1 + 1e-12)
    assert far >= 0.9 * K.farthest(weights)


@pytest.mark.parametrize("K", DOMAINS, ids=repr)
def test_a_domain_survives_its_dict(K):
    assert from_dict(K.to_dict()) == K
    assert hash(from_dict(K.to_dict())) == hash(K)


def test_a_box_keeps_integers_beyond_the_floats():
    box = mh.Box([2**60], [2**60 + 1000])
    assert box.bounds == ((Fraction(2**60), Fraction(2**60 + 1000)),)
    assert box.half_widths[0] == 500


@pytest.mark.parametrize(
    "make",
    [
        lambda: mh.Ball(radius=0, dim=2),
        lambda: mh.Ball(radius=-1, dim=2),
        lambda: mh.Ball(radius=float("nan"), dim=2),
        lambda: mh.Ball(radius=float("inf"), dim=2),
        lambda: mh.Ball(radius=1, dim=0),
        lambda: mh.Ball(radius=1, dim=2.5),
        lambda: mh.Ball(radius=1, dim=True),
        lambda: mh.Ball(radius=1, dim=2, center=[0]),
        lambda: mh.Ball(radius=1e200, dim=2),
        lambda: mh.Ball(radius=1e-200, dim=2),
        lambda: mh.Box([0], [0]),
        lambda: mh.Box([1], [0]),
        lambda: mh.Box([0, 0], [1]),
        lambda: mh.Box([float("nan")], [1]),
        lambda: mh.Box([0], [float("inf")]),
        lambda: mh.Box([], []),
        lambda: mh.Box(["a"], [1]),
        lambda: mh.Box([[0]], [[1]]),
        lambda: mh.Ellipsoid([[1, 2], [2, 1]]),
        lambda: mh.Ellipsoid([[1, 2, 3]]),
        lambda: mh.Ellipsoid([[1, 0.5], [0.4, 1]]),
        lambda: mh.Ellipsoid([[1, 0], [0, float("nan")]]),
        lambda: mh.Ellipsoid([[1, 0], [0, 1e-30]]),
        lambda: mh.Ellipsoid("round"),
    ],
)
def test_a_bad_domain_is_refused(make):
    with pytest.raises(mh.InvalidInput):
        make()
