"""The table that benchmarks/engines.py asks about, and how every library answers its questions."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import muhat as mh

PROMISE = mh.ZCDP(rho=0.1)
GROUPS = [*"abcdefgh"]
SCHEMA = mh.Schema({"count": [*range(100)]}, complete=["count"])
BOTH = {"height": (0, 100), "weight": (0, 100)}
RELATION = "relation"
"""muhat at a relation of DuckDB's over a file."""

_CHUNK_ROWS = 1 << 20

Work = Callable[[], object]
"""One answer, with all that it takes but imports."""


def write_rows(path: Path, rows: int, columns: list[str] | None = None) -> None:
    """Two columns that are averaged, a whole number, a group, and two that nobody asks for."""
    generator = np.random.default_rng(20)
    schema = _table(generator, 1, columns).schema
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, _CHUNK_ROWS):
            writer.write_table(_table(generator, min(rows - start, _CHUNK_ROWS), columns))


def _table(generator: np.random.Generator, rows: int, columns: list[str] | None) -> pa.Table:
    made = {
        "height": generator.normal(50, 10, rows),
        "weight": generator.uniform(0, 100, rows),
        "count": generator.integers(0, 100, rows),
        "group": pa.array(np.array(GROUPS)[generator.integers(0, len(GROUPS), rows)]),
        "first": generator.normal(0, 1, rows),
        "second": generator.normal(0, 1, rows),
    }
    return pa.table({name: made[name] for name in columns or made})


def write_text(parquet: Path, text: Path) -> None:
    """The same rows as CSV."""
    pa_csv.write_csv(pq.read_table(parquet), text)


def write_quoted(parquet: Path, text: Path) -> None:
    """The same rows as CSV, with a word that is quoted, every third time over two lines."""
    table = pq.read_table(parquet)
    words = np.array(['of "three" lines, the first', "and\nmore, the second", "the last, one"])
    said = pa.array(words[np.arange(len(table)) % len(words)])
    pa_csv.write_csv(table.append_column("said", said), text)


def questions(parquet: Path, text: Path, quoted: Path) -> dict[str, dict[str, Work]]:
    """What is asked, and the work of each library that is installed and has an answer."""
    columns = [*BOTH]
    by_group: dict[str, Any] = {"by": "group", "groups": GROUPS, "privacy": PROMISE}
    median: dict[str, Any] = {"columns": ["height"], "lower": 0, "upper": 100, "privacy": PROMISE}
    counted = mh.plan([mh.Count(by="count")], schema=SCHEMA, privacy=PROMISE)
    known: dict[str, Any] = {"domain": BOTH, "privacy": PROMISE}
    unknown: dict[str, Any] = {
        "domain": mh.Reals(1, 1e6),
        "columns": ["height"],
        "privacy": PROMISE,
    }
    averages = "select avg(height), avg(weight) from {}"

    def two_of_text(path: Path) -> dict[str, Work]:
        return {
            **_muhat(path, lambda data: mh.mean(data, **known)),
            **_duckdb(path, averages),
            **_polars(path, lambda frame, pl: frame.select(pl.col(columns).mean())),
            **_arrow(path, columns, lambda table: [pc.mean(each) for each in table.columns]),
        }

    return {
        "Parquet, mean of two columns": {
            **_muhat(parquet, lambda data: mh.mean(data, **known)),
            **_duckdb(parquet, averages),
            **_polars(parquet, lambda frame, pl: frame.select(pl.col(columns).mean())),
            **_arrow(parquet, columns, lambda table: [pc.mean(each) for each in table.columns]),
        },
        "Parquet, sum of two columns": {
            **_muhat(parquet, lambda data: mh.sum(data, **known)),
            **_duckdb(parquet, "select sum(height), sum(weight) from {}"),
            **_polars(parquet, lambda frame, pl: frame.select(pl.col(columns).sum())),
            **_arrow(parquet, columns, lambda table: [pc.sum(each) for each in table.columns]),
        },
        "Parquet, histogram": {
            **_muhat(parquet, counted.release),
            **_duckdb(parquet, 'select "count", count(*) from {} group by all'),
            **_polars(parquet, lambda frame, pl: frame.group_by("count").agg(pl.len())),
            **_arrow(parquet, ["count"], lambda table: pc.value_counts(table["count"])),
        },
        "Parquet, mean by group": {
            **_muhat(parquet, lambda data: mh.mean(data, domain={"height": (0, 100)}, **by_group)),
            **_duckdb(parquet, 'select "group", avg(height) from {} group by all'),
            **_polars(
                parquet, lambda frame, pl: frame.group_by("group").agg(pl.col("height").mean())
            ),
            **_arrow(
                parquet,
                ["group", "height"],
                lambda t: t.group_by("group", use_threads=False).aggregate([("height", "mean")]),
            ),
        },
        "Parquet, median": {
            **_muhat(parquet, lambda data: mh.quantile(data, 0.5, **median)),
            **_duckdb(parquet, "select median(height) from {}"),
            **_polars(parquet, lambda frame, pl: frame.select(pl.col("height").median())),
            **_arrow(parquet, ["height"], lambda table: pc.quantile(table["height"])),
        },
        "Parquet, mean of unknown location": {
            **_muhat(parquet, lambda data: mh.mean(data, **unknown)),
            **_one_mean(parquet),
        },
        "CSV, mean of two columns": two_of_text(text),
        "CSV with quoted line breaks, the same": two_of_text(quoted),
        "CSV, mean of unknown location": {
            **_muhat(text, lambda data: mh.mean(data, **unknown)),
            **_one_mean(text),
        },
    }


