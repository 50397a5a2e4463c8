"""Quantiles of columns: the values, how far their ranks may be off, and intervals for free."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.mechanisms.quantiles.joint_choice import JointChoice
from muhat.mechanisms.quantiles.nested_choice import NestedChoice
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.quantiles.quantile import Found, rank_errors
from muhat.mechanisms.quantiles.quantile_shares import ENDS
from muhat.mechanisms.quantiles.rank_choice import RankChoice
from muhat.mechanisms.quantiles.recorded_count import RecordedCount
from muhat.mechanisms.quantiles.sampling import clear_of_population
from muhat.mechanisms.quantiles.search_walk import Comparison
from muhat.release.answer import (
    CONFIDENCE,
    NOT_INDEPENDENT,
    POPULATION,
    TARGETS,
    Answer,
    interval_fields,
    read_common,
    refuse_population,
)
from muhat.release.display import MOST_ROWS, around, shortened
from muhat.release.quantile_grids import AnyGrid, read_grid, shown, span, step, words

if TYPE_CHECKING:
    from muhat.release.group_quantile_answer import GroupQuantileAnswer

MISSING = {
    "drop": "a missing or non-finite value is left out: each quantile is of its column's recorded "
    "values",
    "center": "a missing or non-finite value counts as the middle of the bounds",
    "none": "nothing is missing, as was declared; a value that is counts as the middle of the "
    "bounds",
}
"""What becomes of missing values, in words that follow every table."""

RECORDS_NOTE = (
    "Intervals are for the quantiles of these records, clipped to the bounds: they cover noise "
    "alone."
)

BOTH_NOTE = (
    "The first interval is for the quantile of these records, clipped to the bounds: noise alone. "
    "The second is for that of the population that they are independent draws of, clipped too; it "
    "holds for every number of records."
)

NO_INTERVAL_NOTE = (
    "No interval was asked for: all of the promise went to the values, and intervals reach from "
    "bound to bound."
)

ENDS_NOTE = (
    "The least record (q = 0) and the greatest (q = 1) cannot be told from those whose ranks are "
    "within the rank error, nor from the bound beyond them: the value may lie beyond all records, "
    "and intervals reach to that bound."
)

TOO_FEW = "too few values"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class QuantileAnswer(Answer):
    """Quantiles of columns and everything that may be said about them.

    `q` is a number or a tuple of them. Arrays are of shape (d,) for one q and (len(q), d) for
    several, d the number of columns. Nothing here depends on the data except through the noisy
    counts of the searches, `found`, and of the recorded values, `recorded`, one a column where
    missing values are left out, or the records are those of a group (`missing` is the rule that was
    used; None if version 0.1 did not say it).

    Quantiles of one column are looked at together: values ascend with q, and so do both ends of
    intervals, which contain the value and all intervals of less confidence.
    """

    q: float | tuple[float, ...]
    columns: tuple[str, ...]
    grids: tuple[AnyGrid, ...]
    searches: tuple[tuple[NoisySearch, ...], ...]
    found: tuple[tuple[Found, ...], ...]
    missing: str | None
    recorded: tuple[float, ...] | None
    counts: tuple[RecordedCount, ...] | None

    schema: ClassVar[str] = "muhat.quantile/2"
    statistic: ClassVar[str] = "quantile"

    def __post_init__(self) -> None:
        super().__post_init__()
        shapes = {tuple(map(len, rows)) for rows in (self.searches, self.found)}
        if shapes != {(len(self.columns),) * len(self.fractions)} or not self.columns:
            raise InvalidInput("a release of quantiles has one search for each of them.")
        if len(self.grids) != len(self.columns):
            raise InvalidInput("a release of quantiles has one grid a column.")
        if self.missing is not None:
            _check.one_of("missing", self.missing, tuple(MISSING))
        known = [len(each) for each in (self.recorded, self.counts) if each is not None]
        if known not in ([len(self.columns)] * 2, [] if self.missing != "drop" else None):
            raise InvalidInput("a release of quantiles has one count of recorded values a column.")

    @property
    def fractions(self) -> tuple[float, ...]:
        """The quantiles that were asked for, one or more."""
        return self.q if isinstance(self.q, tuple) else (self.q,)

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
        return self._each(lambda search: search.asked).astype(np.int64)

    def rank_error(
        self, confidence: float = 0.95, *, simultaneous: bool = False
    ) -> NDArray[np.int64]:
        """τ: each value lies between the values of the ranks m − τ and m + τ, m = max(1, ⌈q·n⌉).

        The values are those clipped to the bounds and rounded to the grid; ranks below 1 stand
        for the lower bound and ranks above n for the upper one. The errors of one column hold
        together, since its values are put in order; with `simultaneous` those of all columns do.
        """
        errors = rank_errors(self.searches, confidence, simultaneous=simultaneous)
        return self._shaped(errors.tolist()).astype(np.int64)

    @property
    def why_no_population(self) -> str | None:
        """Why there is no interval for the population; None if there is one."""
        if self.searches[0][0].contributions > 1:
            return f"{NOT_INDEPENDENT} where a person has several"
        if self.n is None and self.recorded is None:
            return (
                "the sampling error depends on the number of records, which is secret here and "
                'counted with missing="drop" only'
            )
        return None

    @property
    def has_population(self) -> bool:
        """Whether there are intervals for the population that the records were drawn from."""
        return self.why_no_population is None

    def interval(
        self,
        confidence: float = 0.95,
        *,
        simultaneous: bool = False,
        target: str = "records",
        guaranteed: bool = False,
    ) -> tuple[Floats, Floats]:
        """(lower, upper) around the exact quantiles of the clipped values.

        With `target="population"` it is around those of what the records are independent draws of,
        and `guaranteed` or not it holds for every number of records. Of the least and the greatest
        value of a population nothing is known but a bound on one side.

        It costs nothing: the noisy counts of the search have been paid for. It is conservative,
        since its ends are those of cells that the search has asked about.
        """
        level = _check.probability("confidence", confidence)
        number = len(self.fractions) * len(self.columns)
        if _check.one_of("target", target, TARGETS) == "population":
            refuse_population(self.why_no_population)
            if simultaneous:
                level = 1 - (1 - level) / number
        elif simultaneous:
            # Searches have independent noise: all hold with the product of their levels.
            level **= 1 / number
        shape = (len(self.fractions), len(self.columns))
        first, last = np.empty(shape, np.int64), np.empty(shape, np.int64)
        for i, j in np.ndindex(*shape):
            found = self.found[i][j]
            first[i, j], last[i, j] = self.searches[i][j].enclosing(
                found.comparisons, found.cell, self._clear(i, j, level, target)
            )
            if target == "population" and self.fractions[i] in ENDS:
                # Of a population the least value may lie below all that were drawn.
                if self.fractions[i] == 0:
                    first[i, j] = 0
                else:
                    last[i, j] = self.searches[i][j].cells - 1
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

    def _clear(self, i: int, j: int, level: float, target: str) -> float:
        """What the noise of a search, and for a population the draw of it, do not explain."""
        search, fraction = self.searches[i][j], self.fractions[i]
        if target == "records" or fraction in ENDS:
            return search.clear(level)
        if self.recorded is not None and self.counts is not None:
            counted = self.recorded[j], self.counts[j]
            return clear_of_population(search, fraction, 1 - level, *counted)
        assert self.n is not None
        return clear_of_population(search, fraction, 1 - level, self.n)

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

    @property
    def called(self) -> str:
        """What it is."""
        return "a quantile"

    @property
    def heading(self) -> str:
        """One or several."""
        return "quantile" + "s" * (self.value.size > 1)

    def details(self) -> list[str]:
        """The grid of every column, and how it was searched."""
        return [
            f"{column}: {words(grid)}, {search.words()}."
            for column, grid, search in zip(self.columns, self.grids, self.searches[0], strict=True)
        ]

    def rows(self, most: int = MOST_ROWS) -> list[list[str]]:
        """A line a column and quantile."""
        rows = [["column", "quantile", "value", "rank error (95 %)", *self.interval_heads]]
        shape = (len(self.fractions), len(self.columns))
        values, errors, *ends = (
            np.reshape(each, shape)
            for each in (self.value, self.rank_error(), *self.intervals().values())
        )
        known = [self.n] * len(self.columns) if self.recorded is None else self.recorded
        for j, (column, grid) in enumerate(zip(self.columns, self.grids, strict=True)):
            number = known[j]
            for i, fraction in enumerate(self.fractions):
                # A rank error of all values and more leaves no value better than any other.
                hopeless = number is not None and number <= errors[i, j]
                value = TOO_FEW if hopeless else shown(grid, values[i, j])
                shown_ends = interval_cells(grid, [end[i, j] for end in ends])
                rows.append([column, f"{fraction:g}", value, f"± {errors[i, j]:,}", *shown_ends])
        return shortened(rows, most)

    @property
    def interval_heads(self) -> list[str]:
        """What the intervals of a table are called."""
        if not self.has_population:
            return ["95 % interval"]
        return ["95 % interval: records", "95 % interval: population"]

    def intervals(self, confidence: float = CONFIDENCE) -> dict[str, Floats]:
        """The ends of the intervals that there are, by their names in tables."""
        ends = dict(zip(("lower", "upper"), self.interval(confidence), strict=True))
        if self.has_population:
            wider = self.interval(confidence, target="population")
            ends |= dict(zip(POPULATION, wider, strict=True))
        return ends

    def table(self, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """A tidy table, a line a quantile and column; `recorded` is of the column."""
        numbers, width = len(self.fractions), len(self.columns)
        counted = {}
        if self.recorded is not None:
            counted = {
                "recorded": np.tile(np.array(self.recorded), numbers),
                "recorded_error": np.tile(np.asarray(self.recorded_error), numbers),
            }
        return {
            "column": np.tile(np.array(self.columns, dtype=object), numbers),
            "quantile": np.repeat(np.array(self.fractions), width),
            "value": self.value.ravel(),
            "rank_error": self.rank_error(confidence).ravel(),
            **{name: end.ravel() for name, end in self.intervals(confidence).items()},
            **counted,
        }

    def notes(self) -> list[str]:
        """What became of missing values, how many there are, and what the errors mean."""
        return [*self.rules(), *self._recorded_lines(), *self.meaning()]

    def rules(self) -> list[str]:
        """What became of missing values."""
        rules = [] if self.missing is None else [MISSING[self.missing]]
        return [f"{rule[0].upper()}{rule[1:]}." for rule in rules]

    def meaning(self) -> list[str]:
        """What the errors mean."""
        about = [BOTH_NOTE]
        if self.why_no_population is not None:
            about = [RECORDS_NOTE, f"No interval for a population: {self.why_no_population}."]
        if not any(search.asked for row in self.searches for search in row if search.rounds):
            about = [NO_INTERVAL_NOTE]
        typical = max(search.typical_error for row in self.searches for search in row)
        return [ranks_note("the value lies", typical), *about, *end_notes(self.fractions)]

    def _recorded_lines(self) -> list[str]:
        """The noisy number of recorded values of every column."""
        if self.recorded is None or self.counts is None:
            return []
        said = []
        for column, number, count in zip(self.columns, self.recorded, self.counts, strict=True):
            low, about, high = around(number, count.half_width(CONFIDENCE), self.n)
            said.append(f"{column} about {about} (95 % interval {low} … {high})")
        listed = said if len(said) <= MOST_ROWS else [*said[:MOST_ROWS], "…"]
        of_all = "" if self.n is None else f" of {self.n:,} records"
        what = "Recorded values" if self.missing == "drop" else "Records"
        return [f"{what}: {', '.join(listed)}{of_all}."]

    def to_dict(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic,
            "q": list(self.q) if isinstance(self.q, tuple) else self.q,
            "columns": list(self.columns),
            "value": self.value.tolist(),
            "standard_error": None,
            "rank_error": {"confidence": CONFIDENCE, "ranks": self.rank_error().tolist()},
            **interval_fields_of(self),
            "missing": self.missing,
            "recorded": self._recorded_fields(),
            **self._common(),
            "grids": [grid.to_dict() for grid in self.grids],
            "searches": [[search.to_dict() for search in row] for row in self.searches],
            "found": [[found_to_dict(found) for found in row] for row in self.found],
        }

    def _recorded_fields(self) -> dict[str, Any] | None:
        if self.recorded is None or self.counts is None:
            return None
        return {
            "value": list(self.recorded),
            "standard_error": [count.scale for count in self.counts],
            "noise": [count.to_dict() for count in self.counts],
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The answer that `to_dict` described; its searches are checked again."""
        q, recorded = fields["q"], fields.get("recorded")
        # The first schema had the rule among its assumptions alone.
        told = next((rule for rule in MISSING if MISSING[rule] in fields["assumptions"]), None)
        return cls(
            q=tuple(q) if isinstance(q, list) else q,
            columns=tuple(fields["columns"]),
            grids=tuple(map(read_grid, fields["grids"])),
            searches=tuple(
                tuple(read_search(search) for search in row) for row in fields["searches"]
            ),
            found=tuple(tuple(found_from_dict(found) for found in row) for row in fields["found"]),
            missing=fields.get("missing", told),
            recorded=None
            if recorded is None
            else tuple(_check.real("recorded", value) for value in recorded["value"]),
            counts=None
            if recorded is None
            else tuple(map(RecordedCount.from_dict, recorded["noise"])),
            **read_common(fields),
        )


