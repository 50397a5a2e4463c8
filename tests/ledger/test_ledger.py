"""The account as its users see it: charges, balances, entries, refusals."""

from __future__ import annotations

import hashlib
import json
import pickle
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muhat import GDP, ZCDP, ApproxDP, BudgetExceeded, InvalidInput, Neighbors, PureDP
from muhat.ledger import Entry, Head, Ledger, as_ledger

CANARY = "CANARY-8675309"


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "budget.db", budget=ZCDP(rho=1), neighbors="substitute")


def charge(ledger: Ledger, rho: float = 0.1, **changes) -> Entry:
    arguments = {"neighbors": "substitute", "plan_digest": "ab12", **changes}
    return ledger.charge(ZCDP(rho=rho), **arguments)


def test_a_new_ledger_has_spent_nothing(ledger):
    assert ledger.spent == 0
    assert ledger.remaining == 1
    assert ledger.entries() == []
    assert ledger.head.count == 0
    assert ledger.budget == ZCDP(rho=1)
    assert ledger.neighbors is Neighbors.SUBSTITUTE
    assert ledger.path.is_absolute()


def test_ten_charges_of_a_tenth_fill_the_budget_and_the_eleventh_is_refused(ledger):
    for _ in range(10):
        charge(ledger)
    assert ledger.spent.amounts == (Fraction(1),)
    assert ledger.remaining.amounts == (Fraction(0),)
    size = ledger.path.read_bytes()
    with pytest.raises(BudgetExceeded, match=r"costs 1e-300-zCDP, and 0-zCDP of 1-zCDP is left"):
        charge(ledger, 1e-300)
    assert ledger.path.read_bytes() == size
    assert ledger.verify().count == 10


def test_what_remains_can_be_spent_to_the_end(tmp_path):
    ledger = Ledger.create(tmp_path / "gdp.db", budget=GDP(mu=1), neighbors="add-remove")
    ledger.charge(GDP(mu=0.1), neighbors="add-remove", plan_digest="")
    ledger.charge(GDP(mu=ledger.remaining.mu), neighbors="add-remove", plan_digest="")
    assert 0 <= float(ledger.remaining.amounts[0]) < 1e-15


@settings(max_examples=15, deadline=None)
@given(charges=st.lists(st.floats(min_value=1e-12, max_value=1), min_size=1, max_size=8))
def test_the_total_is_the_exact_sum_of_the_decimals_that_fit(tmp_path_factory, charges):
    path = tmp_path_factory.mktemp("sums") / "budget.db"
    ledger = Ledger.create(path, budget=ZCDP(rho=2), neighbors="substitute")
    total = Fraction(0)
    for rho in charges:
        if total + Fraction(repr(rho)) > 2:
            with pytest.raises(BudgetExceeded):
                charge(ledger, rho)
        else:
            total += Fraction(repr(rho))
            charge(ledger, rho)
    assert ledger.spent.amounts == (total,)
    assert ledger.remaining.amounts == (2 - total,)
    ledger.verify()


def test_both_epsilon_and_delta_must_fit(tmp_path):
    budget = ApproxDP(epsilon=1, delta=1e-6)
    ledger = Ledger.create(tmp_path / "approx.db", budget=budget, neighbors="substitute")
    common = {"neighbors": "substitute", "plan_digest": "ab12"}
    ledger.charge(ApproxDP(epsilon=0.1, delta=9e-7), **common)
    with pytest.raises(BudgetExceeded, match=r"costs \(0.1, 2e-07\)-DP, and \(0.9, 1e-07\)-DP"):
        ledger.charge(ApproxDP(epsilon=0.1, delta=2e-7), **common)
    entry = ledger.charge(PureDP(epsilon=0.9), **common)
    assert entry.conversion == "pure → approximate: δ = 0"
    assert ledger.remaining.amounts == (Fraction(0), Fraction(1, 10**7))


def test_an_entry_says_what_was_asked_and_what_was_charged(ledger):
    note = "wages, 3rd try 🙂 \x1b[31m \ud800 'quoted' \n"
    before = datetime.now(UTC)
    entry = ledger.charge(GDP(mu=0.3), neighbors="substitute", plan_digest="ab" * 32, note=note)
    assert entry.id == 1
    assert entry.promise == {"kind": "gdp", "mu": 0.3}
    assert entry.charged.amounts == (Fraction(9, 200),)
    assert entry.conversion == "GDP → zCDP: ρ = μ²/2"
    assert entry.neighbors is Neighbors.SUBSTITUTE
    assert (entry.plan_digest, entry.note) == ("ab" * 32, note)
    age = datetime.fromisoformat(entry.time) - before
    assert timedelta(seconds=-1) < age < timedelta(minutes=5)
    assert ledger.entries() == [entry]
    assert ledger.head == entry.head


def test_the_hash_of_an_entry_can_be_recomputed_from_its_json(ledger):
    first, second = charge(ledger), charge(ledger, note="again")
    assert second.previous == first.hash
    for entry in (first, second):
        fields = json.loads(json.dumps(entry.to_dict()))
        digest = fields.pop("hash")
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(text.encode()).hexdigest() == digest == entry.hash
        assert fields["charged"] == ["1/10"]


def test_two_ledgers_are_never_the_same_chain(tmp_path):
    heads = {
        Ledger.create(tmp_path / f"{k}.db", budget=ZCDP(rho=1), neighbors="substitute").head.hash
        for k in range(3)
    }
    assert len(heads) == 3


def test_identical_calls_are_charged_each_time(ledger):
    entries = [charge(ledger) for _ in range(3)]
    assert ledger.spent == 0.3
    assert len({entry.hash for entry in entries}) == 3


