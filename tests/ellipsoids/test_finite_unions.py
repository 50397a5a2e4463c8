"""Oracle-given bodies and unions of ellipsoids."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.ellipsoids.finite import around_columns, around_oracle
from muhat.ellipsoids.unions import around_ellipsoids
from muhat.ellipsoids.verification import norm_bounds
from muhat.errors import InvalidInput

INF = np.inf
ORDERS = [2, 4, 10, INF]


def oracle_of(columns):
    def oracle(W):
        norms = norm_bounds(W, columns)
        return columns[:, np.argsort(-norms)[:8]], float(norms.max())

    return oracle


@pytest.mark.parametrize("p", ORDERS)
def test_an_oracle_agrees_with_the_columns_it_hides(p):
    columns = np.random.default_rng(0).normal(size=(5, 400))
    hidden = around_oracle(oracle_of(columns), 5, p)
    assert hidden.converged
    assert hidden.value == pytest.approx(around_columns(columns, p).value, rel=2e-9)


@pytest.mark.parametrize("p", [2, INF])
def test_an_oracle_of_a_flat_body_finds_its_span(p):
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 80))
    hidden = around_oracle(oracle_of(columns), 6, p)
    assert hidden.factor.shape == (6, 2)
    assert hidden.value == pytest.approx(around_columns(columns, p).value, rel=2e-9)
    weighted = around_oracle(oracle_of(columns), 6, p, weights=np.arange(1.0, 7.0))
    plain = around_columns(np.arange(1.0, 7.0)[:, None] * columns, p)
    assert weighted.value == pytest.approx(plain.value, rel=2e-9)


@pytest.mark.parametrize("p", [2, 4, INF])
def test_a_ball_given_by_its_oracle_costs_its_closed_form(p):
    def ball(W):
        _, sizes, axes = np.linalg.svd(W)
        return axes.T, float(sizes[0]) * (1 + 1e-13)

    result = around_oracle(ball, 4, p)
    assert result.value == pytest.approx(4 ** (0 if p == INF else 1 / p), rel=2e-9)


def test_a_loose_oracle_costs_accuracy_and_claims_nothing():
    columns = np.random.default_rng(2).normal(size=(3, 50))
    tight = oracle_of(columns)

    def loose(W):
        points, bound = tight(W)
        return points, 1.01 * bound

    result, best = around_oracle(loose, 3, 2), around_columns(columns, 2)
    assert not result.converged
    assert result.gap == pytest.approx(0.01, abs=1e-6)
    assert result.floor <= best.value <= result.value


def test_a_start_that_misses_a_direction_is_refused():
    columns = np.random.default_rng(3).normal(size=(3, 20))
    start = columns.copy()
    start[2] = 0
    with pytest.raises(InvalidInput, match="span"):
        around_oracle(oracle_of(columns), 3, 2, start=start)
    with pytest.raises(InvalidInput, match="rows"):
        around_oracle(oracle_of(columns), 3, 2, start=np.eye(2))


@pytest.mark.parametrize(
    "oracle",
    [
        lambda W: (np.full((2, 1), np.nan), 1.0),
        lambda W: (np.ones((3, 1)), 1.0),
        lambda W: (np.ones((2, 1)), np.nan),
        lambda W: (np.ones((2, 1)), -1.0),
    ],
)
def test_a_broken_oracle_is_refused(oracle):
    with pytest.raises(InvalidInput, match="oracle"):
        around_oracle(oracle, 2, 2)


@pytest.mark.parametrize("p", ORDERS)
def test_one_ellipsoid_is_its_own_smallest(p):
    L = np.random.default_rng(4).normal(size=(5, 5))
    result = around_ellipsoids([L], p)
    assert result.value == pytest.approx(np.linalg.norm(np.sqrt(np.sum(L**2, axis=1)), p), rel=2e-9)
    if p != INF:  # at p = ∞ rows below the largest may be raised, so M is not unique
        assert np.allclose(result.factor @ result.factor.T, L @ L.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("p", ORDERS)
def test_segments_are_columns(p):
    columns = np.random.default_rng(5).normal(size=(3, 7))
    segments = [columns[:, [k]] for k in range(7)]
    result = around_ellipsoids(segments, p)
    assert result.value == pytest.approx(around_columns(columns, p).value, rel=2e-9)


@pytest.mark.parametrize("p", ORDERS)
def test_a_union_contains_each_ellipsoid_and_meets_its_floor(p):
    rng = np.random.default_rng(6)
    union = [rng.normal(size=(4, 4)), rng.normal(size=(4, 2)), 0.1 * np.eye(4)]
    result = around_ellipsoids(union, p)
    assert result.converged
    for L in union:
        assert np.linalg.norm(np.linalg.solve(result.factor, L), 2) <= 1 + 1e-12
    # Points on the ellipsoids, many of them, give a smaller body with nearly the same value.
    sphere = rng.normal(size=(4, 3000))
    sphere /= np.sqrt(np.sum(sphere**2, axis=0))
    circle = sphere[:2] / np.sqrt(np.sum(sphere[:2] ** 2, axis=0))
    inner = around_columns(np.hstack([union[0] @ sphere, union[1] @ circle]), p)
    assert inner.floor <= result.value
    assert inner.value >= 0.97 * result.value


@pytest.mark.parametrize("p", [2, INF])
def test_orthogonal_blocks_combine_in_the_norm_itself(p):
    a, b = np.diag([1.0, 2.0, 0, 0])[:, :2], np.diag([0, 0, 3.0, 0.5])[:, 2:]
    expected = np.linalg.norm([1, 2, 3, 0.5], p)
    assert around_ellipsoids([a, b], p).value == pytest.approx(expected, rel=2e-9)
    weighted = around_ellipsoids([a, b], p, weights=[2, 1, 1, 4]).value
    assert weighted == pytest.approx(np.linalg.norm([2, 2, 3, 2], p), rel=2e-9)


def test_degenerate_and_bad_unions():
    assert around_ellipsoids([np.zeros((3, 2))]).value == 0
    flat = around_ellipsoids([np.array([[1.0], [1.0], [0.0]]), np.array([[1.0], [-1.0], [0.0]])])
    assert flat.factor.shape == (3, 2)
    for bad in ([], [np.eye(2), np.eye(3)], [np.full((2, 2), np.nan)], np.eye(2), [np.ones(3)]):
        with pytest.raises(InvalidInput):
            around_ellipsoids(bad)
    for tol in (0, 1e-12, np.nan):
        with pytest.raises(InvalidInput, match="tol"):
            around_ellipsoids([np.eye(2)], 2, tol)
    with pytest.raises(InvalidInput, match="p must be"):
        around_ellipsoids([np.eye(2)], 1.5)
