"""What is read off noisy moments: exact without noise, and intervals that hold as often as said.

Groups are repetitions: 2,000 groups of one size are 2,000 releases. Seeds are fixed; a count of
misses has the binomial law, and what is compared with it has a false-alarm rate of at most 1e-6
for all cells of a test together.
"""

from __future__ import annotations

import functools
import json
from dataclasses import replace

import numpy as np
import pytest
from drawn_moments import (
    CENTERS,
    HALVES,
    answer,
    exact_tables,
    noisy,
    statistic,
    terms_of,
)
from scipy.stats import binom

import muhat as mh
from muhat.release.display import table
from muhat.release.moments import NoisyMoments, NoisyTable

KINDS = {
    "count": (),
    "sum": ("x",),
    "mean": ("x",),
    "variance": ("x",),
    "standard deviation": ("x",),
    "covariance": ("x", "y"),
    "correlation": ("x", "y"),
    "regression": ("y", "x"),
    "weighted mean": ("x", "w"),
}
SEVERAL = {"covariance": ("x", "y", "w"), "correlation": ("x", "y", "w")}
EVERY = [*KINDS.items(), *SEVERAL.items(), ("regression", ("y", "x", "w"))]


def uniform(rng, shape):
    x = rng.uniform(-1, 1, shape)
    return x, x / 2 + rng.uniform(-0.5, 0.5, shape)


def normal(rng, shape):
    x = rng.normal(-0.1, 0.3, shape)
    return x, 0.2 + 0.6 * x + rng.normal(0, 0.2, shape)


def skewed(rng, shape):
    x = rng.lognormal(0, 0.5, shape) * 0.4 - 1
    return x, x / 2 + rng.exponential(0.2, shape) - 0.2


def mostly_zero(rng, shape):
    x = np.where(rng.random(shape) < 0.9, -1, rng.uniform(-1, 1, shape))
    return x, x * 0.5 + rng.uniform(-0.4, 0.4, shape)


SHAPES = {each.__name__: each for each in (uniform, normal, skewed, mostly_zero)}


def units(shape, rng, groups, n):
    """Values of every column in units of u."""
    x, y = (np.clip(values, -1, 1) for values in SHAPES[shape](rng, (groups, n)))
    return {"x": x, "y": y, "w": rng.uniform(-1, 1, (groups, n)) * 0.8 + 0.2 * x}


def held(ends, truth):
    """The part of the intervals that hold what they should, by number of a group."""
    lower, upper = (end.reshape(len(end), -1) for end in ends)
    slack = 1e-9 * (1 + np.abs(truth))
    return ((lower <= truth + slack) & (truth <= upper + slack)).mean(axis=0)


@pytest.mark.parametrize(("kind", "columns"), EVERY)
def test_without_noise_every_value_is_exact(kind, columns):
    rng = np.random.default_rng(1)
    data = units("normal", rng, 3, 40)
    found = answer(kind, columns, noisy(exact_tables(data, columns), columns, rng))
    truth = statistic(kind, columns, data)
    shape = truth.shape if found.output_name else (3,)
    assert found.value.shape == found.standard_error.shape == shape
    np.testing.assert_allclose(found.value.reshape(truth.shape), truth, rtol=1e-9, atol=1e-9)
    assert (found.standard_error == 0).all()
    for end in found.interval():
        np.testing.assert_allclose(end.reshape(truth.shape), truth, rtol=1e-8, atol=1e-8)
    assert not found.too_few.any()


CELLS = [(30, 1.0), (300, 3.0), (10_000, 3.0), (10_000, 50.0)]
RUNS = 2000


def coverage(kind, columns, shape, n, law, scale, runs=RUNS, confidence=0.95):
    """How often intervals for the records hold, and those for the population if there are any."""
    rng = np.random.default_rng([n, int(scale), len(columns), runs])
    data = units(shape, rng, runs, n)
    found = answer(kind, columns, noisy(exact_tables(data, columns), columns, rng, law, scale))
    told = ~found.too_few
    truth = statistic(kind, columns, data)[told]
    records = held([end[told] for end in found.interval(confidence)], truth)
    if not found.has_population:
        return records, None
    wider = found.interval(confidence, target="population")
    return records, held([end[told] for end in wider], of_population(kind, columns, shape))


