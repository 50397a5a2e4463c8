"""Quantiles of public groups: one promise for all, rank errors and noisy sizes of each."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import muhat as mh
from muhat.data.categories import categories_of
from muhat.errors import DataChanged, InvalidInput
from muhat.planning.group_quantiles import GroupQuantiles, group_quantiles, rank_noise
from muhat.planning.quantile_search import QuantileSearch
from muhat.planning.terms import COUNTED, Terms

PROMISES = [
    mh.PureDP(epsilon=1.0),
    mh.ApproxDP(epsilon=1.0, delta=1e-9),
    mh.ZCDP(rho=0.1),
    mh.GDP(mu=0.5),
]
SURE = 1 - 1e-9
CATEGORIES = {"region": ["north", "south", "empty"], "sex": ["f", "m"]}
ROWS = 24_000


def people():
    index = np.arange(ROWS)
    region = np.where(index % 4 == 0, "south", "north")
    region[index % 97 == 0] = "elsewhere"
    sex = np.where(index % 3 == 0, "f", "m")
    pay = (index * 7919) % 50_000 + (region == "south") * 15_000.0
    pay[index % 10 == 0] = np.nan
    return {"pay": pay, "region": region, "sex": sex}


PEOPLE = people()


def by_group(data=PEOPLE, q=0.5, **options):
    asked = {
        "columns": ["pay"],
        "by": ["region", "sex"],
        "categories": CATEGORIES,
        "lower": 0,
        "upper": 1e5,
        "resolution": 1,
        "privacy": mh.ZCDP(rho=0.1),
    }
    return mh.quantile(data, q, **{**asked, **options})


def values_of(region, sex):
    chosen = PEOPLE["pay"][(PEOPLE["region"] == region) & (PEOPLE["sex"] == sex)]
    return np.sort(chosen[np.isfinite(chosen)])


def between(values, q, error):
    """The values whose ranks are so far from a quantile's, the bounds beyond the last."""
    rank = max(math.ceil(q * len(values)), 1)
    low = 0 if rank - error < 1 else values[rank - error - 1]
    high = 1e5 if rank + error > len(values) else values[rank + error - 1]
    return low, high


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.kind)
@pytest.mark.parametrize("n", [ROWS, None])
@pytest.mark.parametrize("q", [0.5, [0, 0.25, 0.9]])
def test_every_group_has_its_own_quantiles_within_their_rank_error(promise, n, q):
    """At 1 − 1e-9 each, and 20 deviations for the number of values: a false alarm below 1e-7."""
    release = by_group(q=q, n=n, privacy=promise)
    asked = q if isinstance(q, list) else [q]
    errors, (lower, upper) = release.rank_error(SURE), release.interval(SURE)
    assert release.value.shape == errors.shape == lower.shape
    assert release.value.shape == ((6, 3, 1) if isinstance(q, list) else (6, 1))
    for place, (region, sex) in enumerate(release.groups):
        values = values_of(region, sex)
        spread = release.recorded_error[place, 0]
        assert abs(release.recorded[place, 0] - len(values)) < 20 * spread
        if region == "empty":
            continue
        for row, one in enumerate(asked):
            entry = (place, row, 0) if isinstance(q, list) else (place, 0)
            low, high = between(values, one, errors[entry])
            assert low <= release.value[entry] <= high
            exact = values[max(math.ceil(one * len(values)), 1) - 1]
            assert lower[entry] <= exact <= upper[entry]


@pytest.mark.parametrize("n", [ROWS, None])
@pytest.mark.parametrize("missing", ["drop", "center", "none"])
def test_an_empty_group_says_too_few_and_not_a_bound(n, missing):
    """The noisy number of none passes five deviations with probability 3e-7."""
    release = by_group(n=n, missing=missing)
    assert release.too_few[:, 0].tolist() == [False] * 4 + [True] * 2
    assert np.isnan(release.value[4:]).all()
    assert np.isfinite(release.value[:4]).all()
    for line in repr(release).splitlines():
        if line.startswith("empty"):
            assert "too few" in line
            assert "…" not in line
    assert "Too few" in release._repr_html_()


