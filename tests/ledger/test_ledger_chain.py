"""Tampering: what the chain shows by itself, and what only an anchor shows."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

import pytest

from muhat import ZCDP, InvalidInput
from muhat.ledger import Ledger
from muhat.ledger.records import Record

TAMPERED = "was edited, truncated or rolled back"


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", budget=ZCDP(rho=1), neighbors="substitute")
    for _ in range(5):
        charge(ledger)
    return ledger


def charge(ledger, rho=0.1):
    return ledger.charge(ZCDP(rho=rho), neighbors="substitute", plan_digest="ab12")


def tamper(ledger, *statements):
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        for statement in statements:
            connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(
                statement
            )


def rewrite(ledger, place, **changes):
    """Edit a row as a careful forger would: with a hash that fits the new text."""
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        (body,) = connection.execute("SELECT body FROM chain WHERE id = ?", (place,)).fetchone()
        record = Record.seal({**json.loads(body), **changes})
        connection.execute(
            "UPDATE chain SET body = ?, hash = ? WHERE id = ?", (record.body, record.hash, place)
        )


def rechain(ledger):
    """Recompute every hash from the first row on, as the owner of the file can."""
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        previous = None
        for place, body in connection.execute("SELECT id, body FROM chain ORDER BY id").fetchall():
            fields = json.loads(body)
            if place:
                fields["previous"] = previous
            record = Record.seal(fields)
            previous = record.hash
            connection.execute(
                "UPDATE chain SET body = ?, hash = ? WHERE id = ?", (record.body, previous, place)
            )


@pytest.mark.parametrize("place", range(6))
def test_an_edited_row_is_noticed(ledger, place):
    tamper(ledger, f"UPDATE chain SET body = replace(body, '1', '2') WHERE id = {place}")
    with pytest.raises(InvalidInput, match=TAMPERED):
        ledger.verify()
    with pytest.raises(InvalidInput, match=TAMPERED):
        Ledger.open(ledger.path, expect_head=ledger._seen)


@pytest.mark.parametrize("place", range(6))
def test_an_edited_row_with_its_own_hash_recomputed_is_noticed(ledger, place):
    rewrite(ledger, place, time="2001-01-01T00:00:00.000+00:00")
    with pytest.raises(InvalidInput, match=TAMPERED):
        ledger.verify()


def test_an_edited_last_row_is_noticed_by_the_next_charge(ledger):
    tamper(ledger, "UPDATE chain SET body = replace(body, '1/2', '0/1') WHERE id = 5")
    with pytest.raises(InvalidInput, match=TAMPERED):
        charge(ledger)
    with pytest.raises(InvalidInput, match="entry 5 does not match its hash"):
        Ledger.open(ledger.path)


def test_an_edited_budget_is_noticed_on_opening(ledger):
    tamper(ledger, "UPDATE chain SET body = replace(body, '1.0', '9.0') WHERE id = 0")
    for use in (lambda: Ledger.open(ledger.path), ledger.verify):
        with pytest.raises(InvalidInput, match="entry 0 does not match its hash"):
            use()


def test_a_budget_with_a_fitting_hash_is_noticed_on_opening_and_by_open_objects(ledger):
    rewrite(ledger, 0, budget={"kind": "zcdp", "rho": 9.0})
    with pytest.raises(InvalidInput, match="not the ledger that was opened"):
        charge(ledger)
    with pytest.raises(InvalidInput, match="entry 1 does not follow"):
        Ledger.open(ledger.path)


def test_swapped_rows_are_noticed(ledger):
    tamper(
        ledger,
        "UPDATE chain SET id = 99 WHERE id = 2",
        "UPDATE chain SET id = 2 WHERE id = 3",
        "UPDATE chain SET id = 3 WHERE id = 99",
    )
    with pytest.raises(InvalidInput, match="entry 2 is not at its place"):
        ledger.verify()


@pytest.mark.parametrize("place", range(5))
def test_a_deleted_row_is_noticed(ledger, place):
    tamper(ledger, f"DELETE FROM chain WHERE id = {place}")
    with pytest.raises(InvalidInput, match=TAMPERED):
        ledger.verify()


def test_an_empty_chain_is_noticed(ledger):
    tamper(ledger, "DELETE FROM chain")
    for use in (lambda: Ledger.open(ledger.path), lambda: charge(ledger), ledger.verify):
        with pytest.raises(InvalidInput, match="entry 0 is missing"):
            use()


@pytest.mark.parametrize(
    "changes",
    [
        {"spent": ["1/10"]},
        {"charged": ["0/1"]},
        {"charged": ["1/10", "0/1"]},
        {"charged": ["1e999999999"]},
        {"charged": 7},
        {"kind": "gdp"},
        {"kind": "other"},
        {"neighbors": "add-remove"},
        {"note": 3},
        {"promise": {"kind": "zcdp", "rho": -1.0}},
        {"promise": None},
        {"promise": {"kind": "zcdp", "surprise": 1}},
        {"surprise": 1},
        {"charged": ["9/1"], "spent": ["47/5"]},
    ],
)
def test_wrong_contents_are_noticed_even_with_every_hash_recomputed(ledger, changes):
    rewrite(ledger, 5, **changes)
    rechain(ledger)
    with pytest.raises(InvalidInput, match=TAMPERED):
        Ledger.open(ledger.path).verify()


def test_a_last_entry_of_another_kind_is_noticed_by_the_next_charge(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", budget=ZCDP(rho=1), neighbors="substitute")
    other = Ledger.open(ledger.path)
    charge(other)
    rewrite(other, 1, kind="gdp")
    with pytest.raises(InvalidInput, match="entry 1 is of another kind than"):
        charge(ledger)


@pytest.mark.parametrize("body", ["NULL", "7", "x'ff00'", "'[]'", "'{'"])
def test_a_row_that_is_no_record_is_noticed(ledger, body):
    tamper(
        ledger,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')",
    )
    tamper(
        ledger,
        f"UPDATE chain SET body = {body} WHERE id = 3",
        "PRAGMA writable_schema = ON",
        (
            "UPDATE sqlite_master SET sql = ?",
            (
                "CREATE TABLE chain "
                "(id INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL)",
            ),
        ),
    )
    with pytest.raises(InvalidInput, match="entry 3 "):
        ledger.verify()


def test_undecodable_text_is_noticed_and_never_quoted(ledger):
    tamper(ledger, "UPDATE chain SET body = CAST(x'43414e415259ff' AS TEXT) WHERE id = 3")
    with pytest.raises(InvalidInput, match="is damaged") as refusal:
        ledger.verify()
    assert "CANARY" not in str(refusal.value)
    assert refusal.value.__suppress_context__


def test_a_trigger_is_noticed_before_it_can_act(ledger):
    tamper(
        ledger,
        "CREATE TRIGGER undo AFTER INSERT ON chain BEGIN DELETE FROM chain WHERE id > 5; END",
    )
    with pytest.raises(InvalidInput, match="its tables are not those of a ledger"):
        charge(ledger)


def test_an_anchor_of_any_age_is_found_on_the_chain(ledger):
    anchors = [Ledger.open(ledger.path).head, *(entry.head for entry in ledger.entries())]
    charge(ledger)
    for anchor in anchors:
        for form in (anchor, str(anchor), anchor.to_dict()):
            assert Ledger.open(ledger.path, expect_head=form).head.count == 6


def test_a_deleted_tail_is_noticed_with_an_anchor_and_only_with_one(ledger):
    anchor = ledger.head
    tamper(ledger, "DELETE FROM chain WHERE id > 3")
    with pytest.raises(InvalidInput, match="ends at entry 3, and entry 5 has been seen"):
        Ledger.open(ledger.path, expect_head=anchor)
    assert Ledger.open(ledger.path).verify().count == 3, "documented: invisible without an anchor"


def test_a_restored_old_copy_is_noticed_with_an_anchor_even_after_new_charges(ledger, tmp_path):
    shutil.copy(ledger.path, tmp_path / "old.db")
    charge(ledger)
    anchor = ledger.head
    shutil.copy(tmp_path / "old.db", ledger.path)
    with pytest.raises(InvalidInput, match=TAMPERED):
        Ledger.open(ledger.path, expect_head=anchor)
    restored = Ledger.open(ledger.path)
    charge(restored)
    charge(restored)
    with pytest.raises(InvalidInput, match="entry 6 is not the one that the anchor names"):
        Ledger.open(ledger.path, expect_head=anchor)


def test_an_open_object_notices_a_restored_copy_by_itself(ledger, tmp_path):
    shutil.copy(ledger.path, tmp_path / "old.db")
    charge(ledger)
    shutil.copy(tmp_path / "old.db", ledger.path)
    for use in (lambda: charge(ledger), lambda: ledger.spent, ledger.entries):
        with pytest.raises(InvalidInput, match="ends at entry 5, and entry 6 has been seen"):
            use()
    charge(Ledger.open(ledger.path))
    with pytest.raises(InvalidInput, match="entry 6 is not the one that was seen before"):
        charge(ledger)


def test_a_chain_computed_anew_is_noticed_with_an_anchor_and_only_with_one(ledger):
    anchor = ledger.head
    rewrite(ledger, 0, budget={"kind": "zcdp", "rho": 9.0})
    rechain(ledger)
    with pytest.raises(InvalidInput, match=TAMPERED):
        Ledger.open(ledger.path, expect_head=anchor)
    assert Ledger.open(ledger.path).verify().count == 5, "documented: invisible without an anchor"


def test_another_ledger_at_the_same_path_is_noticed(ledger):
    anchor = ledger.head
    ledger.path.unlink()
    other = Ledger.create(ledger.path, budget=ZCDP(rho=1), neighbors="substitute")
    with pytest.raises(InvalidInput, match=TAMPERED):
        Ledger.open(other.path, expect_head=anchor)
    with pytest.raises(InvalidInput, match="not the ledger that was opened"):
        charge(ledger)


def test_an_old_anchor_does_not_hide_an_edit_before_it(ledger):
    anchor = ledger.entries()[3].head
    rewrite(ledger, 2, note="innocent")
    with pytest.raises(InvalidInput, match=TAMPERED):
        Ledger.open(ledger.path, expect_head=anchor)