@functools.cache
def of_population(kind, columns, shape):
    """The statistic of very many draws."""
    return statistic(kind, columns, many(shape))


@functools.cache
def many(shape):
    return units(shape, np.random.default_rng(99), 1, 4_000_000)


def least_part(level, runs, cells):
    """What a part of so many runs hardly ever falls below, if each holds with this chance."""
    return float(binom.ppf(1e-6 / cells, runs, level)) / runs


@pytest.mark.parametrize("law", ["normal", "laplace", "ends"])
@pytest.mark.parametrize(("kind", "columns"), EVERY)
def test_intervals_hold_for_groups_of_300(kind, columns, law):
    """400 releases at 93 % or more; 36 cells, both targets."""
    records, population = coverage(kind, columns, "normal", 300, law, 3.0, runs=400)
    least = least_part(0.93, 400, 100)
    assert least > 0.83
    assert (records >= least).all()
    assert population is None or (population >= least).all()


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "laplace", "laplaces"])
@pytest.mark.parametrize(("n", "scale"), CELLS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("kind", "columns"), EVERY)
def test_intervals_hold_as_often_as_they_say(kind, columns, shape, n, scale, law):
    """Nominally 95 %, at least 93 %: 576 cells, of at most three numbers and two targets each.

    The sampling error of a correlation is that of normal pairs, so only there it is asked for.
    """
    runs = RUNS if n < 10_000 else 500
    records, population = coverage(kind, columns, shape, n, law, scale, runs=runs)
    least = least_part(0.93, runs, 3456)
    assert (records >= least).all()
    if population is not None and (kind != "correlation" or shape == "normal"):
        assert (population >= least).all()


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["mean", "variance", "covariance", "regression"])
def test_intervals_of_small_groups_whose_count_rides_hold_as_often_as_they_say(kind, shape):
    """16 cells, of at most two numbers and two targets each."""
    records, population = coverage(kind, KINDS[kind], shape, 30, "ends", 1.0)
    least = least_part(0.93, RUNS, 64)
    assert (records >= least).all()
    assert (population >= least).all()


@pytest.mark.parametrize("confidence", [0.6, 0.8, 0.99])
@pytest.mark.parametrize("law", ["normal", "laplace", "laplaces", "ends"])
def test_other_levels_hold_too(confidence, law):
    """2,000 means at a point below their level; 12 cells. Normal noise misses no less often."""
    records, _ = coverage("mean", ("x",), "uniform", 300, law, 3.0, confidence=confidence)
    assert records >= least_part(confidence - 0.01, RUNS, 12)
    if law == "normal":
        assert records <= 1 - least_part(1 - confidence - 0.005, RUNS, 12)


@pytest.mark.parametrize("kind", ["mean", "variance", "covariance", "regression"])
def test_noise_alone_would_hold_a_population_seldom(kind):
    """The planted error: intervals for the records of 10,000 hold it half of the time at most."""
    columns = KINDS[kind]
    rng = np.random.default_rng(5)
    data = units("uniform", rng, 200, 10_000)
    found = answer(kind, columns, noisy(exact_tables(data, columns), columns, rng, "normal", 3.0))
    assert (held(found.interval(), of_population(kind, columns, "uniform")) < 0.5).all()


@pytest.mark.parametrize(
    ("mean", "variance", "fourth", "times"),
    [(0.0, 1 / 3, 1 / 5, 1.58), (0.0, 0.09, 0.0243, 2.25), (-0.5, 0.09, 0.0243, 3.46)],
)
def test_the_interval_of_a_variance_is_so_much_longer_for_want_of_fourth_moments(
    mean, variance, fourth, times
):
    """A hundred million records without noise: uniform ones, normal ones, in the middle or not."""
    n = 1e8
    sums = {(): n, ("x",): n * mean, ("x", "x"): n * (1 - variance - mean**2)}
    tables = {term: NoisyTable(np.array([each]), 0.0, "none") for term, each in sums.items()}
    moments = NoisyMoments.of(tables, {"x": 0.0}, {"x": 1.0})
    fields = {"by": (), "labels": ()}
    lower, upper = answer("variance", ("x",), moments, **fields).interval(target="population")
    needed = 2 * 1.96 * np.sqrt((fourth - variance**2) / n)
    assert (upper - lower) / needed == pytest.approx(times, rel=0.01)


