"""Means of populations: the largest spread on a domain, errors, and what nobody beats."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import muhat as mh
from muhat.bounds.population import largest_spread, population_error
from muhat.privacy import GDP, ZCDP, ApproxDP

TRIANGLE = mh.Points([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]])

SPREADS = {
    "ball": (mh.Ball(radius=2, dim=7), 2.0),
    "box": (mh.Box([0, 0, 1], [1, 2, 4]), math.sqrt(1 + 4 + 9) / 2),
    "simplex": (mh.Simplex(dim=5), math.sqrt(1 - 1 / 5)),
    "right triangle": (TRIANGLE, 2.5),
    "sharp triangle": (mh.Points([[0.0, 0.0], [2.0, 0.0], [1.0, math.sqrt(3)]]), 2 / math.sqrt(3)),
    "one point": (mh.Points([[3.0, 4.0]]), 0.0),
    "long ellipsoid": (mh.Ellipsoid(np.array([[2.0, 1.0], [1.0, 1.0]])), (1 + math.sqrt(5)) / 2),
    "cube of another norm": (mh.LpBall(p=4, radius=1, dim=16), 2.0),
    "product": (mh.Box([0], [1]) * mh.Simplex(dim=3), math.sqrt(1 / 4 + 2 / 3)),
    "moved": (mh.Ball(radius=1, dim=2) + np.array([1e6, 0]), 1.0),
}


@pytest.mark.parametrize("name", SPREADS)
def test_the_largest_spread_is_the_radius_of_the_smallest_ball(name: str) -> None:
    domain, radius = SPREADS[name]
    floor, value = largest_spread(domain)
    assert floor <= radius <= value
    assert value - floor <= 3e-9 * value


def test_without_corners_the_spread_is_enclosed() -> None:
    # The most of one thing in three, if two of six are chosen: 6·(1/3)·(2/3).
    floor, value = largest_spread(mh.Choices(6, 2))
    assert floor == pytest.approx(math.sqrt(4 / 3), rel=1e-8)
    assert value < 1.1 * floor


def test_no_drawn_distribution_spreads_farther() -> None:
    rng = np.random.default_rng(5)
    points = rng.normal(size=(40, 3))
    floor, value = largest_spread(mh.Points(points))
    for weights in rng.dirichlet(np.full(40, 0.1), 300):
        center = weights @ points
        assert weights @ ((points - center) ** 2).sum(axis=1) <= value**2
    assert value - floor <= 3e-9 * value


def test_a_shuffled_mechanism_that_is_unbiased_for_populations_is_so_for_datasets() -> None:
    """n = 3 records of {0, 1, 5}: whatever polynomials of the weights vanish, g does on average.

    M adds something to the mean that depends on the order alone and has expectation 0 for every P.
    """
    values, n = (0.0, 1.0, 5.0), 3
    rng = np.random.default_rng(2)
    rows = list(itertools.product(range(3), repeat=n))
    classes: dict[tuple[int, ...], list[int]] = {}
    for index, row in enumerate(rows):
        classes.setdefault(tuple(sorted(row)), []).append(index)
    drift = rng.normal(size=len(rows))
    for members in classes.values():
        drift[members] -= drift[members].mean()
    g = np.array([np.mean([values[i] for i in row]) for row in rows]) + drift
    for weights in rng.dirichlet(np.ones(3), 50):
        chances = np.array([math.prod(weights[i] for i in row) for row in rows])
        assert chances @ g == pytest.approx(weights @ values)
    assert np.abs(drift).max() > 0.1
    for row, members in classes.items():
        assert g[members].mean() == pytest.approx(np.mean([values[i] for i in row]))


def test_the_error_against_a_population_is_that_of_noise_and_draw() -> None:
    """On the worst population of a triangle, half at either end of its longest side.

    The mean of 4000 squared errors of some 0.3 is off by 5.5 standard errors of 5 % rarely.
    """
    n, plan = 50, mh.plan_mean(domain=TRIANGLE, n=50, privacy=GDP(mu=1.0))
    bound = population_error(TRIANGLE, n=n, noise=plan.expected_error)
    ends, rng = np.array([[4.0, 0.0], [0.0, 3.0]]), np.random.default_rng(3)
    noise = rng.multivariate_normal(np.zeros(2), plan.covariance, size=4000)
    draws = ends[rng.integers(0, 2, (4000, n))].mean(axis=1) - ends.mean(axis=0)
    square = ((noise + draws) ** 2).sum(axis=1)
    assert abs(square.mean() - bound**2) < 5.5 * square.std() / math.sqrt(4000)
    # Noise alone would be noticed.
    assert abs(square.mean() - plan.expected_error**2) > 20 * square.std() / math.sqrt(4000)


@pytest.mark.parametrize("privacy", [ZCDP(rho=0.1), GDP(mu=1.0), ApproxDP(epsilon=1.0, delta=1e-6)])
@pytest.mark.parametrize("domain", [mh.Ball(1.0, dim=5), mh.Simplex(dim=4), TRIANGLE])
def test_no_bound_for_populations_is_above_what_noise_attains(domain, privacy) -> None:
    found = mh.bounds.nikolov_tang(domain, n=500, privacy=privacy)
    assert found.population == pytest.approx(
        math.hypot(found.difference, largest_spread(domain)[1] / math.sqrt(500))
    )
    assert found.difference < found.population
    first, worst = found.population_bounds
    assert worst.value <= found.population
    assert worst.value >= largest_spread(domain)[0] / math.sqrt(500) * (1 - 1e-9)
    # What holds for every distribution holds where all records are equal: noise alone.
    assert first.value <= found.difference
    if privacy.spends_delta:
        near = next(bound for bound in found if bound.datasets == "near")
        assert first.datasets == "nearby"
        assert 0.9 * near.value < first.value < near.value
    else:
        every = next(bound for bound in found if bound.datasets == "every")
        assert (first.datasets, first.value) == ("population", every.value)
        assert worst.value == pytest.approx(
            math.hypot(every.value, largest_spread(domain)[0] / math.sqrt(500))
        )
    text = found.describe()
    assert "against the mean of a population" in text
    assert "some distribution" in text
    assert "for some distribution" in worst.sentence()
    assert all(bound.source == "derived" for bound in found.population_bounds)
