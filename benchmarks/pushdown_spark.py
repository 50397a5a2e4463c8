"""What sums on Spark cost beside Spark's own averages: in its own SQL, and in its Python workers.

    python -m benchmarks.pushdown_spark [--rows N] [--write]

Ten million rows of Parquet files, on a master and two workers of one core each on this machine.
muhat is the pass alone, as Spark is. CPU time of all processes, Java's included, in turns, the
median of five after five that warm up. Then what a partition costs the driver: six hundred of a
few rows beside a hundred. `--write` writes benchmarks/results/pushdown_spark.md.
"""

from __future__ import annotations

import importlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.pages import fenced, from_shell, shown, versions
from benchmarks.pushdown import BOX, GROUPS, SALARY, people
from benchmarks.scale_processes import family
from muhat.data import exact_sums, open_source
from muhat.data.groups import open_groups
from muhat.demo.cluster import local_session
from muhat.domains.lattice import BoxLattice, ColumnsLattice

ROWS, REPEATS, WARM = 10_000_000, 5, 5
PARTITIONS = (100, 600)
TEN = [f"x{place}" for place in range(10)]
CHUNK_ROWS = 1 << 20
PAGE = Path(__file__).parent / "results" / "pushdown_spark.md"
MOST, MOST_PARTITION = 2.0, 0.5
"""How many times Spark's CPU time sums in SQL may take, and milliseconds a partition on the driver.

The latter beyond those that Spark takes for a partition of a query of its own.
"""
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.executor.memory": "1g",
}

Work = Callable[[], object]
Works = tuple[Work, Work, Work]
"""Spark's own query, and muhat's sums in SQL and by Python workers."""


def main(rows: int = ROWS, written: bool = False) -> None:
    """Measure, print, and write the page if asked to."""
    try:
        library = importlib.import_module("pyspark")
    except ImportError:
        print("Spark is not installed (pip install pyspark): nothing is compared.")
        return
    with tempfile.TemporaryDirectory() as folder, local_session(SETTINGS) as session:
        path, wide = Path(folder) / "people.parquet", Path(folder) / "wide.parquet"
        pq.write_table(people(rows), path)
        _write_wide(wide, rows)
        frames = [session.read.parquet(str(each)) for each in (path, wide)]
        header = f"{'CPU seconds':<40} {'Spark':>8} {'in SQL':>8} {'ratio':>6} {'Python':>8} "
        header += f"{'ratio':>6}"
        ratios: dict[str, float] = {}
        passes = shown(f"sums on Spark, {rows:,} rows", header, _passes(*frames, ratios))
        header = f"{'CPU of the driver':<40} {'Spark':>8} {'in SQL':>8} {'':>6} {'Python':>8}"
        each: list[float] = []
        parts = shown("sums on Spark, by partitions", header, _partitions(session, each))
        verdicts = shown("in one sentence each", "", _verdicts(ratios, each))[1:]
    if written:
        _write([*passes, "", *parts], verdicts, rows, library.__version__)


def _write_wide(path: Path, rows: int) -> None:
    random = np.random.default_rng(21)
    schema = pa.schema([(name, pa.float64()) for name in TEN])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK_ROWS):
            more = min(CHUNK_ROWS, rows - start)
            made = {name: random.lognormal(10.5, 0.6, more) for name in TEN}
            writer.write_table(pa.table(made))


def _passes(frame: Any, wide: Any, ratios: dict[str, float]) -> Iterator[str]:
    for what, works in _works(frame, wide).items():
        medians = _medians(works, _everybody, REPEATS)
        ratios[what] = medians[0][1] / medians[0][0]
        for unit, (peer, pushed, python) in zip(("", ", wall"), medians, strict=True):
            line = f"{what + unit:<40} {peer:>8.2f} {pushed:>8.2f} {pushed / peer:>6.2f}"
            yield f"{line} {python:>8.2f} {python / peer:>6.2f}"


def _works(frame: Any, wide: Any) -> dict[str, Works]:
    both, averages = ["salary", "age"], "avg(salary), avg(age)"
    deviations = f"{averages}, stddev(salary), stddev(age), count(salary), count(age)"
    money = frame.selectExpr("CAST(salary AS DECIMAL(12, 2)) AS salary")
    multiples = frame.selectExpr(*(f"salary * {k + 1}D AS {name}" for k, name in enumerate(TEN)))
    box, averaged = BoxLattice.around([0] * 10, [200_000] * 10), ", ".join(f"avg({x})" for x in TEN)

    def grouped(in_sql: bool) -> Work:
        source = open_groups(frame, ["salary"], ["region"], GROUPS, dim=1)
        if not in_sql:
            _through_python(source._source)
        return lambda: source.sums(SALARY)

    return {
        "mean of two columns": _summed(frame, averages, both, BOX),
        "and their deviations and counts": _summed(
            frame, deviations, both, ColumnsLattice(BOX, squares=True, counts=True)
        ),
        "mean of ten columns": _summed(wide, averaged, TEN, box),
        "mean of ten multiples of one column": _summed(multiples, averaged, TEN, box),
        "mean of a column of decimals": _summed(money, "avg(salary)", ["salary"], SALARY),
        "mean of a column by group": (
            lambda: frame.groupBy("region").agg({"salary": "avg"}).collect(),
            grouped(True),
            grouped(False),
        ),
    }


