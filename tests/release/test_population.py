"""Intervals for the population: how often they hold, how long they are, where they are refused.

Fixed distributions, real releases. A count of misses has the binomial law; what is compared with
it has a false-alarm rate of at most 1e-6 for all cells of a test together.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import binom

import muhat as mh
from muhat.release.population import Moments

SHAPES = {
    "uniform": (lambda rng, n: rng.random(n), 0.5),
    "normal": (lambda rng, n: np.clip(rng.normal(0.5, 0.15, n), 0, 1), 0.5),
    "95 % zeros": (lambda rng, n: np.where(rng.random(n) < 0.95, 0, rng.random(n)), 0.025),
    "rare": (lambda rng, n: (rng.random(n) < 0.02) * 1.0, 0.02),
}
WAYS = {
    "n public": {"missing": "none"},
    "values missing": {"missing": "drop"},
    "n secret": {"missing": "drop", "n": None},
}


def held(shape, way, promise, n, runs, **options):
    """In how many of the releases the interval holds the mean of the distribution."""
    draw, mean = SHAPES[shape]
    rng = np.random.default_rng(7)
    arguments = {"n": n, **WAYS[way]}
    plan = mh.plan_mean(domain={"a": (0, 1)}, privacy=promise, **arguments)
    count = 0
    for _ in range(runs):
        data = draw(rng, n)
        if way != "n public":
            data[::4] = np.nan
        lower, upper = plan.release({"a": data}).interval(target="population", **options)
        count += bool(lower[0] <= mean <= upper[0])
    return count


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rho", [0.005, 0.5])
@pytest.mark.parametrize("n", [100, 2000])
def test_the_population_is_held_about_as_often_as_is_said(way, shape, rho, n):
    """Nominally 95 %; not below 92 %, so at least 335 of 400 at 1e-6/48 a cell."""
    assert binom.cdf(334, 400, 0.92) < 1e-6 / 48
    assert held(shape, way, mh.ZCDP(rho=rho), n, 400) >= 335


@pytest.mark.parametrize("promise", [mh.PureDP(epsilon=1.0), mh.GDP(mu=1.0)], ids=["pure", "gdp"])
@pytest.mark.parametrize("way", WAYS)
def test_laplace_noise_and_noise_of_the_cube_are_allowed_for_too(way, promise):
    """100 releases at 95 %: 75 or more, but for one time in 10^10."""
    assert held("uniform", way, promise, 400, 100) >= 75


@pytest.mark.parametrize("way", WAYS)
def test_noise_alone_would_hold_it_seldom_and_is_called_so(way):
    """The planted error: intervals for the records, at n = 2,000, hold 2 of 10 at most."""
    draw, mean = SHAPES["uniform"]
    rng, arguments = np.random.default_rng(3), {"n": 2000, **WAYS[way]}
    plan = mh.plan_mean(domain={"a": (0, 1)}, privacy=mh.ZCDP(rho=0.5), **arguments)
    ends = [plan.release({"a": draw(rng, 2000)}).interval() for _ in range(100)]
    assert sum(low[0] <= mean <= high[0] for low, high in ends) < 50


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", ["uniform", "rare"])
def test_guaranteed_intervals_hold_and_are_longer(way, shape):
    assert held(shape, way, mh.ZCDP(rho=0.5), 300, 60, guaranteed=True) >= 58
    draw, _ = SHAPES[shape]
    arguments = {"n": 300, **WAYS[way]}
    release = mh.plan_mean(domain={"a": (0, 1)}, privacy=mh.ZCDP(rho=0.5), **arguments).release(
        {"a": draw(np.random.default_rng(1), 300)}
    )
    lengths = [
        float(np.subtract(*release.interval(target="population", guaranteed=sure)[::-1])[0])
        for sure in (False, True)
    ]
    assert lengths[0] < lengths[1] < 8 * lengths[0]


def _sphere(rng, n):
    points = rng.normal(size=(n, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def _rare(rng, n):
    return np.outer(rng.random(n) < 0.05, [1.0, 0, 0])


BALLS = {
    "small": (lambda rng, n: rng.normal(0.2, 0.1, (n, 3)).clip(-0.1, 0.5), 0.2),
    "sphere": (_sphere, 0.0),
    "rare": (_rare, 0.05),
}
BALL_WAYS = {
    "n public": (mh.ZCDP(rho=0.5), {}),
    "n secret": (mh.ZCDP(rho=0.5), {"n": None}),
    "n secret, each column": (mh.ZCDP(rho=0.5), {"n": None, "population": True}),
    "pure": (mh.PureDP(epsilon=1.0), {"population": True}),
    "pure, n secret": (mh.PureDP(epsilon=1.0), {"n": None, "population": True}),
}


def held_in_a_ball(shape, way, n, runs, target="population", **options):
    """In how many releases the interval of the first column holds the distribution's mean."""
    (draw, mean), (promise, asked) = BALLS[shape], BALL_WAYS[way]
    rng = np.random.default_rng(11)
    plan = mh.plan_mean(domain=mh.Ball(radius=1, dim=3), privacy=promise, **{"n": n, **asked})
    count = 0
    for _ in range(runs):
        lower, upper = plan.release(draw(rng, n)).interval(target=target, **options)
        count += bool(lower[0] <= mean <= upper[0])
    return count


