"""Errors on the command line: one sentence on stderr and exit code 2."""

from __future__ import annotations

import warnings
from typing import Any

import click

from muhat.errors import MuhatError


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
                raise Refused(str(error)) from None


def _show(message: Warning | str, *_: Any) -> None:
    """A warning as one line on stderr."""
    click.echo(f"Warning: {message}", err=True)
