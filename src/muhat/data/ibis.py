"""Tables of Ibis as a source: who adds up depends on the backend that holds them.

An expression of Ibis is a query of its backend. DuckDB's becomes a relation and Spark's a frame,
which are looked at and added up as if no Ibis were there; PostgreSQL's is asked on a connection of
muhat's own. All others add up in the words that Ibis has for them, if they show that they can
(`ibis_source.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from muhat.data.base import Source
from muhat.data.ibis_plan import looked_at, require_same_rows
from muhat.data.ibis_source import IbisSource
from muhat.data.ibis_sql import has_sql
from muhat.data.selection import Coders, Columns
from muhat.errors import InvalidInput


def is_ibis(data: object) -> bool:
    """Whether it is a table of Ibis; Ibis is not imported to tell."""
    return any(
        kind.__name__ == "Table" and kind.__module__.startswith("ibis.expr.")
        for kind in type(data).__mro__
    )


def open_ibis(table: Any, columns: Columns, dim: int | None, coders: Coders) -> Source:
    """A table of Ibis, by the engine that holds it or through Arrow, or InvalidInput."""
    nodes, backend = looked_at(table)
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
    if name == "postgres":
        from muhat.data.postgres import open_query, quoted

        require_same_rows(nodes)
        tables = [
            ".".join(quoted(part) for part in (node.namespace.database, node.name) if part)
            for node in nodes
            if type(node).__name__ == "DatabaseTable"
        ]
        query = _asked(backend, table, str)
        return open_query(_conninfo(backend), query, tables, columns, dim, coders)
    require_same_rows(nodes, None if in_memory else backend)
    adds_up = not in_memory and has_sql(backend)
    return IbisSource(table, backend if adds_up else None, columns, dim, coders)


def _asked(backend: Any, table: Any, ask: Callable[[str], Any]) -> Any:
    """What becomes of the backend's text for an expression."""
    found = None
    with contextlib.suppress(Exception):
        found = ask(str(backend.compile(table)))
    if found is None:
        raise InvalidInput("data could not be opened: Ibis's backend refuses the query.")
    return found


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
