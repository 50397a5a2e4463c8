"""What a set of statistics costs beside DuckDB's answers to the same questions without privacy.

    python -m benchmarks.sets [--rows N] [--write]

Ten million rows in a Parquet file, eight statistics by three columns of groups. muhat's is the
whole release: the plan, the pass and the noise. DuckDB is asked twice, by eight queries as one
writes them and by one with GROUPING SETS written for this set, with as many threads. CPU time, in
turns, the median of three. Without DuckDB only muhat is measured. `--write` writes
benchmarks/results/sets.md.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import muhat as mh
from benchmarks.pages import fenced, shown, versions

ROWS, REPEATS, THREADS = 10**7, 3, 2
MOST = 3.0
"""The CPU time of a release must not be more times that of DuckDB."""

PAGE = Path(__file__).parent / "results" / "sets.md"
REGIONS = [f"region {number:02d}" for number in range(16)]
SCHEMA = mh.Schema(
    {
        "income": (0, 200_000),
        "age": (16, 90),
        "hours": (0, 80),
        "region": REGIONS,
        "sex": ["f", "m"],
        "band": [*range(8)],
    },
    complete=["age", "hours", "region", "sex", "band"],
)
ASKED = [
    mh.Count(by=["region", "sex"]),
    mh.Count(by=["region", "sex", "band"]),
    mh.Mean("income", by="region"),
    mh.Mean("income", by=["sex", "band"]),
    mh.Mean("age", by=["region", "sex"]),
    mh.Variance("income", by="sex"),
    mh.Covariance(["income", "age"], by="region"),
    mh.Regression("income ~ age + hours"),
]
QUERIES = [
    "select region, sex, count(*) from {} group by all",
    "select region, sex, band, count(*) from {} group by all",
    "select region, avg(income), count(income) from {} group by all",
    "select sex, band, avg(income), count(income) from {} group by all",
    "select region, sex, avg(age), count(age) from {} group by all",
    "select sex, var_samp(income) from {} group by all",
    "select region, covar_samp(income, age) from {} group by all",
    "select count(*), sum(income), sum(age), sum(hours), sum(income * age), sum(income * hours), "
    "sum(age * hours), sum(age * age), sum(hours * hours), sum(income * income) from {} "
    "where income is not null",
]
"""The same statistics, one query each; the regression by its sums."""

TOGETHER = (
    "select region, sex, band, count(*), avg(income), count(income), avg(age), var_samp(income), "
    "covar_samp(income, age), sum(hours), sum(income * hours), sum(age * hours), "
    "sum(hours * hours), sum(age * age) from {} group by grouping sets "
    "((region, sex), (region, sex, band), (region), (sex, band), (sex), ())"
)
"""All of them in one pass, and more than was asked for of every set of groups."""


def main(rows: int = ROWS, written: bool = False) -> None:
    """Print the table, and write it if asked to."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        write_people(path, rows)
        seconds = _measured(path)
    title = f"{len(ASKED)} statistics of {rows:,} rows by 3 columns of groups"
    lines = shown(title, f"{'':<32} {'CPU s':>8} {'muhat ÷ it':>11}", _lines(seconds))
    peer = _duckdb()
    if peer is None:
        print("DuckDB is not installed (pip install duckdb): nothing is compared.")
    elif seconds["muhat"] > MOST * seconds["DuckDB, eight queries"]:
        raise SystemExit(f"a release took more than {MOST:g} times the CPU time of DuckDB")
    if written:
        made = versions() + ("" if peer is None else f", DuckDB {peer.__version__}")
        PAGE.write_text(f"{_words(title, made)}\n{fenced(lines)}")


def write_people(path: Path, rows: int) -> None:
    """Incomes of which a few are missing, two other numbers, and three columns of groups."""
    generator, written = np.random.default_rng(0), 0
    writer: pq.ParquetWriter | None = None
    while written < rows:
        n = min(1 << 20, rows - written)
        table = pa.table(
            {
                "region": pa.array(np.array(REGIONS)[generator.integers(0, 16, n)]),
                "sex": pa.array(np.array(["f", "m"])[generator.integers(0, 2, n)]),
                "band": pa.array(generator.integers(0, 8, n)),
                "income": pa.array(
                    np.round(generator.lognormal(10.5, 0.7, n), 2), mask=generator.random(n) < 0.03
                ),
                "age": pa.array(generator.integers(16, 90, n)),
                "hours": pa.array(np.round(generator.normal(38, 9, n), 1)),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
        written += n
    if writer is not None:
        writer.close()


def _measured(path: Path) -> dict[str, float]:
    """The median CPU seconds of each, taken in turns."""
    works: dict[str, Callable[[], object]] = {"muhat": lambda: _release(path)}
    library = _duckdb()
    if library is not None:
        connection = library.connect()
        connection.execute(f"set threads = {THREADS}")
        works["DuckDB, eight queries"] = lambda: _answers(connection, QUERIES, path)
        works["DuckDB, one with GROUPING SETS"] = lambda: _answers(connection, [TOGETHER], path)
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(REPEATS):
        for name, work in works.items():
            start = time.process_time()
            work()
            taken[name].append(time.process_time() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def _release(path: Path) -> mh.Release:
    """From the question to the answers."""
    plan = mh.plan(ASKED, schema=SCHEMA, privacy=mh.ZCDP(rho=0.5), n=None)
    return plan.release(path)


def _answers(connection: Any, queries: list[str], path: Path) -> None:
    for query in queries:
        connection.execute(query.format(f"'{path}'")).fetchall()


def _duckdb() -> Any:
    try:
        return importlib.import_module("duckdb")
    except ImportError:
        return None


def _lines(seconds: dict[str, float]) -> list[str]:
    own = seconds["muhat"]
    return [f"{name:<32} {taken:>8.2f} {own / taken:>11.2f}" for name, taken in seconds.items()]


def _words(title: str, made: str) -> str:
    return (
        "# Sets of statistics beside DuckDB\n\n"
        f"Made by `python -m benchmarks.sets --write` with {made}; {THREADS} threads.\n\n"
        f"{title}: two counts, three means, a variance, a covariance and a regression. muhat's is "
        "the whole release, plan, pass and noise, with intervals; DuckDB's are the exact numbers. "
        f"CPU time, the median of {REPEATS} in turns, from a Parquet file.\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    main(chosen.rows, chosen.write)