def test_missing_values_are_where_their_rule_puts_them():
    data = {**PEOPLE, "pay": np.where(np.arange(ROWS) % 3 < 2, np.nan, 7.0)}
    options = {"by": "region", "categories": None, "groups": ["north", "south"]}
    dropped = by_group(data, **options)
    assert dropped.value[:, 0].tolist() == [7.0, 7.0]
    for rule in ("center", "none"):
        release = by_group(data, missing=rule, **options)
        assert release.value[:, 0].tolist() == [50_000.0, 50_000.0]
        assert release.recorded[0, 0] > 2 * dropped.recorded[0, 0]
        assert "records ± s.e." in repr(release)
        assert "Records: pay about" in repr(release["south"])


def test_rank_errors_are_known_before_anything_is_paid():
    for n in (ROWS, None):
        options = {"lower": 0, "upper": 1e5, "resolution": 1, "privacy": mh.ZCDP(rho=0.1)}
        plan = mh.plan_quantile(
            [0.1, 0.5], n=n, by=["region", "sex"], categories=CATEGORIES, **options
        )
        release = plan.release(PEOPLE, columns=["pay"])
        for asked in ({}, {"confidence": 0.999}, {"simultaneous": True}):
            for one in release.rank_error(**asked):
                assert np.array_equal(one, plan.rank_error(**asked))
        assert release.plan_digest == plan.digest
        assert release.assumptions == plan.assumptions
        assert (plan.rank_error(simultaneous=True) > plan.rank_error()).all()
        assert "by region and sex" in plan.describe()


def test_one_call_is_one_charge(tmp_path):
    account = mh.Ledger.create(
        tmp_path / "b.db", budget=mh.ZCDP(rho=1.0), neighbors=mh.Neighbors.ADD_REMOVE
    )
    release = by_group(ledger=account)
    (entry,) = account.entries()
    assert entry.note == "quantile 0.5 of pay by region, sex"
    assert entry.plan_digest == release.plan_digest
    assert release.n is None
    assert account.spent == mh.ZCDP(rho=0.1)


def test_intervals_of_a_group_are_nested_and_ascend_with_q():
    asked = [0.75, 0.1, 0.5]
    order = np.argsort(asked)
    release = by_group(q=asked)
    inner = (release.value[:4, order], release.value[:4, order])
    assert (np.diff(inner[0], axis=1) >= 0).all()
    for confidence in (0.01, 0.5, 0.95, SURE):
        lower, upper = (end[:4, order] for end in release.interval(confidence))
        assert (np.diff(lower, axis=1) >= 0).all()
        assert (np.diff(upper, axis=1) >= 0).all()
        assert (lower <= inner[0]).all()
        assert (upper >= inner[1]).all()
        inner = (lower, upper)
    wide = release.interval(simultaneous=True)
    assert (wide[0] <= release.interval()[0]).all()
    assert (wide[1] >= release.interval()[1]).all()


def test_groups_have_releases_of_their_own():
    release = by_group(q=[0.25, 0.5])
    assert release.by == ("region", "sex")
    assert release.labels == (("north", "south", "empty"), ("f", "m"))
    assert [name for name, _ in release] == list(release.groups)
    one = release["south", "f"]
    assert np.array_equal(one.value, release.value[2])
    assert np.array_equal(one.interval(), [end[2] for end in release.interval()])
    assert np.array_equal(one.recorded, release.recorded[2])
    with pytest.raises(InvalidInput, match="not one of the groups"):
        _ = release["south"]
    single = by_group(by="sex", categories=None, groups=["f", "m"])
    assert single.groups == ("f", "m")
    assert abs(float(single["f"]) - single.value[0, 0]) == 0


