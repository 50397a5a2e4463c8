"""Whether a table of PostgreSQL has the same rows every time, told from the catalogue alone.

One transaction shows one snapshot, so only what is no part of it can differ: volatile functions,
samples, and whatever depends on the order in which rows happen to come. A view is looked at as
PostgreSQL keeps it: parsed, with the number of every function.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

from muhat.errors import InvalidInput

_PARTS = {
    "{TABLESAMPLECLAUSE": "a sample",
    ":limitCount {": "a limit: rows that tie may be cut in another order",
    ":limitOffset {": "an offset: rows that tie may be cut in another order",
    ":hasDistinctOn true": "DISTINCT ON, which keeps the first row that comes",
    "{WINDOWFUNC": "a function over rows that may tie",
    "{NEXTVALUEEXPR": "the next number of a sequence",
}
_BY_ORDER = {
    *("array_agg", "string_agg", "json_agg", "jsonb_agg", "xmlagg", "mode", "any_value"),
    *("json_object_agg", "jsonb_object_agg", "json_agg_strict", "jsonb_agg_strict"),
}
_FUNCTIONS = re.compile(r":(?:funcid|aggfnoid|opfuncid) (\d+)")
_OPERATORS = re.compile(r":(?:opno|eqop|sortop) (\d+)")
_TABLES = re.compile(r":relid (\d+)")


def require_same_rows(connection: Any, table: str) -> None:
    """InvalidInput for a table, by its quoted name, whose rows may differ between two passes."""
    reason: str | None = "a definition that PostgreSQL does not show"
    with contextlib.suppress(Exception):  # raised outside, where nothing of it hangs on
        (number,) = connection.execute("SELECT to_regclass(%s)::oid", [table]).fetchone()
        reason = _CatalogueLook(connection).reason(int(number))
    if reason is not None:
        raise InvalidInput(
            f"must be the same rows in every pass, and this table has {reason}",
            parameter="data",
            hint="Write its rows down once: CREATE TABLE people AS SELECT …",
        )


class _CatalogueLook:
    """Looks at tables and views, each once."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._seen: set[int] = set()

    def reason(self, table: int) -> str | None:
        """Why the rows of a table may differ between two passes, or None."""
        if table in self._seen:
            return None
        self._seen.add(table)
        children = self._rows(
            "WITH RECURSIVE parts AS (SELECT %s::oid AS part UNION "
            "SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = part) "
            "SELECT relkind::text FROM pg_class JOIN parts ON oid = part",
            table,
        )
        if any(kind == "f" for (kind,) in children):
            return "a foreign table, which is no part of a snapshot"
        texts = self._rows(
            "SELECT ev_action::text FROM pg_rewrite JOIN pg_class c ON c.oid = ev_class "
            "WHERE ev_class = %s AND relkind = 'v' "
            "UNION ALL SELECT polqual::text FROM pg_policy WHERE polrelid = %s "
            "AND polqual IS NOT NULL",
            table,
            table,
        )
        return next((why for (text,) in texts if (why := self._reason_in(text))), None)

    def _reason_in(self, text: str) -> str | None:
        for part, reason in _PARTS.items():
            if part in text:
                return reason
        functions, operators, tables = (
            sorted(set(map(int, found.findall(text))))
            for found in (_FUNCTIONS, _OPERATORS, _TABLES)
        )
        called = self._rows(
            "SELECT proname, provolatile::text FROM pg_proc WHERE oid = ANY(%s) OR oid IN "
            "(SELECT oprcode FROM pg_operator WHERE oid = ANY(%s))",
            functions,
            operators,
        )
        for name, volatility in called:
            if volatility == "v":
                return f"{name}(), which may differ between passes"
            if name in _BY_ORDER:
                return f"{name}(), which may depend on the order of rows"
        return next((why for table in tables if table and (why := self.reason(table))), None)

    def _rows(self, query: str, *values: Any) -> list[Any]:
        return list(self._connection.execute(query, values).fetchall())
