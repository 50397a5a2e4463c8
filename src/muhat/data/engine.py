"""The embedded engine: a small pool of threads, one pass over the data, exact sums."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from muhat.data.base import Partition, Source
from muhat.data.columns import Batch
from muhat.data.kernel import Accumulator
from muhat.data.progress import Progress
from muhat.domains.lattice import Lattice
from muhat.errors import DataChanged, InvalidInput, SourceFailed

MOST_THREADS = 4


class Accumulates(Protocol):
    """What adds batches up, for one thread, and counts the records it has seen."""

    rows: int

    def add(self, batch: Batch) -> None:
        """Add every record of the batch."""


Adds = TypeVar("Adds", bound=Accumulates)


@dataclass(frozen=True)
class Sums:
    """Σ q of every coordinate (or cell), and the records counted. It is data: never show it."""

    total: tuple[int, ...]
    rows: int

    def __repr__(self) -> str:
        return f"Sums(dim={len(self.total)})"


def exact_sums(
    source: Source,
    lattice: Lattice,
    *,
    missing: str = "center",
    show_progress: bool = True,
    threads: int | None = None,
) -> Sums:
    """One pass over the source: the integer sums of its records on the lattice.

    The result is the same for every number of threads. Raises DataChanged if the source is not
    what was opened, and SourceFailed, without a word of the cause, if it cannot be read.
    """
    if source.dim != lattice.record_dim:
        raise InvalidInput(f"the data have {source.dim} columns, the domain {lattice.record_dim}.")
    accumulators = read_once(
        source,
        lambda: Accumulator(lattice, missing),
        show_progress=show_progress,
        threads=threads,
    )
    total = tuple(sum(parts) for parts in zip(*(each.total for each in accumulators), strict=True))
    return Sums(total, sum(each.counted for each in accumulators))


def read_once(
    source: Source,
    accumulator: Callable[[], Adds],
    *,
    show_progress: bool = True,
    threads: int | None = None,
) -> list[Adds]:
    """One pass over the source, every batch of it added to one of the accumulators made.

    Raises DataChanged and SourceFailed as `exact_sums` does.
    """
    source.check_unchanged()
    partitions = list(source.partitions())
    work = _Queue(partitions)
    size = sum(part.size for part in partitions)
    workers = min(threads or _threads(1 + size // source.bytes_a_thread), max(len(partitions), 1))
    with Progress(size, show=show_progress) as progress:
        accumulators = _run(work, [accumulator() for _ in range(workers)], progress)
    source.check_unchanged()
    if work.failed:
        raise SourceFailed(
            "the data could not be read to the end: the file may be damaged. The charge stays."
        )
    if source.known_rows not in (None, sum(each.rows for each in accumulators)):
        raise DataChanged("the data have changed their length since they were counted.")
    return accumulators


class _Queue:
    """Partitions handed out one at a time; empty for everyone as soon as one of them failed."""

    def __init__(self, partitions: list[Partition]) -> None:
        self._partitions = iter(partitions)
        self._lock = threading.Lock()
        self.failed = False

    def take(self) -> Partition | None:
        with self._lock:
            return None if self.failed else next(self._partitions, None)


def _run(work: _Queue, accumulators: list[Adds], progress: Progress) -> list[Adds]:
    def drain(accumulator: Adds) -> None:
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