def test_a_release_survives_json():
    for options in ({"n": None, "privacy": mh.PureDP(epsilon=1)}, {"q": [0, 0.5]}):
        release = by_group(**options)
        text = release.to_json()
        again = mh.Release.from_json(text)
        assert again.to_json() == text
        assert repr(again) == repr(release)
        assert np.array_equal(again.rank_error(0.99), release.rank_error(0.99))
        assert again["north", "m"].to_json() == release["north", "m"].to_json()
    fields = json.loads(text)
    assert fields["schema"] == "muhat.group-quantiles/1"
    for wrong in ({"labels": [["north"], ["f", "m"]]}, {"by": ["region"]}, {"found": []}):
        with pytest.raises(InvalidInput):
            mh.Release.from_json(json.dumps({**fields, **wrong}))


def test_a_table_is_tidy():
    release = by_group(q=[0.25, 0.5])
    table = release.table(0.9)
    assert list(table) == [
        *("region", "sex", "column", "quantile"),
        *("value", "rank_error", "lower", "upper", "population_lower", "population_upper"),
        *("recorded", "recorded_error"),
    ]
    assert {len(column) for column in table.values()} == {12}
    place = (table["region"] == "south") & (table["sex"] == "m") & (table["quantile"] == 0.5)
    assert table["value"][place] == release.value[3, 1, 0]
    assert table["upper"][place] == release.interval(0.9)[1][3, 1, 0]
    assert table["recorded"][place] == release.recorded[3, 0]


def test_a_release_reads_well():
    release = by_group(q=[0, 0.5])
    text = repr(release)
    assert "Private quantiles by region and sex · 0.1-zCDP · n = 24000" in text
    assert "recorded ± s.e." in text
    assert "cannot be told from" in text
    assert "noisy comparisons" in release.describe()
    assert "<table>" in release._repr_html_()
    said = "\n".join(release.assumptions)
    assert "leaves one group for another" in said
    assert "lies in one of them" in "\n".join(by_group(n=None).assumptions)
    steering = {"pay": [1.0] * 50, "re\x1b[2J": ["a\x1b"] * 50}
    odd = by_group(steering, by="re\x1b[2J", categories=None, groups=["a\x1b"])
    assert "\x1b" not in repr(odd) + odd._repr_html_()


def test_several_columns_share_the_promise():
    data = {**PEOPLE, "age": np.arange(ROWS) % 100}
    both = by_group(data, columns=["pay", "age"], lower=[0, 0], upper=[1e5, 120], resolution=[1, 1])
    assert both.value.shape == (6, 2)
    assert both.recorded.shape == both.too_few.shape == (6, 2)
    alone = by_group()
    assert both.noise_scale[0, 0] == pytest.approx(math.sqrt(2) * alone.noise_scale[0, 0])
    assert both.table()["column"].tolist() == ["pay", "age"] * 6


