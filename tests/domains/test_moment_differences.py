"""x^{⊗ℓ} − y^{⊗ℓ} at unequal weights: the forms that contain, their shares, and the noise."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

import muhat as mh
from muhat.domains.moment_basis import TensorBasis
from muhat.domains.moment_differences import WeightedSets, weighted_sets

RNG = np.random.default_rng(23)


def differences(K: TensorBasis, count: int) -> np.ndarray:
    """x^{⊗ℓ} − y^{⊗ℓ}, many of them of orthogonal x and y, and x^{⊗ℓ} alone."""
    d = K.record_dim
    x, y = RNG.normal(size=(2, count, d)) * np.exp(RNG.normal(size=(2, count, d)))
    x /= np.linalg.norm(x, axis=1)[:, None]
    y[: count // 2] -= np.sum(x * y, axis=1)[: count // 2, None] * x[: count // 2]
    y /= np.linalg.norm(y, axis=1)[:, None]
    i, j = np.triu_indices(d, 1)
    axes = np.eye(d)
    x, y = np.vstack([x, axes, axes[i]]), np.vstack([y, 0 * axes, axes[j]])
    return np.vstack([K.lift(x) - K.lift(y), K.lift(x)])


def reach(M: np.ndarray, points: np.ndarray) -> float:
    return float(np.einsum("ij,jk,ik->i", points, np.linalg.inv(M), points).max())


@pytest.mark.parametrize(("order", "d"), [(2, 2), (2, 4), (4, 2), (4, 3), (6, 2)])
def test_the_form_of_every_set_is_at_most_1_and_that_of_variables_attains_it(order, d):
    K = TensorBasis(order, d)
    points = differences(K, 4000)
    D = WeightedSets.whole(K).half.roots.shape[0]
    listed = [A for size in range(1, D + 1) for A in combinations(range(D), size)]
    for A in listed[:40]:
        # With a little of the set of all coordinates the form has an inverse.
        both = WeightedSets(K, (tuple(range(D)), A), np.array([1e-6, 1 - 1e-6]))
        assert reach(both.matrix, points) <= 1 + 1e-9
        if order == 2:
            assert reach(both.matrix * 0.98, points) > 1  # a smaller one does not contain


def weighted(dim: int, kind: str) -> np.ndarray:
    weights = np.ones(dim)
    if kind == "drawn":
        return np.exp(np.random.default_rng(dim).normal(size=dim))
    weights[{"square": [0], "product": [1], "both": [0, 1]}[kind]] = 10.0
    return weights


@pytest.mark.parametrize("p", [2, 4, math.inf])
@pytest.mark.parametrize("kind", ["square", "product", "both", "drawn"])
@pytest.mark.parametrize("d", [2, 3])
def test_differences_of_order_2_are_contained_and_the_gap_is_small(d, kind, p):
    K = mh.MomentTensor(order=2, dim=d)
    found = mh.smallest_ellipsoid(K, p, weights=weighted(K.dim, kind))
    assert reach(found.matrix, differences(K.basis, 20_000)) <= 1 + 1e-9
    assert found.gap < 2.5e-3


@pytest.mark.slow
@pytest.mark.parametrize("p", [2, math.inf])
@pytest.mark.parametrize("kind", ["square", "product", "drawn"])
@pytest.mark.parametrize("d", [4, 5, 6])
def test_so_it_is_of_more_variables(d, kind, p):
    K = mh.MomentTensor(order=2, dim=d)
    found = mh.smallest_ellipsoid(K, p, weights=weighted(K.dim, kind))
    assert reach(found.matrix, differences(K.basis, 20_000)) <= 1 + 1e-9
    assert found.gap < 5e-3


def test_a_higher_order_says_how_far_it_is_from_the_best():
    K = mh.MomentTensor(order=4, dim=2)
    found = mh.smallest_ellipsoid(K, weights=weighted(5, "square"))
    assert reach(found.matrix, differences(K.basis, 20_000)) <= 1 + 1e-9
    assert 0.005 < found.gap < 0.02


def test_a_set_of_little_worth_is_left_out():
    assert len(weighted_sets(TensorBasis(2, 3), 2, np.ones(6)).sets) == 1
    assert len(weighted_sets(TensorBasis(2, 3), 2, weighted(6, "product")).sets) == 1
    sets = weighted_sets(TensorBasis(2, 2), 2, weighted(3, "square")).sets
    assert set(sets) == {(0, 1), (0,)}


def test_means_of_squares_have_noise_that_follows_the_weights():
    """Their error is that of the smallest ellipsoid, and what is drawn has it."""
    K = mh.MomentTensor(order=2, dim=2)
    plan = mh.plan_mean(domain=K, n=1000, privacy=mh.ZCDP(0.5), weights=[10, 1, 1])
    assert plan.expected_error == pytest.approx(0.010607, rel=1e-3)
    assert plan.certificate is not None
    assert plan.certificate.ratio < 1.01
    x = RNG.normal(size=(1000, 2))
    release = plan.release(x)
    far = np.abs(release.value - K.clip(x).mean(axis=0)) / release.standard_error
    assert far.max() < 8  # once in 10^14 draws


def test_pure_noise_has_as_many_rows_as_moments():
    """K-norm noise on r rows has √(r + 1) times the error of normal noise at ρ = ½."""
    K = mh.MomentTensor(order=2, dim=2)
    plan = mh.plan_mean(
        domain=K, n=1000, privacy=mh.PureDP(1.0), weights=[10, 1, 1], mechanism="ellipsoid-norm"
    )
    assert plan.expected_error == pytest.approx(2 * 0.010607, rel=1e-3)
