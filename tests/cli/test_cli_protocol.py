"""`muhat protocol`: descriptions, devices and servers as separate programs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import muhat as mh
from muhat.cli import main

AGE = ("--bounds", "age=16:90")
EPSILON = ("--epsilon", "1")


@pytest.fixture
def people(tmp_path):
    rows = np.random.default_rng(3).uniform(20, 60, 400)
    path = tmp_path / "people.csv"
    path.write_text("age\n" + "\n".join(f"{age:.3f}" for age in rows) + "\n")
    return path


def run(*arguments, code=0, stdin=None):
    result = CliRunner().invoke(main, ["protocol", *map(str, arguments)], input=stdin)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    if code:
        assert result.stdout == ""
    return result


def new(tmp_path, *arguments, n=400):
    path = tmp_path / "round1.json"
    run("new", *arguments, "--n", n, "--out", path)
    return path


def test_clients_and_server_are_separate_programs_over_files(tmp_path, people):
    first = new(tmp_path, *AGE, *EPSILON)
    messages = tmp_path / "messages.bin"
    run("client", first, people, "--out", messages)
    done = run("server", first, messages, "--json")
    assert "400 taken" in done.stderr
    release = mh.Release.from_json(done.stdout)
    assert release.columns == ("age",)
    assert release.n == 400
    assert release.mechanism == "local-cap"


def test_clients_and_server_speak_through_a_pipe(tmp_path, people):
    first = new(tmp_path, *AGE, "--rho", "1")
    stream = run("client", first, people).stdout_bytes
    assert json.loads(run("server", first, "--json", stdin=stream).stdout)["n"] == 400


def test_devices_of_single_people_send_single_messages(tmp_path):
    first = new(tmp_path, "--ball", "1", "--dim", "2", *EPSILON, n=3)
    files = []
    for index, record in enumerate(("0.1,0.2", ",0.5", "1e300,-3")):
        files.append(tmp_path / f"{index}.bin")
        run("client", first, f"--record={record}", "--out", files[-1])
    assert "3 planned" not in run("server", first, *files).output


def test_a_description_is_shown_in_words(tmp_path):
    first = new(tmp_path, *AGE, *EPSILON)
    text = run("show", first).stdout
    assert "Round 1, local model" in text
    assert "nobody" in text
    assert str(len(json.loads(first.read_text())))  # it is JSON


def test_a_simulation_runs_every_row_as_a_person(people):
    done = run("simulate", people, *AGE, *EPSILON)
    assert "Private mean" in done.stdout
    assert "Round 1, local model" in done.stderr
    quiet = run("simulate", people, *AGE, *EPSILON, "--quiet", "--json")
    assert "Round" not in quiet.stderr
    assert mh.Release.from_json(quiet.stdout).n == 400


def test_a_damaged_file_of_messages_costs_its_messages_only(tmp_path, people):
    first = new(tmp_path, *AGE, *EPSILON)
    messages = tmp_path / "messages.bin"
    run("client", first, people, "--out", messages)
    whole = messages.read_bytes()
    messages.write_bytes(whole[:-10])
    done = run("server", first, messages)
    assert "399 taken, rejected: 1 too short" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "nowhere.json"),
        ("show", "/"),
        ("new", *AGE, "--n", "100"),
        ("new", *EPSILON, "--n", "100"),
        ("new", *AGE, *EPSILON, "--n", "0"),
        ("new", *AGE, *EPSILON, "--n", "10", "--minimum", "20"),
        ("new", *AGE, *EPSILON, "--n", "10", "--out", "/nowhere/at/all.json"),
        ("simulate", "nowhere.csv", *AGE, *EPSILON),
    ],
)
def test_mistakes_are_explained_before_anything_happens(arguments):
    assert run(*arguments, code=2).stderr.startswith("Error: ")


def test_wrong_records_and_files_are_refused_without_quoting_them(tmp_path):
    first = new(tmp_path, *AGE, *EPSILON)
    for arguments in (("--record", "secret77"), ("--record", "1,2"), (), (first, "--record", "3")):
        done = run("client", first, *arguments, code=2)
        assert "secret77" not in done.output
    empty = tmp_path / "empty.bin"
    empty.write_bytes(b"")
    assert "0 of 400 planned users" in run("server", first, empty, code=2).stderr
    assert "cannot be read" in run("server", first, tmp_path / "none.bin", code=2).stderr
    assert "not the JSON of a protocol" in run("show", empty, code=2).stderr
