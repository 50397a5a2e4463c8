"""Pure noise on the mean of one column after steps with normal noise: what adds up, and errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import muhat as mh
from muhat.data import open_source
from muhat.mechanisms.learning.last_radius import EDGES
from muhat.mechanisms.learning.pure_mean import PureMean
from muhat.mechanisms.learning.recentring import recentred_mean
from muhat.mechanisms.learning.recentring_schedule import LEAST_LEARNING, Schedule
from muhat.mechanisms.learning.recorded_recentring import RecordedRecentring
from muhat.mechanisms.learning.sharing import Sharing
from muhat.mechanisms.learning.steps import SourceReader, Step, Transcript
from muhat.noise.kinds import NoiseKind
from muhat.noise.protection import Protection
from muhat.noise.stairs import Stairs
from muhat.privacy import Neighbors, as_typed

PROMISES = [
    mh.ApproxDP(epsilon=epsilon, delta=delta)
    for epsilon, delta in [(0.5, 1e-6), (1.0, 1e-6), (1.0, 1e-9), (2.0, 1e-3), (8.0, 1e-6)]
]
ONE = mh.ApproxDP(epsilon=1.0, delta=1e-6)


def schedule_for(promise: Any, n: int = 5000, dim: int = 1, contributions: int = 1) -> Schedule:
    protection = Protection(promise, Neighbors.SUBSTITUTE, contributions)
    schedule = Schedule(1e4, np.ones(dim), n, protection, NoiseKind.NORMAL)
    return replace(schedule, pure_mean=schedule.pure_mean_of(protection))


def recorded_for(promise: Any, n: int = 5000) -> RecordedRecentring:
    protection = Protection(promise, Neighbors.SUBSTITUTE, 1)
    return RecordedRecentring(Sharing(1e4, np.ones(1), n, protection, NoiseKind.NORMAL))


class Shrinking:
    """A reader in whose counts every new centre is far better than the last."""

    rows = 1000

    def __init__(self, step: int) -> None:
        self.cell, self.step = EDGES - 1, step

    def distance_counts(self, center: np.ndarray, edges: np.ndarray) -> list[int]:
        counts = [0] * len(edges)
        counts[min(max(self.cell, 0), len(edges) - 1)] = 1000
        self.cell -= self.step
        return counts

    def line_counts(self, center: float, edges: np.ndarray) -> list[int]:
        return self.distance_counts(np.array([center]), edges)

    def excess(self, center: np.ndarray, inner: float, lattice: Any) -> Sequence[int]:
        return [0] * lattice.dim

    def sums(self, lattice: Any) -> Sequence[int]:
        return [0] * lattice.dim

    def filling(self, values: np.ndarray) -> Shrinking:
        return self


@pytest.mark.parametrize("promise", PROMISES, ids=repr)
def test_both_parts_of_epsilon_add_up_and_the_first_has_all_of_delta(promise):
    for pure, spent in (
        (schedule_for(promise).pure_mean, Fraction(0)),
        (recorded_for(promise).pure_mean, recorded_for(promise).number_share),
    ):
        assert pure is not None
        assert pure.spent == spent
        epsilon = as_typed(promise.epsilon)
        rest = mh.ApproxDP(float(epsilon * (1 - pure.share)), promise.delta)
        assert pure.protection.promise.squared == (pure.share * epsilon) ** 2
        whole = pure.whole.strength_squared(NoiseKind.NORMAL)
        allowed = rest.normal_mu_squared * (1 + Fraction(1, 10**12))
        # What the chain spends is a part of what is left after the first count.
        assert whole * (spent + (1 - spent) * pure.limit) <= allowed
        assert LEAST_LEARNING <= pure.limit < 1


@pytest.mark.parametrize("step", [45, 480])
@pytest.mark.parametrize("promise", PROMISES, ids=repr)
def test_no_path_takes_more_than_its_limit_before_the_mean(promise, step):
    for schedule, counted in (
        (schedule_for(promise, 1000), False),
        (recorded_for(promise, 5000).schedule(1000), True),
        # Far fewer records than were planned with have dearer searches, which are capped.
        (recorded_for(promise, 10**6).schedule(400), True),
    ):
        if schedule.pure_mean is None or schedule.is_hopeless:
            continue
        found = recentred_mean(schedule, Shrinking(step), counted=counted)
        *learning, mean = found.steps
        assert mean.name == "mean"
        assert sum(one.share for one in learning) <= schedule.limit
        assert sum(one.share for one in found.steps) == 1


def test_a_step_before_the_mean_may_not_take_what_is_the_means():
    transcript = Transcript([Step("curve", Fraction(1, 5), 1.0)], Fraction(1, 4))
    transcript.charge(Fraction(1, 20))
    transcript.charge(Fraction(4, 5), last=True)
    for share, last in ((Fraction(1, 19), False), (Fraction(81, 100), True)):
        with pytest.raises(AssertionError, match="exceed"):
            transcript.charge(share, last=last)


def test_it_is_for_the_promise_of_the_chain_and_for_a_line_alone():
    schedule = schedule_for(ONE)
    other = schedule_for(mh.ApproxDP(epsilon=1.1, delta=1e-6)).pure_mean
    with pytest.raises(AssertionError, match="on a line"):
        replace(schedule, pure_mean=other)
    with pytest.raises(AssertionError, match="on a line"):
        replace(schedule, pure_mean=replace(schedule.pure_mean, spent=Fraction(1, 100)))
    with pytest.raises(AssertionError, match="on a line"):
        replace(schedule_for(ONE, dim=2), pure_mean=schedule.pure_mean)
    for promise in (mh.ZCDP(rho=0.5), mh.GDP(mu=1.0)):
        assert schedule_for(promise).pure_mean is None
        assert PureMean.leaving(schedule_for(promise).protection, Fraction(0)) is None
    assert schedule_for(ONE, dim=2).pure_mean is None
    # Of too few records learning takes nearly all.
    assert schedule_for(ONE, 300).pure_mean is None


def test_people_with_several_records_have_noise_for_all_of_them():
    one, three = schedule_for(ONE, 10**5), schedule_for(ONE, 10**5, contributions=3)
    assert one.pure_mean.share == three.pure_mean.share
    assert three.pure_mean.deviation == pytest.approx(3 * one.pure_mean.deviation, rel=1e-9)
    for schedule in (one, three):
        ball = mh.Ball(2.0, 1)
        law = schedule.last_recipe(ball, Fraction(1, 2)).law
        assert isinstance(law, Stairs)
        error = schedule.last_recipe(ball, Fraction(1, 2)).sum_spread.standard_error[0]
        assert error == pytest.approx(4 * schedule.pure_mean.deviation, rel=1e-6)


@pytest.mark.parametrize(("n", "most"), [(2000, 0.63), (20_000, 0.6)])
def test_the_noise_of_the_mean_is_about_half_of_normal_noise(n, most):
    plan = mh.plan_mean(domain=mh.Reals(1, 1e4), n=n, privacy=ONE)
    (part,) = plan.parts
    chain = part.mechanism.method.schedule
    normal = replace(chain, pure_mean=None)
    before = normal.noise(1.0, float(normal.likely_final_share))
    assert plan.error_at(radius=1.0) < most * before
    assert "of ε on the mean" in plan.describe()
    assert plan.least_n == normal.least_n


@pytest.mark.slow
def test_errors_are_those_that_are_measured_and_intervals_hold():
    """500 releases: 5.5 standard errors of a mean square whose kurtosis is below 6; and of misses.

    The false-alarm rate is below 1e-7, also of what is planted: the deviation of normal noise, and
    intervals of half the length, which a third of the means miss (10^(-1/2) with Laplace noise).
    """
    n, trials = 3000, 500
    rows = np.random.default_rng(7).uniform(20, 60, (n, 1))
    schedule = schedule_for(ONE, n)
    source = open_source(rows, None, 1)
    errors, noise, missed, short = [], [], 0, 0
    for _ in range(trials):
        found = recentred_mean(schedule, SourceReader(source, schedule))
        ball = found.ball
        inside = np.clip(rows, ball.center - ball.radius, ball.center + ball.radius)
        off = abs(float(found.value[0] - inside.mean()))
        half = float(found.noise.half_widths(0.9, joint=False)[0])
        errors.append(off / found.noise.standard_error[0])
        noise.append(found.noise.standard_error[0])
        missed, short = missed + (off > half), short + (off > half / 2)
    square = np.mean(np.square(errors))
    assert abs(square - 1) < 5.5 * math.sqrt(5 / trials)
    normal = replace(schedule, pure_mean=None)
    beside = normal.mean_noise(float(normal.likely_final_share)) / schedule.pure_mean.deviation
    assert beside**2 - square > 5.5 * math.sqrt(5 / trials)
    allowed = 0.1 + 5.5 * math.sqrt(0.1 * 0.9 / trials)
    assert missed / trials < allowed < short / trials


@pytest.mark.parametrize("promise", PROMISES, ids=repr)
def test_the_error_of_a_mean_that_is_divided_by_a_number_is_that_of_laplace_noise(promise):
    method = recorded_for(promise)
    chain = method.schedule(5000)
    recipe = chain.recorded_in(mh.Ball(2.0, 1), Fraction(1, 2))
    error = recipe.sum_spread.standard_error[0]
    assert error == pytest.approx(4 * method.pure_mean.deviation, rel=1e-6)


def test_missing_values_are_left_out_as_before():
    rows = np.random.default_rng(3).normal(50, 10, (5000, 1))
    rows[::4] = np.nan
    plan = mh.plan_mean(domain=mh.Reals(1, 1e4), n=5000, privacy=ONE, missing="drop")
    release = plan.release(rows)
    assert abs(float(release) - 50) < 3
    assert abs(release.recorded.value[0] - 3750) < 20 * release.recorded.standard_error[0]
    lower, upper = release.interval()
    assert 0 < (upper - lower)[0] < 2
    read = mh.Release.from_json(release.to_json())
    assert read.interval() == release.interval()
