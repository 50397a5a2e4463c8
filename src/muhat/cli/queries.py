"""`muhat queries`: private histograms, marginals, ranges and running counts of files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muhat._text import printable
from muhat.cli.options import (
    COLUMNS,
    Promised,
    column_names,
    ledger_options,
    number,
    promise_options,
    remind_of_ledger,
)
from muhat.cli.spark import ChosenEngine, engine_options
from muhat.errors import InvalidInput
from muhat.privacy import from_flags

if TYPE_CHECKING:
    from muhat.ledger import Ledger
    from muhat.release import Release
    from muhat.workloads import Workload

MOST_PUBLIC = 1_000
"""More values than this are no categories."""


@click.command(
    epilog="Example: muhat queries people.csv --marginals 2 --columns sex,region "
    "--categories sex=f,m --categories region=north,south --epsilon 1 --delta 1e-6"
)
@click.argument("files", nargs=-1, required=True)
@COLUMNS
@click.option(
    "--categories",
    multiple=True,
    metavar="COLUMN=X,Y,…",
    help="The public categories of a column; once for each, or a JSON file with all of them.",
)
@click.option(
    "--bins",
    multiple=True,
    metavar="COLUMN=0,18,65,…",
    help="The public edges of bins for a column of numbers.",
)
@click.option(
    "--public-categories",
    is_flag=True,
    help="Declare public whichever values occur in the columns that have no categories.",
)
@click.option("--marginals", type=int, help="Ask for all tables of this many columns.")
@click.option("--histogram", is_flag=True, help="Ask for the table of all columns.")
@click.option("--prefix", is_flag=True, help="Ask for running counts over one column.")
@click.option("--ranges", is_flag=True, help="Ask for all intervals of one column.")
@click.option(
    "--p", type=float, default=2.0, show_default=True, help="The ℓ_p norm of the error, 2 to inf."
)
@click.option(
    "--missing",
    type=click.Choice(["drop", "other", "none"]),
    default="drop",
    show_default=True,
    help='Rows with a missing or undeclared value are left out, or count as "other"; none declares '
    "that there are none.",
)
@click.option("--other", is_flag=True, help="The same as --missing other.")
@click.option(
    "--substitute",
    is_flag=True,
    help="Declare the number of rows public, as a ledger of that relation does.",
)
@click.option("--contributions", type=int, default=1, show_default=True, help="Rows a person.")
@click.option("--projected", is_flag=True, help="Make the answers non-negative and consistent.")
@click.option("--out", metavar="FILE", help="Write all answers to a new CSV file.")
@ledger_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@engine_options
@promise_options
def queries(
    files: tuple[str, ...],
    columns: str | None,
    categories: tuple[str, ...],
    bins: tuple[str, ...],
    public_categories: bool,
    marginals: int | None,
    histogram: bool,
    prefix: bool,
    ranges: bool,
    p: float,
    missing: str,
    other: bool,
    substitute: bool,
    contributions: int,
    projected: bool,
    out: str | None,
    ledger: Ledger | None,
    as_json: bool,
    engine: ChosenEngine,
    promise: Promised,
) -> None:
    """Release counts of FILES (CSV, JSON, Parquet, Arrow, ORC): tables, ranges, running counts.

    The file - is standard input; text may be compressed (.gz, .bz2, .zst).

    With --engine spark FILES are Parquet or CSV paths, or one table that Spark knows by name;
    with --engine duckdb Parquet paths, or one table of --database; with --engine postgres a table.
    """
    from muhat.data.categories import categories_of
    from muhat.planning.queries import plan_queries
    from muhat.planning.run import approve
    from muhat.planning.terms import COUNTED, Terms
    from muhat.privacy import Neighbors

    relation = Neighbors.ADD_REMOVE if ledger is None else ledger.neighbors
    neighbors = Neighbors.SUBSTITUTE if substitute else relation
    declared, unknown = declared_categories(column_names(columns), categories, bins)
    if unknown and not public_categories:
        raise _undeclared(unknown)
    given = from_flags(promise)
    # Before anything is opened: which values occur is read off the data.
    number = None if neighbors is Neighbors.ADD_REMOVE else COUNTED
    approve(ledger, Terms.checked(given, number, contributions=contributions))
    target = None if out is None else _writable(out)
    with engine.opened(files) as data:
        declared |= {name: _typed(values) for name, values in _occurring(data, unknown).items()}
        missing = "other" if other else missing
        sizes = tuple(one.size for one in categories_of(declared, missing=missing))
        workload = asked(
            sizes, marginals=marginals, histogram=histogram, prefix=prefix, ranges=ranges
        )
        plan = plan_queries(
            workload,
            privacy=given,
            p=p,
            neighbors=neighbors,
            contributions=contributions,
            categories=declared,
            missing=missing,
        )
        if unknown:
            plan = plan.assuming(
                f"the values of {', '.join(unknown)} that occur in the data are public, as declared"
            )
        release: Any = plan.release(data, ledger=ledger)
    if projected:
        release = release.projected()
    # Shown first: it is paid for, and the disk may be full.
    click.echo(release.to_json() if as_json else repr(release))
    if target is not None:
        write_table(release, target)
    remind_of_ledger(ledger)


def declared_categories(
    columns: list[str] | None, categories: tuple[str, ...], bins: tuple[str, ...]
) -> tuple[dict[str, Any], list[str]]:
    """The public categories of the columns, in the order of --columns, and who has none."""
    named: dict[str, Any] = {}
    for text in categories:
        for name, labels in _labels(text).items():
            _add(named, name, labels)
    for text in bins:
        name, edges = _named_list(text, "--bins COLUMN=0,18,65")
        _add(named, name, {"bins": [number(edge, text) for edge in edges]})
    names = list(named) if columns is None else columns
    if not names:
        raise _undeclared([])
    return {name: named.get(name) for name in names}, [name for name in names if name not in named]


def _undeclared(names: list[str]) -> InvalidInput:
    first = names[0] if names else "COLUMN"
    return InvalidInput(
        f"the categories of {', '.join(names) or 'the columns'} must be declared, since those "
        f"that occur in the data are not public. Name them: --categories {first}=A,B,… or "
        f"--bins {first}=0,18,65. The owner of the data sees which ones occur with `muhat check "
        f"FILE --labels {first}`, and may make them public with --public-categories."
    )


def _occurring(data: Any, columns: list[str]) -> dict[str, list[str]]:
    """The values that occur in columns whose owner declares them public."""
    if not columns:
        return {}
    from muhat.data.inspect import labels_of

    found = {name: sorted(values) for name, values in labels_of(data, columns).items()}
    for name, values in found.items():
        if not 1 <= len(values) <= MOST_PUBLIC:
            raise InvalidInput(
                f"column {name!r:.60} has no values or more than {MOST_PUBLIC:,}: declare bins "
                f"for it, --bins {name}=0,18,65."
            )
    return found


def _typed(labels: list[str]) -> list[str] | list[int]:
    """Labels as numbers if all of them are whole numbers as people write them."""
    numbers = [int(label) for label in labels if label.lstrip("-").isdecimal()]
    return numbers if [str(number) for number in numbers] == labels else labels


def asked(
    sizes: tuple[int, ...],
    *,
    marginals: int | None,
    histogram: bool,
    prefix: bool,
    ranges: bool,
) -> Workload:
    """The workload that the options name: exactly one of them."""
    from muhat import workloads

    if (marginals is not None) + histogram + prefix + ranges != 1:
        raise InvalidInput(
            "say what to ask: exactly one of --marginals K, --histogram, --prefix and --ranges."
        )
    if marginals is not None:
        return workloads.marginals(sizes, order=marginals)
    if histogram:
        return workloads.marginals(sizes, sets=[tuple(range(len(sizes)))])
    if len(sizes) != 1:
        option = "--prefix" if prefix else "--ranges"
        raise InvalidInput(f"{option} is about one column; got {len(sizes)}.")
    return workloads.prefix(sizes[0]) if prefix else workloads.ranges(sizes[0])


def write_table(release: Release, target: Path) -> None:
    """All answers as CSV, a line an answer."""
    from muhat.release.tables import csv_lines

    table = release.table()
    try:
        with target.open("x", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(csv_lines(table))
    except OSError:
        raise InvalidInput(f"{target} cannot be written.") from None
    click.echo(f"{len(release.value):,} answers written to {printable(str(target))}.", err=True)


def _writable(out: str) -> Path:
    """A new file that can be written, tried before anything is spent.

    An existing one could be the data, or the ledger.
    """
    target = Path(out)
    try:
        target.open("x").close()
        target.unlink()
    except FileExistsError:
        raise InvalidInput(f"{out} exists already; choose a new name for --out.") from None
    except (OSError, ValueError):
        raise InvalidInput(f"{out!r:.200} cannot be written.") from None
    return target


def _labels(text: str) -> dict[str, Any]:
    """One column's labels, or those of all columns from a JSON file."""
    if text.endswith(".json") and "=" not in text:
        try:
            read = json.loads(Path(text).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            raise InvalidInput(f"{text} is not a readable JSON file of categories.") from None
        if not isinstance(read, dict):
            raise InvalidInput(f'{text} must hold an object such as {{"sex": ["f", "m"]}}.')
        return read
    name, labels = _named_list(text, "--categories COLUMN=X,Y")
    return {name: _typed(labels)}


def _named_list(text: str, form: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    if not (name.strip() and equals and values):
        raise InvalidInput(f"{form} is how it is written; got {text!r:.80}.")
    return name.strip(), [value.strip() for value in values.split(",")]


def _add(named: dict[str, Any], name: str, labels: Any) -> None:
    if name in named:
        raise InvalidInput(f"the categories of {name!r:.60} are declared twice.")
    named[name] = labels