def _summed(frame: Any, query: str, columns: list[str], lattice: Any) -> Works:
    listed = query.split(", ")
    pushed, python = (open_source(frame, columns, len(columns)) for _ in range(2))
    _through_python(python)
    return (
        lambda: frame.selectExpr(*listed).collect(),
        lambda: exact_sums(pushed, lattice),
        lambda: exact_sums(python, lattice),
    )


def _through_python(source: Any) -> None:
    """Have a source know no SQL for any of its columns."""
    source._sql = [None for _ in source._sql]


def _partitions(session: Any, each: list[float]) -> Iterator[str]:
    java = int(session._jvm.java.lang.ProcessHandle.current().pid())
    every = []
    for parts in PARTITIONS:
        frame = session.range(0, 4 * parts, 1, parts).selectExpr("id / 4D AS salary", "2D AS age")
        works = _summed(frame, "avg(salary), avg(age)", ["salary", "age"], BOX)
        cpu, _ = _medians(works, lambda: _of_these({os.getpid(), java}), REPEATS)
        every.append(cpu)
        peer, pushed, python = cpu
        yield f"{f'{parts} partitions, seconds':<40} {peer:>8.2f} {pushed:>8.2f} {python:>15.2f}"
    few, lots = every
    more = (PARTITIONS[1] - PARTITIONS[0]) / 1000
    each += [(b - a) / more for a, b in zip(few, lots, strict=True)]
    peer, pushed, python = each
    yield f"{'a partition, milliseconds':<40} {peer:>8.2f} {pushed:>8.2f} {python:>15.2f}"


def _verdicts(ratios: dict[str, float], each: list[float]) -> Iterator[str]:
    more = [f"{what} ({ratio:.2f})" for what, ratio in ratios.items() if ratio > MOST]
    yield (
        f"- In SQL {len(ratios) - len(more)} of {len(ratios)} passes take at most {MOST:g} times "
        f"the CPU time of Spark's averages" + f"; more: {', '.join(more)}" * bool(more) + "."
    )
    peer, pushed, _ = each
    met = "yes" if pushed - peer <= MOST_PARTITION else "no"
    yield (
        f"- A partition takes {pushed - peer:.2f} ms of the driver beyond the {peer:.2f} that "
        f"Spark takes for one of its own query; at most {MOST_PARTITION:g}: {met}."
    )


def _medians(
    works: Works, clock: Callable[[], float], repeats: int
) -> tuple[Sequence[float], Sequence[float]]:
    """The CPU and the wall seconds of each, measured in turns."""
    cpu: list[list[float]] = [[] for _ in works]
    wall: list[list[float]] = [[] for _ in works]
    for repeat in range(repeats + WARM):
        for place, work in enumerate(works):
            started, before = time.perf_counter(), clock()
            work()
            if repeat >= WARM:
                cpu[place].append(clock() - before)
                wall[place].append(time.perf_counter() - started)
    return [statistics.median(each) for each in cpu], [statistics.median(each) for each in wall]


def _everybody() -> float:
    return sum(process.seconds for process in family([os.getpid()]))


def _of_these(pids: set[int]) -> float:
    return sum(process.seconds for process in family(pids) if process.pid in pids)


def _write(lines: list[str], verdicts: list[str], rows: int, made: str) -> None:
    PAGE.write_text(
        "# Sums on Spark beside its own averages\n\n"
        f"`python -m benchmarks.pushdown_spark --write`, {rows:,} rows of Parquet files, a master "
        "and two workers of one core each, CPU seconds of all processes (Java's, too), and wall "
        f"time, in turns, warm, the median of {REPEATS}. {versions()}, Spark {made}.\n\n"
        "“In SQL” is Spark at the exact integers of every record, “Python” the embedded engine in "
        "Spark's Python workers.\n\n" + fenced(lines) + "\n" + "\n".join(verdicts) + "\n"
    )


if __name__ == "__main__":
    from_shell(main, ROWS)
