"""How a plan for linear queries is carried out: open, count, read, add the noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from muhat._words import Parameter, given_rows
from muhat.errors import DataChanged, InvalidInput
from muhat.planning.run import Columns, account_of
from muhat.privacy import Neighbors
from muhat.release.query_release import QueryRelease

if TYPE_CHECKING:
    from muhat.data.histogram import CellSource
    from muhat.planning.query_plan import QueryPlan

Axes = tuple[int, ...]


class Counts(Protocol):
    """Records that can be counted by cell; nothing is read before `margins`."""

    @property
    def rules(self) -> tuple[str, ...]:
        """What becomes of missing and undeclared values of each column; () if counts are given."""

    def total(self) -> int:
        """The number of records, where it is public."""

    def margins(self, sets: Iterable[Axes]) -> Mapping[Axes, NDArray[np.int64]]:
        """The exact marginal tables of counts over sets of axes."""


@dataclass(frozen=True)
class TableCounts:
    """The records of a table, each in one cell."""

    source: CellSource

    @property
    def rules(self) -> tuple[str, ...]:
        """The rule of every column, in order."""
        return tuple(categories.missing for categories in self.source.categories)

    def total(self) -> int:
        """The number of rows."""
        return self.source.rows()

    def margins(self, sets: Iterable[Axes]) -> Mapping[Axes, NDArray[np.int64]]:
        """One pass over the rows."""
        return self.source.count(sets)


@dataclass(frozen=True)
class QueriesWork:
    """The work of a plan for linear queries."""

    plan: QueryPlan

    def open(self, data: Any, columns: Columns) -> Counts:
        """The data as counts of the plan's cells."""
        from muhat.data.categories import categories_of
        from muhat.data.cell_kernel import checked_sets
        from muhat.data.counts import histogram_counts
        from muhat.data.histogram import open_cells, require_every_record
        from muhat.data.selection import column_names

        cells = self.plan.workload.cells
        chosen = column_names(columns)
        checked_sets(cells, self.plan.recipe.query.sets)
        if chosen is None and not self.plan.categories:
            if isinstance(data, Mapping) and self.plan.neighbors is Neighbors.SUBSTITUTE:
                raise InvalidInput(
                    "under substitution every record has a cell, and a dict may have keys that are "
                    "none: give the counts as an array or a sparse array."
                )
            return histogram_counts(data, cells)
        if chosen is not None and len(chosen) != len(cells):
            raise InvalidInput(
                f"the workload asks about {len(cells)} attributes, so as many columns are needed; "
                f"got {len(chosen)}."
            )
        categories = self.plan.categories
        if not categories:
            assert chosen is not None
            categories = categories_of(dict(zip(chosen, cells, strict=True)), missing="drop")
            if self.plan.neighbors is Neighbors.SUBSTITUTE:
                require_every_record(categories)
        return TableCounts(open_cells(data, chosen, categories))

    def counted(self, source: Counts) -> QueryPlan:
        """The plan for these records, whose number is public under substitution."""
        plan = self.plan
        if plan.neighbors is not Neighbors.SUBSTITUTE:
            return plan
        total = source.total()
        if plan.n is not None and plan.n != total:
            raise InvalidInput(
                given_rows(plan.n),
                ", but the data have another number of records.",
                hint=("Leave ", Parameter("n"), " out to have them counted."),
            )
        return replace(plan, n=total)

    def admit(self, plan: QueryPlan, source: Counts) -> None:
        """Refuse errors without bound."""
        if not math.isfinite(plan.certificate.error):
            raise InvalidInput("the expected error is not finite; nothing was spent.")
        if "drop" in source.rules:
            plan.recorded_noise  # noqa: B018  what can fail without the data fails here

    def note(self, plan: QueryPlan, source: Counts) -> str:
        """What was asked."""
        return plan.workload.describe()

    def read(self, plan: QueryPlan, source: Counts, head: dict[str, Any] | None) -> QueryRelease:
        """Count the cells in one pass."""
        margins = source.margins(plan.recipe.query.sets)
        known = None if plan.recipe.absent else plan.n
        counted = int(next(iter(margins.values())).sum())
        if plan.n is not None and (counted > plan.n or known not in (None, counted)):
            raise DataChanged("the number of records changed between counting and reading.")
        value = plan.recipe.run(margins, known)
        weights = plan.recorded_weights if "drop" in source.rules else None
        return QueryRelease(
            value=value,
            workload=plan.workload,
            attributes=plan.attributes,
            missing=source.rules,
            recorded=None if weights is None else float(weights @ value),
            recorded_noise=None if weights is None else plan.recorded_noise,
            noise=plan.noise,
            certificate=plan.certificate,
            **account_of(plan, head),
        )
