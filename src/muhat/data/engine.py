"""The embedded engine: a small pool of threads, one pass over the data, exact sums."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from muhat.data.base import Partition, Source
from muhat.data.kernel import Accumulator
from muhat.data.progress import Progress
from muhat.domains.lattice import Lattice
from muhat.errors import DataChanged, InvalidInput, SourceFailed

MOST_THREADS = 4


@dataclass(frozen=True)
class Sums:
    """Σ q of every coordinate, and the records counted. It is data: never show it."""

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
    if source.dim != lattice.dim:
        raise InvalidInput(f"the data have {source.dim} columns, the domain {lattice.dim}.")
    source.check_unchanged()
    partitions = list(source.partitions())
    work = _Queue(partitions)
    workers = min(threads or _threads(), max(len(partitions), 1))
    with Progress(sum(part.size for part in partitions), show=show_progress) as progress:
        accumulators = _run(work, lattice, missing, workers, progress)
    source.check_unchanged()
    if work.failed:
        raise SourceFailed(
            "the data could not be read to the end. `muhat check` shows the data's owner why."
        )
    if source.known_rows not in (None, sum(each.rows for each in accumulators)):
        raise DataChanged("the data have changed their length since they were counted.")
    total = tuple(sum(parts) for parts in zip(*(each.total for each in accumulators), strict=True))
    return Sums(total, sum(each.counted for each in accumulators))
