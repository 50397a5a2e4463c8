"""The embedded engine: a small pool of threads that share the units of work of a source."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from muhat.data.progress import Progress

if TYPE_CHECKING:
    from muhat.data.base import Added, Partition, PartitionedSource

MOST_THREADS = 4


def fold_partitions(
    source: PartitionedSource,
    accumulator: Callable[[], Added],
    *,
    show_progress: bool,
    threads: int | None,
) -> list[Added] | None:
    """One pass over all partitions, an accumulator a thread; None if one could not be read."""
    partitions = list(source.partitions())
    work = _Queue(partitions)
    size = sum(part.size for part in partitions)
    workers = min(threads or _threads(1 + size // source.bytes_a_thread), max(len(partitions), 1))
    with Progress(size, show=show_progress) as progress:
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
