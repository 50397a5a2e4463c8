"""`muhat ledger`: data on stdout, the rest on stderr, one sentence and 2 on bad input."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest
from click.testing import CliRunner

from muhat import GDP, ZCDP, ApproxDP, PureDP
from muhat.cli.ledger import ledger as group
from muhat.ledger import Ledger

PROGRAM = "from muhat.cli.ledger import ledger; ledger(prog_name='muhat ledger')"
CANARY = "CANARY-8675309"


def run(*arguments, code=0):
    result = CliRunner().invoke(group, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    if code:
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
    return result


@pytest.fixture
def ledger(tmp_path):
    account = Ledger.create(tmp_path / "budget.db", budget=ZCDP(rho=1), neighbors="substitute")
    for note in ("wages", "[bold red]ages[/] \x1b[31m→"):
        account.charge(GDP(mu=0.3), neighbors="substitute", plan_digest="ab" * 32, note=note)
    return account


@pytest.mark.parametrize(
    ("options", "budget"),
    [
        (("--epsilon", "0.1"), PureDP(epsilon=0.1)),
        (("--epsilon", "0.1", "--delta", "1e-6"), ApproxDP(epsilon=0.1, delta=1e-6)),
        (("--rho", "0.1"), ZCDP(rho=0.1)),
        (("--mu", "0.1"), GDP(mu=0.1)),
    ],
)
@pytest.mark.parametrize("neighbors", ["substitute", "add-remove"])
def test_create_makes_a_ledger_with_the_budget_of_the_options(tmp_path, options, budget, neighbors):
    path = tmp_path / "budget.db"
    result = run("create", path, *options, "--neighbors", neighbors)
    assert result.stdout.startswith(f"Created {path} with a budget of ")
    account = Ledger.open(path)
    assert (account.budget, account.neighbors.value) == (budget, neighbors)


def test_create_as_json_says_everything(tmp_path):
    path = tmp_path / "budget.db"
    fields = json.loads(
        run("create", path, "--rho", 1, "--neighbors", "substitute", "--json").stdout
    )
    assert fields["budget"] == {"kind": "zcdp", "rho": 1.0}
    assert fields["remaining"] == {"kind": "zcdp", "rho": 1.0, "exact": ["1/1"]}
    assert fields["head"] == Ledger.open(path).head.to_dict()


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--delta", "1e-6"),
        ("--rho", "1", "--mu", "1"),
        ("--mu", "1", "--delta", "1e-6"),
        ("--rho", "0"),
        ("--rho", "nan"),
        ("--epsilon", "-1"),
        ("--epsilon", "1", "--delta", "1"),
        ("--epsilon", "inf"),
        ("--rho", "1", "--delta", "0"),
        ("--rho", "much"),
        ("--rho", "1", "--neighbors", "neither"),
    ],
)
def test_a_bad_budget_is_one_clear_sentence_and_no_file(tmp_path, options):
    neighbors = () if "--neighbors" in options else ("--neighbors", "substitute")
    result = run("create", tmp_path / "budget.db", *options, *neighbors, code=2)
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert os.listdir(tmp_path) == []


def test_create_needs_neighbors_and_a_free_path(ledger):
    assert "--neighbors" in run("create", "x.db", "--rho", "1", code=2).stderr
    result = run("create", ledger.path, "--rho", "1", "--neighbors", "substitute", code=2)
    assert result.stderr == f"Error: {ledger.path} exists already; a ledger is never overwritten.\n"


def test_show_prints_the_account_and_its_entries(ledger):
    output = run("show", ledger.path).stdout
    for text in ("1-zCDP, neighbors substitute", "0.09-zCDP", "0.91-zCDP", "9.0%", "0.3-GDP"):
        assert text in output
    assert "GDP → zCDP: ρ = μ²/2" in output
    assert "wages" in output
    assert "[bold red]ages[/]" in output, "a note is text, never markup"
    assert "\x1b" not in output


def test_show_keeps_to_the_newest_entries_and_says_so(ledger):
    result = run("show", ledger.path, "--last", 1)
    assert "wages" not in result.stdout
    assert "1 earlier entries are not shown (--last 2)" in result.stderr


def test_show_works_on_an_empty_and_on_a_full_account(tmp_path):
    account = Ledger.create(tmp_path / "b.db", budget=ZCDP(rho=1), neighbors="substitute")
    assert "0.0%" in run("show", account.path).stdout
    assert json.loads(run("show", account.path, "--json").stdout)["entries"] == []
    account.charge(ZCDP(rho=1), neighbors="substitute", plan_digest="")
    assert "100.0%" in run("show", account.path).stdout


def test_show_as_json_is_the_exact_account(ledger):
    fields = json.loads(run("show", ledger.path, "--json", "--last", 1).stdout)
    assert fields["schema"] == 1
    assert fields["spent"] == {"kind": "zcdp", "rho": 0.09, "exact": ["9/100"]}
    assert fields["entries"] == [entry.to_dict() for entry in ledger.entries()]
    assert fields["head"] == ledger.head.to_dict()


def test_verify_without_a_release_checks_the_chain_and_says_what_it_cannot_see(ledger):
    result = run("verify", ledger.path)
    assert result.stdout == f"{ledger.path} is intact: 2 entries.\n"
    assert "an old copy that was put back" in result.stderr


def test_verify_finds_the_head_of_a_release(ledger, tmp_path):
    release = tmp_path / "r.json"
    anchor = ledger.entries()[0].head.to_dict()
    release.write_text(json.dumps({"schema": 1, "value": [1.0], "ledger_head": anchor}))
    result = run("verify", ledger.path, "--release", release)
    assert "is intact: 2 entries, the one of" in result.stdout
    assert result.stderr == ""
    fields = json.loads(run("verify", ledger.path, "--release", release, "--json").stdout)
    assert fields == {
        "schema": 1,
        "path": str(ledger.path),
        "valid": True,
        "anchor": anchor,
        "head": ledger.head.to_dict(),
    }


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_verify_refuses_a_rolled_back_ledger_in_one_sentence(ledger, tmp_path, flags):
    release = tmp_path / "r.json"
    old = ledger.path.read_bytes()
    entry = ledger.charge(ZCDP(rho=0.1), neighbors="substitute", plan_digest="")
    release.write_text(json.dumps({"ledger_head": entry.head.to_dict()}))
    ledger.path.write_bytes(old)
    result = run("verify", ledger.path, "--release", release, *flags, code=2)
    assert len(result.stderr.splitlines()) == 1
    assert "edited, truncated or rolled back: it ends at entry 2, and entry 3" in result.stderr
    run("verify", ledger.path)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (f'{{"ledger_head": "{CANARY}"}}', "a ledger head is a count and a SHA-256"),
        ('{"ledger_head": {"count": 1}}', "a ledger head is a count and a SHA-256"),
        ('{"ledger_head": null}', "was released without a ledger"),
        (f'{{"value": ["{CANARY}"]}}', "has no ledger_head"),
        (f'["{CANARY}"]', "has no ledger_head"),
        (f"{CANARY},1\n", "is not the JSON of a release"),
        ("[" * 100_000, "is not the JSON of a release"),
        (b"\xff\xfe\x00", "is not the JSON of a release"),
        (None, "cannot be read"),
    ],
)
def test_a_release_that_anchors_nothing_is_refused_and_never_quoted(
    ledger, tmp_path, content, complaint
):
    release = tmp_path / "r.json"
    if content is not None:
        release.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("verify", ledger.path, "--release", release, code=2)
    assert complaint in result.stderr
    assert CANARY not in result.stderr


@pytest.mark.parametrize("command", ["show", "verify"])
def test_a_missing_ledger_is_refused_with_a_hint(tmp_path, command):
    result = run(command, tmp_path / "none.db", code=2)
    assert len(result.stderr.splitlines()) == 1
    assert "muhat ledger create budget.db --rho 1 --neighbors substitute" in result.stderr


def test_grant_sets_a_share_aside_and_show_lists_it(ledger):
    result = run("grant", ledger.path, "--team", "health", "--rho", 0.3, "--note", "a year")
    assert result.stdout == (
        f"Team health may spend 0.3-zCDP of 1-zCDP in {ledger.path}; 0.61-zCDP is left for charges "
        "without a team.\n"
    )
    ledger.for_team("health", note="yearly report").charge(
        ZCDP(rho=0.1), neighbors="substitute", plan_digest="ab" * 32, note="ages"
    )
    output = run("show", ledger.path).stdout
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert "health 0.3-zCDP 0.1-zCDP 0.2-zCDP" in lines
    assert "(without a team) 0.7-zCDP 0.09-zCDP 0.61-zCDP" in lines
    for text in ("yearly", "a year", " grant ", "purpose"):
        assert text in output
    fields = json.loads(run("show", ledger.path, "--json").stdout)
    assert fields["grants"]["health"]["remaining"]["exact"] == ["1/5"]
    assert fields["without_a_team"]["remaining"]["exact"] == ["61/100"]
    assert [("granted" in entry, entry.get("team")) for entry in fields["entries"][2:]] == [
        (True, "health"),
        (False, "health"),
    ]
    assert fields["entries"][3]["purpose"] == "yearly report"
    assert run("verify", ledger.path).stdout.endswith("is intact: 4 entries.\n")


def test_grant_as_json_has_the_share_and_the_entry(ledger):
    fields = json.loads(
        run("grant", ledger.path, "--team", "health", "--rho", 0.3, "--json").stdout
    )
    assert fields["grants"]["health"]["granted"]["rho"] == 0.3
    assert fields["entry"]["granted"] == ["3/10"]
    assert fields["head"] == ledger.head.to_dict()


def test_a_grant_is_lowered_and_withdrawn(ledger):
    run("grant", ledger.path, "--team", "health", "--rho", 0.3)
    run("grant", ledger.path, "--team", "health", "--rho", 0.2)
    assert "may spend 0-zCDP" in run("grant", ledger.path, "--team", "health", "--withdraw").stdout
    assert "grant withdrawn" in run("show", ledger.path).stdout
    refused = run("grant", ledger.path, "--team", "health", "--withdraw", "--rho", 1, code=2)
    assert "name no amount" in refused.stderr


def test_grants_that_do_not_fit_are_one_sentence_and_change_nothing(ledger):
    before = ledger.path.read_bytes()
    refused = run("grant", ledger.path, "--team", "health", "--rho", 0.95, code=3)
    assert refused.stderr.endswith("all but 0.91-zCDP; nothing was changed.\n")
    assert "--team" in run("grant", ledger.path, "--rho", 0.1, code=2).stderr
    assert "exactly one of" in run("grant", ledger.path, "--team", "health", code=2).stderr
    assert (
        "--team must be a name"
        in run("grant", ledger.path, "--team", "", "--rho", 0.1, code=2).stderr
    )
    assert (
        "--team has no grant"
        in run("grant", ledger.path, "--team", "tax", "--withdraw", code=2).stderr
    )
    assert ledger.path.read_bytes() == before


def test_create_names_the_column_that_tells_people_apart(tmp_path):
    path = tmp_path / "budget.db"
    made = run("create", path, "--rho", 1, "--neighbors", "add-remove", "--unit", "person")
    assert made.stdout.endswith("neighbors add-remove, all records of one person.\n")
    assert json.loads(run("show", path, "--json").stdout)["unit"] == "person"


@pytest.mark.parametrize("command", [(), ("create",), ("grant",), ("show",), ("verify",)])
def test_help_ends_with_an_example(command):
    last_paragraph = run(*command, "--help").stdout.strip().split("\n\n")[-1]
    assert last_paragraph.strip().startswith("Example: muhat ledger ")


def show_in_a_process(ledger, **environment):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "show", str(ledger.path)],
        capture_output=True,
        env={**os.environ, **environment},
    )


def test_a_pipe_gets_plain_text_even_if_colour_is_forced(ledger):
    done = show_in_a_process(ledger, FORCE_COLOR="1", TTY_COMPATIBLE="1")
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout


def test_a_terminal_that_knows_only_ascii_gets_ascii(ledger):
    done = show_in_a_process(ledger, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert b"###" in done.stdout


def test_a_terminal_gets_colour_but_no_codes_from_notes(ledger):
    primary, secondary = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    subprocess.run(
        [sys.executable, "-c", PROGRAM, "show", str(ledger.path)],
        stdout=secondary,
        env=environment,
        check=True,
    )
    os.close(secondary)
    output = os.read(primary, 1 << 16).decode()
    os.close(primary)
    assert "\x1b[32m" in output
    assert "\x1b[31m" not in output
