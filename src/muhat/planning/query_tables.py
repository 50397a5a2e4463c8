"""Queries that are tables of counts, answered beside the counts of a set.

A histogram, or marginal tables of one, are counts by groups: linear in the same cells as those of
the set, so that one strategy can serve all of them. That is so where every table has all columns
that leave records out: a record of the queries has a cell in each of their columns, and one of a
table of counts only in those of the table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from muhat import bounds
from muhat._arrays import Floats
from muhat.mechanisms.queries.moment_block import Axes, MomentBlock
from muhat.planning.queries import floor_of_queries
from muhat.planning.terms import Terms
from muhat.release.answer_noise import LARGEST_SIMULATION, AnswerNoise
from muhat.release.certificate import Certificate, metric_name
from muhat.statistics.asked import Count, Queries
from muhat.statistics.queries import LinearQueries
from muhat.workloads.identity import Identity
from muhat.workloads.linear_map import LinearMap
from muhat.workloads.marginals import Marginals
from muhat.workloads.total import total_weights

if TYPE_CHECKING:
    from muhat.privacy import Privacy

Cells = NDArray[np.intp]
"""Cells of a flat table, in some order."""


@dataclass(frozen=True, eq=False)
class QueryTables:
    """Queries, and the counts by groups that are their answers.

    `counts` has one a table; the answers of a cell of `by` are its parts of all tables, one after
    another. `alone` is their weighted error with noise of their own and the whole promise.
    """

    asked: Queries
    queries: LinearQueries
    counts: tuple[Count, ...]
    alone: float

    @classmethod
    def of(cls, asked: Queries, queries: LinearQueries, alone: float) -> QueryTables | None:
        """The queries as tables; None if they are others."""
        sets = _sets(asked)
        if sets is None:
            return None
        drops = {
            name
            for name, one in zip(asked.axes, queries.categories, strict=True)
            if not one.keeps_every_record
        }
        tables = [(*asked.by, *(asked.columns[axis] for axis in axes)) for axes in sets]
        # The number of all records may be public.
        if not all(table and drops <= {*table} for table in tables):
            return None
        sizes = {one.name: one.size for one in queries.categories}
        rows = queries.workload.shape[0]
        counts = [
            Count(
                by=list(table),
                # Relative to the mean of all answers, as errors of queries are.
                weight=asked.weight * rows / math.prod(sizes[name] for name in table),
                target=asked.target,
                name=asked.name,
            )
            for table in tables
        ]
        return cls(asked, queries, tuple(counts), alone)

    @property
    def rules(self) -> tuple[str, ...]:
        """What becomes of missing and undeclared values of each column."""
        return tuple(one.missing for one in self.queries.categories)

    @cached_property
    def _by(self) -> int:
        return math.prod(one.size for one in self.queries.categories[: len(self.asked.by)])

    def in_order(self, tables: Sequence[Floats]) -> Floats:
        """Numbers of the cells of every table, or rows of them, as the answers come."""
        rest = tables[0].shape[1:]
        split = [table.reshape(self._by, -1, *rest) for table in tables]
        return np.concatenate(split, axis=1).reshape(-1, *rest)

    def noise(self, block: MomentBlock, tables: Sequence[tuple[Axes, Cells]]) -> AnswerNoise:
        """The noise on the answers: of every table the axes in a block, and which cells it shows.

        The tables of a block of several are correlated, which its strategy knows if it is small.
        """
        shown = [np.full(len(cells), block.scales[axes]) for axes, cells in tables]
        law, scales = block.recipe.law, self.in_order(shown)
        if len(block.groupings) == 1:
            return AnswerNoise(law, scales, True)
        decoder = block.recipe.decoder
        if decoder is None or math.prod(decoder.shape) > LARGEST_SIMULATION:
            return AnswerNoise(law, scales, False)
        dense = decoder.dense() if isinstance(decoder, LinearMap) else decoder
        rows = []
        for axes, cells in tables:
            start, weight = block.rows_of(axes)
            rows.append(dense[start + cells] * (block.recipe.unit / (weight * block.unit)))
        return AnswerNoise(law, scales, False, self.in_order(rows))

    def recorded(self, noise: AnswerNoise) -> tuple[Floats, AnswerNoise] | None:
        """What makes the number of records of the answers, where some are left out, and its noise.

        None if no record is left out, or if the answers do not tell.
        """
        weights = total_weights(self.queries.workload) if "drop" in self.rules else None
        if weights is None:
            return None
        if noise.independent:
            scale = float(np.linalg.norm(weights * noise.scales))
        elif isinstance(noise.decoder, np.ndarray):
            scale = float(np.linalg.norm(weights @ noise.decoder))
        else:
            return None
        return weights, AnswerNoise(noise.law, np.array([scale]), False)

    def certificate(self, noise: AnswerNoise, terms: Terms, share: Privacy) -> Certificate:
        """How close the answers are to the best possible for the share that the counts have."""
        error, method = noise.root_mean_square(2.0)
        found = bounds.linear_queries(
            self.queries.workload,
            share,
            2.0,
            neighbors=terms.neighbors,
            floor=floor_of_queries(self.queries, terms),
            contributions=terms.contributions,
        )
        return Certificate(metric_name(2.0, "answers"), 2.0, error, method, found, error)


def _sets(asked: Queries) -> tuple[Axes, ...] | None:
    """The axes of every table that the queries are made of; None if they are none."""
    workload = asked.workload
    if isinstance(workload, Identity):
        return (tuple(range(len(workload.cells))),)
    return workload.sets if isinstance(workload, Marginals) else None