def _one_mean(path: Path) -> dict[str, Work]:
    return {
        **_duckdb(path, "select avg(height) from {}"),
        **_polars(path, lambda frame, pl: frame.select(pl.col("height").mean())),
        **_arrow(path, ["height"], lambda table: pc.mean(table["height"])),
    }


def _muhat(path: Path, ask: Callable[[Any], object]) -> dict[str, Work]:
    """The file, and where its columns have types of their own a relation of DuckDB's over it."""
    works: dict[str, Work] = {"muhat": lambda: ask(str(path))}
    library = installed("duckdb")
    if library is not None and path.suffix == ".parquet":
        connection = _connection(library)
        works[RELATION] = lambda: ask(connection.read_parquet(str(path)))
    return works


def _duckdb(path: Path, query: str) -> dict[str, Work]:
    library = installed("duckdb")
    if library is None:
        return {}
    connection = _connection(library)
    return {"DuckDB": lambda: connection.execute(query.format(f"'{path}'")).fetchall()}


def _connection(library: Any) -> Any:
    connection = library.connect()
    connection.execute("SET threads = 1")
    return connection


def _polars(path: Path, ask: Callable[[Any, Any], Any]) -> dict[str, Work]:
    library = installed("polars")
    if library is None:
        return {}
    scan = library.scan_csv if path.suffix == ".csv" else library.scan_parquet
    return {"polars": lambda: ask(scan(path), library).collect()}


def _arrow(path: Path, columns: list[str], ask: Callable[[Any], object]) -> dict[str, Work]:
    def read() -> Any:
        if path.suffix != ".csv":
            return pq.read_table(path, columns=columns, use_threads=False)
        wanted = pa_csv.ConvertOptions(include_columns=columns)
        options = pa_csv.ReadOptions(use_threads=False)
        parsed = pa_csv.ParseOptions(newlines_in_values="quoted" in path.name)
        return pa_csv.read_csv(
            path, read_options=options, parse_options=parsed, convert_options=wanted
        )

    return {"pyarrow": lambda: ask(read())}


def installed(name: str) -> Any:
    """The module, None if there is none."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
