"""Private quantiles: the values, how far their ranks may be off, and intervals for free."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.quantiles.quantile import Found, rank_errors
from muhat.mechanisms.quantiles.recorded_count import RecordedCount
from muhat.mechanisms.quantiles.search_walk import Comparison
from muhat.privacy import Neighbors, Privacy
from muhat.release.fields import CONFIDENCE, account_fields, interval_fields, read_account
from muhat.release.quantile_display import MISSING
from muhat.release.quantile_grids import AnyGrid, read_grid, span, step
from muhat.release.reading import read_json

SCHEMA = "muhat.quantile/2"
"""The meaning of an existing field never changes; a new meaning is a new schema."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class QuantileRelease:
    """Private quantiles of columns and everything that may be said about them.

    `q` is a number or a tuple of them. Arrays are of shape (d,) for one q and (len(q), d) for
    several, d the number of columns. Nothing here depends on the data except through the noisy
    counts of the searches, `found`, and of the recorded values, `recorded`, one a column where
    missing values are left out (`missing` is the rule that was used).

    Quantiles of one column are looked at together: values ascend with q, and so do both ends of
    intervals, which contain the value and all intervals of less confidence.
    """

    q: float | tuple[float, ...]
    columns: tuple[str, ...]
    grids: tuple[AnyGrid, ...]
    searches: tuple[tuple[NoisySearch, ...], ...]
    found: tuple[tuple[Found, ...], ...]
    missing: str
    recorded: tuple[float, ...] | None
    counts: tuple[RecordedCount, ...] | None
    privacy: Privacy
    neighbors: Neighbors
    n: int | None
    contributions: int
    assumptions: tuple[str, ...]
    plan_digest: str
    ledger_head: dict[str, Any] | None

    def __post_init__(self) -> None:
        shapes = {tuple(map(len, rows)) for rows in (self.searches, self.found)}
        if shapes != {(len(self.columns),) * len(self.fractions)} or not self.columns:
            raise InvalidInput("a release of quantiles has one search for each of them.")
        if len(self.grids) != len(self.columns):
            raise InvalidInput("a release of quantiles has one grid a column.")
        _check.one_of("missing", self.missing, tuple(MISSING))
        known = [len(self.columns)] * 2 if self.missing == "drop" else []
        if [len(each) for each in (self.recorded, self.counts) if each is not None] != known:
            raise InvalidInput("a release of quantiles has one count of recorded values a column.")

    @property
    def fractions(self) -> tuple[float, ...]:
        """The quantiles that were asked for, one or more."""
        return self.q if isinstance(self.q, tuple) else (self.q,)

    @property
    def statistic(self) -> str:
        """What was released."""
        return "quantile"

    @property
    def mechanism(self) -> str:
        """The mechanism and its noise."""
        return f"noisy-search ({self.searches[0][0].law.name})"

    @property
    def cost(self) -> Privacy:
        """The promise this release was charged with."""
        return self.privacy

    @property
    def value(self) -> Floats:
        """The quantiles, on the grid."""
        cells = self._cells
        return self._shaped(
            [[grid.value(cells[i, j]) for j, grid in enumerate(self.grids)] for i in self._rows]
        )

    @property
    def recorded_error(self) -> Floats | None:
        """The standard deviation of every number in `recorded`, of shape (d,)."""
        return None if self.counts is None else np.array([count.scale for count in self.counts])

    @property
    def resolution(self) -> Floats:
        """The step of every column's grid, of shape (d,); a share of the value if relative."""
        return np.array([step(grid) for grid in self.grids])

    @property
    def noise_scale(self) -> Floats:
        """The standard deviation of the noise of every comparison, in records."""
        return self._each(lambda search: search.scale)

    @property
    def rounds(self) -> NDArray[np.int64]:
        """The comparisons that were made and paid for."""
        return self._each(lambda search: search.questions).astype(np.int64)

    def rank_error(
        self, confidence: float = 0.95, *, simultaneous: bool = False
    ) -> NDArray[np.int64]:
        """τ: each value lies between the values of the ranks m − τ and m + τ, m = ⌈q·n⌉.

        The values are those clipped to the bounds and rounded to the grid; ranks below 1 stand
        for the lower bound and ranks above n for the upper one. The errors of one column hold
        together, since its values are put in order; with `simultaneous` those of all columns do.
        """
        errors = rank_errors(self.searches, confidence, simultaneous=simultaneous)
        return self._shaped(errors.tolist()).astype(np.int64)

    def interval(
        self, confidence: float = 0.95, *, simultaneous: bool = False
    ) -> tuple[Floats, Floats]:
        """(lower, upper) around the exact quantiles of the clipped values.

        It costs nothing: the noisy counts of the search have been paid for. It is conservative,
        since its ends are those of cells that the search has asked about.
        """
        level = _check.probability("confidence", confidence)
        if simultaneous:
            # Searches have independent noise: all hold with the product of their levels.
            level **= 1 / (len(self.fractions) * len(self.columns))
        shape = (len(self.fractions), len(self.columns))
        first, last = np.empty(shape, np.int64), np.empty(shape, np.int64)
        for i, j in np.ndindex(*shape):
            found = self.found[i][j]
            first[i, j], last[i, j] = self.searches[i][j].enclosing(
                found.comparisons, found.cell, level
            )
        # Made to ascend by widening alone, which no confidence is lost by.
        order = self._order
        first[order] = np.minimum.accumulate(first[order][::-1])[::-1]
        last[order] = np.maximum.accumulate(last[order])
        first, last = np.minimum(first, self._cells), np.maximum(last, self._cells)
        ends = [
            [
                [span(grid, int(cells[i, j]))[side] for j, grid in enumerate(self.grids)]
                for i in self._rows
            ]
            for side, cells in enumerate((first, last))
        ]
        return self._shaped(ends[0]), self._shaped(ends[1])

    @property
    def _rows(self) -> range:
        return range(len(self.fractions))

    @property
    def _order(self) -> NDArray[np.int64]:
        """The places of the fractions from the least to the largest."""
        return np.argsort(np.array(self.fractions), kind="stable")

    @property
    def _cells(self) -> NDArray[np.int64]:
        """The cells that were found, ascending with q in every column; of shape (len(q), d)."""
        cells = np.array([[found.cell for found in row] for row in self.found], np.int64)
        ordered = np.empty_like(cells)
        ordered[self._order] = np.sort(cells, axis=0)
        return ordered

    def _each(self, what: Callable[[NoisySearch], float]) -> Floats:
        return self._shaped([[what(search) for search in row] for row in self.searches])

    def _shaped(self, values: list[list[float]]) -> Floats:
        return np.array(values if isinstance(self.q, tuple) else values[0], np.float64)

    def describe(self) -> str:
        """How the values were found and what they rest on, in sentences."""
        from muhat.release.quantile_display import description

        return description(self)

    def to_dict(self) -> dict[str, Any]:
        """The release as plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            "statistic": self.statistic,
            "q": list(self.q) if isinstance(self.q, tuple) else self.q,
            "columns": list(self.columns),
            "value": self.value.tolist(),
            "standard_error": None,
            "rank_error": {"confidence": CONFIDENCE, "ranks": self.rank_error().tolist()},
            "interval": interval_fields(self.interval()),
            "missing": self.missing,
            "recorded": self._recorded_fields(),
            **account_fields(self),
            "grids": [grid.to_dict() for grid in self.grids],
            "searches": [[search.to_dict() for search in row] for row in self.searches],
            "found": [[_found_to_dict(found) for found in row] for row in self.found],
        }

    def _recorded_fields(self) -> dict[str, Any] | None:
        if self.recorded is None or self.counts is None:
            return None
        return {
            "value": list(self.recorded),
            "standard_error": [count.scale for count in self.counts],
            "noise": [count.to_dict() for count in self.counts],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The release as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> QuantileRelease:
        """The release that `to_json` wrote; its searches are checked again."""
        return read_json(text, SCHEMA, "muhat's quantiles", cls._of)

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> QuantileRelease:
        q, recorded = fields["q"], fields["recorded"]
        return cls(
            q=tuple(q) if isinstance(q, list) else q,
            columns=tuple(fields["columns"]),
            grids=tuple(map(read_grid, fields["grids"])),
            searches=tuple(
                tuple(NoisySearch.from_dict(search) for search in row) for row in fields["searches"]
            ),
            found=tuple(tuple(_found_from_dict(found) for found in row) for row in fields["found"]),
            missing=fields["missing"],
            recorded=None
            if recorded is None
            else tuple(_check.real("recorded", value) for value in recorded["value"]),
            counts=None
            if recorded is None
            else tuple(map(RecordedCount.from_dict, recorded["noise"])),
            **read_account(fields),
        )

    def __float__(self) -> float:
        value = self.value
        if value.size != 1:
            raise TypeError("only a release of one number is a float")
        return float(value.flat[0])

    def __repr__(self) -> str:
        from muhat.release.quantile_display import release_text

        return release_text(self)

    def _repr_html_(self) -> str:
        from muhat.release.quantile_display import release_html

        return release_html(self)


def _found_to_dict(found: Found) -> dict[str, Any]:
    """The cell, and the noisy counts minus the target on the way to it."""
    return {
        "cell": found.cell,
        "compared": [round_.cell for round_ in found.comparisons],
        "excess": [round_.excess for round_ in found.comparisons],
    }


def _found_from_dict(fields: dict[str, Any]) -> Found:
    pairs = zip(fields["compared"], fields["excess"], strict=True)
    return Found(
        _check.count("cell", fields["cell"], least=0),
        tuple(
            Comparison(_check.count("cell", cell, least=0), _check.real("excess", excess))
            for cell, excess in pairs
        ),
    )