def test_the_other_neighbour_relation_is_refused(ledger):
    with pytest.raises(InvalidInput, match=r"neighbors must be 'substitute'.*'add-remove'"):
        charge(ledger, neighbors="add-remove")
    with pytest.raises(InvalidInput, match="neighbors must be 'substitute'"):
        charge(ledger, neighbors=Neighbors.ADD_REMOVE)
    assert ledger.head.count == 0


@pytest.mark.parametrize(
    "promise", [ApproxDP(epsilon=0.1, delta=1e-9), PureDP(epsilon=0.1), ZCDP(rho=0.1)]
)
def test_another_kind_is_refused_before_the_file_is_touched(tmp_path, promise):
    ledger = Ledger.create(tmp_path / "gdp.db", budget=GDP(mu=1), neighbors="substitute")
    before = ledger.path.read_bytes()
    with pytest.raises(InvalidInput, match=r"whose budget is GDP; ask for mh\.GDP, which it takes"):
        ledger.charge(promise, neighbors="substitute", plan_digest="ab12")
    assert ledger.path.read_bytes() == before


@pytest.mark.parametrize(
    "changes",
    [
        {"plan_digest": None},
        {"plan_digest": b"ab"},
        {"note": 3},
        {"note": CANARY * 1000},
        {"neighbors": "neither"},
        {"neighbors": None},
    ],
)
def test_bad_arguments_are_refused_and_nothing_is_spent(ledger, changes):
    with pytest.raises(InvalidInput) as refusal:
        charge(ledger, **changes)
    assert CANARY not in str(refusal.value)
    assert ledger.head.count == 0


@pytest.mark.parametrize("promise", [0.1, None, "0.1", {"kind": "zcdp", "rho": 0.1}, ZCDP])
def test_only_a_promise_can_be_charged_or_be_a_budget(ledger, tmp_path, promise):
    with pytest.raises(InvalidInput, match=r"must be a promise: mh\.PureDP"):
        ledger.charge(promise, neighbors="substitute", plan_digest="ab12")
    with pytest.raises(InvalidInput, match=r"must be a promise: mh\.PureDP"):
        Ledger.create(tmp_path / "other.db", budget=promise, neighbors="substitute")
    assert not (tmp_path / "other.db").exists()


def test_refusals_never_repeat_a_note_or_a_digest(ledger):
    charge(ledger, 0.9, note=CANARY, plan_digest=CANARY)
    with pytest.raises(BudgetExceeded) as refusal:
        charge(ledger, 0.2, note=CANARY, plan_digest=CANARY)
    assert CANARY not in str(refusal.value)
    assert CANARY not in repr(ledger)
    assert refusal.value.__cause__ is None


def test_a_closed_ledger_refuses_everything_but_its_description(ledger):
    with ledger as same:
        assert same is ledger
    ledger.close()
    for use in (lambda: charge(ledger), lambda: ledger.spent, ledger.verify, ledger.__enter__):
        with pytest.raises(InvalidInput, match="is closed; open it again"):
            use()
    assert repr(ledger).endswith("1-zCDP, substitute, closed>")


def test_the_description_reads_well(ledger):
    charge(ledger, 0.3)
    assert repr(ledger) == f"<Ledger {str(ledger.path)!r}: 1-zCDP, substitute, 0.3-zCDP in 1 entry>"
    ledger.path.unlink()
    assert repr(ledger).endswith("cannot be read>")


def test_an_object_sees_the_charges_of_others(ledger):
    other = Ledger.open(ledger.path)
    charge(other)
    assert ledger.spent == 0.1
    charge(ledger)
    assert other.head == ledger.head
    assert [entry.id for entry in other.entries()] == [1, 2]


def test_a_ledger_survives_a_change_of_directory_and_a_trip_to_another_process(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create("budget.db", budget=ZCDP(rho=1), neighbors="substitute")
    monkeypatch.chdir("/")
    copy = pickle.loads(pickle.dumps(ledger))
    charge(copy)
    assert ledger.spent == 0.1


def test_a_releasing_call_takes_a_ledger_a_path_or_nothing(ledger):
    assert as_ledger(None) is None
    assert as_ledger(ledger) is ledger
    assert as_ledger(str(ledger.path)).head == ledger.head
    assert as_ledger(ledger.path).head == ledger.head
    with pytest.raises(InvalidInput, match="ledger must be a path; got int"):
        as_ledger(3)


def test_a_head_can_be_written_as_text_and_as_json(ledger):
    head = charge(ledger).head
    assert str(head) == f"1:{head.hash}"
    assert Head.parse(head) is head
    assert Head.parse(str(head)) == head
    assert Head.parse(json.loads(json.dumps(head.to_dict()))) == head


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "3:abc",
        f"-1:{'a' * 64}",
        f"{'9' * 5000}:{'a' * 64}",
        f"1:{'A' * 64}",
        f"1.5:{'a' * 64}",
        {},
        {"count": "1", "hash": "a" * 64},
        {"count": True, "hash": "a" * 64},
        {"count": 1, "hash": None},
        7,
    ],
)
def test_what_is_no_head_is_refused(text):
    with pytest.raises(InvalidInput, match="a ledger head is a count and a SHA-256"):
        Head.parse(text)


def test_the_account_needs_no_command_line_and_no_numerics():
    script = "import sys, muhat.ledger; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout
    assert "sqlite3" in loaded.split()
    assert not {"click", "rich", "scipy", "pyarrow", "random"} & set(loaded.split())
