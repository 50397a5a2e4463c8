"""Sets of statistics for one promise: shares, errors as planned, targets, one charge."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import muhat as mh
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.protection import Protection
from muhat.planning.moments import CellMoments, free_count
from muhat.privacy import Neighbors, adding_up
from muhat.release.tables import csv_lines

PEOPLE = mh.Schema(
    {
        "salary": (0, 200_000),
        "age": (16, 90),
        "region": ["north", "south", "east"],
        "sex": ["f", "m"],
        "joined": mh.Bins([2000, 2010, 2020]),
    }
)
ASKED = [
    mh.Count(by=["region", "sex"]),
    mh.Mean("salary", by="region"),
    mh.Sum("age", by="sex"),
    mh.Variance("age"),
    mh.StandardDeviation("age", by="sex"),
    mh.Covariance(["salary", "age"]),
    mh.Correlation(["salary", "age"]),
    mh.Regression("salary ~ age"),
    mh.Quantile("salary", q=[0.25, 0.5, 0.75], by="sex"),
    mh.Queries(mh.workloads.prefix(2), columns="joined"),
]
PROMISES = [
    mh.PureDP(2.0),
    mh.ApproxDP(2.0, 1e-6),
    mh.ZCDP(0.5),
    mh.GDP(1.0),
    mh.RDP(alpha=8, epsilon=1.0),
]


def table(n: int = 3_000) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    age = rng.uniform(18, 80, n)
    return {
        "salary": np.clip(20_000 + 900 * age + rng.normal(0, 20_000, n), 0, 200_000),
        "age": age,
        "region": rng.choice(["north", "south", "east"], n),
        "sex": rng.choice(["f", "m"], n),
        "joined": rng.integers(2000, 2020, n),
    }


@pytest.mark.parametrize("n", [None, 3_000], ids=["secret", "public"])
@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_every_statistic_of_a_set_comes_out_under_every_promise(
    promise: Any, n: int | None
) -> None:
    plan = mh.plan(ASKED, schema=PEOPLE, privacy=promise, n=n)
    release = plan.release(table())
    assert [name for name, _ in release] == [asked.name for asked in ASKED]
    assert release.privacy == promise
    text, page = repr(release), release._repr_html_()
    for asked in ASKED:
        assert asked.name in text
        assert asked.name in page
        assert asked.name in plan.describe()
    again = mh.Release.from_json(release.to_json())
    assert repr(again) == text
    assert again.shares == release.shares == plan.spent
    report = release.report()
    assert all(str(each)[1:] in report for each in release.shares)  # the first has a capital


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_shares_are_exact_and_no_more_than_the_whole(promise: Any) -> None:
    plan = mh.plan(ASKED, schema=PEOPLE, privacy=promise, n=None)
    assert sum(part.share for part in plan.parts) <= 1
    (moments,) = [p.mechanism for p in plan.parts if isinstance(p.mechanism, CellMoments)]
    assert sum(moments.block_shares) <= 1
    assert all(isinstance(share, Fraction) for share in moments.block_shares)
    spent = [each.share for each in plan.spent]
    assert 1 - Fraction(len(spent), 10**8) < sum(spent) <= 1
    release = plan.release(table())
    with pytest.raises(mh.InvalidInput, match="more than the whole"):
        replace(release, shares=release.shares * 2)
    kind = NoiseKind.named_by(promise)
    shared = adding_up(promise, pure=kind is NoiseKind.PURE)
    assert Strength.of(shared, kind).keeps(promise)
    assert plan.shares.keys() == {asked.name for asked in ASKED}
    assert all(0 < share <= 1 for share in plan.shares.values())


@pytest.mark.parametrize("n", [None, 3_000], ids=["secret", "public"])
@pytest.mark.parametrize("promise", [mh.PureDP(1.0), mh.ZCDP(0.1)], ids=str)
def test_errors_are_those_that_were_planned(promise: Any, n: int | None) -> None:
    """Of 250 releases, 3 cells each: deviations within 7 of their standard errors (< 1e-9)."""
    asked = [mh.Count(by="region"), mh.Sum("age", by="region"), mh.Mean("salary", by="region")]
    plan = mh.plan(asked, schema=PEOPLE, privacy=promise, n=n)
    data = table()
    drawn = [[part.value for _, part in plan.release(data)] for _ in range(250)]
    values = np.array(drawn)[:, :, :]
    spread = np.sqrt(values.var(axis=0, ddof=1).mean(axis=1))
    sizes = [np.count_nonzero(data["region"] == name) for name in ("north", "south", "east")]
    room = 7 * math.sqrt(5 / (4 * 750))  # Laplace noise has a kurtosis of 6
    planned = [plan[each.name] for each in asked]
    for seen, expected in zip(spread[:2], planned[:2], strict=True):
        assert seen == pytest.approx(expected.standard_error, rel=room)
    # The mean's error is stated at the mean where it is largest, and is smaller elsewhere.
    most = planned[2].standard_error_at(min(sizes))
    assert spread[2] < most * (1 + room)
    assert spread[2] > most / 2.5


def test_the_mean_by_group_has_the_error_of_its_formula() -> None:
    """Secret n: shares as √3 to 1 for sums and counts; public n: 4 each, the count rides free."""
    asked = [mh.Mean("salary", by="region")]
    for n, variance in ((None, (1 + math.sqrt(3)) * (1 + 1 / math.sqrt(3))), (3_000, 8.0)):
        plan = mh.plan(asked, schema=PEOPLE, privacy=mh.GDP(1.0), n=n)
        error = plan["mean salary by region"].standard_error_at(100)
        assert error == pytest.approx(100_000 * math.sqrt(variance) / 100, rel=1e-3)


def test_a_missing_value_counts_for_no_statistic_of_its_column() -> None:
    data = table()
    data["age"] = np.where(data["sex"] == "f", np.nan, data["age"])
    asked = [mh.Count(by="sex"), mh.Mean("age", by="sex"), mh.Mean("salary", by="sex")]
    release = mh.plan(asked, schema=PEOPLE, privacy=mh.ZCDP(50.0), n=None).release(data)
    assert release["mean age by sex"].too_few.tolist() == [True, False]
    assert not release["mean salary by sex"].too_few.any()
    assert "too few" in repr(release)


@pytest.mark.parametrize("complete", [[], ["region"], ["region", "sex"]])
def test_only_columns_that_may_hold_other_values_leave_records_in_no_group(
    complete: list[str],
) -> None:
    schema = mh.Schema(
        {"salary": (0, 200_000), "region": ["north", "south", "east"], "sex": ["f", "m"]},
        complete=complete,
    )
    asked = [mh.Mean("salary", by=["region", "sex"])]
    release = mh.plan(asked, schema=schema, privacy=mh.ZCDP(1.0), n=None).release(table())
    said = repr(release)
    assert repr(mh.Release.from_json(release.to_json())) == said
    some = " or ".join(name for name in ("region", "sex") if name not in complete)
    assert (f"A record whose {some} is missing or not declared is in no group." in said) == (
        "in no group" in said
    )
    assert ("in no group" in said) == bool(some)
    for name in complete:
        assert f"Every {name} is one of those listed, as was declared" in said


def test_a_group_of_too_few_says_from_how_many_on_there_is_a_value() -> None:
    data = {"salary": [1.0] * 400, "region": ["north"] * 400}
    asked = [mh.Mean("salary", by="region"), mh.Quantile("salary", q=0.5, by="region")]
    schema = mh.Schema({"salary": (0, 2), "region": ["north", "south"]})
    release = mh.plan(asked, schema=schema, privacy=mh.ZCDP(0.1), n=None).release(data)
    mean, median = (release[each.name] for each in asked)
    least = math.ceil(5 * mean.recorded_error[0])
    assert f"Too few: fewer than {least:,} records by their noisy number" in repr(mean)
    least = math.ceil(max(5 * median.recorded_error[0, 0], median.rank_error().max() + 1))
    assert f"Too few: fewer than {least:,} values by their noisy number" in repr(median)
    written = [str(cell) for line in csv_lines(release.table()) for cell in line]
    assert "" in written
    assert {"nan", "None", "inf"}.isdisjoint(written)


def test_planning_together_has_less_error_than_apart() -> None:
    complete = mh.Schema({"salary": (0, 1), "a": [0, 1, 2], "b": [0, 1]}, complete=True)
    asked = [
        mh.Count(by=["a", "b"]),
        mh.Count(by="a"),
        mh.Count(),
        mh.Mean("salary", by="a"),
        mh.Mean("salary", by=["a", "b"]),
    ]
    plan = mh.plan(asked, schema=complete, privacy=mh.ZCDP(0.5), n=None)
    assert "less error than one by one" in plan.describe()
    assert plan.parts[0].mechanism.certificate.ratio > 1
    two = [mh.Count(by="a"), mh.Quantile("salary")]
    apart = mh.plan(two, schema=complete, privacy=mh.ZCDP(0.5), n=None)
    for each, overlap in ((plan, True), (apart, False)):
        assert (sum(each.shares.values()) > 1 + 1e-9) is overlap
        assert ("their shares overlap" in each.describe()) is overlap


@pytest.mark.parametrize("kind", ["zcdp", "gdp", "pure", "approx"])
def test_the_least_promise_for_targets_meets_them_and_no_smaller_one_does(kind: str) -> None:
    asked = [
        mh.Mean("salary", by="region", target={"standard_error": 500}, n_group=2_000),
        mh.Count(by=["region", "sex"], target={"standard_error": 5}),
        mh.Variance("age", target={"standard_error": 20}, n_group=1_000),
        mh.Mean("age"),
    ]
    delta = 1e-6 if kind == "approx" else None
    promise = mh.privacy_for(statistics=asked, schema=PEOPLE, n=None, kind=kind, delta=delta)
    plan = mh.plan(asked, schema=PEOPLE, privacy=promise, n=None)
    for each in asked[:3]:
        wished = each.target["standard_error"]
        assert plan[each.name].standard_error_at(each.n_group or 1) <= wished * (1 + 1e-6)
    with pytest.raises(mh.Impossible, match="least errors in their proportions"):
        mh.plan(asked, schema=PEOPLE, privacy=promise.part(Fraction(98, 100)), n=None)


def test_a_target_is_met_where_a_count_rides_free_beside_several_sums() -> None:
    wish = {"standard_error": 4_000.0}
    asked = [mh.Covariance(["salary", "age"], by="region", target=wish, n_group=1_000)]
    promise = mh.privacy_for(statistics=asked, schema=PEOPLE, n=3_000)
    plan = mh.plan(asked, schema=PEOPLE, privacy=promise, n=3_000)
    error = plan[asked[0].name].standard_error_at(1_000)
    assert error is not None
    assert 0.95 * wish["standard_error"] < error <= wish["standard_error"] * (1 + 1e-6)


@pytest.mark.parametrize("cells", [1, 2, 3])
def test_a_free_count_is_all_that_the_sums_beside_it_leave(cells: int) -> None:
    """Of all that a person with 3 records can do, the worst uses just what the sums have paid."""
    rows, sums = (
        3,
        [Strength(NoiseKind.NORMAL, Fraction(2)), Strength(NoiseKind.NORMAL, Fraction(1))],
    )
    paid = sum(each.squared for each in sums)
    replaced = [Protection(each, Neighbors.SUBSTITUTE, rows) for each in sums]
    count = free_count(replaced, cells)
    own = Strength.of(count.promise, NoiseKind.NORMAL).squared / Fraction(rows) ** 2
    beside = paid / (2 * rows) ** 2
    ways = [each for each in product(range(rows + 1), repeat=cells) if sum(each) <= rows]
    moved = [
        sum(beside * (a + b) ** 2 + own * (a - b) ** 2 for a, b in zip(one, other, strict=True))
        for one, other in product(ways, ways)
    ]
    assert max(moved) == paid


@pytest.mark.parametrize(("delta", "law"), [(1e-6, "laplace"), (0.02, "normal")])
def test_under_epsilon_and_delta_noise_has_the_law_of_least_error(delta: float, law: str) -> None:
    asked = [mh.Count(by=["region", "sex"]), mh.Mean("salary", by=["region", "sex"])]

    def errors(privacy: mh.Privacy) -> list[float]:
        plan = mh.plan(asked, schema=PEOPLE, privacy=privacy, n=None)
        return [plan[each.name].standard_error_at(1_000) for each in asked]

    approximate = mh.ApproxDP(1.0, delta)
    found, pure = errors(approximate), errors(mh.PureDP(1.0))
    normal = errors(adding_up(approximate, pure=False))
    best = pure if law == "laplace" else normal
    assert found == pytest.approx(best, rel=0.03)  # a little δ buys pure noise a little
    assert sum(np.square(found)) <= min(sum(np.square(pure)), sum(np.square(normal)))
    release = mh.plan(asked, schema=PEOPLE, privacy=approximate, n=None).release(table())
    # Counts that nothing else is read off have the least noise of that kind.
    least = "stairs" if law == "laplace" else law
    laws = [{one.law for one in release[each.name].moments.listed} for each in asked]
    assert laws == [{least}, {law}]
    assert release.privacy == approximate


def test_a_weight_makes_an_error_smaller() -> None:
    def error(weight: float) -> float:
        asked = [mh.Count(by="region", weight=weight), mh.Sum("age", by="sex")]
        plan = mh.plan(asked, schema=PEOPLE, privacy=mh.ZCDP(0.1), n=None)
        found = plan["count by region"].standard_error
        assert found is not None
        return found

    assert error(100.0) < error(1.0) < error(0.01)


def test_one_charge_for_all_and_a_refusal_that_says_what_to_change(tmp_path: Path) -> None:
    promise = mh.ZCDP(0.5)
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=promise, neighbors="add-remove")
    public = mh.plan(ASKED, schema=PEOPLE, privacy=promise)
    with pytest.raises(mh.InvalidInput, match="add-remove"):
        public.release(table(), ledger=ledger)
    plan = mh.plan(ASKED, schema=PEOPLE, privacy=promise, n=None)
    release = plan.release(table(), ledger=ledger)
    (entry,) = ledger.entries()
    assert entry.plan_digest == plan.digest == release.plan_digest
    with pytest.raises(mh.BudgetExceeded):
        plan.release(table(), ledger=ledger)


def test_bad_sets_are_refused_in_words_before_any_data() -> None:
    def plan(*asked: Any, **given: Any) -> Any:
        return mh.plan(list(asked), schema=PEOPLE, privacy=mh.ZCDP(0.5), **given)

    with pytest.raises(mh.InvalidInput, match="salary"):
        plan(mh.Mean("salry"))
    with pytest.raises(mh.InvalidInput, match="twice"):
        plan(mh.Count(), mh.Count())
    with pytest.raises(mh.InvalidInput, match="list of statistics"):
        plan()
    with pytest.raises(mh.InvalidInput, match="no part 'mean wage'"):
        plan(mh.Count(by="sex"), n=None)["mean wage"]
    with pytest.raises(mh.InvalidInput, match="column"):
        plan(mh.Count(by="sex"), n=None).release({"age": [1, 2]})


def test_a_plan_is_written_and_its_digest_decides_what_is_released() -> None:
    first = mh.plan(ASKED, schema=PEOPLE, privacy=mh.ZCDP(0.5), n=None)
    again = mh.plan(ASKED, schema=PEOPLE, privacy=mh.ZCDP(0.5), n=None)
    other = mh.plan(ASKED[:-1], schema=PEOPLE, privacy=mh.ZCDP(0.5), n=None)
    assert first.digest == again.digest != other.digest
    told = json.loads(json.dumps(first.to_dict()))
    assert [each["name"] for each in told["statistics"]] == [asked.name for asked in ASKED]


def test_hostile_values_come_out_as_finite_numbers() -> None:
    n = 500
    data = table(n)
    data["salary"][:6] = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324]
    data["region"][:3] = ["", "NORTH", "north "]
    release = mh.plan(ASKED, schema=PEOPLE, privacy=mh.ZCDP(0.5), n=n).release(data)
    assert np.isfinite(release["count by region and sex"].value).all()
    assert np.isfinite(release["mean salary by region"].value).all()


def test_values_that_nobody_declared_count_where_their_column_does_not() -> None:
    """An overall count beside one by region is that of all records, however it is planned."""
    n = 4_000
    data = table(n)
    data["region"][:1_500] = "atlantis"
    asked = [mh.Count(by="region"), mh.Count(), mh.Count(by=["region", "sex"]), mh.Mean("age")]
    for promise in (mh.ZCDP(20.0), mh.PureDP(40.0)):
        release = mh.plan(asked, schema=PEOPLE, privacy=promise, n=None).release(data)
        assert float(release["count"]) == pytest.approx(n, abs=20)
        assert release["count by region"].value.sum() == pytest.approx(n - 1_500, abs=20)
        assert release["count by region and sex"].value.shape == (6,)


def test_one_mean_by_several_columns_in_one_call() -> None:
    data, promise = table(), mh.ZCDP(5.0)
    groups = {"region": ["north", "south", "east"], "sex": ["f", "m"]}
    release = mh.mean(
        data,
        "salary",
        by=["region", "sex"],
        bounds=(0, 200_000),
        categories=groups,
        privacy=promise,
    )
    assert release.value.shape == (6,)
    assert release["north", "f"].value == pytest.approx(release.value[:1])
    plain = mh.mean(data, "salary", bounds=(0, 200_000), privacy=promise)
    assert float(plain) == pytest.approx(data["salary"].mean(), rel=0.05)
    named = mh.mean(data, bounds={"age": (16, 90)}, privacy=promise)
    assert named.columns == ("age",)
    with pytest.raises(mh.InvalidInput, match="bounds"):
        mh.mean(data, "salary", by=["sex"], categories=groups, privacy=promise)


@pytest.mark.parametrize("n", [None, 3_000], ids=["secret", "public"])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("complete", [True, False])
def test_no_certificate_says_that_a_plan_beats_what_is_possible(
    complete: bool, rows: int, n: int | None
) -> None:
    columns = {"a": (0, 1), "b": (-5, 9), "g": [1, 2, 3], "h": ["x", "y"]}
    unit = {"unit": "who", "max_rows": rows} if rows > 1 else {}
    number = None if rows > 1 else n
    schema = mh.Schema(columns, complete=complete, **unit)
    sets = [
        [mh.Count(by="g")],
        [mh.Count(), mh.Count(by="g"), mh.Count(by=["g", "h"])],
        [mh.Mean("a", by="g")],
        [mh.Mean("a", by="g"), mh.Mean("b", by="h"), mh.Variance("a")],
        [mh.Covariance(["a", "b"], by="h"), mh.Regression("a ~ b"), mh.Count(by="g")],
    ]
    for asked in sets:
        for promise in (mh.ZCDP(0.01), mh.GDP(0.3), mh.ApproxDP(1.0, 1e-6)):
            plan = mh.plan(asked, schema=schema, privacy=promise, n=number)
            for part in plan.parts:
                ratio = (
                    None if part.mechanism.certificate is None else part.mechanism.certificate.ratio
                )
                assert ratio is None or ratio >= 1 - 1e-9


@pytest.mark.parametrize("promise", [mh.ZCDP(1e9), mh.PureDP(1e6)], ids=str)
def test_tables_are_by_columns_in_the_order_asked_for(promise: Any) -> None:
    rng = np.random.default_rng(3)
    columns = {"a": [0, 1, 2], "b": [0, 1], "c": [0, 1, 2, 3]}
    data = {name: rng.integers(0, len(cells), 500) for name, cells in columns.items()}
    orders = [["a"], ["b", "a"], ["c", "a", "b"], ["a", "b"], ["b", "c"]]
    asked = [mh.Count(by=order) for order in orders]
    release = mh.plan(asked, schema=mh.Schema(columns), privacy=promise, n=None).release(data)
    for each in asked:
        exact = np.zeros([len(columns[name]) for name in each.by])
        np.add.at(exact, tuple(data[name] for name in each.by), 1)
        assert release[each.name].value.ravel() == pytest.approx(exact.ravel(), abs=0.1)
