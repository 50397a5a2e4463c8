"""What is assumed and allowed of columns by their names, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muhat.data.selection import column_names
from muhat.errors import InvalidInput


def by_column(
    columns: Sequence[str] | Sequence[int] | None, *, moment: Any, max_bias: Any
) -> dict[str, Any]:
    """moment = (λ, {column: ψ}) and max_bias = {column: bias} as lists; others as they are.

    >>> by_column(["age", "pay"], moment=(2, {"pay": 900.0, "age": 15.0}), max_bias=0.1)
    {'moment': (2, [15.0, 900.0]), 'max_bias': 0.1}
    """
    if isinstance(moment, tuple | list) and len(moment) == 2 and isinstance(moment[1], Mapping):
        moment = (moment[0], _ordered("moment", moment[1], columns))
    if isinstance(max_bias, Mapping):
        max_bias = _ordered("max_bias", max_bias, columns)
    return {"moment": moment, "max_bias": max_bias}


def _ordered(
    option: str, given: Mapping[str, Any], columns: Sequence[str] | Sequence[int] | None
) -> list[Any]:
    names = column_names(columns)
    if names is None:
        raise InvalidInput(f"{option} by column needs columns=[...], in the order of the value.")
    for name in {*map(str, names)} ^ {*given}:
        raise InvalidInput(f"{option} and columns must name the same; {name!r:.60} is in one only.")
    return [given[str(name)] for name in names]
