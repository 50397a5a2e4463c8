"""Finite sets, from one point to 10⁵."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh

RNG = np.random.default_rng(9)


def test_the_nearest_point_is_the_first_of_the_nearest():
    K = mh.Points(RNG.integers(-3, 4, size=(50, 3)))
    x = np.concatenate([RNG.integers(-4, 5, size=(300, 3)), RNG.normal(size=(300, 3)) * 3])
    distances = ((x[:, None] - K.points) ** 2).sum(axis=2)
    for code, row in zip(K.nearest(x), distances, strict=True):
        best = 0
        for i, distance in enumerate(row):
            if distance < row[best] - 1e-9:
                best = i
        assert code == best
    assert np.array_equal(K.clip(x), K.points[K.nearest(x)])
    assert K.nearest(x[0]).shape == ()


def test_duplicates_keep_their_codes():
    K = mh.Points([[0, 0], [1, 1], [0, 0], [1, 1]])
    assert K.points.shape == (4, 2)
    assert K.nearest([[0.1, 0], [5, 5]]).tolist() == [0, 1]
    assert K.is_symmetric


@pytest.mark.parametrize("shape", [(1, 1), (1, 4)])
def test_one_point_is_a_domain_without_width(shape):
    K = mh.Points(RNG.normal(size=shape))
    assert not K.half_widths.any()
    assert K.width(np.ones(K.dim)) == 0
    assert K.farthest(np.ones(K.dim)) == 0
    assert np.array_equal(K.center, K.points[0])
    assert np.array_equal(K.clip(np.zeros((3, K.dim))), np.repeat(K.points, 3, axis=0))
    assert K.is_symmetric


def test_points_on_a_line_are_flat_across_it():
    K = mh.Points(np.outer(np.arange(5.0), [1, 2, 0]))
    assert K.half_widths.tolist() == [2, 4, 0]
    assert K.width([2, -1, 0]) == 0
    assert K.width([2, -1, 5]) == 0


def test_symmetry_is_exact():
    cloud = RNG.integers(-50, 50, size=(100, 3))
    both = np.concatenate([cloud, 7 - cloud])
    assert mh.Points(both).is_symmetric
    assert np.array_equal(mh.Points(both).center, [3.5, 3.5, 3.5])
    assert mh.Points(np.repeat(both, 2, axis=0)).is_symmetric
    broken = both.astype(float)
    broken[17, 2] = np.nextafter(broken[17, 2], 100)
    assert not mh.Points(broken).is_symmetric
    tiny = 2.0**-60
    assert mh.Points([[0, 0], [1, 1], [-1, 0], [2, 1]]).is_symmetric
    assert not mh.Points([[0, 0], [1 + 2**-52, 1], [-1, 0], [2, 1]]).is_symmetric
    assert not mh.Points([[tiny, 0], [1, 1], [-1, 0], [2, 1]]).is_symmetric, "lost in 1 + 2^-60"
    assert mh.Points([[0.1, 0.7], [0.3, 0.2]]).is_symmetric
    assert mh.Points([[0.0], [0.1], [1.0]]).is_symmetric
    assert not mh.Points([[0, 0], [1, 0], [0, 1]]).is_symmetric


def test_the_center_is_inside_however_far_away():
    K = mh.Points(1e9 + RNG.exponential(size=(1000, 2)))
    assert (K.reach(RNG.normal(size=(200, 2))) >= 0).all()
    assert np.allclose(K.center, K.points.mean(axis=0), rtol=1e-15)


def test_a_hundred_thousand_points_are_handled():
    K = mh.Points(RNG.normal(size=(100_000, 3)))
    thetas = RNG.normal(size=(50, 3))
    assert np.allclose(K.reach(thetas), ((K.points - K.center) @ thetas.T).max(axis=0))
    x = RNG.normal(size=(30, 3))
    best = ((x[:, None] - K.points) ** 2).sum(axis=2).argmin(axis=1)
    assert np.array_equal(K.nearest(x), best)
    assert K.vertices() is K.points


@pytest.mark.parametrize(
    "points",
    [
        [],
        [[]],
        np.empty((0, 3)),
        np.empty((3, 0)),
        [1, 2, 3],
        5,
        [[1, 2], [3]],
        [[np.nan, 1]],
        [[np.inf, 1]],
        [["a", "b"]],
        [["1", "2"]],
        [[1j, 2]],
        np.ones((2, 2, 2)),
        None,
        [[None, 1]],
        [[1e200, 0], [0, 1]],
        [[0, 0], [1e-150, 1]],
        [[0, 0], [1e145, 1]],
    ],
)
def test_bad_points_are_refused(points):
    with pytest.raises(mh.InvalidInput):
        mh.Points(points)
