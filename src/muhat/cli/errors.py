"""Errors on the command line: one sentence on stderr and exit code 2."""

from __future__ import annotations

import warnings
from typing import Any

import click

from muhat.errors import MuhatError

AS_TYPED = {
    "insist=True": "--insist",
    "(mh.Ball, mh.Box)": "(--ball, --bounds)",
    "by mh.Ball or mh.Box": "by --ball or --bounds",
    "records in mh.Reals": "--magnitude",
    "missing in Reals": "--missing with --magnitude",
    "mechanism in Reals": "--mechanism with --magnitude",
    "n=None": "--secret-n",
    "n_min": "--n-min",
    "Leave n out": "Leave --n out",
    "moment=(2, 1.0)": "--moment 2,1",
    "mh.ApproxDP(epsilon=..., delta=...)": "--epsilon with --delta",
    'missing="center"': "--missing center",
    'missing="drop"': "--missing drop",
}
"""What the library's sentences name in Python, as it is typed in a shell."""


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


def as_typed(sentence: str) -> str:
    """A sentence of the library in the words of the command line."""
    for python, shell in AS_TYPED.items():
        sentence = sentence.replace(python, shell)
    return sentence


def _show(message: Warning | str, *_: Any) -> None:
    """A warning as one line on stderr."""
    click.echo(f"Warning: {message}", err=True)
