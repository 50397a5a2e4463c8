"""Tables of PostgreSQL as a source: sums are made by PostgreSQL, or here from batches of its rows.

A connection of muhat's own, which may read only, shows one snapshot of the table from the first
look to the last. `postgres_plan.py` refuses views that may have other rows in the next pass.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from muhat.data.arrow import batch_of
from muhat.data.base import Added, Partition, Source
from muhat.data.kept import KeepingSource
from muhat.data.postgres_plan import require_same_rows
from muhat.data.selection import Coders, Columns, Field, select
from muhat.data.snapshot import held
from muhat.data.sql import answered, queries_of
from muhat.data.sql_dialect import EXACT_DIGITS, Dialect, SqlColumn
from muhat.data.sql_query import Query
from muhat.errors import InvalidInput
from muhat.records.columns import Batch

BATCH_ROWS = 1 << 14
_NUMERIC = 1700
_NUMBERS = {
    16: ("boolean", "bool"),
    20: ("bigint", "int64"),
    21: ("smallint", "int16"),
    23: ("integer", "int32"),
    700: ("real", "float32"),
    701: ("double precision", "float64"),
}
_TEXTS = {19: "name", 25: "text", 1042: "character", 1043: "character varying"}
_COMPARED = (25, 1043)
"""Text that is compared as it is written; characters of a fixed number are filled up."""

_MOST_DIGITS = 38
"""What Arrow has room for."""


@dataclass(frozen=True)
class PostgresData:
    """A table, or a view, of PostgreSQL as `data`.

    `conninfo` is what libpq takes, "postgresql://host/base" for instance; where it is empty, the
    environment (PGHOST, PGDATABASE, …) says. `table` may have a schema, sales.people.
    """

    conninfo: str = field(repr=False)
    table: str


def postgres_data(table: str, conninfo: str = "") -> PostgresData:
    """A table of PostgreSQL as the `data` of everything that takes a file.

    >>> postgres_data("sales.people", "postgresql://localhost/shop")
    PostgresData(table='sales.people')
    """
    return PostgresData(conninfo, table)


class PostgresWords(Dialect):
    """PostgreSQL's SQL."""

    real_type, wide_type = "DOUBLE PRECISION", "NUMERIC"

    def quotient(self, value: str, divisor: int) -> str:
        return f"div({value}, {divisor})"

    def remainder(self, value: str, divisor: int) -> str:
        return f"mod({value}, {divisor})"

    def same_bytes(self, text: str) -> str:
        return f'({text} COLLATE "C")'

    def is_there(self, column: SqlColumn) -> str:
        if column.kind != "decimal":
            return super().is_there(column)
        # A decimal may be not a number, which is larger than all that are.
        return f"({column.value} < CAST('1e200' AS NUMERIC))"


WORDS = PostgresWords()


