"""What a script learns from `muhat`: the exit code, and with --json a line of JSON on stderr."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import muhat as mh
from muhat.cli import main
from muhat.errors import DataChanged

MUHAT = [sys.executable, "-c", "from muhat.cli import main; main()"]
BOUNDS = ("--bounds", "n_min=0:1")
RHO = ("--rho", "1")
KEYS = ["schema", "error", "message", "parameter", "rule", "value", "hint", "exit_code"]
SECRET = "7391743.9125"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("n_min,weights\n" + "0.5,1\n" * 50)
    mh.Ledger.create("budget.db", budget=mh.ZCDP(rho=2), neighbors="substitute")
    # The footer is whole, so that the damage shows when values are read, after the charge.
    values = np.random.default_rng(0).random(50_000)
    pq.write_table(pa.table({"n_min": values}), "damaged.parquet", use_dictionary=False)
    content = bytearray(Path("damaged.parquet").read_bytes())
    content[4:200] = b"\xff" * 196
    Path("damaged.parquet").write_bytes(content)


def real(*arguments, **options):
    """Run the command as a shell does."""
    return subprocess.run([*MUHAT, *arguments], capture_output=True, text=True, **options)


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


def told(result):
    """The error, which is the last line of stderr, in the fields that are documented."""
    said = json.loads(result.stderr.splitlines()[-1])
    assert list(said) == KEYS
    assert said["schema"] == "muhat.error/1"
    return said


def spent():
    return len(mh.Ledger.open("budget.db").entries())


REFUSED = {
    "done": (("mean", "d.csv", *BOUNDS, *RHO, "--ledger", "budget.db"), 0, None),
    "mistake": (("mean", "d.csv", *BOUNDS, "--rho", "-1"), 2, "InvalidInput"),
    "unknown option": (("mean", "d.csv", *BOUNDS, *RHO, "--seed", "1"), 2, "InvalidInput"),
    "unknown command": (("maen", "d.csv"), 2, "InvalidInput"),
    "inner command": (("ledger", "show", "none.db"), 2, "InvalidInput"),
    "budget": (
        ("mean", "d.csv", *BOUNDS, "--rho", "3", "--ledger", "budget.db"),
        3,
        "BudgetExceeded",
    ),
    "theorem": (
        ("plan", "--magnitude", "1e6", "--columns", "a", "--n", "99", "--unbiased", *RHO),
        4,
        "Impossible",
    ),
    "damaged": (
        ("mean", "damaged.parquet", *BOUNDS, *RHO, "--ledger", "budget.db"),
        5,
        "SourceFailed",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_exit_code_says_what_became_of_the_charge(folder, case):
    arguments, code, kind = REFUSED[case]
    plain = real(*arguments)
    assert plain.returncode == code, plain.stderr
    assert spent() == (code in (0, 5))
    if not code:
        return
    assert plain.stdout == ""
    assert "Traceback" not in plain.stderr
    result = real(*arguments, "--json")
    said = told(result)
    assert (result.returncode, result.stdout) == (code, "")
    assert (said["exit_code"], said["error"]) == (code, kind)
    assert f"Error: {said['message']}" in plain.stderr


def test_fields_are_in_the_words_of_the_shell(folder):
    said = told(run("plan", *BOUNDS, "--n", "9", *RHO, "--n-min", "5", "--json"))
    assert said["message"] == said["rule"] == "--n-min is for a secret n; leave it out."
    assert said["parameter"] == "--n-min"
    said = told(run("mean", "d.csv", *BOUNDS, *RHO, "--contributions", "0", "--json"))
    assert said["message"] == ("--contributions must be a whole number of at least 1; got 0.")
    assert (said["parameter"], said["value"], said["hint"]) == ("--contributions", "0", None)
    said = told(run("mean", "d.csv", *BOUNDS, *RHO, "--n", "9", "--json"))
    assert said["message"] == "--n 9, but the data have another number of rows. " + said["hint"]
    assert (
        said["hint"]
        == "Leave --n out to have the rows counted, or use --secret-n to keep it secret."
    )


@pytest.mark.parametrize(
    ("arguments", "parameter", "value"),
    [
        (("--rho", "one"), "--rho", None),
        (("--seed\x1b[2J", "1"), "--seed\\x1b[2J", None),
        (("--rho", "1", "--project", "up\x1b[2J"), "--project", "'up\\x1b[2J'"),
        (("--rho", "1", "--mechanism", "x"), "--mechanism", "'x'"),
        (("--rho", "1", "--columns", "n_min,n_min"), "--columns", "'n_min' twice"),
    ],
)
def test_flags_that_are_refused_are_named(folder, arguments, parameter, value):
    said = told(run("mean", "d.csv", *BOUNDS, *arguments, "--json"))
    assert (said["parameter"], said["value"], said["exit_code"]) == (parameter, value, 2)
    assert all(text.isprintable() for text in said.values() if isinstance(text, str))


@pytest.mark.parametrize("name", ["n_min", "weights", "contributions must", "n=None", "max_bias"])
def test_a_column_keeps_its_name(folder, name):
    Path("named.csv").write_text(f"{name},other\n1,2\n")
    bounds = ("--bounds", f"{name}=1:0")
    backwards = run("mean", "named.csv", *bounds, *RHO)
    assert f"the lower bound of {name} must not be above" in backwards.stderr
    twice = run("mean", "named.csv", "--columns", f"{name},{name}", "--ball", "1", *RHO)
    assert repr(name) in twice.stderr or f" {name}" in twice.stderr
    missing = run("mean", "named.csv", "--bounds", f"{name}x=0:1", *RHO)
    assert f"Did you mean {name!r}?" in missing.stderr
    assert f"--{name.replace('_', '-')}" not in backwards.stderr + twice.stderr + missing.stderr
    assert "--secret-n" not in backwards.stderr + twice.stderr + missing.stderr


def test_what_has_no_flag_keeps_its_name_in_python(folder):
    said = run("mean", "d.csv", "--columns", "n_min", "--ball", "-1", *RHO)
    assert said.stderr == "Error: radius must be at least 0; got -1.\n"


def test_files_that_change_before_the_charge_cost_nothing_and_are_no_five(folder, monkeypatch):
    def changed(self):
        raise DataChanged("d.csv has changed since it was opened.")

    monkeypatch.setattr("muhat.data.files.FilesSource.rows", changed)
    result = run("mean", "d.csv", *BOUNDS, *RHO, "--ledger", "budget.db", "--json")
    assert told(result)["error"] == "DataChanged"
    assert (result.exit_code, spent()) == (2, 0)


def test_a_damaged_file_is_five_for_releases_alone(folder):
    assert run("mean", "damaged.parquet", *BOUNDS, *RHO).exit_code == 5
    assert run("check", "damaged.parquet").exit_code == 2
    asked = ("--model", "local", *BOUNDS, "--epsilon", "1")
    assert run("protocol", "simulate", "damaged.parquet", *asked).exit_code == 2


def test_files_that_change_after_the_charge_are_five(folder, monkeypatch):
    def changed(*_, **__):
        raise DataChanged("d.csv has changed since it was opened.")

    monkeypatch.setattr("muhat.planning.sums.NoisySums._sums", changed)
    for ledger, charges in ((), 0), (("--ledger", "budget.db"), 1):
        result = run("mean", "d.csv", *BOUNDS, *RHO, *ledger)
        assert (result.exit_code, spent()) == (5, charges)
        assert result.stderr.startswith("Error: d.csv has changed")


@pytest.mark.parametrize("error", [RuntimeError, MemoryError, KeyboardInterrupt])
def test_whatever_else_fails_after_the_charge_is_five_and_quotes_nothing(
    folder, monkeypatch, error
):
    def failing(*_, **__):
        raise error(f"the record {SECRET}")

    monkeypatch.setattr("muhat.planning.sums.answer", failing)
    arguments = ("mean", "d.csv", *BOUNDS, *RHO, "--ledger", "budget.db")
    plain = run(*arguments)
    sentence = f"{error.__name__} after the account was charged. The charge stays."
    assert (plain.exit_code, spent()) == (5, 1)
    assert plain.stderr == f"Error: {sentence}\n"
    said = told(run(*arguments, "--json"))
    assert (said["message"], said["error"], said["exit_code"]) == (sentence, error.__name__, 5)


def test_before_the_charge_an_unforeseen_failure_is_no_five(folder, monkeypatch):
    def failing(*_, **__):
        raise RuntimeError

    monkeypatch.setattr("muhat.planning.sums.NoisySums.admit", failing)
    result = run("mean", "d.csv", *BOUNDS, *RHO, "--ledger", "budget.db")
    assert (result.exit_code, spent()) == (1, 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_release_that_was_paid_and_cannot_be_printed_is_five(folder):
    with Path("/dev/full").open("w") as full:
        arguments = ("mean", "d.csv", *BOUNDS, *RHO, "--ledger", "budget.db")
        result = subprocess.run(
            [*MUHAT, *arguments], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert result.returncode == 5
    assert result.stderr.startswith("Error: OSError after the account was charged.")
    assert spent() == 1


def test_json_stands_for_itself_after_two_dashes(folder):
    result = run("mean", *BOUNDS, "--rho", "-1", "--", "--json")
    assert result.stderr.startswith("Error: ")


def test_a_warning_is_a_line_of_json_too(folder):
    promise = ("--epsilon", "1", "--delta", "0.1")
    result = run("plan", *BOUNDS, "--n", "50", *promise, "--json")
    assert "delta" in json.loads(result.stderr)["warning"]
    plain = run("plan", *BOUNDS, "--n", "50", *promise)
    assert plain.stderr.startswith("Warning: ")


def test_help_names_the_exit_codes():
    said = " ".join(run("--help").stdout.split())
    assert "Exit codes: 0 done" in said
