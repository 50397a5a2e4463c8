"""A statistic of groups, read off noisy counts, sums, squares and products."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from itertools import product as all_of
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.ratio import FEWEST_DEVIATIONS
from muhat.release import readings
from muhat.release.answer import (
    CONFIDENCE,
    NOT_INDEPENDENT,
    POPULATION,
    TARGETS,
    Answer,
    read_common,
    refuse_population,
)
from muhat.release.display import MOST_ROWS
from muhat.release.moments import COUNT, NoisyMoments, Term
from muhat.release.query_table import COLUMNS, unlike
from muhat.release.readings import ReadLine
from muhat.release.regression import regression_lines
from muhat.release.statistic_display import statistic_notes, statistic_rows

Label = str | int | float | bool

RECORDED = ("recorded", "recorded_error")


class Kind(NamedTuple):
    """How a statistic is read, of how many columns, and of how many records at least.

    `fewest` is beside one record a column; None if it has a value of any number of records. Of a
    `second` degree it needs the squares and products of its columns, too.
    """

    lines: Callable[[NoisyMoments, Sequence[str]], tuple[ReadLine, ...]]
    least: int
    most: int | None
    fewest: int | None
    second: bool = False


KINDS = {
    "count": Kind(readings.count_lines, 0, 0, None),
    "sum": Kind(readings.sum_lines, 1, 1, None),
    "mean": Kind(readings.mean_lines, 1, 1, 0),
    "variance": Kind(readings.variance_lines, 1, 1, 1, second=True),
    "standard deviation": Kind(readings.deviation_lines, 1, 1, 1, second=True),
    "covariance": Kind(readings.covariance_lines, 2, None, 0, second=True),
    "correlation": Kind(readings.correlation_lines, 2, None, 2, second=True),
    "regression": Kind(regression_lines, 2, None, 1, second=True),
    "weighted mean": Kind(readings.weighted_mean_lines, 2, 2, 0),
    "weighted sum": Kind(readings.weighted_sum_lines, 2, 2, None),
}
"""What can be read off noisy moments."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class StatisticAnswer(Answer):
    """A statistic of every group, with its errors; `release["north"]` has that of one group.

    `columns` are those that it is of; of a regression the first is what is explained by the others,
    of a weighted mean the second is the weight. Groups are all combinations of the `labels` of the
    columns in `by`, the last one fastest; without `by` there is one. Arrays have an entry a group,
    or a row of them where a statistic has several numbers (pairs of columns, coefficients).
    `rows_in_group` is the most records of a person in one group; None: all that a person has.
    `complete_by` are the columns of the groups that every record has a group of.
    """

    kind: str
    name: str
    columns: tuple[str, ...]
    moments: NoisyMoments
    by: tuple[str, ...] = ()
    labels: tuple[tuple[Label, ...], ...] = ()
    missing: str | None = "drop"
    rows_in_group: int | None = None
    complete_by: tuple[str, ...] = ()

    schema: ClassVar[str] = "muhat.statistic/1"

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = KINDS[_check.one_of("kind", self.kind, KINDS)]
        number = len(self.columns)
        if number < kind.least or (kind.most is not None and number > kind.most):
            raise InvalidInput(f"a {self.kind} is not of {number} columns.")
        if self.rows_in_group is not None:
            _check.count("rows_in_group", self.rows_in_group)
        texts = (self.name, *self.columns, *self.by, *self.complete_by)
        if not all(isinstance(text, str) for text in texts) or len(self.by) != len(self.labels):
            raise InvalidInput("a statistic names its columns, and the labels of its groups.")
        if not all(isinstance(label, str | int | float) for of in self.labels for label in of):
            raise InvalidInput("the labels of groups are texts or numbers.")
        if len(self.groups) != self.moments.groups:
            raise InvalidInput("a statistic has the moments of each of its groups.")
        if lacking := [term for term in _needed(self) if term not in self.moments.terms]:
            raise InvalidInput(f"a {self.kind} needs the sums of {lacking[0]!r:.80}.")
        if self.kind.startswith("weighted") and _least(self.moments, self.columns[1]) < 0:
            raise InvalidInput("weights are not negative, and their bounds say so.")

    @property
    def statistic(self) -> str:
        """What was asked."""
        return self.kind

    @cached_property
    def groups(self) -> tuple[Hashable, ...]:
        """The groups by label, or by a tuple of labels if they are of several columns."""
        if len(self.by) == 1:
            return self.labels[0]
        return tuple(all_of(*self.labels))

    @cached_property
    def lines(self) -> tuple[ReadLine, ...]:
        """One for every number of a group."""
        return KINDS[self.kind].lines(self.moments, self.columns)

    @property
    def outputs(self) -> tuple[str, ...]:
        """What the numbers of a group are called; one of them may have no name."""
        return tuple(line.label for line in self.lines)

    @property
    def output_name(self) -> str | None:
        """What several numbers of a group are: pairs or coefficients; None if there is one."""
        if self.kind == "regression":
            return "coefficient"
        return "pair" if len(self.lines) > 1 else None

    @property
    def recorded(self) -> Floats:
        """The noisy numbers of records that the groups have, of shape (groups,)."""
        return self.moments.count

    @property
    def recorded_error(self) -> Floats:
        """Their standard deviations, of shape (groups,)."""
        return np.full(self.moments.groups, self.moments.error_of(COUNT))

    @property
    def fewest(self) -> float | None:
        """From how many noisy records on a group has a value; None if whatever their number."""
        needed = KINDS[self.kind].fewest
        if needed is None:
            return None
        return max(FEWEST_DEVIATIONS * self.moments.error_of(COUNT), needed + len(self.columns))

    @property
    def too_few(self) -> NDArray[np.bool_]:
        """Where a group may have no records, or has too few for this statistic: shape (groups,)."""
        if self.fewest is None:
            return np.zeros(self.moments.groups, bool)
        few = np.asarray(self.recorded < self.fewest)
        if self.kind == "weighted mean":
            weights = self.lines[0].quotient
            few |= weights.bottom < FEWEST_DEVIATIONS * self.moments.error(weights.bottom_slopes)
        return few

    @property
    def value(self) -> Floats:
        """The statistic, of shape (groups,) or (groups, numbers); not-a-number where too few."""
        values = np.stack([line.value for line in self.lines], axis=1)
        return self._shaped(np.where(self.too_few[:, None], np.nan, values))

    @property
    def standard_error(self) -> Floats:
        """Asymptotic standard deviations of the noise in `value`; infinite where too few."""
        errors = np.stack([line.error for line in self.lines], axis=1)
        return self._shaped(np.where(self.too_few[:, None], np.inf, errors))

    @property
    def why_no_population(self) -> str | None:
        """Why there is no interval for the population; None if there is one."""
        if self.kind == "count":
            return "a count estimates nothing of the population"
        if (self.rows_in_group or self.contributions) > 1:
            return f"{NOT_INDEPENDENT} where a person has several in a group"
        if any(line.sampling is None for line in self.lines):
            return "how large a sum would be in another sample depends on how many values that has"
        return None

    @property
    def has_population(self) -> bool:
        """Whether there are intervals for the populations that the groups were drawn from."""
        return self.why_no_population is None

    def interval(
        self,
        confidence: float = 0.95,
        *,
        simultaneous: bool = False,
        target: str = "records",
        guaranteed: bool = False,
    ) -> tuple[Floats, Floats]:
        """(lower, upper), each of the shape of `value`: one by one, or all groups at once.

        With `target="population"` they are for what the records of a group are independent draws
        of, and `guaranteed` (means and sums) ones hold for every number of records. An end may be
        infinite (regression); where a group has too few records the interval is what can be said
        of it all the same, perhaps all that is possible.
        """
        level = _check.probability("confidence", confidence)
        miss, number = 1 - level, len(self.lines) * self.moments.groups
        if simultaneous:
            # Normal noise stays within several strips at least as often as if they were
            # independent (Šidák); of other noise the misses add up.
            normal = self.moments.law in ("normal", "none")
            miss = -np.expm1(np.log(level) / number) if normal else miss / number
        if _check.one_of("target", target, TARGETS) == "records":
            ends = [line.records(float(miss)) for line in self.lines]
        else:
            self._check_population(guaranteed)
            ends = [line.population(float(miss), guaranteed=guaranteed) for line in self.lines]
        lower, upper = (np.stack(side, axis=1) for side in zip(*ends, strict=True))
        return self._shaped(lower), self._shaped(upper)

    def _check_population(self, guaranteed: bool) -> None:
        refuse_population(self.why_no_population)
        if guaranteed and any(line.guaranteed is None for line in self.lines):
            raise InvalidInput("guaranteed intervals are for means and sums.")

    def _shaped(self, values: Floats) -> Floats:
        """One number a group is no row."""
        return values if self.output_name is not None else values[:, 0]

    def table(self, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """A tidy table, a line a group and number: `pandas.DataFrame(release.table())`.

        Where a group has too few records there is neither a value nor a bound.
        """
        named: dict[str, NDArray[Any]] = {}
        taken = ("pair", "coefficient", *COLUMNS, *POPULATION, *RECORDED)
        numbers, output = len(self.lines), self.output_name
        places = np.indices([len(labels) for labels in self.labels])
        for name, labels, place in zip(self.by, self.labels, places, strict=True):
            repeated = np.repeat(np.array(labels, dtype=object)[place.ravel()], numbers)
            named[unlike(name, taken)] = repeated
        if output is not None:
            named[output] = np.tile(np.array(self.outputs, dtype=object), self.moments.groups)
        few = np.repeat(self.too_few, numbers)
        ends = dict(zip(COLUMNS[2:], self.interval(confidence), strict=True))
        if self.has_population:
            wider = self.interval(confidence, target="population")
            ends |= dict(zip(POPULATION, wider, strict=True))
        return {
            **named,
            "value": self.value.ravel(),
            "standard_error": np.where(few, np.nan, self.standard_error.ravel()),
            **{name: np.where(few, np.nan, end.ravel()) for name, end in ends.items()},
            "recorded": np.repeat(self.recorded, numbers),
            "recorded_error": np.repeat(self.recorded_error, numbers),
        }

    def parts(self) -> Mapping[Hashable, StatisticAnswer]:
        """The answer of every group."""
        if not self.by:
            return {}
        return {
            group: replace(
                self,
                labels=tuple((label,) for label in labels),
                moments=self.moments.only(place),
            )
            for place, (group, labels) in enumerate(
                zip(self.groups, all_of(*self.labels), strict=True)
            )
        }

    @property
    def called(self) -> str:
        """A mean, a count, …"""
        return f"a {self.kind}"

    @property
    def heading(self) -> str:
        """The words that it was asked in."""
        return self.name

    def rows(self, most: int = MOST_ROWS) -> list[list[str]]:
        """A line a group and number."""
        return statistic_rows(self, most)

    def notes(self) -> list[str]:
        """What the intervals are about, and what they rest on."""
        return statistic_notes(self)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, ready for JSON: an infinite or absent number is null."""
        intervals = {"interval": "records"}
        if self.has_population:
            intervals["population_interval"] = "population"
        return {
            "statistic": self.kind,
            "name": self.name,
            "columns": list(self.columns),
            "by": list(self.by),
            "labels": [list(labels) for labels in self.labels],
            "outputs": list(self.outputs),
            "value": _finite(self.value),
            "standard_error": _finite(self.standard_error),
            "too_few": self.too_few.tolist(),
            **{name: self._interval_fields(target) for name, target in intervals.items()},
            **self._common(),
            "missing": self.missing,
            "rows_in_group": self.rows_in_group,
            "complete_by": list(self.complete_by),
            "moments": self.moments.to_dict(),
        }

    def _interval_fields(self, target: str) -> dict[str, Any]:
        lower, upper = self.interval(CONFIDENCE, target=target)
        ends = {"lower": _finite(lower), "upper": _finite(upper)}
        return {"confidence": CONFIDENCE, "target": target, **ends}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The answer that `to_dict` described."""
        return cls(
            kind=fields["statistic"],
            name=fields["name"],
            columns=tuple(fields["columns"]),
            by=tuple(fields["by"]),
            labels=tuple(tuple(labels) for labels in fields["labels"]),
            missing=fields["missing"],
            rows_in_group=fields.get("rows_in_group"),
            complete_by=tuple(fields.get("complete_by", ())),
            moments=NoisyMoments.from_dict(fields["moments"]),
            **read_common(fields),
        )


def _needed(answer: StatisticAnswer) -> list[Term]:
    """The terms that a kind of statistic is read off."""
    columns = answer.columns
    terms: list[Term] = [COUNT, *((column,) for column in columns)]
    if KINDS[answer.kind].second:
        terms += [(column, column) for column in columns]
    return terms + [readings.product(*pair) for pair in combinations(columns, 2)]


def _least(moments: NoisyMoments, column: str) -> float:
    return moments.centers[column] - moments.half_widths[column]


def _finite(values: Floats) -> list[Any]:
    """JSON has neither infinities nor not-a-number; nothing stands for them."""
    shown = values.astype(object)
    shown[~np.isfinite(values)] = None
    return list(shown.tolist())
