"""Means of groups: an answer for every group, all of them for one promise."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.ratio import Ratio
from muhat.release.answer import POPULATION, Answer, read_common
from muhat.release.beside import Recorded
from muhat.release.display import MOST_ROWS, rounded, shortened, significant
from muhat.release.population import why_no_population
from muhat.release.query_table import COLUMNS, unlike
from muhat.release.vector_answer import VectorAnswer
from muhat.release.vector_display import MISSING, population_lines

NOTE = "A noisy sum divided by a noisy count for every group: slightly biased, and no certificate."

TOO_FEW = "too few"

TOO_FEW_NOTE = (
    "Too few: the noisy number of values is less than five of its standard errors, so that no "
    "mean is printed."
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GroupAnswer(Answer):
    """The means of public groups of records; `release["north"]` has that of one group.

    A record lies in one group, so one promise covers all of them. Arrays have a row a group and a
    column a column of the data.
    """

    by: str
    groups: tuple[str | int | float | bool, ...]
    answers: tuple[VectorAnswer, ...]

    schema: ClassVar[str] = "muhat.groups/2"
    statistic: ClassVar[str] = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.answers or len(self.groups) != len(self.answers):
            raise InvalidInput("a release of groups has one answer for each of them.")
        if not isinstance(self.by, str) or not all(
            isinstance(group, str | int | float) for group in self.groups
        ):
            raise InvalidInput("a release of groups names a column and its categories.")
        if {answer.columns for answer in self.answers} != {self.columns}:
            raise InvalidInput("all groups have the means of the same columns.")
        if any(one.noise is None or one.recorded is None for one in self.answers):
            raise InvalidInput("the mean of every group has an error and a number of values.")
        if len({answer.missing for answer in self.answers}) > 1:
            raise InvalidInput("all groups have one rule for missing values.")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that were averaged."""
        return self.answers[0].columns

    @property
    def missing(self) -> str | None:
        """The rule for missing values that was used."""
        return self.answers[0].missing

    @property
    def recorded(self) -> Floats:
        """The noisy numbers of values that the means are of, of shape (groups, d)."""
        return self._recorded(lambda recorded: recorded.value)

    @property
    def recorded_error(self) -> Floats:
        """The standard deviations of `recorded`, of shape (groups, d)."""
        return self._recorded(lambda recorded: recorded.standard_error)

    def _recorded(self, part: Callable[[Recorded], Floats]) -> Floats:
        width = (len(self.columns),)
        known = [answer.recorded for answer in self.answers]
        # Where nothing is missing one number stands for all columns.
        return np.array([np.broadcast_to(part(one), width) for one in known if one is not None])

    @property
    def too_few(self) -> NDArray[np.bool_]:
        """Where the noisy number of values is no divisor, of shape (groups, d)."""
        return ~np.isfinite(self.standard_error)

    @property
    def value(self) -> Floats:
        """The means, of shape (groups, d); not-a-number where no values can be told from none."""
        return np.array([answer.value for answer in self.answers])

    @property
    def standard_error(self) -> Floats:
        """Asymptotic standard deviations, of shape (groups, d); infinite for a tiny group."""
        return np.array([answer.standard_error for answer in self.answers])

    @property
    def has_population(self) -> bool:
        """Whether there are intervals for the populations that the groups' values were drawn of."""
        return why_no_population(self.answers[0]) is None

    def interval(
        self,
        confidence: float = 0.95,
        *,
        simultaneous: bool = False,
        target: str = "records",
        guaranteed: bool = False,
    ) -> tuple[Floats, Floats]:
        """Fieller's intervals, each end of shape (groups, d): one by one, or all at once.

        `target` and `guaranteed` are those of a release of one group: with "population" an
        interval is for the mean of what the values of a group are independent draws of.
        """
        level = _check.probability("confidence", confidence)
        if simultaneous:
            # Groups have independent noise: all of them hold with the product of their levels.
            level = level ** (1 / len(self.groups))
        ends = [
            answer.interval(level, simultaneous=simultaneous, target=target, guaranteed=guaranteed)
            for answer in self.answers
        ]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])

    def table(self, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """A tidy table, a line a group and column: `pandas.DataFrame(release.table())`."""
        lower, upper = self.interval(confidence)
        wider: dict[str, NDArray[Any]] = {}
        if self.has_population:
            ends = self.interval(confidence, target="population")
            wider = dict(zip(POPULATION, (end.ravel() for end in ends), strict=True))
        width = len(self.columns)
        return {
            unlike(self.by, ("column", *COLUMNS, *POPULATION, "recorded")): np.repeat(
                np.array(self.groups, dtype=object), width
            ),
            "column": np.tile(np.array(self.columns, dtype=object), len(self.groups)),
            "value": self.value.ravel(),
            "standard_error": self.standard_error.ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
            **wider,
            "recorded": self.recorded.ravel(),
        }

    def parts(self) -> Mapping[Hashable, VectorAnswer]:
        """The answer of every group."""
        return dict(zip(self.groups, self.answers, strict=True))

    @property
    def called(self) -> str:
        """What it is."""
        return "a table of means"

    @property
    def heading(self) -> str:
        """The column of the groups."""
        return f"means by {self.by}"

    def rows(self, most: int = MOST_ROWS) -> list[list[str]]:
        """A line a group and column."""
        counted = f"{'records' if self.missing != 'drop' else 'recorded'} ± s.e."
        intervals = ["95 % interval"]
        if self.has_population:
            intervals = ["95 % interval: records", "95 % interval: population"]
        rows = [[self.by, "column", "value", "standard error", *intervals, counted]]
        columns = list(self.table().values())
        for group, column, value, error, *ends, recorded, spread in zip(
            *columns, self.recorded_error.ravel(), strict=True
        ):
            cells = [TOO_FEW, "", *("" for _ in intervals)]
            if math.isfinite(error):
                cells = [rounded(value, error), significant(error)]
                for low, high in zip(ends[::2], ends[1::2], strict=True):
                    size = error if low is ends[0] else (high - low) / 4
                    cells.append(f"{rounded(low, size)} … {rounded(high, size)}")
            number = f"{rounded(max(recorded, 0.0), 10 * spread)} ± {significant(spread)}"
            rows.append([str(group), column, *cells, number])
        return shortened(rows, most)

    def notes(self) -> list[str]:
        """What became of missing values, and how good the means are."""
        lines = [] if self.missing is None else [MISSING[self.missing].format("mean")]
        lines += population_lines(self.answers[0])
        return [*lines, *[TOO_FEW_NOTE] * bool(self.too_few.any()), self._goodness()]

    def _goodness(self) -> str:
        """How close to the best possible the means of all groups are."""
        known = [answer.certificate for answer in self.answers if answer.certificate is not None]
        ratios = [each.ratio for each in known if each.ratio is not None]
        if not ratios:
            return NOTE
        least, most = (f"{ratio:.3g}" for ratio in (min(ratios), max(ratios)))
        range_of = least if least == most else f"{least} to {most}"
        return (
            "A noisy sum divided by a noisy count for every group: at the worst mean, to first "
            f"order, its error is {range_of} times the least that is possible for any mechanism "
            "on datasets of about so many records."
        )

    def written(self, account: dict[str, Any]) -> dict[str, Any]:
        """Every group's answer is written as a release of its own."""
        releases = [answer.written(account) for answer in self.answers]
        return {**super().written(account), "releases": releases}

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, but for those of the groups."""
        return {
            "statistic": self.statistic,
            "by": self.by,
            "groups": list(self.groups),
            **self._common(),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The answer that `written` described."""
        answers = tuple(_counted(VectorAnswer.from_dict(one)) for one in fields["releases"])
        # Before, only those of the groups said by what mechanism, and of how many records.
        said = fields if "mechanism" in fields else fields["releases"][0]
        groups = tuple(fields["groups"])
        return cls(by=fields["by"], groups=groups, answers=answers, **read_common(said))


def _counted(answer: VectorAnswer) -> VectorAnswer:
    """The first schema had the number of records in the noise alone."""
    if answer.recorded is not None or not isinstance(answer.noise, Ratio):
        return answer
    return replace(answer, recorded=Recorded(answer.noise.count, answer.noise.count_error))