@pytest.mark.slow
@pytest.mark.parametrize("way", BALL_WAYS)
@pytest.mark.parametrize("shape", BALLS)
@pytest.mark.parametrize("n", [200, 2000])
def test_the_population_in_a_ball_is_held_about_as_often_as_is_said(way, shape, n):
    """Nominally 95 %; not below 92 %, so at least 335 of 400 at 1e-6/30 a cell."""
    assert binom.cdf(334, 400, 0.92) < 1e-6 / 30
    assert held_in_a_ball(shape, way, n, 400) >= 335


@pytest.mark.parametrize("way", BALL_WAYS)
@pytest.mark.parametrize("shape", BALLS)
def test_intervals_in_a_ball_hold_their_population(shape, way):
    """60 releases at 92 % or more: 40 of them, but for one time in 10^7 for all cells together.

    Guaranteed intervals miss one in 20 at most.
    """
    assert binom.cdf(39, 60, 0.92) < 1e-7 / 15
    assert held_in_a_ball(shape, way, 3000, 60) >= 40
    assert held_in_a_ball(shape, way, 3000, 60, guaranteed=True) >= 40


@pytest.mark.parametrize("way", BALL_WAYS)
def test_noise_alone_would_hold_the_population_of_a_sphere_seldom(way):
    """The planted error: the noise is a fifth of the sampling error or less."""
    assert held_in_a_ball("sphere", way, 3000, 60, target="records") < 40


def test_squares_make_intervals_in_a_ball_as_long_as_the_sampling_error():
    """Without them each column was allowed the variance of the whole bounds: six times as long."""
    data = np.random.default_rng(5).normal(0, 0.15, (100_000, 6)) + 3
    sampling = 1.96 * 0.15 / math.sqrt(100_000)
    ball = mh.Ball(radius=1, dim=6, center=[3] * 6)
    axes = mh.Ellipsoid([1.0, 4, 1, 1, 1, 1], center=[3] * 6)
    for domain in (ball, axes, mh.LpBall(p=1, radius=6, dim=6, center=[3] * 6)):
        release = mh.mean(data, domain=domain, privacy=mh.ZCDP(rho=0.5))
        lower, upper = release.interval(target="population")
        # The last one's squares are 36 times as large, and so is their noise.
        near = 0.05 if domain.half_widths[0] == 1 else 0.3
        assert (upper - lower) / 2 == pytest.approx(np.full(6, sampling), rel=near)
        assert release.squares.lacking.shape == (6,)
        assert mh.Release.from_json(release.to_json()).to_json() == release.to_json()
    secret = mh.mean(data, domain=ball, privacy=mh.ZCDP(rho=0.5), n=None)
    lower, upper = secret.interval(target="population")
    assert (upper - lower) / 2 == pytest.approx(np.full(6, sampling * math.sqrt(6)), rel=0.05)
    assert "squares were released of all columns together" in repr(secret).lower()
    assert mh.Release.from_json(secret.to_json()).to_json() == secret.to_json()


def test_squares_in_a_ball_cost_the_mean_nothing_and_can_be_left_out():
    for domain in (mh.Ball(radius=2, dim=3), mh.Ball(radius=2, dim=1), mh.Ellipsoid([1.0, 9])):
        for n in (100, None):
            arguments = {"domain": domain, "n": n, "privacy": mh.ZCDP(rho=0.5)}
            free, without = mh.plan_mean(**arguments), mh.plan_mean(**arguments, population=False)
            assert free.recipe.query.rows > without.recipe.query.rows
            if n is None:
                assert free.error_at(10) == pytest.approx(without.error_at(10), rel=1e-9)
            else:
                assert free.expected_error == pytest.approx(without.expected_error, rel=1e-9)
            dear = mh.plan_mean(**arguments, population=True)
            assert dear.recipe.query.square_rows == domain.dim
    pure = mh.plan_mean(domain=mh.Ball(radius=2, dim=3), n=9, privacy=mh.PureDP(epsilon=1.0))
    assert pure.recipe.query.rows == 3
    turned = mh.Ellipsoid([[2.0, 1], [1, 2]])
    assert mh.plan_mean(domain=turned, n=9, privacy=mh.ZCDP(rho=0.5)).recipe.query.rows == 2


