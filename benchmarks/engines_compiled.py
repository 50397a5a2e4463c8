"""What the compiled loops of the extra `fast` save, for the table of benchmarks/engines.py."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import muhat as mh
from benchmarks.engines_asked import BOTH, PROMISE
from muhat.data import cell_loops, distances, exact_sums, open_source
from muhat.data.base import paced
from muhat.domains import box_kernel, box_loops
from muhat.domains.lattice import BoxLattice, ColumnsLattice
from muhat.records.loader import WORTH_LOADING

ROWS, REPEATS = 10_000_000, 5
HEADER = f"{'':<44}{'numpy':>9}{'numba':>9}{'':>7}{'plain':>12}"

LOADING = """
import time
from muhat.data import cell_loops
from muhat.domains import box_loops

def peak():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

started, before = time.process_time(), peak()
box_loops.checked(), cell_loops.checked()
print(time.process_time() - started, peak() - before)
"""


class Given:
    """A loader whose loops are there, or never are."""

    def __init__(self, loops: Any) -> None:
        self._loops = loops

    def after(self, values: int) -> Any:
        return self._loops


def _give(sums: box_loops.Loops | None, cells: cell_loops.Count | None) -> None:
    """Have releases use these loops, or none."""
    box_kernel._LOADER, distances.LOADER = Given(sums), Given(cells)  # type: ignore[assignment]


@contextmanager
def in_steps_of_numpy() -> Iterator[None]:
    """No loop is loaded meanwhile, however many values come."""
    kept = box_kernel._LOADER, distances.LOADER
    _give(None, None)
    try:
        yield
    finally:
        box_kernel._LOADER, distances.LOADER = kept


def lines(parquet: Path) -> Iterator[str]:
    """CPU milliseconds of releases in numpy's steps and in loops, in turns."""
    sums, cells = box_loops.checked(), cell_loops.checked()
    if sums is None or cells is None:
        yield "numba is not installed"
        return
    generator = np.random.default_rng(21)
    values = generator.normal(50, 10, ROWS)
    table = pa.table({"height": values, "group": generator.integers(0, 10, ROWS)})
    bounds = {"height": (0, 100)}
    one = mh.Box([0], [100])
    squares = ColumnsLattice(BoxLattice.around([0, 0], [100, 100]), squares=True, counts=True)
    groups = {"by": "group", "groups": [*range(10)], "privacy": PROMISE}
    asked: dict[str, tuple[Callable[[], object], Callable[[], object] | None]] = {
        f"numpy, mean of {ROWS:,}": (
            lambda: mh.mean(values, domain=one, privacy=PROMISE, population=True),
            lambda: np.mean(values),
        ),
        f"Arrow, mean of {ROWS:,}, by group": (
            lambda: mh.mean(table, domain=bounds, **groups),
            lambda: table.group_by("group").aggregate([("height", "mean")]),
        ),
        "Parquet, mean of two columns": (
            lambda: mh.mean(str(parquet), domain=BOTH, privacy=PROMISE),
            None,
        ),
        "Parquet, the pass of that alone": (
            lambda: exact_sums(open_source(str(parquet), [*BOTH], 2), squares),
            lambda: _decoded(parquet),
        ),
        "Parquet, mean of unknown location": (
            lambda: mh.mean(
                str(parquet), domain=mh.Reals(1, 1e6), columns=["height"], privacy=PROMISE
            ),
            None,
        ),
    }
    with in_steps_of_numpy():
        for question, (release, plain) in asked.items():
            numpy, numba, bare = _taken(release, plain, (sums, cells))
            beside = "–" if bare is None else f"{1e3 * bare:.1f}"
            yield (
                f"{question:<44}{1e3 * numpy:>9.1f}{1e3 * numba:>9.1f}{numpy / numba:>6.2f}×"
                f"{beside:>12}"
            )
    done = subprocess.run(
        [sys.executable, "-c", LOADING], capture_output=True, text=True, check=True
    )
    seconds, mib = map(float, done.stdout.split())
    loading = f"{1e3 * seconds:.0f} ms and {mib:.0f} MiB"
    yield f"loading, once compiled: {loading}, after {WORTH_LOADING:,} values"


def _decoded(parquet: Path) -> None:
    """The columns that a mean of two is of, by pyarrow."""
    with pq.ParquetFile(parquet) as file:
        for _ in file.iter_batches(1 << 16, columns=[*BOTH], use_threads=False):
            pass


def _taken(
    release: Callable[[], object],
    plain: Callable[[], object] | None,
    loops: tuple[box_loops.Loops, cell_loops.Count],
) -> tuple[float, float, float | None]:
    taken: tuple[list[float], list[float], list[float]] = ([], [], [])
    with paced(threads=1, show_progress=False):
        for turn in range(REPEATS + 1):
            for place, work in enumerate((release, release, plain)):
                if work is None:
                    continue
                _give(*(loops if place == 1 else (None, None)))
                start = time.process_time()
                work()
                if turn:
                    taken[place].append(time.process_time() - start)
    numpy, numba, bare = (statistics.median(times) if times else None for times in taken)
    assert numpy is not None
    assert numba is not None
    return numpy, numba, bare
