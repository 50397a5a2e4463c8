"""Stairs on a sum and on the number of its values: what one record moves, the promise, plans."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import muhat as mh
from muhat.domains.lattice import BoxLattice, ColumnsLattice
from muhat.mechanisms.sums.counted_sum import CountedSum, counted_sum
from muhat.noise.least_stairs import least_stairs
from muhat.noise.protection import Protection
from muhat.noise.stairs import Stairs
from muhat.privacy import Neighbors

LOWER, UPPER = -3, 5
LATTICE = ColumnsLattice(BoxLattice((0,), (0,), (LOWER,), (UPPER,), (0,)), counts=True)
PROMISES = [mh.PureDP(epsilon=2.0), mh.ApproxDP(epsilon=1.0, delta=0.02)]
X = {"x": np.where(np.arange(400) % 4, 70.0, np.nan)}


def made(promise, neighbors: Neighbors, contributions: int = 1) -> CountedSum:
    from_zero = neighbors is Neighbors.ADD_REMOVE
    protection = Protection(promise, neighbors, contributions)
    found = counted_sum("staircase", LATTICE, protection, from_zero=from_zero)
    assert isinstance(found, CountedSum)
    return found


def moves(neighbors: Neighbors) -> set[tuple[int, int]]:
    """What one record does to (sum, number), whatever it was and whatever it becomes."""
    states = [(0, 0), *((q, 1) for q in range(LOWER, UPPER + 1))]
    if neighbors is Neighbors.ADD_REMOVE:
        return {(sign * q, sign * k) for q, k in states for sign in (-1, 1)}
    return {(a - b, k - j) for a, k in states for b, j in states}


def chances(law: Stairs, reach: int) -> np.ndarray:
    """P(z) for |z| ≤ reach."""
    tail = law.beyond(np.arange(reach + 2, dtype=float))
    sizes = -np.diff(tail) / np.where(np.arange(reach + 1) == 0, 1, 2)
    return np.concatenate([sizes[:0:-1], sizes])


def loss(law: Stairs, number: Stairs, promise, neighbors: Neighbors) -> float:
    """The largest Σ max(0, P(z)Q(k) − e^ε·P(z + d)Q(k + e)) over all moves of one record."""
    reach, far = 150, 400
    p, q = chances(law, reach), chances(number, far)
    both = np.pad(np.outer(p, q), ((8, 8), (1, 1)))
    inside = np.outer(p, q)
    epsilon = promise.epsilon
    found = 0.0
    for d, e in moves(neighbors):
        moved = both[8 + d : 8 + d + len(p), 1 + e : 1 + e + len(q)]
        # At the ends of the table what is one stair further is not there: left out.
        lost = np.maximum(0, inside - math.exp(epsilon) * (1 + 1e-12) * moved)
        found = max(found, float(lost[16:-16, 1:-1].sum()))
    return found


@pytest.mark.parametrize("neighbors", Neighbors)
@pytest.mark.parametrize("promise", PROMISES, ids=repr)
def test_the_promise_holds_for_every_record_and_a_stronger_one_does_not(promise, neighbors):
    recipe = made(promise, neighbors)
    delta = promise.point[1]
    found = loss(recipe.law, recipe.number, promise, neighbors)
    assert found <= delta + 1e-12
    assert (recipe.law.end is not None) == (delta > 0)
    planted = least_stairs(promise, recipe.law.step)
    assert loss(planted, recipe.number, promise, neighbors) > delta + 1e-4


@pytest.mark.parametrize("neighbors", Neighbors)
@pytest.mark.parametrize("promise", PROMISES, ids=repr)
def test_noise_that_is_too_small_is_refused(promise, neighbors):
    recipe = made(promise, neighbors)
    far = max(abs(d) for d, _ in moves(neighbors))
    assert recipe.law.step == far == (8 if neighbors is Neighbors.SUBSTITUTE else 5)
    assert made(promise, neighbors, 3).law.step == 3 * far
    looser = made(replace(promise, epsilon=promise.epsilon * 1.001), neighbors)
    for planted in (
        {"law": looser.law},
        {"number": looser.number},
        {"law": Stairs(far - 1, 1, recipe.law.ratio)},
        {"protection": replace(recipe.protection, contributions=2)},
    ):
        with pytest.raises(AssertionError, match="more sensitive"):
            replace(recipe, **planted)
    other = next(each for each in Neighbors if each is not neighbors)
    with pytest.raises(AssertionError, match="come and go"):
        replace(recipe, protection=replace(recipe.protection, neighbors=other))
    with pytest.raises(AssertionError, match="as they are"):
        replace(recipe, query=replace(recipe.query, sums=(2,)))


@pytest.mark.parametrize(("epsilon", "gain"), [(1.0, 0.019), (2.0, 0.073), (4.0, 0.257)])
def test_sums_of_recorded_values_err_less_than_with_laplace_noise(epsilon, gain):
    plan = mh.plan_sum(domain={"x": (0, 100)}, n=400, privacy=mh.PureDP(epsilon), missing="drop")
    assert isinstance(plan.recipe, CountedSum)
    assert 1 - plan.expected_error / dict(plan.alternatives)["laplace"] == pytest.approx(
        gain, abs=1e-3
    )
    assert "5 % of ε for the number of recorded values" in plan.describe()
    release = plan.release(X)
    assert abs(release.value[0] - 21_000) < 30 * release.standard_error[0]
    assert release.standard_error[0] == pytest.approx(100 * plan.expected_error)
    number = least_stairs(mh.PureDP(epsilon / 20), 1)
    assert release.recorded.standard_error[0] ** 2 == pytest.approx(float(number.second_moment))
    assert release.recorded.value[0] == round(release.recorded.value[0])
    assert mh.Release.from_json(release.to_json()).interval() == release.interval()


def test_squares_that_are_asked_for_keep_laplace_noise_and_stairs_can_be_asked_for():
    def plan(epsilon, **options):
        privacy = mh.PureDP(epsilon)
        return mh.plan_sum(
            domain={"x": (0, 100)}, n=400, privacy=privacy, missing="drop", **options
        )

    assert plan(2.0, population=True).mechanism == plan(0.5).mechanism == "laplace"
    assert "population=True (--population) the error is at most" in plan(2.0).describe()
    assert plan(0.5, mechanism="staircase").mechanism == "staircase"
    assert plan(0.5, population=False).mechanism == "staircase"
    with pytest.raises(mh.InvalidInput, match="complete records"):
        plan(0.01, mechanism="staircase")


def test_draws_are_spread_as_they_say():
    """4,000 draws: mean squares within 6 standard errors, a false-alarm rate below 1e-8.

    Planted: Laplace noise on the sum, and a number that has all of ε.
    """
    promise = mh.PureDP(epsilon=6.0)
    recipe = made(promise, Neighbors.SUBSTITUTE)
    drawn = np.array([recipe.run((0, 0), 10) for _ in range(4000)], float)
    planted = 2 * (8 / (0.95 * 6)) ** 2, float(least_stairs(promise, 1).second_moment)
    laws = recipe.law, recipe.number
    for noise, law, other in zip(drawn.T, laws, planted, strict=True):
        spread = (noise**2).std() / math.sqrt(len(noise))
        assert abs((noise**2).mean() - float(law.second_moment)) < 6 * spread
        assert abs((noise**2).mean() - other) > 12 * spread


@pytest.mark.parametrize("bounds", [(0, 100), (20, 100), (-100, 0)])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_where_values_come_and_go_a_sum_has_the_noise_it_has_alone_and_its_number_rides(
    bounds, epsilon
):
    def plan(missing):
        return mh.plan_sum(
            domain={"x": bounds}, n=None, privacy=mh.PureDP(epsilon), missing=missing
        )

    both, alone = plan("drop"), plan("none")
    assert (both.mechanism, alone.mechanism) == ("pair", "staircase")
    assert both.expected_error == pytest.approx(alone.expected_error, rel=1e-3)
    assert "number of its values together" in both.describe()
    values = np.where(np.arange(400) % 4, 50.0 * (1 if bounds[1] else -1), np.nan)
    release = both.release({"x": values})
    exact = float(np.nansum(values))
    assert abs(release.value[0] - exact) < 30 * release.standard_error[0]
    assert release.recorded.standard_error[0] < 2.1 / epsilon
    assert abs(release.recorded.value[0] - 300) < 40 * release.recorded.standard_error[0]
    assert mh.Release.from_json(release.to_json()).interval() == release.interval()


def test_values_on_both_sides_of_zero_have_noise_of_their_own():
    plan = mh.plan_sum(domain={"x": (-50, 50)}, n=None, privacy=mh.PureDP(1.0), missing="drop")
    assert isinstance(plan.recipe, CountedSum)
    assert dict(plan.alternatives)["pair"] > 1.3 * plan.expected_error


def test_a_sum_from_zero_is_spread_as_its_law_says_and_intervals_hold():
    """3,000 draws: 6 standard errors of the mean square, 5.5 of misses; rates below 1e-7.

    Planted: the noise of the sum from the middle of the bounds, without that of the number.
    """
    plan = mh.plan_sum(domain={"x": (0, 100)}, n=None, privacy=mh.PureDP(2.0), missing="drop")
    recipe, spread = plan.recipe, plan.parts[0].mechanism.spread
    drawn = np.array([recipe.run((0, 0), 0) for _ in range(3000)], float)
    noise = drawn[:, 0] + 50 * drawn[:, 1]
    error = (noise**2).std() / math.sqrt(len(noise))
    assert abs((noise**2).mean() - spread.standard_error[0] ** 2) < 6 * error
    assert (noise**2).mean() - recipe.sum_spread.standard_error[0] ** 2 > 6 * error
    reach = spread.half_widths(0.9, joint=False)[0]
    missed = float(np.mean(np.abs(noise) > reach))
    assert abs(missed - 0.1) < 5.5 * math.sqrt(0.1 * 0.9 / len(noise))
