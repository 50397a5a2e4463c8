"""What is assumed of records beyond bounds, and what their mean is asked for: options for that."""

from __future__ import annotations

from typing import Any

import click

from muhat.cli.options import Command, interval, number
from muhat.cli.where import Where
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
        click.option(
            "--max-bias",
            multiple=True,
            metavar="[COLUMN=]B",
            help="The most bias in a column; see --moment. Columns of unlike units need one each.",
        ),
        click.option(
            "--moment",
            multiple=True,
            metavar="[COLUMN=]K,SIZE",
            help="Assume E|x − mean|^K ≤ SIZE^K: 2 and a standard deviation. Columns of unlike "
            "units need one each, with the same K.",
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
    where: Where,
    *,
    scale: str | None,
    moment: tuple[str, ...],
    max_bias: tuple[str, ...],
    **others: float | bool | None,
) -> dict[str, Any]:
    """The library's arguments for those options that were given."""
    given: dict[str, Any] = {
        name: value for name, value in others.items() if value is not None and value is not False
    }
    if scale is not None:
        if ":" not in scale:
            raise InvalidInput("must read LOW:HIGH", parameter="--scale", value=f"{scale!r:.80}")
        given["scale"] = interval(scale, f"--scale {scale}")
    if moment:
        moments = [moment_from(text) for text in _of_columns("--moment", "2,SIZE", moment, where)]
        orders, sizes = zip(*moments, strict=True)
        if len({*orders}) > 1:
            raise InvalidInput("must have the same K for every column", parameter="--moment")
        given["moment"] = (orders[0], sizes[0] if len(sizes) == 1 else list(sizes))
    if max_bias:
        texts = _of_columns("--max-bias", "B", max_bias, where)
        biases = [number(text, f"--max-bias {text}") for text in texts]
        given["max_bias"] = biases[0] if len(biases) == 1 else biases
    return given


def moment_from(text: str) -> tuple[float, float]:
    """K,SIZE as numbers."""
    order, comma, size = text.partition(",")
    if not comma:
        raise InvalidInput(
            "must read K,SIZE, for instance 2,15", parameter="--moment", value=f"{text!r:.80}"
        )
    return number(order, text), number(size, text)


def _of_columns(option: str, form: str, texts: tuple[str, ...], where: Where) -> list[str]:
    """What an option says of every column, in their order; of all of them, if that is one text."""
    names = where.columns
    if len(texts) == 1 and "=" not in texts[0]:
        if where.has_unlike_units and names is not None:
            each = " ".join(f"{option} {name}={form}" for name in names)
            raise InvalidInput(
                f"{option} {texts[0]:.40} would be about columns of unlike units alike: "
                f"say it of each, {each:.200}"
            )
        return list(texts)
    said = dict(text.rpartition("=")[::2] for text in texts)
    if names is None or {*said} != {*names} or len(said) != len(texts):
        raise InvalidInput(
            f"must be given once, or as COLUMN={form} once for each of --columns", parameter=option
        )
    return [said[name] for name in names]
