"""DuckDB relations as a source: sums are made here from Arrow batches of its rows, or by DuckDB.

Rows cross no border between processes, and the kernels take a fraction of the CPU time that SQL
takes; but SQL is shared by all of DuckDB's threads. Where they are many, the passes that
`tallies.py` can say are put in SQL. All passes of a release see one snapshot, and a relation that
may have other rows in the next pass is refused from its query (`duckdb_plan.py`).
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muhat.data.base import Added, Source
from muhat.data.coding import Coder
from muhat.data.duckdb_plan import NAME, require_same_rows
from muhat.data.file import status_of
from muhat.data.selection import Coders, Codes, Columns
from muhat.data.snapshot import held
from muhat.data.sql import answered, queries_of
from muhat.data.sql_dialect import EXACT_DIGITS, Dialect, SqlColumn
from muhat.data.sql_query import Query
from muhat.data.tables import BATCH_ROWS, StreamSource
from muhat.errors import DataChanged, InvalidInput
from muhat.records.columns import Integers

_EXACT_REALS = {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"}
_EXACT_REALS |= {"FLOAT"}
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_MOST_DIGITS = 18
"""Decimals of so many digits can be multiplied by the power of ten that makes them whole."""

FEW_THREADS = 4
"""On so many threads SQL is no faster: it takes about as many times the CPU time of plain sums."""

_FEW_LABELS = 16
"""Labels that a text is compared with one after another; with more it is read as it is."""

_MOST_CELLS = 1 << 14
"""Answers of more rows take one thread longer than all of the data."""

_TRANSACTION = "SELECT txid_current()"
_THREADS = "SELECT current_setting('threads')"


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
    digits, scale = int(decimal[1]), int(decimal[2])
    # The product has the digits of both; more than 64 bits hold make it one of 128.
    narrow = digits + scale < _MOST_DIGITS
    whole, value = "BIGINT", name
    if not narrow:
        whole, value = "HUGEINT", f"CAST({name} AS DECIMAL({_MOST_DIGITS + 1}, {scale}))"
    units = f"CAST({value} * CAST({10**scale} AS DECIMAL({scale + 1}, 0)) AS {whole})"
    real = WORDS.as_real(name) if digits <= EXACT_DIGITS else None
    return SqlColumn(units, "decimal", scale=scale, real=real, narrow=narrow)


class PlacedCoder(Coder):
    """Codes of texts that come as their places among a few labels, from 1 on, or not at all.

    DuckDB finds the place of a text that a block has many times only once.
    """

    def place(self, text: str) -> str:
        """The place of a text in SQL."""
        labels = ", ".join(WORDS.text(str(label)) for label in self.categories.values)
        return f"list_position([{labels}], {WORDS.same_bytes(text)})"

    def of_arrow(self, array: Any) -> Integers:
        """Codes of places."""
        return Integers(array.fill_null(self.absent + 1).to_numpy() - 1)


def placed(coder: Codes | None, kind: str) -> Codes | None:
    """What reads a column of a type: a coder of a few texts has their places."""
    if not isinstance(coder, Coder) or not coder.is_text or kind != "VARCHAR":
        return coder
    labels = coder.categories.values
    if len(labels) > _FEW_LABELS or any("\0" in str(label) for label in labels):
        return coder
    return PlacedCoder(coder.categories)


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
        self._threads = _threads(relation)
        kinds = [str(kind) for kind in relation.types]
        self._sql = [
            sql_column(f"x{place}", kinds[position])
            for place, position in enumerate(self._positions)
        ]
        self._coders = [
            placed(coder, kinds[position])
            for coder, position in zip(self._coders, self._positions, strict=True)
        ]

    def fold(self, accumulator: Callable[[], Added]) -> list[Added] | None:
        """As every stream of batches, or, by many threads, in SQL if that can be."""
        if self._threads <= FEW_THREADS:
            return super().fold(accumulator)
        total = accumulator()
        queries = queries_of(total, self._sql, WORDS)
        if queries is None or any(math.prod(each.cells) > _MOST_CELLS for (each,) in queries):
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
        read = [
            coder.place(column) if isinstance(coder, PlacedCoder) else column
            for column, coder in zip(self._named(), self._coders, strict=True)
        ]
        for part in self._data.project(_listed(read)).to_arrow_reader(BATCH_ROWS):
            yield list(part.columns)

    def _named(self) -> list[str]:
        """The columns that are read, by their places: no name can be mistaken for another."""
        return [f"#{position + 1}" for position in self._positions]

    def _asked(self, query: Query) -> list[Any]:
        records = f"SELECT {_listed(self._named())} FROM {NAME}"
        return list(self._data.query(NAME, query.over(records)).fetchall())


def _listed(expressions: Sequence[str]) -> str:
    named = (f"{each} AS x{place}" for place, each in enumerate(expressions))
    return ", ".join(named) or "1 AS nothing"


def _threads(relation: Any) -> int:
    """How many threads DuckDB works with."""
    with contextlib.suppress(Exception):
        ((threads,),) = relation.query(NAME, _THREADS).fetchall()
        return int(threads)
    return 1


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
