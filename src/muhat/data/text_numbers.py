"""Numbers in text: which texts are numbers, and the one float that each of them is.

A number is an optional sign, digits with an optional point, an optional exponent, and spaces or
tabs around it; it is read as the nearest float64. Anything else is missing.
"""

from __future__ import annotations

import math
import re
from typing import Any

NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_CELL = re.compile(rf"[ \t]*{NUMBER}[ \t]*")


def number_in(text: str) -> float:
    """The number that a text is, not-a-number if it is none.

    >>> number_in(" 1.50"), number_in("1_000")
    (1.5, nan)
    """
    return float(text) if _CELL.fullmatch(text) else math.nan


def numbers_in(cells: Any) -> Any:
    """An Arrow array of bytes or text as float64, null where there is no number."""
    import pyarrow as pa
    from pyarrow import compute

    looks_right = compute.match_substring_regex(cells, f"^[ \\t]*{NUMBER}[ \\t]*$")
    texts = compute.if_else(looks_right, cells, pa.scalar(None, cells.type)).cast(pa.string())
    texts = compute.utf8_trim(texts, " \t")
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        distinct = texts.dictionary_encode()
        values = pa.array([_number(text) for text in distinct.dictionary], pa.float64())
        return values.take(distinct.indices)


def _number(text: Any) -> float | None:
    import pyarrow as pa

    try:
        value: float = text.cast(pa.float64()).as_py()
    except pa.ArrowInvalid:
        return None
    return value
