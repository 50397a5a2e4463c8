"""What is known beforehand of one statistic of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from muhat import _check
from muhat._text import joined, table
from muhat.errors import InvalidInput
from muhat.release.certificate import Certificate
from muhat.release.display import significant

SIZES = (100, 1_000, 10_000)
"""Numbers of values of a group whose errors are shown."""


@dataclass(frozen=True, repr=False)
class PlannedStatistic:
    """The groups, the share of the promise and the error of a statistic, before any data.

    `error` is the standard error of the noise on each of its values; with `of_group` that times
    the number of values of the group, which nobody knows, at the mean for which it is largest.
    With `in_ranks` it is the rank error that 95 of 100 quantiles keep. None: the data decide.
    Statistics that are read off the same noisy numbers share those, so that their shares may add
    up to more than 1. `groups` is None where nobody knows how many there are.
    """

    name: str
    groups: int | None
    share: float
    mechanism: str
    error: float | None = None
    of_group: bool = False
    in_ranks: bool = False
    certificate: Certificate | None = None

    @property
    def standard_error(self) -> float | None:
        """Of every value; None where it depends on data or on the size of a group."""
        return None if self.of_group else self.error

    def standard_error_at(self, n: int) -> float | None:
        """If a group has n values; None where more than that decides."""
        n = _check.count("n", n)
        if self.error is None:
            return None
        return self.error / n if self.of_group else self.error

    def least_group(self, standard_error: float) -> int:
        """The least number of values of a group for a standard error."""
        wished = _check.positive("standard_error", standard_error)
        if self.error is None or not self.of_group:
            raise InvalidInput(
                f"the error of {self.name!r:.60} does not follow from a group's size."
            )
        return max(1, -int(-self.error // wished))

    @staticmethod
    def rows(planned: Sequence[PlannedStatistic]) -> list[list[str]]:
        """A table of statistics: a header, then a line each."""
        header = ["statistic", "groups", "share", "standard error"]
        if any(each.of_group for each in planned):
            header += [f"n = {size:,}" for size in SIZES]
        rows = [header]
        for each in planned:
            groups = "learnt" if each.groups is None else f"{each.groups:,}"
            row = [each.name, groups, f"{100 * each.share:.3g} %"]
            if each.error is None:
                row.append("the data decide")
            elif each.of_group:
                row.append("by group")
                row += [significant(each.error / size) for size in SIZES]
            else:
                row.append(
                    f"{each.error:,.0f} ranks (95 %)" if each.in_ranks else significant(each.error)
                )
            rows.append([*row, *[""] * (len(header) - len(row))])
        return rows

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "name": self.name,
            "groups": self.groups,
            "share": self.share,
            "mechanism": self.mechanism,
            "standard_error": self.standard_error,
            "standard_error_times_n": self.error if self.of_group else None,
        }

    def describe(self) -> str:
        """A table of one line, and what it means."""
        lines = table(PlannedStatistic.rows([self]))
        if self.of_group:
            lines += ["", "The error depends on the number of values of a group, and is that at"]
            lines += ["the mean for which it is largest."]
        return joined(lines)

    def __repr__(self) -> str:
        return self.describe()
