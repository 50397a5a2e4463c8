"""Spark DataFrames as a source: a pass runs on the cluster, sums come home.

What `tallies.py` can say is added up by a query of Spark's own (`spark_sql.py`). For all else each
partition is folded by the accumulators of the embedded engine, in Spark's Python workers over Arrow
batches, to one row of whole numbers. Spark keeps the row of exactly one attempt at every task, so a
task that is tried again, or twice at once, counts once. No record comes to the driver.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat.data.base import Accumulated, Source
from muhat.data.selection import Coders, Columns, Field, Selection, identities, select
from muhat.data.spark_plan import require_same_rows
from muhat.data.spark_quiet import quiet, quietly
from muhat.data.spark_rows import Numbered, numbered
from muhat.data.spark_ship import require_running, ship
from muhat.data.spark_sql import WORDS, asked, sql_column
from muhat.data.spark_worker import SCHEMA, WorkerPass
from muhat.data.sql import answered, queries_of
from muhat.data.sql_query import Query
from muhat.data.states import Numbers, packed, unpacked
from muhat.errors import DataChanged, InvalidInput

NUMBERS = {"tinyint", "smallint", "int", "bigint", "float", "double", "boolean"}
TEXTS = {"string", "binary", "void"}

SMALL_STATE = 1 << 12
"""Larger states are added up on the cluster first; the other news of a task are as large."""

MERGERS = 8

MOST_QUERIES = 16
"""More of them, each of which reads the frame anew, are left to one pass of Python workers."""


@dataclass(frozen=True)
class SparkData:
    """A Spark DataFrame as `data`, pinned to rows that are written down if `rows` are given.

    With `reads_text` numbers may be in columns of text, as in CSV files.
    """

    frame: Any
    rows: Numbered | None = None
    reads_text: bool = False

    def __repr__(self) -> str:
        return "SparkData()"


def spark_data(frame: Any, *, materialize: str | os.PathLike[str] | None = None) -> SparkData:
    """A Spark DataFrame, to be passed as `data`; with `materialize` its rows are written down.

    The path is one that all executors reach, and must not exist yet: the rows go there as Parquet,
    each with a number. That pins the rows of a frame that would differ between passes (a sample, a
    limit without an order), and allows mechanisms that split rows by their number. It is a copy of
    the records, so keep it as safe as they are, and delete it when it is not needed any more.
    """
    if not is_spark(frame):
        raise InvalidInput(
            "must be a Spark DataFrame", parameter="frame", value=type(frame).__name__
        )
    if materialize is None:
        return SparkData(frame)
    require_running(frame.sparkSession)
    path = os.fspath(materialize) if isinstance(materialize, str | os.PathLike) else ""
    if not isinstance(path, str) or not path.strip():
        raise InvalidInput("must be a path of text", parameter="materialize")
    return SparkData(frame, numbered(frame, path))


def is_spark(data: object) -> bool:
    """Whether it is a Spark DataFrame, classic or Connect; Spark is not imported to tell."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.")
        for kind in type(data).__mro__
    )


def open_spark(data: Any, columns: Columns, dim: int | None, coders: Coders = ()) -> Source:
    """The source of a frame or of `SparkData`; arguments and the analysed plan are looked at."""
    given = data if isinstance(data, SparkData) else SparkData(data)
    frame = given.frame if given.rows is None else given.rows.frame
    require_running(frame.sparkSession)

    def analysed() -> list[Field]:
        if given.rows is None:
            require_same_rows(frame)
        listed = list(frame.schema.fields)
        # The numbers of written rows are no column of theirs.
        unit = identities(coders)
        named = columns if columns is None or not unit else columns[:-unit]
        fields = fields_of(listed if given.rows is None else listed[:-1], named, dim)
        if given.reads_text:
            return [Field(field.name, "text", 1, is_text=True) for field in fields]
        return fields

    fields = quietly(frame.sparkSession, analysed)
    if fields is None:
        raise InvalidInput("data could not be opened: Spark refuses to analyse the frame.")
    selection = select(fields, columns, dim, coders=coders)
    widths = [_width(fields[position]) for position in selection.positions]
    with quiet(frame.sparkSession):
        ship(frame)
    kind = SparkSource if given.rows is None else PinnedSource
    return kind(frame, selection, widths, given.rows)


