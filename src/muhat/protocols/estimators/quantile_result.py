"""Quantiles from counts below many cuts: the values, how far their ranks may be off, intervals.

A trusted curator searches (`QuantileAnswer`); without one, everybody's answers are about all cuts
at once. What a release says about its values is said in the same words here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.privacy import as_typed
from muhat.release.answer import CONFIDENCE, Answer, interval_fields, read_common
from muhat.release.display import MOST_ROWS, shortened
from muhat.release.quantile_grids import AnyGrid, read_grid, shown, span, step


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CountedQuantiles(Answer):
    """Quantiles of one column over n people, and everything that may be said about them.

    `q` is a number or a tuple of them, and arrays are of shape (1,) for a number, (len(q), 1) for
    several. `cuts` are cells of the grid, ascending; `reached` is how many people seem to have
    a cell of at most each cut, without bias, and `errors` the standard deviations of that, both of
    shape (cuts,). `found` is the cell of each quantile.
    """

    q: float | tuple[float, ...]
    columns: tuple[str, ...]
    grid: AnyGrid
    cuts: tuple[int, ...]
    reached: tuple[float, ...]
    errors: tuple[float, ...]
    found: tuple[int, ...]
    n: int

    schema: ClassVar[str] = "muhat.protocol-quantile/1"
    statistic: ClassVar[str] = "quantile"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self.cuts) == len(self.reached) == len(self.errors) > 0:
            raise InvalidInput("there must be a count and an error for every cut.")
        if len(self.found) != len(self.fractions) or len(self.columns) != 1:
            raise InvalidInput("there must be one column, and a cell for each quantile.")

    @property
    def fractions(self) -> tuple[float, ...]:
        """The quantiles that were asked for, one or more."""
        return self.q if isinstance(self.q, tuple) else (self.q,)

    @property
    def value(self) -> Floats:
        """The quantiles, on the grid."""
        return self._shaped([self.grid.value(cell) for cell in self.found])

    @property
    def resolution(self) -> Floats:
        """The step of the grid, of shape (1,); a part of the value if relative."""
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
        lowest, highest = np.array(self.reached) - reach, np.array(self.reached) + reach
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
        below, last = np.array(self.reached), self.grid.cells - 1
        lower, upper = [], []
        for rank, _ in self._ranked():
            first = int(np.argmax(np.append(below + reach >= rank, True)))
            end = len(below) - int(np.argmax(np.append((below - reach < rank)[::-1], True)))
            least = self.cuts[first - 1] + 1 if first else 0
            most = self.cuts[end] if end < len(below) else last
            lower.append(span(self.grid, min(least, last))[0])
            upper.append(span(self.grid, max(most, min(least, last)))[1])
        return self._shaped(lower), self._shaped(upper)

    @property
    def called(self) -> str:
        """What it is."""
        return "a quantile"

    @property
    def heading(self) -> str:
        """The column."""
        return f"quantiles of {self.columns[0]}"

    def rows(self, most: int = MOST_ROWS) -> list[list[str]]:
        """A line a quantile."""
        rows = [["quantile", "value", "rank error (95 %)", "95 % interval"]]
        found = (np.ravel(each) for each in (self.value, self.rank_error(), *self.interval()))
        for fraction, value, error, *ends in zip(self.fractions, *found, strict=True):
            low, high = (shown(self.grid, end) for end in ends)
            rows.append(
                [f"{fraction:g}", shown(self.grid, value), f"± {error:,}", f"{low} … {high}"]
            )
        return shortened(rows, most)

    def table(self, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """A tidy table, a line a quantile."""
        lower, upper = self.interval(confidence)
        return {
            "column": np.full(len(self.fractions), self.columns[0], dtype=object),
            "quantile": np.array(self.fractions),
            "value": self.value.ravel(),
            "rank_error": self.rank_error(confidence).ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
        }

    def notes(self) -> list[str]:
        """What became of missing values."""
        return [MISSING]

    def to_dict(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic,
            "q": list(self.q) if isinstance(self.q, tuple) else self.q,
            "columns": list(self.columns),
            "value": self.value.tolist(),
            "standard_error": None,
            "rank_error": {"confidence": CONFIDENCE, "ranks": self.rank_error().tolist()},
            "interval": interval_fields(self.interval()),
            **self._common(),
            "grid": self.grid.to_dict(),
            "cuts": list(self.cuts),
            "below": list(self.reached),
            "errors": list(self.errors),
            "found": list(self.found),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        q, grid = fields["q"], read_grid(fields["grid"])
        last = grid.cells - 1
        return cls(
            q=tuple(q) if isinstance(q, list) else q,
            columns=tuple(map(str, fields["columns"])),
            grid=grid,
            cuts=tuple(_check.count("a cut", cut, least=0, most=last) for cut in fields["cuts"]),
            reached=tuple(_check.real("a count", count) for count in fields["below"]),
            errors=tuple(_check.real("an error", error) for error in fields["errors"]),
            found=tuple(_check.count("a cell", at, least=0, most=last) for at in fields["found"]),
            **read_common(fields),
        )

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


def rank_of(fraction: float, n: int) -> int:
    """⌈q·n⌉, from 1 to n."""
    return min(max(math.ceil(as_typed(fraction) * n), 1), n)


def _deviations(level: float) -> float:
    """What a normal number stays within on both sides with this probability, in deviations."""
    return NormalDist().inv_cdf(1 - (1 - level) / 2)
