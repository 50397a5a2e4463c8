"""`muhat demo`: the main job on data that ship with the package."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click


@click.command(epilog="Example: muhat demo")
@click.option("--json", "as_json", is_flag=True, help="Print the release as JSON.")
def demo(as_json: bool) -> None:
    """Release the mean salary and age of 10,000 invented people, and show the account."""
    from muhat.demo import BOUNDS, SALARIES
    from muhat.ledger import Ledger
    from muhat.planning.shortcuts import mean
    from muhat.privacy import ZCDP

    flags = " ".join(f"--bounds {name}={low}:{high}" for name, (low, high) in BOUNDS.items())
    command = f"muhat mean {SALARIES.name} {flags} --rho 0.1 --ledger budget.db"
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(
            Path(folder) / "budget.db",
            budget=ZCDP(rho=1),
            neighbors="substitute",
        )
        release = mean(SALARIES, domain=BOUNDS, privacy=ZCDP(rho=0.1), ledger=ledger)
        if as_json:
            click.echo(release.to_json())
            return
        click.echo(f"$ {command}\n", err=True)
        click.echo(repr(release))
        click.echo(f"\nAccount: {ledger.spent} spent, {ledger.remaining} left.")
        click.echo("\nAssumed: " + "; ".join(release.assumptions) + ".", err=True)
