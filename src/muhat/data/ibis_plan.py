"""Whether an expression of Ibis has the same rows every time, told before any row is read.

Ibis knows the operations of an expression. The views among its tables are looked at as the
backend's catalogue has them, where it can be asked.
"""

from __future__ import annotations

import contextlib
from typing import Any

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

_CATALOGUE = (
    "SELECT view_definition AS definition FROM information_schema.views "
    "WHERE LOWER(table_name) = {}"
)
_CATALOGUES = {
    "sqlite": "SELECT sql AS definition FROM sqlite_master WHERE type = 'view' AND LOWER(name) = {}"
}

_IN_VIEWS = {
    "Limit": "a limit: rows that tie may be cut in another order",
    "Fetch": "a limit: rows that tie may be cut in another order",
    "Offset": "an offset: rows that tie may be cut in another order",
    "TableSample": "a sample",
}
_FIXED_WINDOWS = {
    *("Sum", "Count", "Avg", "Min", "Max", "Rank", "DenseRank", "PercentRank", "CumeDist"),
}
"""Functions over windows that give rows that tie the same answer."""

_FIXED = {
    *("Abs", "And", "Array", "Avg", "Between", "Case", "Cast", "Ceil", "Coalesce", "Concat"),
    *("ConcatWs", "Contains", "Cos", "Count", "CountIf", "CumeDist", "Date", "DateAdd", "DateDiff"),
    *("DateSub", "DateTrunc", "Day", "DayOfMonth", "DayOfWeek", "DayOfYear", "DenseRank", "DPipe"),
    *("EndsWith", "Exists", "Exp", "Extract", "Floor", "Greatest", "Hex", "Hour", "If", "In"),
    *("IsInf", "IsNan", "Least", "Left", "Length", "Like", "ILike", "Ln", "Log", "Lower", "LPad"),
    *("Max", "MD5", "Min", "Minute", "Mod", "Month", "Not", "Nullif", "Or", "Pad", "PercentRank"),
    *("Pow", "Quarter", "Rank", "RegexpLike", "Repeat", "Replace", "Right", "Round", "Second"),
    *("Sign", "Sin", "SplitPart", "Sqrt", "StartsWith", "Stddev", "StddevPop", "StddevSamp"),
    *("StrPosition", "StrToDate", "StrToTime", "Substring", "Sum", "Tan", "TimestampTrunc"),
    *("ToChar", "ToNumber", "Trim", "TryCast", "Unhex", "Upper", "Variance", "VariancePop"),
    *("Week", "Xor", "Year"),
}
"""Functions that give the same answer to the same values, in whatever order they come."""

_FIXED_IN_CLICKHOUSE = {
    *("assumenotnull", "isnotnull", "isnull", "multiif", "todate", "todatetime", "tofloat32"),
    *("tofloat64", "toint8", "toint16", "toint32", "toint64", "tonullable", "tostring"),
    *("touint8", "touint16", "touint32", "touint64"),
}
"""The same of functions that ClickHouse writes into the views that it keeps."""


def looked_at(table: Any) -> tuple[list[Any], Any]:
    """All operations of an expression, and the backend that carries them out."""
    found = None
    with contextlib.suppress(Exception):  # raised outside, where nothing of it hangs on
        from ibis.expr.operations import Node

        found = list(table.op().find(Node)), table._find_backend(use_default=True)
    if found is None:
        raise InvalidInput("data could not be opened: Ibis finds no one backend for the table.")
    return found


def require_same_rows(nodes: list[Any], backend: Any | None = None) -> None:
    """InvalidInput for an expression whose rows may differ between two passes.

    With a backend its views are looked at, too.
    """
    names = [str(node.name) for node in nodes if type(node).__name__ == "DatabaseTable"]
    look = None if backend is None else _ViewLook(backend)
    reasons = [*map(_reason_at, nodes), *(look.reason(name) for name in names if look is not None)]
    for reason in filter(None, reasons):
        raise InvalidInput(
            f"must be the same rows in every pass, and this expression has {reason}",
            parameter="data",
            hint="Write its rows down once: con.create_table(…).",
        )


def _reason_at(node: Any) -> str | None:
    kinds = {kind.__name__ for kind in type(node).__mro__}
    if kinds & _TEXTS:
        return "text of SQL"
    by_order = "WindowFunction" in kinds and bool(node.order_by)
    by_order = by_order and type(node.func).__name__ not in _OF_TIES
    return type(node).__name__ if by_order or kinds & (_BY_ORDER | {"Impure"}) else None


class _ViewLook:
    """Looks at the views of a backend, each once, in its own SQL."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._seen: set[str] = set()

    def reason(self, name: str) -> str | None:
        """Why the rows of a table may differ between two passes, or None."""
        if name.lower() in self._seen:
            return None
        self._seen.add(name.lower())
        reasons = (self._reason_in(text) for text in self._definitions(name))
        return next((f"a view, {name!r:.60}, with {why}" for why in reasons if why), None)

    def _reason_in(self, definition: str) -> str | None:
        from sqlglot import expressions as sge
        from sqlglot import parse_one

        try:
            nodes = list(parse_one(definition, read=self._backend.dialect).walk())
        except Exception:
            return "a definition that cannot be looked at"
        for node in nodes:
            kind = type(node).__name__
            if kind in _IN_VIEWS:
                return _IN_VIEWS[kind]
            by_rows = kind == "WindowSpec" and str(node.args.get("kind")).upper() == "ROWS"
            if by_rows or (kind == "Window" and type(node.this).__name__ not in _FIXED_WINDOWS):
                return "a function over rows that may tie"
            if not isinstance(node, sge.Func) or kind in _FIXED:
                continue
            named = node.name if isinstance(node, sge.Anonymous) else node.sql_name()
            if named.lower() not in _FIXED_IN_CLICKHOUSE:
                return f"{named.lower():.60}(), which may differ between passes"
        tables = (str(node.name) for node in nodes if isinstance(node, sge.Table))
        return next((why for table in tables if (why := self.reason(table))), None)

    def _definitions(self, name: str) -> list[str]:
        """What the catalogue says of views of a name; nothing if it cannot be asked."""
        literal = "'" + name.lower().replace("'", "''") + "'"
        text = _CATALOGUES.get(self._backend.name, _CATALOGUE).format(literal)
        found: list[str] = []
        with contextlib.suppress(Exception):
            asked = self._backend.sql(text, schema={"definition": "string"}, dialect="trino")
            found = [str(row["definition"] or "") for row in asked.to_pyarrow().to_pylist()]
        return found
