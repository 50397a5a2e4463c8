"""Carries a plan for linear queries out: check, count, charge, read, add the noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from muhat.errors import DataChanged, InvalidInput
from muhat.ledger import Approval, charged
from muhat.planning.query_plan import QueryPlan
from muhat.privacy import Neighbors
from muhat.release.answer_noise import AnswerNoise
from muhat.release.query_release import QueryRelease
from muhat.workloads.total import total_weights

if TYPE_CHECKING:
    from muhat.data.histogram import CellSource

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


def open_counts(
    plan: QueryPlan, data: Any, columns: Sequence[str] | Sequence[int] | None
) -> Counts:
    """The data as counts of the plan's cells; arguments and metadata are checked alone."""
    from muhat.data.categories import categories_of
    from muhat.data.cell_kernel import checked_sets
    from muhat.data.counts import histogram_counts
    from muhat.data.histogram import open_cells, require_every_record
    from muhat.data.selection import column_names

    cells = plan.workload.cells
    chosen = column_names(columns)
    checked_sets(cells, plan.recipe.query.sets)
    if chosen is None and not plan.categories:
        if isinstance(data, Mapping) and plan.neighbors is Neighbors.SUBSTITUTE:
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
    categories = plan.categories
    if not categories:
        assert chosen is not None
        categories = categories_of(dict(zip(chosen, cells, strict=True)), missing="drop")
        if plan.neighbors is Neighbors.SUBSTITUTE:
            require_every_record(categories)
    return TableCounts(open_cells(data, chosen, categories))


def carry_out(plan: QueryPlan, counts: Counts, approval: Approval | None) -> QueryRelease:
    """Charge, count, add the noise. A failure after the charge keeps the charge."""
    total = None
    if plan.neighbors is Neighbors.SUBSTITUTE:
        total = counts.total()
        if plan.n is not None and plan.n != total:
            raise InvalidInput(
                f"n = {plan.n}, but the data have another number of records. Leave n out to have "
                "them counted."
            )
        plan = replace(plan, n=total)
    # Whatever can fail without the data fails before the charge.
    certificate, digest = plan.certificate, plan.digest
    noise = plan.noise
    weights = total_weights(plan.workload) if "drop" in counts.rules else None
    of_total = None if weights is None else _total_noise(plan, weights)
    if not math.isfinite(certificate.error):
        raise InvalidInput("the expected error is not finite; nothing was spent.")
    head = charged(approval, digest, plan.workload.describe())
    margins = counts.margins(plan.recipe.query.sets)
    known = None if plan.recipe.absent else total
    counted = int(next(iter(margins.values())).sum())
    if total is not None and (counted > total or known not in (None, counted)):
        raise DataChanged("the number of records changed between counting and reading.")
    value = plan.recipe.run(margins, known)
    return QueryRelease(
        value=value,
        workload=plan.workload,
        attributes=plan.attributes,
        missing=counts.rules,
        recorded=None if weights is None else float(weights @ value),
        recorded_noise=of_total,
        mechanism=plan.mechanism,
        privacy=plan.privacy,
        neighbors=plan.neighbors,
        n=plan.n,
        contributions=plan.contributions,
        noise=noise,
        certificate=certificate,
        assumptions=plan.assumptions,
        plan_digest=digest,
        ledger_head=head,
    )


def _total_noise(plan: QueryPlan, weights: NDArray[np.float64]) -> AnswerNoise:
    """The noise on the number of recorded values, which follows from the answers."""
    scale, sums = plan.recipe.total_noise(weights)
    return AnswerNoise(plan.recipe.law, np.array([scale]), False, sums=sums)
