"""What nobody knows is learnt for a part of the promise: groups, and the rows of a person."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import muhat as mh
from muhat.errors import Impossible, InvalidInput
from muhat.mechanisms.learning.selection import ConcentratedRule, OptimalRule, ThresholdRule
from muhat.noise.kinds import NoiseKind, Strength
from muhat.planning.learnt import ROWS_SHARE, SELECTION_SHARE, LearntFirst
from muhat.privacy import adding_up

SCHEMA = mh.Schema({"salary": (0, 200_000), "region": "learn", "sex": ["f", "m"]})
ASKED = [
    mh.Count(by=["region", "sex"]),
    mh.Mean("salary", by="region"),
    mh.Variance("salary", by="sex"),
    mh.Quantile("salary", by="region"),
]
PROMISE = mh.ApproxDP(epsilon=2.0, delta=1e-6)
PROMISES = [
    mh.PureDP(2.0),
    mh.ApproxDP(2.0, 1e-6),
    mh.ZCDP(0.5),
    mh.GDP(1.0),
    mh.RDP(alpha=8, epsilon=1.0),
]
ZCDP = mh.ApproxZCDP(rho=0.5, delta=1e-6)
RARE = "canary street 7"


def table(n: int = 3_000, people: int = 1_000) -> dict[str, Any]:
    rng = np.random.default_rng(8)
    region = rng.choice(["north", "south"], n).tolist()
    region[17] = RARE
    return {
        "salary": rng.uniform(10_000, 90_000, n),
        "region": region,
        "sex": rng.choice(["f", "m"], n),
        "person": np.arange(n) % people,
    }


def with_rows(rows: Any, **columns: Any) -> mh.Schema:
    known = {"salary": (0, 200_000), "sex": ["f", "m"]}
    return mh.Schema({**known, **columns}, unit="person", max_rows=rows)


def learning(plan: mh.Plan) -> LearntFirst:
    (part,) = plan.parts
    assert isinstance(part.mechanism, LearntFirst)
    return part.mechanism


@pytest.mark.parametrize("n", [None, 3_000], ids=["secret", "public"])
@pytest.mark.parametrize("promise", [PROMISE, ZCDP], ids=str)
def test_groups_are_found_and_rare_values_are_in_nothing_that_comes_out(
    promise: Any, n: int | None
) -> None:
    plan = mh.plan(ASKED, schema=SCHEMA, privacy=promise, n=n)
    release = plan.release(table())
    assert [name for name, _ in release] == [asked.name for asked in ASKED]
    assert release["mean salary by region"].labels == (("north", "south"),)
    assert release["count by region and sex"].value == pytest.approx(750, abs=150)
    assert release["variance salary by sex"].groups == ("f", "m")
    written = release.to_json()
    shown = [repr(release), release._repr_html_(), release.describe(), written, plan.describe()]
    assert not any(RARE in text for text in shown)
    assert "too few people have are left out" in repr(release)
    assert repr(mh.Release.from_json(written)) == repr(release)
    assert release.privacy == promise


def test_what_is_planned_does_not_depend_on_the_groups_there_will_be() -> None:
    from muhat.statistics.declared import Labels

    for n in (None, 3_000):
        mechanism = learning(mh.plan(ASKED, schema=SCHEMA, privacy=PROMISE, n=n))
        told = {each.name: each for each in mechanism.statistics()}
        for groups in (1, 2, 500):
            labels = Labels(tuple(f"group {place}" for place in range(groups)))
            found = mechanism.planned_for(1, {"region": labels})
            for each in found.statistics:
                assert each.error == pytest.approx(told[each.name].error, rel=1e-9)
                assert told[each.name].share == pytest.approx(each.share * 0.9)


@pytest.mark.parametrize("given", [{"n": None}, {}], ids=["secret", "public"])
def test_nor_where_a_person_has_one_row_in_a_group(given: dict[str, Any]) -> None:
    from muhat.statistics.declared import Labels

    columns = {"salary": (0, 200_000), "region": "learn", "sex": ["f", "m"]}
    schema = mh.Schema(columns, unit="person", max_rows=20, one_row_per="region")
    mechanism = learning(mh.plan(ASKED, schema=schema, privacy=PROMISE, **given))
    told = [each.error for each in mechanism.statistics()]
    for groups in (1, 500):
        labels = Labels(tuple(f"group {place}" for place in range(groups)))
        found = mechanism.planned_for(20, {"region": labels}).statistics
        assert [each.error for each in found] == pytest.approx(told, rel=1e-9)
    release = mechanism.read(mechanism.open(table(30_000, 10_000), None))
    assert release[0].labels == (("north", "south"), ("f", "m"))


def test_a_value_of_one_person_is_shown_as_often_as_delta_allows() -> None:
    """Of 1,000 selections: within 5.5 deviations of π(1), two kinds of people, < 1e-7."""
    promise = mh.ApproxDP(epsilon=1.0, delta=0.3)
    plan = mh.plan([mh.Count(by="region")], schema=SCHEMA, privacy=promise, n=None)
    mechanism = learning(plan)
    source = mechanism.open({"salary": np.ones(3), "region": ["a", "b", "b"]}, None)
    drawn = [mechanism._learn_groups(source, 1)[0]["region"] for _ in range(1_000)]
    first = float(mechanism.rule(1).probability(1))
    assert first == pytest.approx(0.03)
    for value, chance in (("a", first), ("b", float(mechanism.rule(1).probability(2)))):
        seen = sum(value in found for found in drawn) / len(drawn)
        assert abs(seen - chance) <= 5.5 * np.sqrt(chance * (1 - chance) / len(drawn))


def test_a_file_that_changes_meanwhile_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from muhat.data.values import ValueSource

    path = tmp_path / "some.csv"
    path.write_text("salary,region\n" + "100,north\n" * 300)
    read = ValueSource.people

    def changed(self: ValueSource) -> dict[Any, int]:
        found = read(self)
        path.write_text("salary,region\n" + "100,north\n" * 301)
        return found

    monkeypatch.setattr(ValueSource, "people", changed)
    plan = mh.plan([mh.Count(by="region")], schema=SCHEMA, privacy=PROMISE, n=None)
    with pytest.raises(mh.DataChanged):
        plan.release(path)


@pytest.mark.parametrize("rows", [1, 4])
def test_steps_together_are_no_more_than_the_promise(rows: int) -> None:
    schema = with_rows(rows, region="learn", street="learn")
    asked = [mh.Count(by="region"), mh.Count(by="street")]
    mechanism = learning(mh.plan(asked, schema=schema, privacy=PROMISE, n=None))
    rule = mechanism.rule(rows)
    assert isinstance(rule, OptimalRule if rows == 1 else ThresholdRule)
    assert rule.values == rows
    epsilon, delta = (2 * number for number in (rule.epsilon, rule.delta))
    rest = mechanism.planned_for(rows)
    assert epsilon + Fraction(str(rest.privacy.epsilon)) <= 2
    assert delta + Fraction(repr(rest.privacy.delta)) <= Fraction("1e-6")
    assert epsilon == pytest.approx(2 * float(SELECTION_SHARE))
    replaced = learning(mh.plan(asked, schema=schema, privacy=PROMISE))
    assert replaced.rule(rows).values == 2 * rows


@pytest.mark.parametrize("n", [{}, {"n": None}], ids=["public", "secret"])
@pytest.mark.parametrize("rows", [3, "learn"])
def test_steps_under_approximate_zcdp_are_no_more_than_the_promise(rows: Any, n: Any) -> None:
    schema = with_rows(rows, region="learn", street="learn")
    asked = [mh.Count(by="region"), mh.Count(by="street"), mh.Mean("salary", by="sex")]
    mechanism = learning(mh.plan(asked, schema=schema, privacy=ZCDP, **n))
    rule, rest = mechanism.rule(3), mechanism.planned_for(3)
    assert isinstance(rule, ConcentratedRule)
    assert (rule.values, rule.rows) == (6 if not n else 3, 3)
    taken = 2 * rule.rho + Fraction(str(rest.privacy.rho))
    if mechanism.search is not None:
        taken += mechanism.search.strength_squared / 2
    assert Fraction("0.499999") < taken <= Fraction("0.5")
    assert rest.privacy.leak == 0
    assert 2 * rule.delta <= Fraction("1e-6")
    assert any("with all of delta" in note for note in mechanism.notes())


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_the_search_for_rows_and_the_rest_share_one_promise(promise: Any) -> None:
    plan = mh.plan([mh.Count(by="sex")], schema=with_rows("learn"), privacy=promise, n=None)
    mechanism = learning(plan)
    kind = NoiseKind.named_by(promise)
    whole = Strength.of(adding_up(promise, pure=kind is NoiseKind.PURE), kind)
    rest = Strength.of(mechanism.planned_for(1).privacy, kind)
    assert mechanism.search is not None
    search = Strength(kind, mechanism.search.strength_squared)
    if kind is NoiseKind.NORMAL:
        assert search.squared + rest.squared <= whole.squared
        assert search.squared / whole.squared == ROWS_SHARE
    else:
        assert search.squared == (ROWS_SHARE**2) * whole.squared
        assert rest.squared <= (1 - ROWS_SHARE) ** 2 * whole.squared


@pytest.mark.parametrize("n", ["counted", None])
@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_rows_of_a_person_are_learnt_under_every_promise(promise: Any, n: Any) -> None:
    """All have 3; another number is found with a probability below 1e-7, and Laplace noise."""
    given = {} if n == "counted" else {"n": None}
    asked = [mh.Count(by="sex"), mh.Mean("salary"), mh.Quantile("salary")]
    plan = mh.plan(asked, schema=with_rows("learn"), privacy=promise, **given)
    release = plan.release(table(30_000, 10_000))
    assert release.contributions == 3
    assert "max_rows = 3 was learnt privately" in repr(release)
    assert repr(mh.Release.from_json(release.to_json())) == repr(release)
    told = plan.describe()
    assert "For max_rows = 1, 2, 4, 8: count by sex ±" in told
    assert json.loads(json.dumps(plan.to_dict()))["rows_share"] == "1/20"


def test_a_person_with_many_rows_does_not_widen_everybodys_noise() -> None:
    data = table(1_000, 1_000)
    more = {name: np.concatenate([each, [each[0]] * 5_000]) for name, each in data.items()}
    plan = mh.plan([mh.Count()], schema=with_rows("learn"), privacy=mh.ZCDP(1.0), n=None)
    release = plan.release(more)
    assert release.contributions == 1
    assert float(release) == pytest.approx(1_000, abs=20)


@pytest.mark.parametrize("people", [20, 2_000])
def test_more_rows_than_people_have_are_seldom_found(people: int) -> None:
    """At most one search in 20, of 400: more than 60 with a probability below 1e-10."""
    plan = mh.plan([mh.Count()], schema=with_rows("learn"), privacy=mh.ZCDP(0.01), n=None)
    mechanism = learning(plan)
    source = mechanism.open(table(3 * people, people), None)
    found = [mechanism._learn_rows(source) for _ in range(400)]
    assert sum(rows > 3 for rows in found) <= 60
    if people == 20:
        assert np.median(found) == 1
    else:
        assert np.median(found) == 3


def test_both_are_learnt_for_one_promise() -> None:
    schema = with_rows("learn", region="learn")
    asked = [mh.Count(by="region"), mh.Mean("salary", by=["region", "sex"])]
    plan = mh.plan(asked, schema=schema, privacy=mh.ApproxDP(4.0, 1e-6), n=None)
    release = plan.release(table(30_000, 10_000))
    assert release.contributions == 3
    assert release["count by region"].groups == ("north", "south")
    assert all(share < 0.9 * 0.95 for share in plan.shares.values())
    assert "learnt" in plan.describe()
    assert plan._repr_html_()


def test_where_no_value_is_kept_there_are_no_groups_and_it_says_so() -> None:
    few = {name: each[:4] for name, each in table().items()}
    release = mh.plan(ASKED, schema=SCHEMA, privacy=PROMISE, n=None).release(few)
    for name in ("count by region and sex", "quantile salary by region"):
        assert release[name].failed
        assert release[name].groups == ()
        assert release[name].value.size == 0
    assert release["variance salary by sex"].value.shape == (2,)
    assert "no value of region was found that enough people have" in repr(release)
    assert repr(mh.Release.from_json(release.to_json())) == repr(release)
    assert list(release["mean salary by region"].table()) == ["region", "value"]


@pytest.mark.parametrize("values", [[3, 7, 7], [0.5, 2.0, 2.0], [True, False, False]])
@pytest.mark.parametrize("kind", [list, np.array])
def test_numbers_and_booleans_are_groups_too(values: list[Any], kind: Any) -> None:
    data = {"salary": np.arange(3_000.0), "region": kind(values * 1_000)}
    asked = [mh.Count(by="region")]
    release = mh.plan(asked, schema=SCHEMA, privacy=PROMISE, n=None).release(data)
    assert release.groups == tuple(sorted(set(values)))
    assert release.value == pytest.approx(
        [1_000 * values.count(each) for each in sorted(set(values))], abs=100
    )


@pytest.mark.parametrize("promise", [mh.PureDP(1.0), mh.ZCDP(0.5), mh.GDP(1.0)], ids=str)
def test_no_promise_without_a_delta_shows_a_value_that_nobody_listed(promise: Any) -> None:
    with pytest.raises(Impossible, match=r"takes a delta.*mh\.ApproxDP"):
        mh.plan(ASKED, schema=SCHEMA, privacy=promise, n=None)


def test_columns_that_nobody_asks_for_need_not_be_learnt() -> None:
    plan = mh.plan([mh.Mean("salary", by="sex")], schema=SCHEMA, privacy=mh.ZCDP(0.5), n=None)
    assert plan.release(table()).groups == ("f", "m")


def test_refusals_are_sentences_and_cost_nothing(tmp_path: Path) -> None:
    schema = with_rows("learn")
    wished = [mh.Count(target={"standard_error": 5.0})]
    with pytest.raises(InvalidInput, match="give max_rows a number"):
        mh.plan(wished, schema=schema, privacy=PROMISE, n=None)
    queries = [mh.Queries(mh.workloads.prefix(2), columns="sex", by="region")]
    with pytest.raises(InvalidInput, match="List them in"):
        mh.plan(queries, schema=SCHEMA, privacy=PROMISE, n=None)
    ledger = mh.Ledger.create(tmp_path / "ledger.db", budget=PROMISE, neighbors="add-remove")
    plan = mh.plan(ASKED, schema=SCHEMA, privacy=PROMISE, n=None)
    for lacking in ("region", "salary"):
        data = {name: each for name, each in table().items() if name != lacking}
        with pytest.raises(InvalidInput, match="not in the data"):
            plan.release(data, ledger=ledger)
    assert not any(ledger.spent.amounts)
    plan.release(table(), ledger=ledger)
    with pytest.raises(mh.BudgetExceeded):
        plan.release(table(), ledger=ledger)


def test_the_whole_promise_is_charged_before_a_value_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from muhat.data.values import ValueSource

    ledger = mh.Ledger.create(tmp_path / "ledger.db", budget=PROMISE, neighbors="add-remove")
    seen = []

    def people(self: ValueSource) -> dict[Any, int]:
        seen.append(tuple(ledger.spent.amounts))
        raise mh.SourceFailed("the data could not be read to the end.")

    monkeypatch.setattr(ValueSource, "people", people)
    with pytest.raises(mh.SourceFailed):
        mh.plan(ASKED, schema=SCHEMA, privacy=PROMISE, n=None).release(table(), ledger=ledger)
    assert seen == [PROMISE.amounts]


def test_the_digest_is_of_all_that_decides() -> None:
    plans = [
        mh.plan(ASKED, schema=SCHEMA, privacy=PROMISE, n=None),
        mh.plan(ASKED[:2], schema=SCHEMA, privacy=PROMISE, n=None),
        mh.plan([mh.Count()], schema=with_rows("learn"), privacy=PROMISE, n=None),
        mh.plan([mh.Count()], schema=with_rows(3), privacy=PROMISE, n=None),
    ]
    assert len({plan.digest for plan in plans}) == 4
    assert plans[0].digest == mh.plan(ASKED, schema=SCHEMA, privacy=PROMISE, n=None).digest
    json.dumps(plans[0].to_dict(), allow_nan=False)


def test_learnt_groups_have_the_errors_that_were_planned() -> None:
    """Of 100 releases, two groups each: deviations within 7 of their standard errors (< 1e-9)."""
    plan = mh.plan([mh.Count(by="region")], schema=SCHEMA, privacy=PROMISE, n=None)
    data = table()
    drawn = np.array([plan.release(data).value for _ in range(100)])
    spread = float(np.sqrt(drawn.var(axis=0, ddof=1).mean()))
    expected = plan["count by region"].standard_error
    assert spread == pytest.approx(expected, rel=7 / np.sqrt(2 * 200))


@pytest.mark.parametrize("kind", ["approx", "approx_zcdp"])
def test_the_least_promise_for_targets_pays_for_learning_groups_first(kind: str) -> None:
    asked = [
        mh.Count(by="region", target={"standard_error": 5}),
        mh.Mean("salary", by="sex", target={"standard_error": 500}, n_group=2_000),
        mh.Quantile("salary", by="region"),
    ]
    promise = mh.privacy_for(statistics=asked, schema=SCHEMA, n=None, kind=kind, delta=1e-6)
    plan = mh.plan(asked, schema=SCHEMA, privacy=promise, n=None)
    assert plan["count by region"].standard_error == pytest.approx(5, rel=1e-5)
    assert plan["mean salary by sex"].standard_error_at(2_000) == pytest.approx(500, rel=1e-5)
    with pytest.raises(Impossible, match="the targets need"):
        mh.plan(asked, schema=SCHEMA, privacy=promise.part(Fraction(99, 100)), n=None)
    with pytest.raises(Impossible, match="ApproxZCDP"):
        mh.privacy_for(statistics=asked, schema=SCHEMA, n=None, kind="zcdp")
    with pytest.raises(InvalidInput, match="no statistic has a target"):
        mh.privacy_for(statistics=ASKED, schema=SCHEMA, n=None, kind=kind, delta=1e-6)


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
def test_targets_of_people_are_met_however_many_rows_are_learnt(kind: str) -> None:
    target = {"standard_error": 500}
    asked = [mh.Mean("salary", by="sex", per="unit", target=target, n_group=2_000), mh.Count()]
    promise = mh.privacy_for(statistics=asked, schema=with_rows("learn"), n=None, kind=kind)
    doubled = promise.with_amounts([2 * amount for amount in promise.amounts])
    mechanism = learning(mh.plan(asked, schema=with_rows("learn"), privacy=doubled, n=None))
    for rows in (1, 3, 1024):
        found = mechanism.planned_for(rows)["mean salary per unit by sex"]
        error = found.standard_error_at(2_000)
        assert error is not None
        assert error <= 500 * (1 + 1e-6)
    wished = [mh.Count(target={"standard_error": 5})]
    with pytest.raises(InvalidInput, match=r"grows with the rows.*give max_rows a number"):
        mh.privacy_for(statistics=wished, schema=with_rows("learn"), n=None, kind=kind)


def test_what_can_be_said_of_groups_that_are_learnt_is_said() -> None:
    plan = mh.plan(ASKED, schema=SCHEMA, privacy=PROMISE, n=None)
    assert "With 10 groups of each learnt column" in plan.describe()
    release = plan.release(table())
    said = "Given what was learnt, for the rest of the promise, all counts and sums together"
    assert said in repr(release)
    inner = learning(plan).planned_for(1).parts[0].mechanism.certificate
    assert inner is not None
    assert inner.ratio >= 1
