"""`muhat study`: the papers' claims, measured again, and one page of what came out."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muhat.cli.errors import FriendlyGroup

if TYPE_CHECKING:
    from muhat.studies.running import Outcome

FOLDER = "study-results"
SCHEMA = 1
PLAIN_WIDTH = 120

_level = click.option(
    "--quick/--full",
    "quick",
    default=True,
    help="A few minutes in all, or the papers' sizes and numbers of trials.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_out = click.option(
    "--out", default=FOLDER, show_default=True, metavar="DIR", help="Where the files go."
)


@click.group(cls=FriendlyGroup, epilog="Example: muhat study run blog --out results")
def study() -> None:
    """Measure again what the papers claim. No study reads your data."""


@study.command("list", epilog="Example: muhat study list")
@_json
def list_studies(as_json: bool) -> None:
    """List the studies: what they test, and of which paper."""
    from rich.table import Table

    from muhat.studies import studies

    found = list(studies())
    if as_json:
        entries = [
            {"name": s.name, "title": s.title, "paper": s.paper, "claim": s.claim} for s in found
        ]
        _print_json({"schema": SCHEMA, "studies": entries})
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("name", no_wrap=True)
    for heading in ("what", "paper"):
        table.add_column(heading)
    for entry in found:
        table.add_row(entry.name, entry.title, entry.paper)
    _console().print(table)


@study.command(epilog="Example: muhat study run nikolov-tang --out results")
@click.argument("name")
@_level
@_out
@_json
def run(name: str, quick: bool, out: str, as_json: bool) -> None:
    """Run the study NAME and write its table, figure and verdict.

    huang-digits reads MNIST from the folder that the variable MUHAT_DIGITS names, and other digits
    without it.
    """
    from muhat.studies import find
    from muhat.studies.running import run_study

    find(name)
    with _bar([name]) as advance:
        record = run_study(name, _name(quick), Path(out), lambda part: advance(name, part))
    if as_json:
        _print_json(record)
        return
    click.echo(f"Reproduced: {record['reproduced']}. {record['paragraph']}\n")
    click.echo("Written: " + ", ".join(str(Path(out) / f) for f in record["files"].values()))


@study.command("all", epilog="Example: muhat study all --quick --out results")
@_level
@_out
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=min(2, os.cpu_count() or 1),
    show_default=True,
    help="How many studies run at a time.",
)
@_json
def run_every(quick: bool, out: str, jobs: int, as_json: bool) -> None:
    """Run every study, then write the report."""
    from muhat.studies import MODULES
    from muhat.studies.report import report as write_report
    from muhat.studies.running import run_all

    with _bar(list(MODULES)) as advance:

        def finished(outcome: Outcome) -> None:
            advance(outcome.name, 1.0)
            if not as_json:
                click.echo(_line(outcome))

        outcomes = run_all(
            list(MODULES), _name(quick), Path(out), jobs=jobs, finished=finished, progress=advance
        )
    refused = [outcome for outcome in outcomes if outcome.record is None]
    page = None if len(refused) == len(outcomes) else write_report(Path(out))
    if as_json:
        entries = [o.record or {"name": o.name, "refused": o.refusal} for o in outcomes]
        shown = None if page is None else str(page)
        _print_json({"schema": SCHEMA, "studies": entries, "report": shown})
    elif page is not None:
        click.echo(f"\nReport: {page}")
    if refused:
        raise click.exceptions.Exit(1)


@study.command(epilog="Example: muhat study report results")
@click.argument("folder", default=FOLDER)
@_json
def report(folder: str, as_json: bool) -> None:
    """Assemble one HTML page of the results in FOLDER; it needs no network."""
    from muhat.studies.report import read
    from muhat.studies.report import report as write_report

    page = write_report(Path(folder))
    if as_json:
        verdicts = {r.study.name: r.verdict.reproduced for r, _ in read(Path(folder))}
        _print_json({"schema": SCHEMA, "report": str(page), "reproduced": verdicts})
    else:
        click.echo(str(page))


def _line(outcome: Outcome) -> str:
    if outcome.record is None:
        return f"{outcome.name}: not run. {outcome.refusal}"
    seconds = outcome.record["seconds"]
    return f"{outcome.name}: reproduced: {outcome.record['reproduced']} ({seconds:.0f} s)"


def _name(quick: bool) -> str:
    return "quick" if quick else "full"


@contextmanager
def _bar(names: list[str]) -> Iterator[Callable[[str, float], None]]:
    """A progress bar on stderr for the whole of the studies; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield lambda name, part: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    done: dict[str, float] = {}
    console = Console(stderr=True)
    # Redirected, lines for stdout appear above the bar, on stderr, and never reach a file.
    shared = sys.stdout.isatty()
    with Progress(*columns, console=console, transient=True, redirect_stdout=shared) as bar:
        task = bar.add_task(names[0], total=len(names))

        def advance(name: str, part: float) -> None:
            done[name] = max(done.get(name, 0.0), part)
            running = ", ".join(each for each, far in done.items() if far < 1)
            bar.update(task, completed=sum(done.values()), description=running or name)

        yield advance


def _console() -> Any:
    from rich.console import Console

    # Narrow pipes would wrap what a program or a reader wants on one line.
    return Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False)


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
