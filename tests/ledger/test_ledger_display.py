"""An account reads well in a terminal and in a notebook, whatever its notes are."""

from __future__ import annotations

import pytest

import muhat as mh

RHO = mh.ZCDP(rho=0.1)


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "budget.db"
    return mh.Ledger.create(path, budget=mh.ZCDP(rho=10), neighbors="substitute", contributions=3)


def charge(ledger, note):
    unit = {"neighbors": "substitute", "contributions": 3}
    return ledger.charge(RHO, **unit, plan_digest="ab" * 32, note=note)


def test_an_account_says_what_was_spent_on_what_and_what_is_left(ledger):
    charge(ledger, "mean of age")
    for shown in (ledger.describe(), ledger._repr_html_()):
        assert "10-zCDP, neighbors substitute, 3 records a person" in shown
        assert "mean of age" in shown
        assert "abababab" in shown
        assert "Spent 0.1-zCDP of 10-zCDP; 9.9-zCDP is left." in shown


def test_only_the_newest_entries_are_shown(ledger):
    for number in range(23):
        charge(ledger, f"release number {number}")
    for shown in (ledger.describe(), ledger._repr_html_()):
        assert "3 earlier entries are not shown." in shown
        assert "release number 22" in shown
        assert "release number 2<" not in shown
    assert ledger._repr_html_().count("<tr>") == 21


def test_notes_steer_nothing(ledger):
    entry = charge(ledger, "<script>\x1b[2J")
    for shown in (ledger.describe(), ledger._repr_html_(), repr(entry)):
        assert "\x1b" not in shown
    assert "<script>" not in ledger._repr_html_()


def test_an_empty_account_and_one_that_cannot_be_read_are_shown(ledger):
    assert "Spent 0-zCDP of 10-zCDP" in ledger.describe()
    ledger.path.unlink()
    assert "cannot be read" in ledger._repr_html_()
    ledger.close()
    assert "closed" in ledger._repr_html_()


def test_an_entry_is_a_line(ledger):
    entry = charge(ledger, "mean of age")
    assert repr(entry).startswith("<Entry 1: 0.1-zCDP for 'mean of age', 2")
    assert repr(entry).endswith(" UTC>")
