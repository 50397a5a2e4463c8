"""What every source of records offers, whatever it is made of and wherever it is read.

Records on this machine are read by the embedded engine: a small pool of threads that share the
units of work of a source.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Protocol, TypeVar

import numpy as np

from muhat._progress import Progress
from muhat.data.states import Numbers
from muhat.errors import InvalidInput
from muhat.records.columns import Batch


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
    def fold(self, accumulator: Callable[[], Accumulated]) -> list[Accumulated] | None:
        """One pass: every record added to exactly one of the accumulators made.

        None if the records could not be read to the end, for whatever reason: an exception may
        quote what was read. `accumulator` may be called anywhere, any number of times.
        """

    def keep(self) -> None:  # noqa: B027 (most have nothing to decode)
        """Be ready for several passes: what is slow to decode is decoded once from now on."""

    def together(self) -> Source:
        """The same records, all with equal values in the last column added to one accumulator."""
        raise InvalidInput(
            "must be on this machine, in Spark or in Dask if a person may have several rows",
            parameter="data",
            hint="Write them to Parquet files and pass their paths.",
        )


class PartitionedSource(Source):
    """Records on this machine, in units of work that threads share."""

    @property
    def bytes_a_thread(self) -> int:
        """How much work pays for one more thread."""
        return 1 << 27

    @abstractmethod
    def partitions(self) -> Sequence[Partition]:
        """The units of work; together every record once."""

    def fold(self, accumulator: Callable[[], Added]) -> list[Added] | None:
        """One pass by a small pool of threads."""
        return fold_partitions(self, accumulator)


MOST_THREADS = 4
_LARGEST_HELD = 1 << 24


@cache
def hold_freed_memory() -> None:
    """Have the memory of freed arrays used again by the next ones.

    The C library of Linux hands blocks of a few megabytes back to the system when they are freed,
    and every page of the next one is a fault: a sixth of the time of a pass over text. Once it has
    seen a larger block come and go it keeps them. This one is never touched, so it takes no room.
    """
    np.empty(_LARGEST_HELD, np.uint8)


_THREADS: ContextVar[int | None] = ContextVar("threads", default=None)
_SHOWN = ContextVar("shown", default=True)


@contextmanager
def paced(*, threads: int | None = None, show_progress: bool = True) -> Iterator[None]:
    """Passes that begin meanwhile have so many threads (None: as many as pay), and are shown."""
    threads_before, shown_before = _THREADS.set(threads), _SHOWN.set(show_progress)
    try:
        yield
    finally:
        _THREADS.reset(threads_before)
        _SHOWN.reset(shown_before)


def fold_partitions(
    source: PartitionedSource, accumulator: Callable[[], Added]
) -> list[Added] | None:
    """One pass over all partitions, an accumulator a thread; None if one could not be read."""
    hold_freed_memory()
    partitions = list(source.partitions())
    work = _Queue(partitions)
    size = sum(part.size for part in partitions)
    threads = _THREADS.get() or _threads(1 + size // source.bytes_a_thread)
    workers = min(threads, max(len(partitions), 1))
    with Progress(size, show=_SHOWN.get()) as progress:
        accumulators = _run(work, [accumulator() for _ in range(workers)], progress)
    return None if work.failed else accumulators


class _Queue:
    """Partitions handed out one at a time; empty for everyone as soon as one of them failed."""

    def __init__(self, partitions: list[Partition]) -> None:
        self._partitions = iter(partitions)
        self._lock = threading.Lock()
        self.failed = False

    def take(self) -> Partition | None:
        with self._lock:
            return None if self.failed else next(self._partitions, None)


def _run(work: _Queue, accumulators: list[Added], progress: Progress) -> list[Added]:
    def drain(accumulator: Added) -> None:
        try:
            # A warning would depend on the data, and reading casts already: a signaling
            # not-a-number raises its flag there. Every thread has an error state of its own.
            with np.errstate(all="ignore"):
                while (partition := work.take()) is not None:
                    for batch in partition.batches():
                        accumulator.add(batch)
                    progress.advance(partition.size)
        except Exception:
            work.failed = True

    if len(accumulators) == 1:
        drain(accumulators[0])
        return accumulators
    with ThreadPoolExecutor(len(accumulators), thread_name_prefix="muhat") as pool:
        try:
            for future in [pool.submit(drain, accumulator) for accumulator in accumulators]:
                future.result()
        except BaseException:
            work.failed = True
            raise
    return accumulators


def _threads(useful: int) -> int:
    available = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        available = len(os.sched_getaffinity(0))
    return min(MOST_THREADS, available, useful)