@pytest.mark.parametrize("law", ["normal", "laplace"])
@pytest.mark.parametrize("kind", ["mean", "variance", "covariance"])
def test_all_groups_hold_at_once(kind, law):
    """300 releases of 20 groups, at the level of 20: all hold in 81 % at least, nominally 95 %.

    One by one they would hold together in 36 %.
    """
    columns, rng = KINDS[kind], np.random.default_rng(8)
    data = units("uniform", rng, 6000, 100)
    moments = noisy(exact_tables(data, columns), columns, rng, law, 2.0)
    level = 0.95 ** (1 / 20) if law == "normal" else 1 - 0.05 / 20
    lower, upper = answer(kind, columns, moments).interval(level)
    truth = statistic(kind, columns, data)[:, 0]
    together = ((lower <= truth) & (truth <= upper)).reshape(300, 20).all(axis=1).mean()
    assert together >= least_part(0.93, 300, 6) > 0.8
    own = tuple(NoisyTable(one.values[:20], one.scale, one.law) for one in moments.listed)
    first = answer(kind, columns, replace(moments, listed=own))
    for end, alone in zip(first.interval(simultaneous=True), (lower, upper), strict=True):
        np.testing.assert_allclose(end, alone[:20], rtol=1e-9)


@pytest.mark.parametrize("law", ["normal", "laplace"])
@pytest.mark.parametrize("n", [30, 1000])
def test_guaranteed_intervals_hold_and_are_longer(n, law):
    rng = np.random.default_rng(n)
    data = units("mostly_zero", rng, 1000, n)
    found = answer("mean", ("x",), noisy(exact_tables(data, ("x",)), ("x",), rng, law, 1.0))
    ends = found.interval(target="population", guaranteed=True)
    assert held(ends, of_population("mean", ("x",), "mostly_zero")) >= 0.95
    usual = found.interval(target="population")
    assert (ends[1] - ends[0] >= usual[1] - usual[0]).all()
    with pytest.raises(mh.InvalidInput, match="for means and sums"):
        answer(
            "variance", ("x",), noisy(exact_tables(data, ("x",)), ("x",), rng, law, 1.0)
        ).interval(target="population", guaranteed=True)


def test_a_public_number_of_records_makes_the_mean_linear():
    rng = np.random.default_rng(2)
    data = units("uniform", rng, 5, 50)
    moments = noisy(exact_tables(data, ("x",)), ("x",), rng, "normal", 2.0, count_scale=0.0)
    found = answer("mean", ("x",), moments)
    middle = CENTERS["x"] + HALVES["x"] * moments.sum_of(("x",)) / 50
    np.testing.assert_allclose(found.value, middle)
    np.testing.assert_allclose(found.standard_error, HALVES["x"] * 2 / 50)
    for end, side in zip(found.interval(), (-1, 1), strict=True):
        np.testing.assert_allclose(end, middle + side * 1.959964 * HALVES["x"] * 2 / 50, rtol=1e-6)
    total = answer("sum", ("x",), moments)
    np.testing.assert_allclose(total.value, 50 * middle)
    assert total.has_population
    for end, other in zip(total.interval(target="population"), (0, 1), strict=True):
        mean = found.interval(target="population")[other]
        np.testing.assert_allclose(end, 50 * mean, rtol=1e-6)


@pytest.mark.parametrize(("kind", "columns"), EVERY)
@pytest.mark.parametrize("law", ["normal", "laplace", "none"])
@pytest.mark.parametrize("sizes", [(0.0, 0.0, 0.0), (-40.0, 3.0, 1.0), (1.0, 2.0, 1e12)])
def test_hostile_sizes_are_too_few_and_never_fail(kind, columns, law, sizes):
    """Empty groups, negative noisy numbers, moments that no data have."""
    rng = np.random.default_rng(3)
    scale = 0.0 if law == "none" else 2.0
    tables = {
        term: NoisyTable(np.array(sizes) if term == () else rng.normal(0, 50, 3), scale, law)
        for term in terms_of(columns)
    }
    own = {c: CENTERS[c] for c in columns}, {c: HALVES[c] for c in columns}
    found = answer(kind, columns, NoisyMoments.of(tables, *own))
    few = found.too_few
    assert (few[:2] == (kind not in ("count", "sum"))).all() or law == "none"
    values = found.value.reshape(3, -1)
    assert (np.isnan(values) == few[:, None]).all()
    assert (np.isinf(found.standard_error.reshape(3, -1)) >= few[:, None]).all()
    for target in ["records", *["population"] * found.has_population]:
        for together in (False, True):
            lower, upper = found.interval(target=target, simultaneous=together)
            assert not np.isnan(lower).any()
            assert not np.isnan(upper).any()
            assert (lower <= upper).all()
    shown = found.rows()
    for row, one in zip(shown[1:], np.repeat(few, len(found.lines)), strict=True):
        assert ("too few" in row) == one
        if one:
            assert not any("…" in cell for cell in row)
    assert ("Too few" in " ".join(found.notes())) == few.any()
    json.dumps(found.to_dict(), allow_nan=False)


