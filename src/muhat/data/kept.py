"""Decoded batches, kept for methods that read the same records several times.

Text is slow to decode, so a source of it that is told to `keep` decodes it in its first pass and
never again. Batches wait in memory up to a limit, and beyond it in a file without a name
(`scratch.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.data.base import Partition
from muhat.data.scratch import MEMORY_BYTES, Scratch, Stretch
from muhat.records.columns import Batch, Column


class Kept:
    """The partitions of a source, each decoded by whoever reads it first."""

    def __init__(self) -> None:
        self._parts: list[_KeptPart] | None = None
        self._lock = threading.Lock()
        self._bytes = 0
        self._scratch: Scratch | None = None

    def of(self, partitions: Sequence[Partition]) -> list[Partition]:
        """The same partitions; those that were read to their end are not read again."""
        if self._parts is None:
            self._parts = [_KeptPart(each, self) for each in partitions]
        return [Partition(each.partition.size, each.batches) for each in self._parts]

    def keep(self, batch: Batch) -> Batch | _Written:
        """The batch, or where it was written."""
        arrays = [array for column in batch.columns for array in _arrays(column)]
        size = sum(array.nbytes for array in arrays)
        with self._lock:
            if self._bytes + size <= MEMORY_BYTES:
                self._bytes += size
                return batch
            self._scratch = self._scratch or Scratch()
        spans = [(self._scratch.put(array), array.dtype, array.shape) for array in arrays]
        return _Written(batch, spans, self._scratch)


class _KeptPart:
    """One partition."""

    def __init__(self, partition: Partition, kept: Kept) -> None:
        self.partition = partition
        self._kept = kept
        self._batches: list[Batch | _Written] | None = None

    def batches(self) -> Iterator[Batch]:
        if self._batches is not None:
            for each in self._batches:
                yield each if isinstance(each, Batch) else each.batch()
            return
        found = []
        for batch in self.partition.batches():
            found.append(self._kept.keep(batch))
            yield batch
        self._batches = found


class _Written:
    """A batch whose numbers are on disk."""

    def __init__(
        self,
        batch: Batch,
        spans: Sequence[tuple[Stretch, np.dtype[Any], tuple[int, ...]]],
        scratch: Scratch,
    ) -> None:
        empty = [
            _with(column, [array[:0] for array in _arrays(column)]) for column in batch.columns
        ]
        self._batch = replace(batch, columns=empty)
        self._spans = spans
        self._scratch = scratch

    def batch(self) -> Batch:
        """The batch again."""
        spans = iter(self._spans)
        columns = []
        for column in self._batch.columns:
            read = [next(spans) for _ in _arrays(column)]
            columns.append(
                _with(column, [self._scratch.get(s, t).reshape(shape) for s, t, shape in read])
            )
        return replace(self._batch, columns=columns)


def _arrays(column: Column) -> list[NDArray[Any]]:
    """The arrays that a column is made of."""
    return [column.values] if column.valid is None else [column.values, column.valid]


def _with(column: Column, arrays: Sequence[NDArray[Any]]) -> Column:
    """The column with other arrays."""
    values, *valid = arrays
    changed: dict[str, Any] = {"values": values, "valid": valid[0] if valid else None}
    return replace(column, **changed)
