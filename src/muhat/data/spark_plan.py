"""Whether a Spark plan gives the same rows every time, told from the analysed plan alone.

A pass that is run again, after a failure or as the second of several, must see the rows of the
first. Plans that choose rows by chance, or by whatever comes first, do not promise that; Spark's
plan has a seed in it whether the user gave one or not, so a sample is refused in any case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from muhat.errors import InvalidInput

_CUTS = {"GlobalLimit", "LocalLimit", "Offset", "Tail", "LimitAll"}
_KEEPS_ORDER = {*_CUTS, "Project", "Filter", "SubqueryAlias", "View", "ResolvedHint"}

_FUNCTIONS = (
    "rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id|"
    "spark_partition_id|input_file_name|input_file_block_start|input_file_block_length|"
    "reflect|try_reflect|java_method|"
    "current_timestamp|localtimestamp|now|current_date|curdate|current_time|"
    "first|first_value|last|last_value|any_value|collect_list|collect_set|array_agg|"
    "listagg|string_agg|mode|histogram_numeric|percentile_approx|approx_percentile|"
    "max_by|min_by|row_number|ntile|lag|lead|nth_value"
)
# A name with parentheses that belongs to a column is followed by the column's number.
_BY_CHANCE = re.compile(rf"(?<![\w.`#])({_FUNCTIONS})\((?![^()]*\)#\d)", flags=re.I)
_NODE = re.compile(r"^([\s:|+\-]*)'?(?:\*\(\d+\) )?(\w+)")
_WITHIN_PARTITIONS = re.compile(r"\bSort \[.*\], false\b")
_BY_ROWS = re.compile(
    r" windowspecdefinition\((?:(?! windowspecdefinition).)*?specifiedwindowframe\(RowFrame, "
    r"(?!unboundedpreceding\$\(\), unboundedfollowing)"
)
_OF_TIES = {"rank", "dense_rank", "percent_rank", "cume_dist"}
"""Functions over windows that give rows that tie the same answer, though Spark counts rows."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz_"
_LISTED = re.compile(r"#(\d+)L?(?=[,\]])")
_ORDERED = re.compile(r"#(\d+)L? (?:ASC|DESC)\b")
_SHORTENED = re.compile(r"\.\.\. \d+ more (fields|characters)|Truncated plan")
_WHOLE = {
    "spark.sql.debug.maxToStringFields": str(2**31 - 1),
    # Java has no longer texts.
    "spark.sql.maxPlanStringLength": str(2**31 - 16),
}


def require_same_rows(frame: Any) -> None:
    """InvalidInput for a frame that is streaming, or whose rows may differ between two passes."""
    if frame.isStreaming:
        raise InvalidInput(
            "must not be a stream: it never ends, and a pass could not be repeated",
            parameter="data",
            hint="Write a batch of it to a table first.",
        )
    analysed, optimised = _plans(frame)
    reason = reason_in(analysed, optimised) or _reason_within(frame) or _reason_set(frame, analysed)
    if reason is not None:
        raise InvalidInput(
            f"must be the same rows in every pass, and this frame has {reason}",
            parameter="data",
            hint="Write its rows down once: spark_data(frame, materialize=path).",
        )


def is_connect(frame: Any) -> bool:
    """Whether a frame is that of a Spark Connect client."""
    return any(kind.__module__.startswith("pyspark.sql.connect") for kind in type(frame).__mro__)


def _plans(frame: Any) -> tuple[str, str]:
    """The analysed and the optimised plan as text, nothing of them left out."""
    conf = frame.sparkSession.conf
    before = {key: conf.get(key) for key in _WHOLE}
    try:
        for key, value in _WHOLE.items():
            conf.set(key, value)
        if not is_connect(frame):
            query = frame._jdf.queryExecution()
            return str(query.analyzed().toString()), str(query.optimizedPlan().toString())
        text = str(frame._explain_string(mode="extended"))
    finally:
        for key, value in before.items():
            conf.set(key, value)
    _, _, analysed = text.partition("== Analyzed Logical Plan ==\n")
    analysed, _, optimised = analysed.partition("\n== Optimized Logical Plan ==\n")
    # The first line of the analysed plan lists its columns.
    return analysed.partition("\n")[2], optimised.partition("\n== Physical Plan ==\n")[0]


