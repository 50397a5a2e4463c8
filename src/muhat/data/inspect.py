"""A look at the data for their owner: NOT private, used by `muhat check` and nothing else.

To a release a cell that is no number is missing, whatever is written in it. The data's owner is
told the two apart, and which values occur in a column.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat._plain import Plain
from muhat.data.base import Source, paced
from muhat.data.engine import read_here, require_here
from muhat.data.files import FilesSource
from muhat.data.selection import Field, column_names
from muhat.data.sources import open_source
from muhat.data.text_numbers import numbers_in
from muhat.errors import InvalidInput, SourceFailed
from muhat.records.columns import Batch, Column, Floats, Integers
from muhat.records.exact import split


@dataclass(frozen=True)
class ColumnReport(Plain):
    """What is in one column. Values are seen as the nearest floats.

    `missing` counts nulls and cells that are no numbers, ragged lines included; `non_finite`
    NaN and infinities (in text they are missing); `below` and `above` the finite values outside
    the bounds, None where there is no bound. `minimum` and `maximum` are of the finite values,
    None if there are none. `not_numbers` counts those of the missing in which something is
    written that is no number, None where that cannot be.
    """

    name: str
    type: str
    missing: int
    non_finite: int
    below: int | None
    above: int | None
    minimum: float | None
    maximum: float | None
    not_numbers: int | None = None


@dataclass(frozen=True)
class Report(Plain):
    """What is in a source: records, records of which nothing could be read, and its columns."""

    rows: int
    ragged: int
    columns: tuple[ColumnReport, ...]


def inspect(
    source: Source,
    lower: Sequence[float] | None = None,
    upper: Sequence[float] | None = None,
) -> Report:
    """Read everything once and report what is there. Not private: for the data's owner alone.

    `lower` and `upper` have one bound a coordinate, or are left out.
    """
    here = require_here(source)
    lows, highs = _bounds("lower", lower, source.dim), _bounds("upper", upper, source.dim)
    tallies = [_Tally(low, high) for low, high in zip(lows, highs, strict=True)]
    rows = ragged = 0
    failed = False
    try:
        with np.errstate(all="ignore"):
            for partition in here.partitions():
                for batch in partition.batches():
                    rows += batch.rows + batch.absent
                    ragged += batch.absent
                    for tally, column in zip(tallies, _columns(batch), strict=True):
                        tally.add(column)
    except Exception:
        failed = True
    if failed:
        raise SourceFailed("the data could not be read to the end: the file may be damaged.")
    labels = zip(source.columns, source.types, tallies, strict=True)
    columns = tuple(tally.report(name, kind, ragged) for name, kind, tally in labels)
    return Report(rows, ragged, columns)


@dataclass
class _Tally:
    """Running counts of one column."""

    low: float | None
    high: float | None
    missing: int = 0
    non_finite: int = 0
    below: int = 0
    above: int = 0
    minimum: float = field(default=math.inf)
    maximum: float = field(default=-math.inf)

    def add(self, column: Column) -> None:
        values = split(column)[0]
        if column.valid is not None:
            self.missing += int(np.count_nonzero(~column.valid))
            values = values[column.valid]
        finite = values[np.isfinite(values)]
        self.non_finite += len(values) - len(finite)
        if not len(finite):
            return
        self.minimum = min(self.minimum, float(finite.min()))
        self.maximum = max(self.maximum, float(finite.max()))
        if self.low is not None:
            self.below += int(np.count_nonzero(finite < self.low))
        if self.high is not None:
            self.above += int(np.count_nonzero(finite > self.high))

    def report(self, name: str, kind: str, ragged: int) -> ColumnReport:
        seen = self.minimum <= self.maximum
        unread = self.non_finite if kind == "text" else 0
        return ColumnReport(
            name=name,
            type=kind,
            missing=self.missing + ragged + unread,
            non_finite=self.non_finite - unread,
            below=None if self.low is None else self.below,
            above=None if self.high is None else self.above,
            minimum=self.minimum if seen else None,
            maximum=self.maximum if seen else None,
        )


def _columns(batch: Batch) -> Sequence[Column]:
    if batch.matrix is None:
        return batch.columns
    return [Floats(values) for values in batch.matrix.T]


def _bounds(name: str, bounds: Sequence[float] | None, dim: int) -> list[float | None]:
    if bounds is None:
        return [None] * dim
    if len(bounds) != dim:
        raise InvalidInput(
            f"must have one bound a column: {dim}", parameter=name, value=str(len(bounds))
        )
    return [float(bound) for bound in bounds]


TEXT = "text"
"""The type of a column of words, and of every column in a file that has no types."""


def with_words(report: Report, data: Any, columns: Sequence[str] | None) -> Report:
    """The report of files with their columns of text, and how many of the cells are no numbers.

    A column of a file without types is called what is written in it.
    """
    counters = _counted(data, columns)
    numeric = {column.name for column in report.columns}
    listed = [
        counters[column.name].judged(column) if column.name in counters else column
        for column in report.columns
    ]
    listed += [
        counter.described(name)
        for name, counter in counters.items()
        if name not in numeric and counter.is_text
    ]
    return replace(report, columns=tuple(listed))


def _counted(data: Any, columns: Sequence[str] | None) -> dict[str, WordCounter]:
    if columns is None:
        source = open_source(data)
        columns = source.names if isinstance(source, FilesSource) else ()
    if not columns or len(set(columns)) < len(columns):
        # Columns that share a name cannot be asked for by it.
        return {}
    counters = [WordCounter() for _ in columns]
    source = open_source(data, columns, coders=counters)
    with paced(threads=1):
        read_here(source, CountedLabels)
    return dict(zip(columns, counters, strict=True))


@dataclass
class WordCounter:
    """Stands where a coder stands, and counts what passes: words and empty cells."""

    reads_text = True
    identifies = False
    is_text: bool = False
    words: int = 0
    empty: int = 0

    def require(self, field: Field) -> None:
        """Every type of column may be looked at."""
        self.is_text = field.is_text

    def of_array(self, values: NDArray[Any]) -> Integers:
        """Files have no such columns."""
        return _nothing(len(values))

    def of_objects(self, values: Sequence[object]) -> Integers:
        """Nor such."""
        return _nothing(len(values))

    def of_arrow(self, array: Any) -> Integers:
        """A column of a type, of which text alone is counted."""
        import pyarrow as pa

        if self.is_text:
            plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
            self.of_texts(plain.cast(pa.large_binary()))
        return _nothing(len(array))

    def of_texts(self, cells: Any, *, latin: bool = False) -> Integers:
        """An Arrow array of bytes, as CSV has them."""
        from pyarrow import compute

        written = compute.fill_null(compute.match_substring_regex(cells, r"[^ \t]"), False)
        filled = compute.sum(written, min_count=0).as_py()
        self.words += filled - (len(cells) - numbers_in(cells).null_count)
        self.empty += len(cells) - filled
        return _nothing(len(cells))

    def judged(self, column: ColumnReport) -> ColumnReport:
        """What is known of a column, and what is written in it."""
        if column.type != TEXT:
            return column
        # A boolean of JSON is a number, and was written as a word.
        words = min(self.words, column.missing)
        found = [TEXT] if words else []
        if column.minimum is not None:
            found.insert(0, "numbers")
        return replace(column, type=" and ".join(found) or "nothing", not_numbers=words)

    def described(self, name: str) -> ColumnReport:
        """A column of text in a file with types."""
        missing = self.empty + self.words
        return ColumnReport(name, TEXT, missing, 0, None, None, None, None, self.words)


MOST_LABELS = 10_000


def labels_of(data: Any, columns: object) -> dict[str, list[str]]:
    """The values of every column as text, the most frequent first, for the data's owner alone.

    Missing values are not listed, nor is anything beyond the first 10,000 values.
    """
    names = column_names(columns)
    if names is None:
        raise InvalidInput("name the columns whose values to list.")
    collectors = [LabelCollector() for _ in names]
    source = open_source(data, names, len(names), coders=collectors)
    with paced(threads=1):
        read_here(source, CountedLabels)
    return {
        name: [label for label, _ in collector.counts.most_common()]
        for name, collector in zip(source.columns, collectors, strict=True)
    }


class CountedLabels:
    """Counts records alone: the collectors see the values when they are read."""

    rows = 0

    def add(self, batch: Batch) -> None:
        """Count the records of a batch."""
        self.rows += batch.rows + batch.absent


class LabelCollector:
    """Stands where a coder stands, and notes the values that pass."""

    size = 1
    absent = 0
    is_text = True
    reads_text = True
    identifies = False

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def require(self, field: Field) -> None:
        """Every type of column may be looked at, but for lists and the like."""
        if "<" in field.type and not field.type.startswith("dictionary"):
            raise InvalidInput(
                f"column {field.name!r:.80} has type {field.type:.80}, whose values are no labels."
            )

    def of_numbers(self, column: Column) -> Integers:
        """A column of numbers."""
        if isinstance(column, Floats | Integers):
            found, counts = np.unique(column.values, return_counts=True)
            known = ~np.isnan(found)
            for value, count in zip(found[known].tolist(), counts[known].tolist(), strict=True):
                self._note(f"{value:.17g}", count)
        return _nothing(len(column.values))

    def of_array(self, values: NDArray[Any]) -> Integers:
        """A numpy array."""
        return self.of_objects(values.tolist())

    def of_objects(self, values: Sequence[object]) -> Integers:
        """Python objects."""
        for value, count in Counter(map(str, (v for v in values if v is not None))).items():
            self._note(value, count)
        return _nothing(len(values))

    def of_arrow(self, array: Any) -> Integers:
        """An Arrow array."""
        for entry in array.value_counts().to_pylist():
            if entry["values"] is not None:
                self._note(str(entry["values"]), entry["counts"])
        return _nothing(len(array))

    def of_texts(self, cells: Any, *, latin: bool = False) -> Integers:
        """An Arrow array of bytes, as CSV has them."""
        for entry in cells.value_counts().to_pylist():
            if entry["values"]:
                text = entry["values"].decode("utf-8", "replace")
                if latin:
                    text = text.encode("latin-1", "replace").decode("utf-8", "replace")
                self._note(text, entry["counts"])
        return _nothing(len(cells))

    def _note(self, label: str, count: int) -> None:
        if label in self.counts or len(self.counts) < MOST_LABELS:
            self.counts[label] += count


def _nothing(rows: int) -> Integers:
    return Integers(np.zeros(rows, np.int64))
