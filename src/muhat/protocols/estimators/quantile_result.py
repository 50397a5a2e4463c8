"""Quantiles from counts below many cuts: the values, how far their ranks may be off, intervals.

A trusted curator searches (`QuantileRelease`); without one, everybody's answers are about all cuts
at once. What a release says about its values is said in the same words here.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat._text import joined
from muhat.errors import InvalidInput
from muhat.privacy import Neighbors, Privacy, as_typed
from muhat.release.fields import CONFIDENCE, account_fields, interval_fields, read_account
from muhat.release.quantile_grids import AnyGrid, read_grid, shown, span, step
from muhat.release.reading import read_json

SCHEMA = "muhat.protocol-quantile/1"
"""The meaning of an existing field never changes; a new meaning is a new schema."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CountedQuantiles:
    """Quantiles of one column over n people, and everything that may be said about them.

    `q` is a number or a tuple of them, and arrays are of shape (1,) for a number, (len(q), 1) for
    several. `cuts` are cells of the grid, ascending; `below` is how many people seem to have
    a cell of at most each cut, without bias, and `errors` the standard deviations of that, both of
    shape (cuts,). `found` is the cell of each quantile.
    """

    q: float | tuple[float, ...]
    columns: tuple[str, ...]
    grid: AnyGrid
    cuts: tuple[int, ...]
    below: tuple[float, ...]
    errors: tuple[float, ...]
    found: tuple[int, ...]
    mechanism: str
    privacy: Privacy
    neighbors: Neighbors
    n: int
    contributions: int
    assumptions: tuple[str, ...]
    plan_digest: str
    ledger_head: dict[str, Any] | None = None

    statistic = "quantile"

    def __post_init__(self) -> None:
        if not len(self.cuts) == len(self.below) == len(self.errors) > 0:
            raise InvalidInput("there must be a count and an error for every cut.")
        if len(self.found) != len(self.fractions) or len(self.columns) != 1:
            raise InvalidInput("there must be one column, and a cell for each quantile.")

    @property
    def fractions(self) -> tuple[float, ...]:
        """The quantiles that were asked for, one or more."""
        return self.q if isinstance(self.q, tuple) else (self.q,)

    @property
    def cost(self) -> Privacy:
        """The promise that was kept."""
        return self.privacy

    @property
    def value(self) -> Floats:
        """The quantiles, on the grid."""
        return self._shaped([self.grid.value(cell) for cell in self.found])

    @property
    def resolution(self) -> Floats:
        """The step of the grid, of shape (1,); a share of the value if relative."""
        return np.array([step(self.grid)])

    def rank_error(
        self, confidence: float = 0.95, *, simultaneous: bool = False
    ) -> NDArray[np.int64]:
        """τ: each value lies between the people of the ranks m − τ and m + τ, m = ⌈q·n⌉.

        In terms of the cells that numbers went to. It counts on all counts at once, as the value
        was chosen by them, and on normal errors. With `simultaneous` it holds for all quantiles
        together, which it does anyhow.
        """
        level = _check.probability("confidence", confidence)
        reach = _deviations(1 - (1 - level) / len(self.cuts)) * np.array(self.errors)
        lowest, highest = np.array(self.below) - reach, np.array(self.below) + reach
        ranks = [self._rank_error(*pair, lowest, highest) for pair in self._ranked()]
        return self._shaped(ranks).astype(np.int64)

    def _rank_error(self, rank: int, cell: int, lowest: Floats, highest: Floats) -> int:
        cuts = np.array(self.cuts)
        at_least = float(lowest[cuts <= cell].max(initial=0.0))
        at_most = float(highest[cuts >= cell - 1].min(initial=float(self.n)))
        if cell == self.grid.cells - 1:
            at_least = float(self.n)
        if cell == 0:
            at_most = 0.0
        return max(math.ceil(rank - at_least), math.floor(at_most) + 1 - rank, 0)

    def interval(
        self, confidence: float = 0.95, *, simultaneous: bool = False
    ) -> tuple[Floats, Floats]:
        """(lower, upper) around the exact quantiles of the clipped records.

        The first and the last cell that no count contradicts by more than half of what the
        confidence leaves, on either side: the cell of the quantile is contradicted as seldom.
        """
        level = _check.probability("confidence", confidence)
        outside = (1 - level) / (len(self.fractions) if simultaneous else 1)
        reach = _deviations(1 - outside) * np.array(self.errors)
        below, last = np.array(self.below), self.grid.cells - 1
        lower, upper = [], []
        for rank, _ in self._ranked():
            first = int(np.argmax(np.append(below + reach >= rank, True)))
            end = len(below) - int(np.argmax(np.append((below - reach < rank)[::-1], True)))
            least = self.cuts[first - 1] + 1 if first else 0
            most = self.cuts[end] if end < len(below) else last
            lower.append(span(self.grid, min(least, last))[0])
            upper.append(span(self.grid, max(most, min(least, last)))[1])
        return self._shaped(lower), self._shaped(upper)

    def describe(self) -> str:
        """The values and what they rest on, in sentences."""
        lines = [*repr(self).split("\n"), "", "Assumptions:"]
        return joined([*lines, *(f"- {line}" for line in self.assumptions)])

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            "statistic": self.statistic,
            "q": list(self.q) if isinstance(self.q, tuple) else self.q,
            "columns": list(self.columns),
            "value": self.value.tolist(),
            "standard_error": None,
            "rank_error": {"confidence": CONFIDENCE, "ranks": self.rank_error().tolist()},
            "interval": interval_fields(self.interval()),
            **account_fields(self),
            "grid": self.grid.to_dict(),
            "cuts": list(self.cuts),
            "below": list(self.below),
            "errors": list(self.errors),
            "found": list(self.found),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The result as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> CountedQuantiles:
        """The result that `to_json` wrote."""
        return read_json(text, SCHEMA, "quantiles of a protocol", cls._of)

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> CountedQuantiles:
        q, grid = fields["q"], read_grid(fields["grid"])
        last = grid.cells - 1
        return cls(
            q=tuple(q) if isinstance(q, list) else q,
            columns=tuple(map(str, fields["columns"])),
            grid=grid,
            cuts=tuple(_check.count("a cut", cut, least=0, most=last) for cut in fields["cuts"]),
            below=tuple(_check.real("a count", count) for count in fields["below"]),
            errors=tuple(_check.real("an error", error) for error in fields["errors"]),
            found=tuple(_check.count("a cell", at, least=0, most=last) for at in fields["found"]),
            mechanism=str(fields["mechanism"]),
            **read_account(fields),
        )

    def __float__(self) -> float:
        if len(self.fractions) != 1:
            raise TypeError("only a release of one number is a float")
        return float(self.value.flat[0])

    def __repr__(self) -> str:
        from muhat.release.display import caution_lines, table

        rows = [["quantile", "value", "rank error (95 %)", "95 % interval"]]
        lower, upper = (np.ravel(end) for end in self.interval())
        values, errors = np.ravel(self.value), np.ravel(self.rank_error())
        for index, fraction in enumerate(self.fractions):
            ends = f"{shown(self.grid, lower[index])} … {shown(self.grid, upper[index])}"
            value = shown(self.grid, values[index])
            rows.append([f"{fraction:g}", value, f"± {errors[index]:,}", ends])
        title = f"Private quantiles of {self.columns[0]} · {self.privacy.describe()} · n = {self.n}"
        notes = [*caution_lines(self.privacy, self.n), MISSING]
        return joined([title, "", *table(rows), "", *notes])

    @cached_property
    def _ranks(self) -> list[int]:
        return [rank_of(fraction, self.n) for fraction in self.fractions]

    def _ranked(self) -> list[tuple[int, int]]:
        return list(zip(self._ranks, self.found, strict=True))

    def _shaped(self, values: list[Any]) -> Floats:
        numbers = np.array(values, np.float64)
        return numbers[:, None] if isinstance(self.q, tuple) else numbers


MISSING = (
    "A missing value counts as the middle of the bounds: only people who have one should answer."
)
"""What became of missing values, under every table."""

FOLLOWED = (
    "people follow the protocol: a false message can move a quantile further than a false record"
)


def turnout(planned: int, people: int) -> tuple[str, ...]:
    """A sentence if fewer have answered than were planned."""
    if people == planned:
        return ()
    return (f"{people} of {planned} planned users have answered; ranks are among them",)


def rank_of(fraction: float, n: int) -> int:
    """⌈q·n⌉, from 1 to n."""
    return min(max(math.ceil(as_typed(fraction) * n), 1), n)


def _deviations(level: float) -> float:
    """What a normal number stays within on both sides with this probability, in deviations."""
    return NormalDist().inv_cdf(1 - (1 - level) / 2)
