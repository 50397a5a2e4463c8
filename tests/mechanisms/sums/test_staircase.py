"""Stairs on one number: observed sensitivity, plans, releases, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import muhat as mh
from mechanisms.test_sensitivity import observed_over_declared
from muhat.mechanisms.sums.body import Body
from muhat.mechanisms.sums.integer_query import IntegerQuery
from muhat.mechanisms.sums.staircase import geometric_count, staircase
from muhat.noise.least_stairs import least_stairs
from muhat.noise.protection import Protection
from muhat.noise.stairs import Stairs
from muhat.privacy import Neighbors

ONE = np.ones(1)
DOMAINS = {
    "interval": mh.Box([0], [1]),
    "odd interval": mh.Box([-3], [0.1]),
    "far away": mh.Box([1e9], [1e9 + 1]),
    "ball": mh.Ball(radius=0.3, dim=1, center=[2]),
}
PROMISES = [mh.PureDP(epsilon=1.0), mh.ApproxDP(epsilon=0.5, delta=1e-2)]


@pytest.mark.parametrize("promise", PROMISES, ids=repr)
@pytest.mark.parametrize("neighbors", Neighbors)
@pytest.mark.parametrize("name", DOMAINS)
def test_no_neighbour_moves_the_sum_by_more_than_a_step(name, neighbors, promise):
    K = DOMAINS[name]
    bodies = [Body.of(K, 2, ONE, neighbors)]
    if neighbors is Neighbors.ADD_REMOVE and isinstance(K, mh.Box):
        bodies.append(Body.from_origin(K, 2, ONE))
    for body in bodies:
        for contributions in (1, 3):
            recipe = staircase(body, 2, ONE, Protection(promise, neighbors, contributions))
            assert isinstance(recipe.law, Stairs)
            if not body.blocks[0].from_zero:
                assert observed_over_declared(recipe, K, 2000, seed=5) <= 1
            moved = recipe.query.sensitivity(1.0, neighbors, contributions)
            assert moved <= recipe.law.step < moved + 1
            # Planted: one number less a step, or one record more a person.
            with pytest.raises(AssertionError, match="more sensitive"):
                replace(
                    recipe, law=replace(recipe.law, step=recipe.law.step - 1, end=None, last=None)
                )
            with pytest.raises(AssertionError, match="more sensitive"):
                replace(
                    recipe, protection=replace(recipe.protection, contributions=contributions + 1)
                )


def test_wide_steps_are_for_one_row():
    promise = mh.PureDP(epsilon=1.0)
    recipe = staircase(
        Body.of(DOMAINS["interval"], 2, ONE), 2, ONE, Protection(promise, Neighbors.SUBSTITUTE, 1)
    )
    both = Body.of(mh.Box([0, 0], [1, 1]), 2, np.ones(2)).blocks[0].lattice
    law = replace(recipe.law, step=1 << 50)
    with pytest.raises(AssertionError, match="fewer numbers"):
        replace(recipe, law=law, query=IntegerQuery(both, (1, 1), 0))


def test_a_count_has_geometric_noise_of_whole_numbers():
    protection = Protection(mh.PureDP(epsilon=2.0), Neighbors.ADD_REMOVE, 1)
    recipe = geometric_count(protection)
    assert recipe.law.step == recipe.law.inner == 1
    found = [recipe.run([], 100)[0] for _ in range(200)]
    assert all(x.denominator == 1 for x in found)
    plan = mh.plan_count(privacy=protection.promise)
    assert plan.mechanism == "geometric"
    assert plan.expected_error == pytest.approx(1 / (math.sqrt(2) * math.sinh(1)), rel=1e-9)
    release = plan.release(np.zeros((50, 1)))
    lower, upper = release.interval(0.95)
    assert upper - lower == 2 * recipe.law.quantile(0.95, 1) * recipe.law.unit == 2
    assert mh.Release.from_json(release.to_json()).interval(0.95) == (lower, upper)


@pytest.mark.parametrize(("epsilon", "gain"), [(1.0, 0.0207), (2.0, 0.0805), (4.0, 0.279)])
def test_the_gain_over_laplace_noise_is_that_of_the_theory(epsilon, gain):
    plan = mh.plan_mean(domain=mh.Box([0], [1]), n=1000, privacy=mh.PureDP(epsilon))
    assert plan.mechanism == "staircase"
    laplace = dict(plan.alternatives)["laplace"]
    assert 1 - plan.expected_error / laplace == pytest.approx(gain, abs=5e-4)


def test_squares_are_left_out_only_where_that_gains_a_per_cent_and_it_is_said():
    def plan(epsilon, population=None):
        return mh.plan_mean(
            domain=mh.Box([0], [1]), n=1000, privacy=mh.PureDP(epsilon), population=population
        )

    assert plan(0.5).mechanism == plan(2.0, True).mechanism == "laplace"
    assert plan(0.5, False).mechanism == plan(2.0).mechanism == "staircase"
    said = plan(2.0).describe()
    assert "population=True (--population) the error is at most 0.0007071" in said
    assert "population=True" not in plan(0.5).describe()
    assert "population=True" not in plan(2.0, False).describe()


def test_a_share_of_delta_is_used_under_approximate_privacy_alone():
    promise = mh.ApproxDP(epsilon=0.1, delta=1e-2)
    cut = mh.plan_mean(domain=mh.Box([0], [1]), n=99, privacy=promise, mechanism="staircase")
    assert cut.recipe.law.end is not None
    pure = mh.plan_mean(domain=mh.Box([0], [1]), n=99, privacy=mh.PureDP(0.1), population=False)
    assert cut.expected_error < 0.6 * pure.expected_error
    release = cut.release(np.full((99, 1), 0.5))
    lower, upper = release.interval(1 - 1e-15)
    assert (upper - lower)[0] * 99 == pytest.approx(2 * 18.33, rel=1e-3)
    for promise in (mh.ZCDP(rho=0.5), mh.GDP(mu=1.0)):
        law = least_stairs(promise, 1)
        assert law is None or law.end is None


def test_the_release_is_spread_as_it_says():
    """2,000 sums: the mean square within 6 standard errors; Laplace noise would be 20 off."""
    plan = mh.plan_sum(domain=mh.Box([0], [1]), n=10, privacy=mh.PureDP(4.0), mechanism="staircase")
    recipe = plan.recipe
    found = np.array([float(recipe.run([0], 10)[0]) for _ in range(2000)])
    squares = found**2
    spread = squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - plan.expected_error**2) < 6 * spread
    assert 0.125 - squares.mean() > 6 * spread


def test_what_stairs_are_not_for_is_refused_in_words():
    with pytest.raises(mh.InvalidInput, match="single column"):
        mh.plan_mean(domain=mh.Ball(1, 2), n=9, privacy=PROMISES[0], mechanism="staircase")
    with pytest.raises(mh.InvalidInput, match="Laplace"):
        mh.plan_mean(domain=mh.Box([0], [1]), n=9, privacy=mh.PureDP(1e-6), mechanism="staircase")
    assert mh.plan_count(privacy=mh.PureDP(1e-6)).mechanism == "laplace"


@pytest.mark.parametrize(
    "domain",
    [mh.Ellipsoid([[4.0]]), mh.LpBall(p=1, dim=1), mh.SchattenBall(p=1, shape=(1, 1))],
    ids=lambda domain: type(domain).__name__,
)
def test_every_body_of_one_dimension_has_stairs_by_itself(domain):
    plan = mh.plan_mean(domain=domain, privacy=mh.PureDP(epsilon=2.0), n=100)
    assert plan.recipe.name == "staircase"
    assert plan.expected_error < 0.93 * min(error for _, error in plan.alternatives)
    listed = mh.plan_mean(domain=mh.Points([[1.0], [2.0]]), privacy=mh.PureDP(epsilon=2.0), n=100)
    assert listed.recipe.name != "staircase"
