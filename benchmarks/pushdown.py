"""What sums of DuckDB's rows cost beside DuckDB's own averages of the same columns.

    python -m benchmarks.pushdown [--rows N] [--write]

Two million rows, in a Parquet file and in a table of DuckDB's. muhat is the pass alone, as DuckDB
is: the exact sums of a mean, of rows that DuckDB reads (without and with the compiled loops of the
extra `fast`), in SQL, and by the embedded engine. CPU time, one thread, in turns, the median of
five. `--write` writes benchmarks/results/pushdown.md.
"""

from __future__ import annotations

import importlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.engines_compiled import Given
from benchmarks.pages import fenced, from_shell, shown, versions
from muhat.data import duckdb, exact_sums, open_source
from muhat.data.base import paced
from muhat.data.categories import categories_of
from muhat.data.groups import open_groups
from muhat.domains import box_kernel, box_loops
from muhat.domains.lattice import BoxLattice, ColumnsLattice

ROWS, REPEATS = 2_000_000, 5
PAGE = Path(__file__).parent / "results" / "pushdown.md"
REGIONS = ["east", "north", "south", "west"]
BOX = BoxLattice.around([0, 16], [200_000, 90])
SALARY = BoxLattice.around([0], [200_000])
GROUPS = categories_of({"region": REGIONS})

Work = Callable[[], object]


def main(rows: int = ROWS, written: bool = False) -> None:
    """Measure, print, and write the page if asked to."""
    try:
        library = importlib.import_module("duckdb")
    except ImportError:
        print("DuckDB is not installed (pip install duckdb): nothing is compared.")
        return
    with tempfile.TemporaryDirectory() as folder, library.connect() as connection:
        path = Path(folder) / "people.parquet"
        pq.write_table(people(rows), path)
        connection.execute("SET threads = 1")
        connection.read_parquet(str(path)).create("people")
        header = f"{'':<44} {'DuckDB':>8}"
        header += "".join(f" {name:>8} {'ratio':>6}" for name in ("read", "fast", "in SQL", "here"))
        title = f"sums of DuckDB's rows, {rows:,} rows, CPU seconds"
        lines = shown(title, header, _lines(connection, path))
    if written:
        _write(lines, rows, library.__version__)


def _lines(connection: Any, path: Path) -> Iterator[str]:
    for where, name, relation in (
        ("Parquet", f"'{path}'", connection.read_parquet(str(path))),
        ("table", "people", connection.table("people")),
    ):
        file = path if where == "Parquet" else None
        for what, works in _works(connection, name, relation, file).items():
            yield _line(f"{where}: {what}", works)


def people(rows: int) -> pa.Table:
    """Salaries, ages and regions."""
    random = np.random.default_rng(20)
    return pa.table(
        {
            "salary": random.lognormal(10.5, 0.6, rows),
            "age": random.integers(16, 90, rows).astype(float),
            "region": pa.array(np.array(REGIONS)[random.integers(0, 4, rows)]),
        }
    )


def _works(
    connection: Any, name: str, relation: Any, file: Path | None
) -> dict[str, tuple[Work, Work, Work | None]]:
    """What is asked of DuckDB, of muhat, and of muhat's embedded engine if it has a file."""

    def peer(query: str) -> Work:
        return lambda: connection.execute(query.format(name)).fetchall()

    def ours(lattice: Any, columns: list[str]) -> tuple[Work, Work | None]:
        source = open_source(relation, columns, len(columns))
        here = None if file is None else open_source(file, columns, len(columns))
        return lambda: exact_sums(source, lattice), here and (lambda: exact_sums(here, lattice))

    def grouped(data: Any) -> Work:
        source = open_groups(data, ["salary"], ["region"], GROUPS, dim=1)
        return lambda: source.sums(SALARY)

    both = ["salary", "age"]
    every = ColumnsLattice(BOX, squares=True, counts=True)
    deviations = "avg(salary), avg(age), stddev(salary), stddev(age), count(salary), count(age)"
    return {
        "mean of two columns": (peer("SELECT avg(salary), avg(age) FROM {}"), *ours(BOX, both)),
        "and their deviations and counts": (
            peer(f"SELECT {deviations} FROM {{}}"),
            *ours(every, both),
        ),
        "mean of a column by group": (
            peer("SELECT region, avg(salary) FROM {} GROUP BY region"),
            grouped(relation),
            None if file is None else grouped(file),
        ),
    }


def _line(what: str, works: tuple[Work, Work, Work | None]) -> str:
    peer, pushed, here = works
    loops = box_loops.checked()
    # The work, whether it is in SQL, and its loops.
    ways = [(peer, False, None), (pushed, False, None), (pushed, False, loops)]
    ways += [(pushed, True, None)] + [(here, False, None)] * (here is not None)
    measured: list[list[float]] = [[] for _ in ways]
    kept = box_kernel._LOADER, duckdb.FEW_THREADS
    try:
        with paced(threads=1, show_progress=False):
            for repeat in range(REPEATS + 1):
                for times, (work, in_sql, given) in zip(measured, ways, strict=True):
                    box_kernel._LOADER = Given(given)
                    duckdb.FEW_THREADS = 0 if in_sql else kept[1]
                    start = time.process_time()
                    work()
                    # The first of all is to warm up.
                    if repeat:
                        times.append(time.process_time() - start)
    finally:
        box_kernel._LOADER, duckdb.FEW_THREADS = kept
    first, *others = map(statistics.median, measured)
    return f"{what:<44} {first:>8.4f}" + "".join(
        f" {other:>8.4f} {other / first:>6.2f}" for other in others
    )


def _write(lines: list[str], rows: int, made: str) -> None:
    PAGE.write_text(
        "# Sums of DuckDB's rows beside DuckDB's averages\n\n"
        f"`python -m benchmarks.pushdown --write`, {rows:,} rows, one thread, CPU seconds, in "
        f"turns, the median of {REPEATS}. {versions()}, DuckDB {made}.\n\n"
        "“Read” is what muhat does where DuckDB has few threads: DuckDB reads, the kernels add up; "
        "“fast” the same by the compiled loops of the extra `fast`, once they are loaded. “In "
        "SQL”, which many threads share, is DuckDB at the exact integers of every record, “here” "
        "the embedded engine at the same file.\n\n" + fenced(lines)
    )


if __name__ == "__main__":
    from_shell(main, ROWS)
