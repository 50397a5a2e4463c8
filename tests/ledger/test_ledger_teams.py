"""One budget for several teams: grants, who pays, what is left, and what the chain says of it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muhat as mh
from muhat import GDP, ZCDP, ApproxDP, BudgetExceeded, InvalidInput, PureDP
from muhat.ledger import Entry, Grant, Ledger
from muhat.ledger.records import Record
from muhat.ledger.teams import MOST_TEAMS

BOX, AGES = mh.Box([0], [100]), np.linspace(20, 60, 100)
TAMPERED = "was edited, truncated or rolled back"


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "budget.db", budget=ZCDP(rho=1), neighbors="substitute")


def charge(ledger, rho=0.1, **said):
    return ledger.charge(ZCDP(rho=rho), neighbors="substitute", plan_digest="ab12", **said)


def test_an_entry_says_who_paid_what_for_and_by_which_specification(ledger):
    entry = charge(ledger, team="health", purpose="yearly report", specification="cd34")
    assert (entry.team, entry.purpose, entry.specification) == ("health", "yearly report", "cd34")
    assert ledger.entries() == [entry]
    fields = json.loads(json.dumps(entry.to_dict()))
    assert (fields["team"], fields["purpose"]) == ("health", "yearly report")
    assert Record.seal({k: v for k, v in fields.items() if k != "hash"}).hash == entry.hash
    assert "'health'" in repr(entry)


def test_what_is_not_said_is_not_written(ledger):
    fields = charge(ledger).to_dict()
    assert not {"team", "purpose", "specification", "unit_column", "shares"} & set(fields)


def test_a_bound_account_is_taken_wherever_a_ledger_is(ledger):
    ours = ledger.for_team("health", note="yearly report", specification="cd34")
    assert ours.team == "health"
    plan = mh.plan_mean(domain=BOX, n=100, privacy=ZCDP(rho=0.1))
    release = plan.release(AGES, ledger=ours)
    mh.quantile(AGES, lower=0, upper=100, privacy=ZCDP(rho=0.1), ledger=ours)
    first, second = ledger.entries()
    assert release.ledger_head == first.head.to_dict()
    for entry in (first, second):
        assert (entry.team, entry.purpose) == ("health", "yearly report")
        assert entry.specification == "cd34"
    assert first.note == "mean of x"
    charge(ledger)
    assert ledger.entries()[-1].team is None


def test_whoever_pays_for_a_team_the_account_knows_that_failing_costs_now(ledger):
    ours, others = ledger.for_team("health"), Ledger.open(ledger.path)
    assert not ledger.charged
    ask(ours, 0.1)
    assert not ledger.charged
    charge(ours)
    assert ours.charged
    assert ledger.charged
    assert ours.for_team(note="again").charged
    assert not others.charged


def test_what_a_bound_account_does_not_say_stays_as_it_was(ledger):
    ours = ledger.for_team("health").for_team(note="again").for_team(specification="cd34")
    entry = charge(ours)
    assert (entry.team, entry.purpose, entry.specification) == ("health", "again", "cd34")
    assert charge(ours, team="tax", purpose="this once").team == "tax"
    assert charge(ours).team == "health"


def test_without_grants_a_team_is_only_a_name(ledger):
    charge(ledger, 0.9, team="health")
    assert ledger.grants == {}
    assert ledger.remaining_of("health") == ledger.remaining_of("tax") == 0.1
    assert ledger.remaining_of(None) == ledger.remaining == 0.1
    with pytest.raises(BudgetExceeded, match=r"0\.1-zCDP of 1-zCDP is left"):
        charge(ledger, 0.2, team="tax")


def test_a_team_spends_its_grant_and_no_more(ledger):
    grant = ledger.grant("health", ZCDP(rho=0.3))
    assert isinstance(grant, Grant)
    assert grant.head == ledger.head
    assert grant.granted == 0.3
    for _ in range(3):
        charge(ledger, team="health")
    before = ledger.path.read_bytes()
    message = r"costs 1e-300-zCDP, and 0-zCDP of the 0\.3-zCDP granted to team 'health' is left"
    for refused in (charge, lambda account, rho: ask(account, rho)):
        with pytest.raises(BudgetExceeded, match=message) as error:
            refused(ledger.for_team("health"), 1e-300)
        assert str(error.value).endswith("nothing was spent.")
    assert ledger.path.read_bytes() == before
    assert ledger.remaining == 0.7
    assert ledger.remaining_of("health") == 0
    assert ledger.remaining_of(None) == 0.7
    assert ledger.verify().count == 4


def ask(ledger, rho):
    return ledger.approve(ZCDP(rho=rho), neighbors="substitute")


def test_a_refused_release_reads_nothing_and_spends_nothing(ledger):
    ledger.grant("health", ZCDP(rho=0.3))
    ours = ledger.for_team("health")
    with pytest.raises(BudgetExceeded, match="granted to team 'health'"):
        mh.mean("there is no such file.csv", domain=BOX, privacy=ZCDP(rho=0.4), ledger=ours)
    assert ledger.spent == 0


def test_what_is_not_granted_is_for_charges_without_a_team(ledger):
    ledger.grant("health", ZCDP(rho=0.3))
    ledger.grant("tax", ZCDP(rho=0.5))
    charge(ledger, 0.2)
    message = r"costs 0\.1-zCDP, and 0-zCDP of the 0\.2-zCDP that no team was granted is left"
    with pytest.raises(BudgetExceeded, match=message) as error:
        charge(ledger)
    assert error.value.hint == "Say which team pays: ledger.for_team(…)."
    charge(ledger, 0.3, team="health")
    charge(ledger, 0.5, team="tax")
    assert ledger.remaining == 0


def test_a_team_without_a_grant_may_not_charge_once_there_are_grants(ledger):
    ledger.grant("health", ZCDP(rho=0.3))
    with pytest.raises(InvalidInput, match=r"team must be one with a grant: 'health'; got 'helth'"):
        charge(ledger, team="helth")
    with pytest.raises(InvalidInput, match=r"Did you mean 'health'\?"):
        ledger.remaining_of("helth")
    with pytest.raises(InvalidInput, match="muhat ledger grant"):
        ask(ledger.for_team("customs"), 0.1)
    assert ledger.spent == 0


def test_grants_together_never_exceed_the_budget(ledger):
    ledger.grant("health", ZCDP(rho=0.3))
    charge(ledger, 0.2)
    with pytest.raises(BudgetExceeded, match=r"all but 0\.5-zCDP; nothing was changed"):
        ledger.grant("tax", ZCDP(rho=0.6))
    ledger.grant("tax", ZCDP(rho=0.5))
    assert {team: float(share.granted) for team, share in ledger.grants.items()} == {
        "health": 0.3,
        "tax": 0.5,
    }
    with pytest.raises(BudgetExceeded, match=r"'health' cannot be granted 0\.4-zCDP.*but 0\.3-"):
        ledger.grant("health", ZCDP(rho=0.4))


def test_another_grant_takes_the_place_of_the_first_and_never_what_is_spent(ledger):
    ledger.grant("health", ZCDP(rho=0.3))
    charge(ledger, 0.2, team="health")
    ledger.grant("health", ZCDP(rho=0.5))
    assert ledger.remaining_of("health") == 0.3
    with pytest.raises(InvalidInput, match=r"has spent 0\.2-zCDP .* cannot be 0\.1-zCDP"):
        ledger.grant("health", ZCDP(rho=0.1))
    ledger.grant("health", ZCDP(rho=0.2))
    assert ledger.remaining_of(None) == 0.8
    assert ledger.verify().count == 4


def test_a_grant_counts_what_its_team_has_spent_before(ledger):
    charge(ledger, 0.2, team="health")
    charge(ledger, 0.1, team="tax")
    charge(ledger, 0.1)
    with pytest.raises(InvalidInput, match=r"has spent 0\.2-zCDP"):
        ledger.grant("health", ZCDP(rho=0.1))
    with pytest.raises(BudgetExceeded, match=r"all but 0\.8-zCDP"):
        ledger.grant("health", ZCDP(rho=0.9))
    ledger.grant("health", ZCDP(rho=0.8))
    assert ledger.remaining_of("health") == 0.6
    assert ledger.remaining_of(None) == 0
    with pytest.raises(InvalidInput, match="one with a grant"):
        charge(ledger, team="tax")


def test_a_grant_is_withdrawn_down_to_what_is_spent(ledger):
    ledger.grant("health", ZCDP(rho=0.3), note="for the yearly report")
    charge(ledger, team="health")
    grant = ledger.withdraw("health")
    assert (grant.granted, grant.promise) == (Fraction(1, 10), None)
    assert ledger.remaining_of("health") == 0
    assert ledger.remaining_of(None) == 0.9
    ledger.grant("helth", ZCDP(rho=0.9))
    ledger.withdraw("helth")
    assert ledger.remaining_of(None) == 0.9
    with pytest.raises(InvalidInput, match=r"has no grant to withdraw; got 'heath'. Did you mean"):
        ledger.withdraw("heath")
    assert ledger.verify().count == 5


@pytest.mark.parametrize("team", ["", " health", "a\nb", "\x1b[2J", "x" * 101, 3, b"a", None])
def test_a_team_has_a_name_that_can_be_seen(ledger, team):
    with pytest.raises(InvalidInput, match="team must be a name"):
        ledger.grant(team, ZCDP(rho=0.1))
    if team is not None:
        with pytest.raises(InvalidInput, match="team must be a name"):
            ledger.for_team(team)
        with pytest.raises(InvalidInput, match="team must be a name"):
            charge(ledger, team=team)
    assert ledger.head.count == 0


def test_two_spellings_that_look_alike_are_one_team(ledger):
    ledger.grant("sant\u00e9", ZCDP(rho=0.3))
    charge(ledger, team="sante\u0301")
    assert ledger.remaining_of("sante\u0301") == 0.2
    assert len(ledger.grants) == 1


@pytest.mark.parametrize("note", [3, b"", "x" * 10_001])
def test_texts_are_texts(ledger, note):
    for use in (
        lambda: ledger.grant("health", ZCDP(rho=0.1), note=note),
        lambda: ledger.for_team(note=note),
        lambda: ledger.for_team(specification=note),
        lambda: charge(ledger, purpose=note),
        lambda: charge(ledger, specification=note),
    ):
        with pytest.raises(InvalidInput, match="must be a text of at most"):
            use()
    assert ledger.head.count == 0


@pytest.mark.parametrize("budget", [0.1, None, ZCDP])
def test_only_a_promise_is_granted(ledger, budget):
    with pytest.raises(InvalidInput, match="the grant must be a promise"):
        ledger.grant("health", budget)


def test_a_grant_of_another_kind_is_converted_as_a_charge_is(tmp_path):
    budget = ApproxDP(epsilon=1, delta=1e-6)
    ledger = Ledger.create(tmp_path / "b.db", budget=budget, neighbors="substitute")
    grant = ledger.grant("health", PureDP(epsilon=0.4))
    assert grant.conversion == "pure → approximate: δ = 0"
    common = {"neighbors": "substitute", "plan_digest": "ab12", "team": "health"}
    with pytest.raises(BudgetExceeded, match="granted to team 'health'"):
        ledger.charge(ApproxDP(epsilon=0.1, delta=1e-9), **common)
    ledger.charge(PureDP(epsilon=0.4), **common)
    with pytest.raises(BudgetExceeded):
        ledger.grant("tax", ApproxDP(epsilon=0.6, delta=2e-6))
    with pytest.raises(InvalidInput, match=r"ask for mh\.ApproxDP"):
        ledger.grant("tax", ZCDP(rho=0.1))


def test_grants_of_gaussian_privacy_add_up_by_squares(tmp_path):
    ledger = Ledger.create(tmp_path / "b.db", budget=GDP(mu=5), neighbors="substitute")
    ledger.grant("health", GDP(mu=3))
    ledger.grant("tax", GDP(mu=4))
    assert ledger.remaining_of(None) == 0


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["grant", "charge"]), st.sampled_from("abc?"), st.integers(1, 9)),
        max_size=12,
    )
)
def test_no_order_of_grants_and_charges_exceeds_any_limit(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("teams") / "budget.db"
    ledger = Ledger.create(path, budget=ZCDP(rho=1), neighbors="substitute")
    for kind, name, tenths in steps:
        team = None if name == "?" else name
        try:
            if kind == "charge":
                charge(ledger, tenths / 10, team=team)
            elif team is not None:
                ledger.grant(team, ZCDP(rho=tenths / 10))
        except (BudgetExceeded, InvalidInput):
            continue
        spent = Fraction(0)
        for team_name, share in ledger.grants.items():
            own = [e.charged.amounts[0] for e in ledger.entries() if e.team == team_name]
            assert share.spent.amounts == (sum(own),)
            assert sum(own) <= share.granted.amounts[0]
            spent += sum(own)
        granted = sum(share.granted.amounts[0] for share in ledger.grants.values())
        assert granted + ledger.spent.amounts[0] - spent <= 1
    ledger.verify()


def rewrite(ledger, place, **changes):
    """Edit a row and every hash from there on, as the owner of the file can."""
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        previous = None
        for row, body in connection.execute("SELECT id, body FROM chain ORDER BY id").fetchall():
            fields = json.loads(body) | (changes if row == place else {})
            record = Record.seal({**fields, "previous": previous} if row else fields)
            previous = record.hash
            connection.execute(
                "UPDATE chain SET body = ?, hash = ? WHERE id = ?", (record.body, previous, row)
            )


@pytest.mark.parametrize(
    ("place", "changes"),
    [
        (1, {"granted": ["9/10"]}),
        (1, {"granted": ["2/1"], "shares": {"health": {"granted": ["2/1"], "spent": ["0/1"]}}}),
        (1, {"team": "tax"}),
        (1, {"team": 3}),
        (1, {"surprise": 1}),
        (1, {"promise": {"kind": "zcdp", "rho": -1.0}}),
        (1, {"spent": ["1/10"]}),
        (2, {"team": "tax"}),
        (2, {"team": "tax", "shares": {"health": {"granted": ["3/10"], "spent": ["0/1"]}}}),
        (2, {"shares": {"health": {"granted": ["3/10"], "spent": ["0/1"]}}}),
        (2, {"shares": {"health": {"granted": ["9/10"], "spent": ["1/10"]}}}),
        (2, {"shares": {"health": {"granted": ["3/10"]}}}),
        (2, {"shares": {"health": 3}}),
        (2, {"shares": {}}),
        (2, {"purpose": 3}),
        (2, {"specification": None}),
        (2, {"unit_column": ["person"]}),
    ],
)
def test_wrong_grants_are_noticed_even_with_every_hash_recomputed(ledger, place, changes):
    ledger.grant("health", ZCDP(rho=0.3))
    charge(ledger, team="health")
    rewrite(ledger, place, **changes)
    with pytest.raises(InvalidInput, match=TAMPERED):
        Ledger.open(ledger.path).verify()


def test_an_edited_grant_is_noticed_by_its_hash_and_by_an_anchor(ledger):
    anchor = ledger.grant("health", ZCDP(rho=0.3)).head
    charge(ledger, team="health")
    assert Ledger.open(ledger.path, expect_head=anchor).grants["health"].spent == 0.1
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        connection.execute("UPDATE chain SET body = replace(body, '3/10', '9/10') WHERE id = 1")
    for use in (ledger.verify, ledger.entries, lambda: ledger.grant("tax", ZCDP(rho=0.1))):
        with pytest.raises(InvalidInput, match=TAMPERED):
            use()


def test_a_ledger_has_only_so_many_teams(ledger, monkeypatch):
    assert MOST_TEAMS == 1_000
    monkeypatch.setattr("muhat.ledger.teams.MOST_TEAMS", 2)
    ledger.grant("a", ZCDP(rho=0.1))
    ledger.grant("b", ZCDP(rho=0.1))
    with pytest.raises(InvalidInput, match="at most 2 teams"):
        ledger.grant("c", ZCDP(rho=0.1))
    ledger.grant("a", ZCDP(rho=0.2))


def test_history_has_grants_and_charges_and_entries_only_charges(ledger):
    grant = ledger.grant("health", ZCDP(rho=0.3))
    entry = charge(ledger, team="health")
    assert ledger.history() == [grant, entry]
    assert ledger.entries() == [entry]
    assert isinstance(ledger.history()[1], Entry)
    assert repr(grant).startswith("<Grant 1: 0.3-zCDP to 'health', 2")
    assert "in 2 entries" in repr(ledger)


def test_teams_are_shown_in_text_and_html(ledger):
    charge(ledger, purpose="<before>\x1b", team="health", specification="cd34" * 16)
    ledger.grant("health", ZCDP(rho=0.3))
    for shown in (ledger.describe(), ledger._repr_html_()):
        assert "Team health: spent 0.1-zCDP of 0.3-zCDP; 0.2-zCDP is left." in shown
        assert "Without a team: spent 0-zCDP of 0.7-zCDP; 0.7-zCDP is left." in shown
        for words in ("purpose", "specification", "cd34cd34", "grant"):
            assert words in shown
        assert "\x1b" not in shown
    assert "<before>" not in ledger._repr_html_()


WORKER = """
import sys
from muhat import ZCDP, BudgetExceeded
from muhat.ledger import Ledger
ledger = Ledger.open(sys.argv[1]).for_team(sys.argv[2] or None)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(12):
    try:
        ledger.charge(ZCDP(rho=0.05), neighbors="substitute", plan_digest="ab12")
    except BudgetExceeded:
        print("refused", flush=True)
    else:
        print("charged", flush=True)
"""


def test_teams_that_race_in_several_processes_never_exceed_any_limit(ledger):
    ledger.grant("health", ZCDP(rho=0.5))
    ledger.grant("tax", ZCDP(rho=0.3))
    payers = ["health", "health", "tax", "tax", "", ""]
    workers = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", WORKER, str(ledger.path), team],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for team in payers
    ]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    reports = [worker.communicate()[0].split() for worker in workers]
    charged = dict.fromkeys(payers, 0)
    for team, report in zip(payers, reports, strict=True):
        assert len(report) == 12
        charged[team] += report.count("charged")
    # Each pair asks for 24 charges, more than any share admits: every share is spent to the end.
    assert charged == {"health": 10, "tax": 6, "": 4}
    assert [float(share.remaining) for share in ledger.grants.values()] == [0, 0]
    assert ledger.remaining == 0
    assert ledger.verify().count == 22
