"""Errors on the command line: one sentence on stderr and exit code 2."""

from __future__ import annotations

import warnings
from typing import Any

import click

from muhat._text import joined
from muhat.errors import MuhatError

AS_TYPED = {
    "(max_bias=0.01, moment=(2, 1.0))": "(--max-bias 0.01 --moment 2,1)",
    "(privacy=mh.ApproxDP(epsilon=1, delta=1e-6), symmetric=True)": (
        "(--epsilon 1 --delta 1e-6 --symmetric)"
    ),
    "domain=mh.Box([lower], [upper])": "--bounds COLUMN=LOW:HIGH",
    "domain=mh.Box([0], [1]) or a dict of bounds": "--bounds COLUMN=LOW:HIGH",
    "mh.PureDP, mh.ZCDP or mh.ApproxDP": "--epsilon, --rho or --epsilon with --delta",
    "mh.ApproxDP(epsilon=..., delta=...)": "--epsilon with --delta",
    'scale=(lowest, highest) and mechanism="statistical"': (
        "--scale LOW:HIGH and --mechanism statistical"
    ),
    "max_bias, max_error, moment and symmetric": "--max-bias, --moment and --symmetric",
    "clip, faithful and scale have": "--scale has",
    "faithful and scale are": "--scale is",
    "moment must say": "--moment must say",
    "moment=(2, 1.0)": "--moment 2,1",
    "; ψ may be a list, one a column": "",
    "max_bias=...": "--max-bias",
    "max_bias": "--max-bias",
    "symmetric=True": "--symmetric",
    "unbiased=True": "--unbiased",
    "insist=True": "--insist",
    "population=True needs contributions=1": "--population needs --contributions 1",
    "population=True": "--population",
    "leave unbiased out": "leave --unbiased out",
    "(mh.Ball, mh.Box)": "(--ball, --bounds)",
    "by mh.Ball or mh.Box": "by --ball or --bounds",
    "by mh.Box": "by --bounds",
    "records in mh.Reals": "--magnitude",
    "mechanism in Reals": "--mechanism with --magnitude",
    "mechanism with a moment": "--mechanism with --moment",
    "for records in Reals": "with --magnitude",
    "without bias in Reals": "without bias and bounds",
    "magnitude = ": "--magnitude ",
    "open it with convert=True": "add --convert",
    "n=None": "--secret-n",
    "n_min": "--n-min",
    "Leave n out": "Leave --n out",
    'missing="center"': "--missing center",
    'missing="drop"': "--missing drop",
    'missing="none"': "--missing none",
    "contributions must": "--contributions must",
}
"""What the library's sentences name in Python, as it is typed in a shell; longer words first."""


class Refused(click.ClickException):
    """What muhat refused, printed by click as `Error: …`."""

    exit_code = 2


class FriendlyGroup(click.Group):
    """A group whose commands end with one sentence where the library raises a MuhatError."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; the traceback of a refusal is of no use to its reader."""
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _show  # type: ignore[assignment]
            try:
                return super().invoke(ctx)
            except MuhatError as error:
                raise Refused(as_typed(str(error))) from None
            except click.UsageError as error:
                said = error.format_message()
                if said == (shown := joined(said.split("\n"))):
                    raise
                raise click.UsageError(shown, error.ctx) from None


def as_typed(sentence: str) -> str:
    """A sentence of the library in the words of the command line."""
    for python, shell in AS_TYPED.items():
        sentence = sentence.replace(python, shell)
    return sentence


def _show(message: Warning | str, *_: Any) -> None:
    """A warning as one line on stderr."""
    click.echo(f"Warning: {as_typed(str(message))}", err=True)
