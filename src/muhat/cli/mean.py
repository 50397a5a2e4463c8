"""`muhat mean` and `muhat plan`: release a private mean, or see what it would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from muhat._text import printable
from muhat.cli.options import (
    Interval,
    Promised,
    check_rows,
    column_names,
    group_options,
    interval,
    ledger_options,
    plan_options,
    remind_of_ledger,
    show_plan,
)
from muhat.cli.spark import ChosenEngine, engine_options
from muhat.cli.where import assumption_options, assumptions_from, where_from
from muhat.errors import InvalidInput
from muhat.privacy import from_flags

if TYPE_CHECKING:
    from muhat.ledger import Ledger
    from muhat.planning.plan import Plan
    from muhat.release import Release


@click.command(
    epilog="Example: muhat mean salaries.csv --columns salary,age --bounds salary=0:200000 "
    "--bounds age=16:90 --epsilon 1 --delta 1e-6 --ledger budget.db, or without bounds: "
    "muhat mean salaries.csv --magnitude salary=1e7 --magnitude age=1000 --rho 0.5, or on a "
    "cluster: muhat mean sales.salaries --engine spark --master spark://host:7077 "
    "--bounds salary=0:200000 --epsilon 1, or by groups: muhat mean salaries.csv --bounds "
    "salary=0:200000 --by region,sex --categories region=north,south --categories sex=f,m --rho 0.5"
)
@click.argument("files", nargs=-1, required=True)
@group_options
@ledger_options
@click.option(
    "--project",
    multiple=True,
    metavar="[COLUMN=]LOW:HIGH",
    help="Move the value, at no cost, to where it is known to lie: 0:inf, or age=16:90.",
)
@engine_options
@plan_options
@assumption_options
def mean(
    files: tuple[str, ...],
    ledger: Ledger | None,
    project: tuple[str, ...],
    as_json: bool,
    engine: ChosenEngine,
    by: str | None,
    categories: tuple[str, ...],
    bins: tuple[str, ...],
    unit: str | None,
    max_rows: int | str | None,
    per: Literal["unit"] | None,
    dry_run: bool,
    **options: Any,
) -> None:
    """Release the private mean of columns of FILES: CSV, JSON lines, Parquet, Arrow or ORC.

    The file - is standard input; text may be compressed (.gz, .bz2, .zst).

    With --engine spark FILES are Parquet or CSV paths, or one table that Spark knows by name;
    with --engine duckdb Parquet paths, or one table of --database.
    """
    from muhat.planning.shortcuts import mean as release_mean
    from muhat.planning.terms import COUNTED

    if by is not None or any((categories, bins, unit, max_rows, per)):
        from muhat.cli.statistics import release_set

        release_set(
            "Mean",
            **_of_groups(options, project),
            files=files,
            engine=engine,
            ledger=ledger,
            as_json=as_json,
            dry_run=dry_run,
            by=by,
            categories=categories,
            bins=bins,
            unit=unit,
            max_rows=max_rows,
            per=per,
        )
        return
    if dry_run:
        show_plan(_planned(**options), as_json)
        return
    arguments = _arguments(**options)
    targets = targets_from(project, arguments["columns"]) if project else {}
    if arguments["n"] is None and not options["secret_n"]:
        arguments["n"] = COUNTED
    with engine.opened(files) as data:
        release = release_mean(data, ledger=ledger, **arguments)
    release = projected(release, targets)
    click.echo(release.to_json() if as_json else repr(release))
    remind_of_ledger(ledger)


@click.command(
    epilog="Example: muhat plan --bounds salary=0:200000 --bounds age=16:90 --n 10000 "
    "--epsilon 1 --delta 1e-6, or without bounds: muhat plan --magnitude 1e7 --dim 2 --n 10000 "
    "--rho 0.5"
)
@click.argument("specification", required=False)
@click.option("--dim", type=int, help="The number of columns, where they have no names.")
@click.option("--plot", "picture", metavar="FILE", help="Draw the plan to an SVG or PNG file.")
@plan_options
@assumption_options
def plan(specification: str | None, as_json: bool, picture: str | None, **options: Any) -> None:
    """Show what a private mean would cost and how good it would be; no data is read.

    With a TOML file SPECIFICATION: what all statistics that it asks for would cost.
    """
    if specification is None:
        planned = _planned(**options)
    else:
        from muhat.cli.publish import plan_of, read_specification

        planned = plan_of(read_specification(specification))
    if picture is not None:
        _draw(planned, picture)
    show_plan(planned, as_json)


def _planned(**options: Any) -> Plan:
    """The plan of a mean that the options ask for."""
    from muhat.domains import Reals
    from muhat.planning.planners import plan_mean
    from muhat.statistics.bounded import in_order
    from muhat.statistics.reals import reals_rule

    arguments = _arguments(**options)
    if arguments["n"] is None and not options["secret_n"]:
        raise InvalidInput("a plan needs the number of rows: --n N, or --secret-n.")
    names = arguments.pop("columns")
    if isinstance(arguments["domain"], dict):
        arguments["domain"] = in_order(arguments["domain"], names)
    if isinstance(arguments["domain"], Reals):
        # On the command line columns have names, even if a plan does not need them.
        rule = reals_rule(arguments["missing"], arguments["mechanism"], named=True)
        arguments["missing"] = rule
    return plan_mean(**arguments)


OF_GROUPS = ("promise", "n", "secret_n", "missing", "columns", "bounds")
"""The options of a mean that means of groups have too."""


def _of_groups(options: dict[str, Any], project: tuple[str, ...]) -> dict[str, Any]:
    """What means of groups are asked with; other options are refused where they are given."""
    context = click.get_current_context()
    for name in ("project", *options):
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and name not in (*OF_GROUPS, *options["promise"]):
            flag = f"--{name.replace('_', '-')}"
            raise InvalidInput(
                f"{flag} is not for means of groups; leave it out, or leave --by out."
            )
    if options["missing"] == "center":
        raise InvalidInput("--missing center is not for means of groups: use drop or none.")
    return {name: options[name] for name in OF_GROUPS}


def _draw(planned: Plan, picture: str) -> None:
    if not picture.lower().endswith((".svg", ".png", ".pdf")):
        raise InvalidInput("must name an .svg, .png or .pdf file", parameter="--plot")
    try:
        planned.plot().savefig(picture, dpi=150)
    except OSError:
        raise InvalidInput(f"{picture} cannot be written.") from None
    click.echo(f"Drawn to {printable(picture)}.", err=True)


def _arguments(
    *,
    columns: str | None,
    bounds: tuple[str, ...],
    ball: str | None,
    magnitude: tuple[str, ...],
    n: int | None,
    secret_n: bool,
    p: float,
    missing: str | None,
    contributions: int,
    population: bool,
    mechanism: str | None,
    insist: bool,
    promise: Promised,
    dim: int | None = None,
    **assumed: Any,
) -> dict[str, Any]:
    """The library's arguments for a command's options."""
    check_rows(n, secret_n)
    names = column_names(columns)
    where = where_from(
        bounds=bounds,
        ball=ball,
        magnitude=magnitude,
        columns=names,
        dim=dim,
        anywhere=assumed["symmetric"],
    )
    return {
        "columns": where.columns,
        "domain": where.domain,
        "weights": where.weights,
        "n": n,
        "privacy": from_flags(promise),
        "p": p,
        "missing": missing,
        "contributions": contributions,
        "population": population or None,
        "mechanism": mechanism,
        "insist": insist,
        **assumptions_from(where, **assumed),
    }


Targets = dict[str | None, Interval]
"""Intervals by column; that of None is for all columns without one of their own."""


def targets_from(texts: tuple[str, ...], columns: list[str] | None) -> Targets:
    """What --project asks for, checked before anything is spent."""
    from muhat.release.public_sets import checked_intervals

    targets: Targets = {}
    for text in texts:
        name, equals, ends = text.rpartition("=")
        if ":" not in ends or (equals and not name.strip()):
            raise InvalidInput(
                "must read LOW:HIGH or COLUMN=LOW:HIGH",
                parameter="--project",
                value=f"{text!r:.80}",
            )
        key = name.strip() if equals else None
        if key in targets:
            raise InvalidInput(f"--project says twice where {key or 'every column'!r:.60} lies.")
        targets[key] = interval(ends, text)
    named = {name: pair for name, pair in targets.items() if name is not None}
    if named and columns is None:
        raise InvalidInput("--project COLUMN=… needs --columns, to know their names.")
    checked_intervals(named, columns or [])
    if None in targets:
        checked_intervals({"every column": targets[None]}, ["every column"])
    return targets


def projected(release: Release, targets: Targets) -> Release:
    """The release with its value moved; one without a value stays as it is."""
    if not targets or release.failed:
        return release
    everywhere = targets.get(None)
    pairs = {name: targets.get(name, everywhere) for name in release.columns}
    return release.projected({name: pair for name, pair in pairs.items() if pair is not None})
