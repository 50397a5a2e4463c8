"""What every plan can do, whatever it answers: all of it before any data."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.planning.plan import Part, Plan

RHO = mh.ZCDP(rho=0.5)
APPROX = mh.ApproxDP(epsilon=4.0, delta=1e-5)
BOUNDS = {"age": (16, 90)}
REALS = mh.Reals(dim=1, magnitude=1e3)
MOMENT = {"moment": (2, 1.0), "max_bias": 0.05}

PLANS = {
    "mean": lambda: mh.plan_mean(domain=BOUNDS, n=100, privacy=RHO),
    "complete mean": lambda: mh.plan_mean(domain=mh.Ball(1, 2), n=100, privacy=RHO),
    "stairs in a ball": lambda: mh.plan_mean(
        domain=mh.Ball(1, 2), n=100, privacy=mh.PureDP(epsilon=4)
    ),
    "ratio": lambda: mh.plan_mean(domain=BOUNDS, n=None, privacy=RHO),
    "groups": lambda: mh.plan_mean(domain=BOUNDS, n=None, privacy=RHO, by="sex", groups=["f", "m"]),
    "sum": lambda: mh.plan_sum(domain=BOUNDS, n=None, privacy=mh.PureDP(epsilon=1)),
    "count": lambda: mh.plan_count(privacy=RHO),
    "smooth": lambda: mh.plan_mean(domain=BOUNDS, n=None, privacy=mh.PureDP(1.0), unbiased=True),
    "unknown location": lambda: mh.plan_mean(domain=REALS, n=4000, privacy=RHO),
    "low bias": lambda: mh.plan_mean(domain=REALS, n=4000, privacy=RHO, **MOMENT),
    "unknown number": lambda: mh.plan_mean(
        domain=REALS, n=None, n_min=1500, privacy=APPROX, **MOMENT
    ),
    "quantile": lambda: mh.plan_quantile([0.25, 0.5], lower=0, upper=100, privacy=RHO),
    "quantiles of groups": lambda: mh.plan_quantile(
        [0.25, 0.5], lower=0, upper=100, privacy=RHO, by="sex", groups=["f", "m"]
    ),
    "queries": lambda: mh.plan_queries(mh.workloads.prefix(4), privacy=RHO),
    "running sums": lambda: mh.stream.plan_prefix_counter(horizon=20, privacy=RHO),
}


@pytest.fixture(scope="module", params=PLANS)
def plan(request):
    return PLANS[request.param]()


def test_there_is_one_class(plan):
    assert type(plan) is mh.Plan


def test_it_is_described_and_drawn(plan):
    text = plan.describe()
    assert text == repr(plan)
    for words in ("plan", "promise", "mechanism", "Assumed: ", plan.privacy.describe()):
        assert words in text
    assert "<table>" in plan._repr_html_()
    assert plan.plot().axes


def test_it_is_plain_data(plan):
    fields = json.loads(json.dumps(plan.to_dict()))
    assert fields["schema"] == "muhat.plan/2"
    assert fields["mechanism"] == plan.mechanism
    assert fields["digest"] == plan.digest
    assert fields["assumptions"] == list(plan.assumptions)
    assert fields["neighbors"] == plan.neighbors.value


def test_its_errors_are_a_table_of_positive_numbers(plan):
    errors = plan.errors()
    assert errors
    assert all(np.all(np.asarray(error) > 0) for _, error in errors)


def test_error_at_is_the_error_if_the_unknowns_were_known(plan):
    values = {"n": 10**6, "radius": 2.0}
    if not plan.unknowns:
        with pytest.raises(mh.InvalidInput, match="expected_error"):
            plan.error_at(1)
        return
    named = {name: values[name] for name in plan.unknowns}
    assert plan.error_at(**named) == plan.error_at(*named.values()) > 0
    for wrong in ({}, {"mood": 1}, {**named, "mood": 1}):
        with pytest.raises(mh.InvalidInput, match="nobody knows"):
            plan.error_at(**wrong)


def test_its_terms_cannot_be_changed(plan):
    for change in ({"contributions": plan.contributions + 1}, {"privacy": mh.ZCDP(rho=0.01)}):
        with pytest.raises(mh.InvalidInput, match="make a new plan"):
            replace(plan, terms=replace(plan.terms, **change))


def test_more_assumptions_change_nothing_else(plan):
    more = plan.assuming("it rains")
    assert more.assumptions == (*plan.assumptions, "it rains")
    assert more.digest == plan.digest


def test_what_a_mechanism_has_not_is_said_in_words():
    mean = PLANS["mean"]()
    assert not hasattr(mean, "rank_error")
    with pytest.raises(AttributeError, match="the plan of a mean by ratio has no rank_error"):
        _ = mean.rank_error


def test_several_parts_are_one_charge_and_one_release(tmp_path):
    half = Fraction(1, 2)
    count = mh.plan_count(privacy=RHO.part(half))["count"]
    total = mh.plan_sum(domain=BOUNDS, n=None, privacy=RHO.part(half))["sum"]
    whole = mh.plan_count(privacy=RHO)
    plan = Plan(whole.terms, (Part("people", count, half), Part("years", total, half)))
    path = tmp_path / "budget.db"
    account = mh.Ledger.create(path, budget=mh.ZCDP(rho=1), neighbors="add-remove")
    release = plan.release({"age": np.full(1000, 50.0)}, ledger=account)
    (entry,) = account.entries()
    assert (entry.note, entry.plan_digest) == ("count of age; sum of age", plan.digest)
    assert abs(float(release["people"]) - 1000) < 20
    assert abs(float(release["years"]) - 50_000) < 2000
    assert mh.Release.from_json(release.to_json()).names == ("people", "years")


def test_planned_groups_are_those_that_come_out():
    people = {"age": np.full(2000, 50.0), "sex": np.array(["f", "m"] * 1000)}
    plan = PLANS["groups"]()
    release = plan.release(people)
    assert (release.by, release.groups, release.plan_digest) == ("sex", ("f", "m"), plan.digest)
    assert abs(float(release["m"]) - 50) < 20 * plan.error_at(n=1000) * 74


def test_parts_share_the_promise():
    half = Fraction(1, 2)
    whole = mh.plan_sum(domain=BOUNDS, n=100, privacy=RHO)
    part = mh.plan_sum(domain=BOUNDS, n=100, privacy=RHO.part(half))["sum"]
    both = Plan(whole.terms, (Part("first", part, half), Part("second", part, half)))
    assert both["second"].expected_error == part.expected_error > whole.expected_error
    told = both.describe()
    assert told.count("Assumed: ") == 1
    assert [line.split()[0] for line in told.splitlines() if " 50 %" in line] == ["first", "second"]
    assert len(both.to_dict()["parts"]) == 2
    with pytest.raises(AttributeError, match="several parts"):
        _ = both.expected_error
    with pytest.raises(mh.InvalidInput, match="no part 'third'"):
        _ = both["third"]
    with pytest.raises(mh.InvalidInput, match="more than the whole"):
        Plan(whole.terms, (*both.parts, Part("third", part, half)))
    with pytest.raises(mh.InvalidInput, match="make a new plan"):
        Plan(whole.terms, (Part("sum", part),))


def test_a_public_number_is_not_called_secret():
    axes = {name: PLANS[name]().plot().axes[0].get_xlabel() for name in ("mean", "ratio")}
    assert axes == {"mean": "number of recorded values", "ratio": "number of records (secret)"}


def test_errors_say_their_unit_where_n_is_secret():
    """Weighted by 1/width, as named bounds are: 0.01 is a hundredth of the bounds."""
    for name in ("ratio", "groups"):
        assert "error at the worst mean, in widths of the bounds" in PLANS[name]().describe()
    assert "error, in widths of the bounds" in PLANS["smooth"]().describe()
    own = mh.plan_mean(domain=mh.Box([0], [5]), n=None, privacy=RHO)
    assert "in widths" not in own.describe()
