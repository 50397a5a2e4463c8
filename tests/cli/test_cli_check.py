"""`muhat check`: for the owner of the data, who is told so; refusals as everywhere."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from click.testing import CliRunner

from muhat.cli import main


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["check", *map(str, arguments)])
    assert result.exit_code == code, result.output
    if code:
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
    return result


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text('salary,age\n1000,20\n2000,x\nnan,95\n,\n5\n"7,8\n')
    return path


def test_what_is_wrong_with_a_file_is_counted(file):
    result = run(file, "--bounds", "salary=1500:1e6", "--bounds", "age=16:90", "--json")
    report = json.loads(result.stdout)
    assert (report["rows"], report["ragged"]) == (6, 2)
    salary, age = report["columns"]
    assert (salary["name"], salary["below"], salary["above"]) == ("salary", 1, 0)
    assert (age["below"], age["above"], age["minimum"], age["maximum"]) == (0, 1, 20.0, 95.0)
    assert salary["missing"] == 4
    assert "Not private" in result.stderr
    assert "Not private" not in result.stdout


def test_the_table_goes_to_stdout_and_the_warning_to_stderr(file):
    result = run(file)
    assert "6 rows" in result.stdout
    assert "salary" in result.stdout
    assert result.stderr.startswith("Not private")


def test_columns_can_be_chosen_and_must_match_their_bounds(file):
    assert [c["name"] for c in json.loads(run(file, "--columns", "age", "--json").stdout)["columns"]
            ] == ["age"]  # fmt: skip
    refused = run(file, "--columns", "age", "--bounds", "salary=0:1", code=2)
    assert "same columns" in refused.stderr


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("none.csv", None, "does not exist"),
        ("d.parquet", b"no", "damaged"),
        ("d.txt", b"a\n1\n", "must end in"),
        ("e.csv", b"", "header"),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path, name, content, expected):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert expected in run(tmp_path / name, code=2).stderr


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--columns", "aeg"), "Did you mean 'age'"),
        (("--bounds", "age=90:16"), "above its upper bound"),
        (("--bounds", "age=nan:16"), "finite"),
        (("--bounds", "age"), "COLUMN=LOW:HIGH"),
    ],
)
def test_options_that_make_no_sense_are_refused(file, options, expected):
    assert expected in run(file, *options, code=2).stderr


def test_parquet_files_are_looked_at_by_type(tmp_path):
    frame = pd.DataFrame({"a": [1.0, float("inf"), None], "b": pd.array([1, None, 3], "Int64")})
    frame.to_parquet(tmp_path / "d.parquet")
    columns = json.loads(run(tmp_path / "d.parquet", "--json").stdout)["columns"]
    assert [c["type"] for c in columns] == ["double", "int64"]
    assert [c["missing"] for c in columns] == [1, 1]
    assert [c["non_finite"] for c in columns] == [1, 0]


def test_numbers_are_told_from_text(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(
        "salary,department,mixed,empty\n10,care,1,\n20,school,x, \n,,,\n 3e2 ,école,NaN,\t\n"
    )
    shown = {c["name"]: c for c in json.loads(run(path, "--json").stdout)["columns"]}
    told = {name: (c["type"], c["missing"], c["not_numbers"]) for name, c in shown.items()}
    assert told == {
        "salary": ("numbers", 1, 0),
        "department": ("text", 4, 3),
        "mixed": ("numbers and text", 3, 2),
        "empty": ("nothing", 4, 0),
    }
    output = run(path).stdout
    assert "of these text" in output
    assert output.endswith("As categories: muhat check … --labels department\n")
    assert "As categories" not in run(path, "--columns", "salary").stdout


def test_text_in_a_file_with_types_is_listed_too(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", None, "4"]})
    frame["c"] = frame["b"].astype("category")
    frame.to_parquet(tmp_path / "d.parquet")
    for name in ("b", "c"):
        columns = json.loads(run(tmp_path / "d.parquet", "--json").stdout)["columns"]
        (column,) = [each for each in columns if each["name"] == name]
        assert (column["type"], column["missing"], column["not_numbers"]) == ("text", 2, 1)
    assert columns[0]["not_numbers"] is None
    refused = run(tmp_path / "d.parquet", "--columns", "b", code=2)
    assert "cannot be averaged" in refused.stderr


def test_lines_of_json_are_told_by_what_is_in_quotes(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text('{"a": 1, "b": "x"}\n{"a": "2", "b": null}\n{"a": true}\n')
    a, b = json.loads(run(path, "--columns", "a,b", "--json").stdout)["columns"]
    assert (b["type"], b["missing"], b["not_numbers"]) == ("text", 3, 1)
    assert (a["type"], a["missing"], a["not_numbers"]) == ("numbers", 0, 0)


def test_columns_that_share_a_name_are_looked_at_as_numbers(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("a,a\n1,x\n")
    columns = json.loads(run(path, "--json").stdout)["columns"]
    assert [(c["type"], c["not_numbers"]) for c in columns] == [("text", None)] * 2
