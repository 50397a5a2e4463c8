"""`muhat quantile`: release private quantiles of columns of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from muhat.cli.options import (
    BINS,
    BY,
    CATEGORIES,
    COLUMNS,
    Promised,
    check_rows,
    column_names,
    ledger_options,
    list_option,
    number,
    promise_options,
    remind_of_ledger,
)
from muhat.cli.spark import ChosenEngine, engine_options
from muhat.cli.statistics import is_learnt, public_groups
from muhat.errors import InvalidInput
from muhat.privacy import from_flags

if TYPE_CHECKING:
    from muhat.ledger import Ledger


@click.command(
    epilog="Example: muhat quantile salaries.csv --columns salary --q 0.5 --lower 0 "
    "--upper 1000000 --rho 0.1 --ledger budget.db"
)
@click.argument("files", nargs=-1, required=True)
@COLUMNS
@list_option(
    "--q",
    "Q,…",
    default=["0.5"],
    help="The quantile: 0 the least, 0.5 the median, 1 the greatest; several share the promise "
    "evenly.  [default: 0.5]",
)
@list_option("--lower", "LOW,…", required=True, help="A public bound for each column.")
@list_option("--upper", "HIGH,…", required=True, help="A public bound for each column.")
@list_option(
    "--resolution",
    "STEP,…",
    help="The step between values, for each column: 1 for whole numbers.  [default: a round "
    "number with at most 2^20 steps]",
)
@list_option(
    "--relative",
    "SHARE",
    help="Steps by a share instead, for positive bounds: 0.01 for values 1 % apart.",
)
@click.option("--n", type=int, help="The public number of rows.")
@click.option("--secret-n", is_flag=True, help="Keep the number of rows secret.")
@click.option(
    "--missing",
    type=click.Choice(["drop", "center", "none"]),
    default="drop",
    show_default=True,
    help="A missing value is left out, or counts as the middle of the bounds; none declares that "
    "nothing is missing.",
)
@click.option("--contributions", type=int, default=1, show_default=True, help="Rows a person.")
@click.option("--no-interval", is_flag=True, help="Spend all on the values, none on intervals.")
@BY
@CATEGORIES
@BINS
@ledger_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@engine_options
@promise_options
def quantile(
    files: tuple[str, ...],
    columns: str | None,
    q: str,
    lower: str,
    upper: str,
    resolution: str | None,
    relative: str | None,
    n: int | None,
    secret_n: bool,
    missing: str,
    contributions: int,
    no_interval: bool,
    by: str | None,
    categories: tuple[str, ...],
    bins: tuple[str, ...],
    ledger: Ledger | None,
    as_json: bool,
    engine: ChosenEngine,
    promise: Promised,
) -> None:
    """Release private quantiles of columns of FILES: CSV, JSON lines, Parquet, Arrow or ORC.

    The file - is standard input; text may be compressed (.gz, .bz2, .zst).

    With --engine spark FILES are Parquet or CSV paths, or one table that Spark knows by name.
    """
    from muhat.planning.quantiles import quantile as release_quantile
    from muhat.planning.terms import COUNTED

    check_rows(n, secret_n)
    arguments: dict[str, Any] = {
        "lower": _numbers(lower, "--lower"),
        "upper": _numbers(upper, "--upper"),
        "privacy": from_flags(promise),
        "n": n if n is not None or secret_n else COUNTED,
        "columns": column_names(columns),
        "resolution": None if resolution is None else _numbers(resolution, "--resolution"),
        "relative": None if relative is None else _numbers(relative, "--relative"),
        "missing": missing,
        "contributions": contributions,
        "interval": not no_interval,
    }
    groups = column_names(by, "--by")
    if groups or categories or bins:
        cells = public_groups(groups or [], categories, bins)
        for name, given in cells.items():
            if is_learnt(given):
                raise InvalidInput(
                    f"the categories of {name!r:.60} are not learnt here: list them, or write a "
                    "specification for `muhat publish`, where a column may be learnt."
                )
        arguments |= {"by": groups, "categories": cells}
    asked = _numbers(q, "--q")
    with engine.opened(files) as data:
        release = release_quantile(data, asked, ledger=ledger, **arguments)
    click.echo(release.to_json() if as_json else repr(release))
    remind_of_ledger(ledger)


def _numbers(text: str, option: str) -> Any:
    """One number, or a list of them."""
    values = [number(part.strip(), f"{option} {text}") for part in text.split(",")]
    return values[0] if len(values) == 1 else values
