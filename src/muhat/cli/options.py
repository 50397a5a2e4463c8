"""Options that several commands share, and what they mean for the library."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from muhat.cli.errors import ACCOUNT
from muhat.errors import InvalidInput
from muhat.privacy import flags

if TYPE_CHECKING:
    from muhat.ledger import Ledger
    from muhat.planning.plan import Plan

Command = TypeVar("Command", bound=Callable[..., Any])
Interval = tuple[float, float]
Promised = Mapping[str, float | None]


def list_option(name: str, metavar: str, **settings: Any) -> Callable[[Command], Command]:
    """An option that is a list with commas; one that is given twice adds to it."""
    option: Callable[[Command], Command] = click.option(
        name,
        metavar=metavar,
        multiple=True,
        callback=lambda context, option, given: ",".join(given) if given else None,
        **settings,
    )
    return option


COLUMNS = list_option("--columns", "A,B,…", help="The columns, in this order.")


def promise_options(command: Command) -> Command:
    """--epsilon, --delta, --rho, …: the command's `promise` is what was given of them."""

    @functools.wraps(command)
    def collected(*arguments: Any, **options: Any) -> Any:
        promise = {name: options.pop(name) for name in flags()}
        return command(*arguments, promise=promise, **options)

    for name, words in reversed(flags().items()):
        collected = click.option(f"--{name}", type=float, help=words)(collected)
    return collected  # type: ignore[return-value]


def plan_options(command: Command) -> Command:
    """What a mean is planned from: columns, domain, n, the error's norm, missing values."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option(
            "--contributions",
            type=int,
            default=1,
            show_default=True,
            help="The most rows that one person has.",
        ),
        click.option(
            "--missing",
            type=click.Choice(["drop", "center", "none"]),
            help="A missing value is left out of its column (the default with --bounds and with "
            "--magnitude, where of several columns the record is), or counts as the centre; none "
            "declares that there are none.",
        ),
        click.option(
            "--population",
            is_flag=True,
            help="Release squares for the population's interval even where they cost a little.",
        ),
        click.option(
            "--p",
            type=float,
            default=2.0,
            show_default=True,
            help="The error is measured in the ℓ_p norm, 2 to inf.",
        ),
        click.option("--secret-n", is_flag=True, help="Keep the number of rows secret."),
        click.option("--n", type=int, help="The public number of rows."),
        click.option(
            "--mechanism", metavar="NAME", help="Override the choice, for instance recentring."
        ),
        click.option(
            "--insist", is_flag=True, help="With --magnitude: go on with fewer rows than it needs."
        ),
        click.option(
            "--magnitude",
            multiple=True,
            metavar="[COLUMN=]M",
            help="If nobody knows bounds: values lie within ±M, as generous as you like, and "
            "where they really lie is learnt privately. Columns of unlike units need one each.",
        ),
        click.option(
            "--ball",
            metavar="R[@C1,C2,…]",
            help="Clip rows to the ball of radius R, around the centre C.",
        ),
        click.option(
            "--bounds",
            multiple=True,
            metavar="COLUMN=LOW:HIGH",
            help="Clip a column to an interval; once for each column.",
        ),
        COLUMNS,
    ):
        command = option(command)
    return promise_options(command)


def delimiter_option(command: Command) -> Command:
    """--delimiter."""
    option: Callable[[Command], Command] = click.option(
        "--delimiter",
        metavar="CHARACTER",
        help="What separates the cells of CSV files: ';' or tab.  [default: a comma]",
    )
    return option(command)


def data_from(files: tuple[str, ...], delimiter: str | None = None) -> Any:
    """One file, several that are read together, or standard input."""
    from muhat.data.files import csv_data, delimiter_from

    if delimiter is not None:
        delimiter = delimiter_from("--delimiter", delimiter)
    if "-" in files:
        from muhat.data.files import standard_input

        if len(files) > 1:
            raise InvalidInput("- is standard input, which is read alone: name no other file.")
        with click.open_file("-", "rb") as stream:
            return standard_input(stream, delimiter)
    data = files[0] if len(files) == 1 else list(files)
    return data if delimiter is None else csv_data(data, delimiter=delimiter)


def ledger_options(command: Command) -> Command:
    """--ledger, --convert, --team, --note: the command's `ledger` is the account, or None."""

    @functools.wraps(command)
    def opened(
        *arguments: Any,
        ledger: str | None,
        convert: bool,
        team: str | None,
        note: str | None,
        **options: Any,
    ) -> Any:
        from muhat.ledger import Ledger

        wishes = {"--convert": convert, "--team": team is not None, "--note": note is not None}
        account = None
        if ledger is not None:
            account = Ledger.open(ledger, convert=convert).for_team(team, note=note)
        elif any(wishes.values()):
            flag = next(flag for flag, given in wishes.items() if given)
            raise InvalidInput(f"{flag} is about an account: name it with --ledger.")
        click.get_current_context().meta[ACCOUNT] = account
        return command(*arguments, ledger=account, **options)

    for option in (
        click.option(
            "--convert",
            is_flag=True,
            help="Let the account pay, by group privacy, for another relation or number of rows "
            "a person than its own.",
        ),
        click.option("--note", help="What the release is for; the account's entry says it."),
        click.option(
            "--team", help="Who pays, from its grant if there is one; see `muhat ledger grant`."
        ),
        click.option("--ledger", help="The account to charge; see `muhat ledger create`."),
    ):
        opened = option(opened)
    return opened  # type: ignore[return-value]


