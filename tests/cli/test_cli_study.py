"""`muhat study`: the list, one study, all of them, and the page."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import muhat.studies
from muhat.cli import main
from muhat.cli import study as command
from muhat.errors import InvalidInput
from muhat.studies.drawing import Line, lines
from muhat.studies.study import Study, Verdict


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["study", *arguments])
    assert result.exit_code == code, result.output
    return result


TOY = Study(
    name="toy",
    title="A toy",
    paper="nobody",
    claim="one is one",
    noise="none.",
    settings={"quick": {"d": 1}, "full": {"d": 2}},
    measure=lambda settings, progress: [{"d": settings["d"], "error": 1.0}],
    panels=lambda rows: [lines("toy", [Line("a", [1, 2], [3, 4])], x="x", y="y")],
    verdict=lambda rows: Verdict("in part", f"The error is {rows[0]['error']:g}."),
)


@pytest.fixture
def only_toy(monkeypatch):
    monkeypatch.setitem(sys.modules, "toy_study", SimpleNamespace(STUDY=TOY))
    for name in ("muhat.studies", "muhat.studies.report"):
        monkeypatch.setattr(f"{name}.MODULES", {"toy": "toy_study"})


def test_the_list_has_every_study_and_its_paper():
    text = run("list").stdout
    entries = json.loads(run("list", "--json").stdout)["studies"]
    assert [entry["name"] for entry in entries] == list(muhat.studies.MODULES)
    for entry in entries:
        assert entry["name"] in text
        assert entry["claim"]


def test_a_study_writes_its_files_and_says_what_came_out(tmp_path, only_toy):
    result = run("run", "toy", "--full", "--out", str(tmp_path))
    assert result.stdout.startswith("Reproduced: in part. ")
    assert result.stderr == ""
    assert {path.name for path in tmp_path.iterdir()} == {
        f"toy.{kind}" for kind in ("csv", "svg", "png", "md", "json")
    }
    record = json.loads((tmp_path / "toy.json").read_text())
    assert record["paragraph"] in result.stdout
    assert record["level"] == "full"


def test_all_of_them_end_with_a_page(tmp_path, only_toy):
    text = run("all", "--quick", "--jobs", "1", "--out", str(tmp_path)).stdout
    assert "toy: reproduced: in part" in text
    assert str(tmp_path / "report.html") in text


def test_all_of_them_and_the_page_as_json(tmp_path, only_toy):
    out = ("--out", str(tmp_path))
    found = json.loads(run("all", "--quick", "--jobs", "1", *out, "--json").stdout)
    (record,) = found["studies"]
    assert (record["name"], record["level"]) == ("toy", "quick")
    assert found["report"] == str(tmp_path / "report.html")
    again = json.loads(run("report", str(tmp_path), "--json").stdout)
    assert again["reproduced"] == {"toy": "in part"}


def test_a_study_that_is_refused_is_named_and_the_exit_code_says_so(
    tmp_path, only_toy, monkeypatch
):
    def refuse(settings, progress):
        raise InvalidInput("MUHAT_DIGITS must name a folder.")

    refusing = SimpleNamespace(STUDY=dataclasses.replace(TOY, name="bad", measure=refuse))
    monkeypatch.setitem(sys.modules, "bad_study", refusing)
    muhat.studies.MODULES["bad"] = "bad_study"
    text = run("all", "--jobs", "1", "--out", str(tmp_path), code=1).stdout
    assert "bad: not run. MUHAT_DIGITS must name a folder." in text
    assert "toy: reproduced: in part" in text
    assert "report.html" in text


def test_a_folder_that_cannot_be_written_is_refused_once_and_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        for arguments in (("all",), ("all", "--jobs", "1"), ("run", "blog")):
            stderr = run(*arguments, "--out", str(out), code=2).stderr
            assert stderr.startswith("Error: --out must be a folder")
            assert stderr.count("\n") == 1


def test_mistakes_are_one_sentence():
    for arguments in (("run", "blogg"), ("report", "/nowhere")):
        result = run(*arguments, code=2)
        assert result.stderr.startswith("Error: ")
        assert "Traceback" not in result.output


def test_every_command_ends_its_help_with_an_example():
    for name in ("list", "run", "all", "report"):
        assert "Example: muhat study" in run(name, "--help").stdout
    assert "study" in CliRunner().invoke(main, ["--help"]).stdout


def test_a_terminal_gets_a_progress_bar(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal, piped = Terminal(), io.StringIO()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("sys.stdout", piped)
    with command._bar(["blog", "errata"]) as advance:
        advance("blog", 0.5)
        advance("errata", 0.1)
        print("a line")
    assert "blog, errata" in terminal.getvalue()
    assert "%" in terminal.getvalue()
    assert piped.getvalue() == "a line\n"
    assert "a line" not in terminal.getvalue()
