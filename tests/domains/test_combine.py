"""Sums, images, products and translations obey the laws of support functions."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh
from muhat.domains import Image, MinkowskiSum, Product, Translate

RNG = np.random.default_rng(12)
PARTS = [
    mh.Ball(1, 4, [1, 2, 3, 4]),
    mh.Box([0, 1, 2, 3], [1, 3, 5, 7]),
    mh.Ellipsoid(np.diag([1.0, 2, 3, 4]) + 0.5),
    mh.Ellipsoid([1.0, 2, 3, 4]),
    mh.LpBall(p=1.5, dim=4, scale=[1, 2, 3, 4]),
    mh.LpBall(p=1.5, dim=4, radius=2, scale=[1, 2, 3, 4]),
    mh.Simplex(4),
    mh.Simplex(4, origin=True) + np.eye(4)[0],
    mh.Points(RNG.normal(size=(9, 4))),
    mh.Points([[1.0, 2.0, 3.0, 4.0]]),
    mh.Zonotope(RNG.normal(size=(4, 6)), [1, 0, 0, 1]),
    mh.SchattenBall(1, (2, 2), 2),
    mh.MomentTensor(3, 2),
    mh.Ball(1, 2) * mh.Simplex(2),
    mh.Ball(1, 4) + mh.Simplex(4),
    RNG.normal(size=(4, 2)) @ mh.Ball(2, 2),
]
IMAGES = [
    RNG.normal(size=(4, 4)),
    RNG.normal(size=(2, 4)),
    RNG.normal(size=(6, 4)),
    np.diag([1.0, -2.0, 3.0, 0.5]),
    -3.0 * np.eye(4),
    np.ones((4, 4)),
    np.zeros((1, 4)),
    np.diag([1.0, 0.0, 2.0, 0.0]),
]

SHEAR = np.array([[1.0, 2.0], [3.0, 4.0]])


def same_support(K, values, count=5):
    for theta in np.random.default_rng(K.dim).normal(size=(count, K.dim)):
        assert K.support(theta) == pytest.approx(values(theta), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("L", PARTS, ids=repr)
@pytest.mark.parametrize("K", PARTS, ids=repr)
def test_support_functions_add_up_and_split(K, L):
    same_support(K + L, lambda theta: K.support(theta) + L.support(theta), 3)
    same_support(K * L, lambda theta: K.support(theta[:4]) + L.support(theta[4:]), 3)
    assert (K * L).dim == 8
    assert np.allclose((K + L).half_widths, K.half_widths + L.half_widths)


@pytest.mark.parametrize("T", IMAGES, ids=lambda T: f"{T.shape}")
@pytest.mark.parametrize("K", PARTS, ids=repr)
def test_an_image_has_the_support_of_the_transposed_direction(K, T):
    image = T @ K
    assert image.dim == len(T)
    if not isinstance(K, mh.MomentTensor):
        same_support(image, lambda theta: K.support(T.T @ theta))
    assert np.allclose(image.center, T @ K.center) or isinstance(K, mh.Points)
    again = np.ones((2, len(T))) @ image
    same_support(again, lambda theta: image.support(np.full(len(T), theta.sum())))


@pytest.mark.parametrize("K", PARTS, ids=repr)
def test_a_translation_moves_everything_alike(K):
    v = np.array([1.0, -2.0, 0.25, 8.0])
    moved = K + v
    same_support(moved, lambda theta: K.support(theta) + theta @ v)
    assert moved == v + K
    assert np.allclose(moved.center, K.center + v)
    assert np.allclose(moved.half_widths, K.half_widths)
    same_support(moved + -v, K.support)
    own_center = not isinstance(K, mh.Simplex | mh.MomentTensor | MinkowskiSum | Image)
    assert not own_center or type(moved) is type(K)
    assert type(moved + v).__name__ == type(moved).__name__
    if not K.lifts and K.preimage().domain is K:
        x = RNG.normal(size=(20, 4)) * 5
        assert np.allclose(moved.clip(x + v), K.clip(x) + v, atol=1e-12)


def test_results_of_a_known_kind_are_of_that_kind():
    ball, box, ellipsoid, lp = PARTS[0], PARTS[1], PARTS[2], PARTS[4]
    points, zonotope, schatten = PARTS[8], PARTS[10], PARTS[11]
    T, wide = IMAGES[0], IMAGES[1]
    assert ball + mh.Ball(2, 4) == mh.Ball(3, 4, [1, 2, 3, 4])
    assert box + box == mh.Box([0, 2, 4, 6], [2, 6, 10, 14])
    assert box * mh.Box([9], [10]) == mh.Box([0, 1, 2, 3, 9], [1, 3, 5, 7, 10])
    assert lp + PARTS[5] == mh.LpBall(p=1.5, dim=4, radius=3, scale=[1, 2, 3, 4])
    assert schatten + schatten == mh.SchattenBall(1, (2, 2), 4)
    assert isinstance(lp + mh.LpBall(p=1.5, dim=4), MinkowskiSum)
    assert isinstance(T @ ball, mh.Ellipsoid)
    assert isinstance(T @ ellipsoid, mh.Ellipsoid)
    assert isinstance(wide @ ball, Image)
    assert isinstance(np.ones((4, 4)) @ ball, Image)
    for transform in (T, wide):
        assert isinstance(transform @ box, mh.Zonotope)
        assert isinstance(transform @ zonotope, mh.Zonotope)
        assert isinstance(transform @ points, mh.Points)
    assert isinstance(zonotope + zonotope, mh.Zonotope)
    assert isinstance(zonotope + box, mh.Zonotope)
    assert (zonotope + zonotope).generators.shape == (4, 12)
    scaling = np.diag([1.0, -2.0, 3.0, 0.5])
    assert scaling @ box == mh.Box([0, -6, 6, 1.5], [1, -2, 15, 3.5])
    assert scaling @ mh.Ball(2, 4) == mh.Ellipsoid([4, 16, 36, 1])
    assert -3 * np.eye(4) @ ball == mh.Ball(3, 4, [-3, -6, -9, -12])
    assert scaling @ lp == mh.LpBall(p=1.5, dim=4, scale=[1, 4, 9, 2])
    assert 2 * np.eye(4) @ schatten == mh.SchattenBall(1, (2, 2), 4)
    assert isinstance(scaling @ (mh.Ball(1, 2) * mh.Box([0, 0], [1, 1])), Product)
    assert mh.Simplex(4) + np.zeros(4) == mh.Simplex(4)
    assert isinstance(mh.Simplex(4) + np.ones(4), Translate)
    assert ball + PARTS[9] == ball + PARTS[9].points[0]
    assert PARTS[9] + ball == ball + PARTS[9].points[0]


def test_boxes_stay_exact_when_they_move():
    box = mh.Box([2**60], [2**60 + 1000]) + 0.5
    assert box.half_widths[0] == 500
    assert box.bounds[0][0] == 2**60 + mh.Box([0.5], [1]).bounds[0][0]
    assert (2 * np.eye(1) @ box).bounds[0][0] == 2**61 + 1


def test_combinations_nest_and_flatten():
    ball, simplex, box = mh.Ball(1, 2), mh.Simplex(2), mh.Box([0, 0], [1, 1])
    assert ((ball * simplex) * box) == (ball * (simplex * box))
    assert len((ball * box * box * simplex).parts) == 3
    assert (ball + simplex) + mh.LpBall(1, dim=2) == ball + (simplex + mh.LpBall(1, dim=2))
    T = RNG.normal(size=(3, 4))
    nested = (T @ (ball * (simplex + ball)) + np.ones(3)) + T @ mh.Simplex(4)
    source = nested.preimage()
    assert source.domain.dim == 2 + 2 + 2 + 4
    x = source.domain.clip(RNG.normal(size=(2000, source.domain.record_dim)))
    y = x @ source.matrix.T + source.offset
    for theta in RNG.normal(size=(20, 3)):
        assert (y @ theta).max() <= nested.support(theta) + 1e-12


def test_images_that_are_flat_have_no_width_there():
    K = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]) @ mh.Simplex(3)
    assert K.half_widths.tolist() == [0, 0.5]
    point = np.zeros((2, 3)) @ mh.Ball(1, 3)
    assert point.half_widths.tolist() == [0, 0]
    assert point.farthest(np.ones(2)) == 0
    line = np.ones((2, 2)) @ mh.Ball(1, 2)
    assert line.width([1, -1]) == pytest.approx(0, abs=1e-15)


def test_products_clip_part_by_part():
    K = mh.Ball(1, 2) * mh.MomentTensor(2, 3) * mh.Simplex(2)
    assert (K.dim, K.record_dim) == (10, 7)
    x = RNG.normal(size=(30, 7)) * 3
    parts = [mh.Ball(1, 2), mh.MomentTensor(2, 3), mh.Simplex(2)]
    blocks = [x[:, :2], x[:, 2:5], x[:, 5:]]
    expected = np.hstack([part.clip(block) for part, block in zip(parts, blocks, strict=True)])
    assert np.array_equal(K.clip(x), expected)
    assert K.record_center.tolist() == [0, 0, 0, 0, 0, 0.5, 0.5]


def test_distances_in_a_product_add_up_in_squares():
    K = mh.Ball(3, 2) * mh.Ball(4, 3)
    assert K.farthest(np.ones(5)) == 5.0
    assert K.farthest(np.array([1.0, 1, 3, 1, 1])) == pytest.approx(np.hypot(3, 12))


def test_numpy_leaves_the_operators_to_domains():
    K = mh.Ball(1, 2)
    assert isinstance(np.eye(2) @ K, mh.Ball)
    v = [1, 2]
    assert np.array(v) + K == mh.Ball(1, 2, v)
    assert v + K == K + v == K + tuple(v)
    assert v @ np.eye(2) + K == mh.Ball(1, 2, v)
    for wrong in (lambda: K * 2, lambda: 2 * K, lambda: np.ones(2) * K, lambda: K @ np.eye(2)):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize(
    "make",
    [
        lambda K: K + mh.Ball(1, 3),
        lambda K: K + 1.0,
        lambda K: K + np.array([1, np.nan]),
        lambda K: K + np.array([1e200, 0]),
        lambda K: K + "ab",
        lambda K: K + None,
        lambda K: np.eye(3) @ K,
        lambda K: np.ones(2) @ K,
        lambda K: np.ones((2, 2, 2)) @ K,
        lambda K: np.empty((0, 2)) @ K,
        lambda K: np.full((2, 2), np.nan) @ K,
        lambda K: np.full((2, 2), np.inf) @ K,
        lambda K: 1e145 * SHEAR @ K,
        lambda K: 1e-145 * SHEAR @ K,
        lambda K: 1e145 * np.eye(2) @ K,
        lambda K: np.diag([1e145, 1]) @ K,
        lambda K: np.array([["a", "b"]]) @ K,
        lambda K: 1j * np.eye(2) @ K,
    ],
)
@pytest.mark.parametrize(
    "K",
    [
        mh.Ball(1, 2),
        mh.Box([0, 0], [1, 1]),
        mh.Ellipsoid([[2, 1], [1, 2]]),
        mh.Simplex(2),
        mh.Points([[0, 1], [2, 5]]),
        mh.Zonotope(np.eye(2)),
        mh.LpBall(p=3, dim=2),
        mh.SchattenBall(1, (1, 2)),
        mh.MomentTensor(1, 2),
        mh.Ball(1, 1) * mh.Simplex(1),
        mh.Ball(1, 2) + mh.Simplex(2),
    ],
    ids=repr,
)
def test_a_bad_combination_is_refused(K, make):
    with pytest.raises(mh.InvalidInput):
        make(K)
