"""`muhat quantile` from the shell."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from muhat.cli import main
from muhat.ledger import Ledger
from muhat.privacy import ZCDP

BOUNDS = ["--lower", "0", "--upper", "1000000"]
PROMISE = ["--rho", "0.1"]


@pytest.fixture
def salaries(tmp_path):
    path = tmp_path / "salaries.csv"
    path.write_text("salary,age\n" + "\n".join(f"{i * 20},{i % 90}" for i in range(5000)) + "\n")
    return str(path)


def run(*arguments):
    return CliRunner().invoke(main, ["quantile", *arguments])


def test_the_median_is_printed_with_its_rank_error(salaries):
    done = run(salaries, "--columns", "salary", "--q", "0.5", *BOUNDS, *PROMISE)
    assert done.exit_code == 0, done.output
    assert "rank error" in done.stdout
    assert "0.1-zCDP · n = 5000" in done.stdout
    assert "--ledger" in done.stderr


def test_json_has_the_documented_keys(salaries, documented_keys):
    done = run(salaries, "--columns", "salary", *BOUNDS, *PROMISE, "--json")
    fields = json.loads(done.stdout)
    assert set(fields) >= {"rank_error", *documented_keys}
    assert fields["columns"] == ["salary"]
    assert abs(fields["value"][0] - 50_000) < 20_000


def test_all_of_the_promise_may_go_to_the_values(salaries):
    done = run(salaries, "--columns", "salary", "--no-interval", *BOUNDS, *PROMISE)
    assert done.exit_code == 0, done.output
    assert "No interval was asked for" in done.stdout


def test_the_least_and_the_greatest_can_be_asked_for(salaries):
    result = run(salaries, "--columns", "salary", "--q", "0,1", *BOUNDS, "--rho", "0.1")
    assert result.exit_code == 0
    assert "cannot be told from" in result.output


def test_several_quantiles_of_several_columns(salaries):
    done = run(
        *(salaries, "--columns", "salary,age", "--q", "0.25,0.75", "--resolution", "1,1"),
        *("--lower", "0,0", "--upper", "1000000,120", "--epsilon", "5", "--secret-n", "--json"),
    )
    fields = json.loads(done.stdout)
    assert [len(row) for row in fields["value"]] == [2, 2]
    assert fields["n"] is None
    # As a number of its own: among the digits of noise it is found now and then.
    assert not re.search(r"(?<![\d.])5000(?![\d.])", done.stdout)


def test_a_list_that_is_given_twice_has_all_of_it(salaries):
    done = run(
        *(salaries, "--columns", "salary", "--columns", "age", "--q", "0.25", "--q", "0.5,0.75"),
        *("--lower", "0", "--lower", "0", "--upper", "1000000,120", *PROMISE, "--json"),
    )
    assert done.exit_code == 0, done.output
    fields = json.loads(done.stdout)
    assert fields["columns"] == ["salary", "age"]
    assert fields["q"] == [0.25, 0.5, 0.75]


def test_the_account_is_charged(salaries, tmp_path):
    account = str(tmp_path / "budget.db")
    Ledger.create(account, budget=ZCDP(rho=0.15), neighbors="substitute")
    arguments = [salaries, "--columns", "salary", *BOUNDS, *PROMISE, "--ledger", account]
    assert run(*arguments).exit_code == 0
    refused = run(*arguments)
    assert refused.exit_code != 0
    assert Ledger.open(account).spent == ZCDP(rho=0.1)


@pytest.mark.parametrize(
    "bad",
    [
        ["--q", "1.5"],
        ["--q", "half"],
        ["--lower", "2000000"],
        ["--resolution", "0"],
        ["--n", "4999"],
        ["--n", "5000", "--secret-n"],
        ["--columns", "salari"],
        ["--epsilon", "1"],
        ["--relative", "0.01"],
        ["--lower", "1", "--relative", "0.01", "--resolution", "1"],
    ],
)
def test_mistakes_are_one_clear_sentence(salaries, bad):
    done = run(salaries, "--columns", "salary", *BOUNDS, *PROMISE, *bad)
    assert done.exit_code != 0
    assert "Traceback" not in done.output
    assert len(done.stderr.strip().splitlines()) <= 2


@pytest.mark.parametrize("missing", ["drop", "center", "none"])
def test_missing_values_are_treated_as_asked_and_it_is_said(tmp_path, missing):
    path = tmp_path / "wages.csv"
    path.write_text("wage\n" + "10\n" * 3000 + "\n" * 2000 + "n/a\n" * 2000)
    done = run(
        *(str(path), "--columns", "wage", "--lower", "0", "--upper", "100", "--resolution", "1"),
        *("--missing", missing, *PROMISE),
    )
    value = done.stdout.splitlines()[3].split()[2]
    assert value == ("10" if missing == "drop" else "50")
    assert {"drop": "left out", "center": "counts as", "none": "as was declared"}[
        missing
    ] in done.stdout


def test_help_ends_with_an_example():
    assert "Example: muhat quantile salaries.csv" in run("--help").output


def test_steps_by_a_share_are_for_positive_bounds(salaries):
    done = run(
        *(salaries, "--columns", "salary", "--lower", "1", "--upper", "1e9"),
        *("--relative", "0.01", *PROMISE, "--json"),
    )
    fields = json.loads(done.stdout)
    assert fields["grids"][0]["kind"] == "geometric"
    assert abs(fields["value"][0] - 50_000) < 20_000


def test_a_delta_that_says_nothing_is_warned_of(salaries):
    promise = ["--epsilon", "1", "--delta", "0.01"]
    done = run(salaries, "--columns", "salary", *BOUNDS, *promise)
    assert done.stderr.startswith("Warning: delta = 0.01 is not below 1/n")
    secret = run(salaries, "--columns", "salary", *BOUNDS, *promise, "--secret-n")
    assert "Warning" not in secret.stderr
