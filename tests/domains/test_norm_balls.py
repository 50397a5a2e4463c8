"""Balls of ℓ_p and Schatten norms."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh
from muhat.domains.norms import dual_order, p_norm, touching

RNG = np.random.default_rng(7)
ORDERS = [1, 1.02, 1.5, 2, 3, 10, 40, np.inf]


@pytest.mark.parametrize("p", ORDERS)
def test_norms_agree_with_numpy_and_never_overflow(p):
    x = RNG.normal(size=(20, 6))
    assert np.allclose(p_norm(x, p), np.linalg.norm(x, p, axis=1), rtol=1e-12)
    assert np.allclose(p_norm(x * 1e300, p) / 1e300, p_norm(x, p), rtol=1e-12)
    assert np.allclose(p_norm(x * 1e-300, p) * 1e300, p_norm(x, p), rtol=1e-12)
    assert p_norm(np.zeros(3), p) == 0


@pytest.mark.parametrize("p", ORDERS)
def test_touching_points_attain_the_dual_norm(p):
    for theta in [*RNG.normal(size=(20, 5)), np.array([1.0, -1.0, 0, 0, 0]), np.ones(5)]:
        u = touching(theta, p)
        assert p_norm(u, p) <= 1 + 1e-12
        assert u @ theta == pytest.approx(float(p_norm(theta, dual_order(p))), rel=1e-12)
    assert not touching(np.zeros(3), p).any()


@pytest.mark.parametrize("p", ORDERS)
def test_an_lp_ball_is_clipped_along_the_ray(p):
    K = mh.LpBall(p=p, radius=2, dim=4, center=[1, 2, 3, 4], scale=[1, 2, 0.5, 3])
    x = K.center + RNG.normal(size=(200, 4)) * 10
    y = K.clip(x)
    norms = np.linalg.norm((x - K.center) / K.scale, p, axis=1) / K.radius
    assert np.allclose(K.gauge(x), norms, rtol=1e-12)
    assert np.allclose(K.gauge(y), np.minimum(norms, 1), rtol=1e-12)
    shrink = (y - K.center) / (x - K.center)
    assert np.allclose(shrink, shrink[:, :1], rtol=1e-12)


def test_the_two_ball_and_the_sup_ball_have_other_names():
    two, ball = mh.LpBall(p=2, radius=3, dim=3, center=[1, 2, 3]), mh.Ball(3, 3, [1, 2, 3])
    sup, box = mh.LpBall(p=np.inf, dim=3, scale=[1, 2, 3]), mh.Box([-1, -2, -3], [1, 2, 3])
    ellipsoid = mh.Ellipsoid([1, 4, 9])
    scaled = mh.LpBall(p=2, dim=3, scale=[1, 2, 3])
    weights = np.array([1.0, 3.0, 0.5])
    for K, L in ((two, ball), (sup, box), (scaled, ellipsoid)):
        for theta in RNG.normal(size=(5, 3)):
            assert K.support(theta) == pytest.approx(L.support(theta), rel=1e-13)
        assert K.farthest(weights) == pytest.approx(L.farthest(weights), rel=1e-13)
        x = RNG.normal(size=(50, 3)) * 5
        if L is not box:
            assert np.allclose(K.clip(x), L.clip(x), rtol=1e-12)


@pytest.mark.parametrize("p", ORDERS)
def test_the_farthest_point_of_an_lp_ball_is_exact(p):
    K = mh.LpBall(p=p, dim=3, scale=[1, 2, 3])
    weights = np.array([2.0, 0.5, 1.0])
    x = RNG.normal(size=(200_000, 3)) * RNG.choice([1e-4, 0.3, 1, 1.5], size=(200_000, 3))
    x = K.half_widths * x / p_norm(x, p)[:, None]
    far = np.linalg.norm(x * weights, axis=1).max()
    assert far <= K.farthest(weights) * (1 + 1e-12)
    assert far >= 0.97 * K.farthest(weights)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("shape", [(3, 4), (4, 2), (1, 3), (2, 2), (1, 1)])
def test_schatten_norms_are_norms_of_singular_values(p, shape):
    K = mh.SchattenBall(p=p, shape=shape, radius=1.5)
    assert K.dim == shape[0] * shape[1]
    matrices = RNG.normal(size=(30, *shape))
    sigma = np.linalg.svd(matrices, compute_uv=False)
    flat = matrices.reshape(30, -1)
    norms = np.linalg.norm(sigma, p, axis=1)
    assert np.allclose(K.gauge(flat), norms / 1.5, rtol=1e-12)
    assert np.allclose(K.gauge(K.clip(flat * 9)), np.minimum(norms * 6, 1), rtol=1e-12)
    duals = np.linalg.norm(sigma, dual_order(p), axis=1)
    for theta, dual in zip(flat, duals, strict=True):
        assert K.support(theta) == pytest.approx(1.5 * dual, rel=1e-12)
        assert K.gauge(K.extreme_point(theta)) == pytest.approx(1, rel=1e-12)


def test_schatten_two_is_the_euclidean_ball_and_one_row_is_a_ball_at_every_p():
    ball = mh.Ball(2, 6)
    for K in (mh.SchattenBall(2, (2, 3), 2), mh.SchattenBall(1, (1, 6), 2)):
        x = RNG.normal(size=(40, 6)) * 3
        assert np.allclose(K.clip(x), ball.clip(x), rtol=1e-12)
        assert K.support(x[0]) == pytest.approx(ball.support(x[0]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: mh.LpBall(p=0.9, dim=2),
        lambda: mh.LpBall(p=0, dim=2),
        lambda: mh.LpBall(p=float("nan"), dim=2),
        lambda: mh.LpBall(p=-np.inf, dim=2),
        lambda: mh.LpBall(p="two", dim=2),
        lambda: mh.LpBall(p=None, dim=2),
        lambda: mh.LpBall(p=1j, dim=2),
        lambda: mh.LpBall(p=True, dim=2),
        lambda: mh.LpBall(p=2),
        lambda: mh.LpBall(p=2, dim=0),
        lambda: mh.LpBall(p=2, dim=-3),
        lambda: mh.LpBall(p=2, dim=1.5),
        lambda: mh.LpBall(p=2, dim=10**20),
        lambda: mh.LpBall(p=2, dim=2, radius=-1),
        lambda: mh.LpBall(p=2, dim=2, radius=np.nan),
        lambda: mh.LpBall(p=2, dim=2, scale=[1, 0]),
        lambda: mh.LpBall(p=2, dim=2, scale=[1, -1]),
        lambda: mh.LpBall(p=2, dim=2, scale=[1, np.nan]),
        lambda: mh.LpBall(p=2, dim=2, scale=[1]),
        lambda: mh.LpBall(p=2, dim=2, scale=2.0),
        lambda: mh.LpBall(p=2, dim=2, scale=[1, 1e-150]),
        lambda: mh.LpBall(p=2, dim=2, scale=[1, 1e145]),
        lambda: mh.LpBall(p=2, dim=2, radius=1e300, scale=[1e100, 1e100]),
        lambda: mh.LpBall(p=2, dim=2, center=[0, 0, 0]),
        lambda: mh.LpBall(p=2, dim=2, center=[0, np.inf]),
        lambda: mh.SchattenBall(p=0.5, shape=(2, 2)),
        lambda: mh.SchattenBall(p=2, shape=(2,)),
        lambda: mh.SchattenBall(p=2, shape=4),
        lambda: mh.SchattenBall(p=2, shape=(2, 0)),
        lambda: mh.SchattenBall(p=2, shape=(2, 2.5)),
        lambda: mh.SchattenBall(p=2, shape=(2, 2, 2)),
        lambda: mh.SchattenBall(p=2, shape=(10**9, 10**9)),
        lambda: mh.SchattenBall(p=2, shape="ab"),
        lambda: mh.SchattenBall(p=2, shape=(2, 2), radius=-1),
        lambda: mh.SchattenBall(p=2, shape=(2, 2), radius=1e200),
        lambda: mh.SchattenBall(p=2, shape=(2, 2), center=[0, 0]),
    ],
)
def test_a_bad_ball_is_refused(make):
    with pytest.raises(mh.InvalidInput):
        make()
