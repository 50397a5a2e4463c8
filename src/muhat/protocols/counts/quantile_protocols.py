"""Quantiles when nobody may see the records: `local_quantile` and `shuffle_quantile`.

    protocol = muhat.protocols.shuffle_quantile(q=0.5, lower=0, upper=1e6, n=…, privacy=…)

Both are protocols like those of means; the last round gives `CountedQuantiles`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from muhat import _check, privacy
from muhat.data.grids import UniformGrid
from muhat.errors import InvalidInput
from muhat.planning.caution import warn_of_large_delta
from muhat.privacy import Privacy, as_typed, check_promise
from muhat.protocols.protocol import MOST_USERS, Protocol
from muhat.release.quantile_grids import AnyGrid, RelativeGrid, read_grid, words

MOST_QUANTILES = 16

LOCAL_CELLS = 1 << 10
"""Unless a step is given, the local model's grid has no more: finer ones would cost accuracy."""


@dataclass(frozen=True)
class QuantileAsked:
    """Which quantiles of a number over n people, on a public grid."""

    q: float | tuple[float, ...]
    grid: AnyGrid
    privacy: Privacy
    n: int
    column: str = "0"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _check.count("n", self.n))
        object.__setattr__(self, "q", _fractions(self.q))

    @property
    def fractions(self) -> tuple[float, ...]:
        """The quantiles that were asked for, one or more."""
        return self.q if isinstance(self.q, tuple) else (self.q,)

    def describe(self) -> str:
        """What is estimated, in a sentence."""
        asked = ", ".join(f"{fraction:g}" for fraction in self.fractions)
        several = "s" * (len(self.fractions) > 1)
        return f"the quantile{several} {asked} of {self.n} people's numbers, {words(self.grid)}"

    def to_dict(self) -> dict[str, Any]:
        """The description."""
        return {
            "q": list(self.q) if isinstance(self.q, tuple) else self.q,
            "grid": self.grid.to_dict(),
            "privacy": privacy.to_dict(self.privacy),
            "n": self.n,
            "column": self.column,
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The estimator described."""
        q = fields["q"]
        return cls(
            tuple(q) if isinstance(q, list) else q,
            read_grid(fields["grid"]),
            privacy.from_dict(fields["privacy"]),
            fields["n"],
            str(fields["column"]),
        )


def local_quantile(
    q: float | Sequence[float] = 0.5,
    *,
    lower: float,
    upper: float,
    n: int,
    privacy: Privacy,
    resolution: float | None = None,
    relative: float | None = None,
    column: str = "0",
    minimum: int | None = None,
) -> Protocol:
    """Quantiles of a number in the local model, in one round of a byte each.

    Args:
        q: a quantile strictly between 0 and 1, or a list of them; more of them cost nothing.
        lower: the least that numbers are; smaller ones count as that.
        upper: the largest.
        n: how many people are planned to take part.
        privacy: what every message promises about its record.
        resolution: the step of the grid that values lie on; unless stated, a round number that
            makes at most 1024 steps. The finer it is, the larger is the noise.
        relative: the step as a share of the value instead, for numbers above 0.
        column: what the number is called.
        minimum: with fewer answers no result is given; half of the users unless stated.

    >>> import muhat as mh
    >>> protocol = local_quantile(lower=0, upper=100, n=1000, privacy=mh.PureDP(epsilon=1.0))
    >>> protocol.bytes_per_user
    29
    """
    from muhat.protocols.counts.local_quantiles import LocalQuantile

    check_promise(privacy)
    n = _check.count("n", n, most=MOST_USERS)
    if resolution is None and relative is None:
        resolution = _round_step(_check.real("lower", lower), _check.real("upper", upper))
    grid = _grid(lower, upper, resolution, relative)
    warn_of_large_delta(privacy, n, stacklevel=2)
    return LocalQuantile(_fractions(q), grid, privacy, n, str(column)).first(minimum)


def shuffle_quantile(
    q: float | Sequence[float] = 0.5,
    *,
    lower: float,
    upper: float,
    n: int,
    privacy: Privacy,
    resolution: float | None = None,
    relative: float | None = None,
    column: str = "0",
    minimum: int | None = None,
) -> Protocol:
    """Quantiles of a number in the shuffle model, in a few rounds that look closer and closer.

    Args:
        q: a quantile strictly between 0 and 1, or a list of them; more of them cost little.
        lower: the least that numbers are; smaller ones count as that.
        upper: the largest.
        n: how many people are planned to take part, at most.
        privacy: what the mixed messages promise about everybody's record: ApproxDP.
        resolution: the step of the grid that values lie on; unless stated, a round number that
            makes at most 2^20 steps. A coarser one saves rounds.
        relative: the step as a share of the value instead, for numbers above 0.
        column: what the number is called.
        minimum: how many people must take part honestly; nine in ten unless stated.

    >>> import muhat as mh
    >>> promise = mh.ApproxDP(epsilon=1.0, delta=1e-6)
    >>> protocol = shuffle_quantile(lower=0, upper=1e6, n=1000, privacy=promise)
    >>> protocol.round, protocol.randomizer.kind
    (1, 'shares')
    """
    from muhat.protocols.counts.shuffle_quantiles import ShuffleQuantile

    check_promise(privacy)
    n = _check.count("n", n, most=MOST_USERS)
    grid = _grid(lower, upper, resolution, relative)
    warn_of_large_delta(privacy, n, stacklevel=2)
    return ShuffleQuantile(_fractions(q), grid, privacy, n, str(column)).first(minimum)


def _grid(lower: float, upper: float, resolution: float | None, relative: float | None) -> AnyGrid:
    if resolution is not None and relative is not None:
        raise InvalidInput("resolution and relative are two ways to choose a step; give one.")
    if relative is not None:
        return RelativeGrid.between(lower, upper, relative)
    return UniformGrid.between(lower, upper, resolution)


def _fractions(q: float | Sequence[float]) -> float | tuple[float, ...]:
    """One quantile or several, each strictly between 0 and 1."""
    if isinstance(q, list | tuple | range) or (isinstance(q, np.ndarray) and q.ndim == 1):
        _check.count("the number of quantiles", len(q), most=MOST_QUANTILES)
        return tuple(_check.probability("q", one) for one in q)
    return _check.probability("q", q)


def _round_step(lower: float, upper: float) -> float | None:
    """The least of 1, 2, 5 times a power of ten that makes at most `LOCAL_CELLS` cells."""
    least = (as_typed(upper) - as_typed(lower)) / (LOCAL_CELLS - 1)
    if least <= 0:
        return None  # the grid refuses the bounds
    exponent = math.floor(math.log10(least.numerator) - math.log10(least.denominator)) - 1
    powers = (Fraction(10) ** (exponent + further) for further in range(4))
    return float(
        next(digit * each for each in powers for digit in (1, 2, 5) if digit * each >= least)
    )
