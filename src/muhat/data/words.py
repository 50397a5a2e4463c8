"""Which cells of a file are words, no numbers: NOT private, used by `muhat check` alone.

To a release a cell that is no number is missing, whatever is written in it. The data's owner is
told the two apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.data.base import paced
from muhat.data.engine import read_here
from muhat.data.files import FilesSource
from muhat.data.inspect import ColumnReport, Report
from muhat.data.labels import CountedLabels
from muhat.data.selection import Field
from muhat.data.sources import open_source
from muhat.data.text_numbers import numbers_in
from muhat.records.columns import Integers

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


def _nothing(rows: int) -> Integers:
    return Integers(np.zeros(rows, np.int64))
