"""Errors on the command line: a sentence on stderr, or with --json a line of JSON, and a code.

0: done. 2: the caller's mistake, nothing was spent. 3: the budget is exceeded, nothing was spent.
4: a theorem forbids it. 5: it failed after the charge, which stays.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from muhat._text import joined, printable
from muhat._words import Parameter
from muhat.errors import BudgetExceeded, DataChanged, Impossible, MuhatError, SourceFailed

if TYPE_CHECKING:
    from muhat.ledger import Ledger

MISTAKE, BUDGET_EXCEEDED, IMPOSSIBLE, AFTER_THE_CHARGE = 2, 3, 4, 5

AS_JSON = "muhat.cli.as_json"
ACCOUNT = "muhat.cli.account"
"""Where the context of a command keeps whether --json was given, and the account it may charge."""


class Refused(click.ClickException):
    """What muhat refused or could not finish: `Error: …` on stderr, or JSON."""

    def __init__(self, kind: str, fields: Mapping[str, Any], exit_code: int, as_json: bool) -> None:
        super().__init__(str(fields["message"]))
        self.exit_code = exit_code  # type: ignore[misc]  # click reads it from the exception
        said = {"schema": "muhat.error/1", "error": kind, **fields, "exit_code": exit_code}
        self._line = json.dumps(said, ensure_ascii=False) if as_json else None

    def show(self, file: Any = None) -> None:
        """Print it."""
        if self._line is None:
            super().show(file)
        else:
            click.echo(self._line, file=file, err=file is None)


class FriendlyGroup(click.Group):
    """A group whose commands end with one sentence where the library raises a MuhatError."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Look for --json: a command whose options cannot be read has an error too."""
        end = args.index("--") if "--" in args else len(args)
        ctx.meta[AS_JSON] = "--json" in args[:end]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; the traceback of a refusal is of no use to its reader."""
        as_json: bool = ctx.meta[AS_JSON]

        def show(message: Warning | str, *_: Any) -> None:
            said = printable(str(message))
            line = json.dumps({"warning": said}, ensure_ascii=False)
            click.echo(line if as_json else f"Warning: {said}", err=True)

        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show  # type: ignore[assignment]
            try:
                return super().invoke(ctx)
            except MuhatError as error:
                fields, code = error.fields(self._words(ctx)), _exit_code(error, ctx)
                raise Refused(type(error).__name__, fields, code, as_json) from None
            except click.UsageError as error:
                said = joined(error.format_message().split("\n"))
                if as_json:
                    fields = _fields(said, _option(error))
                    raise Refused("InvalidInput", fields, MISTAKE, as_json) from None
                if said == error.format_message():
                    raise
                raise click.UsageError(said, error.ctx) from None
            except (Refused, click.exceptions.Exit):
                raise
            except (Exception, KeyboardInterrupt) as error:
                if not _charged(ctx):
                    raise
                # What went wrong is not told: an unforeseen exception may quote what was read.
                kind = type(error).__name__
                fields = _fields(f"{kind} after the account was charged. The charge stays.")
                raise Refused(kind, fields, AFTER_THE_CHARGE, as_json) from None

    def _words(self, ctx: click.Context) -> Callable[[Parameter], str]:
        """The words for parameters of the command that was called."""
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        options = command.params if command else []
        flags = [option.opts[0] for option in options if isinstance(option, click.Option)]
        by_name = {flag.lstrip("-").replace("-", "_"): flag for flag in flags}

        def word(parameter: Parameter) -> str:
            if parameter.shell is not None:
                return parameter.shell
            return by_name.get(str(parameter), str(parameter))

        return word


def _exit_code(error: MuhatError, ctx: click.Context) -> int:
    """Which code says what became of the charge."""
    if _charged(ctx):
        return AFTER_THE_CHARGE
    if isinstance(error, SourceFailed | DataChanged):
        # Nothing is spent while rows are counted, nor by commands that release nothing. A release
        # without an account is for its caller to count.
        releases, account = ACCOUNT in ctx.meta, ctx.meta.get(ACCOUNT)
        return AFTER_THE_CHARGE if releases and account is None else MISTAKE
    if isinstance(error, BudgetExceeded):
        return BUDGET_EXCEEDED
    return IMPOSSIBLE if isinstance(error, Impossible) else MISTAKE


def _charged(ctx: click.Context) -> bool:
    account: Ledger | None = ctx.meta.get(ACCOUNT)
    return account is not None and account.charged


def _option(error: click.UsageError) -> str | None:
    """The flag that click complains about, if it is one."""
    if isinstance(error, click.NoSuchOption):
        return printable(error.option_name)
    option = error.param if isinstance(error, click.BadParameter) else None
    return option.opts[0] if isinstance(option, click.Option) else None


def _fields(message: str, parameter: str | None = None) -> dict[str, str | None]:
    told = {"message": message, "parameter": parameter, "rule": message}
    return {**told, "value": None, "hint": None}
