"""Rows of a Spark DataFrame, written down with a number each that lasts.

A row's number is its place: the partition it was written from in the upper bits, its place there in
the lower 33. Places in a partition have no gaps, so the partition's count tells where row number
`first` lies, and which side of it a row is on follows from the row's own number alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muhat.data.spark_quiet import quietly
from muhat.errors import InvalidInput

ROW_NUMBER = "muhat_row_number"
_PLACE_BITS = 33


@dataclass(frozen=True)
class Numbered:
    """A frame that reads the rows back, its last column their numbers; rows by partition."""

    frame: Any
    parts: tuple[tuple[int, int], ...]

    @property
    def count(self) -> int:
        """The number of rows."""
        return sum(rows for _, rows in self.parts)

    def bound(self, first: int) -> int:
        """The least number that the first rows do not have, of which there is at least one."""
        return self.at(first - 1) + 1

    def at(self, place: int) -> int:
        """The number of the row at a place, 0 the first."""
        for part, rows in self.parts:
            if place < rows:
                return (part << _PLACE_BITS) + place
            place -= rows
        raise InvalidInput("there are fewer rows.")


def numbered(frame: Any, path: str) -> Numbered:
    """Write the rows of a frame down as Parquet, each with its number, and read them back."""
    found = quietly(frame.sparkSession, lambda: _written(frame, path))
    if found is None:
        raise InvalidInput(
            f"the rows could not be written down at {path!r:.200}. Does it exist already, can all "
            "executors write there, and does Parquet take the names and types of all columns?"
        )
    return found


def _written(frame: Any, path: str) -> Numbered | None:
    if frame.isStreaming:
        raise InvalidInput("must not be a stream: it never ends", parameter="data")
    if ROW_NUMBER in map(str.lower, frame.columns):
        raise InvalidInput(f"the frame has a column {ROW_NUMBER!r} already: rename it.")
    rows = frame.selectExpr("*", f"monotonically_increasing_id() AS {ROW_NUMBER}")
    rows.write.mode("error").parquet(path)
    back = frame.sparkSession.read.schema(rows.schema).parquet(path)
    parts = (
        back.selectExpr(
            f"shiftright({ROW_NUMBER}, {_PLACE_BITS}) AS part",
            f"{ROW_NUMBER} & {(1 << _PLACE_BITS) - 1} AS place",
        )
        .groupBy("part")
        .agg({"place": "max", "*": "count"})
        .collect()
    )
    counts = sorted((row["part"], row["count(1)"], row["max(place)"]) for row in parts)
    # A partition that was written twice, or not to its end, has gaps or repeated numbers.
    if any(last + 1 != count for _, count, last in counts):
        return None
    return Numbered(back, tuple((part, count) for part, count, _ in counts))
