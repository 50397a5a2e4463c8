"""Quantiles in public groups of records, whose sizes are secret: searches and a count in each.

A record that is added or removed lies in one group, so one promise covers all of them. One that is
replaced may leave a group and come to another: what it moves in both together is what the noise is
for, and at the median that is no more than what it moves within one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat.errors import InvalidInput
from muhat.noise.kinds import NoiseKind, Strength
from muhat.planning.mechanism import Columns, Mechanism, Rows
from muhat.planning.planned import PlannedStatistic
from muhat.planning.quantile_search import QuantileSearch, quantile_search
from muhat.planning.terms import Terms
from muhat.release.group_quantile_answer import GroupQuantileAnswer
from muhat.statistics.quantiles import Quantiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from muhat.data.categories import Categories
    from muhat.data.grid_counts import Window, WindowCounts
    from muhat.data.groups import GroupSource
    from muhat.data.shared import Reading


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GroupQuantiles(Mechanism):
    """Quantiles of every group of records.

    `each` has the searches and the count that are made in every group; `categories` are the public
    ones of the columns that make the groups. Records of any other value are left out.
    """

    each: QuantileSearch
    categories: tuple[Categories, ...]

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that make the groups."""
        return tuple(str(one.name) for one in self.categories)

    @property
    def groups(self) -> int:
        """How many groups there are: one for each combination of categories."""
        return math.prod(one.size for one in self.categories)

    def keeps(self, terms: Terms) -> bool:
        """Whether the searches of so many groups were made for them."""
        return self.each.recipe.groups == self.groups and self.each.keeps(terms)

    @property
    def name(self) -> str:
        """That of each group."""
        return self.each.name

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Those of each group, and why one promise is enough."""
        covered = "a record lies in one of them"
        if not self.terms.is_secret:
            covered = (
                "a record that leaves one group for another moves both, which its noise is for"
            )
        return (
            *self.each.assumptions,
            *(
                f"records of no listed group of {one.name} are left out"
                for one in self.categories
                if not one.keeps_every_record
            ),
            f"one promise covers all groups: {covered}",
            *self.said,
        )

    @property
    def q(self) -> float | tuple[float, ...]:
        """The quantiles that are asked for."""
        return self.each.q

    @property
    def missing(self) -> str:
        """What becomes of missing values."""
        return self.each.missing

    @property
    def recipe(self) -> Any:
        """The searches and the count of every group, with their proof."""
        return self.each.recipe

    def rank_error(
        self, confidence: float = 0.95, *, simultaneous: bool = False
    ) -> NDArray[np.int64]:
        """Of each group: its values will lie within so many ranks of its quantiles'.

        With `simultaneous` those of all groups and columns do.
        """
        level = _check.probability("confidence", confidence)
        if simultaneous:
            level **= 1 / self.groups
        return self.each.rank_error(level, simultaneous=simultaneous)

    @property
    def typical_rank_error(self) -> float:
        """That of each group."""
        return self.each.typical_rank_error

    @property
    def alternatives(self) -> tuple[tuple[str, float], ...]:
        """Those of each group."""
        return self.each.alternatives

    def planned_as(self, name: str) -> PlannedStatistic:
        """With the rank error of a group."""
        return replace(self.each.planned_as(name), groups=self.groups)

    def errors(self) -> list[tuple[float, int]]:
        """The largest rank error of a group for confidences from a half to 0.999."""
        return self.each.errors()

    def decisive(self) -> dict[str, Any]:
        """The groups, and the searches of each."""
        return {**self.each.decisive(), "by": self._described()}

    def details(self) -> dict[str, Any]:
        """The groups, and what is told of each."""
        return {**self.each.details(), "by": self._described()}

    def _described(self) -> list[dict[str, Any]]:
        return [one.to_dict() for one in self.categories]

    @property
    def title(self) -> str:
        """What is planned."""
        return f"{self.each.title} by {' and '.join(self.by)}"

    def facts(self) -> Rows:
        """The groups, and the searches of each."""
        (count, *_) = self.recipe.counts
        sizes = f"each with its number of values, ± {count.scale:.3g}"
        return [["groups", f"{self.groups:,}, public; {sizes}"], *self.each.facts()]

    def tables(self) -> list[Rows]:
        """The rank error of a group for every confidence."""
        return self.each.tables()

    def notes(self) -> list[str]:
        """What the errors mean."""
        return [*self.each.notes(), "It is that of each group, whatever its size."]

    def figure(self) -> Figure:
        """The rank error against the confidence."""
        return self.each.figure()

    def open(self, data: Any, columns: Columns) -> GroupSource:
        """The data as records, each in a group."""
        from muhat.data.groups import open_groups

        chosen = self.columns if columns is None else columns
        if chosen is None:
            raise InvalidInput("must be named when there are groups", parameter="columns")
        names = [one.name for one in self.categories]
        return open_groups(
            data,
            chosen,
            names,
            self.categories,
            dim=len(self.recipe.grids),
            people=self.terms.people(),
        )

    def counted(self, source: GroupSource) -> GroupQuantiles:
        """The same for these records; a public n is compared, or counted."""
        each = self.each.counted(source)
        return replace(self, terms=each.terms, each=each)

    def note(self, source: GroupSource) -> str:
        """The quantiles, the columns, and those of the groups."""
        return f"{self.each.note(source)} by {', '.join(self.by)}"

    def read(self, source: GroupSource) -> GroupQuantileAnswer:
        """The quantiles by themselves."""
        (answer,) = self.answers(source)
        assert isinstance(answer, GroupQuantileAnswer)
        return answer

    def reading(self, source: GroupSource) -> Reading[tuple[GroupQuantileAnswer]]:
        """Count, and search among the counts of all groups, pass by pass."""
        from muhat.data.shared import answered

        each = self.each
        grids, rule = each.recipe.grids, each.missing_rule

        def counting(windows: Sequence[Window]) -> Reading[list[WindowCounts]]:
            found = yield from source.counting(grids, windows, missing=rule)
            return each.checked(found)

        groups = yield from answered(each.recipe.searching(), counting)
        basis = self.basis()
        answer = GroupQuantileAnswer(
            by=self.by,
            labels=tuple(one.labels for one in self.categories),
            answers=tuple(each.answer(found, source.columns, **basis) for found in groups),
            **basis,
        )
        return (answer,)


def quantiles_of(
    asked: Quantiles,
    terms: Terms,
    columns: tuple[str, ...] | None = None,
    *,
    apart: bool = False,
) -> QuantileSearch | GroupQuantiles:
    """The noisy searches for quantiles: of all records, or of each group of them.

    `apart` says that of a person no two records lie in one group.
    """
    each = quantile_search(asked, terms, columns, apart=apart)
    if not asked.categories:
        return each
    return GroupQuantiles(
        terms=terms,
        statistic="quantile",
        columns=columns,
        each=each,
        categories=asked.categories,
    )


def group_quantiles(
    column: str,
    q: float | Sequence[float],
    bounds: tuple[float, float],
    terms: Terms,
    categories: tuple[Categories, ...],
    missing: str,
    resolution: float | None = None,
    *,
    apart: bool = False,
) -> QuantileSearch | GroupQuantiles:
    """Quantiles of one column between public bounds, in the groups that categories make.

    Without categories they are of all records. `apart` as `quantiles_of` has it.
    """
    asked = Quantiles.of(
        q,
        *bounds,
        resolution=resolution,
        relative=None,
        missing=missing,
        categories=categories,
    )
    return quantiles_of(asked, terms, (column,), apart=apart)


def rank_noise(
    q: float | Sequence[float],
    bounds: tuple[float, float],
    terms: Terms,
    categories: tuple[Categories, ...],
    missing: str,
    resolution: float | None = None,
    *,
    apart: bool = False,
) -> float:
    """The standard deviation of a comparison, in records, for noise of the strength 1.

    That is μ = 1, or ε = 1 under pure privacy: with a share of the promise whose strength is s it
    is 1/s of that, and rank errors are some of these deviations. The largest, if they differ. Of
    a choice, that of the search which it is instead of.

    >>> from muhat.privacy import GDP
    >>> round(rank_noise(0.5, (0, 1023), Terms.checked(GDP(0.1), 100), (), "none", 1.0) ** 2, 6)
    12.0
    """
    mechanism = group_quantiles("", q, bounds, terms, categories, missing, resolution, apart=apart)
    strength = Strength.of(terms.privacy, NoiseKind.named_by(terms.privacy)).squared
    each = mechanism.each if isinstance(mechanism, GroupQuantiles) else mechanism
    return min(one.noise_scale for one in each.contenders) * math.sqrt(strength)
