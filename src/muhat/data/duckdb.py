"""DuckDB relations as a source: sums are made by DuckDB, or here from Arrow batches of its rows.

`tallies.py` says which passes can be put in SQL; all others read the relation's columns through
Arrow. All passes of a release see one snapshot, and a relation that may have other rows in the next
pass is refused from its query (`duckdb_plan.py`).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muhat.data.base import Added, Source
from muhat.data.duckdb_plan import NAME, require_same_rows
from muhat.data.file import status_of
from muhat.data.selection import Coders, Columns
from muhat.data.snapshot import held
from muhat.data.sql import answered, queries_of
from muhat.data.sql_dialect import Dialect, SqlColumn
from muhat.data.sql_query import Query
from muhat.data.tables import StreamSource
from muhat.errors import DataChanged, InvalidInput

_EXACT_REALS = {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"}
_EXACT_REALS |= {"FLOAT"}
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_MOST_DIGITS = 18
"""Decimals of so many digits can be multiplied by the power of ten that makes them whole."""

_EXACT_DIGITS = 15
"""So many digits are exact in a float, and their quotient by a power of ten is the nearest."""


_TRANSACTION = "SELECT txid_current()"


class DuckDBWords(Dialect):
    """DuckDB's SQL."""

    real_type, wide_type = "DOUBLE", "HUGEINT"

    def quotient(self, value: str, divisor: int) -> str:
        return f"({value} // {divisor})"

    def remainder(self, value: str, divisor: int) -> str:
        return f"({value} % {divisor})"

    def same_bytes(self, text: str) -> str:
        return f'({text} COLLATE "binary")'

    def clip(self, whole: str, low: int, high: int) -> str:
        # LEAST and GREATEST take longer than all the rest of a sum.
        return self.near(whole, str(low), str(high))


WORDS = DuckDBWords()


def sql_column(name: str, kind: str) -> SqlColumn | None:
    """A column of a type of DuckDB's, None for types that are read through Arrow only."""
    if kind == "DOUBLE":
        return SqlColumn(name, "float")
    if kind in _EXACT_REALS:
        return SqlColumn(WORDS.as_real(name), "float")
    if kind in ("BIGINT", "UBIGINT"):
        return SqlColumn(name, "integer", signed=kind == "BIGINT")
    if kind == "HUGEINT":
        return SqlColumn(name, "decimal")
    if kind == "VARCHAR":
        return SqlColumn(name, "text")
    if kind.startswith("ENUM("):
        return SqlColumn(f"CAST({name} AS VARCHAR)", "text")
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is None or int(decimal[1]) > _MOST_DIGITS:
        return None
    scale = int(decimal[2])
    # One digit more makes the product one of 128 bits.
    wide = f"CAST({name} AS DECIMAL({_MOST_DIGITS + 1}, {scale}))"
    units = f"{wide} * CAST({10**scale} AS DECIMAL({scale + 1}, 0))"
    real = WORDS.as_real(name) if int(decimal[1]) <= _EXACT_DIGITS else None
    return SqlColumn(f"CAST({units} AS HUGEINT)", "decimal", scale=scale, real=real)


@dataclass(frozen=True)
class DuckDBData:
    """A relation as `data`, and the files that it reads, which must not change between passes."""

    relation: Any
    files: tuple[Path, ...] = ()


def open_relation(relation: Any, columns: Columns, dim: int | None, coders: Coders) -> Source:
    """A relation of DuckDB 2 or newer as such, an older one as the stream of Arrow that it offers.

    Older ones do not let a transaction be ended in which a query has failed.
    """
    files: tuple[Path, ...] = ()
    if isinstance(relation, DuckDBData):
        relation, files = relation.relation, relation.files
    if getattr(relation, "_con", None) is None:
        return StreamSource(relation, columns, dim, coders)
    return RelationSource(relation, columns, dim, coders, files)


class RelationSource(StreamSource):
    """Some columns of a DuckDB relation."""

    def __init__(
        self,
        relation: Any,
        columns: Columns,
        dim: int | None,
        coders: Coders,
        files: tuple[Path, ...] = (),
    ) -> None:
        self._files = {file: _identity(file) for file in files}
        _hold_snapshot(relation)
        require_same_rows(relation)
        super().__init__(relation, columns, dim, coders)
        kinds = [str(kind) for kind in relation.types]
        self._sql = [
            sql_column(f"x{place}", kinds[position])
            for place, position in enumerate(self._positions)
        ]

    def fold(self, accumulator: Callable[[], Added]) -> list[Added] | None:
        """In SQL if what is added up can be put so, else as every stream of batches."""
        total = accumulator()
        queries = queries_of(total, self._sql, WORDS)
        if queries is None:
            return super().fold(accumulator)
        return answered(total, queries, self._asked)

    def rows(self) -> int:
        """Counted by DuckDB."""
        if self._rows is None:
            try:
                ((self._rows,),) = self._data.aggregate("count(*)").fetchall()
            except Exception:
                self._rows = None
        if self._rows is None:
            raise InvalidInput("data could not be counted to the end.")
        return self._rows

    def check_unchanged(self) -> None:
        """Raise DataChanged if a file is not what it was."""
        if any(_identity(file) != before for file, before in self._files.items()):
            raise DataChanged("a file has changed since it was opened.")

    def _schema(self) -> Any:
        schema = None
        try:
            schema = self._data.limit(0).to_arrow_table().schema
        except Exception:
            schema = None
        if schema is None:
            raise InvalidInput("data could not be opened: DuckDB refuses to run the query.")
        return schema

    def _chosen(self) -> Iterator[list[Any]]:
        import pyarrow as pa

        for part in pa.RecordBatchReader.from_stream(self._data.project(self._listed())):
            yield list(part.columns)

    def _listed(self) -> str:
        """The columns that are read, by their places: no name can be mistaken for another."""
        places = enumerate(self._positions)
        return ", ".join(f"#{at + 1} AS x{place}" for place, at in places) or "1 AS nothing"

    def _asked(self, query: Query) -> list[Any]:
        records = f"SELECT {self._listed()} FROM {NAME}"
        return list(self._data.query(NAME, query.over(records)).fetchall())


def _hold_snapshot(relation: Any) -> None:
    """One transaction for all passes of a release, unless the connection is within one already."""
    stack = held()
    if stack is None:
        return
    reached = False
    try:
        # A statement by itself is a transaction of its own, with a number of its own. To begin a
        # second one would end the user's.
        first, second = (relation.query(NAME, _TRANSACTION).fetchall() for _ in range(2))
        if first != second:
            relation.query(NAME, "BEGIN TRANSACTION")
            stack.callback(_let_go, relation)
        reached = True
    except Exception:
        reached = False
    if not reached:
        raise InvalidInput("data could not be opened: DuckDB does not begin a transaction.")


def _let_go(relation: Any) -> None:
    """End the transaction, in which nothing was written."""
    try:
        relation.query(NAME, "ROLLBACK")
    except Exception:
        # Once a query has failed, a relation cannot end the transaction, but its connection can.
        with contextlib.suppress(Exception):
            relation._con.execute("ROLLBACK")


def _identity(file: Path) -> tuple[int, ...] | None:
    """What a file is known by, None if there is none."""
    status = status_of(file)
    if status is None:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev
