"""Quantiles of columns between public bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._words import Parameter
from muhat.errors import InvalidInput
from muhat.release.quantile_answer import MISSING

if TYPE_CHECKING:
    from muhat.data.categories import Categories
    from muhat.data.grids import UniformGrid

MOST_QUANTILES = 1000
MOST_SEARCHES = 200_000
"""Over all groups: each is a few dozen noisy numbers, and all of them are released."""


@dataclass(frozen=True, eq=False)
class Quantiles:
    """One quantile or several of every column, each on its grid; in groups, if there are any.

    `categories` are those of the columns that make the groups. Without `interval` all of the
    promise goes to the values.
    """

    q: float | tuple[float, ...]
    grids: list[UniformGrid]
    missing: str
    categories: tuple[Categories, ...] = ()
    interval: bool = True

    def __post_init__(self) -> None:
        if self.categories:
            searches = math.prod(one.size for one in self.categories)
            searches *= len(self.fractions) * len(self.grids)
            _check.count("the number of quantiles of all groups", searches, most=MOST_SEARCHES)

    @property
    def fractions(self) -> tuple[float, ...]:
        """The quantiles that are asked for, one or more."""
        return self.q if isinstance(self.q, tuple) else (self.q,)

    @classmethod
    def of(
        cls,
        q: float | Sequence[float],
        lower: ArrayLike | None,
        upper: ArrayLike | None,
        *,
        resolution: ArrayLike | None,
        relative: ArrayLike | None,
        missing: str,
        categories: tuple[Categories, ...] = (),
        interval: bool = True,
    ) -> Quantiles:
        """Check every argument."""
        fractions = _fractions(q)
        grids = _grids(lower, upper, resolution, relative)
        rule = _check.one_of("missing", missing, tuple(MISSING))
        if not isinstance(interval, bool):
            raise InvalidInput("must be True or False", parameter="interval")
        return cls(fractions, grids, rule, categories, interval)

    def premises(self) -> tuple[str, ...]:
        """What ranks are about, in sentences."""
        clipped = (
            "records outside the bounds are clipped to them and all are rounded to the grid; "
            "ranks are about these records"
        )
        return (clipped, MISSING[self.missing])


def _fractions(q: float | Sequence[float]) -> float | tuple[float, ...]:
    """One quantile or several, each from 0, the least, to 1, the greatest."""
    given = _listed("q", q)
    if not isinstance(given, tuple):
        return _check.fraction("q", given)
    _check.count("the number of quantiles", len(given), most=MOST_QUANTILES)
    return tuple(_check.fraction("q", one) for one in given)


def _grids(
    lower: ArrayLike | None,
    upper: ArrayLike | None,
    resolution: ArrayLike | None,
    relative: ArrayLike | None,
) -> list[UniformGrid]:
    """A grid a column, from a number or a list for each of the arguments."""
    from muhat.data.grids import UniformGrid
    from muhat.release.quantile_grids import RelativeGrid

    if lower is None or upper is None:
        raise InvalidInput(
            Parameter("lower"),
            " and ",
            Parameter("upper"),
            " must say between which public bounds the search runs, for instance ",
            Parameter("lower", "lower=0, upper=1e6", "--lower 0 --upper 1e6"),
            "; generous bounds cost little.",
        )
    if resolution is not None and relative is not None:
        both = (Parameter("resolution"), " and ", Parameter("relative"))
        raise InvalidInput(*both, " are two ways to choose a step; give one.")
    lows, highs = _listed("lower", lower), _listed("upper", upper)
    steps = _listed("resolution", resolution if relative is None else relative)
    if not isinstance(lows, tuple) and not isinstance(highs, tuple):
        lows, highs = (lows,), (highs,)
        steps = steps if isinstance(steps, tuple) else (steps,)
    if not isinstance(lows, tuple) or not isinstance(highs, tuple) or len(lows) != len(highs):
        raise InvalidInput("lower and upper must be two numbers, or two lists of equal length.")
    if steps is None or (relative is not None and not isinstance(steps, tuple)):
        steps = (steps,) * len(lows)
    if not lows or not isinstance(steps, tuple) or len(steps) != len(lows):
        raise InvalidInput("lower, upper and the steps must have one number for each column.")
    kind = UniformGrid if relative is None else RelativeGrid
    # Searches know grids by their cells alone: the two kinds are the same to them.
    return [cast(UniformGrid, kind.between(*each)) for each in zip(lows, highs, steps, strict=True)]


def _listed(name: str, value: Any) -> Any:
    """A single thing as it is, a list or an array of one axis as a tuple."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value.item()
    if isinstance(value, np.ndarray) and value.ndim > 1:
        raise InvalidInput("must be a number or a list of numbers", parameter=name)
    if isinstance(value, list | tuple | range | np.ndarray):
        return tuple(value)
    return value
