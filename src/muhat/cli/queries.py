"""`muhat queries`: private histograms, marginals, ranges and running counts of files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muhat.cli.options import column_names, number, promise_from, promise_options
from muhat.errors import InvalidInput

if TYPE_CHECKING:
    from muhat.release.query_release import QueryRelease
    from muhat.workloads import Workload


@click.command(
    epilog="Example: muhat queries people.csv --marginals 2 --columns sex,region "
    "--categories sex=f,m --categories region=north,south --epsilon 1 --delta 1e-6"
)
@click.argument("files", nargs=-1, required=True)
@click.option("--columns", metavar="A,B,…", help="The columns, in this order.")
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
@click.option("--marginals", type=int, help="Ask for all tables of this many columns.")
@click.option("--histogram", is_flag=True, help="Ask for the table of all columns.")
@click.option("--prefix", is_flag=True, help="Ask for running counts over one column.")
@click.option("--ranges", is_flag=True, help="Ask for all intervals of one column.")
@click.option(
    "--p", type=float, default=2.0, show_default=True, help="The ℓ_p norm of the error, 2 to inf."
)
@click.option("--other", is_flag=True, help='Count all other values in a category "other".')
@click.option(
    "--substitute", is_flag=True, help="Declare the number of rows public; implies --other."
)
@click.option("--contributions", type=int, default=1, show_default=True, help="Rows a person.")
@click.option("--projected", is_flag=True, help="Make the answers non-negative and consistent.")
@click.option("--out", metavar="FILE", help="Write all answers to a CSV file.")
@click.option("--ledger", help="The account to charge; see `muhat ledger create`.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@promise_options
def queries(
    files: tuple[str, ...],
    columns: str | None,
    categories: tuple[str, ...],
    bins: tuple[str, ...],
    marginals: int | None,
    histogram: bool,
    prefix: bool,
    ranges: bool,
    p: float,
    other: bool,
    substitute: bool,
    contributions: int,
    projected: bool,
    out: str | None,
    ledger: str | None,
    as_json: bool,
    **promise: float | None,
) -> None:
    """Release counts of CSV, Parquet or Arrow FILES: tables, ranges, running counts."""
    from muhat.data.categories import categories_of
    from muhat.planning.queries import plan_queries
    from muhat.privacy import Neighbors

    neighbors = Neighbors.SUBSTITUTE if substitute else Neighbors.ADD_REMOVE
    declared = declared_categories(column_names(columns), categories, bins)
    missing = "other" if other or substitute else "drop"
    sizes = tuple(one.size for one in categories_of(declared, missing=missing))
    workload = asked(sizes, marginals=marginals, histogram=histogram, prefix=prefix, ranges=ranges)
    plan = plan_queries(
        workload,
        privacy=promise_from(**promise),
        p=p,
        neighbors=neighbors,
        contributions=contributions,
        categories=declared,
        missing=missing,
    )
    target = None if out is None else _writable(out)
    release = plan.release(files[0] if len(files) == 1 else list(files), ledger=ledger)
    if projected:
        release = release.projected()
    if target is not None:
        write_table(release, target)
    click.echo(release.to_json() if as_json else repr(release))
    if ledger is None:
        click.echo("Not written to any account; use --ledger to keep one.", err=True)


def declared_categories(
    columns: list[str] | None, categories: tuple[str, ...], bins: tuple[str, ...]
) -> dict[str, Any]:
    """The public categories of every column, in the order of --columns."""
    named: dict[str, Any] = {}
    for text in categories:
        for name, labels in _labels(text).items():
            _add(named, name, labels)
    for text in bins:
        name, edges = _named_list(text, "--bins COLUMN=0,18,65")
        _add(named, name, {"bins": [number(edge, text) for edge in edges]})
    names = list(named) if columns is None else columns
    without = [name for name in names if name not in named]
    if without or not names:
        first = without[0] if without else "COLUMN"
        raise InvalidInput(
            f"the categories of {', '.join(without) or 'the columns'} must be declared, since "
            "those that occur in the data are not public. Name them: "
            f"--categories {first}=A,B,… or --bins {first}=0,18,65; "
            f"`muhat check FILE --labels {first}` shows the owner of the data which ones occur."
        )
    return {name: named[name] for name in names}


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


def write_table(release: QueryRelease, target: Path) -> None:
    """All answers as CSV, a line an answer."""
    table = release.table()
    try:
        with target.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(table)
            writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    except OSError:
        raise InvalidInput(f"{target} cannot be written.") from None
    click.echo(f"{len(release.value):,} answers written to {target}.", err=True)


def _writable(out: str) -> Path:
    """A file that can be written, tried before anything is spent."""
    target = Path(out)
    try:
        target.open("a").close()
    except OSError:
        raise InvalidInput(f"{out} cannot be written.") from None
    return target


def _labels(text: str) -> dict[str, Any]:
    """One column's labels, or those of all columns from a JSON file."""
    if text.endswith(".json") and "=" not in text:
        try:
            read = json.loads(Path(text).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise InvalidInput(f"{text} is not a readable JSON file of categories.") from None
        if not isinstance(read, dict):
            raise InvalidInput(f'{text} must hold an object such as {{"sex": ["f", "m"]}}.')
        return read
    name, labels = _named_list(text, "--categories COLUMN=X,Y")
    return {name: labels}


def _named_list(text: str, form: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    if not (name.strip() and equals and values):
        raise InvalidInput(f"{form} is how it is written; got {text!r:.80}.")
    return name.strip(), [value.strip() for value in values.split(",")]


def _add(named: dict[str, Any], name: str, labels: Any) -> None:
    if name in named:
        raise InvalidInput(f"the categories of {name!r:.60} are declared twice.")
    named[name] = labels
