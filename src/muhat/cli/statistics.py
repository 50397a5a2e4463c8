"""`muhat sum`, `muhat count`, `muhat variance`, and `--by` for them and for `muhat mean`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from muhat.cli.options import (
    COLUMNS,
    Promised,
    check_rows,
    column_names,
    group_options,
    ledger_options,
    promise_options,
    remind_of_ledger,
    show_plan,
)
from muhat.cli.queries import declared_categories
from muhat.cli.spark import ChosenEngine, engine_options
from muhat.cli.where import bounds_from
from muhat.errors import InvalidInput
from muhat.privacy import from_flags
from muhat.statistics.declared import LEARN

if TYPE_CHECKING:
    from muhat.ledger import Ledger
    from muhat.statistics.asked import Asked
    from muhat.statistics.schema import Schema

Command = TypeVar("Command", bound=Callable[..., Any])


def set_options(command: Callable[..., None]) -> Callable[..., None]:
    """All that a statistic of a set is asked with, beside the promise."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--secret-n", is_flag=True, help="Keep the number of rows secret."),
        click.option("--n", type=int, help="The public number of rows."),
        click.option(
            "--missing",
            type=click.Choice(["drop", "none"]),
            default="drop",
            show_default=True,
            help="A missing value is left out; none declares that there are none.",
        ),
    ):
        command = option(command)
    return ledger_options(engine_options(promise_options(group_options(command))))


BOUNDS = click.option(
    "--bounds",
    multiple=True,
    required=True,
    metavar="COLUMN=LOW:HIGH",
    help="Clip a column to an interval; once for each column.",
)


@click.command(
    epilog="Example: muhat sum sales.csv --bounds amount=0:500 --by region "
    "--categories region=north,south --rho 0.1 --ledger budget.db"
)
@click.argument("files", nargs=-1, required=True)
@COLUMNS
@BOUNDS
@set_options
def sum(**options: Any) -> None:
    """Release private sums of columns of FILES, of all rows or by groups."""
    release_set("Sum", **options)


@click.command(
    epilog="Example: muhat variance people.csv --bounds age=16:90 --by sex --categories sex=f,m "
    "--rho 0.1"
)
@click.argument("files", nargs=-1, required=True)
@COLUMNS
@BOUNDS
@set_options
def variance(**options: Any) -> None:
    """Release private variances of columns of FILES, of all rows or by groups."""
    release_set("Variance", **options)


@click.command(
    epilog="Example: muhat count people.csv --by region,sex --categories region=north,south "
    "--categories sex=f,m --rho 0.1"
)
@click.argument("files", nargs=-1, required=True)
@set_options
def count(**options: Any) -> None:
    """Release private numbers of rows of FILES, all of them or by groups."""
    release_set("Count", **options)


def release_set(
    kind: str,
    *,
    files: tuple[str, ...],
    engine: ChosenEngine,
    promise: Promised,
    ledger: Ledger | None,
    as_json: bool,
    dry_run: bool,
    n: int | None,
    secret_n: bool,
    missing: str | None,
    by: str | None,
    per: Literal["unit"] | None,
    columns: str | None = None,
    bounds: tuple[str, ...] = (),
    **facts: Any,
) -> None:
    """One statistic of each column, for one promise."""
    from muhat.planning.several import plan
    from muhat.planning.terms import COUNTED, number_for

    check_rows(n, secret_n)
    if per is not None and facts["unit"] is None:
        raise InvalidInput("--per unit needs --unit COLUMN, which says whose row it is.")
    given = None if secret_n else COUNTED if n is None else n
    groups = column_names(by, "--by") or []
    number = number_for(given, None, ledger)
    if kind == "Count" and not groups and number is not None:
        _refuse_a_public_count(n, ledger)
        number = None
    named = bounds_from(bounds)
    names = column_names(columns) or list(named)
    for name in names:
        if name not in named:
            raise InvalidInput(f"--columns names {name!r:.60}, which has no --bounds.")
    schema = _schema({name: named[name] for name in names}, groups, missing, **facts)
    planned = plan(
        _asked(kind, names, groups, per),
        schema=schema,
        privacy=from_flags(promise),
        n=number,
    )
    if dry_run:
        show_plan(planned, as_json)
        return
    with engine.opened(files) as data:
        release = planned.release(data, ledger=ledger)
    click.echo(release.to_json() if as_json else repr(release))
    remind_of_ledger(ledger)


def _refuse_a_public_count(n: int | None, ledger: Ledger | None) -> None:
    """A count of all rows hides their number, which must not be public then."""
    if n is not None:
        raise InvalidInput("--n declares public what is counted here: leave it out, or add --by.")
    if ledger is not None:
        raise InvalidInput(
            "the account is about replaced records, which do not change how many there are: add "
            "--by, or use an account created with --neighbors add-remove."
        )


def _asked(
    kind: str, columns: list[str], by: list[str], per: Literal["unit"] | None
) -> list[Asked]:
    from muhat.statistics import asked

    if kind == "Count":
        return [asked.Count(by=by, per=per)]
    return [getattr(asked, kind)(column, by=by, per=per) for column in columns]


def public_groups(
    by: list[str], categories: tuple[str, ...], bins: tuple[str, ...]
) -> dict[str, Any]:
    """The public categories of every column of the groups, or InvalidInput."""
    if not (by or categories or bins):
        return {}
    declared, unknown = declared_categories(by, categories, bins)
    if unknown:
        first = unknown[0]
        raise InvalidInput(
            f"the categories of {first!r:.60} must be declared, since those that occur in the "
            f"data are not public: --categories {first}=A,B,… or --bins {first}=0,18,65."
        )
    return declared


def is_learnt(cells: Any) -> bool:
    """Whether COLUMN=learn was typed."""
    return bool(cells == [LEARN])


def _cells(given: Any) -> Any:
    """The groups of a column as a schema has them."""
    from muhat.statistics.schema import Bins

    if isinstance(given, dict):
        return Bins(given["bins"])
    return LEARN if is_learnt(given) else list(given)


def _schema(
    bounds: dict[str, tuple[float, float]],
    by: list[str],
    missing: str | None,
    *,
    categories: tuple[str, ...],
    bins: tuple[str, ...],
    unit: str | None,
    max_rows: int | Literal["learn"] | None,
) -> Schema:
    """The public facts that the options name."""
    from muhat.statistics.schema import Schema

    groups = {name: _cells(cells) for name, cells in public_groups(by, categories, bins).items()}
    complete = missing == "none"
    return Schema({**bounds, **groups}, unit=unit, max_rows=max_rows, complete=complete)
