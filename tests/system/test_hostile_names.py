"""Columns, groups and categories with hostile names, through everything that prints a name."""

from __future__ import annotations

import json
import shutil
import subprocess

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import muhat as mh
from muhat.cli import main

NAMES = {
    "escape": "pay\x1b[2J\x1b]0;gone\x07",
    "one byte escape": "pay\x9b31m",
    "lines": "pay\nError: nothing was charged.\rPAID",
    "bidirectional": "pay\u202eyap\u2066x\u2069",
    "invisible": "p\u200ba\u00ady\ufeff\U000e0041",
    "separators": "pay\u2028next\u2029\x0b\x0c\x1c\x85end",
    "dollars": "$\\frac{a}$ $",
    "markup": "<b>pay</b>[red]&amp;",
    "delete": "pa\x7fy\x00",
}
RHO = mh.ZCDP(rho=1)
X = np.linspace(0, 1, 300)


def harmless(text: str) -> bool:
    """Whether nothing but line breaks is unprintable."""
    return all(letter.isprintable() or letter in "\n\xa0" for letter in text)


@pytest.fixture(params=NAMES)
def name(request):
    return NAMES[request.param]


@pytest.fixture
def table(tmp_path, name):
    """A file with that column, one with that word, and a plain one."""
    path = tmp_path / "people.parquet"
    words = [name if x > 0.5 else "b" for x in X]
    pd.DataFrame({name: X, "plain": 1 - X, "words": words}).to_parquet(path)
    return str(path)


