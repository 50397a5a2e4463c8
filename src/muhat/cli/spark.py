"""`--engine`: who reads the data, for commands that take any; and tables that Spark reads."""

from __future__ import annotations

import functools
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import click

from muhat.cli.options import data_from, delimiter_option
from muhat.data.files import delimiter_from
from muhat.errors import InvalidInput

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
"""The pages that Spark serves show how many rows there are, and its log quotes what it reads."""

PORTS = {"spark": 7077, "sc": 15002}
PROXIES = {"grpc_proxy", "https_proxy", "http_proxy"}
PATIENCE_SECONDS = 20

DATABASES = ("duckdb", "postgres")
"""Engines that add up in SQL."""


@dataclass(frozen=True)
class ChosenEngine:
    """Where records are read, and how: the options, as they were typed."""

    name: str
    master: str | None
    table_format: str | None
    materialize: str | None
    conf: tuple[str, ...]
    delimiter: str | None
    database: str | None = None

    @contextmanager
    def opened(self, files: tuple[str, ...]) -> Iterator[Any]:
        """What the library takes as data; a session that was started for it ends with it."""
        self._check()
        if self.name == "embedded":
            yield data_from(files, self.delimiter)
            return
        if "-" in files:
            raise InvalidInput(
                f"- is standard input of this machine: leave --engine {self.name} out."
            )
        if self.name == "duckdb":
            from muhat.cli.databases import opened_by_duckdb, warned_without_sql

            with opened_by_duckdb(files, self.database) as data, warned_without_sql():
                yield data
            return
        if self.name == "postgres":
            from muhat.cli.databases import table_of_postgres, warned_without_sql

            with warned_without_sql():
                yield table_of_postgres(files, self.database)
            return
        with _session(self.master, self.conf) as session:
            yield self._table(session, files)

    def _check(self) -> None:
        """Refuse options of another engine."""
        of_spark = {
            "--master": self.master,
            "--format": self.table_format,
            "--materialize": self.materialize,
            "--conf": self.conf,
        }
        for option, value in of_spark.items():
            if value and self.name != "spark":
                raise InvalidInput(f"{option} is for Spark: add --engine spark.")
        if self.database is not None and self.name not in DATABASES:
            raise InvalidInput(f"--database is for --engine {' or '.join(DATABASES)}.")
        if self.delimiter is not None and self.name in DATABASES:
            raise InvalidInput("--delimiter is for CSV files, which the embedded engine reads.")

    def _table(self, session: Any, files: tuple[str, ...]) -> Any:
        if len(set(files)) < len(files):
            raise InvalidInput("a table is named twice: every record must be read once.")
        named = self.table_format is None and all(map(is_csv, files))
        if named or (self.table_format or "").lower() == "csv":
            from muhat.data.spark_csv import spark_csv

            tabs = "\t" if all(".tsv" in name.lower() for name in files) else ","
            delimiter = delimiter_from("--delimiter", self.delimiter or tabs)
            return spark_csv(session, files, delimiter=delimiter, materialize=self.materialize)
        if self.delimiter is not None:
            raise InvalidInput("--delimiter is for CSV files; add --format csv if they are.")
        return _table(session, files, self.table_format, self.materialize)


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """--delimiter, --engine and what engines need, given to the command as `engine`."""

    @functools.wraps(command)
    def with_engine(
        *,
        engine: str,
        master: str | None,
        table_format: str | None,
        materialize: str | None,
        conf: tuple[str, ...],
        delimiter: str | None,
        database: str | None,
        **others: Any,
    ) -> None:
        given = ChosenEngine(engine, master, table_format, materialize, conf, delimiter, database)
        command(engine=given, **others)

    with_options = with_engine
    for option in (
        click.option(
            "--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark's own."
        ),
        click.option(
            "--materialize",
            metavar="PATH",
            help="With --engine spark: write the rows down at PATH first, each with a number.",
        ),
        click.option(
            "--format",
            "table_format",
            metavar="NAME",
            help="With --engine spark: what the paths hold, for instance delta, iceberg or orc.",
        ),
        click.option(
            "--master",
            metavar="URL",
            help="With --engine spark: local[2], spark://host:7077, yarn, or sc://host (Connect).",
        ),
        click.option(
            "--database",
            metavar="WHERE",
            help="Where the table FILES is: with --engine duckdb a database file, with --engine "
            "postgres what libpq connects with, such as postgresql://host/base.",
        ),
        click.option(
            "--engine",
            type=click.Choice(["embedded", "spark", *DATABASES]),
            default="embedded",
            show_default=True,
            help="Read files on this machine, paths and tables on a Spark cluster, or let a "
            "database add up: Parquet files and tables by DuckDB, tables by PostgreSQL.",
        ),
    ):
        with_options = option(with_options)
    return delimiter_option(with_options)


