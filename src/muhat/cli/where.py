"""Where records lie: --bounds, --ball or --magnitude, exactly one of them, or anywhere."""

from __future__ import annotations

from dataclasses import dataclass

from muhat import _check
from muhat.cli.options import Interval, named_interval, number
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
