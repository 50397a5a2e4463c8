"""Sets of statistics about people with several rows."""

from __future__ import annotations

import math
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import muhat as mh

COLUMNS = {"pay": (0, 100), "year": [2020, 2021, 2022, 2023], "sex": ["f", "m"]}
PEOPLE = mh.Schema(COLUMNS, unit="person", max_rows=2)
ASKED = [
    mh.Count(),
    mh.Count(by="sex"),
    mh.Mean("pay", by="year"),
    mh.Quantile("pay", by="sex"),
    mh.Queries(mh.workloads.prefix(4), columns="year"),
]


def table(people: int = 500, rows: int = 4) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    n = people * rows
    return {
        "person": np.repeat(np.arange(people), rows),
        "pay": np.repeat(rng.uniform(20, 60, people), rows) + rng.normal(0, 2, n),
        "year": np.tile([2020, 2021, 2022, 2023][:rows], people),
        "sex": np.repeat(rng.choice(["f", "m"], people), rows),
    }


@pytest.mark.parametrize("n", ["counted", None])
@pytest.mark.parametrize("promise", [mh.ZCDP(50.0), mh.PureDP(200.0)], ids=str)
def test_at_most_so_many_rows_of_a_person_enter(promise: Any, n: Any) -> None:
    given = {} if n == "counted" else {"n": None}
    plan = mh.plan(ASKED, schema=PEOPLE, privacy=promise, **given)
    release = plan.release(table())
    assert float(release["count"]) == pytest.approx(1_000, abs=20)
    assert release["count by sex"].value.sum() == pytest.approx(1_000, abs=20)
    assert release["mean pay by year"].value == pytest.approx(40, abs=3)
    assert release["quantile pay by sex"].value.ravel() == pytest.approx(40, abs=6)
    assert release.n is None
    assert '"n": null' in release.to_json()
    assert release.unit == mh.Release.from_json(release.to_json()).unit == "person"
    assert "each person, with all of its rows" in release.report()
    alone = mh.plan(ASKED[:1], schema=PEOPLE, privacy=promise, **given).release(table())
    assert mh.Release.from_json(alone.to_json()).unit == "person"
    assert "all rows of one person" in plan.describe()
    assert "at most 2 rows of each person enter" in plan.describe()


def test_one_person_with_most_rows_moves_little() -> None:
    data = table()
    crowd = {
        name: np.concatenate([values, values[:1].repeat(50_000)]) for name, values in data.items()
    }
    crowd["pay"][2_000:] = 100.0
    plan = mh.plan([mh.Count(), mh.Mean("pay")], schema=PEOPLE, privacy=mh.ZCDP(500.0), n=None)
    for given in (data, crowd):
        release = plan.release(given)
        assert float(release["count"]) == pytest.approx(1_000, abs=5)
        assert float(release["mean pay"]) == pytest.approx(40, abs=2)


def test_the_account_is_about_people(tmp_path: Path) -> None:
    promise = mh.ZCDP(0.5)
    rows = mh.Ledger.create(tmp_path / "rows.db", budget=promise, neighbors="add-remove")
    people = mh.Ledger.create(
        tmp_path / "people.db", budget=promise, neighbors="add-remove", unit="person"
    )
    plan = mh.plan([mh.Count(by="sex")], schema=PEOPLE, privacy=promise, n=None)
    plan.release(table(), ledger=people)
    (entry,) = people.entries()
    assert entry.unit.column == "person"
    alone = mh.plan([mh.Count()], schema=mh.Schema(COLUMNS), privacy=promise, n=None)
    with pytest.raises(mh.InvalidInput, match="person"):
        alone.release(table(), ledger=people)
    alone.release(table(), ledger=rows)


