"""`muhat demo`: the main job on data that ship with the package."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click


@click.command(epilog="Example: muhat demo")
@click.option("--json", "as_json", is_flag=True, help="Print the release as JSON.")
@click.option(
    "--engine",
    type=click.Choice(["embedded", "spark"]),
    default="embedded",
    show_default=True,
    help="Read the data here, or on a Spark cluster that is started on this machine for it.",
)
def demo(as_json: bool, engine: str) -> None:
    """Release the mean salary and age of 10,000 invented people, and show the account."""
    from muhat.demo import BOUNDS, SALARIES
    from muhat.ledger import Ledger
    from muhat.planning.shortcuts import mean
    from muhat.privacy import ZCDP

    flags = " ".join(f"--bounds {name}={low}:{high}" for name, (low, high) in BOUNDS.items())
    command = f"muhat mean {SALARIES.name} {flags} --rho 0.1 --ledger budget.db"
    if engine == "spark":
        where = "--engine spark --master spark://127.0.0.1:7077"
        command = f"muhat mean salaries.parquet {where} {flags} --rho 0.1 --ledger budget.db"
    with tempfile.TemporaryDirectory() as folder, _data(engine, Path(folder)) as data:
        ledger = Ledger.create(
            Path(folder) / "budget.db",
            budget=ZCDP(rho=1),
            neighbors="substitute",
        )
        release = mean(data, domain=BOUNDS, privacy=ZCDP(rho=0.1), ledger=ledger)
        if as_json:
            click.echo(release.to_json())
            return
        click.echo(f"$ {command}\n", err=True)
        click.echo(repr(release))
        click.echo(f"\nAccount: {ledger.spent} spent, {ledger.remaining} left.")
        click.echo("\nAssumed: " + "; ".join(release.assumptions) + ".", err=True)


@contextmanager
def _data(engine: str, folder: Path) -> Iterator[Any]:
    """The file that ships with the package, or its rows on a cluster of two workers."""
    from muhat.demo import SALARIES

    if engine == "embedded":
        yield SALARIES
        return
    import pyarrow.parquet as pq
    from pyarrow import csv

    from muhat.cli.spark import SETTINGS
    from muhat.demo.cluster import local_session

    click.echo("Starting Spark: a master and two workers on this machine.", err=True)
    path = folder / "salaries.parquet"
    pq.write_table(csv.read_csv(SALARIES), path)
    with local_session(SETTINGS) as session:
        yield session.read.parquet(str(path))