def remind_of_ledger(ledger: Ledger | None) -> None:
    """Say on stderr that a release was charged to nobody."""
    if ledger is None:
        click.echo("Not written to any account; use --ledger to keep one.", err=True)


def show_plan(planned: Plan, as_json: bool) -> None:
    """What will be done, at what cost, with what error."""
    click.echo(json.dumps(planned.to_dict(), indent=2) if as_json else planned.describe())


def check_rows(n: int | None, secret_n: bool) -> None:
    """Refuse a number of rows that is both public and secret."""
    if n is not None and secret_n:
        raise InvalidInput("--n declares the number of rows public; leave out --secret-n.")


def column_names(columns: str | None, option: str = "--columns") -> list[str] | None:
    """The names that an option lists."""
    if columns is None:
        return None
    names = [name.strip() for name in columns.split(",")]
    if not all(names):
        raise InvalidInput(f"{option} has an empty name; separate names by single commas.")
    return names


def named_interval(option: str, text: str) -> tuple[str, Interval]:
    """COLUMN=LOW:HIGH."""
    name, equals, ends = text.rpartition("=")
    if not (name.strip() and equals and ":" in ends):
        raise InvalidInput("must read COLUMN=LOW:HIGH", parameter=option, value=f"{text!r:.80}")
    return name.strip(), interval(ends, text)


def interval(ends: str, text: str) -> Interval:
    """LOW:HIGH, a part of the option's text."""
    low, _, high = ends.partition(":")
    return number(low, text), number(high, text)


def number(text: str, option: str) -> float:
    """A number as typed; integers stay exact, however long."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{text!r:.40} in {option!r:.80} is not a number.") from None


def _rows(
    context: click.Context, option: click.Parameter, value: Any
) -> int | Literal["learn"] | None:
    """A number of rows, or learn."""
    if value is None or value == "learn":
        return None if value is None else "learn"
    rows = click.types.convert_type(int).convert(value, option, context)
    return int(rows)


BY = list_option("--by", "A,B,…", help="A value for every group of these columns.")
CATEGORIES = click.option(
    "--categories",
    multiple=True,
    metavar="COLUMN=X,Y,…",
    help="The public categories of a column in --by; once for each. COLUMN=learn finds them "
    "privately, under --epsilon and --delta.",
)
BINS = click.option(
    "--bins",
    multiple=True,
    metavar="COLUMN=0,18,65,…",
    help="The public edges of bins for a column of numbers in --by.",
)


def group_options(command: Command) -> Command:
    """--by with the categories of its columns, whose rows they are, and --dry-run."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Show the plan; read no data, spend nothing."),
        click.option(
            "--per",
            type=click.Choice(["unit"]),
            help="unit: of people in the place of rows; those of a person are one record first.",
        ),
        click.option(
            "--max-rows",
            callback=_rows,
            metavar="K",
            help="At most so many rows of a person enter; learn finds it privately.",
        ),
        click.option(
            "--unit", metavar="COLUMN", help="Whose row it is: all rows of a person are protected."
        ),
        BINS,
        CATEGORIES,
        BY,
    ):
        command = option(command)
    return command
