"""Whose loss an account counts: units are fixed, shown, and converted only on an explicit wish."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

import muhat as mh
from muhat import GDP, ZCDP, ApproxDP, BudgetExceeded, InvalidInput, PureDP
from muhat.cli import main
from muhat.ledger import Ledger
from muhat.ledger.records import Record
from muhat.ledger.store import APPLICATION_ID, TABLE
from muhat.ledger.units import Unit

LARGE, HALF = ZCDP(rho=100), ZCDP(rho=0.5)


def create(folder, *, budget=LARGE, neighbors="substitute", contributions=1):
    path = folder / f"{neighbors}-{contributions}-{budget.kind}.db"
    return Ledger.create(path, budget=budget, neighbors=neighbors, contributions=contributions)


def charge(ledger, promise=HALF, neighbors="substitute", contributions=1):
    return ledger.charge(
        promise, neighbors=neighbors, contributions=contributions, plan_digest="ab12"
    )


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def test_the_unit_is_fixed_at_creation_and_shown_in_every_entry(tmp_path):
    ledger = create(tmp_path, contributions=5)
    assert ledger.contributions == 5
    assert Ledger.open(ledger.path).contributions == 5
    entry = charge(ledger, contributions=5)
    assert entry.contributions == 5
    assert str(entry.unit) == "5 records replaced"
    assert json.loads(json.dumps(entry.to_dict()))["contributions"] == 5
    assert ledger.entries() == [entry]
    assert "5 records a person" in repr(ledger)


@pytest.mark.parametrize(("kept", "asked"), [(1, 5), (5, 1), (2, 3)])
def test_another_number_of_records_is_refused(tmp_path, kept, asked):
    ledger = create(tmp_path, contributions=kept)
    with pytest.raises(InvalidInput, match=rf"contributions must be {kept} as in .*; got {asked}"):
        charge(ledger, contributions=asked)
    with pytest.raises(InvalidInput, match=f"contributions must be {kept}"):
        ledger.approve(ZCDP(rho=0.5), neighbors="substitute", contributions=asked)
    assert ledger.head.count == 0


def test_releases_of_people_with_one_and_with_five_records_do_not_share_an_account(tmp_path):
    ledger = create(tmp_path, budget=ZCDP(rho=1))
    data, box = np.linspace(0, 1, 100), mh.Box([0], [1])
    mh.mean(data, domain=box, privacy=ZCDP(rho=0.5), ledger=ledger)
    with pytest.raises(InvalidInput, match="contributions must be 1"):
        mh.mean(data, domain=box, privacy=ZCDP(rho=0.5), contributions=5, ledger=ledger)
    assert ledger.spent == 0.5


@pytest.mark.parametrize(
    ("promise", "steps", "amounts"),
    [
        (PureDP(epsilon=0.1), 3, (Fraction(3, 10),)),
        (ZCDP(rho=0.1), 3, (Fraction(9, 10),)),
        (GDP(mu=0.1), 3, (Fraction(9, 100),)),
    ],
)
def test_a_wish_pays_what_group_privacy_asks(tmp_path, promise, steps, amounts):
    budget = type(promise)(**dict.fromkeys(vars(promise), 100.0))
    path = create(tmp_path, budget=budget, contributions=6).path
    ledger = Ledger.open(path, convert=True)
    entry = charge(ledger, promise, contributions=2)
    assert entry.charged.amounts == amounts
    assert f"group privacy, k = {steps} steps of 2 records replaced" in entry.conversion
    assert entry.contributions == 2
    # Whoever opens it again, without the wish, sees a whole chain and is refused as before.
    again = Ledger.open(path, expect_head=entry.head)
    assert again.entries() == [entry]
    with pytest.raises(InvalidInput, match="contributions must be 6"):
        charge(again, promise, contributions=2)


def test_a_promise_about_more_records_covers_fewer(tmp_path):
    ledger = Ledger.open(create(tmp_path, contributions=2).path, convert=True)
    entry = charge(ledger, contributions=5)
    assert entry.charged == 0.5
    assert entry.conversion == "a promise about 5 records replaced is one about 2 records replaced"


def test_adding_or_removing_is_charged_to_replacing_at_four_times_rho_and_twice_epsilon(tmp_path):
    data, box = np.linspace(0, 1, 100), mh.Box([0], [1])
    path = create(tmp_path).path
    with pytest.raises(InvalidInput, match=r"neighbors must be 'substitute'.*convert=True"):
        mh.mean(data, domain=box, privacy=ZCDP(rho=0.5), n=None, ledger=path)
    ledger = Ledger.open(path, convert=True)
    release = mh.mean(data, domain=box, privacy=ZCDP(rho=0.5), n=None, ledger=ledger)
    assert release.neighbors is mh.Neighbors.ADD_REMOVE
    (entry,) = ledger.entries()
    assert entry.charged == 2
    assert entry.conversion == "group privacy, k = 2 steps of 1 record added or removed: k²·ρ"
    pure = Ledger.open(create(tmp_path, budget=PureDP(epsilon=9)).path, convert=True)
    assert charge(pure, PureDP(epsilon=0.5), "add-remove").charged == 1
    both = Ledger.open(create(tmp_path, contributions=3).path, convert=True)
    assert charge(both, ZCDP(rho=0.5), "add-remove").charged == 18


def test_replacing_is_never_charged_to_adding_or_removing(tmp_path):
    path = create(tmp_path, neighbors="add-remove").path
    for convert in (False, True):
        with pytest.raises(InvalidInput, match=r"neighbors must be 'add-remove'.*keep n secret"):
            charge(Ledger.open(path, convert=convert))


def test_the_delta_of_a_group_is_charged_and_pure_promises_are_grouped_first(tmp_path):
    approx = ApproxDP(epsilon=50, delta=0.5)
    ledger = Ledger.open(create(tmp_path, budget=approx).path, convert=True)
    entry = charge(ledger, ApproxDP(epsilon=1, delta=1e-6), "add-remove")
    assert entry.charged.epsilon == 2
    assert entry.charged.delta == pytest.approx((1 + np.e) * 1e-6, rel=1e-14)
    zcdp = Ledger.open(create(tmp_path).path, convert=True)
    entry = charge(zcdp, PureDP(epsilon=1), "add-remove")
    assert entry.charged.rho == pytest.approx(2 * np.tanh(1), rel=1e-14)
    assert entry.conversion.endswith("k·ε; pure → zCDP: ρ = ε·tanh(ε/2)")


def test_the_converted_price_counts_against_the_budget(tmp_path):
    ledger = Ledger.open(create(tmp_path, budget=ZCDP(rho=1.9)).path, convert=True)
    with pytest.raises(BudgetExceeded, match="costs 2-zCDP"):
        ledger.approve(ZCDP(rho=0.5), neighbors="add-remove")
    with pytest.raises(BudgetExceeded, match="costs 2-zCDP"):
        charge(ledger, neighbors="add-remove")
    assert ledger.spent == 0


@pytest.mark.parametrize(
    "changes", [{"contributions": 3}, {"contributions": 0}, {"neighbors": "add-remove"}]
)
def test_an_entry_about_another_unit_at_the_price_of_its_own_is_noticed(tmp_path, changes):
    ledger = create(tmp_path, contributions=5)
    charge(ledger, contributions=5)
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        (body,) = connection.execute("SELECT body FROM chain WHERE id = 1").fetchone()
        record = Record.seal({**json.loads(body), **changes})
        connection.execute(
            "UPDATE chain SET body = ?, hash = ? WHERE id = 1", (record.body, record.hash)
        )
    with pytest.raises(InvalidInput, match="was edited"):
        Ledger.open(ledger.path)


def written_before_units(path):
    """A ledger as version 0.1 wrote it: no record says how many records it is about."""
    common = {"time": "2026-01-01T00:00:00.000+00:00", "neighbors": "substitute"}
    budget = {"kind": "zcdp", "rho": 1.0}
    records = [Record.seal({"id": 0, "schema": 1, "ledger": "ab", "budget": budget, **common})]
    for place in (1, 2):
        fields = {
            "id": place,
            "promise": {"kind": "zcdp", "rho": 0.1},
            "kind": "zcdp",
            "charged": ["1/10"],
            "conversion": "as promised",
            "spent": [f"{place}/10" if place == 1 else "1/5"],
            "plan_digest": "ab12",
            "note": "",
            "previous": records[-1].hash,
            **common,
        }
        records.append(Record.seal(fields))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
        connection.execute(TABLE)
        connection.executemany(
            "INSERT INTO chain VALUES (?, ?, ?)", [(r.id, r.body, r.hash) for r in records]
        )
    return path


def test_a_ledger_written_before_units_is_one_about_single_records(tmp_path):
    path = written_before_units(tmp_path / "old.db")
    before = path.read_bytes()
    ledger = Ledger.open(path)
    assert ledger.contributions == 1
    assert ledger.verify().count == 2
    assert [entry.contributions for entry in ledger.entries()] == [None, None]
    assert [str(entry.unit) for entry in ledger.entries()] == ["1 record replaced"] * 2
    assert "1 record replaced (not stated)" in run("ledger", "show", path).output
    assert path.read_bytes() == before
    with pytest.raises(InvalidInput, match="contributions must be 1"):
        charge(ledger, contributions=5)
    entry = charge(ledger)
    assert entry.contributions == 1
    assert Ledger.open(path, expect_head=entry.head).spent == 0.7
    with closing(sqlite3.connect(path)) as connection:
        # So that an older muhat, which knows no units, refuses it.
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)


@pytest.mark.parametrize("contributions", [0, -1, 1.5, "5", None, True])
def test_a_unit_is_a_whole_number_of_records(tmp_path, contributions):
    with pytest.raises(InvalidInput, match="contributions must be a whole number"):
        create(tmp_path, contributions=contributions)
    assert list(tmp_path.iterdir()) == []


def test_steps_between_units():
    assert Unit.of("substitute", 2).steps_to(Unit.of("substitute", 5)) == 3
    assert Unit.of("add-remove", 2).steps_to(Unit.of("substitute", 5)) == 6
    assert Unit.of("add-remove", 5).steps_to(Unit.of("substitute", 2)) == 2
    assert Unit.of("substitute", 5).steps_to(Unit.of("add-remove", 1)) is None


def named(folder, neighbors="substitute", budget=LARGE, unit="person"):
    path = folder / f"{neighbors}-{unit}.db"
    return Ledger.create(path, budget=budget, neighbors=neighbors, unit=unit)


def charge_named(ledger, unit="person", neighbors="substitute", contributions=3):
    about = {"neighbors": neighbors, "contributions": contributions, "unit": unit}
    return ledger.charge(HALF, **about, plan_digest="ab12")


def test_a_column_that_tells_people_apart_is_kept_at_creation_and_in_every_entry(tmp_path):
    ledger = named(tmp_path)
    assert ledger.unit.column == "person"
    assert Ledger.open(ledger.path).unit == ledger.unit
    assert "all records of one person" in repr(ledger)
    for rows in (3, 7):
        entry = charge_named(ledger, contributions=rows)
        assert (entry.unit_column, entry.contributions) == ("person", rows)
        assert (entry.charged, entry.conversion) == (0.5, "as promised")
        assert str(entry.unit) == "all records of one person replaced"
    assert ledger.verify().count == 2
    assert "all records of one person replaced, 7 enter" in ledger.describe()


@pytest.mark.parametrize("unit", [None, "household"])
@pytest.mark.parametrize("convert", [False, True])
def test_an_account_of_people_refuses_promises_about_rows_or_others(tmp_path, unit, convert):
    ledger = Ledger.open(named(tmp_path).path, convert=convert)
    with pytest.raises(InvalidInput, match=r"unit must be 'person' as in .*; got ") as refusal:
        charge_named(ledger, unit)
    assert refusal.value.parameter == "unit"
    assert ledger.head.count == 0


def test_an_account_of_rows_takes_promises_about_all_rows_of_a_person(tmp_path):
    ledger = create(tmp_path, contributions=5)
    entry = charge_named(ledger)
    assert entry.charged == 0.5
    assert entry.conversion == (
        "a promise about all records of one person replaced is one about 5 records replaced"
    )
    with pytest.raises(InvalidInput, match=r"neighbors must be 'substitute'.*convert=True"):
        charge_named(ledger, neighbors="add-remove")
    paying = Ledger.open(ledger.path, convert=True)
    assert charge_named(paying, neighbors="add-remove").charged == 2
    assert ledger.verify().count == 2


def test_people_added_or_removed_are_replaced_in_two_steps(tmp_path):
    paying = Ledger.open(named(tmp_path).path, convert=True)
    entry = charge_named(paying, neighbors="add-remove")
    assert entry.charged == 2
    assert "k = 2 steps of all records of one person added or removed" in entry.conversion
    secret = Ledger.open(named(tmp_path, "add-remove").path, convert=True)
    with pytest.raises(InvalidInput, match=r"keep n secret \(n=None\)\.$"):
        charge_named(secret)


@pytest.mark.parametrize("unit", ["", 3, b"person", "x" * 1001])
def test_a_unit_is_the_name_of_a_column(tmp_path, unit):
    with pytest.raises(InvalidInput, match="unit must be the name of a column"):
        named(tmp_path, unit=unit)
    assert list(tmp_path.iterdir()) == []


def test_all_records_of_a_person_have_no_largest_number(tmp_path):
    with pytest.raises(InvalidInput, match="contributions must be left out where a unit is named"):
        Ledger.create(
            tmp_path / "b.db", budget=HALF, neighbors="substitute", unit="person", contributions=2
        )


def test_no_refusal_advises_another_account_of_the_same_people(tmp_path):
    accounts = [
        create(tmp_path),
        create(tmp_path, neighbors="add-remove", contributions=3),
        create(tmp_path, budget=GDP(mu=1)),
        create(tmp_path, budget=PureDP(epsilon=1)),
        named(tmp_path),
    ]
    promises = [HALF, GDP(mu=0.5), PureDP(epsilon=0.5), ApproxDP(epsilon=0.5, delta=1e-6)]
    refusals = []
    for account in accounts:
        for promise in promises:
            for neighbors in ("substitute", "add-remove"):
                for unit in ({"contributions": 2}, {"unit": "household"}, {}):
                    try:
                        account.approve(promise, neighbors=neighbors, **unit)
                    except InvalidInput as refusal:
                        refusals.append(refusal)
    assert len(refusals) > 50
    for refusal in refusals:
        words = str(refusal).replace(str(tmp_path), "")
        assert refusal.parameter in {"contributions", "neighbors", "unit", "privacy"}
        for advice in ("another ledger", "a ledger with", "create", "second", "new ledger"):
            assert advice not in words


def test_the_command_line_creates_shows_and_converts_units(tmp_path):
    path, data = tmp_path / "b.db", tmp_path / "d.csv"
    data.write_text("age\n" + "40\n50\n" * 50)
    made = run(
        "ledger", "create", path, "--rho", 9, "--neighbors", "substitute", "--contributions", 3
    )
    assert "neighbors substitute, 3 records a person" in made.output
    asked = ["mean", data, "--bounds", "age=0:100", "--rho", 0.1, "--ledger", path]
    refused = run(*asked, code=2)
    assert "--contributions must be 3" in refused.output
    assert "add --convert" in refused.output
    run(*asked, "--contributions", 3)
    run(*asked, "--convert")
    run(*asked, "--secret-n", "--convert", "--contributions", 3)
    shown = run("ledger", "show", path).output
    for words in ("3 records a person", "3 records replaced", "1 record replaced", "0.9-zCDP"):
        assert words in shown
    assert "group privacy, k = 2 steps of 3 records added or removed" in shown.replace("\n", " ")
    fields = json.loads(run("ledger", "show", path, "--json").output)
    assert fields["contributions"] == 3
    assert [entry["contributions"] for entry in fields["entries"]] == [3, 1, 3]
    assert "name it with --ledger" in run(*asked[:-2], "--convert", code=2).output