class SparkSource(Source):
    """Some columns of a Spark DataFrame."""

    def __init__(
        self, frame: Any, selection: Selection, widths: Sequence[int], rows: Numbered | None
    ) -> None:
        self.columns, self.types = selection.columns, selection.types
        self._frame = frame
        self._schema = frame.schema
        self._selection = selection
        self._widths = widths
        self._numbers = rows
        self._rows = None if rows is None else rows.count
        self._where: str | None = None
        self._left_out: Numbers | None = None
        self._together = False
        listed = [self._schema.fields[position].dataType for position in selection.positions]
        self._sql = [
            sql_column(f"x{place}", kind.simpleString(), is_coded=coder is not None)
            for place, (kind, coder) in enumerate(zip(listed, selection.coders, strict=True))
        ]

    @property
    def known_rows(self) -> int | None:
        """The number of records that were counted, or that the first pass saw."""
        return self._rows

    def rows(self) -> int:
        """By a job that counts them."""
        if self._rows is None:
            session = self._frame.sparkSession
            self._rows = quietly(session, lambda: int(self._chosen().count()))
            if self._rows is None:
                raise InvalidInput("data could not be counted to the end.")
        return self._rows

    def check_unchanged(self) -> None:
        """Raise DataChanged if columns or types are not what they were."""
        # A new plan, for a client asks for the schema of one only once.
        frame = self._frame
        now = quietly(frame.sparkSession, lambda: frame.select("*").schema)
        if now != self._schema:
            raise DataChanged("the columns of the data have changed since they were opened.")

    def together(self) -> Source:
        """Rows with equal values in the last column come to one partition, by a shuffle."""
        whole = copy(self)
        whole._together = True
        return whole

    def fold(self, accumulator: Callable[[], Accumulated]) -> list[Accumulated] | None:
        """In SQL if what is added up can be put so, else by Spark's Python workers."""
        total = accumulator()
        queries = queries_of(total, self._sql, WORDS) if self._in_sql else None
        if queries is None or sum(map(len, queries)) > MOST_QUERIES:
            found = self._folded(total, accumulator)
        else:
            found = answered(total, queries, self._asked)
        if found is not None and self._rows is None:
            self._rows = total.rows
        return found

    @property
    def _in_sql(self) -> bool:
        """Which rows are left out nobody may see in a query; people's rows must come together."""
        return self._left_out is None and not self._together

    def _asked(self, query: Query) -> list[Sequence[int | None]]:
        with quiet(self._frame.sparkSession):
            places = range(len(self._selection.positions))
            return asked(self._chosen().toDF(*(f"x{place}" for place in places)), query)

    def _folded(
        self, total: Accumulated, accumulator: Callable[[], Accumulated]
    ) -> list[Accumulated] | None:
        """One job; the sums of partitions are added up here, or on the cluster if they are long."""
        try:
            with quiet(self._frame.sparkSession):
                for state in self._states(accumulator, len(packed(total.state()))):
                    total.absorb(unpacked(state))
        except Exception:
            return None
        return [total]

    def _states(self, accumulator: Callable[[], Accumulated], size: int) -> Iterator[bytes]:
        from pyspark import cloudpickle

        this = WorkerPass(accumulator, self._selection.coders, self._widths, self._left_out)
        task = cloudpickle.dumps(this)
        folded = self._chosen().mapInArrow(_work(task, "fold"), SCHEMA)
        if size > SMALL_STATE:
            folded = folded.repartition(MERGERS).mapInArrow(_work(task, "merge"), SCHEMA)
        for row in folded.collect():
            yield row[0]

    def _chosen(self) -> Any:
        # By their places: names may differ in case alone, occur twice, or have characters that
        # Spark trips over.
        plain = [f"c{place}" for place in range(len(self._schema.fields))]
        frame = self._frame.toDF(*plain)
        if self._where is not None:
            frame = frame.where(self._where)
        chosen = [plain[position] for position in self._selection.positions]
        if self._together:
            frame = self._shuffled(frame, chosen[-1])
        # Numbers of rows are the last column.
        return frame.select(*chosen, *(plain[-1:] if self._left_out is not None else ()))

    def _shuffled(self, frame: Any, column: str) -> Any:
        from pyspark.sql import functions

        by = functions.col(column)
        if self._selection.types[-1] in ("float", "double"):
            # 0 and −0 are one number.
            by = by + functions.lit(0.0)
        # With a number of partitions Spark makes just these, and neither joins nor splits them.
        parts = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
        return frame.repartition(parts, by)


