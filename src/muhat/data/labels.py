"""Which values occur in a column: NOT private, used by `muhat check` and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.data.base import paced
from muhat.data.engine import read_here
from muhat.data.selection import Field, column_names
from muhat.data.sources import open_source
from muhat.errors import InvalidInput
from muhat.records.columns import Batch, Column, Floats, Integers

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
