"""±x^{⊗ℓ} at unequal weights: the largest form on a simplex, its bound, and the ellipsoid."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest

import muhat as mh
from muhat.domains import moment_weights
from muhat.domains.moment_weights import largest_on_simplex

RNG = np.random.default_rng(17)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_the_largest_form_on_the_simplex_is_found_and_bounded(d):
    drawn = np.vstack([np.eye(d), RNG.dirichlet(np.full(d, 0.5), size=5000)])
    for _ in range(20):
        G = RNG.normal(size=(d, d))
        G = G + G.T + 3 * np.eye(d) * RNG.integers(0, 2)
        peaks, bound = largest_on_simplex(G)
        seen = np.einsum("ij,jk,ik->i", drawn, G, drawn).max()
        found = float(peaks[0] @ G @ peaks[0])
        assert peaks.sum(axis=1) == pytest.approx(1)
        assert seen <= found + 1e-6
        assert found <= bound <= found + 2e-5 * max(abs(found), 1)


@pytest.mark.parametrize(("d", "order"), [(2, 3), (3, 3), (2, 6), (4, 3)])
def test_the_largest_form_of_a_higher_degree_is_bounded(d, order):
    drawn = np.vstack([np.eye(d), RNG.dirichlet(np.full(d, 0.5), size=5000)])
    for _ in range(10):
        G = RNG.normal(size=(d,) * order)
        G = sum(np.transpose(G, turn) for turn in permutations(range(order)))
        peaks, bound = largest_on_simplex(G)
        values = moment_weights._contracted(G, np.vstack([peaks, drawn]), order)
        # Climbing may end in a peak that is not the highest; the bound knows all of them.
        assert values.max() <= bound <= values.max() + 2e-2 * np.abs(G).max()


def test_a_bound_that_is_cut_short_still_bounds(monkeypatch):
    monkeypatch.setattr(moment_weights, "MOST_PARTS", 1)
    G = np.array([[1.0, 3.0, 0.0], [3.0, 1.0, 2.0], [0.0, 2.0, 1.5]])
    peaks, bound = largest_on_simplex(G)
    assert float(peaks[0] @ G @ peaks[0]) <= bound <= 3.0 + 1e-12


@pytest.mark.parametrize("p", [2, 4, math.inf])
@pytest.mark.parametrize("kind", ["square", "product", "drawn"])
def test_both_sides_are_contained_and_the_gap_is_small(kind, p):
    K = mh.MomentTensor(order=2, dim=3)
    weights = np.ones(6)
    if kind == "drawn":
        weights = np.exp(np.random.default_rng(2).normal(size=6))
    else:
        weights[0 if kind == "square" else 1] = 10.0
    found = mh.smallest_ellipsoid(K, p, "symmetric", weights=weights)
    x = RNG.normal(size=(20_000, 3)) * np.exp(RNG.normal(size=(20_000, 3)))
    points = K.clip(x * 1e3)
    inverse = np.linalg.inv(found.matrix)
    assert np.einsum("ij,jk,ik->i", points, inverse, points).max() <= 1 + 1e-9
    assert found.gap < 1.1e-3


@pytest.mark.parametrize("p", [2, math.inf])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(("order", "d"), [(3, 2), (3, 3), (4, 2), (5, 2)])
def test_higher_moments_are_contained_and_the_gap_is_small(order, d, place, p):
    K = mh.MomentTensor(order, d)
    weights = np.ones(K.dim)
    weights[place] = 10.0
    found = mh.smallest_ellipsoid(K, p, "symmetric", weights=weights)
    points = K.clip(RNG.normal(size=(20_000, d)) * 1e3)
    inverse = np.linalg.inv(found.matrix)
    assert np.einsum("ij,jk,ik->i", points, inverse, points).max() <= 1 + 1e-9
    assert found.gap < 2e-3
    if order % 2:  # K − K is twice as large
        assert mh.smallest_ellipsoid(K, p, weights=weights).value == 2 * found.value


@pytest.mark.parametrize("p", [2, 4, math.inf])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(("order", "d"), [(2, 2), (2, 5), (4, 2), (4, 3), (6, 2)])
def test_even_moments_with_a_free_shift_are_contained_and_the_gap_is_small(order, d, place, p):
    """Planted: in an ellipsoid that is a tenth smaller they are not."""
    K = mh.MomentTensor(order, d)
    weights = np.ones(K.dim)
    weights[place] = 10.0
    found = mh.smallest_ellipsoid(K, p, "shifted", weights=weights)
    lengths = RNG.uniform(0, 1, (20_000, 1)) ** 0.1
    records = RNG.normal(size=(20_000, d))
    records *= lengths / np.linalg.norm(records, axis=1)[:, None]
    points = np.vstack([np.zeros(K.dim), K.lift(records)])
    inverse = np.linalg.inv(found.matrix)

    z = points - found.shift
    farthest = np.einsum("ij,jk,ik->i", z, inverse, z).max()
    assert 0.9**2 < farthest <= 1 + 1e-9
    assert found.gap < 1.1e-3


def test_means_of_squares_with_a_secret_number_have_noise_that_follows_the_weights():
    K = mh.MomentTensor(order=2, dim=2)
    plan = mh.plan_mean(domain=K, n=None, privacy=mh.GDP(1.0), weights=[10, 1, 1])
    alike = mh.plan_mean(domain=K, n=None, privacy=mh.GDP(1.0))
    x = RNG.normal(size=(1000, 2))
    release = plan.release(x)
    error = release.standard_error
    assert (np.abs(release.value - K.clip(x).mean(axis=0)) < 8 * error).all()
    # They depend on the noisy number of records, but by less than a hundredth.
    others = alike.release(x).standard_error
    assert np.linalg.norm([10, 1, 1] * error) < 1.01 * np.linalg.norm([10, 1, 1] * others)


def test_means_of_cubes_have_noise_that_follows_the_weights():
    K = mh.MomentTensor(order=3, dim=2)
    plan = mh.plan_mean(domain=K, n=1000, privacy=mh.ZCDP(0.5), weights=[1, 10, 1, 1])
    assert plan.expected_error == pytest.approx(2 * 0.007489, rel=1e-3)
    assert plan.certificate is not None
    assert plan.certificate.ratio < 1.01


def test_sums_of_squares_with_a_secret_number_have_noise_that_follows_the_weights():
    K, weights = mh.MomentTensor(order=2, dim=3), [1, 10, 1, 1, 1, 1]
    plan = mh.plan_sum(domain=K, n=None, privacy=mh.ZCDP(0.5), weights=weights)
    assert plan.expected_error == pytest.approx(8.002, rel=1e-3)
    assert plan.certificate is not None
    assert plan.certificate.ratio < 1.01
    x = RNG.normal(size=(200, 3))
    release = plan.release(x)
    far = np.abs(release.value - K.clip(x).sum(axis=0)) / release.standard_error
    assert far.max() < 8  # once in 10^14 draws