def test_means_of_people_are_of_one_record_each() -> None:
    """A person with many rows counts once, and its sensitivity is that of one record."""
    data = table()
    more = {name: np.append(values, values[:4].repeat(100)) for name, values in data.items()}
    schema = mh.Schema(COLUMNS, unit="person", max_rows=4)
    asked = [mh.Mean("pay", per="unit"), mh.Mean("pay")]
    plan = mh.plan(asked, schema=schema, privacy=mh.ZCDP(200.0), n=None)
    release = plan.release(more)
    first = plan.parts[0].mechanism.blocks[0].protection.contributions
    assert {part.mechanism.blocks[0].protection.contributions for part in plan.parts} == {1, 4}
    assert first in (1, 4)
    people = np.array([data["pay"][data["person"] == each].mean() for each in range(500)])
    assert float(release["mean pay per unit"]) == pytest.approx(people.mean(), abs=0.5)
    assert release["mean pay per unit"].recorded == pytest.approx([500], abs=10)


@pytest.mark.parametrize("promise", [mh.PureDP(30.0), mh.ZCDP(200.0)], ids=str)
@pytest.mark.parametrize("n", [None, "counted"])
def test_people_are_counted_once_however_many_rows_they_have(promise: Any, n: str | None) -> None:
    """Noise of one record a person: less than 3 here, but for a chance below 1e-9."""
    data = table()
    more = {name: np.append(values, values[:4].repeat(100)) for name, values in data.items()}
    schema = mh.Schema(COLUMNS, unit="person", max_rows=4)
    number = {"n": None} if n is None else {}
    plan = mh.plan([mh.Count(per="unit")], schema=schema, privacy=promise, **number)
    assert {block.protection.contributions for block in plan.parts[0].mechanism.blocks} == {1}
    assert float(plan.release(more)) == pytest.approx(500, abs=3)


def test_people_are_independent_draws_where_each_has_one_record_in_a_group() -> None:
    """Rows of different years are in different groups by year, and together in the others."""
    schema = mh.Schema(COLUMNS, unit="person", max_rows=3, one_row_per="year")
    asked = [mh.Mean("pay", by="year"), mh.Mean("pay"), mh.Mean("pay", per="unit")]
    release = mh.plan(asked, schema=schema, privacy=mh.ZCDP(50.0), n=None).release(table())
    by_year, overall, people = (part for _, part in release)
    for each in (by_year, people):
        lower, upper = each.interval(target="population")
        assert (lower < 40).all()
        assert (upper > 38).all()
    assert mh.Release.from_json(by_year.to_json()).has_population
    with pytest.raises(mh.InvalidInput, match="several in a group"):
        overall.interval(target="population")


def test_bad_units_are_refused_before_anything_is_spent() -> None:
    promise = mh.ZCDP(0.5)
    with pytest.raises(mh.InvalidInput, match="no public number"):
        mh.plan([mh.Count()], schema=PEOPLE, privacy=promise, n=2_000)
    plan = mh.plan([mh.Count(by="sex")], schema=PEOPLE, privacy=promise, n=None)
    without = {name: values for name, values in table().items() if name != "person"}
    with pytest.raises(mh.InvalidInput, match="person"):
        plan.release(without)


def test_rows_in_different_groups_cost_a_root() -> None:
    """Four rows of a person, one a year: by year √4 times one row's noise, without it 4 times."""
    asked = [mh.Count(by="year")]
    promise = mh.GDP(1.0)

    def error(rows: int, each: str | None) -> float:
        schema = mh.Schema(COLUMNS, unit="person", max_rows=rows, one_row_per=each)
        plan = mh.plan(asked, schema=schema, privacy=promise, n=None)
        found = plan["count by year"].standard_error
        assert found is not None
        return found

    assert error(4, None) == pytest.approx(4 * error(1, None), rel=1e-6)
    assert error(4, "year") == pytest.approx(2 * error(1, None), rel=1e-6)


@pytest.mark.parametrize("n", ["counted", None])
def test_at_most_one_row_of_a_person_enters_for_every_year(n: Any) -> None:
    data = {name: np.append(values, values[:2].repeat(500)) for name, values in table().items()}
    schema = mh.Schema(COLUMNS, unit="person", max_rows=4, one_row_per="year")
    given = {} if n == "counted" else {"n": None}
    asked = [mh.Count(by="year"), mh.Mean("pay", by=["year", "sex"]), mh.Mean("pay")]
    release = mh.plan(asked, schema=schema, privacy=mh.ZCDP(500.0), **given).release(data)
    assert release["count by year"].value == pytest.approx(500, abs=5)


