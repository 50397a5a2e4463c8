"""The nearest point of the hull: inside, nearest, and where it is known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh

RNG = np.random.default_rng(30)
DOMAINS = {
    "ball": mh.Ball(radius=2, dim=3, center=[1, 0, 0]),
    "ellipsoid": mh.Ellipsoid([[4, 1, 0], [1, 3, 0], [0, 0, 0.2]]),
    "l1": mh.LpBall(p=1, dim=3, scale=[1, 2, 3]),
    "l3": mh.LpBall(p=3, dim=3),
    "points": mh.Points(RNG.normal(size=(30, 3))),
    "zonotope": mh.Zonotope(RNG.normal(size=(3, 5))),
    "sum": mh.Ball(radius=1, dim=3) + mh.Box([0, 0, 0], [1, 2, 3]),
    "choices": mh.Choices(dim=3, most=2),
    "product": mh.Ball(radius=1, dim=2) * mh.LpBall(p=1, dim=1),
    "moved": np.array([1.0, 2.0, 3.0]) + mh.Simplex(dim=3),
    "flat": mh.Points([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_the_projection_is_in_the_hull_and_nothing_in_it_is_nearer(name):
    K = DOMAINS[name]
    for x in RNG.normal(size=(10, 3)) * 6:
        y = K.nearest_in_hull(x)
        size = K.half_widths.max()
        for theta in RNG.normal(size=(30, 3)):
            assert theta @ y <= K.support(theta) + 1e-6 * size * np.linalg.norm(theta)
        # Optimality: no point of K lies farther in the direction of x − y.
        assert K.support(x - y) <= (x - y) @ y + 1e-5 * size**2 + 1e-5 * size * np.linalg.norm(
            x - y
        )


@pytest.mark.parametrize("name", DOMAINS)
def test_a_point_of_the_hull_stays(name):
    K = DOMAINS[name]
    corners = np.array([K.extreme_point(theta) for theta in RNG.normal(size=(5, 3))])
    inside = corners.mean(axis=0)
    assert np.allclose(K.nearest_in_hull(inside), inside, atol=1e-6 * K.half_widths.max())
