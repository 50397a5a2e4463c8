"""`muhat mean` and `muhat plan`: release a private mean, or see what it would cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from muhat.cli.options import column_names, domain_from, ordered, plan_options, promise_from
from muhat.errors import InvalidInput

if TYPE_CHECKING:
    from muhat.planning.plan import Plan


@click.command(
    epilog="Example: muhat mean salaries.csv --columns salary,age --bounds salary=0:200000 "
    "--bounds age=16:90 --epsilon 1 --delta 1e-6 --ledger budget.db"
)
@click.argument("files", nargs=-1, required=True)
@click.option("--ledger", help="The account to charge; see `muhat ledger create`.")
@plan_options
def mean(files: tuple[str, ...], ledger: str | None, as_json: bool, **options: Any) -> None:
    """Release the private mean of columns of CSV, Parquet or Arrow FILES."""
    from muhat.planning.shortcuts import COUNTED
    from muhat.planning.shortcuts import mean as release_mean

    arguments = _arguments(**options)
    if arguments["n"] is None and not options["secret_n"]:
        arguments["n"] = COUNTED
    release = release_mean(files[0] if len(files) == 1 else list(files), ledger=ledger, **arguments)
    click.echo(release.to_json() if as_json else repr(release))
    if ledger is None:
        click.echo("Not written to any account; use --ledger to keep one.", err=True)


@click.command(
    epilog="Example: muhat plan --bounds salary=0:200000 --bounds age=16:90 --n 10000 "
    "--epsilon 1 --delta 1e-6"
)
@click.option("--plot", "picture", metavar="FILE", help="Draw the plan to an SVG or PNG file.")
@plan_options
def plan(as_json: bool, picture: str | None, **options: Any) -> None:
    """Show what a private mean would cost and how good it would be; no data is read."""
    from muhat.planning.planners import plan_mean
    from muhat.planning.task import in_order

    arguments = _arguments(**options)
    if arguments["n"] is None and not options["secret_n"]:
        raise InvalidInput("a plan needs the number of rows: --n N, or --secret-n.")
    names = arguments.pop("columns")
    if isinstance(arguments["domain"], dict):
        arguments["domain"] = in_order(arguments["domain"], names)
    planned = plan_mean(**arguments)
    if picture is not None:
        _draw(planned, picture)
    click.echo(json.dumps(planned.to_dict(), indent=2) if as_json else planned.describe())


def _draw(planned: Plan, picture: str) -> None:
    if not picture.lower().endswith((".svg", ".png", ".pdf")):
        raise InvalidInput("--plot must name an .svg, .png or .pdf file.")
    try:
        planned.plot().savefig(picture, dpi=150)
    except OSError:
        raise InvalidInput(f"{picture} cannot be written.") from None
    click.echo(f"Drawn to {picture}.", err=True)


def _arguments(
    *,
    columns: str | None,
    bounds: tuple[str, ...],
    ball: str | None,
    n: int | None,
    secret_n: bool,
    p: float,
    missing: str,
    contributions: int,
    **promise: float | None,
) -> dict[str, Any]:
    """The library's arguments for a command's options."""
    if n is not None and secret_n:
        raise InvalidInput("--n declares the number of rows public; leave out --secret-n.")
    names = column_names(columns)
    domain = domain_from(bounds, ball, names)
    return {
        "columns": ordered(domain, names),
        "domain": domain,
        "n": n,
        "privacy": promise_from(**promise),
        "p": p,
        "missing": missing,
        "contributions": contributions,
    }
