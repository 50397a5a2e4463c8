"""Schatten balls with weights: the assignment that decides how far they reach, and the gap."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import muhat as mh
from muhat.ellipsoids.matrix_balls import around_matrices

ORDERS = [1, 2, 2.5, 4, math.inf]
SHAPES = [(1, 4), (3, 3), (2, 4)]


def drawn(shape, order, count=400):
    """Random matrices on the sphere of a Schatten norm, and permutation matrices."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(count, *shape)) * np.exp(rng.normal(size=(count, *shape)))
    X[: count // 2] = (
        np.linalg.svd(X[: count // 2], full_matrices=False)[0]
        @ np.linalg.svd(X[: count // 2], full_matrices=False)[2]
    )
    sizes = np.linalg.svd(X, compute_uv=False)
    return X / np.linalg.norm(sizes, order, axis=1)[:, None, None]


def weights_of(shape, kind):
    weights = np.ones(shape)
    if kind == "one":
        weights[0, 0] = 10.0
        return weights
    return np.exp(np.random.default_rng(7).normal(size=shape))


@pytest.mark.parametrize("order", [2.5, 4, math.inf])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_matrix_reaches_farther_than_the_best_matching(shape, order):
    rng = np.random.default_rng(11)
    q = 1.0 if math.isinf(order) else order / (order - 2)
    X = drawn(shape, order, 4000)
    for _ in range(20):
        c = np.exp(1.5 * rng.normal(size=shape))
        rows, columns = range(shape[0]), range(shape[1])
        best = max(
            np.linalg.norm(c[rows, list(some)], q)
            for some in itertools.permutations(columns, shape[0])
        )
        # Climb from the best of the matrices drawn: Xᵀ∇ is linear, its largest point is explicit.
        start = X[np.argmax(np.sum(c * X**2, axis=(1, 2)))]
        for _ in range(200):
            U, sizes, V = np.linalg.svd(c * start, full_matrices=False)
            dual = sizes ** (1 / (order - 1)) if math.isfinite(order) else np.ones(len(sizes))
            start = (U * dual / np.linalg.norm(dual, order)) @ V
        assert np.sum(c * start**2) <= best * (1 + 1e-9)


@pytest.mark.parametrize("p", [2, 3, 8, math.inf])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["one", "drawn"])
def test_the_ball_is_contained_and_the_gap_is_closed(order, p, kind):
    for shape in SHAPES:
        weights = weights_of(shape, kind)
        found = around_matrices(shape, order, p, weights.ravel())
        reach = np.sum(drawn(shape, order) ** 2 / found.diagonal.reshape(shape), axis=(1, 2))
        assert reach.max() <= 1 + 1e-12
        assert found.gap < 1e-4
        assert found.value == pytest.approx(np.linalg.norm(weights.ravel() * found.scales, p))


def test_one_row_is_a_ball_and_a_diagonal_weight_a_box():
    weights = np.array([10.0, 1, 2, 3])
    row = mh.smallest_ellipsoid(mh.SchattenBall(math.inf, (1, 4)), weights=weights)
    ball = mh.smallest_ellipsoid(mh.Ball(1, 4), weights=weights)
    assert row.value == pytest.approx(ball.value, rel=1e-5)
    # Off the diagonal next to nothing counts: what is left is the box of the diagonal.
    thin = np.full((3, 3), 1e-6) + np.diag([1.0, 2, 3])
    matrices = mh.smallest_ellipsoid(mh.SchattenBall(math.inf, (3, 3)), weights=thin.ravel())
    assert matrices.value / 2 == pytest.approx(6, rel=1e-4)


def test_weights_shape_the_noise_of_a_release():
    K, n = mh.SchattenBall(math.inf, (3, 4)), 1000
    weights = weights_of((3, 4), "one").ravel()
    plan = mh.plan_mean(domain=K, n=n, privacy=mh.GDP(1.0), weights=weights)
    value = mh.smallest_ellipsoid(K, weights=weights).value
    assert plan.expected_error == pytest.approx(value / n, rel=1e-6)
    assert plan.certificate is not None
    assert plan.certificate.ratio == pytest.approx(1.0, abs=1e-3)
    release = plan.release(np.eye(3, 4).ravel()[None].repeat(n, axis=0))
    assert np.abs(release.value - np.eye(3, 4).ravel()).max() < 1
