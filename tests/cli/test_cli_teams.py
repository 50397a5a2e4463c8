"""`--team` and `--note` on every command that releases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import muhat as mh
from muhat import ZCDP
from muhat.cli import main
from muhat.ledger import Ledger
from muhat.statistics.specification import Specification

MEAN = ["mean", "people.csv", "--bounds", "age=0:100", "--rho", "0.1"]
QUANTILE = ["quantile", "people.csv", "--columns", "age", "--lower", "0", "--upper", "100"]
QUERIES = ["queries", "people.csv", "--columns", "sex", "--categories", "sex=f,m", "--histogram"]
PUBLISH = ["publish", "release.toml", "people.csv"]
RELEASING = [
    MEAN,
    [*QUANTILE, "--rho", "0.1"],
    [*QUERIES, "--rho", "0.1"],
    ["sum", *MEAN[1:]],
    ["variance", *MEAN[1:]],
    ["count", "people.csv", "--by", "sex", "--categories", "sex=f,m", "--rho", "0.1"],
    PUBLISH,
]
SPECIFICATION = """
[privacy]
rho = 0.1
[schema.columns]
age = "0:100"
[[statistic]]
kind = "mean"
column = "age"
"""


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("age,sex\n" + "40,f\n50,m\n" * 50)
    (tmp_path / "release.toml").write_text(SPECIFICATION)
    return Ledger.create("budget.db", budget=ZCDP(rho=1), neighbors="substitute")


def run(*arguments, code=0):
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize("command", RELEASING, ids=lambda command: command[0])
def test_an_entry_says_who_paid_and_what_for(ledger, command):
    ledger.grant("health", ZCDP(rho=0.3))
    run(*command, "--ledger", "budget.db", "--team", "health", "--note", "yearly report")
    (entry,) = ledger.entries()
    assert (entry.team, entry.purpose) == ("health", "yearly report")
    assert ledger.remaining_of("health") == 0.2


@pytest.mark.parametrize("command", RELEASING, ids=lambda command: command[0])
@pytest.mark.parametrize("flag", ["--team", "--note"])
def test_a_team_and_a_note_are_about_an_account(ledger, command, flag):
    refused = run(*command, flag, "health", code=2)
    assert f"{flag} is about an account: name it with --ledger." in refused.stderr


def test_a_team_that_has_spent_its_grant_is_told_whose_budget_it_was(ledger):
    ledger.grant("health", ZCDP(rho=0.05))
    refused = run(*MEAN, "--ledger", "budget.db", "--team", "health", "--json", code=3)
    said = json.loads(refused.stderr.splitlines()[-1])
    assert said["error"] == "BudgetExceeded"
    assert "0.05-zCDP of the 0.05-zCDP granted to team 'health' is left" in said["message"]
    assert ledger.spent == 0


def test_a_charge_without_a_team_is_told_to_name_one(ledger):
    ledger.grant("health", ZCDP(rho=0.95))
    refused = run(*MEAN, "--ledger", "budget.db", code=3)
    assert "0.05-zCDP of the 0.05-zCDP that no team was granted is left" in refused.stderr
    assert "Say which team pays: --team." in refused.stderr


def test_a_team_that_is_misspelt_is_asked_about(ledger):
    ledger.grant("health", ZCDP(rho=0.3))
    refused = run(*MEAN, "--ledger", "budget.db", "--team", "helth", code=2)
    assert "--team must be one with a grant: 'health'; got 'helth'." in refused.stderr
    assert "Did you mean 'health'?" in refused.stderr
    assert ledger.spent == 0


def test_a_promise_that_the_account_does_not_take_is_told_which_flag_to_use(ledger):
    asked = ["mean", "people.csv", "--bounds", "age=0:100", "--epsilon", "1", "--delta", "1e-6"]
    refused = run(*asked, "--ledger", "budget.db", code=2)
    assert "ask for --rho or --epsilon or --mu, which it takes." in refused.stderr


def test_the_entry_of_what_is_published_has_the_digest_of_its_specification(ledger):
    run(*PUBLISH, "--ledger", "budget.db", "--team", "health", "--note", "yearly report")
    (entry,) = ledger.entries()
    assert entry.specification == Specification.read("release.toml").digest
    assert (entry.team, entry.purpose) == ("health", "yearly report")
    assert entry.specification[:8] in run("ledger", "show", "budget.db").stdout


def test_publishing_that_fails_after_the_charge_says_so_by_its_code(ledger, monkeypatch):
    release = mh.Plan.release

    def failing(self, *arguments, **options):
        release(self, *arguments, **options)
        raise mh.SourceFailed("the data could not be read to the end. The charge stays.")

    monkeypatch.setattr(mh.Plan, "release", failing)
    run(*PUBLISH, "--ledger", "budget.db", "--team", "health", code=5)
    assert ledger.spent == 0.1


def test_rows_of_people_are_charged_as_the_account_counts_them(ledger):
    rows = "person,age\n" + "".join(f"{row // 2},{20 + row % 50}\n" for row in range(100))
    Path("people.csv").write_text(rows)
    unit = ["--unit", "person", "--max-rows", "2"]
    run(*MEAN, *unit, "--ledger", "budget.db")
    (entry,) = ledger.entries()
    assert (entry.unit_column, entry.contributions) == ("person", 2)
    assert entry.charged == 0.1
    strict = Ledger.create("people.db", budget=ZCDP(rho=1), neighbors="substitute", unit="person")
    refused = run(*MEAN, "--ledger", "people.db", code=2)
    assert "--unit must be 'person' as in" in refused.stderr
    run(*MEAN, *unit, "--ledger", "people.db")
    assert strict.entries()[0].conversion == "as promised"
