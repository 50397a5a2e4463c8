"""The simplex and its Euclidean projection."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh
from muhat.domains.simplex import around_weighted_simplex

RNG = np.random.default_rng(8)
SIMPLICES = [mh.Simplex(dim, origin) for dim in (1, 2, 3, 7) for origin in (False, True)]


@pytest.mark.parametrize("K", SIMPLICES, ids=repr)
def test_projection_is_the_nearest_point(K):
    """y is nearest to x in a convex K exactly when ⟨x − y, v − y⟩ ≤ 0 for every vertex v."""
    scales = RNG.choice([0.1, 1, 5, 1e3], size=(500, 1))
    x = RNG.normal(size=(500, K.dim)) * scales
    y = K.clip(x)
    for v in K.vertices():
        assert (np.sum((x - y) * (v - y), axis=1) <= 1e-12 * scales[:, 0] * K.dim).all()


@pytest.mark.parametrize("K", SIMPLICES, ids=repr)
def test_projected_points_are_parts(K):
    x = RNG.normal(size=(500, K.dim)) * RNG.choice([0.1, 1, 5, 1e6, 1e150], size=(500, 1))
    y = K.clip(x)
    assert (y >= 0).all()
    total = y.sum(axis=1)
    assert (total <= 1 + 1e-14).all()
    if not K.origin:
        assert np.allclose(total, 1, rtol=1e-14)
    else:
        small = RNG.dirichlet(np.ones(K.dim + 1), size=100)[:, 1:]
        assert np.array_equal(K.clip(small), small)


@pytest.mark.parametrize("K", SIMPLICES, ids=repr)
def test_vertices_and_the_centroid_are_kept(K):
    assert np.allclose(K.clip(K.vertices()), K.vertices(), atol=1e-15)
    assert np.allclose(K.vertices().mean(axis=0), K.center)
    assert np.allclose(K.clip(K.center), K.center, rtol=1e-14)


@pytest.mark.parametrize("K", SIMPLICES, ids=repr)
def test_the_farthest_vertex_is_exact(K):
    weights = RNG.uniform(0.1, 3, K.dim)
    far = np.linalg.norm((K.vertices() - K.center) * weights, axis=1).max()
    assert K.farthest(weights) == pytest.approx(far, abs=1e-15)


def test_one_cell_without_the_origin_is_a_point():
    K = mh.Simplex(1)
    assert K.half_widths.tolist() == [0.0]
    assert K.clip([[5.0], [-3.0], [np.nan]]).tolist() == [[1.0], [1.0], [1.0]]
    assert K.width([1.0]) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: mh.Simplex(0),
        lambda: mh.Simplex(-1),
        lambda: mh.Simplex(2.5),
        lambda: mh.Simplex(None),
        lambda: mh.Simplex(10**18),
        lambda: mh.Simplex(3, origin="yes"),
        lambda: mh.Simplex(3, origin=2),
    ],
)
def test_a_bad_simplex_is_refused(make):
    with pytest.raises(mh.InvalidInput):
        make()


@pytest.mark.parametrize("origin", [False, True])
@pytest.mark.parametrize("body", ["difference", "shifted"])
@pytest.mark.parametrize("p", [2, 4, np.inf])
def test_one_large_weight_has_the_ellipsoid_that_the_solver_finds(p, body, origin):
    K = mh.Simplex(12, origin)
    weights = np.ones(12)
    weights[3] = 10.0
    best = K.ellipsoid(body, p, weights, 1e-9)
    found = around_weighted_simplex(12, origin, body, p, weights)
    corners = K.vertices()
    if body == "difference":
        points = (corners[:, None] - corners).reshape(-1, 12)
    else:
        points = corners - found.shift
    inverse = np.linalg.pinv(found.matrix, rcond=1e-12, hermitian=True)
    assert np.einsum("ij,jk,ik->i", points, inverse, points).max() <= 1 + 1e-9
    assert found.floor <= best.value * (1 + 1e-9)
    # With the corner 0 there are three kinds of corners: next to nothing is lost with a free shift.
    lost = 1e-5 if body == "difference" else 2e-3 if origin else 1e-7
    assert best.value * (1 - 1e-8) <= found.value <= best.value * (1 + lost)
    assert found.gap < (1e-4 if body == "difference" else 0.04 if origin else 0.01)


def test_parts_of_unequal_weights_have_noise_that_follows_them():
    K, weights = mh.Simplex(60), np.ones(60)
    weights[0] = 10.0
    plan = mh.plan_mean(domain=K, n=1000, privacy=mh.ZCDP(0.5), weights=weights, p=np.inf)
    assert plan.expected_error == pytest.approx(0.01152, rel=1e-2)
    records = np.eye(60)[np.arange(1000) % 60]
    release = plan.release(records)
    far = np.abs(release.value - records.mean(axis=0)) / release.standard_error
    assert far.max() < 8  # once in 10^13 draws
