"""The command line: parses, calls the library, prints.

Each command lives in its own module of `muhat.cli` and is imported when it is called, so that
`muhat --help` is quick.
"""

from __future__ import annotations

import importlib
import io
import sys
from typing import Any

import click

from muhat import __version__
from muhat.cli.errors import FriendlyGroup

COMMANDS = {
    "mean": ("muhat.cli.mean", "Release a private mean of columns of files."),
    "sum": ("muhat.cli.statistics", "Release private sums, of all rows or by groups."),
    "count": ("muhat.cli.statistics", "Release private numbers of rows, or of groups."),
    "variance": ("muhat.cli.statistics", "Release private variances, or of groups."),
    "publish": ("muhat.cli.publish", "Carry out a written specification of statistics."),
    "plan": ("muhat.cli.mean", "Show what a release would cost; no data is read."),
    "queries": ("muhat.cli.queries", "Release private tables, ranges and running counts."),
    "quantile": ("muhat.cli.quantile", "Release private medians and other quantiles."),
    "protocol": ("muhat.cli.protocol", "Means when nobody may see the records."),
    "bounds": (
        "muhat.cli.bounds",
        "Show what no private mean or quantile can beat; no data is read.",
    ),
    "ledger": ("muhat.cli.ledger", "Keep account of the privacy loss that was spent."),
    "check": ("muhat.cli.check", "Look at files as their owner (not private)."),
    "study": ("muhat.cli.study", "Measure again what the papers claim."),
    "demo": ("muhat.cli.demo", "The main job on data that ship with the package."),
}


class LazyGroup(FriendlyGroup):
    """Knows its commands by name and imports one only to run it or to show its help."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run; a release that was paid for is printed whatever the terminal can show."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        return super().main(*args, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    epilog="Exit codes: 0 done; 2 a mistake, nothing was spent; 3 the budget is exceeded, nothing "
    "was spent; 4 a theorem forbids it; 5 failed after the charge, which stays. With --json "
    "errors are JSON on stderr.\n\nExample: muhat demo",
)
@click.version_option(__version__, prog_name="muhat")
def main() -> None:
    """Private means with the least noise, exact arithmetic and a certificate."""
