"""Whether a DuckDB relation gives the same rows every time, told from its query alone.

The query, and those of the views and macros in it, are looked at as DuckDB's own parser has them.
What DuckDB does not list as a function that always gives the same answer is refused, and so is
whatever depends on the order in which rows happen to come.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from muhat.errors import InvalidInput

NAME = "muhat_looks_at"
"""What a relation is called within queries of the catalogue."""

_BY_ORDER = {
    *("any_value", "arbitrary", "arg_max", "arg_max_null", "arg_min", "arg_min_null", "argmax"),
    *("argmin", "array_agg", "first", "first_value", "group_concat", "last", "last_value", "list"),
    *("listagg", "max_by", "min_by", "mode", "string_agg", "histogram", "bitstring_agg"),
    *("approx_quantile", "approx_top_k", "reservoir_quantile", "approx_count_distinct"),
}
"""Aggregates that may answer otherwise if rows come in another order."""

_WINDOWS = {"rank", "dense_rank", "percent_rank", "cume_dist", "count", "count_star", "min", "max"}
"""Functions over windows that give rows with equal values the same answer."""

_TABLES = {
    *("arrow_scan", "arrow_scan_dumb", "pandas_scan", "parquet_scan", "read_parquet", "range"),
    *("read_csv", "read_csv_auto", "read_json", "read_json_auto", "read_ndjson", "sniff_csv"),
    *("read_ndjson_auto", "generate_series", "unnest", "seq_scan", "iceberg_scan", "delta_scan"),
}
"""Functions that give the same rows as long as what they read stays as it is."""

_FROM = {"BASE_TABLE", "JOIN", "SUBQUERY", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY"}
_JOINS = {"REGULAR", "NATURAL", "CROSS", "DEPENDENT"}
_FIXED = "CONSISTENT"
_FUNCTIONS = f"""
    SELECT lower(function_name), CASE
        WHEN function_type = 'macro' THEN macro_definition
        WHEN function_type IN ('scalar', 'aggregate', 'window') AND stability = '{_FIXED}'
        THEN stability END
    FROM duckdb_functions()
"""
_PLAIN = {"list_value", "struct_pack", "count_star"}
"""Functions that DuckDB's parser itself writes, most of them around what a table is read from."""

_WORDS = {
    *("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"),
    *("current_user", "session_user", "user", "current_role", "current_catalog", "current_schema"),
}
"""What looks like a column and is a function, unless there is such a column."""


def require_same_rows(relation: Any) -> None:
    """InvalidInput for a relation whose rows may differ between two passes."""
    reason: str | None = "a query that DuckDB does not show"
    with contextlib.suppress(Exception):  # raised outside, where nothing of it hangs on
        reason = _QueryLook(relation).reason(str(relation.sql_query()))
    if reason is not None:
        raise InvalidInput(
            f"must be the same rows in every pass, and this relation has {reason}",
            parameter="data",
            hint='Write its rows down once: relation.create("people"), then con.table("people").',
        )