def test_at_large_n_the_interval_is_that_of_a_t_test_and_the_noise():
    data = np.random.default_rng(2).normal(40, 10, 100_000)
    release = mh.mean({"a": data}, domain={"a": (0, 100)}, privacy=mh.ZCDP(rho=0.5))
    lower, upper = release.interval(target="population")
    sampling = 1.95996 * data.std() / math.sqrt(len(data))
    noise = 1.95996 * release.standard_error[0]
    assert (upper - lower)[0] / 2 == pytest.approx(math.hypot(sampling, noise), rel=0.02)


def test_squares_cost_the_mean_nothing_and_can_be_left_out():
    for promise, mechanism in ((mh.ZCDP(rho=0.5), None), (mh.PureDP(epsilon=1.0), "laplace")):
        options = {"domain": mh.Box([0], [1]), "privacy": promise, "mechanism": mechanism}
        with_squares = mh.plan_mean(n=100, **options)
        without = mh.plan_mean(n=100, population=False, **options)
        assert with_squares.recipe.query.rows == 2
        assert without.recipe.query.rows == 1
        assert with_squares.expected_error == pytest.approx(without.expected_error, rel=1e-9)
    cube = mh.plan_mean(domain=mh.Box([0] * 3, [1] * 3), n=100, privacy=mh.PureDP(epsilon=1.0))
    assert cube.mechanism == "box-norm"
    assert cube.recipe.query.rows == 3
    dearer = mh.plan_mean(
        domain=mh.Box([0] * 3, [1] * 3), n=100, privacy=mh.PureDP(epsilon=1.0), population=True
    )
    assert dearer.recipe.query.rows == 6
    assert dearer.expected_error == pytest.approx(cube.expected_error / 0.95, rel=1e-6)


CUBES = {
    "n public": {"missing": "none", "n": 4000},
    "values missing": {"missing": "drop", "n": 4000, "mechanism": "box-norm"},
    "n secret": {"missing": "none", "n": None},
    "n secret, values missing": {"missing": "drop", "n": None},
}


@pytest.mark.parametrize("way", CUBES)
def test_squares_beside_noise_of_the_cube_cost_a_twentieth_of_it(way):
    """Asked for, they make intervals of many records about as long as the sampling error.

    60 releases: 40 or more hold, but for one time in 10^7 for all ways and columns together.
    """
    assert binom.cdf(39, 60, 0.92) < 1e-7 / 16
    box, promise = {"a": (0, 1), "b": (0, 1)}, mh.PureDP(epsilon=1.0)
    asked, plain = (
        mh.plan_mean(domain=box, privacy=promise, population=wish, **CUBES[way])
        for wish in (True, None)
    )
    assert plain.recipe.query.rows == asked.recipe.query.rows - 2
    worth = [np.asarray(plan.recipe.scales) for plan in (asked, plain)]
    assert worth[0] == pytest.approx(worth[1] / 0.95, rel=1e-6)
    rng, held, lengths = np.random.default_rng(4), np.zeros((2, 2)), np.zeros(2)
    for _ in range(60):
        data = {"a": rng.normal(0.5, 0.05, 4000), "b": rng.random(4000)}
        release = asked.release(data)
        for sure in (0, 1):
            lower, upper = release.interval(target="population", guaranteed=bool(sure))
            held[sure] += (lower <= 0.5) & (upper >= 0.5)
        lower, upper = release.interval(target="population")
        lengths += (upper - lower) / 60
    assert (held >= 40).all()
    lower, upper = plain.release(data).interval(target="population")
    assert lengths[0] < 0.6 * (upper - lower)[0]
    assert lengths[1] < (upper - lower)[1]


