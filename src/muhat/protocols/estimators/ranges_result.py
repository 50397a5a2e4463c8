"""How many people are in every cell and in every range of cells, and how far off that may be.

Everybody's answers are about all cells at once; the counts of ranges are sums of those of cells,
with errors of their own, as the noise of neighbours is not independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.protocols.encodings.equal_cells import EqualCells
from muhat.protocols.estimators.quantile_result import MISSING
from muhat.protocols.estimators.range_spreads import RangeSpread, reach
from muhat.release.answer import CONFIDENCE, Answer, interval_fields, read_common
from muhat.release.display import MOST_ROWS, rounded, shortened, significant


@dataclass(frozen=True)
class CountedRange:
    """How many of n people have a number from `low` up to `high`, which are edges of cells."""

    low: float
    high: float
    value: float
    standard_error: float
    n: int
    law: str = "gaussian"

    @property
    def part(self) -> float:
        """The part of the people; like the number it may be below 0, for it has no bias."""
        return self.value / self.n

    @property
    def part_error(self) -> float:
        """The standard error of the part."""
        return self.standard_error / self.n

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """(lower, upper) around the exact number of people among the clipped records."""
        far = float(reach(self.law, confidence, np.array(self.standard_error)))
        return self.value - far, self.value + far

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        count = rounded(self.value, self.standard_error)
        return (
            f"{count} ± {significant(self.standard_error)} of {self.n} people "
            f"({100 * self.part:.3g} %) from {self.low:.10g} to {self.high:.10g}"
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CountedRanges(Answer):
    """The counts of all cells of one column over n people, and what may be said about ranges.

    `counts` has an estimate a cell, without bias, so that some may be below 0; together they are
    n. `spread` knows the standard error of every range.
    """

    columns: tuple[str, ...]
    grid: EqualCells
    counts: tuple[float, ...]
    spread: RangeSpread
    n: int

    schema: ClassVar[str] = "muhat.protocol-ranges/1"
    statistic: ClassVar[str] = "ranges"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self.counts) == self.grid.cells == self.spread.cells or len(self.columns) != 1:
            raise InvalidInput("there must be one column, and a count for each of its cells.")
        _check.count("n", self.n)

    @property
    def edges(self) -> Floats:
        """The edges of the cells, of shape (cells + 1,)."""
        return self.grid.edges

    @property
    def value(self) -> Floats:
        """How many people each cell seems to hold, of shape (cells,)."""
        return np.array(self.counts)

    @property
    def part(self) -> Floats:
        """The part of the people in each cell, of shape (cells,)."""
        return self.value / self.n

    @cached_property
    def standard_error(self) -> Floats:
        """Of the count of every cell, of shape (cells,)."""
        starts = np.arange(self.grid.cells)
        return self.spread.errors(starts, starts + 1)

    def interval(
        self, confidence: float = 0.95, *, simultaneous: bool = False
    ) -> tuple[Floats, Floats]:
        """(lower, upper) around the exact counts of the cells, among the clipped records.

        With `simultaneous` all of them hold together.
        """
        level = _check.probability("confidence", confidence)
        outside = (1 - level) / (self.grid.cells if simultaneous else 1)
        far = reach(self.spread.law, 1 - outside, self.standard_error)
        return self.value - far, self.value + far

    def between(self, low: float, high: float) -> CountedRange:
        """How many people have a number from `low` up to `high`, both edges of cells.

        The lower edge is part of a cell and the upper one is not, but for the last cell.
        """
        start, end = self.grid.edge("low", low), self.grid.edge("high", high)
        if not start < end:
            raise InvalidInput(f"low must be below high; got {low:g} and {high:g}.")
        return self._ranges(np.array([start]), np.array([end]))[0]

    def below(self, high: float) -> CountedRange:
        """How many people have a number below `high`, an edge of a cell."""
        return self.between(self.grid.lower, high)

    def to_dict(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic,
            "columns": list(self.columns),
            "edges": self.edges.tolist(),
            "value": list(self.counts),
            "standard_error": self.standard_error.tolist(),
            "interval": interval_fields(self.interval(CONFIDENCE)),
            **self._common(),
            "grid": self.grid.to_dict(),
            "spread": self.spread.to_dict(),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        return cls(
            columns=tuple(map(str, fields["columns"])),
            grid=EqualCells.from_dict(fields["grid"]),
            counts=tuple(_check.real("a count", count) for count in fields["value"]),
            spread=RangeSpread.from_dict(fields["spread"]),
            **read_common(fields),
        )

    @property
    def called(self) -> str:
        """What it is."""
        return "a table of counts"

    @property
    def heading(self) -> str:
        """The column."""
        return f"counts of {self.columns[0]}"

    def rows(self, most: int = MOST_ROWS) -> list[list[str]]:
        """A header, then a line a cell, or a line for some cells together if there are many."""
        starts = np.arange(0, self.grid.cells, self._together)
        ends = np.minimum(starts + self._together, self.grid.cells)
        rows = [["from", "to", "people", "part", "standard error", "95 % interval"]]
        for each in self._ranges(starts, ends):
            error = each.standard_error
            lower, upper = (rounded(end, error) for end in each.interval(CONFIDENCE))
            part = f"{round(100 * each.part, 1) + 0.0:.1f} %"
            ends_of = [f"{each.low:.10g}", f"{each.high:.10g}"]
            people = rounded(each.value, error)
            rows.append([*ends_of, people, part, significant(error), f"{lower} … {upper}"])
        return shortened(rows, most)

    def table(self, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """A tidy table, a line a cell."""
        lower, upper = self.interval(confidence)
        return {
            "from": self.edges[:-1],
            "to": self.edges[1:],
            "value": self.value,
            "standard_error": self.standard_error,
            "lower": lower,
            "upper": upper,
        }

    def notes(self) -> list[str]:
        """What became of missing values, and how ranges are asked for."""
        several = f"{self._together} cells a line. " if self._together > 1 else ""
        return [MISSING, f"{several}Ranges have errors of their own: result.between(low, high)."]

    @property
    def _together(self) -> int:
        return -(-self.grid.cells // MOST_ROWS)

    def _ranges(self, starts: Any, ends: Any) -> list[CountedRange]:
        below = np.concatenate([[0.0], np.cumsum(self.value)])
        values, errors = below[ends] - below[starts], self.spread.errors(starts, ends)
        lows, highs = self.edges[starts], self.edges[ends]
        return [
            CountedRange(low, high, value, error, self.n, self.spread.law)
            for low, high, value, error in np.stack([lows, highs, values, errors], 1).tolist()
        ]
