"""Where records lie: --bounds, --ball or --magnitude, exactly one of them, or anywhere.

And what is assumed of records beyond bounds, and what their mean is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from muhat import _check
from muhat.cli.options import Command, Interval, interval, named_interval, number
from muhat.domains import Ball, Domain, Reals
from muhat.errors import InvalidInput


@dataclass(frozen=True)
class Where:
    """The domain of the records, the columns to read, and what errors are weighted by."""

    domain: Domain | Reals | dict[str, Interval]
    columns: list[str] | None
    weights: list[float] | None = None

    @property
    def has_unlike_units(self) -> bool:
        """Whether columns have magnitudes of their own, and not all the same."""
        return self.weights is not None and len({*self.weights}) > 1


def where_from(
    *,
    bounds: tuple[str, ...],
    ball: str | None,
    magnitude: tuple[str, ...],
    columns: list[str] | None,
    dim: int | None,
    anywhere: bool = False,
) -> Where:
    """What the options say, or InvalidInput with a call that would do.

    With `anywhere` records need no bound, and no option means that they have none.
    """
    if anywhere and not bounds and ball is None and not magnitude:
        return Where(Reals(_width("--symmetric", columns, dim)), columns)
    if bool(bounds) + (ball is not None) + bool(magnitude) != 1:
        names = ",".join(columns or "AB")
        raise InvalidInput(
            "say where records lie, in one way: --bounds COLUMN=LOW:HIGH for each column, or "
            "--ball R. If nobody knows bounds, a generous magnitude is enough: "
            f"muhat mean FILE --columns {names:.80} --magnitude 1e6 --rho 0.5"
        )
    if ball is not None:
        where = Where(_ball(ball, columns, dim), columns)
    elif magnitude:
        where = _reals(magnitude, columns, dim)
    else:
        named = bounds_from(bounds)
        where = Where(named, list(named) if columns is None else columns)
    if dim is not None and where.columns is not None and dim != len(where.columns):
        raise InvalidInput(f"--dim is {dim}, but {len(where.columns)} columns are named.")
    return where


def bounds_from(bounds: tuple[str, ...]) -> dict[str, Interval]:
    """The intervals of --bounds, by column."""
    named = dict(named_interval("--bounds", text) for text in bounds)
    if len(named) != len(bounds):
        raise InvalidInput("--bounds names a column twice.")
    return named


def _ball(text: str, columns: list[str] | None, dim: int | None) -> Ball:
    radius, at, center = text.partition("@")
    where = [number(part, text) for part in center.split(",")] if at else None
    if columns is None and dim is None and where is not None:
        dim = len(where)
    return Ball(radius=number(radius, text), dim=_width("--ball", columns, dim), center=where)


def _reals(texts: tuple[str, ...], columns: list[str] | None, dim: int | None) -> Where:
    if "=" not in texts[0] and len(texts) == 1:
        size = number(texts[0], f"--magnitude {texts[0]}")
        return Where(Reals(_width("--magnitude", columns, dim), size), columns)
    sizes: dict[str, float] = {}
    for text in texts:
        name, equals, reach = (part.strip() for part in text.rpartition("="))
        if not (name and equals) or name in sizes:
            raise InvalidInput(
                "must be one number, or read COLUMN=M once for each column",
                parameter="--magnitude",
                value=f"{text!r:.80}",
            )
        sizes[name] = _check.positive(f"magnitude of {name}", number(reach, text))
    names = list(sizes) if columns is None else columns
    for name in {*names} ^ {*sizes}:
        raise InvalidInput(
            f"--columns and --magnitude must name the same columns; {name!r:.60} is in one of them."
        )
    # As with --bounds, an error counts in proportion to what its column may reach.
    largest = max(sizes.values())
    weights = [largest / sizes[name] for name in names]
    return Where(Reals(len(names), largest), names, weights)


def _width(option: str, columns: list[str] | None, dim: int | None) -> int:
    if columns is not None:
        return len(columns)
    if dim is None:
        raise InvalidInput(
            f"{option} needs --columns A,B,… to know the number of columns; a plan takes --dim too."
        )
    return dim


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
            "units need one each, with the same K; their errors count by their SIZEs.",
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
        if len(sizes) > 1:
            # What is assumed of a column says more of its unit than a generous magnitude.
            given["weights"] = [max(sizes) / size for size in sizes]
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
