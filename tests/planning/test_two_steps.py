"""Means of recorded values in two steps: shares of one ε, what one record moves, errors, intervals.

Draws have fixed entropy. A mean square of m draws of noise with these tails has a relative standard
error below √(9/m); 5.5 of them are allowed, a false-alarm rate below 1e-7.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.domains.lattice import BoxLattice
from muhat.mechanisms.sums.integer_query import IntegerQuery
from muhat.noise.kinds import NoiseKind, Strength
from muhat.planning.plan import Plan
from muhat.planning.two_steps import TwoSteps
from muhat.privacy import Neighbors, as_typed

BOX = mh.Box([0.0], [100.0])
PURE = mh.PureDP(epsilon=1.0)


def steps(n: int = 10_000, domain: mh.Box = BOX, promise=PURE, **options) -> TwoSteps:
    plan = mh.plan_mean(domain=domain, privacy=promise, n=n, missing="drop", **options)
    (part,) = plan.parts
    assert isinstance(part.mechanism, TwoSteps)
    return part.mechanism


@pytest.mark.parametrize("promise", [PURE, mh.ApproxDP(epsilon=0.5, delta=1e-6)], ids=str)
def test_shares_of_epsilon_add_up_to_it_and_no_others_are_kept(promise):
    planned = steps(promise=promise)
    squares = [part.protection.promise.squared for part in (planned.recipe, planned.second)]
    whole = Strength.of(promise, NoiseKind.PURE).squared
    assert squares == [whole * planned.share**2, whole * (1 - planned.share) ** 2]
    looser = steps(promise=replace(promise, epsilon=promise.epsilon * 1.0001))
    for planted in (
        {"second": looser.second},
        {"recipe": looser.recipe},
        {"share": planned.share / 2},
        {"second": steps(n=10**5, promise=promise).second},
    ):
        with pytest.raises(mh.InvalidInput, match="made for"):
            replace(planned, **planted)


def test_the_second_step_is_cut_at_all_of_delta_where_that_gains():
    promise = mh.ApproxDP(epsilon=0.1, delta=1e-3)
    planned = steps(900, promise=promise, mechanism="staircase")
    law, rest = planned.second.law, planned.second.protection.promise
    assert law.end is not None
    assert rest.delta == promise.delta
    small = planned.recipe.protection.promise.squared
    whole = Fraction("0.1")
    assert small == (whole * planned.share) ** 2
    left = whole * (1 - planned.share)
    assert left * (1 - Fraction(1, 1 << 50)) < as_typed(rest.epsilon) <= left
    pure = steps(900, promise=mh.PureDP(epsilon=0.1), mechanism="staircase")
    assert planned.error_if(900) < 0.96 * pure.error_if(900)
    small_delta = mh.ApproxDP(epsilon=0.1, delta=1e-9)
    assert steps(900, promise=small_delta, mechanism="staircase").second.law.end is None
    # Planted: stairs that are cut for all of ε, or for more of δ.
    for more in (promise, replace(rest, delta=2e-3)):
        looser = replace(planned.second.protection, promise=more)
        with pytest.raises(mh.InvalidInput, match="made for"):
            replace(planned, second=replace(planned.second, protection=looser))


def test_whatever_a_missing_value_counts_as_one_record_moves_the_sum_by_the_width_at_most():
    box = BoxLattice((0,), (0,), (-3,), (5,))
    query = IntegerQuery(box, (1,), 0)
    allowed = query.sensitivity(1.0, Neighbors.SUBSTITUTE, 1)
    for start in range(-3, 6):
        adds = {None: 0, **{q: q - start for q in range(-3, 6)}}
        assert max(a - b for a in adds.values() for b in adds.values()) == allowed == 8
    beyond = {None: 0, **{q: q - 6 for q in range(-3, 6)}}
    assert max(a - b for a in beyond.values() for b in beyond.values()) > allowed


def test_both_steps_must_sum_the_same_integers():
    other = steps(domain=mh.Box([0.0], [50.0]))
    with pytest.raises(AssertionError, match="same integers"):
        replace(steps(), second=other.second)


def test_errors_are_those_that_are_measured_and_intervals_hold():
    n, draws, place = 1000, 800, 95.0
    planned = steps(n, mechanism="staircase")
    (number,) = planned.second.query.lattice.grid
    total = n * int((place - 50) / float(number))
    found = [planned.estimate((total, 0, n), n) for _ in range(draws)]
    square = np.mean([(each.value[0] - place) ** 2 for each in found])
    offset = np.array([place - 50])
    expected = planned.standard_error_at(n, offset)[0] ** 2
    # The expansion itself is good to a few per cent here.
    assert abs(square / expected - 1) < 5.5 * math.sqrt(9 / draws) + 0.05
    noises = [each.noise.interval(0.9, joint=False) for each in found[:300]]
    missed = np.mean([not low[0] <= place - 50 <= high[0] for low, high in noises])
    assert missed < 0.1 + 5.5 * math.sqrt(0.1 * 0.9 / 300)


def test_half_of_the_values_may_be_missing():
    planned = steps(4000)
    data = np.full((4000, 1), 70.0)
    data[::2] = np.nan
    release = Plan.of(planned).release(data)
    assert abs(release.value[0] - 70) < 20 * release.standard_error[0] < 2
    assert abs(release.recorded.value[0] - 2000) < 20 * release.recorded.standard_error[0]
    read = mh.Release.from_json(release.to_json())
    assert read.interval() == release.interval()
    assert read.interval(target="population") == release.interval(target="population")


def test_nothing_recorded_has_no_value():
    release = Plan.of(steps(4000)).release(np.full((4000, 1), np.nan))
    assert np.isnan(release.value[0])


def test_rows_that_are_counted_decide_which_mechanism_it_is():
    data = np.full((20_000, 1), 70.0)
    data[::9] = np.nan
    many = mh.mean(data, domain=BOX, privacy=PURE, missing="drop")
    few = mh.mean(data[:100], domain=BOX, privacy=PURE, missing="drop")
    some = mh.mean(data[:1000], domain=BOX, privacy=PURE, missing="drop")
    assert many.mechanism == "two-step staircase"
    # Two steps gain less than ten per cent there, and blur the number of recorded values.
    assert some.mechanism == "ratio"
    plan = mh.plan_mean(domain=BOX, n=1000, privacy=PURE, missing="drop")
    assert "The two-step staircase would have more noise on the number" in plan.describe()
    assert some.recorded.standard_error < 0.1 * many.recorded.standard_error
    assert few.mechanism == "ratio"


def test_a_mechanism_can_be_asked_for():
    plan = mh.plan_mean(domain=BOX, privacy=PURE, n=100, missing="drop", mechanism="staircase")
    assert isinstance(plan.parts[0].mechanism, TwoSteps)
    plan = mh.plan_mean(domain=BOX, privacy=PURE, n=10_000, missing="drop", mechanism="laplace")
    assert plan.parts[0].mechanism.name == "ratio"


def test_with_many_records_the_error_is_nearly_that_of_complete_ones():
    for dim, most in ((1, 1.04), (3, 1.06)):
        domain = mh.Box([0.0] * dim, [1.0] * dim)
        complete = mh.plan_mean(domain=domain, privacy=PURE, n=10**6, missing="none")
        planned = steps(10**6, domain)
        assert 1 < planned.error_if(10**6) / complete.expected_error < most
    plan = mh.plan_mean(domain=BOX, privacy=PURE, n=10**6, missing="drop")
    assert plan.certificate.ratio_any < 1.05
    assert dict(plan.alternatives)["laplace ratio"] > 1.35 * plan.certificate.error