def _reason_within(frame: Any) -> str | None:
    """What only the plan itself knows: functions of the user's that are declared so."""
    if is_connect(frame):
        same = not _is_random(frame._plan.to_proto(frame.sparkSession.client))
    else:
        same = frame._jdf.queryExecution().analyzed().deterministic()
    return None if same else "a function that is not deterministic"


def _reason_set(frame: Any, analysed: str) -> str | None:
    """Rows dealt out in turn go elsewhere when a task is repeated, unless they are sorted first."""
    sorts = frame.sparkSession.conf.get("spark.sql.execution.sortBeforeRepartition", "true")
    if str(sorts).lower() == "true" or "Repartition" not in {
        node.name for node in _nodes(analysed)
    }:
        return None
    return "a repartition with spark.sql.execution.sortBeforeRepartition turned off"


def _is_random(message: Any) -> bool:
    """Whether a message of a client's plan, or one within it, is a function declared random."""
    if message.DESCRIPTOR.name == "CommonInlineUserDefinedFunction" and not message.deterministic:
        return True
    return any(_is_random(each) for each in _within(message))


def _within(message: Any) -> Iterator[Any]:
    for _, value in message.ListFields():
        if hasattr(value, "ListFields"):
            yield value
        elif not isinstance(value, str | bytes | int | float):
            several = value.values() if hasattr(value, "values") else value
            yield from (each for each in several if hasattr(each, "ListFields"))


def reason_in(analysed: str, optimised: str) -> str | None:
    """Why the rows of a plan may differ between two passes, or None."""
    called = _BY_CHANCE.search(analysed)
    if called is not None:
        return f"{called[1].lower()}(), which may differ between passes"
    if _SHORTENED.search(analysed + optimised) is not None:
        return "a plan that Spark does not show whole"
    by_rows = (_called(analysed, found.start()) for found in _BY_ROWS.finditer(analysed))
    if any(name not in _OF_TIES for name in by_rows):
        return "a window of rows that may tie"
    nodes = list(_nodes(analysed))
    for place, node in enumerate(nodes):
        if node.name == "Sample":
            return "a sample"
        if node.name in _CUTS:
            order = _order(nodes[place:])
            if order is None:
                return "a limit without an order"
            if not _tells_all_apart(nodes[place + order :]):
                return "a limit by an order that may have ties"
        # Duplicates in all columns are alike; of those in some, Spark keeps the first it meets.
        if node.name == "Deduplicate" and _BY_CHANCE.search(optimised) is not None:
            return "dropDuplicates of some columns"
    return None


class _Node(NamedTuple):
    """A node of a plan: how deep it is, what it is called, and all that Spark writes of it."""

    depth: int
    name: str
    line: str


def _order(nodes: Sequence[_Node]) -> int | None:
    """Which node sorts the rows that the first one cuts, with nothing between that mixes them."""
    for below, (depth, name, _) in enumerate(nodes):
        if depth != nodes[0].depth + below or name not in _KEEPS_ORDER:
            return below if depth == nodes[0].depth + below and name == "Sort" else None
    return None


def _tells_all_apart(nodes: Sequence[_Node]) -> bool:
    """Whether a sort is by all columns that it has: then rows that tie are the same."""
    keys = set(_ORDERED.findall(nodes[0].line))
    for _, name, line in nodes[1:]:
        columns = _LISTED.findall(line)
        if columns:
            return keys.issuperset(columns)
        if name not in _KEEPS_ORDER:
            return False
    return False


def _called(plan: str, end: int) -> str:
    """The name of the function whose arguments end there."""
    depth = 0
    for place in range(end - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(plan[place], 0)
        if depth == 0:
            return plan[:place][len(plan[:place].rstrip(_LETTERS)) :]
    return ""


def _nodes(plan: str) -> Iterator[_Node]:
    """All nodes, from the root down."""
    for line in plan.splitlines():
        found = _NODE.match(line)
        if found is not None:
            # Rows that are sorted within partitions are in no order as a whole.
            is_local = found[2] == "Sort" and _WITHIN_PARTITIONS.search(line) is not None
            yield _Node(len(found[1]) // 3, "LocalSort" if is_local else found[2], line)
