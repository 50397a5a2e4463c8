"""`muhat publish`: carry out a written specification, and write tables and a report."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muhat._text import printable
from muhat.cli.options import ledger_options, remind_of_ledger, show_plan
from muhat.cli.spark import ChosenEngine, engine_options
from muhat.errors import InvalidInput

if TYPE_CHECKING:
    from muhat.ledger import Ledger
    from muhat.planning.plan import Plan
    from muhat.release import Release
    from muhat.statistics.specification import Specification

LONGEST_NAME = 80


@click.command(
    epilog="Example: muhat publish release.toml people.parquet --ledger budget.db --out folder"
)
@click.argument("specification")
@click.argument("files", nargs=-1, required=True)
@click.option("--out", metavar="FOLDER", help="Write tables, JSON and a report to a new folder.")
@click.option("--dry-run", is_flag=True, help="Show the plan; read no data, spend nothing.")
@ledger_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@engine_options
def publish(
    specification: str,
    files: tuple[str, ...],
    out: str | None,
    dry_run: bool,
    ledger: Ledger | None,
    as_json: bool,
    engine: ChosenEngine,
) -> None:
    """Release what the TOML file SPECIFICATION asks of FILES: CSV, JSON, Parquet, Arrow or ORC.

    It names the promise, the public facts about the table and the statistics; its digest goes into
    the account. `muhat plan SPECIFICATION` shows what it will cost and how good it will be.
    """
    asked = read_specification(specification)
    planned = plan_of(asked, ledger)
    if dry_run:
        show_plan(planned, as_json)
        return
    folder = None if out is None else _new_folder(out)
    account = None if ledger is None else _on_behalf(asked, ledger)
    with engine.opened(files) as data:
        release = planned.release(data, ledger=account)
    # Shown first: it is paid for, and the disk may be full.
    click.echo(release.to_json() if as_json else repr(release))
    if folder is not None:
        _write(release, asked, folder)
    remind_of_ledger(ledger)


def _on_behalf(asked: Specification, ledger: Ledger) -> Ledger:
    """The account, charged for whom and what for the specification says, unless flags say it."""
    given = click.get_current_context().params
    said = {
        name: None if given[name] else getattr(asked, name) or None for name in ("team", "note")
    }
    return ledger.for_team(said["team"], note=said["note"], specification=asked.digest)


def read_specification(path: str) -> Specification:
    """The specification in a file, or InvalidInput with the line of the mistake."""
    from muhat.statistics.specification import Specification

    return Specification.read(path)


def plan_of(asked: Specification, ledger: Ledger | None = None) -> Plan:
    """The plan of a specification; a relation that it leaves open is that of the account."""
    from muhat.planning.several import plan
    from muhat.planning.terms import COUNTED, number_for

    given: Any = {"secret": None, "counted": COUNTED}.get(str(asked.n), asked.n)
    return plan(
        list(asked.statistics),
        schema=asked.schema,
        privacy=asked.privacy,
        n=number_for(given, asked.neighbors, ledger),
        neighbors=asked.neighbors,
    )


def _new_folder(out: str) -> Path:
    """A new or empty folder, made before anything is spent."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InvalidInput(f"{out} has files in it; choose a new folder for --out.")
        trial = folder / ".trial"
        trial.touch()
        trial.unlink()
    except OSError:
        raise InvalidInput(f"{out!r:.200} cannot be written.") from None
    return folder


def _write(release: Release, asked: Specification, folder: Path) -> None:
    """The tables as CSV and Parquet, the release as JSON, the specification, the report."""
    import pyarrow.parquet as pq

    from muhat.release.tables import csv_lines

    parts = list(release) if len(release.answers) > 1 else [(asked.statistics[0].name, release)]
    (folder / "tables").mkdir()
    seen: set[str] = set()
    for name, part in parts:
        base = folder / "tables" / _file_name(name, seen)
        with base.with_suffix(".csv").open("x", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(csv_lines(part.table()))
        pq.write_table(part.to_arrow(), base.with_suffix(".parquet"))
    (folder / "release.json").write_text(release.to_json() + "\n", encoding="utf-8")
    (folder / "specification.toml").write_text(asked.text, encoding="utf-8")
    release.report(
        folder / "report.html", title=asked.title or None, specification=asked.text or None
    )
    where, tables = printable(str(folder)), "1 table" if len(parts) == 1 else f"{len(parts)} tables"
    click.echo(f"report.html, release.json and {tables} are in {where}.", err=True)


def _file_name(name: str, seen: set[str]) -> str:
    """A name that every file system takes, and that no other table has."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.").lower()[:LONGEST_NAME] or "table"
    found, number = plain, 1
    while found in seen:
        number += 1
        found = f"{plain}-{number}"
    seen.add(found)
    return found