class _QueryLook:
    """Looks at queries, each view and function once."""

    def __init__(self, relation: Any) -> None:
        self._relation = relation
        self._seen: set[tuple[str, str]] = set()
        self._macros: dict[str, list[str | None]] | None = None

    def reason(self, query: str) -> str | None:
        """Why the rows of a query may differ between two passes, or None."""
        tree = _parsed(query)
        if tree is None:
            return "a query that cannot be looked at"
        return next((why for node in _nodes(tree) if (why := self._reason_at(node))), None)

    def _reason_at(self, node: dict[str, Any]) -> str | None:
        kind = str(node.get("type"))
        if node.get("sample") is not None:
            return "a sample"
        for child in (node.get(key) for key in ("from_table", "left", "right")):
            if isinstance(child, dict) and "class" not in child and not _is_looked_at(child):
                return f"{_plain(child.get('type'))}, which is not looked at"
        if kind.startswith("LIMIT"):
            return "a limit: rows that tie may be cut in another order"
        if kind == "DISTINCT_MODIFIER" and node.get("distinct_on_targets"):
            return "DISTINCT ON, which keeps the first row that comes"
        if kind == "JOIN" and node.get("ref_type") not in _JOINS:
            return f"a join that depends on order ({_plain(node['ref_type'])})"
        if kind == "BASE_TABLE":
            return self._once("view", str(node["table_name"]).lower())
        if kind == "TABLE_FUNCTION":
            name = str(node["function"]["function_name"]).lower()
            return None if name in _TABLES else f"{name}(), which may differ between passes"
        if node.get("class") == "WINDOW":
            name = str(node["function_name"]).lower()
            by_rows = any(str(node.get(end)).endswith("_ROWS") for end in ("start", "end"))
            return f"{name}() over rows that may tie" if by_rows or name not in _WINDOWS else None
        if node.get("class") == "FUNCTION":
            return self._once("function", str(node["function_name"]).lower())
        if node.get("class") == "COLUMN_REF":
            word = str(node["column_names"][-1]).lower()
            return f"{word}, which may differ between passes" if word in _WORDS else None
        return None

    def _once(self, kind: str, name: str) -> str | None:
        if (kind, name) in self._seen:
            return None
        self._seen.add((kind, name))
        return self._reason_in_view(name) if kind == "view" else self._reason_in_function(name)

    def _reason_in_view(self, name: str) -> str | None:
        literal = "'" + name.replace("'", "''") + "'"
        views = f"duckdb_views() WHERE NOT internal AND lower(view_name) = {literal}"
        for (text,) in self._listed(f"SELECT sql FROM {views}"):
            # A view's own name, and those of its columns, come before the word that is looked for.
            bodies = [text[found.end() :] for found in re.finditer(r"\bAS\b", text, re.I)]
            query = next((each for each in bodies if _parsed(each) is not None), "")
            reason = self.reason(query)
            if reason is not None:
                return f"a view, {name!r:.60}, with {reason}"
        return None

    def _reason_in_function(self, name: str) -> str | None:
        if name in _BY_ORDER:
            return f"{name}(), which may depend on the order of rows"
        if name in _TABLES or name in _PLAIN:
            return None
        if self._macros is None:
            self._macros = {}
            for each, body in self._listed(f"{_FUNCTIONS} WHERE NOT internal"):
                self._macros.setdefault(each, []).append(body)
        if name in self._macros:
            # A function of the user's that is no macro says whether it is fixed.
            same = all(body is not None and self._is_fixed(body) for body in self._macros[name])
        else:
            bodies = _builtin().get(name, [None])
            same = all(body is not None and self._is_fixed(body) for body in bodies)
        return None if same else f"{name}(), which may differ between passes"

    def _is_fixed(self, body: str) -> bool:
        """Whether a function is fixed: a word of DuckDB's, or the text of a macro."""
        return body == _FIXED or self.reason(f"SELECT {body}") is None

    def _listed(self, query: str) -> list[Any]:
        """What the catalogue of the relation's own connection says."""
        return list(self._relation.query(NAME, query).fetchall())


@cache
def _parser() -> Any:
    import duckdb

    return duckdb.connect()


@cache
def _builtin() -> dict[str, list[str | None]]:
    """DuckDB's own functions; None where one is not always the same."""
    found: dict[str, list[str | None]] = {}
    for name, body in _parser().cursor().execute(f"{_FUNCTIONS} WHERE internal").fetchall():
        found.setdefault(name, []).append(body)
    return found


def _parsed(query: str) -> Any:
    """The statements of a text as DuckDB's parser has them, None if they are no queries."""
    (text,) = _parser().cursor().execute("SELECT json_serialize_sql(?)", [query]).fetchone()
    tree = json.loads(text)
    return None if tree.get("error") else tree["statements"]


def _is_looked_at(table: dict[str, Any]) -> bool:
    """Whether it is a query, or a kind of table, of which everything is looked at."""
    kind = str(table.get("type"))
    return kind.endswith("_NODE") or kind in _FROM


def _plain(word: object) -> str:
    return str(word).lower().replace("_", " ")


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """All nodes of a parsed query."""
    if isinstance(tree, dict):
        yield tree
        for each in tree.values():
            yield from _nodes(each)
    elif isinstance(tree, list):
        for each in tree:
            yield from _nodes(each)
