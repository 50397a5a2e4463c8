"""The smallest ellipsoid: closed forms, containment, certified floors."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh
from muhat.ellipsoids import smallest_ellipsoid

RNG = np.random.default_rng(2)
A = np.array([[4.0, 1.0], [1.0, 3.0]])
INF = np.inf


def test_a_box_has_the_closed_form_of_its_sides():
    box = mh.Box([0, 0, 0], [1, 2, 5])
    w = np.array([1.0, 2.0, 5.0])
    assert mh.gamma(box, 2) == pytest.approx(w.sum(), rel=1e-14)
    assert mh.gamma(box, INF) == pytest.approx(np.linalg.norm(w), rel=1e-14)
    assert mh.gamma(box, 4) == pytest.approx(np.sum(w ** (4 / 3)) ** (3 / 4), rel=1e-14)
    assert mh.gamma(box, 2, "shifted") == pytest.approx(w.sum() / 2, rel=1e-14)


@pytest.mark.parametrize("p", [2, 3, 4, 10, INF])
def test_a_ball_and_an_ellipsoid_are_their_own_ellipsoids(p):
    assert mh.gamma(mh.Ball(radius=3, dim=5), p) == pytest.approx(6 * 5 ** (1 / p), rel=1e-14)
    e = smallest_ellipsoid(mh.Ellipsoid(A), p)
    assert np.allclose(e.matrix, 4 * A)
    assert e.value == pytest.approx(np.linalg.norm(2 * np.sqrt(np.diag(A)), p), rel=1e-14)


@pytest.mark.parametrize("p", [2, 2.5, 4, INF])
@pytest.mark.parametrize("weights", [None, [1.0, 0.01]])
def test_the_ellipsoid_contains_the_body_and_touches_it(p, weights):
    box = mh.Box([-1, 3], [4, 3.5])
    e = smallest_ellipsoid(box, p, weights=weights)
    corners = np.array([[5.0, 0.5], [5.0, -0.5]])
    sizes = np.einsum("ij,jk,ik->i", corners, np.linalg.inv(e.matrix), corners)
    assert sizes.max() == pytest.approx(1, rel=1e-12)
    w = np.ones(2) if weights is None else np.array(weights)
    assert e.value == pytest.approx(np.linalg.norm(w * e.scales, p), rel=1e-12)


@pytest.mark.parametrize("p", [2, 4, INF])
def test_no_other_diagonal_ellipsoid_around_a_box_is_smaller(p):
    box = mh.Box([0, 0, 0], [1, 2, 7])
    best = mh.gamma(box, p)
    for _ in range(200):
        M = np.exp(RNG.normal(size=3))
        M *= np.sum(np.array([1.0, 2.0, 7.0]) ** 2 / M)
        assert np.linalg.norm(np.sqrt(M), p) >= best * (1 - 1e-12)


@pytest.mark.parametrize("p", [2, 4, INF])
@pytest.mark.parametrize(
    "K",
    [
        mh.Box([1000, 1000], [1100, 1100]),
        mh.Box([0, 0], [1, 1]),
        mh.Ball(radius=1, dim=2, center=[1, 2]),
        mh.Ellipsoid(A, center=[3, -4]),
        mh.Box([-1, 2], [1, 3]),
    ],
    ids=repr,
)
def test_both_sides_of_a_domain_are_contained_and_the_floor_is_below(K, p):
    e = smallest_ellipsoid(K, p, "symmetric")
    cloud = K.clip(K.center + RNG.normal(size=(20_000, 2)) * 1e4)
    inverse = np.linalg.inv(e.matrix)
    assert np.einsum("ij,jk,ik->i", cloud, inverse, cloud).max() <= 1 + 1e-9
    assert np.linalg.norm(cloud, p, axis=1).max() * (1 - 1e-3) <= e.value
    assert 0 < e.floor <= e.value
    assert e.gap < 0.6


@pytest.mark.parametrize("p", [2, 4, INF])
def test_in_one_dimension_both_sides_have_no_gap(p):
    e = smallest_ellipsoid(mh.Box([3], [5]), p, "symmetric")
    assert e.value == pytest.approx(5, rel=1e-12)
    assert e.gap < 1e-9


def test_a_huge_matrix_is_refused_and_its_diagonal_is_not():
    e = smallest_ellipsoid(mh.Ball(radius=1, dim=30_000))
    assert e.diagonal.shape == (30_000,)
    with pytest.raises(mh.InvalidInput, match="diagonal"):
        _ = e.matrix


@pytest.mark.parametrize(
    "arguments", [{"p": 1}, {"p": "two"}, {"body": "round"}, {"tol": 0}, {"weights": [1, 0]}]
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(mh.InvalidInput):
        smallest_ellipsoid(mh.Box([0, 0], [1, 1]), **arguments)