def interval_fields_of(answer: QuantileAnswer | GroupQuantileAnswer) -> dict[str, Any]:
    """The intervals that there are, as plain data."""
    fields = {"interval": interval_fields(answer.interval())}
    if answer.has_population:
        wider = answer.interval(target="population")
        fields["population_interval"] = interval_fields(wider, "population")
    return fields


def interval_cells(grid: AnyGrid, ends: Sequence[float]) -> list[str]:
    """Both ends of every interval, in words."""
    pairs = zip(ends[::2], ends[1::2], strict=True)
    return [f"{shown(grid, low)} … {shown(grid, high)}" for low, high in pairs]


def read_search(fields: dict[str, Any]) -> NoisySearch:
    """A search, or a choice in its place: one has a rate, several together half of one, or many."""
    choices: dict[str, type[NoisySearch]]
    choices = {"rate": RankChoice, "half_rate": JointChoice, "rates": NestedChoice}
    kind = next((choice for key, choice in choices.items() if key in fields), NoisySearch)
    return kind.from_dict(fields)


def ranks_note(lies: str, typical: float) -> str:
    """What a rank error is, and how far values are off most often."""
    return (
        f"The rank error counts records: {lies} between records that far from the quantile, "
        f"whatever the data are. Where records lie evenly it is off by about {typical:.2g} ranks, "
        "root mean square."
    )


def end_notes(fractions: Sequence[float]) -> list[str]:
    """What to know about the least and the greatest record, if they were asked for."""
    return [ENDS_NOTE] * any(fraction in (0, 1) for fraction in fractions)


def found_to_dict(found: Found) -> dict[str, Any]:
    """The cell, and the noisy counts minus the target on the way to it."""
    return {
        "cell": found.cell,
        "compared": [round_.cell for round_ in found.comparisons],
        "excess": [round_.excess for round_ in found.comparisons],
    }


def found_from_dict(fields: dict[str, Any]) -> Found:
    """What `found_to_dict` wrote."""
    pairs = zip(fields["compared"], fields["excess"], strict=True)
    return Found(
        _check.count("cell", fields["cell"], least=0),
        tuple(
            Comparison(_check.count("cell", cell, least=0), _check.real("excess", excess))
            for cell, excess in pairs
        ),
    )
