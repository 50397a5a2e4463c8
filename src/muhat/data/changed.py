"""A source whose records are changed on the way, each by itself, in every pass anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, runtime_checkable

from muhat.data.base import Accumulated, Source
from muhat.data.states import Numbers, joined
from muhat.data.tallies import SumTable, Tallied, Tallies, rows_of, tallies_of
from muhat.errors import DataChanged
from muhat.records.columns import Batch

Change = Callable[[Batch], Iterable[Batch]]
"""What becomes of a batch: it is sent to where the records are, and holds nothing of the source."""


class ChangedSource(Source):
    """A source, and what becomes of its batches just before they are added up."""

    def __init__(self, source: Source, change: Change) -> None:
        self._source = source
        self._change = change
        self.columns = source.columns
        self.types = source.types

    @property
    def known_rows(self) -> int | None:
        """As the source within knows it."""
        return self._source.known_rows

    def rows(self) -> int:
        """As many records as the source within has."""
        return self._source.rows()

    def check_unchanged(self) -> None:
        """Raise DataChanged if the data within are not those that were opened."""
        self._source.check_unchanged()

    def fold(self, accumulator: Callable[[], Accumulated]) -> list[Accumulated] | None:
        """Records are changed where they are read."""
        change = self._change
        found = self._source.fold(lambda: Changing(accumulator(), change))
        if found is None:
            return None
        if self._source.known_rows not in (None, sum(each.rows for each in found)):
            raise DataChanged("the data have changed their length since they were counted.")
        return [each.inner for each in found]


@runtime_checkable
class Places(Protocol):
    """A change by which columns stand elsewhere, and nothing else."""

    @property
    def places(self) -> Sequence[int]:
        """For every column where it stood."""


class Changing(Generic[Accumulated]):
    """Changes records for an accumulator; `rows` are all that were seen."""

    def __init__(self, inner: Accumulated, change: Change) -> None:
        self.inner = inner
        self._change = change
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Add what becomes of the batch."""
        self.rows += batch.rows + batch.absent
        for changed in self._change(batch):
            self.inner.add(changed)

    def state(self) -> Numbers:
        """The records seen, and what the accumulator holds."""
        return joined(self.rows, self.inner.state())

    def absorb(self, state: Numbers) -> None:
        """Add what another one held."""
        self.rows += int(state[0])
        self.inner.absorb(state[1:])

    def tallies(self) -> list[SumTable] | None:
        """Those of the accumulator, if all that changes is where columns stand."""
        inner = tallies_of(self.inner)
        if inner is None or not isinstance(self._change, Places):
            return None
        return [each.moved(self._change.places) for each in inner]

    def tallied(self, found: Sequence[Tallied]) -> Numbers:
        """All records, and the state of the accumulator."""
        assert isinstance(self.inner, Tallies)
        return joined(rows_of(found[0]), self.inner.tallied(found))