class PinnedSource(SparkSource):
    """Rows that are written down, each with a number: they can be split."""

    def split(self, first: int) -> tuple[Source, Source]:
        """The rows whose numbers come first, and the others."""
        assert self._numbers is not None
        head, tail = self._again(), self._again()
        number = quoted(f"c{len(self._schema.fields) - 1}")
        bound = self._numbers.bound(first)
        head._where, head._rows = f"{number} < {bound}", first
        tail._where, tail._rows = f"{number} >= {bound}", self.rows() - first
        return head, tail

    def without(self, places: Sequence[int]) -> Source:
        """All rows but some."""
        assert self._numbers is not None
        part = self._again()
        part._left_out = np.array([self._numbers.at(place) for place in places], np.int64)
        part._rows = self.rows() - len(places)
        return part

    def _again(self) -> PinnedSource:
        if self._where is not None or self._left_out is not None:
            raise AssertionError("rows are split once")
        return PinnedSource(self._frame, self._selection, self._widths, self._numbers)


def fields_of(listed: Sequence[Any], columns: Columns, dim: int | None) -> list[Field]:
    """What the fields of a Spark schema offer. An array is as wide as the others leave of `dim`."""
    types = [(field.name, field.dataType.simpleString()) for field in listed]
    wanted = types if columns is None else [each for each in types if each[0] in columns]
    plain = sum(_is_number(kind) for _, kind in wanted)
    arrays = sum(_array_of(kind) is not None for _, kind in wanted)
    # Nobody said which columns: then an array is the record, or nothing of it.
    width = 0 if dim is None or arrays != 1 or (columns is None and plain) else dim - plain
    return [_field(name, kind, max(width, 0)) for name, kind in types]


def quoted(name: str) -> str:
    """A column's name, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def _field(name: str, kind: str, width: int) -> Field:
    element = _array_of(kind)
    if element is not None and width:
        return Field(name, f"fixed_size_list<{element}>[{width}]", width)
    is_text = kind in TEXTS or kind.startswith(("string", "varchar", "char"))
    return Field(name, kind, int(_is_number(kind)), is_text)


def _is_number(kind: str) -> bool:
    return kind in NUMBERS or kind.startswith("decimal(")


def _array_of(kind: str) -> str | None:
    """The type of an array's elements, if they are numbers."""
    element = kind.removeprefix("array<").removesuffix(">")
    return element if kind.startswith("array<") and _is_number(element) else None


def _width(field: Field) -> int:
    return field.width if field.type.startswith("fixed_size_list") else 0


def _work(task: bytes, work: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What Spark is given to run; it is sent by value, and finds muhat where it arrives."""

    def muhat(batches: Iterator[Any]) -> Iterator[Any]:
        from muhat.data.spark_worker import run

        return run(task, work, batches)

    return muhat
