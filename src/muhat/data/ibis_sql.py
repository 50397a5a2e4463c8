"""Sums in the SQL of a backend of Ibis: one text, said in the backend's own words by Ibis.

The text is put in the words of Trino, whose numbers have the types of everybody else's, and which
the library that Ibis writes SQL with (sqlglot) says in others. Nothing in it is wider than integers
of 64 bits, so sums come in two parts, and what would need more is read through Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muhat.data.sql_dialect import EXACT_DIGITS, CannotPush, Dialect, SqlColumn
from muhat.data.sql_query import Query

_FROM = "trino"
_DIVIDE_IN_FLOATS = {"bigquery", "databricks", "mysql", "singlestoredb", "impala"}
"""Backends whose quotient of whole numbers is a float or a decimal, and which have DIV."""

_RECORDS = "muhat_records"

_WITHIN_THIS_PROCESS = {"sqlite", "datafusion"}
"""Backends that are libraries: what reads their rows costs less than what they make of them."""


class IbisWords(Dialect):
    """Trino's SQL, with functions of no engine where engines differ more than sqlglot knows."""

    real_type = "DOUBLE"

    @property
    def wide_type(self) -> str:  # type: ignore[override]
        """There is none that all backends have."""
        raise CannotPush

    def wide(self, value: int) -> str:
        raise CannotPush

    def real(self, value: float) -> str:
        # Text that is cast some read anew for every record; a number with an exponent is a float.
        return repr(value) if "e" in repr(value) else f"{value!r}e0"

    def quotient(self, value: str, divisor: int) -> str:
        return f"muhat_quotient(({value}), {divisor})"

    def remainder(self, value: str, divisor: int) -> str:
        return f"({value} % {divisor})"

    def upper(self, value: str, bits: int) -> str:
        # In some, what is shifted has no sign from then on.
        return self.quotient(value, 1 << bits)

    def lower(self, value: str, bits: int) -> str:
        return self.remainder(value, 1 << bits)

    def same_bytes(self, text: str) -> str:
        return f"muhat_bytes({text})"

    def total(self, whole: str, condition: str | None) -> str:
        kept = whole if condition is None else f"CASE WHEN {condition} THEN {whole} END"
        return f"COALESCE(sum(CAST({kept} AS DECIMAL(38, 0))), 0)"

    def count(self, condition: str | None) -> str:
        return "count(*)" if condition is None else f"count(CASE WHEN {condition} THEN 1 END)"


WORDS = IbisWords()


def has_sql(backend: Any) -> bool:
    """Whether a backend of Ibis takes text of SQL, and should."""
    from ibis.backends.sql import SQLBackend

    return isinstance(backend, SQLBackend) and backend.name not in _WITHIN_THIS_PROCESS


def chosen(table: Any, names: Sequence[str]) -> Any:
    """Columns of a table of Ibis as x0, x1, …, numbers that are exact in a float as such."""
    import ibis

    columns = {}
    for place, name in enumerate(names):
        column = table[name]
        columns[f"x{place}"] = column.cast("float64") if _is_exact(column.type()) else column
    return table.select(**(columns or {"nothing": ibis.literal(1)}))


def rows_text(rows: Any, schema: Mapping[str, Any], backend: Any) -> str:
    """A query of the backend's that has the rows of a table of Arrow in itself."""
    import sqlglot
    from sqlglot import expressions as sge

    kinds = {name: backend.compiler.type_mapper.from_ibis(kind) for name, kind in schema.items()}
    listed = [
        sqlglot.select(
            *(
                sge.alias_(sge.Cast(this=_literal(row[name]), to=kind.copy()), name, quoted=True)
                for name, kind in kinds.items()
            )
        ).sql(backend.dialect)
        for row in rows.to_pylist()
    ]
    return " UNION ALL ".join(listed)


def _literal(value: Any) -> Any:
    from sqlglot import expressions as sge

    if value is None:
        return sge.Null()
    return sge.Boolean(this=value) if isinstance(value, bool) else sge.Literal.string(str(value))


def sql_column(name: str, kind: Any) -> SqlColumn | None:
    """A column by its type in Ibis, None for those that are read through Arrow only."""
    if kind.is_float64() or _is_exact(kind):
        return SqlColumn(name, "float")
    if kind.is_int64():
        return SqlColumn(name, "integer", narrow=True)
    if kind.is_string():
        return SqlColumn(name, "text")
    if not kind.is_decimal() or (kind.precision or EXACT_DIGITS + 1) > EXACT_DIGITS:
        return None
    return WORDS.short_decimal(name, kind.scale)


def as_tried(kind: Any) -> Any:
    """The type of values that stand for those of a column in public rows.

    Floats of 32 bits are added up as those of 64 bits; some backends only say their first digits.
    """
    import ibis

    return ibis.dtype("float64") if kind.is_floating() else kind.copy(nullable=True)


def text_of(query: Query, records: str, backend: Any) -> str:
    """A query over records that a text of the backend's selects, as a text of the backend's."""
    import sqlglot
    from sqlglot import expressions as sge

    # Names are quoted, so that none is a word of the backend's or in another case.
    found = query.over(f"SELECT * FROM {_RECORDS} AS records")
    # Some clients make floats of large numbers.
    shown = ", ".join(f"CAST({name} AS VARCHAR) AS {name}" for name in query.answer)
    tree = sqlglot.parse_one(f"SELECT {shown} FROM ({found}) AS found", read=_FROM)
    _say_in_words_of(backend.name, tree)
    said = tree.sql(backend.dialect, identify=True)
    name = sge.to_identifier(_RECORDS, quoted=True).sql(backend.dialect)
    before, _, after = said.partition(name)
    return f"{before}({records}){after}"


def _say_in_words_of(backend: str, tree: Any) -> None:
    """Put something in the place of the functions of no engine."""
    from sqlglot import expressions as sge

    # The innermost come last.
    for node in reversed(list(tree.find_all(sge.Anonymous))):
        if node.name.lower() == "muhat_quotient":
            value, divisor = node.expressions
            node.replace(_quotient(value, divisor, backend))
        elif node.name.lower() == "muhat_bytes":
            node.replace(_bytes(node.expressions[0], backend))


def _quotient(value: Any, divisor: Any, backend: str) -> Any:
    from sqlglot import expressions as sge

    if backend == "clickhouse":
        return sge.Anonymous(this="intDiv", expressions=[value, divisor])
    if backend in _DIVIDE_IN_FLOATS:
        return sge.Paren(this=sge.IntDiv(this=value, expression=divisor))
    # Nothing is left to be rounded, whichever kind of number the quotient is.
    rest = sge.Mod(this=value.copy(), expression=divisor.copy())
    exact = sge.Paren(this=sge.Sub(this=value, expression=rest))
    return sge.cast(sge.Div(this=exact, expression=divisor, typed=True), "BIGINT")


def _bytes(text: Any, backend: str) -> Any:
    from sqlglot import expressions as sge

    if backend not in ("mysql", "singlestoredb"):
        return text
    # Else most columns hide case and spaces at the end, and some are not of UTF-8.
    unicode = sge.DataType(this=sge.DataType.Type.CHARACTER_SET, kind=sge.Var(this="utf8mb4"))
    return sge.cast(sge.Cast(this=text, to=unicode), "BINARY")


def _is_exact(kind: Any) -> bool:
    """Whether every value of a type is a float of 64 bits."""
    if kind.is_boolean() or kind.is_float16() or kind.is_float32():
        return True
    return bool(kind.is_integer()) and kind.nbytes <= 4