def test_bins_and_numbers_make_groups(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet

    table = pa.table({"pay": PEOPLE["pay"], "age": np.arange(ROWS) % 90, "code": [3] * ROWS})
    pa.parquet.write_table(table, tmp_path / "people.parquet")
    release = by_group(
        tmp_path / "people.parquet",
        by=["age", "code"],
        categories={"code": [3, 4], "age": {"bins": [0, 18, 65]}},
    )
    assert release.groups[0] == ("[0, 18)", 3)
    assert release.too_few[:, 0].tolist() == [False, True, False, True]


def test_contributions_widen_the_noise():
    assert by_group(contributions=5).noise_scale[0, 0] == pytest.approx(
        5 * by_group().noise_scale[0, 0]
    )


@pytest.mark.parametrize(
    "bad",
    [
        {"columns": None},
        {"columns": ["pay", "sex"]},
        {"columns": ["region"]},
        {"by": None},
        {"by": []},
        {"by": ["region", "region"]},
        {"by": ["region", 2.5]},
        {"by": {"region"}},
        {"by": "region"},
        {"by": ["region", "sex", "age"]},
        {"categories": None},
        {"categories": ["north"]},
        {"categories": {**CATEGORIES, "sex": []}},
        {"groups": ["f"]},
        {"categories": None, "groups": ["f"]},
        {"categories": {"region": 400, "sex": 400}},
        {"q": list(np.linspace(0, 1, 900)), "categories": {"region": 50, "sex": 50}},
        {"n": ROWS + 1},
        {"q": 1.5},
        {"missing": "zero"},
        {"privacy": mh.ZCDP(rho=1e-60)},
    ],
    ids=repr,
)
def test_bad_arguments_are_refused_and_cost_nothing(bad, tmp_path):
    account = mh.Ledger.create(tmp_path / "b.db", budget=mh.ZCDP(rho=1), neighbors="substitute")
    with pytest.raises(InvalidInput):
        by_group(ledger=account, **bad)
    assert account.entries() == []


def test_a_change_of_length_after_counting_is_noticed(monkeypatch):
    from dataclasses import replace

    from muhat.data.groups import GroupSource

    count = GroupSource.counting

    def one_more(*a, **k):
        found = yield from count(*a, **k)
        return [replace(one, rows=one.rows + 1) for one in found]

    monkeypatch.setattr(GroupSource, "counting", one_more)
    with pytest.raises(DataChanged):
        by_group()


def test_the_digest_knows_the_groups():
    variants = [
        {},
        {"by": ["sex", "region"]},
        {"by": "sex", "categories": {"sex": ["f", "m"]}},
        {"by": "sex", "categories": {"sex": ["m", "f"]}},
        {"by": None, "categories": None},
    ]
    assert len({by_group(**variant).plan_digest for variant in variants}) == len(variants)


@pytest.mark.parametrize("promise", [mh.GDP(mu=0.3), mh.PureDP(epsilon=0.2)], ids=str)
@pytest.mark.parametrize("number", [COUNTED, None], ids=["public", "secret"])
def test_noise_in_ranks_is_known_for_every_share_of_a_promise(promise, number):
    categories = categories_of(CATEGORIES, missing="drop")
    terms = Terms.checked(promise, number)
    for groups in (categories, ()):
        for q in (0.5, [0.1, 1]):
            arguments = (q, (0, 1000), terms, groups, "drop", 1.0)
            mechanism = group_quantiles("pay", *arguments)
            assert type(mechanism) is (GroupQuantiles if groups else QuantileSearch)
            assert mechanism.columns == ("pay",)
            strength = promise.mu if isinstance(promise, mh.GDP) else promise.epsilon
            each = mechanism.each if groups else mechanism
            scale = min(
                max(search.scale for row in one.recipe.searches for search in row)
                for one in each.contenders
            )
            assert rank_noise(*arguments) == pytest.approx(scale * strength)


@pytest.mark.slow
@pytest.mark.parametrize("promise", [mh.ZCDP(rho=0.02), mh.PureDP(epsilon=0.5)], ids=str)
@pytest.mark.parametrize("n", [3_000, None])
def test_intervals_and_rank_errors_of_groups_hold_as_often_as_they_say(promise, n):
    """400 releases of two groups at 90 %: 5.5 standard errors, a false alarm below 4e-8 each.

    Planted: of records three times as large they miss the quantiles more often than that.
    """
    rng = np.random.default_rng(2)
    data = {
        "pay": np.round(rng.gamma(2, 200, 3_000)),
        "sex": np.repeat(["f", "m"], [1_000, 2_000]),
    }
    truth = [np.sort(data["pay"][data["sex"] == sex]) for sex in ("f", "m")]
    held, careless, ranks = np.zeros(2), np.zeros(2), np.zeros(2)
    for _ in range(400):
        release = by_group(
            data, 0.3, by="sex", categories=None, groups=["f", "m"], n=n, privacy=promise, upper=5e3
        )
        error = release.rank_error(0.9)[0, 0]
        for place, values in enumerate(truth):
            exact = values[math.ceil(0.3 * len(values)) - 1]
            lower, upper = (end[place, 0] for end in release.interval(0.9))
            held[place] += lower <= exact <= upper
            careless[place] += lower <= 3 * exact <= upper
            low, high = between(values, 0.3, error)
            ranks[place] += low <= release[("f", "m")[place]].value[0] <= high
    allowed = 0.9 - 5.5 * math.sqrt(0.09 / 400)
    assert (held / 400 >= allowed).all()
    assert (ranks / 400 >= allowed).all()
    assert (careless / 400 < allowed).all()
