"""Whether a Spark plan gives the same rows every time, told from the analysed plan alone.

A pass that is run again, after a failure or as the second of several, must see the rows of the
first. Plans that choose rows by chance, or by whatever comes first, do not promise that; Spark's
plan has a seed in it whether the user gave one or not, so a sample is refused in any case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from muhat.errors import InvalidInput

_CUTS = {"GlobalLimit", "LocalLimit", "Offset", "Tail", "LimitAll"}
_KEEPS_ORDER = {*_CUTS, "Project", "Filter", "SubqueryAlias", "View", "ResolvedHint"}

_FUNCTIONS = (
    "rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id|"
    "spark_partition_id|input_file_name|input_file_block_start|input_file_block_length|"
    "first|first_value|last|last_value|any_value|collect_list|collect_set|array_agg"
)
# A name with parentheses that belongs to a column is followed by the column's number.
_BY_CHANCE = re.compile(rf"(?<![\w.`#])({_FUNCTIONS})\((?![^()]*\)#\d)")
_NODE = re.compile(r"^([\s:|+\-]*)'?(?:\*\(\d+\) )?(\w+)")
_ALL_FIELDS = str(2**31 - 1)


def require_same_rows(frame: Any) -> None:
    """InvalidInput for a frame that is streaming, or whose rows may differ between two passes."""
    if frame.isStreaming:
        raise InvalidInput(
            "data must not be a stream: it never ends, and a pass could not be repeated. Write a "
            "batch of it to a table first."
        )
    analysed, optimised = _plans(frame)
    reason = reason_in(analysed, optimised) or _reason_within(frame)
    if reason is not None:
        raise InvalidInput(
            f"data must be the same rows in every pass, and this frame has {reason}. Write its "
            "rows down once: spark_data(frame, materialize=path)."
        )


def is_connect(frame: Any) -> bool:
    """Whether a frame is that of a Spark Connect client."""
    return any(kind.__module__.startswith("pyspark.sql.connect") for kind in type(frame).__mro__)


def _plans(frame: Any) -> tuple[str, str]:
    """The analysed and the optimised plan as text, nothing of them left out."""
    conf = frame.sparkSession.conf
    key = "spark.sql.debug.maxToStringFields"
    before = conf.get(key)
    conf.set(key, _ALL_FIELDS)
    try:
        if not is_connect(frame):
            query = frame._jdf.queryExecution()
            return str(query.analyzed().toString()), str(query.optimizedPlan().toString())
        text = str(frame._explain_string(mode="extended"))
    finally:
        conf.set(key, before)
    _, _, analysed = text.partition("== Analyzed Logical Plan ==\n")
    analysed, _, optimised = analysed.partition("\n== Optimized Logical Plan ==\n")
    # The first line of the analysed plan lists its columns.
    return analysed.partition("\n")[2], optimised.partition("\n== Physical Plan ==\n")[0]


def _reason_within(frame: Any) -> str | None:
    """What only the plan itself knows: functions of the user's that are declared so."""
    if is_connect(frame) or frame._jdf.queryExecution().analyzed().deterministic():
        return None
    return "a function that is not deterministic"


def reason_in(analysed: str, optimised: str) -> str | None:
    """Why the rows of a plan may differ between two passes, or None."""
    called = _BY_CHANCE.search(analysed)
    if called is not None:
        return f"{called[1]}(), which is not deterministic"
    nodes = list(_nodes(analysed))
    for place, (depth, name) in enumerate(nodes):
        if name == "Sample":
            return "a sample"
        if name in _CUTS and not _is_ordered(nodes[place:], depth):
            return "a limit without an order"
        # Duplicates in all columns are alike; of those in some, Spark keeps the first it meets.
        if name == "Deduplicate" and _BY_CHANCE.search(optimised) is not None:
            return "dropDuplicates of some columns"
    return None


def _is_ordered(nodes: list[tuple[int, str]], depth: int) -> bool:
    """Whether the rows that are cut come from a sort, with nothing between that mixes them."""
    for below, (level, name) in enumerate(nodes):
        if level != depth + below or name not in _KEEPS_ORDER:
            return level == depth + below and name == "Sort"
    return False


def _nodes(plan: str) -> Iterator[tuple[int, str]]:
    """The depth and the name of every node, from the root down."""
    for line in plan.splitlines():
        found = _NODE.match(line)
        if found is not None:
            yield len(found[1]) // 3, found[2]
