"""Running sums are planned like everything else: errors and certificate before they are paid."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh

RHO = mh.ZCDP(rho=0.5)


def test_a_counter_has_the_errors_of_its_plan():
    plan = mh.stream.plan_prefix_counter(horizon=200, privacy=RHO, upper=3)
    counter = mh.stream.start(plan)
    assert [place for place, _ in plan.errors()] == [1, 10, 100, 200]
    for place, error in plan.errors():
        assert error == counter.standard_errors[place - 1]
    assert counter.certificate == plan.certificate
    assert "pushed" not in plan.describe()
    assert "running sums of up to 200 events" in plan.describe()
    assert set(plan.describe().split()) < set(counter.describe().split())


def test_starting_a_plan_charges_its_digest(tmp_path):
    account = mh.Ledger.create(
        tmp_path / "budget.db", budget=mh.ZCDP(rho=1), neighbors="add-remove"
    )
    plan = mh.stream.plan_prefix_counter(horizon=20, privacy=RHO)
    assert account.entries() == []
    counter = mh.stream.start(plan, account)
    (entry,) = account.entries()
    assert entry.plan_digest == plan.digest
    assert counter.ledger_head == account.head.to_dict()


def test_the_picture_shows_an_error_for_every_push():
    plan = mh.stream.plan_prefix_counter(horizon=100, privacy=RHO, lower=[0, 0], upper=[1, 2])
    (axes,) = plan.plot().axes
    (line,) = axes.lines
    assert line.get_ydata()[-1] == pytest.approx(plan.errors()[-1][1])
    assert (np.diff(line.get_xdata()) > 0).all()
