"""`muhat check`: a validator for the data's owner. What it prints is not private."""

from __future__ import annotations

import click


@click.command(
    epilog="Example: muhat check salaries.csv --bounds salary=0:200000 --bounds age=16:90"
)
@click.argument("files", nargs=-1, required=True)
@click.option("--columns", metavar="A,B,…", help="The columns to look at; all, if left out.")
@click.option("--bounds", multiple=True, metavar="COLUMN=LOW:HIGH", help="Count what lies outside.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(
    files: tuple[str, ...], columns: str | None, bounds: tuple[str, ...], as_json: bool
) -> None:
    """Look at the columns of FILES as their owner: NOT private, do not publish what it prints."""
    raise SystemExit(3)