def quoted(name: str) -> str:
    """A name of a table or column, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def open_postgres(data: PostgresData, columns: Columns, dim: int | None, coders: Coders) -> Source:
    """Some columns of a table, or InvalidInput; no value is read."""
    table = ".".join(map(quoted, data.table.split(".")))
    asked = _Asked(table, [table], f"the table {data.table!r:.80}")
    return _opened(data.conninfo, asked, columns, dim, coders)


def open_query(
    conninfo: str,
    query: str,
    tables: Sequence[str],
    columns: Columns,
    dim: int | None,
    coders: Coders,
) -> Source:
    """Some columns of a query that is always the same over tables, by their quoted names."""
    asked = _Asked(f"({query}) AS asked", tables, "the query")
    return _opened(conninfo, asked, columns, dim, coders)


@dataclass(frozen=True)
class _Asked:
    """Where rows are selected from, the tables that are looked at, and words for it."""

    rows: str
    tables: Sequence[str]
    words: str


def _opened(
    conninfo: str, asked: _Asked, columns: Columns, dim: int | None, coders: Coders
) -> PostgresSource:
    connection = _connected(conninfo)
    try:
        described = None
        with contextlib.suppress(Exception):
            described = list(connection.execute(f"SELECT * FROM {asked.rows} LIMIT 0").description)
        if described is None:
            raise InvalidInput(f"PostgreSQL cannot open {asked.words}.")
        for table in asked.tables:
            require_same_rows(connection, table)
        source = PostgresSource(connection, asked.rows, described, columns, dim, coders)
    except InvalidInput:
        if held() is None:
            connection.close()
        raise
    if held() is None:
        # Nobody else says when it is read no more.
        weakref.finalize(source, connection.close)
    return source


class PostgresSource(KeepingSource):
    """Some columns of a table of PostgreSQL."""

    is_slow = True

    def __init__(
        self,
        connection: Any,
        table: str,
        described: Sequence[Any],
        columns: Columns,
        dim: int | None,
        coders: Coders,
    ) -> None:
        selection = select([_field(each) for each in described], columns, dim, coders=coders)
        self.columns, self.types = selection.columns, selection.types
        self._coders = selection.coders
        self._connection = connection
        self._table = table
        self._chosen = [described[position] for position in selection.positions]
        self._sql = [_column(f"x{place}", each) for place, each in enumerate(self._chosen)]
        self._rows: int | None = None

    @property
    def known_rows(self) -> int | None:
        """The number of records once it has been counted."""
        return self._rows

    def rows(self) -> int:
        """Counted by PostgreSQL."""
        if self._rows is None:
            with contextlib.suppress(Exception):  # raised outside, where nothing of it hangs on
                found = self._connection.execute(f"SELECT count(*) FROM {self._table}").fetchone()
                self._rows = int(found[0])
        if self._rows is None:
            raise InvalidInput("data could not be counted to the end.")
        return self._rows

    def check_unchanged(self) -> None:
        """Nothing to compare: a snapshot does not change."""

    def fold(self, accumulator: Callable[[], Added]) -> list[Added] | None:
        """In SQL if what is added up can be put so, else from rows that are read here."""
        total = accumulator()
        queries = queries_of(total, self._sql, WORDS)
        if queries is None:
            return super().fold(accumulator)
        return answered(total, queries, self._asked)

    def pieces(self) -> Sequence[Partition]:
        """One: a connection answers one question after another."""
        return [Partition(0, self._batches)]

    def _asked(self, query: Query) -> list[Any]:
        # What has an offset is not taken apart, so that nothing is worked out twice.
        text = query.over(self._records(), fence=" OFFSET 0")
        return list(self._connection.execute(text).fetchall())

    def _records(self) -> str:
        chosen = [f"{quoted(each.name)} AS x{place}" for place, each in enumerate(self._chosen)]
        return f"SELECT {', '.join(chosen)} FROM {self._table}"

    def _batches(self) -> Iterator[Batch]:
        import pyarrow as pa

        kinds = [_arrow_type(each) for each in self._chosen]
        with self._connection.cursor(name="muhat") as cursor:
            cursor.execute(self._records())
            while rows := cursor.fetchmany(BATCH_ROWS):
                columns = zip(*rows, strict=True) if self._chosen else ()
                arrays = [
                    pa.array([_plain(value) for value in values], kind)
                    for values, kind in zip(columns, kinds, strict=True)
                ]
                yield batch_of(arrays, self._coders) if arrays else Batch(len(rows))


def _connected(conninfo: str) -> Any:
    """A connection that shows one snapshot: that of the release, or one for the source alone."""
    stack = held()
    name = ("postgres", conninfo)
    if stack is not None and name in stack.kept:
        return stack.kept[name]
    try:
        import psycopg
    except ImportError:
        raise InvalidInput(
            "data in PostgreSQL need psycopg: pip install 'muhat[postgres]'."
        ) from None
    connection: Any = None
    try:
        connection = psycopg.connect(conninfo)
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        connection.execute("SET LOCAL standard_conforming_strings = on")
    except Exception:
        connection = None
    if connection is None:
        raise InvalidInput("PostgreSQL does not answer: is the connection right?")
    if stack is not None:
        stack.kept[name] = connection
        stack.callback(connection.close)
    return connection


def _field(described: Any) -> Field:
    kind = described.type_code
    if kind in _TEXTS:
        return Field(described.name, _TEXTS[kind], 0, is_text=True)
    if kind in _NUMBERS:
        return Field(described.name, _NUMBERS[kind][0], 1)
    if kind == _NUMERIC:
        digits = described.precision
        if digits is None or digits > _MOST_DIGITS:
            return Field(described.name, "numeric without a small number of digits", 0)
        return Field(described.name, f"numeric({digits},{described.scale})", 1)
    return Field(described.name, f"of number {kind}", 0)


def _column(name: str, described: Any) -> SqlColumn | None:
    """A column by its type, None for one that is read here only."""
    kind = described.type_code
    if kind in _COMPARED:
        return SqlColumn(name, "text")
    if kind == 20:
        return SqlColumn(name, "integer")
    if kind == 701:
        return SqlColumn(name, "float")
    if kind == 16:
        return SqlColumn(WORDS.as_real(f"CAST({name} AS INTEGER)"), "float")
    if kind in _NUMBERS:
        return SqlColumn(WORDS.as_real(name), "float")
    if kind != _NUMERIC or described.precision is None or described.scale < 0:
        return None
    real = WORDS.as_real(name) if described.precision <= EXACT_DIGITS else None
    units = f"({name} * {10**described.scale})"
    return SqlColumn(units, "decimal", scale=described.scale, real=real)


def _arrow_type(described: Any) -> Any:
    import pyarrow as pa

    if described.type_code in _NUMBERS:
        return pa.type_for_alias(_NUMBERS[described.type_code][1])
    if described.type_code == _NUMERIC:
        return pa.decimal128(described.precision, described.scale)
    return pa.string()


def _plain(value: Any) -> Any:
    """A value as Arrow takes it: a decimal that is not a number is missing."""
    return None if isinstance(value, Decimal) and not value.is_finite() else value
