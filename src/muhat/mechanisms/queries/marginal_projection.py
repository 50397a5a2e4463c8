"""Marginal tables without negative counts that agree with each other, nearest to noisy ones.

For histograms that fit, x̂ ≥ 0 is fitted, and its tables are returned. Else the tables are
projected onto the intersection of two sets: tables that agree on what they share, a linear space
whose coordinates are residuals, and tables without negative cells. With P the projection onto
the first, in units of the deviations, the nearest tables are P(answers + λ) for the λ ≥ 0 that
minimises ‖P(answers + λ)‖²/2 (λ are the multipliers of the cells), whose gradient is
P(answers + λ) itself and has the Lipschitz constant 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import Floats
from muhat.mechanisms.queries.nonnegative import checked, project_answers
from muhat.workloads.base import Workload
from muhat.workloads.residual_tables import TableFamily, rows_of
from muhat.workloads.residuals import weighted_tables

LARGEST_HISTOGRAM = 1 << 16
"""Histograms of at most this many cells are fitted themselves."""

ITERATIONS = 500
TOLERANCE = 0.01


def project_marginals(
    workload: Workload,
    answers: ArrayLike,
    deviations: ArrayLike,
    total: float | None = None,
    *,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> Floats:
    """The nearest tables without negative cells, of shape (m,); `total` if it is public.

    The workload is marginals, or a stack of them with weights. Up to 2^16 cells of the histogram
    the tables are those of a histogram x̂ ≥ 0, exactly. Beyond that they have the same total, no
    cell is negative, and what they share agrees up to the cells that were below 0 when the
    iteration ended, and were cut. It ends when a step moves no cell by more than `tolerance`
    deviations, or after `iterations` steps.

    >>> from muhat.workloads import marginals
    >>> W = marginals((2, 2), order=1)
    >>> project_marginals(W, [-1.0, 7.0, 3.0, 4.0], [1.0] * 4).round(3)
    array([0., 7., 3., 4.])
    """
    if workload.shape[1] <= LARGEST_HISTOGRAM:
        return project_answers(workload, answers, deviations, total)[0]
    noisy, precision = checked(workload.shape[0], answers, deviations)
    if total is not None:
        total = max(0.0, _check.real("total", total))
    rows = _Rows(workload)
    family = rows.family
    given = rows.tables(noisy)
    # A table's cells have one deviation; should they not, the mean square counts.
    weights = [float(np.mean(table**-2.0)) for table in rows.tables(1 / precision)]
    reach = [tolerance / math.sqrt(weight) for weight in weights]
    tables = family.agreeing(given, weights, total)
    lifts = before = [np.zeros_like(table) for table in given]
    momentum = 1.0
    for _ in range(_check.count("iterations", iterations)):
        following = [
            np.maximum(lift - table, 0.0) for lift, table in zip(lifts, tables, strict=True)
        ]
        # Where λ > 0 the cell should be 0, elsewhere it should not be negative.
        if all(
            float(np.abs(new - lift).max()) <= least
            for new, lift, least in zip(following, lifts, reach, strict=True)
        ):
            break
        # Restart when the step points against the momentum (O'Donoghue and Candès 2015).
        against = sum(
            weight * float(np.vdot(lift - new, new - old))
            for weight, lift, new, old in zip(weights, lifts, following, before, strict=True)
        )
        momentum = 1.0 if against > 0 else momentum
        coming = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        push = (momentum - 1) / coming
        lifts = [new + push * (new - old) for new, old in zip(following, before, strict=True)]
        before, momentum = following, coming
        raised = [table + lift for table, lift in zip(given, lifts, strict=True)]
        tables = family.agreeing(raised, weights, total)
    return rows.answers(_cut(tables, total))


class _Rows:
    """The rows of a workload as tables, without their weights."""

    def __init__(self, workload: Workload) -> None:
        tables = list(weighted_tables(workload))
        self.factors = [weight for _, weight in tables]
        self.family = TableFamily(workload.cells, [axes for axes, _ in tables])
        self.offsets = np.cumsum([0, *rows_of(workload.cells, self.family.sets)])

    def tables(self, answers: Floats) -> list[Floats]:
        """The answers, divided by their weights, as arrays over the attributes."""
        return [
            (answers[start:stop] / factor).reshape(shape)
            for shape, factor, start, stop in zip(
                self.family.shapes, self.factors, self.offsets[:-1], self.offsets[1:], strict=True
            )
        ]

    def answers(self, tables: Sequence[Floats]) -> Floats:
        """The reverse of `tables`."""
        return np.concatenate(
            [factor * table.ravel() for factor, table in zip(self.factors, tables, strict=True)]
        )


def _cut(tables: Sequence[Floats], total: float | None) -> list[Floats]:
    """Negative cells become 0, and every table gets the same total again."""
    common = max(0.0, float(tables[0].sum()) if total is None else total)
    kept = [np.maximum(table, 0.0) for table in tables]
    sums = [float(table.sum()) for table in kept]
    return [
        table * (common / whole) if whole > 0 else np.full_like(table, common / table.size)
        for table, whole in zip(kept, sums, strict=True)
    ]