def example(kind="mean", columns=("x",), law="normal", **more):
    rng = np.random.default_rng(4)
    data = units("normal", rng, 4, 500)
    moments = noisy(exact_tables(data, columns), columns, rng, law, 3.0)
    fields = {"by": ("sex", "area"), "labels": (("f", "m"), (1, 2))}
    return answer(kind, columns, moments, **fields | more)


def as_release(found):
    return mh.Release(
        answers=(found,),
        privacy=mh.ZCDP(rho=0.1),
        neighbors=mh.Neighbors.ADD_REMOVE,
        plan_digest="none",
    )


@pytest.mark.parametrize(
    ("kind", "columns", "law"),
    [*((*each, "normal") for each in EVERY), ("variance", ("x",), "ends")],
)
def test_json_is_read_as_it_was_written(kind, columns, law):
    release = as_release(example(kind, columns, law))
    again = mh.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    np.testing.assert_array_equal(again.value, release.value)
    assert json.loads(release.to_json())["schema"] == "muhat.statistic/1"
    assert repr(again) == repr(release)


def test_counts_and_sums_are_left_as_they_came_and_means_are_possible():
    """A negative count is kept, so that counts add up without bias; its interval begins at 0."""
    tables = {term: NoisyTable(np.array([-9.0, 90.0]), 3.0, "normal") for term in terms_of(("x",))}
    moments = NoisyMoments.of(tables, {"x": 5.0}, {"x": 5.0})
    count = answer("count", (), moments)
    assert count.value.tolist() == [-9.0, 90.0]
    assert (count.interval()[0] >= 0).all()
    assert answer("sum", ("x",), moments).value.tolist() == [-90.0, 900.0]
    assert answer("mean", ("x",), moments).value[1] == 10.0
    assert answer("mean", ("x",), moments).interval()[1][1] == 10.0


def test_groups_are_found_by_their_labels():
    release = as_release(example())
    for place, labels in enumerate([("f", 1), ("f", 2), ("m", 1), ("m", 2)]):
        part = release[labels]
        assert part.value.shape == (1,)
        assert part.value[0] == release.value[place]
        assert part.interval()[1][0] == release.interval()[1][place]
        assert part.recorded[0] == release.recorded[place]
    single = as_release(example(by=("area",), labels=((1, 2, 3, 4),)))
    assert float(single[2]) == single.value[1]
    with pytest.raises(mh.InvalidInput, match="not one of the groups"):
        single[9]


def test_tables_are_tidy():
    found = example("regression", ("y", "x"))
    tidy = found.table()
    assert list(tidy) == [
        *("sex", "area", "coefficient", "value", "standard_error", "lower", "upper"),
        *("population_lower", "population_upper", "recorded", "recorded_error"),
    ]
    assert {len(column) for column in tidy.values()} == {8}
    assert tidy["sex"].tolist() == ["f"] * 4 + ["m"] * 4
    assert tidy["area"].tolist() == [1, 1, 2, 2] * 2
    assert tidy["coefficient"].tolist() == ["intercept", "x"] * 4
    np.testing.assert_array_equal(tidy["value"], found.value.ravel())
    assert "pair" in example("covariance", ("x", "y", "w")).table()
    assert list(example("count", ()).table())[-2:] == ["recorded", "recorded_error"]
    named = example(by=("value", "recorded")).table()
    assert list(named)[:2] == ["value of the record", "recorded of the record"]


