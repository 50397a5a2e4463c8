"""`muhat protocol account`: a device's budget on the command line."""

from __future__ import annotations

import json

import pytest
from protocol_command import run

pytestmark = pytest.mark.usefixtures("own_device")

AGE = ("--bounds", "age=16:90", "--epsilon", "1")


def described(tmp_path, n=100, *more):
    path = tmp_path / f"round-{n}.json"
    run("new", *AGE, "--n", n, *more, "--out", path)
    return path


def test_a_device_answers_a_round_once_and_tasks_within_its_budget(tmp_path):
    run("account", "create", "--epsilon", "2", "--days", "7")
    asked = [described(tmp_path, n) for n in (100, 101, 102)]
    sent = [run("client", asked[0], "--record", age).stdout_bytes for age in ("41", "17")]
    assert sent[0] == sent[1]
    run("client", asked[1], "--record", "41")
    refused = run("client", asked[2], "--record", "41", code=3)
    assert "costs 1-DP, and 0-DP of 2-DP for 7 days is left" in refused.stderr
    shown = run("account", "show").stdout
    assert "spent 2-DP, left 0-DP" in shown
    assert shown.count("round 1") == 2
    said = json.loads(run("account", "show", "--json").stdout)
    assert said["remaining"]["epsilon"] == 0
    assert [each["number"] for each in said["answered"]] == [1, 1]


def test_an_account_of_ones_own_is_made_when_it_is_first_needed(tmp_path):
    run("client", described(tmp_path), "--record", "41")
    assert "(4, 1e-05)" in run("account", "show").stdout
    assert "exists already" in run("account", "create", "--epsilon", "1", code=2).stderr


def test_without_an_account_every_answer_is_another(tmp_path):
    first = described(tmp_path)
    arguments = ("client", first, "--record", "41", "--no-account")
    assert run(*arguments).stdout_bytes != run(*arguments).stdout_bytes
    assert "left (4, 1e-05)" in run("account", "show").stdout


def test_accounts_are_never_written_over_and_belong_to_single_records(tmp_path):
    first, device, table = described(tmp_path), tmp_path / "device.db", tmp_path / "people.csv"
    run("account", "create", device, "--epsilon", "1")
    table.write_text("age\n41\n")
    one = ("client", first, "--record", "41", "--account", device)
    assert "files that are read" in run(*one, "--out", device, code=2).stderr
    assert "--account is for one --record" in run(*one, "--no-account", code=2).stderr
    several = ("client", first, table, "--account", device)
    assert "--account is for one --record" in run(*several, code=2).stderr
    missing = ("client", first, "--record", "41", "--account", tmp_path / "none.db")
    assert "There is no account of a device" in run(*missing, code=2).stderr


def test_how_many_are_honest_is_for_the_shuffle_model(tmp_path):
    mixed = ("--bounds", "age=16:90", "--epsilon", "1", "--delta", "1e-6", "--model", "shuffle")
    path = tmp_path / "mixed.json"
    run("new", *mixed, "--n", 100, "--honest", 60, "--out", path)
    assert "at least 60 users of 90 are honest" in run("show", path).stdout
    assert "counts on nobody" in run("new", *AGE, "--n", 9, "--honest", 5, code=2).stderr


def test_a_survey_has_a_name_a_version_and_an_end(tmp_path):
    survey = ("--survey", "ages", "--version", "2", "--expires")
    open_ = described(tmp_path, 100, *survey, "2999-01-01")
    assert "'ages', version 2, until 2999-01-01T00:00:00Z" in run("show", open_).stdout
    run("client", open_, "--record", "41")
    assert "'ages' version 2" in run("account", "show").stdout
    ended = described(tmp_path, 101, *survey, "2020-01-01")
    assert "the survey ended" in run("client", ended, "--record", "41", code=2).stderr
    alone = run("new", *AGE, "--n", "100", "--expires", "2020-01-01", code=2)
    assert "those of a --survey" in alone.stderr
