"""`muhat protocol account`: what a device has answered, and what it may still answer."""

from __future__ import annotations

import json

import click

from muhat._text import printable
from muhat.cli.errors import FriendlyGroup
from muhat.cli.options import Promised, promise_options
from muhat.privacy import from_flags, to_dict


@click.group(
    cls=FriendlyGroup,
    epilog="Example: muhat protocol account create device.db --epsilon 4 --days 30",
)
def account() -> None:
    """A device's own account: a budget for all that it answers in a period."""


@account.command(epilog="Example: muhat protocol account create --epsilon 4 --days 30")
@click.argument("path", required=False)
@click.option("--days", type=int, help="The period that the budget is for; 30 days.")
@promise_options
def create(path: str | None, days: int | None, promise: Promised) -> None:
    """Create an account in the new file PATH; your own, in its place, if no PATH is given."""
    from muhat.protocols.roles.device_account import DAYS, DeviceAccount, path_of_user

    where = path_of_user() if path is None else path
    made = DeviceAccount.create(
        where, budget=from_flags(promise), days=DAYS if days is None else days
    )
    said = f"Created {made.path}: at most {made.budget.describe()} in {made.days} days."
    click.echo(printable(said))


@account.command(epilog="Example: muhat protocol account show")
@click.argument("path", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(path: str | None, as_json: bool) -> None:
    """Say what was answered and what is left, in the file PATH or in your own account."""
    from muhat.protocols.roles.device_account import DeviceAccount

    found = DeviceAccount.of_user() if path is None else DeviceAccount.open(path)
    answered = found.answered
    if as_json:
        rounds = [{**vars(each), "cost": each.cost.to_dict()} for each in answered]
        said = {
            "budget": to_dict(found.budget),
            "days": found.days,
            "spent": found.spent.to_dict(),
            "remaining": found.remaining.to_dict(),
            "answered": rounds,
        }
        click.echo(json.dumps(said))
        return
    click.echo(printable(f"{found.path}: {found.budget.describe()} in {found.days} days"))
    click.echo(f"spent {found.spent:.4g}, left {found.remaining:.4g}")
    for each in answered:
        survey = "" if each.survey is None else f"  {each.survey!r} version {each.version}"
        click.echo(
            printable(
                f"{each.time}  task {each.task[:16]}  round {each.number}  {each.cost:.4g}{survey}"
            )
        )
