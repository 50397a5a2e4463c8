"""What is assumed of records beyond bounds, and what their mean is asked for: options for that."""

from __future__ import annotations

from typing import Any

import click

from muhat.cli.options import Command, interval, number
from muhat.errors import InvalidInput


def assumption_options(command: Command) -> Command:
    """--scale, --moment, --max-bias, --symmetric, --unbiased and --n-min."""
    for option in (
        click.option(
            "--n-min",
            type=int,
            help="With --secret-n: a public number of rows; fewer may give no value.",
        ),
        click.option("--unbiased", is_flag=True, help="No bias at all: with a box and a secret n."),
        click.option(
            "--symmetric",
            is_flag=True,
            help="Assume a distribution symmetric about its mean; needs no --magnitude.",
        ),
        click.option("--max-bias", type=float, help="The most bias in a column; see --moment."),
        click.option(
            "--moment",
            metavar="K,SIZE",
            help="Assume E|x − mean|^K ≤ SIZE^K in every column: 2 and a standard deviation.",
        ),
        click.option(
            "--scale",
            metavar="LOW:HIGH",
            help="Bounds on the standard deviation, for --mechanism statistical.",
        ),
    ):
        command = option(command)
    return command


def assumptions_from(
    *, scale: str | None, moment: str | None, **others: float | bool | None
) -> dict[str, Any]:
    """The library's arguments for those options that were given."""
    given: dict[str, Any] = {
        name: value for name, value in others.items() if value is not None and value is not False
    }
    if scale is not None:
        if ":" not in scale:
            raise InvalidInput(f"--scale must read LOW:HIGH; got {scale!r:.80}.")
        given["scale"] = interval(scale, f"--scale {scale}")
    if moment is not None:
        order, comma, size = moment.partition(",")
        if not comma:
            raise InvalidInput(f"--moment must read K,SIZE, for instance 2,15; got {moment!r:.80}.")
        given["moment"] = (number(order, moment), number(size, moment))
    return given