def test_survey_weights_make_means_and_sums_of_two_columns() -> None:
    rng, n = np.random.default_rng(8), 4_000
    pay, share = rng.uniform(10, 90, n), rng.uniform(0.5, 2.0, n)
    pay = np.where(share > 1.25, pay / 2, pay)
    schema = mh.Schema({"pay": (0, 100), "share": (0, 2)})
    asked = [mh.Mean("pay", weight_column="share"), mh.Sum("pay", weight_column="share")]
    for number in (None, n):
        plan = mh.plan(asked, schema=schema, privacy=mh.ZCDP(50.0), n=number)
        release = plan.release({"pay": pay, "share": share})
        mean, total = release["mean pay weighted by share"], release["sum pay weighted by share"]
        assert float(mean) == pytest.approx((share @ pay) / share.sum(), abs=0.2)
        assert float(total) == pytest.approx(share @ pay, rel=0.01)
        lower, upper = mean.interval(target="population")
        assert lower[0] < float(mean) < upper[0]
        assert "independent draws of pairs" in repr(mean)


@pytest.mark.parametrize("rows", [1, 2, 4, 5])
def test_no_certificate_is_better_than_the_best_where_rows_lie_in_different_groups(
    rows: int,
) -> None:
    schema = mh.Schema(COLUMNS, unit="person", max_rows=rows, one_row_per="year", complete=True)
    for asked in ([mh.Mean("pay", by=["year", "sex"])], [mh.Count(by="year"), mh.Mean("pay")]):
        plan = mh.plan(asked, schema=schema, privacy=mh.ZCDP(0.01), n=None)
        assert plan.parts[0].mechanism.certificate.ratio >= 1


def test_counts_of_rows_in_different_years_move_as_far_as_is_proved() -> None:
    """tr √S of j rows in different ones of 4 years, beside that of one row: all tables at once."""
    years, sexes = 4, 2

    def added(cells: Any) -> np.ndarray:
        table = np.zeros((years, sexes))
        for cell in cells:
            table[cell] += 1
        weighted = [table.ravel(), 2 * table.sum(1), 0.5 * table.sum(0), [3 * table.sum()]]
        return np.concatenate(weighted)

    def nuclear(j: int) -> float:
        ways = [
            added(zip(chosen, of, strict=True))
            for chosen in combinations(range(years), j)
            for of in product(range(sexes), repeat=j)
        ]
        moved = np.mean([np.outer(way, way) for way in ways], axis=0)
        return float(np.sqrt(np.maximum(np.linalg.eigvalsh(moved), 0)).sum())

    for j in (1, 2, 3):
        assert nuclear(j) >= math.sqrt(j * (years - j) / (years - 1)) * nuclear(1) * (1 - 1e-9)


def test_quantiles_of_rows_in_different_groups_cost_a_root() -> None:
    """Four rows of a person, one a year: by year √4 times one row's noise, elsewhere 4 times."""

    def scale(asked: mh.Quantile, rows: int, each: str | None, n: Any) -> float:
        schema = mh.Schema(COLUMNS, unit="person", max_rows=rows, one_row_per=each)
        plan = mh.plan([asked], schema=schema, privacy=mh.GDP(1.0), **n)
        return float(plan.parts[0].mechanism.recipe.searches[0][0].scale)

    for n in ({}, {"n": None}):
        for asked in (mh.Quantile("pay", by="year"), mh.Quantile("pay", by=["sex", "year"])):
            one = scale(asked, 1, None, n)
            assert scale(asked, 4, None, n) == pytest.approx(4 * one, rel=1e-6)
            assert scale(asked, 4, "year", n) == pytest.approx(2 * one, rel=1e-6)
        for asked in (mh.Quantile("pay"), mh.Quantile("pay", by="sex")):
            assert scale(asked, 4, "year", n) == scale(asked, 4, None, n)


