"""Refusals of means without bounds, in the words of the shell alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import muhat
from muhat.cli import main

LOOSE = ("--columns", "a", "--magnitude", "1e6", "--n", "1000")
HIDDEN = (*LOOSE[:4], "--secret-n")
RHO = ("--rho", "0.5")
APPROX = ("--epsilon", "1", "--delta", "1e-6")

CASES = {
    "no bias": ((*LOOSE, "--unbiased", *RHO), "--max-bias 0.01 --moment 2,1"),
    "no bias at all": ((*LOOSE, "--max-bias", "0", *RHO), "--epsilon 1 --delta 1e-6 --symmetric"),
    "bounds": ((*LOOSE, "--unbiased", *RHO), "--bounds COLUMN=LOW:HIGH, where"),
    "symmetry": ((*LOOSE, "--unbiased", *APPROX), "add --symmetric, or allow a bias"),
    "a delta": ((*LOOSE, "--symmetric", "--moment", "2,1", *RHO), "--epsilon with --delta"),
    "negative": ((*LOOSE, "--max-bias", "-1", *RHO), "--max-bias must not be negative"),
    "a moment": ((*LOOSE, "--max-bias", "0.1", *RHO), "--moment must say"),
    "mechanism": ((*LOOSE, "--moment", "2,1", "--mechanism", "x", *RHO), "with --moment must be"),
    "magnitude": (
        (*LOOSE[:3], "1e60", "--n", "9", "--moment", "2,1", *RHO),
        "--magnitude 1e+60 is too large",
    ),
    "scale": ((*LOOSE, "--mechanism", "statistical", *RHO), "--scale LOW:HIGH and --mechanism"),
    "scale of a box": (("--bounds", "a=0:1", "--n", "9", "--scale", "1:2", *RHO), "--scale is for"),
    "moment of a box": (
        ("--bounds", "a=0:1", "--n", "9", "--moment", "2,1", *RHO),
        "--max-bias, --moment and --symmetric are for --magnitude",
    ),
    "secret": ((*HIDDEN, *RHO), "n must be public with --magnitude"),
    "persons": (
        (*HIDDEN, "--n-min", "900", "--contributions", "2", *APPROX),
        "--contributions must be 1 with --magnitude",
    ),
    "ball": (("--ball", "1", "--dim", "1", "--secret-n", "--unbiased", *RHO), "leave --unbiased"),
    "gaussian": (
        ("--bounds", "a=0:1", "--secret-n", "--unbiased", "--mu", "1"),
        "--epsilon, --rho or --epsilon with --delta",
    ),
}

IMPOSSIBLE = ("no bias", "no bias at all", "bounds")


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_names_options_and_no_python(case):
    arguments, expected = CASES[case]
    result = CliRunner().invoke(main, ["plan", *arguments])
    assert result.exit_code == (4 if case in IMPOSSIBLE else 2), result.output
    assert result.stdout == ""
    (error,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert expected in error
    plain = error.replace("COLUMN=LOW:HIGH", "")
    assert not re.search(r"mh\.|\w=\S|[a-z]_[a-z]|True|None|Reals", plain)


def flags(command):
    """The names of all flags, as Python would write them."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        inner = (command.get_command(context, name) for name in command.list_commands(context))
        return set().union(*map(flags, inner))
    options = [each for each in command.params if isinstance(each, click.Option)]
    return {option.opts[0].lstrip("-").replace("-", "_") for option in options}


def unmarked(source, names):
    """Sentences of errors that begin with a flag's name, or propose a value, without a mark."""
    begins = re.compile(rf"({'|'.join(names)}) (must|is for|are for|has|have) ")
    proposes = re.compile(rf"\b({'|'.join(names)})=(True|None|[\"])")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
            "InvalidInput",
            "Impossible",
        ):
            for index, part in enumerate(node.args):
                pieces = part.values if isinstance(part, ast.JoinedStr) else [part]
                texts = [each.value if isinstance(each, ast.Constant) else "…" for each in pieces]
                text = "".join(map(str, texts))
                if (not index and begins.match(text)) or proposes.search(text):
                    yield text


def test_every_flag_that_an_error_names_is_marked():
    names = flags(main)
    assert {"n_min", "missing", "contributions"} < names
    planted = 'raise InvalidInput(f"n_min must be {x}.")\nraise InvalidInput("add n=None.")'
    assert list(unmarked(planted, names)) == ["n_min must be ….", "add n=None."]
    found = {
        str(path): said
        for path in Path(muhat.__file__).parent.rglob("*.py")
        if (said := list(unmarked(path.read_text(), names)))
    }
    assert not found