def test_without_squares_the_largest_sampling_error_is_allowed_for():
    data = np.full((500, 3), 0.5)
    release = mh.mean(data, domain=mh.Box([0] * 3, [1] * 3), privacy=mh.PureDP(epsilon=5.0))
    assert release.squares is None
    assert "largest sampling error" in repr(release)
    lower, upper = release.interval(target="population")
    assert (upper - lower)[0] / 2 > 1.95 * 0.5 / math.sqrt(500)


def test_both_intervals_are_printed_and_written():
    data = {"a": np.linspace(0, 1, 1000)}
    release = mh.mean(data, domain={"a": (0, 1)}, privacy=mh.ZCDP(rho=0.5))
    for text in (repr(release), release._repr_html_()):
        assert "95 % interval: records" in text
        assert "95 % interval: population" in text
    fields = json.loads(release.to_json())
    assert fields["interval"]["target"] == "records"
    assert fields["population_interval"]["target"] == "population"
    again = mh.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert (release.interval(target="empirical")[0] == release.interval()[0]).all()


def test_where_there_is_one_interval_it_is_said_to_be_of_the_records_and_why():
    data, promise = {"a": np.linspace(0, 1, 1000)}, mh.ZCDP(rho=0.5)
    asked = {"domain": {"a": (0, 1)}, "privacy": promise}
    reasons = {
        "with contributions > 1": mh.mean(data, contributions=2, **asked),
        "depends on n, which is secret": mh.sum(data, n=None, **asked),
        "ask before projected()": mh.mean(data, **asked).projected(),
    }
    for reason, release in reasons.items():
        for text in (repr(release), release._repr_html_()):
            assert "clipped to their bounds: noise alone. No interval for a population" in text
            assert reason in text.replace("&gt;", ">")


def test_a_sum_has_n_times_the_interval_of_its_mean():
    data, promise = {"a": np.linspace(0, 1, 1000)}, mh.ZCDP(rho=0.5)
    for rule in ("none", "drop"):
        release = mh.sum(data, domain={"a": (0, 1)}, privacy=promise, missing=rule)
        lower, upper = release.interval(target="population")
        sampling = 1.96 * math.sqrt(1000 / 12)
        assert (upper - lower)[0] / 2 == pytest.approx(
            math.hypot(sampling, 1.96 * release.standard_error[0]), rel=0.1
        )
        assert "1000 times the mean of the population" in repr(release)


def test_a_variance_is_never_negative_and_never_more_than_the_mean_allows():
    """Noise larger than everything: S² is between 0 and 1 − m², whatever came out."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        count = np.array([float(rng.integers(2, 50))])
        noisy = rng.normal(0, 100, (2, 4))
        error = np.full(4, 100.0)
        moments = Moments(noisy[0], error, count, np.zeros(1), noisy[1], error)
        assert ((moments.variance() >= 0) & (moments.variance() <= 1)).all()
        bound = moments.deviation_at_most(3.0, 3.0, 0.01)
        assert ((bound >= 0) & (bound <= 1)).all()


def test_several_columns_at_once_take_longer_intervals():
    data = np.random.default_rng(0).random((2000, 4))
    for options in ({}, {"n": None}, {"missing": "drop"}):
        release = mh.mean(data, domain=mh.Box([0] * 4, [1] * 4), privacy=mh.GDP(mu=1), **options)
        for sure in (False, True):
            one, all_of_them = (
                np.subtract(
                    *release.interval(target="population", simultaneous=both, guaranteed=sure)[::-1]
                )
                for both in (False, True)
            )
            assert (all_of_them > one).all()


def test_squares_of_no_use_are_refused():
    box = mh.Box([0], [1])
    for arguments in (
        {"domain": mh.Simplex(3), "n": 10},
        {"domain": mh.Ellipsoid([[2.0, 1], [1, 2]]), "n": 10},
        {"domain": mh.Ball(radius=1, dim=2), "n": 10, "mechanism": "plain-laplace"},
        {"domain": box, "n": 10, "contributions": 2},
        {"domain": mh.Reals(dim=1, magnitude=9), "n": 10},
        {"domain": box, "n": None, "unbiased": True},
    ):
        with pytest.raises(mh.InvalidInput, match="population=True"):
            mh.plan_mean(privacy=mh.ApproxDP(epsilon=1, delta=1e-9), population=True, **arguments)
    with pytest.raises(mh.InvalidInput, match="secret n"):
        mh.plan_sum(domain=box, n=None, privacy=mh.ZCDP(rho=1), population=True)
    with pytest.raises(mh.InvalidInput, match="True, False or None"):
        mh.plan_mean(domain=box, n=10, privacy=mh.ZCDP(rho=1), population="yes")
