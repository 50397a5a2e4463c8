"""`muhat ledger`: create an account, share it between teams, look at it, verify it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Literal

import click

from muhat._text import printable
from muhat.cli.errors import FriendlyGroup
from muhat.cli.options import Promised, promise_options
from muhat.errors import InvalidInput
from muhat.ledger import Balance, Entry, Grant, Head, Ledger
from muhat.ledger.converting import AS_PROMISED
from muhat.ledger.display import TEXTS, entry_rows, protects, shares_of
from muhat.ledger.teams import Standing
from muhat.privacy import Neighbors, cautions, from_flags, to_dict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SCHEMA = 1
BAR_WIDTH = 30
PLAIN_WIDTH = 160


@click.group(
    cls=FriendlyGroup,
    epilog="Example: muhat ledger create budget.db --rho 1 --neighbors substitute",
)
def ledger() -> None:
    """Keep account of the privacy loss that releases have spent."""


@ledger.command(
    epilog="Example: muhat ledger create budget.db --epsilon 1 --delta 1e-6 --neighbors substitute"
)
@click.argument("path")
@promise_options
@click.option(
    "--neighbors",
    type=click.Choice([relation.value for relation in Neighbors]),
    required=True,
    help="substitute: one record is replaced (n public). add-remove: one comes or goes.",
)
@click.option(
    "--contributions",
    type=int,
    default=1,
    show_default=True,
    help="The most records of a person, all of which the budget protects together.",
)
@click.option(
    "--unit",
    metavar="COLUMN",
    help="Protect all records of whoever this column names, however many there are.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def create(
    path: str,
    promise: Promised,
    neighbors: str,
    contributions: int,
    unit: str | None,
    as_json: bool,
) -> None:
    """Create an account in the new file PATH with a budget that is never changed."""
    budget = from_flags(promise)
    account = Ledger.create(
        path, budget=budget, neighbors=neighbors, contributions=contributions, unit=unit
    )
    if as_json:
        _print_json(_summary(account, account.head, account.standing))
    else:
        where = printable(path)
        click.echo(f"Created {where} with a budget of {Balance.of(budget)}, {protects(account)}.")
        for sentence in cautions(budget):
            click.echo(f"Caution: {sentence}")


@ledger.command(epilog="Example: muhat ledger grant budget.db --team health --rho 0.3")
@click.argument("path")
@click.option("--team", required=True, help="Who may spend it.")
@promise_options
@click.option("--withdraw", is_flag=True, help="Lower the grant to what the team has spent.")
@click.option("--note", help="What it is for.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def grant(
    path: str, team: str, promise: Promised, withdraw: bool, note: str | None, as_json: bool
) -> None:
    """Set a part of the budget of PATH aside for a team, in place of what it was granted before.

    The team may spend so much, and nobody else. Charges without a team are paid from what is not
    granted; from the first grant on, a team without a grant may not charge.
    """
    account = Ledger.open(path)
    if withdraw and any(number is not None for number in promise.values()):
        raise InvalidInput("--withdraw says what is left of the grant: nothing; name no amount.")
    granted = (
        account.withdraw(team, note=note)
        if withdraw
        else account.grant(team, from_flags(promise), note=note)
    )
    standing = account.standing
    if as_json:
        _print_json({**_summary(account, granted.head, standing), "entry": granted.to_dict()})
        return
    rest = standing.ungranted.remaining
    click.echo(
        printable(
            f"Team {granted.team} may spend {granted.granted} of {standing.budget} in {path}; "
            f"{rest} is left for charges without a team."
        )
    )


@ledger.command(epilog="Example: muhat ledger show budget.db")
@click.argument("path")
@click.option(
    "--last", type=click.IntRange(min=0), default=20, show_default=True, help="Newest entries."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every entry.")
def show(path: str, last: int, as_json: bool) -> None:
    """Show the budget, what is spent by whom, what is left, and the entries of PATH."""
    account = Ledger.open(path)
    entries, standing = account.look()
    if as_json:
        head = entries[-1].head if entries else account.head
        listed = [entry.to_dict() for entry in entries]
        _print_json({**_summary(account, head, standing), "entries": listed})
        return
    console = _console()
    console.print(_balance_table(console, path, account, standing.spent))
    if standing.shares:
        console.print(_team_table(console, standing))
    if entries and last:
        console.print(_entry_table(console, entries[-last:]))
    if len(entries) > last:
        click.echo(
            f"{len(entries) - last} earlier entries are not shown (--last {len(entries)}).",
            err=True,
        )


@ledger.command(epilog="Example: muhat ledger verify budget.db --release r.json")
@click.argument("path")
@click.option("--release", help="A release as JSON; its ledger_head must lie on the chain.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(path: str, release: str | None, as_json: bool) -> None:
    """Recompute every hash and total of PATH, and look for the head that a release carries."""
    anchor = None if release is None else _head_of_release(release)
    account = Ledger.open(path, expect_head=anchor)
    # With an anchor, opening has verified the whole chain already.
    head = account.verify() if anchor is None else account.head
    if as_json:
        found = {"valid": True, "anchor": anchor.to_dict() if anchor else None}
        _print_json({"schema": SCHEMA, "path": path, **found, "head": head.to_dict()})
    else:
        entries = "entry" if head.count == 1 else "entries"
        among = f", the one of {release} (number {anchor.count}) among them." if anchor else "."
        click.echo(printable(f"{path} is intact: {head.count} {entries}{among}"))
    if anchor is None:
        click.echo(
            "Without --release an old copy that was put back looks the same as the newest.",
            err=True,
        )


def _head_of_release(release: str) -> Head:
    try:
        with open(release, encoding="utf-8") as file:
            fields = json.load(file)
    except OSError:
        raise InvalidInput(f"{release} cannot be read.") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{release} is not the JSON of a release.") from None
    if not isinstance(fields, dict) or "ledger_head" not in fields:
        raise InvalidInput(f"{release} is not the JSON of a release: it has no ledger_head.")
    if fields["ledger_head"] is None:
        raise InvalidInput(f"{release} was released without a ledger, so it anchors nothing.")
    return Head.parse(fields["ledger_head"])


def _summary(account: Ledger, head: Head, standing: Standing) -> dict[str, Any]:
    teams = {team: share.to_dict() for team, share in sorted(standing.shares.items())}
    return {
        "schema": SCHEMA,
        "path": str(account.path),
        "budget": to_dict(account.budget),
        "neighbors": account.neighbors.value,
        "contributions": account.contributions,
        "unit": account.unit.column,
        "cautions": list(cautions(account.budget)),
        "spent": standing.spent.to_dict(),
        "remaining": (standing.budget - standing.spent).to_dict(),
        "grants": teams,
        "without_a_team": standing.ungranted.to_dict(),
        "head": head.to_dict(),
    }


def _print_json(fields: dict[str, Any]) -> None:
    click.echo(json.dumps(fields, indent=2))


def _console() -> Console:
    from rich.console import Console

    terminal = sys.stdout.isatty()
    # Said outright: rich would take FORCE_COLOR for a terminal and colour a pipe.
    return Console(
        force_terminal=terminal,
        color_system="auto" if terminal else None,
        width=None if terminal else PLAIN_WIDTH,
        highlight=False,
        markup=False,
    )


def _balance_table(console: Console, path: str, account: Ledger, spent: Balance) -> Table:
    from rich.table import Table
    from rich.text import Text

    budget = Balance.of(account.budget)
    # Of (ε, δ) the scarcer number decides how full the account is.
    pairs = zip(spent.amounts, budget.amounts, strict=True)
    share = float(max(part / whole for part, whole in pairs))
    full, empty = ("#", ".") if console.options.ascii_only else ("█", "░")
    filled = min(BAR_WIDTH, round(share * BAR_WIDTH))
    # What is spent must never look like nothing, nor what is left like a full account.
    filled = max(filled, 1) if share > 0 else 0
    filled = min(filled, BAR_WIDTH - 1) if share < 1 else BAR_WIDTH
    bar = f"{full * filled}{empty * (BAR_WIDTH - filled)} {share:.1%}"
    table = Table(title=Text(_printable(console, path)), show_header=False, title_justify="left")
    table.add_row("budget", f"{budget:.6g}, {protects(account)}")
    for sentence in cautions(account.budget):
        table.add_row("caution", sentence)
    table.add_row("spent", f"{spent:.6g}")
    table.add_row("remaining", f"{budget - spent:.6g}")
    table.add_row("", Text(bar, style="green" if share < 0.8 else "red"))
    return table


def _team_table(console: Console, standing: Standing) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("team", "granted", "spent", "left"):
        table.add_column(heading, overflow="fold")
    for team, share in shares_of(standing):
        name = "(without a team)" if team is None else _printable(console, team)
        amounts = (share.granted, share.spent, share.remaining)
        table.add_row(name, *(f"{amount:.6g}" for amount in amounts))
    return table


def _entry_table(console: Console, entries: list[Entry | Grant]) -> Table:
    from rich import box
    from rich.table import Table

    charges = [entry for entry in entries if isinstance(entry, Entry)]
    used = sorted({entry.conversion for entry in charges} - {AS_PROMISED})
    table = Table(
        box=box.SIMPLE_HEAD,
        caption=_printable(console, "; ".join(used)) or None,
        caption_justify="left",
    )
    headings, *rows = entry_rows(entries)
    for place, heading in enumerate(headings):
        justify: Literal["left", "right"] = "left" if place else "right"
        long = heading in TEXTS
        table.add_column(heading, justify=justify, no_wrap=not long, overflow="fold")
    for row in rows:
        table.add_row(*(_printable(console, cell) for cell in row))
    return table


def _printable(console: Console, text: str) -> str:
    """The text without what could steer a terminal, in characters that it can print."""
    return printable(text).encode(console.encoding, "replace").decode(console.encoding)
