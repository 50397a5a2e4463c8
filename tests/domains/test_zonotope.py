"""Zonotopes, also flat ones and those that remember the box they come from."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh
from muhat.domains import from_dict

RNG = np.random.default_rng(10)


def test_support_is_a_sum_of_absolute_products():
    A, c = RNG.normal(size=(3, 30)), np.array([1.0, 2.0, 3.0])
    K = mh.Zonotope(A, center=c)
    cube = RNG.choice([-1.0, 1.0], size=(5000, 30))
    for theta in RNG.normal(size=(5, 3)):
        assert K.support(theta) == pytest.approx(theta @ c + np.abs(A.T @ theta).sum())
        assert (cube @ A.T @ theta).max() <= K.support(theta) - theta @ c
    assert np.allclose(K.half_widths, np.abs(A).sum(axis=1))
    far = np.linalg.norm(cube @ A.T, axis=1).max()
    assert far <= K.farthest(np.ones(3)) <= np.linalg.norm(A, axis=0).sum() + 1e-9


def test_the_farthest_corner_is_exact_for_few_generators():
    K = mh.Zonotope(RNG.normal(size=(3, 9)), center=[1, 2, 3])
    weights = np.array([1.0, 0.3, 2.0])
    far = np.linalg.norm((K.vertices() - K.center) * weights, axis=1).max()
    assert K.farthest(weights) == pytest.approx(far, rel=1e-14)


def test_flat_zonotopes_are_domains():
    nothing = mh.Zonotope(np.zeros((2, 3)), center=[4, 5])
    assert not nothing.half_widths.any()
    assert nothing.farthest(np.ones(2)) == 0
    assert nothing.vertices().tolist() == [[4, 5]]
    segment = mh.Zonotope([[1, 0, 2], [1, 0, 2]])
    assert segment.width([1, -1]) == 0
    assert segment.half_widths.tolist() == [3, 3]


def test_generators_are_the_coordinates_of_records():
    A = RNG.normal(size=(2, 5))
    source = mh.Zonotope(A, center=[1, 2]).preimage()
    assert source.domain == mh.Box([-1] * 5, [1] * 5)
    assert np.array_equal(source.matrix, A)
    assert source.offset.tolist() == [1, 2]


def test_an_image_of_a_box_takes_records_of_the_box():
    box = mh.Box([0, 16], [200_000, 90])
    T, S = np.array([[1.0, 2.0], [0.5, -1.0], [0.0, 1.0]]), RNG.normal(size=(2, 3))
    K = S @ (T @ box + [1, 2, 3])
    source = K.preimage()
    assert isinstance(K, mh.Zonotope)
    assert source.domain == box
    assert np.allclose(source.matrix, S @ T)
    assert np.allclose(source.offset, S @ [1, 2, 3])
    assert from_dict(K.to_dict()) == K
    assert from_dict(K.to_dict()).preimage().domain == box
    both = K + mh.Zonotope([[1.0], [2.0]])
    assert both.preimage().domain == box * mh.Box([-1], [1])
    for theta in RNG.normal(size=(4, 2)):
        expected = K.support(theta) + abs(theta @ [1, 2])
        assert both.support(theta) == pytest.approx(expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mh.Zonotope([]),
        lambda: mh.Zonotope(np.empty((3, 0))),
        lambda: mh.Zonotope(np.empty((0, 3))),
        lambda: mh.Zonotope([1, 2, 3]),
        lambda: mh.Zonotope(3.0),
        lambda: mh.Zonotope([[1, np.nan]]),
        lambda: mh.Zonotope([[1, np.inf]]),
        lambda: mh.Zonotope([[1], [2, 3]]),
        lambda: mh.Zonotope("cube"),
        lambda: mh.Zonotope(np.eye(2), center=[1]),
        lambda: mh.Zonotope(np.eye(2), center=[1, np.nan]),
        lambda: mh.Zonotope([[1e-150]]),
        lambda: mh.Zonotope([[1e145]]),
        lambda: mh.Zonotope.from_box(np.eye(2), mh.Box([0], [1])),
    ],
)
def test_a_bad_zonotope_is_refused(make):
    with pytest.raises(mh.InvalidInput):
        make()
