"""Quantiles of columns in groups: an answer for every group, all of them for one promise."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.ratio import FEWEST_DEVIATIONS
from muhat.release.answer import CONFIDENCE, POPULATION, Answer, read_common
from muhat.release.display import MOST_ROWS, rounded, shortened, significant
from muhat.release.quantile_answer import (
    QuantileAnswer,
    found_from_dict,
    found_to_dict,
    interval_cells,
    interval_fields_of,
)
from muhat.release.quantile_grids import shown
from muhat.release.query_table import unlike

Label = str | int | float | bool

TOO_FEW = "too few"

COLUMNS = (
    *("column", "quantile", "value", "rank_error"),
    *("lower", "upper", *POPULATION, "recorded", "recorded_error"),
)
"""What a table says of every quantile beside its group."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GroupQuantileAnswer(Answer):
    """The quantiles of public groups of records; `release["north"]` has those of one group.

    `by` are the columns that make the groups, and `labels` the categories of each: a group is a
    label of each column, in C order, and `release["north", "f"]` where there are several columns.
    Arrays have an entry a group before the axes of a `QuantileAnswer`: their shape is (groups, d)
    for one q and (groups, len(q), d) for several.
    """

    by: tuple[str, ...]
    labels: tuple[tuple[Label, ...], ...]
    answers: tuple[QuantileAnswer, ...]

    schema: ClassVar[str] = "muhat.group-quantiles/1"
    statistic: ClassVar[str] = "quantile"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.by or len(self.by) != len(self.labels):
            raise InvalidInput("a release of groups names columns and the categories of each.")
        if not self.answers or math.prod(map(len, self.labels)) != len(self.answers):
            raise InvalidInput("a release of groups has one answer for each of them.")
        texts = [label for labels in self.labels for label in labels]
        if not all(isinstance(text, str) for text in self.by) or not all(
            isinstance(label, str | int | float) for label in texts
        ):
            raise InvalidInput("a release of groups names columns and the categories of each.")
        shared = ("q", "columns", "grids", "searches", "counts", "missing")
        alike = operator.attrgetter(*shared)
        if any(alike(one) != alike(self.answers[0]) for one in self.answers):
            raise InvalidInput("all groups are searched alike.")
        if self.answers[0].recorded is None:
            raise InvalidInput("every group has a noisy number of values.")

    @property
    def groups(self) -> tuple[Hashable, ...]:
        """The groups: labels of the column, or tuples of labels where there are several."""
        if len(self.by) == 1:
            return self.labels[0]
        return tuple(itertools.product(*self.labels))

    @property
    def q(self) -> float | tuple[float, ...]:
        """What was asked for."""
        return self.answers[0].q

    @property
    def fractions(self) -> tuple[float, ...]:
        """The same, always as several."""
        return self.answers[0].fractions

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose quantiles they are."""
        return self.answers[0].columns

    @property
    def missing(self) -> str | None:
        """The rule for missing values that was used."""
        return self.answers[0].missing

    @property
    def resolution(self) -> Floats:
        """The step of every column's grid, of shape (d,)."""
        return self.answers[0].resolution

    @property
    def recorded(self) -> Floats:
        """The noisy number of values in every group, of shape (groups, d)."""
        return np.array([answer.recorded for answer in self.answers], np.float64)

    @property
    def recorded_error(self) -> Floats:
        """The standard deviations of `recorded`, of shape (groups, d)."""
        return np.array([answer.recorded_error for answer in self.answers], np.float64)

    @property
    def too_few(self) -> NDArray[np.bool_]:
        """Where a group has too few values for a quantile, of shape (groups, d).

        Their noisy number is less than five of its standard errors, or no more than the rank error
        at 95 %.
        """
        return np.asarray(self.recorded < self._fewest)

    @property
    def _fewest(self) -> Floats:
        """From which noisy number of values on a group has a quantile, of shape (d,)."""
        ranks = self.answers[0].rank_error().reshape(len(self.fractions), -1).max(axis=0)
        return np.asarray(np.maximum(FEWEST_DEVIATIONS * self.recorded_error[0], ranks + 1))

    @property
    def value(self) -> Floats:
        """The quantiles, on the grid; not-a-number where a group has too few values."""
        values = np.array([answer.value for answer in self.answers])
        return np.where(self._of_values(self.too_few), np.nan, values)

    @property
    def noise_scale(self) -> Floats:
        """The standard deviation of the noise of every comparison, in records."""
        return np.array([answer.noise_scale for answer in self.answers])

    @property
    def rounds(self) -> NDArray[np.int64]:
        """The comparisons that were made and paid for."""
        return np.array([answer.rounds for answer in self.answers])

    def rank_error(
        self, confidence: float = 0.95, *, simultaneous: bool = False
    ) -> NDArray[np.int64]:
        """τ: each value lies between the values of the ranks m − τ and m + τ of its group.

        As of one group, whose quantiles of a column hold together; with `simultaneous` those of
        all groups and columns do.
        """
        level = self._level(confidence, simultaneous)
        error = self.answers[0].rank_error(level, simultaneous=simultaneous)
        return np.tile(error, (len(self.answers), *(1,) * error.ndim))

    @property
    def has_population(self) -> bool:
        """Whether there are intervals for the populations that the groups were drawn from."""
        return self.answers[0].has_population

    def interval(
        self,
        confidence: float = 0.95,
        *,
        simultaneous: bool = False,
        target: str = "records",
        guaranteed: bool = False,
    ) -> tuple[Floats, Floats]:
        """(lower, upper) around the exact quantiles of every group's clipped values.

        They cost nothing, and of one group ascend with q and contain those of less confidence.
        With `target="population"` they are for what the records of a group are independent draws
        of, and hold for every number of them.
        """
        level = self._level(confidence, simultaneous)
        ends = [
            answer.interval(level, simultaneous=simultaneous, target=target)
            for answer in self.answers
        ]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])

    def _level(self, confidence: float, simultaneous: bool) -> float:
        # Groups have independent noise: all of them hold with the product of their levels.
        level = _check.probability("confidence", confidence)
        return level ** (1 / len(self.answers)) if simultaneous else level

    def _of_values(self, of_columns: NDArray[Any]) -> NDArray[Any]:
        """What there is for every group and column, for every value."""
        wide = of_columns[:, None, :] if isinstance(self.q, tuple) else of_columns
        shape = (len(self.answers), *self.answers[0].value.shape)
        return np.broadcast_to(wide, shape)

    def table(self, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """A tidy table, a line a group, quantile and column: `pandas.DataFrame(release.table())`.

        `recorded` is the noisy number of the group's values.
        """
        ends = [answer.intervals(confidence) for answer in self.answers]
        inner = len(self.fractions) * len(self.columns)
        axes = np.array(list(itertools.product(*self.labels)), dtype=object)
        fractions = np.repeat(np.array(self.fractions), len(self.columns))
        names = np.array(self.columns * len(self.fractions), dtype=object)
        return {
            **{
                unlike(name, COLUMNS): np.repeat(axes[:, axis], inner)
                for axis, name in enumerate(self.by)
            },
            "column": np.tile(names, len(self.answers)),
            "quantile": np.tile(fractions, len(self.answers)),
            "value": self.value.ravel(),
            "rank_error": self.rank_error(confidence).ravel(),
            **{name: np.concatenate([one[name].ravel() for one in ends]) for name in ends[0]},
            "recorded": self._of_values(self.recorded).ravel(),
            "recorded_error": self._of_values(self.recorded_error).ravel(),
        }

    def parts(self) -> Mapping[Hashable, QuantileAnswer]:
        """The answer of every group."""
        return dict(zip(self.groups, self.answers, strict=True))

    @property
    def called(self) -> str:
        """What it is."""
        return "a table of quantiles"

    @property
    def heading(self) -> str:
        """The columns of the groups."""
        return f"quantiles by {' and '.join(self.by)}"

    def details(self) -> list[str]:
        """The grid of every column, and how it was searched in each group."""
        return self.answers[0].details()

    def rows(self, most: int = MOST_ROWS) -> list[list[str]]:
        """A line a group, quantile and column."""
        counted = f"{'recorded' if self.missing == 'drop' else 'records'} ± s.e."
        intervals = self.answers[0].interval_heads
        head = [*self.by, "column", "quantile", "value", "rank error (95 %)", *intervals]
        rows = [[*head, counted]]
        groups = len(self.by)
        grids = self.answers[0].grids * (len(self.fractions) * len(self.answers))
        lines = zip(*self.table().values(), strict=True)
        for grid, line in zip(grids, lines, strict=True):
            group, (column, fraction, value, error, *ends) = line[:groups], line[groups:-2]
            recorded, spread = line[-2:]
            cells = [TOO_FEW, "", *("" for _ in intervals)]
            if math.isfinite(value):
                cells = [shown(grid, value), f"± {error:,}", *interval_cells(grid, ends)]
            number = f"{rounded(max(recorded, 0.0), 10 * spread)} ± {significant(spread)}"
            rows.append([*map(str, group), column, f"{fraction:g}", *cells, number])
        return shortened(rows, most)

    def notes(self) -> list[str]:
        """What became of missing values, and what the errors mean."""
        few = [self._too_few()] * bool(self.too_few.any())
        return [*self.answers[0].rules(), *few, *self.answers[0].meaning()]

    def _too_few(self) -> str:
        """From how many values on there is a quantile, and why."""
        least = " or ".join(f"{math.ceil(each):,}" for each in sorted(set(self._fewest)))
        return (
            f"Too few: fewer than {least} values by their noisy number, which is five of its "
            "standard errors, or more than the rank error. Nothing is printed then, since an empty "
            "group could look so."
        )

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, ready for JSON; what all groups share is written once."""
        first = self.answers[0].to_dict()
        alike = ("q", "columns", "standard_error", "missing", "grids", "searches")
        value = self.value.astype(object)
        value[np.isnan(self.value)] = None
        return {
            "statistic": self.statistic,
            "by": list(self.by),
            "labels": [list(labels) for labels in self.labels],
            "value": value.tolist(),
            "rank_error": {"confidence": CONFIDENCE, "ranks": self.rank_error().tolist()},
            **interval_fields_of(self),
            "recorded": {**first["recorded"], "value": self.recorded.tolist()},
            "too_few": self.too_few.tolist(),
            **{key: first[key] for key in alike},
            **self._common(),
            "found": [
                [[found_to_dict(found) for found in row] for row in answer.found]
                for answer in self.answers
            ],
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The answer that `to_dict` described; its searches are checked again."""
        common = read_common(fields)
        counted = fields["recorded"]
        groups = list(zip(fields["found"], counted["value"], strict=True))
        found, recorded = groups[0]
        # The searches are read with the first group, and shared by the others.
        first = QuantileAnswer.from_dict(
            {**fields, "found": found, "recorded": {**counted, "value": recorded}}
        )
        answers = [
            replace(
                first,
                found=tuple(tuple(map(found_from_dict, row)) for row in found),
                recorded=tuple(_check.real("recorded", number) for number in recorded),
            )
            for found, recorded in groups
        ]
        return cls(
            by=tuple(fields["by"]),
            labels=tuple(map(tuple, fields["labels"])),
            answers=tuple(answers),
            **common,
        )
