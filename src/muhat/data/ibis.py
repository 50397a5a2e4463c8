"""Tables of Ibis as a source: their backend adds up if it is one that muhat speaks to.

An expression of Ibis is a query of its backend. DuckDB's becomes a relation and Spark's a frame,
which are looked at and added up as if no Ibis were there; PostgreSQL's is asked on a connection of
muhat's own. Rows of all other backends, and of tables in memory, are read here, as Arrow.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from muhat.data.base import Source
from muhat.data.selection import Coders, Columns
from muhat.data.tables import StreamSource
from muhat.errors import InvalidInput

_BY_ORDER = {
    *("Limit", "Sample", "First", "Last", "Arbitrary", "ArgMax", "ArgMin", "ArrayCollect"),
    *("GroupConcat", "Mode", "NthValue", "RowNumber", "NTile", "Lag", "Lead", "RowID"),
    *("ApproxCountDistinct", "ApproxMedian", "ApproxQuantile", "ApproxMultiQuantile"),
}
"""Operations that depend on the order of rows, or on chance."""

_OF_TIES = {"MinRank", "DenseRank", "PercentRank", "CumeDist"}
"""Functions over ordered windows that give rows that tie the same answer."""

_TEXTS = {"SQLQueryResult", "SQLStringView"}


def is_ibis(data: object) -> bool:
    """Whether it is a table of Ibis; Ibis is not imported to tell."""
    return any(
        kind.__name__ == "Table" and kind.__module__.startswith("ibis.expr.")
        for kind in type(data).__mro__
    )


def open_ibis(table: Any, columns: Columns, dim: int | None, coders: Coders) -> Source:
    """A table of Ibis, by the engine that holds it or through Arrow, or InvalidInput."""
    nodes, backend = _looked_at(table)
    in_memory = any(type(node).__name__ == "InMemoryTable" for node in nodes)
    name = "" if in_memory else str(backend.name)
    if name == "duckdb":
        from muhat.data.duckdb import open_relation

        relation = _asked(backend, table, lambda text: backend.con.sql(text))
        return open_relation(relation, columns, dim, coders)
    if name == "pyspark":
        from muhat.data.spark import open_spark

        frame = _asked(backend, table, lambda text: backend._session.sql(text))
        return open_spark(frame, columns, dim, coders)
    # Nobody else looks at what Ibis asks.
    _require_same_rows(nodes)
    if name == "postgres":
        from muhat.data.postgres import open_query, quoted

        tables = [
            ".".join(quoted(part) for part in (node.namespace.database, node.name) if part)
            for node in nodes
            if type(node).__name__ == "DatabaseTable"
        ]
        query = _asked(backend, table, str)
        return open_query(_conninfo(backend), query, tables, columns, dim, coders)
    return IbisSource(table, columns, dim, coders)


class IbisSource(StreamSource):
    """Some columns of a table of Ibis, read here as Arrow."""

    def _schema(self) -> Any:
        return self._data.schema().to_pyarrow()

    def _chosen(self) -> Iterator[list[Any]]:
        for part in self._reader():
            yield list(part.columns[: len(self._positions)])

    def _reader(self) -> Any:
        names = [self._data.columns[position] for position in self._positions]
        return self._data.select(*(names or self._data.columns[:1])).to_pyarrow_batches()


def _looked_at(table: Any) -> tuple[list[Any], Any]:
    """All operations of an expression, and the backend that carries them out."""
    found = None
    with contextlib.suppress(Exception):  # raised outside, where nothing of it hangs on
        from ibis.expr.operations import Node

        found = list(table.op().find(Node)), table._find_backend(use_default=True)
    if found is None:
        raise InvalidInput("data could not be opened: Ibis finds no one backend for the table.")
    return found


def _asked(backend: Any, table: Any, ask: Callable[[str], Any]) -> Any:
    """What becomes of the backend's text for an expression."""
    found = None
    with contextlib.suppress(Exception):
        found = ask(str(backend.compile(table)))
    if found is None:
        raise InvalidInput("data could not be opened: Ibis's backend refuses the query.")
    return found


def _require_same_rows(nodes: list[Any]) -> None:
    """InvalidInput for an expression whose rows may differ between two passes."""
    for node in nodes:
        kinds = {kind.__name__ for kind in type(node).__mro__}
        by_order = (
            "WindowFunction" in kinds
            and bool(node.order_by)
            and type(node.func).__name__ not in _OF_TIES
        )
        if by_order or kinds & (_BY_ORDER | _TEXTS | {"Impure"}):
            reason = "text of SQL" if kinds & _TEXTS else type(node).__name__
            raise InvalidInput(
                f"must be the same rows in every pass, and this expression has {reason}",
                parameter="data",
                hint="Write its rows down once: con.create_table(…).",
            )


def _conninfo(backend: Any) -> str:
    """What connects as the backend is connected."""
    found: str | None = None
    with contextlib.suppress(Exception):
        from psycopg.conninfo import make_conninfo

        info = backend.con.info
        found = make_conninfo(info.dsn, **({"password": info.password} if info.password else {}))
    if found is None:
        raise InvalidInput("data could not be opened: the connection of Ibis has ended.")
    return found
