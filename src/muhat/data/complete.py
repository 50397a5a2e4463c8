"""The complete records of a source: those that lack no value, in every pass anew.

Whether a record is complete is found from the record alone, so one record that changes adds one,
takes one away, or changes one of those that are left.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat.data.base import Source
from muhat.data.changed import ChangedSource
from muhat.data.engine import read_once
from muhat.data.states import Numbers, joined
from muhat.data.tallies import SumTable, Tallied, rows_of
from muhat.records.columns import Batch, Mask


class CompleteSource(ChangedSource):
    """A source without its records that lack a value; how many are left is secret."""

    known_rows = None

    def __init__(self, source: Source) -> None:
        super().__init__(source, _complete_parts)

    def rows(self) -> int:
        """One pass: how many records are complete. Data: never show it."""
        return sum(each.rows for each in read_once(self, RowCounter))


def _complete_parts(batch: Batch) -> tuple[Batch]:
    return (complete_part(batch),)


def complete_part(batch: Batch) -> Batch:
    """The complete records of a batch."""
    with np.errstate(all="ignore"):
        keeps = _complete(batch)
    if keeps.all():
        return Batch(batch.rows, batch.columns, batch.matrix)
    rows = keeps.nonzero()[0]
    if batch.matrix is not None:
        return Batch(len(rows), (), batch.matrix[rows])
    return Batch(len(rows), [column.pick(rows) for column in batch.columns])


def _complete(batch: Batch) -> Mask:
    if batch.matrix is not None:
        return np.asarray(np.isfinite(batch.matrix).all(axis=1))
    keeps = np.ones(batch.rows, bool)
    for column in batch.columns:
        keeps &= column.present()
    return keeps


class RowCounter:
    """Counts records, for one thread."""

    def __init__(self) -> None:
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Count every record of the batch."""
        self.rows += batch.rows + batch.absent

    def state(self) -> Numbers:
        """The records seen."""
        return joined(self.rows)

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])

    def tallies(self) -> list[SumTable]:
        """Nothing but the records."""
        return [SumTable((), ())]

    def tallied(self, found: Sequence[Tallied]) -> Numbers:
        """Their number."""
        return joined(rows_of(found[0]))