def test_it_reads_well():
    found = example()
    text = "\n".join(table(found.rows()))
    assert "95 % interval: records   95 % interval: population   records ± s.e." in text
    assert "f        1" in text
    assert found.heading == "mean x"
    assert found.called == "a mean"
    assert "independent draws" in " ".join(found.notes())
    alone = as_release(answer("mean", ("x",), found.moments.only(0), by=(), labels=()))
    assert repr(alone).startswith("Private mean x · 0.1-zCDP · n secret")


def test_what_an_interval_assumes_is_said():
    assert "normal (Fisher)" in " ".join(example("correlation", ("x", "y")).notes())
    assert "approximate" in " ".join(example("regression", ("y", "x", "w")).notes())
    assert "residuals" in " ".join(example("regression", ("y", "x")).notes())


def test_a_spread_that_noise_could_have_made_is_said():
    """A column without spread: a variance from 0, a slope without bounds, any correlation."""
    rng = np.random.default_rng(6)
    flat = {"x": np.full((2, 100), 0.3), "y": rng.uniform(-1, 1, (2, 100))}
    moments = noisy(exact_tables(flat, ("x", "y")), ("x", "y"), rng, "normal", 4.0)
    spread = answer("variance", ("x",), moments)
    assert (spread.interval()[0] == 0).all()
    assert "from 0" in " ".join(spread.notes())
    slope = answer("regression", ("y", "x"), moments)
    assert np.isinf(slope.interval()).all()
    assert "unbounded" in slope.rows()[1]
    assert "ridge" in " ".join(slope.notes())
    assert np.isfinite(slope.value).all()
    lower, upper = answer("correlation", ("x", "y"), moments).interval()
    assert (lower == -1).all()
    assert (upper == 1).all()


def test_what_says_nothing_of_a_population_is_refused():
    refused = [
        (example("count", ()), "estimates nothing"),
        (example("sum", ("x",)), "how many values that has"),
        (example(contributions=2), "not independent draws"),
    ]
    for found, words in refused:
        with pytest.raises(mh.InvalidInput, match=words):
            found.interval(target="population")
        assert not found.has_population
        assert "population_lower" not in found.table()
    with pytest.raises(mh.InvalidInput, match="target must be one of"):
        example().interval(target="people")
    with pytest.raises(mh.InvalidInput, match="confidence"):
        example().interval(1.5)


MOMENTS = example().moments
TABLE = NoisyTable(np.zeros(2), 1.0, "normal")


@pytest.mark.parametrize(
    "make",
    [
        lambda: example(kind="median"),
        lambda: example(columns=("x", "y")),
        lambda: example(labels=(("f", "m"), (1, 2, 3))),
        lambda: example(labels=(("f", "m"),)),
        lambda: answer("variance", ("y",), MOMENTS),
        lambda: example("weighted mean", ("x", "y")),
        lambda: NoisyTable(np.array([np.nan]), 1.0, "normal"),
        lambda: NoisyTable(np.zeros((2, 2)), 1.0, "normal"),
        lambda: NoisyTable(np.zeros(2), -1.0, "normal"),
        lambda: NoisyTable(np.zeros(2), 1.0, "cauchy"),
        lambda: NoisyMoments.of({("x",): TABLE}, {"x": 0.0}, {"x": 1.0}),
        lambda: NoisyMoments.of({(): TABLE, ("x",): TABLE}, {}, {}),
        lambda: NoisyMoments.of({(): TABLE, ("x",): TABLE}, {"x": 0.0}, {"x": 0.0}),
        lambda: NoisyMoments.of({(): TABLE, ("x",): MOMENTS.listed[0]}, {"x": 0.0}, {"x": 1.0}),
        lambda: replace(MOMENTS, mixing=np.eye(2)),
        lambda: replace(MOMENTS, mixing=np.full((3, 3), np.nan)),
        lambda: NoisyMoments.of(
            {(): TABLE, ("x",): NoisyTable(np.zeros(2), 1.0, "laplace")}, {"x": 0.0}, {"x": 1.0}
        ),
    ],
)
def test_what_cannot_be_is_refused(make):
    with pytest.raises(mh.InvalidInput):
        make()


@pytest.mark.parametrize("change", [{"statistic": "median"}, {"labels": [["f"]]}, {"moments": {}}])
def test_json_that_cannot_be_is_refused(change):
    fields = json.loads(as_release(example()).to_json()) | change
    with pytest.raises(mh.InvalidInput):
        mh.Release.from_json(json.dumps(fields))
