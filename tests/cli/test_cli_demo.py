"""`muhat demo`: the first thing a new user sees."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from click.testing import CliRunner

import muhat as mh
from muhat.cli import main


def run(*arguments):
    result = CliRunner().invoke(main, ["demo", *arguments])
    assert result.exit_code == 0, result.output
    return result


def test_it_shows_a_release_its_certificate_and_the_account():
    result = run()
    for words in ("salary", "age", "standard error", "95 % interval", "least error", "Account: "):
        assert words in result.stdout
    assert result.stderr.startswith("$ muhat mean salaries.csv")
    assert "Assumed: " in result.stderr


def test_its_json_is_a_release_with_sensible_errors_for_both_columns():
    result = run("--json")
    release = mh.Release.from_json(result.stdout)
    assert release.columns == ("salary", "age")
    assert release.n == 10_000
    salary, age = release.standard_error
    assert salary < 0.01 * 200_000
    assert age < 0.01 * 74
    assert release.certificate.ratio > 1
    assert json.loads(result.stdout)["ledger_head"]["count"] == 1
    assert result.stderr == ""


def test_the_noise_is_new_every_time():
    first, second = (mh.Release.from_json(run("--json").stdout) for _ in range(2))
    assert (first.value != second.value).all()


def test_the_command_it_shows_is_a_command_that_works(tmp_path, monkeypatch):
    from muhat.demo import SALARIES

    monkeypatch.chdir(tmp_path)
    (tmp_path / SALARIES.name).write_bytes(SALARIES.read_bytes())
    shown = run().stderr.splitlines()[0].removeprefix("$ muhat ").split()
    runner = CliRunner()
    promise = mh.Release.from_json(run("--json").stdout).privacy
    mh.Ledger.create(tmp_path / "budget.db", budget=promise, neighbors="substitute")
    assert runner.invoke(main, shown).exit_code == 0


def test_python_m_muhat_is_muhat():
    asked = [sys.executable, "-m", "muhat", "--version"]
    assert "muhat, version" in subprocess.check_output(asked, text=True)


def test_it_leaves_nothing_behind_and_works_from_a_folder_it_may_not_write(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    result = subprocess.run(
        [sys.executable, "-c", "from muhat.cli import main; main()", "demo"],
        capture_output=True,
        cwd="/proc" if os.path.isdir("/proc") else tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert list(temporary.iterdir()) == []
