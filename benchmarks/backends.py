"""What a release costs on backends of Ibis beside their own averages, and beside their rows.

    python -m benchmarks.backends [--rows N] [--write]

A million rows in ClickHouse (chDB, in this process) and in MariaDB. CPU time of all processes, in
turns, the median of five: the backend's own query, muhat's whole release with intervals, in the
backend's SQL and of rows that muhat reads. A release of ten rows says what the trial of public rows
costs. `--write` writes benchmarks/results/backends.md.
"""

from __future__ import annotations

import math
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import muhat as mh
from benchmarks.ibis_backends import NAMES, connected, why_not
from benchmarks.pages import fenced, from_shell, shown, versions
from benchmarks.scale_processes import cpu_seconds
from muhat.data import ibis_source

ROWS, REPEATS, FEW, AT_ONCE = 1_000_000, 5, 10, 20_000
LEAST_SECONDS = 0.3
PAGE = Path(__file__).parent / "results" / "backends.md"
CALLED = {"clickhouse": "ClickHouse", "mysql": "MariaDB"}
SEXES = np.array(["f", "m", "x"])

Work = Callable[[], object]


def main(rows: int = ROWS, written: bool = False) -> None:
    """Measure, print, and write the page if asked to."""
    missing = [why for name in NAMES if (why := why_not(name)) is not None]
    print("\n".join(missing))
    header = f"{'CPU milliseconds':<42} {'its own':>9} {'in SQL':>9} {'ratio':>6} {'read':>9}"
    lines = shown(f"releases of {rows:,} rows in backends of Ibis", header, _lines(rows))
    if written and not missing:
        _write(lines, rows)


def _lines(rows: int) -> Iterator[str]:
    for name in NAMES:
        if why_not(name) is not None:
            continue
        with warnings.catch_warnings(), connected(name) as backend:
            warnings.simplefilter("ignore")
            for size, words in ((rows, ""), (FEW, f", {FEW} rows")):
                people = _people(backend, f"people{size}", size)
                for what, (own, release) in _asked(people).items():
                    taken = _medians([own, release, _reading(release)])
                    ratio = taken[1] / taken[0]
                    line = f"{f'{CALLED[name]}: {what}{words}':<42} {taken[0]:>9.1f} "
                    yield line + f"{taken[1]:>9.1f} {ratio:>6.1f} {taken[2]:>9.1f}"


def _people(backend: Any, name: str, rows: int) -> Any:
    random = np.random.default_rng(5)
    data = pa.table(
        {
            "age": random.uniform(16, 90, rows),
            "pay": random.lognormal(10, 1, rows),
            "sex": SEXES[random.integers(0, 3, rows)],
        }
    )
    columns = f"CREATE TABLE {name} (age DOUBLE PRECISION, pay DOUBLE PRECISION, sex "
    if backend.name == "clickhouse":
        backend.raw_sql(f"{columns} String) ENGINE = MergeTree ORDER BY tuple()")
        backend.con.insert_arrow(name, data)
        return backend.table(name)
    with backend.con.cursor() as cursor:
        cursor.execute(f"{columns} VARCHAR(3))")
        for part in data.to_batches(max_chunksize=AT_ONCE):
            values = list(zip(*(column.to_pylist() for column in part.columns), strict=True))
            cursor.executemany(f"INSERT INTO {name} VALUES (%s, %s, %s)", values)
    backend.con.commit()
    return backend.table(name)


def _asked(people: Any) -> dict[str, tuple[Work, Work]]:
    promise = mh.ZCDP(rho=0.1)
    bounds: Any = {"age": (16, 90), "pay": (0, 200_000)}
    age: Any = {"columns": ["age"], "domain": mh.Box([16], [90])}
    return {
        "mean of two columns": (
            lambda: people.agg(a=people.age.mean(), b=people.pay.mean()).to_pyarrow(),
            lambda: mh.mean(people, domain=bounds, privacy=promise),
        ),
        "mean by group": (
            lambda: people.group_by("sex").agg(a=people.age.mean()).to_pyarrow(),
            lambda: mh.mean(people, **age, by="sex", groups=SEXES.tolist(), privacy=promise),
        ),
    }


def _reading(release: Work) -> Work:
    """The same by a backend that shows nothing."""

    def read() -> object:
        before = ibis_source.IbisSource._is_shown
        ibis_source.IbisSource._is_shown = lambda *_: False  # type: ignore[method-assign]
        try:
            return release()
        finally:
            ibis_source.IbisSource._is_shown = before  # type: ignore[method-assign]

    return read


def _medians(works: list[Work]) -> list[float]:
    """CPU milliseconds of each, in turns after one that warms up.

    Linux counts in steps of ten milliseconds: what takes less is done so often that it counts.
    """
    times = [math.ceil(LEAST_SECONDS / max(_wall(work), 1e-6)) for work in works]
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(REPEATS):
        for place, work in enumerate(works):
            before = cpu_seconds([os.getpid()])
            for _ in range(times[place]):
                work()
            taken[place].append(1e3 * (cpu_seconds([os.getpid()]) - before) / times[place])
    return [statistics.median(each) for each in taken]


def _wall(work: Work) -> float:
    """The seconds that the second run takes."""
    work()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _write(lines: list[str], rows: int) -> None:
    PAGE.write_text(
        "# Releases on backends of Ibis\n\n"
        f"`python -m benchmarks.backends --write`, {rows:,} rows, CPU time of all processes, the "
        f"server's, too, in turns, the median of {REPEATS}. {versions()}.\n\n"
        "“Its own” is the backend's query without privacy. “In SQL” is muhat's whole release, with "
        "deviations and numbers of recorded values for its intervals, and with the trial of public "
        f"rows, which is nearly all that a release of {FEW} rows takes. “Read” is the same release "
        "of rows that muhat reads. All of it is on this machine: no network carries rows.\n\n"
        f"{fenced(lines)}"
    )


if __name__ == "__main__":
    from_shell(main, ROWS)
