"""Quantiles are planned like everything else: what they err by is known before they are paid."""

from __future__ import annotations

import json

import numpy as np
import pytest

import muhat as mh

OPTIONS = {"lower": 0, "upper": 1000, "privacy": mh.ZCDP(rho=0.1)}
DATA = np.arange(2000) % 997


@pytest.mark.parametrize("n", [2000, None])
@pytest.mark.parametrize("q", [0.5, [0.1, 0.5, 0.9]])
@pytest.mark.parametrize("missing", ["drop", "none"])
def test_rank_errors_are_those_of_the_release(n, q, missing):
    plan = mh.plan_quantile(q, n=n, missing=missing, **OPTIONS)
    release = plan.release(DATA)
    for options in ({}, {"confidence": 0.999}, {"simultaneous": True}):
        assert np.array_equal(plan.rank_error(**options), release.rank_error(**options))
    assert release.plan_digest == plan.digest
    assert release.assumptions == plan.assumptions
    assert (release.mechanism, release.n) == (plan.mechanism, plan.n)


def test_a_plan_says_all_it_knows_before_any_data():
    plan = mh.plan_quantile([0.25, 0.75], n=2000, **OPTIONS)
    text = plan.describe()
    (error,) = {int(each) for each in plan.rank_error(0.95).ravel()}
    assert ["95", "%", str(error)] in [line.split()[:3] for line in text.splitlines()]
    for said in ("0.25, 0.75", "0.1-zCDP", "2000, public"):
        assert said in text
    fields = json.loads(json.dumps(plan.to_dict()))
    assert fields["rank_errors"][2] == {"confidence": 0.95, "records": error}
    assert [level for level, _ in plan.errors()] == sorted(level for level, _ in plan.errors())
    assert "<table" in plan._repr_html_()


def test_the_picture_rises_with_the_confidence():
    (axes,) = mh.plan_quantile(0.5, n=2000, **OPTIONS).plot().axes
    (line,) = axes.lines
    heights = line.get_ydata()
    assert (np.diff(heights) >= 0).all()
    assert heights[0] < heights[-1]


def test_one_call_is_the_plan_carried_out(tmp_path):
    account = mh.Ledger.create(
        tmp_path / "budget.db", budget=mh.ZCDP(rho=1), neighbors="substitute"
    )
    release = mh.quantile(DATA, 0.5, ledger=account, **OPTIONS)
    plan = mh.plan_quantile(0.5, n=2000, **OPTIONS)
    assert release.plan_digest == plan.digest
    assert account.entries()[0].plan_digest == plan.digest
    assert "n was counted from the data" in release.assumptions


def test_another_number_of_rows_is_refused_and_costs_nothing(tmp_path):
    account = mh.Ledger.create(
        tmp_path / "budget.db", budget=mh.ZCDP(rho=1), neighbors="substitute"
    )
    with pytest.raises(mh.InvalidInput, match="another number of rows"):
        mh.plan_quantile(0.5, n=1999, **OPTIONS).release(DATA, ledger=account)
    assert account.entries() == []
