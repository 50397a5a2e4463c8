"""`--engine duckdb` and `--engine postgres`: files and tables that a database adds up."""

from __future__ import annotations

import glob
import logging
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from muhat.data.sql import LOG
from muhat.errors import InvalidInput

_PARQUET = (".parquet", ".pq")


@contextmanager
def warned_without_sql() -> Iterator[None]:
    """Warn once if the database is asked for its rows instead of their sums."""
    handler = _OneWarning(logging.INFO)
    before = LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOG.setLevel(before)
        LOG.removeHandler(handler)


class _OneWarning(logging.Handler):
    """Hands the first message on as a warning."""

    def emit(self, record: logging.LogRecord) -> None:
        self.setLevel(logging.CRITICAL + 1)
        warnings.warn(record.getMessage(), stacklevel=1)


@contextmanager
def opened_by_duckdb(names: tuple[str, ...], database: str | None) -> Iterator[Any]:
    """Parquet files, or one table of a database, as DuckDB reads them; closed at the end."""
    try:
        import duckdb
    except ImportError:
        raise InvalidInput("--engine duckdb needs duckdb: pip install 'muhat[duckdb]'.") from None
    from muhat.data.duckdb import DuckDBData

    connection: Any = None
    try:
        where = ":memory:" if database is None else str(Path(database).resolve(strict=True))
        connection = duckdb.connect(where, read_only=database is not None)
    except Exception:
        connection = None
    if connection is None:
        raise InvalidInput(f"--database {database!r:.80} is no DuckDB database that can be opened.")
    with closing(connection):
        files = () if database is not None else _files(names)
        data = None
        try:
            if database is None:
                data = connection.read_parquet([str(file) for file in files])
            elif len(names) == 1:
                data = connection.sql(f"SELECT * FROM {qualified(names[0])}")
        except Exception:
            data = None
        if data is None:
            shown = ", ".join(f"{name!r:.80}" for name in names)
            raise InvalidInput(
                f"DuckDB cannot open {shown}: name Parquet files of the same columns, or, with "
                "--database, one table."
            )
        yield DuckDBData(data, files)


def table_of_postgres(names: tuple[str, ...], database: str | None) -> Any:
    """One table of PostgreSQL, where the environment says unless --database does."""
    from muhat.data.postgres import postgres_data

    if len(names) != 1:
        raise InvalidInput("--engine postgres reads one table: name it alone.")
    return postgres_data(names[0], database or "")


def qualified(name: str) -> str:
    """The name of a table, with those of its schema and catalogue, quoted.

    >>> qualified('sales.people'), qualified('odd"name')
    ('"sales"."people"', '"odd""name"')
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def _files(names: tuple[str, ...]) -> tuple[Path, ...]:
    """The Parquet files that names and patterns stand for, each once."""
    found = [path for name in names for path in (sorted(glob.glob(name)) or [name])]
    if not all(path.lower().endswith(_PARQUET) for path in found):
        raise InvalidInput(
            "--engine duckdb reads Parquet files, and tables with --database: leave it out for "
            "files of other kinds."
        )
    files = [Path(path).resolve() for path in found]
    if len(set(files)) < len(files):
        raise InvalidInput("a file is named twice: every record must be read once.")
    return tuple(files)