@pytest.mark.parametrize("n", ["counted", None])
def test_all_statistics_are_of_the_same_rows(n: Any) -> None:
    """Of six rows a person two enter: which, shows in every table, and two tables agree on it."""
    rng = np.random.default_rng(4)
    people, rows = 60, 6
    data = {
        "person": np.repeat(np.arange(people), rows),
        "pay": rng.uniform(0, 100, people * rows),
        "year": rng.choice([2020, 2021, 2022, 2023], people * rows),
        "sex": rng.choice(["f", "m"], people * rows),
    }
    running = mh.workloads.kron(mh.workloads.prefix(4), mh.workloads.identity(2))
    asked = [
        mh.Count(by=["year", "sex"]),
        mh.Queries(running, columns=["year", "sex"]),
        mh.Quantile("pay", by=["year", "sex"]),
        mh.Sum("pay", per="unit"),
        mh.Sum("pay"),
    ]
    given = {} if n == "counted" else {"n": None}
    for each in (None, "year"):
        schema = mh.Schema(COLUMNS, unit="person", max_rows=2, one_row_per=each)
        plan = mh.plan(asked, schema=schema, privacy=mh.ZCDP(1e12), **given)
        release = plan.release(data)
        counts, queries, quantiles, people_sum, row_sum = (release[one.name] for one in asked)
        exact = np.rint(counts.value.ravel())
        assert exact.sum() == pytest.approx(2 * people, abs=2)
        sums = exact.reshape(4, 2).cumsum(axis=0).ravel()
        assert np.rint(queries.value).tolist() == sums.tolist()
        recorded = [part.recorded[0] for _, part in quantiles]
        assert np.rint(recorded).tolist() == exact.tolist()
        # A sum of a person's rows is clipped to the bounds of the column, so it is no more.
        assert float(people_sum) <= float(row_sum) + 1


def test_rows_of_one_year_are_chosen_from_for_quantiles_and_queries_too() -> None:
    """Everybody has 500 rows of one year and one of another: one of each enters."""
    people = 200
    year = np.tile([2020] * 50 + [2021], people)
    data = {
        "person": np.repeat(np.arange(people), 51),
        "pay": np.where(year == 2020, 10.0, 90.0),
        "year": year,
        "sex": ["f"] * len(year),
    }
    schema = mh.Schema(COLUMNS, unit="person", max_rows=2, one_row_per="year")
    cells = mh.workloads.identity(4)
    for asked in (mh.Quantile("pay", 0.25), mh.Queries(cells, columns="year")):
        release = mh.plan([asked], schema=schema, privacy=mh.ZCDP(1e6), n=None).release(data)
        if isinstance(asked, mh.Queries):
            assert release.value == pytest.approx([200, 200, 0, 0], abs=1)
        else:
            assert release.recorded == pytest.approx([400], abs=1)
    low, high = (
        mh.plan([mh.Quantile("pay", q)], schema=schema, privacy=mh.ZCDP(1e6), n=None).release(data)
        for q in (0.4, 0.6)
    )
    assert (float(low), float(high)) == pytest.approx((10, 90), abs=0.1)


def test_a_set_reads_the_data_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from muhat.data import base

    times = []
    fold = base.fold_partitions

    def counted(source: Any, accumulator: Any) -> Any:
        times.append(type(source).__name__)
        return fold(source, accumulator)

    monkeypatch.setattr(base, "fold_partitions", counted)
    asked = [*ASKED, mh.Variance("pay"), mh.Mean("pay", by="sex")]
    mh.plan(asked, schema=mh.Schema(COLUMNS), privacy=mh.ZCDP(5.0), n=None).release(table())
    assert len(times) == 1
    times.clear()
    mh.plan(asked, schema=PEOPLE, privacy=mh.ZCDP(5.0), n=None).release(table())
    # What enters is kept, and added up in a second pass that reads nothing.
    assert times[1:] == ["PeopleHere"]
    times.clear()
    both = [*asked, mh.Mean("pay", per="unit")]
    mh.plan(both, schema=PEOPLE, privacy=mh.ZCDP(5.0), n=None).release(table())
    assert sorted(times[1:]) == ["PeopleHere", "RecordsHere"]
