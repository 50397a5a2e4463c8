"""`muhat queries` from the shell: tables, running counts, ranges, and clear refusals."""

from __future__ import annotations

import csv
import json

import pytest
from click.testing import CliRunner

from muhat.cli import main

COLUMNS = ["--categories", "sex=f,m", "--bins", "age=0,18,65,120"]
PROMISE = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    rows = [f"{'fmx'[i % 3]},{i % 100}" for i in range(3000)]
    path.write_text("sex,age\n" + "\n".join(rows) + "\n")
    return str(path)


def run(*arguments):
    return CliRunner().invoke(main, ["queries", *arguments])


def test_marginals_are_printed_with_their_errors(people):
    done = run(people, "--marginals", "2", "--columns", "sex,age", *COLUMNS, *PROMISE)
    assert done.exit_code == 0, done.output
    assert "sex = f, age = [0, 18)" in done.output
    assert "1-way" not in done.output


def test_json_has_the_documented_keys(people, documented_keys):
    done = run(people, "--marginals", "1", *COLUMNS, *PROMISE, "--json")
    fields = json.loads(done.stdout)
    assert set(fields) >= documented_keys
    assert fields["n"] is None
    assert fields["columns"] == ["sex", "age"]
    assert len(fields["value"]) == 5


@pytest.mark.parametrize(
    ("query", "answers"),
    [("--prefix", 3), ("--ranges", 6), ("--histogram", 3)],
)
def test_queries_about_one_column(people, query, answers):
    done = run(people, query, "--bins", "age=0,18,65,120", "--rho", "0.5", "--json")
    assert len(json.loads(done.stdout)["value"]) == answers


def test_the_number_of_rows_may_be_public(people):
    done = run(people, "--histogram", *COLUMNS, *PROMISE, "--substitute", "--other", "--json")
    fields = json.loads(done.stdout)
    assert fields["n"] == 3000
    assert fields["categories"][0] == ["f", "m", "other"]
    assert sum(fields["value"]) == pytest.approx(3000, abs=1e-3)


@pytest.mark.parametrize("substitute", [[], ["--substitute"]])
def test_rows_with_missing_values_are_left_out_unless_something_else_is_said(tmp_path, substitute):
    path = tmp_path / "people.csv"
    path.write_text("sex\n" + "f\n" * 500 + "m\n" * 350 + '""\n' * 100 + "x\n" * 100)
    options = [str(path), "--histogram", "--categories", "sex=f,m", "--mu", "10", *substitute]
    words = {"drop": "left out", "other": 'counts as "other"', "none": "as was declared"}
    counts = {"drop": [500, 350], "other": [500, 350, 200], "none": [700, 350]}
    for missing, said in words.items():
        fields = json.loads(run(*options, "--missing", missing, "--json").stdout)
        # Noise of a deviation of .15: 20 of them.
        assert fields["value"] == pytest.approx(counts[missing], abs=3)
        assert fields["missing"] == {"sex": missing}
        shown = run(*options, "--missing", missing).stdout
        assert said in shown
        assert ("Recorded: about 8" in shown) == (missing == "drop")


def test_all_answers_are_written_to_a_file(people, tmp_path):
    out = tmp_path / "answers.csv"
    done = run(people, "--marginals", "2", *COLUMNS, *PROMISE, "--out", str(out), "--projected")
    assert done.exit_code == 0, done.output
    with out.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    assert set(rows[0]) == {"sex", "age", "value", "standard_error", "lower", "upper"}
    assert all(float(row["value"]) >= 0 for row in rows)


def test_categories_may_come_from_a_file(people, tmp_path):
    declared = tmp_path / "categories.json"
    declared.write_text(json.dumps({"sex": ["f", "m"], "age": {"bins": [0, 50, 100]}}))
    done = run(people, "--marginals", "2", "--categories", str(declared), *PROMISE, "--json")
    assert len(json.loads(done.stdout)["value"]) == 4


def test_the_ledger_is_charged(people, tmp_path):
    budget = str(tmp_path / "budget.db")
    CliRunner().invoke(
        main, ["ledger", "create", budget, "--rho", "1", "--neighbors", "add-remove"]
    )
    done = run(people, "--prefix", "--bins", "age=0,50,100", "--rho", "0.4", "--ledger", budget)
    assert done.exit_code == 0, done.output
    again = run(people, "--prefix", "--bins", "age=0,50,100", "--rho", "0.7", "--ledger", budget)
    assert again.exit_code != 0
    assert "budget" in again.output.lower()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--marginals", "2", "--columns", "sex,age", *PROMISE], "must be declared"),
        (["--prefix", *PROMISE], "must be declared"),
        ([*COLUMNS, *PROMISE], "exactly one of"),
        (["--prefix", "--ranges", *COLUMNS, *PROMISE], "exactly one of"),
        (["--prefix", *COLUMNS, *PROMISE], "about one column"),
        (["--marginals", "3", *COLUMNS, *PROMISE], "order"),
        (["--marginals", "1", "--categories", "sex", *PROMISE], "--categories COLUMN=X,Y"),
        (["--marginals", "1", *COLUMNS, "--categories", "sex=a", *PROMISE], "twice"),
        (["--marginals", "1", "--bins", "age=0,ten", *PROMISE], "not a number"),
        (["--marginals", "1", "--bins", "age=10,0", *PROMISE], "increas"),
        (["--marginals", "1", "--categories", "sex=f,f", *PROMISE], "repeat"),
        (["--marginals", "1", "--categories", "none.json", *PROMISE], "JSON"),
        (["--marginals", "1", "--categories", "gender=f,m", *PROMISE], "gender"),
        (["--marginals", "1", *COLUMNS], "exactly one of"),
        (["--marginals", "1", *COLUMNS, *PROMISE, "--out", "/no/such/place.csv"], "written"),
    ],
)
def test_bad_options_are_refused_with_a_reason(people, arguments, message):
    done = run(people, *arguments)
    assert done.exit_code != 0
    assert message in done.output


def test_the_owner_can_list_the_labels(people):
    done = CliRunner().invoke(main, ["check", people, "--labels", "sex"])
    assert "--categories sex=f,m,x" in done.output
    assert "Not private" in done.output
    listed = CliRunner().invoke(main, ["check", people, "--labels", "sex,age", "--json"])
    assert len(json.loads(listed.stdout)["age"]) == 100


def test_the_owner_may_declare_the_values_that_occur_public(people):
    arguments = ["--marginals", "2", "--columns", "sex,age", *PROMISE, "--json"]
    done = run(people, *arguments, "--public-categories")
    fields = json.loads(done.stdout)
    assert fields["categories"][0] == ["f", "m", "x"]
    assert len(fields["categories"][1]) == 100
    assert any("sex, age" in line and "public" in line for line in fields["assumptions"])
    some = run(people, *arguments, "--categories", "sex=f,m", "--public-categories")
    assert len(json.loads(some.stdout)["value"]) == 200


def test_numbers_are_categories_too(people):
    done = run(people, "--histogram", "--categories", "age=1,2,3", "--mu", "100", "--json")
    value = json.loads(done.stdout)["value"]
    assert value == pytest.approx([30, 30, 30], abs=1)