def is_path(name: str) -> bool:
    """Whether a name is that of files, not of a table in Spark's catalog.

    >>> is_path("warehouse/people"), is_path("sales.people"), is_path("delta.`/people`")
    (True, False, False)
    """
    if "`" in name:
        return False
    return "/" in name or name.lower().endswith((".parquet", ".pq")) or os.path.exists(name)


def is_csv(name: str) -> bool:
    """Whether a name is that of a CSV file, plain or compressed.

    >>> is_csv("people.csv"), is_csv("s3://bucket/people.tsv.gz"), is_csv("sales.people")
    (True, True, False)
    """
    return re.search(r"\.[ct]sv(\.gz|\.bz2|\.zst)?$", name.lower()) is not None


def answers(master: str) -> bool:
    """Whether something listens at one of the addresses of a URL; Spark would try for minutes.

    Masters of other kinds, and clients behind a proxy, are left to Spark.

    >>> answers("local[2]"), answers("spark://127.0.0.1:1")
    (True, False)
    """
    scheme, separator, rest = master.partition("://")
    if not separator or scheme not in PORTS:
        return True
    if scheme == "sc" and PROXIES & {name.lower() for name in os.environ}:
        return True
    addresses = rest.partition(";")[0].partition("/")[0].split(",")
    return any(_listens(address, PORTS[scheme]) for address in addresses)


def _listens(address: str, port: int) -> bool:
    try:
        parts = urlsplit(f"//{address}")
        where = (parts.hostname or "", parts.port or port)
        with socket.create_connection(where, timeout=PATIENCE_SECONDS):
            return True
    except (OSError, ValueError):
        return False


def _table(
    session: Any, names: tuple[str, ...], table_format: str | None, materialize: str | None
) -> Any:
    from muhat.data.spark import spark_data
    from muhat.data.spark_quiet import quietly

    def read() -> Any:
        if table_format is not None:
            return session.read.format(table_format).load(list(names))
        if all(is_path(name) for name in names):
            return session.read.parquet(*names)
        return session.table(names[0]) if len(names) == 1 else None

    frame = quietly(session, read)
    if frame is None:
        shown = ", ".join(f"{name!r:.80}" for name in names)
        raise InvalidInput(
            f"Spark cannot open {shown}: name one table, or paths of one format (Parquet, or what "
            "--format says) that all executors can read."
        )
    return spark_data(frame, materialize=materialize)


@contextmanager
def _session(master: str | None, conf: tuple[str, ...]) -> Iterator[Any]:
    if master is None:
        raise InvalidInput("--engine spark needs a --master, for instance --master local[2].")
    settings = dict(SETTINGS)
    for setting in conf:
        key, equals, value = setting.partition("=")
        if not (key and equals):
            raise InvalidInput("must read KEY=VALUE", parameter="--conf", value=f"{setting!r:.80}")
        settings[key] = value
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InvalidInput("--engine spark needs pyspark: pip install 'muhat[spark]'.") from None
    if master.startswith("local") or "//localhost" in master or "//127.0.0.1" in master:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # What follows the host of a client's URL may be a token.
    shown = master.partition(";")[0]
    if not answers(master):
        raise InvalidInput(f"nothing answers at --master {shown!r:.80}: is Spark running there?")
    running = SparkSession.getActiveSession()
    session = None
    try:
        builder: Any = SparkSession.builder
        builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = builder.appName("muhat").getOrCreate()
    except Exception:
        session = None
    if session is None:
        raise InvalidInput(
            f"Spark does not start with --master {shown!r:.80}: it needs Java 17, and a master "
            "that answers."
        )
    try:
        yield session
    finally:
        if running is None:
            session.stop()
