"""Means of public groups: one promise for all, Fieller's interval for each."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

import muhat as mh
from changed import changed

PROMISE = mh.ZCDP(rho=0.5)
BOUNDS = {"age": (0, 100)}
GROUPS = ["north", "south", "empty"]


def people(n=4000):
    index = np.arange(n)
    region = np.where(index % 4 == 0, "south", "north")
    region[index % 97 == 0] = "elsewhere"
    return {"age": (index * 7919) % 80 + (region == "south") * 15.0, "region": region}


def test_every_group_has_its_own_mean():
    data = people()
    release = mh.mean(data, domain=BOUNDS, privacy=PROMISE, by="region", groups=GROUPS)
    assert release.value.shape == release.standard_error.shape == (3, 1)
    for group in ("north", "south"):
        exact = data["age"][data["region"] == group].mean()
        # Six standard errors: a false alarm in 10^8.
        assert abs(float(release[group]) - exact) < 6 * release[group].standard_error[0]
    low, high = release["empty"].interval()
    assert (low[0], high[0]) == (0, 100) or high[0] - low[0] > 10


def test_the_promise_is_that_of_one_group():
    """The noise of a group is that of the whole table with a secret n."""
    data = people()
    grouped = mh.mean(data, domain=BOUNDS, privacy=PROMISE, by="region", groups=GROUPS)
    alone = mh.mean({"age": data["age"]}, columns=["age"], domain=BOUNDS, privacy=PROMISE, n=None)
    assert np.array_equal(grouped["north"].noise.sum_spread.scales, alone.noise.sum_spread.scales)
    assert grouped["north"].noise.count_scale == alone.noise.count_scale


def test_simultaneous_intervals_are_wider():
    release = mh.mean(people(), domain=BOUNDS, privacy=PROMISE, by="region", groups=GROUPS[:2])
    (low, high), (all_low, all_high) = release.interval(), release.interval(simultaneous=True)
    assert (all_low < low).all()
    assert (all_high > high).all()


def test_the_ledger_is_charged_once_for_all_groups(tmp_path):
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=mh.ZCDP(rho=1), neighbors="add-remove")
    mh.mean(people(), domain=BOUNDS, privacy=PROMISE, by="region", groups=GROUPS, ledger=ledger)
    assert ledger.spent == mh.ZCDP(rho=0.5)
    assert len(ledger.entries()) == 1


def test_a_release_of_groups_prints_and_survives_json():
    release = mh.mean(people(), domain=BOUNDS, privacy=PROMISE, by="region", groups=GROUPS)
    text = repr(release)
    assert "Private means by region" in text
    assert "south" in text
    assert "<table>" in release._repr_html_()
    again = mh.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert list(release.table()) == [
        "region",
        "column",
        "value",
        "standard_error",
        "lower",
        "upper",
        "population_lower",
        "population_upper",
        "recorded",
    ]
    with pytest.raises(mh.InvalidInput):
        mh.Release.from_json("{}")


def gaps(n=4000):
    """Ages, of which a third is missing in the north and nearly all in the south."""
    data = people(n)
    index = np.arange(n)
    data["age"][(data["region"] == "north") & (index % 3 == 0)] = np.nan
    data["age"][(data["region"] == "south") & (index % 100 > 0)] = np.nan
    return data


@pytest.mark.parametrize("promise", [PROMISE, mh.PureDP(epsilon=1)], ids=str)
def test_missing_values_are_left_out_of_their_group(promise):
    data = gaps()
    release = mh.mean(data, domain=BOUNDS, privacy=promise, by="region", groups=GROUPS)
    assert release.missing == "drop"
    for place, group in enumerate(GROUPS):
        chosen = data["age"][data["region"] == group]
        kept = chosen[np.isfinite(chosen)]
        # Six standard errors of normal noise and 20 of Laplace noise: a false alarm in 10^8.
        assert abs(release.recorded[place, 0] - len(kept)) < 20 * release.recorded_error[place, 0]
        if group == "north":
            far = 20 * release[group].standard_error[0]
            assert abs(float(release[group]) - kept.mean()) < far
    assert "Missing values are left out" in repr(release)
    assert "Missing values are left out" in release._repr_html_()
    assert all(one["missing"] == "drop" for one in release.to_dict()["releases"])


@pytest.mark.parametrize("missing", ["drop", "center", "none"])
def test_an_empty_group_says_too_few_and_not_a_bound(missing):
    """Three releases: the noisy number of none passes five deviations with probability 3e-7."""
    for _ in range(3):
        release = mh.mean(
            people(), domain=BOUNDS, privacy=PROMISE, by="region", groups=GROUPS, missing=missing
        )
        assert release.too_few[:, 0].tolist() == [False, False, True]
        (line,) = [line for line in repr(release).splitlines() if line.startswith("empty")]
        assert "too few" in line
        assert "100" not in line.replace("± ", "")
        assert "Too few" in release._repr_html_()


def test_names_that_steer_a_terminal_are_escaped():
    data = {"age": [1.0] * 50, "re\x1b[2J": ["a\x1b"] * 50}
    release = mh.mean(data, domain=BOUNDS, privacy=PROMISE, by="re\x1b[2J", groups=["a\x1b"])
    assert "\x1b" not in repr(release) + release._repr_html_()


def test_groups_of_one_release_have_one_rule():
    release = mh.mean(people(), domain=BOUNDS, privacy=PROMISE, by="region", groups=GROUPS)
    first, *rest = release.answers[0].answers
    with pytest.raises(mh.InvalidInput, match="one rule"):
        changed(release, answers=(replace(first, missing="center"), *rest))


@pytest.mark.parametrize("promise", [PROMISE, mh.PureDP(epsilon=1)], ids=str)
def test_both_intervals_are_printed_and_the_populations_is_the_wider(promise):
    release = mh.mean(people(), domain=BOUNDS, privacy=promise, by="region", groups=GROUPS)
    (low, high), (lower, upper) = release.interval(), release.interval(target="population")
    assert (lower[:2] < low[:2]).all()
    assert (upper[:2] > high[:2]).all()
    sure = release.interval(target="population", guaranteed=True)
    assert (sure[0] <= lower).all()
    assert (sure[1] >= upper).all()
    for text in (repr(release), release._repr_html_()):
        assert "95 % interval: records" in text
        assert "95 % interval: population" in text
        assert "independent draws" in text
    table = release.table()
    assert (table["population_lower"] == lower.ravel()).all()
    alone = release["south"].interval(target="population")
    assert np.array_equal([lower[1], upper[1]], alone)


def test_squares_of_groups_cost_the_means_nothing():
    options = {"domain": BOUNDS, "privacy": PROMISE, "by": "region", "groups": GROUPS}
    with_squares = mh.mean(people(), **options)
    without = mh.mean(people(), population=False, **options)
    assert with_squares["north"].squares is not None
    assert without["north"].squares is None
    for (_, one), (_, other) in zip(with_squares, without, strict=True):
        assert one.noise.sum_spread.scales == pytest.approx(other.noise.sum_spread.scales, rel=1e-6)
        assert one.noise.count_scale == pytest.approx(other.noise.count_scale, rel=1e-6)


def test_people_with_several_records_have_no_interval_for_a_population():
    release = mh.mean(
        people(), domain=BOUNDS, privacy=PROMISE, by="region", groups=GROUPS, contributions=3
    )
    assert not release.has_population
    assert "interval: population" not in repr(release)
    assert "No interval for a population: records of one person" in repr(release)
    assert len(release.table()) == 7


@pytest.mark.slow
@pytest.mark.parametrize("promise", [mh.ZCDP(rho=0.05), mh.PureDP(epsilon=0.5)], ids=str)
def test_intervals_cover_the_mean_of_the_population_of_a_group(promise):
    """400 samples of two groups, one of them skewed and a third of its values missing.

    Nominal 95 %: fewer than 354 of 400 have a probability below 1e-7.
    Planted: the intervals for the records cover far less often.
    """
    rng = np.random.default_rng(5)
    held, careless, sure = np.zeros(2), np.zeros(2), np.zeros(2)
    mean = np.array([40.0, 20.0])
    for _ in range(400):
        flat, skewed = rng.uniform(0, 80, 500), np.minimum(rng.exponential(20, 700), 100)
        skewed[rng.random(700) < 0.3] = np.nan
        data = {
            "age": np.concatenate([flat, skewed]),
            "region": np.repeat(["north", "south"], [500, 700]),
        }
        release = mh.mean(data, domain=BOUNDS, privacy=promise, by="region", groups=GROUPS[:2])
        for count, options in (
            (held, {"target": "population"}),
            (careless, {}),
            (sure, {"target": "population", "guaranteed": True}),
        ):
            lower, upper = release.interval(**options)
            # The mean of min(X, 100) for X of mean 20 is 20·(1 − e^−5).
            truth = mean * [1, 1 - math.exp(-5)]
            count += (lower[:, 0] <= truth) & (truth <= upper[:, 0])
    least = binom.ppf(1e-7, 400, 0.95)
    assert (held >= least).all()
    assert (sure >= least).all()
    assert (careless < least).all()


@pytest.mark.slow
@pytest.mark.parametrize("promise", [mh.ZCDP(rho=0.05), mh.PureDP(epsilon=0.3)], ids=str)
def test_intervals_of_groups_cover_the_mean_of_the_recorded_values(promise):
    """600 releases of two groups: fewer than 539 at 95 % have a probability below 1e-7."""
    data = gaps(2000)
    groups = GROUPS[:2]
    truth = [np.nanmean(data["age"][data["region"] == group]) for group in groups]
    held, short = np.zeros(2), np.zeros(2)
    for _ in range(600):
        release = mh.mean(data, domain=BOUNDS, privacy=promise, by="region", groups=groups)
        for count, confidence in ((held, 0.95), (short, 0.7)):
            lower, upper = release.interval(confidence)
            count += (lower[:, 0] <= truth) & (truth <= upper[:, 0])
    least = binom.ppf(1e-7, 600, 0.95)
    assert (held >= least).all()
    assert short[0] < least


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": None}, "groups must list"),
        ({"by": None}, "by="),
        ({"n": 4000}, "secret"),
        ({"by": "county"}, "county"),
        ({"groups": ["a", "a"]}, "repeat"),
        ({"groups": []}, "at least one"),
        ({"neighbors": "substitute"}, "add-remove"),
        ({"domain": mh.Ball(radius=1, dim=1), "columns": ["age"]}, "box"),
        ({"domain": mh.Box([0], [100])}, "columns"),
        ({"privacy": mh.PureDP(epsilon=1), "contributions": 2}, "normal noise"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    options = {"domain": BOUNDS, "privacy": PROMISE, "by": "region", "groups": GROUPS, **change}
    with pytest.raises(mh.InvalidInput, match=message):
        mh.mean(people(), **options)


def test_unknown_groups_are_not_listed():
    release = mh.mean(people(), domain=BOUNDS, privacy=PROMISE, by="region", groups=GROUPS)
    assert "elsewhere" not in repr(release) + release.to_json()
    with pytest.raises(mh.InvalidInput, match="not one of the groups"):
        _ = release["elsewhere"]
