"""What every source of records offers, whatever it is made of and wherever it is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from muhat.data.columns import Batch
from muhat.data.states import Numbers
from muhat.data.threads import fold_partitions


class Adds(Protocol):
    """What adds batches up, for one thread, and counts the records it has seen."""

    rows: int

    def add(self, batch: Batch) -> None:
        """Add every record of the batch."""


class Accumulates(Adds, Protocol):
    """What adds batches up here or elsewhere: what it holds can be sent home and put together."""

    def state(self) -> Numbers:
        """All that it holds, the number of its records first."""

    def absorb(self, state: Numbers) -> None:
        """Add what another one made alike held."""


Added = TypeVar("Added", bound=Adds)
Accumulated = TypeVar("Accumulated", bound=Accumulates)


@dataclass(frozen=True)
class Partition:
    """An independent unit of work: its size in bytes, and a way to read it, again and again."""

    size: int
    batches: Callable[[], Iterator[Batch]]


class Source(ABC):
    """Records that can be read more than once; made from arguments and metadata alone.

    `columns` names every coordinate in order, `types` says what each is stored as. A source whose
    records are elsewhere brings its engine along: `fold` runs a pass where the records are.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    complete: bool = False
    """Whether the schema itself says that no value of these columns is missing."""

    @property
    def dim(self) -> int:
        """The number of coordinates a record has."""
        return len(self.columns)

    @property
    @abstractmethod
    def known_rows(self) -> int | None:
        """The number of records if it is known without another look, else None."""

    @abstractmethod
    def rows(self) -> int:
        """How many records there are: from metadata, or by counting."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Raise DataChanged if the data are not those that were opened."""

    @abstractmethod
    def fold(
        self,
        accumulator: Callable[[], Accumulated],
        *,
        show_progress: bool,
        threads: int | None,
    ) -> list[Accumulated] | None:
        """One pass: every record added to exactly one of the accumulators made.

        None if the records could not be read to the end, for whatever reason: an exception may
        quote what was read. `accumulator` may be called anywhere, any number of times.
        """


class PartitionedSource(Source):
    """Records on this machine, in units of work that threads share."""

    @property
    def bytes_a_thread(self) -> int:
        """How much work pays for one more thread."""
        return 1 << 27

    @abstractmethod
    def partitions(self) -> Sequence[Partition]:
        """The units of work; together every record once."""

    def fold(
        self, accumulator: Callable[[], Added], *, show_progress: bool, threads: int | None
    ) -> list[Added] | None:
        """One pass by a small pool of threads."""
        return fold_partitions(self, accumulator, show_progress=show_progress, threads=threads)
