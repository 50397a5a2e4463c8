"""Spark's words for sums in SQL: which columns have any, and how a query runs over a frame.

Nothing here depends on a session's settings: casts and sums that would fail in ANSI mode, and be
something else without it, cannot happen between the numbers that they are guarded by; texts are
written without escapes, and compared byte by byte.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any

from muhat.data.spark_plan import is_connect
from muhat.data.sql_dialect import EXACT_DIGITS, LARGEST, Dialect, SqlColumn
from muhat.data.sql_query import Query

_EXACT_REALS = {"boolean", "tinyint", "smallint", "int", "float"}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_TEXT = re.compile(r"(string|varchar|char)\b.*")
_MOST_DIGITS, _NARROW_DIGITS = 38, 18
"""What a decimal of Spark's has room for, and what an integer of 64 bits has."""

_HALF_BITS = 23


class SparkWords(Dialect):
    """Spark's SQL."""

    real_type, wide_type = "DOUBLE", "DECIMAL(38, 0)"
    units = (1 << _HALF_BITS, 1)
    # What Spark makes of more is longer than the 8000 bytes that Java compiles.
    most_names = 32

    def is_there(self, column: SqlColumn) -> str:
        if column.kind != "float":
            return super().is_there(column)
        # Not a number is larger than all that are.
        return f"(abs({column.value}) <= {self.real(LARGEST)})"

    def text(self, value: str) -> str:
        # Whether a backslash is one depends on a setting.
        return f"CAST(X'{value.encode().hex()}' AS STRING)"

    def quotient(self, value: str, divisor: int) -> str:
        return f"({value} DIV {divisor})"

    def remainder(self, value: str, divisor: int) -> str:
        return f"({value} % {divisor})"

    def same_bytes(self, text: str) -> str:
        return f"({text} COLLATE UTF8_BINARY)"

    def near(self, value: str, low: str, high: str) -> str:
        # Java takes the nearer of two numbers faster than it decides what to do. Not a number is
        # larger than all that are.
        return f"LEAST(GREATEST({value}, {low}), {high})"

    def parts(self, whole: str) -> tuple[str, ...]:
        # Spark adds decimals one object at a time; integers of 64 bits it adds in registers.
        return f"({whole} >> {_HALF_BITS})", f"({whole} & {(1 << _HALF_BITS) - 1})"


WORDS = SparkWords()


def sql_column(name: str, kind: str, *, is_coded: bool = False) -> SqlColumn | None:
    """A column of a type of Spark's, None for those that are read through Arrow only.

    Text that is not coded has numbers in it, that of CSV files.
    """
    if kind == "double":
        return SqlColumn(name, "float")
    if kind in _EXACT_REALS:
        return SqlColumn(WORDS.as_real(name), "float")
    if kind == "bigint":
        return SqlColumn(name, "integer")
    if _TEXT.fullmatch(kind):
        return SqlColumn(name, "text") if is_coded else None
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is None:
        return None
    digits, scale = int(decimal[1]), int(decimal[2])
    if digits <= EXACT_DIGITS:
        return WORDS.short_decimal(name, scale)
    if scale == 0:
        return SqlColumn(name, "decimal")
    # The type of the product has so many digits; if it had more, some would be rounded off.
    if digits + scale + 2 > _MOST_DIGITS:
        return None
    units = f"{name} * CAST({10**scale} AS DECIMAL({scale + 1}, 0))"
    narrow = digits <= _NARROW_DIGITS
    whole = "BIGINT" if narrow else f"DECIMAL({digits}, 0)"
    return SqlColumn(f"CAST({units} AS {whole})", "decimal", scale=scale, narrow=narrow)


def asked(frame: Any, query: Query) -> list[Sequence[int | None]]:
    """The rows of a query's answer, over a frame with columns x0, x1, …

    Stages are calls, not text: a view of the frame would be seen by others, and has a name that
    may be taken.
    """
    for stage in query.stages:
        if stage.groups is None:
            frame = frame.selectExpr("*", *stage.columns)
        else:
            frame = _grouped(frame, stage.groups, stage.columns[len(stage.groups) :])
    rows: list[Sequence[int | None]] = frame.collect()
    return rows


def _grouped(frame: Any, groups: Sequence[str], sums: Sequence[str]) -> Any:
    if not groups:
        return frame.selectExpr(*sums)
    # A process may have frames of both kinds, whose columns do not mix.
    kind = "pyspark.sql.connect" if is_connect(frame) else "pyspark.sql"
    expression = importlib.import_module(f"{kind}.functions").expr
    return frame.groupBy(*groups).agg(*map(expression, sums))