def run(*arguments):
    """What a command prints, on both streams, in characters that do no harm."""
    done = CliRunner().invoke(main, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert harmless(done.stdout), done.stdout
    assert harmless(done.stderr), done.stderr
    for stream in (done.stdout, done.stderr):
        assert not any(line.startswith("Error: nothing") for line in stream.splitlines())
    return done


def test_plans_and_releases_print_no_harm(name):
    frame = pd.DataFrame({name: X, "g": [name, "b"] * 150})
    found = [
        mh.plan_mean(domain={name: (0, 1)}, n=300, privacy=RHO),
        mh.plan_mean(domain={name: (0, 1)}, n=None, privacy=RHO),
        mh.plan_mean(domain={name: (0, 1)}, n=None, privacy=mh.PureDP(epsilon=1), unbiased=True),
        mh.mean(frame, domain={name: (0, 1)}, privacy=RHO),
        mh.mean(frame, domain={name: (0, 1)}, by="g", groups=[name, "b"], n=None, privacy=RHO),
        mh.quantile(frame, 0.5, columns=[name], lower=0, upper=1, privacy=RHO),
    ]
    for each in found:
        assert harmless(repr(each))
        assert harmless(each._repr_html_())
        if hasattr(each, "describe"):
            assert harmless(each.describe())


def test_a_name_cannot_become_a_line_or_a_tag():
    release = mh.mean(
        pd.DataFrame({NAMES["lines"]: X}), domain={NAMES["lines"]: (0, 1)}, privacy=RHO
    )
    plain = mh.mean(pd.DataFrame({"x": X}), domain={"x": (0, 1)}, privacy=RHO)
    assert len(repr(release).splitlines()) == len(repr(plain).splitlines())
    shown = mh.mean(
        pd.DataFrame({NAMES["markup"]: X}), domain={NAMES["markup"]: (0, 1)}, privacy=RHO
    )._repr_html_()
    assert "<b>pay" not in shown
    assert "&lt;b&gt;pay" in shown


def test_protocols_and_counts_print_no_harm(name):
    places = {"lower": 0, "upper": 1, "n": 300, "column": name, "privacy": mh.PureDP(epsilon=1)}
    for protocol in (
        mh.protocols.local_quantile(0.5, resolution=0.1, **places),
        mh.protocols.local_ranges(cells=4, **places),
    ):
        assert harmless(protocol.describe())
        result = mh.protocols.simulate(protocol, X[:, None])
        assert harmless(repr(result))
        assert harmless(result.describe())


def test_every_command_prints_no_harm(name, table, tmp_path):
    if "\x00" in name:
        pytest.skip("no argument has a NUL")
    account = str(tmp_path / f"{name.replace('/', '')}.db")
    made = run("ledger", "create", account, "--rho", "10", "--neighbors", "substitute")
    assert made.exit_code == 0
    columns = ["--columns", name]
    asked = [*columns, "--lower", "0", "--upper", "1"]
    categories = ["--columns", "words", "--categories", f"words=b,{name}"]
    spent = ["--rho", "1", "--ledger", account]
    for arguments in (
        ["mean", table, "--bounds", f"{name}=0:1", *spent],
        ["mean", table, "--bounds", f"{name}=0:1", "--rho", "1", "--secret-n"],
        ["mean", table, "--bounds", f"{name}=0:1", "--rho", "1", "--project", f"{name}=0:1"],
        ["mean", table, "--magnitude", "5", *columns, "--epsilon", "9", "--insist"],
        ["plan", "--bounds", f"{name}=0:1", "--n", "300", "--rho", "1"],
        ["plan", "--bounds", f"{name}=0:1", "--n", "9", "--rho", "1", "--plot", f"{account}.png"],
        ["quantile", table, *asked, *spent],
        ["queries", table, "--histogram", *categories, "--rho", "1"],
        ["bounds", "--bounds", f"{name}=0:1", "--n", "300", "--rho", "1"],
        ["check", table],
        ["check", table, *columns],
        ["check", table, "--bounds", f"{name}=0:1"],
        ["check", table, "--labels", "words"],
        ["check", table, "--labels", "words", "--json"],
        ["ledger", "show", account],
        ["ledger", "verify", account],
        ["protocol", "new", "--bounds", f"{name}=0:1", "--epsilon", "1", "--n", "300"],
    ):
        done = run(*arguments)
        assert done.exit_code == 0, (arguments, done.output)


def test_the_header_of_a_csv_prints_no_harm(name, tmp_path):
    """Whether it is read or refused."""
    path = tmp_path / "people.csv"
    pd.DataFrame({name: X, "plain": X}).to_csv(path, index=False)
    for arguments in (["check", str(path)], ["mean", str(path), "--ball", "2", "--rho", "1"]):
        run(*arguments)


def test_every_refusal_prints_no_harm(name, table, tmp_path):
    if "\x00" in name:
        pytest.skip("no argument has a NUL")
    missing = str(tmp_path / name.replace("/", ""))
    for arguments in (
        ["mean", table, "--bounds", f"none {name}=0:1", "--rho", "1"],
        ["mean", table, "--bounds", f"{name}=1:0", "--rho", "1"],
        ["mean", table, "--bounds", f"{name}", "--rho", "1"],
        ["mean", table, "--bounds", f"words=0:1;{name}", "--rho", "1"],
        ["mean", missing, "--bounds", "x=0:1", "--rho", "1"],
        ["mean", table, f"--{name}"],
        ["mean", table, "--rho", name, "--bounds", "plain=0:1"],
        ["mean", table, "--bounds", "plain=0:1", "--rho", "1", "--ledger", missing],
        ["quantile", table, "--columns", f"x{name}", "--lower", "0", "--upper", "1", "--rho", "1"],
        ["queries", table, "--histogram", "--columns", "words", "--categories", f"w{name}=a"],
        ["check", table, "--columns", f"x{name}"],
        ["ledger", "show", missing],
        ["ledger", "create", table, "--rho", "1", "--neighbors", name],
        ["protocol", "show", missing],
        ["study", "run", name],
    ):
        assert run(*arguments).exit_code == 2, arguments


def test_an_account_keeps_notes_that_do_no_harm(name, tmp_path):
    account = mh.Ledger.create(tmp_path / "b.db", budget=mh.ZCDP(rho=9), neighbors="substitute")
    mh.mean(pd.DataFrame({name: X}), domain={name: (0, 1)}, privacy=RHO, ledger=account)
    (entry,) = account.entries()
    assert entry.note.isprintable()


def test_pictures_show_names_as_they_are_escaped(name):
    mpl.use("Agg")
    figure = mh.plan_mean(domain={name: (0, 1), "other": (0, 2)}, n=300, privacy=RHO).plot()
    figure.canvas.draw()
    texts = [
        text.get_text() for axes in figure.axes for text in (axes.xaxis.label, axes.yaxis.label)
    ]
    # Long labels are broken into lines, of which none has a name as it was written.
    assert all(line.isprintable() for text in texts for line in text.split("\n"))
    assert name.isprintable() or not any(name in text for text in texts)


def test_json_of_a_release_keeps_the_name_itself(name):
    release = mh.mean(pd.DataFrame({name: X}), domain={name: (0, 1)}, privacy=RHO)
    text = release.to_json()
    assert harmless(text)
    assert json.loads(text)["columns"] == [name]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_labels_that_cannot_be_printed_come_back_from_a_shell(name, table):
    if "\x00" in name:
        pytest.skip("no argument has a NUL")
    done = run("check", table, "--labels", "words")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("--categories")]
    echoed = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"],
        capture_output=True,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    ).stdout.decode()
    assert set(echoed.split("\0")[1].removeprefix("words=").split(",")) == {name, "b"}
