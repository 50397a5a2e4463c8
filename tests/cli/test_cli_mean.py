"""`muhat mean` and `muhat plan`: data on stdout, the rest on stderr, 2 and a sentence if bad."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import muhat as mh
from muhat.cli import main

NUMBER = 7391743.9125
WORD = "Rumpelstiltskin"
CANARIES = (WORD, "7391743.9", "7.3917439", "7.391744e", "7,391,743.9")
BOUNDS = ("--bounds", "salary=0:200000", "--bounds", "age=16:90")


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if code:
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
    return result


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"salary": [NUMBER, 30000.0] * 20, "age": [41.0, 90.0] * 20})
    frame["name"] = WORD
    frame.to_csv("d.csv", index=False)
    frame.to_parquet("d.parquet")
    pq.write_table(pa.table({"salary": [1.0], "age": [2.0]}), "small.parquet")
    whole = (tmp_path / "d.parquet").read_bytes()
    (tmp_path / "footer.parquet").write_bytes(whole[:-12] + b"\xff\xff\xff\x7fPAR1")
    (tmp_path / "cut.parquet").write_bytes(whole[:300])
    (tmp_path / "garbage.arrow").write_text(WORD * 100)
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress((tmp_path / "d.csv").read_bytes())[:-12])
    (tmp_path / "header.csv").write_text("salary,age\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "text.db").write_text(WORD * 100)
    run("ledger", "create", "budget.db", "--rho", "10", "--neighbors", "substitute")
    run("ledger", "create", "secret.db", "--rho", "10", "--neighbors", "add-remove")
    run("ledger", "create", "pure.db", "--epsilon", "1", "--neighbors", "substitute")
    return tmp_path


def without_hashes(text):
    """The text without hexadecimal words, in which any digits may turn up by chance."""
    return re.sub(r"[0-9a-f]{16,}", "…", text)


def accounts(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.db")}


RHO = ("--rho", "1")
REFUSALS = {
    "unknown column": (("d.csv", "--bounds", "salry=0:1", *RHO), "Did you mean 'salary'"),
    "unknown column of Parquet": (
        ("d.parquet", "--bounds", "agee=0:1", *RHO),
        "Did you mean 'age'",
    ),
    "column without bounds": (("d.csv", "--columns", "salary,age", *BOUNDS[:2], *RHO), "no bounds"),
    "column twice": (("d.csv", "--columns", "age,age", "--ball", "1", *RHO), "repeat"),
    "empty column name": (("d.csv", "--columns", "age,,salary", "--ball", "1", *RHO), "empty name"),
    "bounds twice": (("d.csv", "--bounds", "age=0:1", "--bounds", "age=0:1", *RHO), "twice"),
    "text column": (("d.parquet", "--bounds", "name=0:1", *RHO), "cannot be averaged"),
    "reversed bounds": (("d.csv", "--bounds", "age=90:16", *RHO), "above its upper bound"),
    "NaN bounds": (("d.csv", "--bounds", "age=nan:16", *RHO), "finite"),
    "infinite bounds": (("d.csv", "--bounds", "age=0:inf", *RHO), "finite"),
    "huge bounds": (("d.csv", "--bounds", f"age=0:{'9' * 5000}", *RHO), "finite"),
    "no number": (("d.csv", "--bounds", "age=0:x", *RHO), "not a number"),
    "no colon": (("d.csv", "--bounds", "age=0", *RHO), "COLUMN=LOW:HIGH"),
    "no bounds": (("d.csv", *RHO), "where records lie"),
    "bounds and ball": (("d.csv", *BOUNDS, "--ball", "1", *RHO), "where records lie"),
    "ball without columns": (("d.csv", "--ball", "1", *RHO), "--columns"),
    "ball of less than no size": (
        ("d.csv", "--columns", "age", "--ball", "-1", *RHO),
        "at least 0",
    ),
    "ball of NaN": (("d.csv", "--columns", "age", "--ball", "nan", *RHO), "finite"),
    "ball elsewhere": (("d.csv", "--columns", "age", "--ball", "1@0,0", *RHO), "1 entries"),
    "epsilon zero": (("d.csv", *BOUNDS, "--epsilon", "0"), "greater than 0"),
    "epsilon negative": (("d.csv", *BOUNDS, "--epsilon", "-1"), "greater than 0"),
    "epsilon NaN": (("d.csv", *BOUNDS, "--epsilon", "nan"), "finite"),
    "epsilon infinite": (("d.csv", *BOUNDS, "--epsilon", "inf"), "finite"),
    "epsilon text": (("d.csv", *BOUNDS, "--epsilon", "one"), "not a valid float"),
    "delta zero": (("d.csv", *BOUNDS, "--epsilon", "1", "--delta", "0"), "between 0 and 1"),
    "delta one": (("d.csv", *BOUNDS, "--epsilon", "1", "--delta", "1"), "between 0 and 1"),
    "delta NaN": (("d.csv", *BOUNDS, "--epsilon", "1", "--delta", "nan"), "finite"),
    "delta alone": (("d.csv", *BOUNDS, "--delta", "1e-6"), "exactly one"),
    "two promises": (("d.csv", *BOUNDS, *RHO, "--mu", "1"), "exactly one"),
    "no promise": (("d.csv", *BOUNDS), "exactly one"),
    "n zero": (("d.csv", *BOUNDS, *RHO, "--n", "0"), "at least 1"),
    "n negative": (("d.csv", *BOUNDS, *RHO, "--n", "-5"), "at least 1"),
    "n fractional": (("d.csv", *BOUNDS, *RHO, "--n", "1.5"), "not a valid int"),
    "another n": (("d.csv", *BOUNDS, *RHO, "--n", "41"), "another number of rows"),
    "n and secret": (("d.csv", *BOUNDS, *RHO, "--n", "40", "--secret-n"), "--secret-n"),
    "drop in a ball": (
        ("d.csv", "--columns", "salary,age", "--ball", "9", *RHO, "--missing", "drop"),
        "--secret-n",
    ),
    "unknown missing": (("d.csv", *BOUNDS, *RHO, "--missing", "zero"), "center"),
    "p too small": (("d.csv", *BOUNDS, *RHO, "--p", "1"), "at least 2"),
    "no contributions": (("d.csv", *BOUNDS, *RHO, "--contributions", "0"), "at least 1"),
    "no rows": (("header.csv", *BOUNDS, *RHO), "no rows"),
    "no header": (("empty.csv", *BOUNDS, *RHO), "header"),
    "missing file": (("none.csv", *BOUNDS, *RHO), "does not exist"),
    "no match": (("no*.parquet", *BOUNDS, *RHO), "no file matches"),
    "corrupt footer": (("footer.parquet", *BOUNDS, *RHO), "damaged"),
    "cut file": (("cut.parquet", *BOUNDS, *RHO), "damaged"),
    "garbage": (("garbage.arrow", *BOUNDS, *RHO), "damaged"),
    "cut archive": (("cut.csv.gz", *BOUNDS, *RHO), "damaged"),
    "unlike files": (("d.parquet", "small.parquet", *BOUNDS, *RHO), "other columns"),
    "directory": ((".", *BOUNDS, *RHO), "directory"),
    "no file": ((*BOUNDS, *RHO), "Missing argument"),
    "unknown option": (("d.csv", *BOUNDS, *RHO, "--seed", "1"), "No such option"),
    "too strong": (("d.csv", *BOUNDS, "--rho", "1e-300"), "larger"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_one_sentence_and_two_and_costs_nothing(folder, case):
    arguments, expected = REFUSALS[case]
    before = accounts(folder)
    result = run("mean", *arguments, "--ledger", "budget.db", code=2)
    assert re.search(expected, result.stderr)
    error = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(error) == 1
    assert len(error[0]) < 500
    told = run("mean", *arguments, "--ledger", "budget.db", "--json", code=2)
    (line,) = told.stderr.splitlines()
    assert f"Error: {json.loads(line)['message']}" == error[0]
    assert not [canary for canary in CANARIES if canary in result.stderr + told.stderr]
    assert accounts(folder) == before


@pytest.mark.parametrize(
    ("ledger", "options", "expected"),
    [
        ("none.db", (), "muhat ledger create"),
        ("text.db", (), "not a muhat ledger"),
        (".", (), "not a ledger"),
        ("", (), "must be a path"),
        ("secret.db", ("--n", "40"), "neighbors must be 'add-remove'"),
        ("budget.db", ("--secret-n",), "neighbors must be 'substitute'"),
        ("pure.db", (), "cannot be charged"),
        ("budget.db", ("--rho", "11"), "10-zCDP of 10-zCDP is left"),
    ],
)
def test_a_ledger_that_does_not_fit_is_refused(folder, ledger, options, expected):
    before = accounts(folder)
    code = 3 if "is left" in expected else 2
    result = run("mean", "d.csv", *BOUNDS, *RHO, *options, "--ledger", ledger, code=code)
    assert re.search(expected, result.stderr)
    assert accounts(folder) == before
    assert not (folder / "none.db").exists()


def test_json_has_every_documented_key(folder, documented_keys):
    result = run("mean", "d.csv", *BOUNDS, *RHO, "--ledger", "budget.db", "--json")
    fields = json.loads(result.stdout)
    assert set(fields) >= documented_keys
    assert fields["privacy"] == fields["cost"] == {"kind": "zcdp", "rho": 1.0}
    assert fields["n"] == 40
    assert fields["columns"] == ["salary", "age"]
    assert fields["neighbors"] == "substitute"
    assert set(fields["certificate"]) >= {"error", "ratio", "bounds"}
    assert "n was counted from the data" in fields["assumptions"]
    assert fields["ledger_head"]["count"] == 1
    assert result.stderr == ""
    assert mh.Release.from_json(result.stdout).n == 40


def test_a_secret_number_of_rows_is_nowhere(folder, monkeypatch):
    # One fixed noise: a noisy count may happen to be near the count, and its digits with it.
    monkeypatch.setattr("muhat.noise.rounded_normal", lambda dim: np.full(dim, 3 << 56))
    frame = pd.DataFrame({"age": [41.0] * 41737})
    frame.to_csv("many.csv", index=False)
    frame.to_parquet("many.parquet")
    for file in ("many.csv", "many.parquet"):
        for extra in ((), ("--json",), ("--missing", "drop")):
            result = run(
                *("mean", file, "--bounds", "age=16:90", *RHO, "--secret-n", *extra),
                *("--ledger", "secret.db"),
            )
            assert "41737" not in without_hashes(result.output)
            assert "41,737" not in result.output
            if extra == ("--json",):
                fields = json.loads(result.stdout)
                assert fields["n"] is None
                assert [one["mechanisms"] for one in fields["certificate"]["bounds"]] == ["any"]
    account = (folder / "secret.db").read_bytes().decode("latin-1")
    assert "41737" not in without_hashes(account)
    assert "41737" not in without_hashes(run("ledger", "show", "secret.db", "--json").stdout)


def test_a_table_goes_to_stdout_and_remarks_to_stderr(folder):
    result = run("mean", "d.csv", *BOUNDS, *RHO)
    assert "salary" in result.stdout
    assert "standard error" in result.stdout
    assert result.stderr == "Not written to any account; use --ledger to keep one.\n"
    assert json.loads(run("mean", "d.csv", *BOUNDS, *RHO, "--json").stdout)["ledger_head"] is None


def test_every_promise_and_domain_can_be_asked_for(folder):
    for promise in (("--epsilon", "1"), ("--epsilon", "1", "--delta", "1e-6"), ("--mu", "1"), RHO):
        for domain in (BOUNDS, ("--columns", "salary,age", "--ball", "1e5@5e4,40")):
            for n in ((), ("--n", "40"), ("--secret-n",)):
                for file in ("d.csv", "d.parquet"):
                    result = run("mean", file, *domain, *promise, *n, "--json")
                    values = json.loads(result.stdout)["value"]
                    assert all(map(math.isfinite, values))


def test_files_are_read_together(folder):
    for name in ("a", "b"):
        (folder / f"part-{name}.csv").write_text("age\n20\n30\n")
    for files in (("part-a.csv", "part-b.csv"), ("part-*.csv",)):
        result = run("mean", *files, "--bounds", "age=16:90", *RHO, "--json")
        assert json.loads(result.stdout)["n"] == 4


def test_verify_notices_a_ledger_that_was_rolled_back(folder):
    def release(name):
        result = run("mean", "d.csv", *BOUNDS, *RHO, "--ledger", "budget.db", "--json")
        (folder / name).write_text(result.stdout)

    release("first.json")
    shutil.copy("budget.db", "old.db")
    release("second.json")
    for name in ("first.json", "second.json"):
        assert "intact" in run("ledger", "verify", "budget.db", "--release", name).stdout
    shutil.copy("old.db", "budget.db")
    assert "intact" in run("ledger", "verify", "budget.db", "--release", "first.json").stdout
    found = run("ledger", "verify", "budget.db", "--release", "second.json", code=2)
    assert "rolled back" in found.stderr


def test_plan_reads_no_data_and_says_the_same_as_the_release(folder):
    planned = json.loads(run("plan", *BOUNDS, *RHO, "--n", "40", "--json").stdout)
    released = json.loads(run("mean", "d.csv", *BOUNDS, *RHO, "--n", "40", "--json").stdout)
    assert planned["digest"] == released["plan_digest"]
    assert planned["certificate"] == released["certificate"]
    assert "promise" in run("plan", *BOUNDS, *RHO, "--n", "40").stdout
    assert "--secret-n" in run("plan", *BOUNDS, *RHO, code=2).stderr
    secret = json.loads(run("plan", *BOUNDS, *RHO, "--secret-n", "--json").stdout)
    assert secret["n"] is None
    assert secret["expected_error"] is None


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("mean",),
        ("plan",),
        ("check",),
        ("demo",),
        ("ledger",),
        ("ledger", "create"),
        ("ledger", "show"),
        ("ledger", "verify"),
    ],
)
def test_help_ends_with_an_example(command):
    result = run(*command, "--help")
    last = result.stdout.strip().split("\n\n")[-1]
    assert last.strip().startswith("Example: muhat")
    assert result.stderr == ""


def test_unknown_commands_are_refused():
    assert "No such command" in run("maen", code=2).stderr
    assert run("--version").stdout.startswith("muhat, version ")


def test_the_program_itself_leaves_no_file_behind_and_quotes_no_cell(folder):
    temporary = folder / "temporary"
    temporary.mkdir()
    before = {path.name for path in folder.iterdir()}
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONDEVMODE": "1"}
    for arguments, code in (
        (("d.csv", *BOUNDS, *RHO, "--ledger", "budget.db", "--json"), 0),
        (("d.csv", "--bounds", "name=0:1", *RHO, "--ledger", "budget.db"), 0),
        (("footer.parquet", *BOUNDS, *RHO, "--ledger", "budget.db"), 2),
        (("d.parquet", "--bounds", "name=0:1", *RHO, "--ledger", "budget.db"), 2),
    ):
        result = subprocess.run(
            [sys.executable, "-c", "from muhat.cli import main; main()", "mean", *arguments],
            capture_output=True,
            env=environment,
            check=False,
        )
        assert result.returncode == code, result.stderr
        assert WORD.encode() not in result.stdout
        assert not [canary for canary in CANARIES if canary.encode() in result.stderr]
        assert b"Traceback" not in result.stderr
        assert bool(result.stdout) == (code == 0)
    assert list(temporary.iterdir()) == []
    assert {path.name for path in folder.iterdir()} == before
    assert WORD.encode() not in (folder / "budget.db").read_bytes()


def test_a_plan_is_drawn_to_a_file(tmp_path):
    from click.testing import CliRunner

    from muhat.cli import main

    plan = ["plan", "--bounds", "a=0:1", "--bounds", "b=0:5", "--n", "100", "--rho", "0.1"]
    for name in ("plan.svg", "plan.png"):
        result = CliRunner().invoke(main, [*plan, "--plot", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
        assert (tmp_path / name).stat().st_size > 5_000
    for name in ("plan.txt", "no/such/folder/plan.png"):
        result = CliRunner().invoke(main, [*plan, "--plot", str(tmp_path / name)])
        assert result.exit_code == 2
        assert result.stdout == ""


def test_squares_that_cost_a_little_are_released_on_request(folder):
    arguments = ("mean", "d.csv", *BOUNDS, "--epsilon", 1)
    plain, asked = run(*arguments), run(*arguments, "--population")
    assert "population=True (--population) releases them" in plain.stdout
    assert "No squares" not in asked.stdout
    fields = json.loads(run(*arguments, "--population", "--json").stdout)
    assert len(fields["squares"]["lacking"]) == 2
    for more, words in (
        (("--contributions", 2), "--population needs --contributions 1"),
        (("--secret-n", "--unbiased"), "--population is for bounded records, without --unbiased"),
    ):
        assert words in run(*arguments, "--population", *more, code=2).stderr


def test_a_column_with_equal_bounds_is_released_exactly(folder):
    bounds = ("--bounds", "salary=0:200000", "--bounds", "age=41:41")
    found = run("mean", "d.csv", *bounds, "--rho", "0.5", "--json")
    release = json.loads(found.stdout)
    assert (release["value"][1], release["standard_error"][1]) == (41, 0)
    assert release["standard_error"][0] > 0
    assert "constants need no data and no noise: age = 41" in found.stdout
    plan = run("plan", *bounds, "--rho", "0.5", "--n", "40", "--missing", "none").stdout
    assert "age = 41" in plan
    assert (
        "lower bound of age must not be above"
        in run("mean", "d.csv", "--bounds", "age=42:41", "--rho", "0.5", code=2).stderr
    )
