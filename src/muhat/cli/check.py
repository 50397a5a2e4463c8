"""`muhat check`: a validator for the data's owner. What it prints is not private."""

from __future__ import annotations

import json
import shlex
from typing import Any

import click

from muhat._text import printable
from muhat.cli.options import column_names, data_from, delimiter_option, list_option
from muhat.cli.where import bounds_from
from muhat.errors import InvalidInput
from muhat.statistics.bounded import as_domain

NOT_PRIVATE = "Not private: what follows is for the owner of the data alone."


@click.command(
    epilog="Example: muhat check salaries.csv --bounds salary=0:200000 --bounds age=16:90"
)
@click.argument("files", nargs=-1, required=True)
@list_option("--columns", "A,B,…", help="The columns to look at.")
@click.option("--bounds", multiple=True, metavar="COLUMN=LOW:HIGH", help="Count what lies outside.")
@list_option(
    "--labels",
    "A,B,…",
    help="List the values of these columns, as --categories wants them.",
)
@delimiter_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(
    files: tuple[str, ...],
    columns: str | None,
    bounds: tuple[str, ...],
    labels: str | None,
    delimiter: str | None,
    as_json: bool,
) -> None:
    """Look at the columns of FILES as their owner: NOT private, do not publish what it prints."""
    from muhat.data import open_source
    from muhat.data.inspect import ColumnReport, inspect, with_words
    from muhat.release.display import table

    if labels is not None:
        _show_labels(data_from(files, delimiter), labels, as_json)
        return
    names = column_names(columns)
    lower: list[float] | None = None
    upper: list[float] | None = None
    if bounds:
        domain = bounds_from(bounds)
        box, bounded = as_domain(domain)
        if names is not None and set(names) != set(bounded or ()):
            raise InvalidInput("--columns and --bounds must name the same columns.")
        names = list(bounded or ())
        lower = (box.center - box.half_widths).tolist()
        upper = (box.center + box.half_widths).tolist()
    data = data_from(files, delimiter)
    report = with_words(inspect(open_source(data, columns=names), lower, upper), data, names)
    click.echo(NOT_PRIVATE, err=True)
    if as_json:
        click.echo(json.dumps(report.to_dict(), indent=2))
        return

    def cells(column: ColumnReport) -> list[str]:
        counts = (column.missing, column.not_numbers)
        values = (*counts, column.non_finite, column.below, column.above)
        ends = ("–" if end is None else f"{end:g}" for end in (column.minimum, column.maximum))
        return [column.name, column.type, *("–" if v is None else str(v) for v in values), *ends]

    header = ["column", "type", "missing", "of these text", "not finite", "below", "above"]
    header += ["least", "most"]
    click.echo(f"{report.rows} rows, {report.ragged} of them ragged\n")
    click.echo("\n".join(table([header, *map(cells, report.columns)])))
    unread = [column for column in report.columns if column.not_numbers]
    if unread:
        worst = max(unread, key=lambda column: column.not_numbers or 0)
        click.echo(
            "\nTo a mean a cell that is no number is missing. As categories: "
            f"muhat check … --labels {_quoted(worst.name)}"
        )


def _show_labels(data: Any, labels: str, as_json: bool) -> None:
    """The values that occur, a column a line, ready to be made public by whoever may."""
    from muhat.data.inspect import labels_of

    found = labels_of(data, column_names(labels))
    click.echo(NOT_PRIVATE, err=True)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for name, values in found.items():
        listed = f"{name}={','.join(values)}"
        click.echo(f"--categories {_quoted(listed)}")


def _quoted(text: str) -> str:
    """A word for a shell: as bash writes what cannot be printed, $'…', if there is any."""
    if printable(text) == text:
        return shlex.quote(text)
    plain = text.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(c if printable(c) == c else f"\\U{ord(c):08x}" for c in plain) + "'"
