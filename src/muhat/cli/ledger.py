"""`muhat ledger`: create an account, look at it, verify it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from muhat._text import printable
from muhat.cli.errors import FriendlyGroup
from muhat.cli.options import Promised, promise_options
from muhat.errors import InvalidInput
from muhat.ledger import Balance, Entry, Head, Ledger
from muhat.ledger.converting import AS_PROMISED
from muhat.ledger.display import HEADINGS, entry_cells, protects
from muhat.privacy import Neighbors, cautions, from_flags, to_dict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SCHEMA = 1
BAR_WIDTH = 30
PLAIN_WIDTH = 120


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
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def create(
    path: str,
    promise: Promised,
    neighbors: str,
    contributions: int,
    as_json: bool,
) -> None:
    """Create an account in the new file PATH with a budget that is never changed."""
    budget = from_flags(promise)
    account = Ledger.create(path, budget=budget, neighbors=neighbors, contributions=contributions)
    if as_json:
        _print_json(_summary(account, account.head, Balance.zero(budget.currency)))
    else:
        where = printable(path)
        click.echo(f"Created {where} with a budget of {Balance.of(budget)}, {protects(account)}.")
        for sentence in cautions(budget):
            click.echo(f"Caution: {sentence}")


@ledger.command(epilog="Example: muhat ledger show budget.db")
@click.argument("path")
@click.option(
    "--last", type=click.IntRange(min=0), default=20, show_default=True, help="Newest entries."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every entry.")
def show(path: str, last: int, as_json: bool) -> None:
    """Show the budget, what is spent, what is left, and the entries of PATH."""
    account = Ledger.open(path)
    entries = account.entries()
    # All from one look at the file: another process may be charging it meanwhile.
    spent = entries[-1].spent if entries else Balance.zero(account.budget.currency)
    if as_json:
        head = entries[-1].head if entries else account.head
        listed = [entry.to_dict() for entry in entries]
        _print_json({**_summary(account, head, spent), "entries": listed})
        return
    console = _console()
    console.print(_balance_table(console, path, account, spent))
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


def _summary(account: Ledger, head: Head, spent: Balance) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "path": str(account.path),
        "budget": to_dict(account.budget),
        "neighbors": account.neighbors.value,
        "contributions": account.contributions,
        "cautions": list(cautions(account.budget)),
        "spent": spent.to_dict(),
        "remaining": (Balance.of(account.budget) - spent).to_dict(),
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


def _entry_table(console: Console, entries: list[Entry]) -> Table:
    from rich import box
    from rich.table import Table

    used = sorted({entry.conversion for entry in entries} - {AS_PROMISED})
    table = Table(
        box=box.SIMPLE_HEAD,
        caption=_printable(console, "; ".join(used)) or None,
        caption_justify="left",
    )
    first, *middle, last = HEADINGS
    table.add_column(first, justify="right")
    for heading in middle:
        table.add_column(heading, no_wrap=True)
    table.add_column(last, overflow="fold")
    for entry in entries:
        table.add_row(*(_printable(console, cell) for cell in entry_cells(entry)))
    return table


def _printable(console: Console, text: str) -> str:
    """The text without what could steer a terminal, in characters that it can print."""
    return printable(text).encode(console.encoding, "replace").decode(console.encoding)
