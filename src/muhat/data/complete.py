"""The complete records of a source: those that lack no value, in every pass anew.

Whether a record is complete is found from the record alone, so one record that changes adds one,
takes one away, or changes one of those that are left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

import numpy as np

from muhat.data.base import Accumulated, Source
from muhat.data.columns import Batch, Mask
from muhat.data.engine import read_once
from muhat.data.states import Numbers, joined
from muhat.errors import DataChanged


class CompleteSource(Source):
    """A source without its records that lack a value; how many are left is secret."""

    known_rows = None

    def __init__(self, source: Source) -> None:
        self._source = source
        self.columns = source.columns
        self.types = source.types

    def rows(self) -> int:
        """One pass: how many records are complete. Data: never show it."""
        return sum(each.rows for each in read_once(self, _RowCounter))

    def check_unchanged(self) -> None:
        """Raise DataChanged if the data within are not those that were opened."""
        self._source.check_unchanged()

    def fold(
        self,
        accumulator: Callable[[], Accumulated],
        *,
        show_progress: bool,
        threads: int | None,
    ) -> list[Accumulated] | None:
        """Records are left out where they are read, just before the others are added."""
        found = self._source.fold(
            lambda: _Completing(accumulator()), show_progress=show_progress, threads=threads
        )
        if found is None:
            return None
        if self._source.known_rows not in (None, sum(each.rows for each in found)):
            raise DataChanged("the data have changed their length since they were counted.")
        return [each.inner for each in found]


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


class _RowCounter:
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


class _Completing(Generic[Accumulated]):
    """Leaves records out for an accumulator; `rows` are all that were seen."""

    def __init__(self, inner: Accumulated) -> None:
        self.inner = inner
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Add every complete record of the batch."""
        self.rows += batch.rows + batch.absent
        self.inner.add(complete_part(batch))

    def state(self) -> Numbers:
        """The records seen, and what the accumulator holds."""
        return joined(self.rows, self.inner.state())

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        self.inner.absorb(state[1:])
