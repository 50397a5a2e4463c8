"""Private means of groups: a release for every group, all of them for one promise."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat._arrays import Floats
from muhat.errors import InvalidInput
from muhat.privacy import Privacy
from muhat.release.population import why_no_population
from muhat.release.query_table import COLUMNS, unlike
from muhat.release.reading import read_json
from muhat.release.recorded import Recorded
from muhat.release.release import Release

SCHEMA = "muhat.groups/2"

POPULATION = ("population_lower", "population_upper")
"""The columns of a table that are about the populations of the groups."""


@dataclass(frozen=True, eq=False, repr=False)
class GroupRelease:
    """The means of public groups of records; `release["north"]` is that of one group.

    A record lies in one group, so one promise covers all of them. Arrays have a row a group and a
    column a column of the data.
    """

    by: str
    groups: tuple[str | int | float | bool, ...]
    releases: tuple[Release, ...]

    def __post_init__(self) -> None:
        if not self.releases or len(self.groups) != len(self.releases):
            raise InvalidInput("a release of groups has one release for each of them.")
        if not isinstance(self.by, str) or not all(
            isinstance(group, str | int | float) for group in self.groups
        ):
            raise InvalidInput("a release of groups names a column and its categories.")
        if {release.columns for release in self.releases} != {self.columns}:
            raise InvalidInput("all groups have the means of the same columns.")
        if any(one.noise is None or one.recorded is None for one in self.releases):
            raise InvalidInput("the mean of every group has an error and a number of values.")
        if len({release.missing for release in self.releases}) > 1:
            raise InvalidInput("all groups have one rule for missing values.")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that were averaged."""
        return self.releases[0].columns

    @property
    def cost(self) -> Privacy:
        """The promise that was charged, once for all groups."""
        return self.releases[0].cost

    @property
    def missing(self) -> str | None:
        """The rule for missing values that was used."""
        return self.releases[0].missing

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
        known = [release.recorded for release in self.releases]
        # Where nothing is missing one number stands for all columns.
        return np.array([np.broadcast_to(part(one), width) for one in known if one is not None])

    @property
    def too_few(self) -> NDArray[np.bool_]:
        """Where the noisy number of values is no divisor, of shape (groups, d)."""
        return ~np.isfinite(self.standard_error)

    @property
    def value(self) -> Floats:
        """The means, of shape (groups, d); not-a-number where no values can be told from none."""
        return np.array([release.value for release in self.releases])

    @property
    def standard_error(self) -> Floats:
        """Asymptotic standard deviations, of shape (groups, d); infinite for a tiny group."""
        return np.array([release.standard_error for release in self.releases])

    @property
    def has_population(self) -> bool:
        """Whether there are intervals for the populations that the groups' values were drawn of."""
        return why_no_population(self.releases[0]) is None

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
            release.interval(level, simultaneous=simultaneous, target=target, guaranteed=guaranteed)
            for release in self.releases
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

    def __getitem__(self, group: str | int | float | bool) -> Release:
        with contextlib.suppress(TypeError):  # what has no hash is no group
            place = dict(zip(self.groups, range(len(self.groups)), strict=True)).get(group)
            if place is not None:
                return self.releases[place]
        hint = _check.did_you_mean(str(group), map(str, self.groups))
        raise InvalidInput(f"{group!r:.60} is not one of the groups.{hint}")

    def __iter__(self) -> Iterator[tuple[str | int | float | bool, Release]]:
        return iter(zip(self.groups, self.releases, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The release as plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            "statistic": "mean",
            "by": self.by,
            "groups": list(self.groups),
            "releases": [release.to_dict() for release in self.releases],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The release as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> GroupRelease:
        """The release that `to_json` wrote."""
        return read_json(text, SCHEMA, "muhat's means of groups", cls._of)

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> GroupRelease:
        releases = [Release.from_json(json.dumps(one)) for one in fields["releases"]]
        return cls(fields["by"], tuple(fields["groups"]), tuple(releases))

    def __repr__(self) -> str:
        from muhat.release.group_display import release_text

        return release_text(self)

    def _repr_html_(self) -> str:
        from muhat.release.group_display import release_html

        return release_html(self)
