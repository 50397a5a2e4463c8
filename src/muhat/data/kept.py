"""Decoded batches, kept for methods that read the same records several times.

A source that is told to `keep` decodes its records in the first pass. Batches wait in memory up to
a part of what is free. What is slow to decode, or comes from a server, waits beyond that in a file
without a name (`scratch.py`); other files are as good as that, and are decoded again.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat.data.base import Partition, PartitionedSource
from muhat.data.scratch import MEMORY_BYTES, Scratch, room
from muhat.records.columns import Batch, Column

_STRETCH = 1 << 24
_ALIGNED = 64


class KeepingSource(PartitionedSource):
    """Records that are decoded once if they are read several times."""

    _kept: Kept | None = None

    @property
    @abstractmethod
    def is_slow(self) -> bool:
        """Whether to read records takes so long that they are better kept on disk."""

    @abstractmethod
    def pieces(self) -> Sequence[Partition]:
        """The units of work, each decoded whenever it is read."""

    def partitions(self) -> Sequence[Partition]:
        """The units of work, decoded once from `keep` on."""
        pieces = self.pieces()
        return pieces if self._kept is None else self._kept.of(pieces)

    def keep(self) -> None:
        """What is decoded waits in memory; what is slow to read, on disk too."""
        if self._kept is None:
            self._kept = Kept(writes=self.is_slow)


class Kept:
    """The partitions of a source, each decoded by whoever reads it first.

    `writes`: whether what has no room in memory is written to a file.
    """

    def __init__(self, *, writes: bool) -> None:
        self._writes = writes
        self._parts: list[_KeptPart] | None = None
        self._lock = threading.Lock()
        self._bytes, self._most = 0, room(MEMORY_BYTES)
        self._room = np.empty(0, np.uint8)
        self._scratch: Scratch | None = None

    def of(self, partitions: Sequence[Partition]) -> list[Partition]:
        """The same partitions; those that were read to their end are not read again."""
        if self._parts is None:
            self._parts = [_KeptPart(each) for each in partitions]
        # Parts know nothing of this object: all of it is gone as soon as its source is.
        return [
            Partition(each.partition.size, partial(each.batches, self.keep)) for each in self._parts
        ]

    def keep(self, batch: Batch) -> Batch | _Written | None:
        """A copy of the batch, or where it was written; None if there is no room for it."""
        arrays = _arrays(batch)
        size = sum(array.nbytes for array in arrays)
        with self._lock:
            fits = self._bytes + size <= self._most
            if fits:
                places = [self._place(array.nbytes) for array in arrays]
            elif self._writes:
                self._scratch = self._scratch or Scratch()
        if fits:
            return _with(batch, [_copied(*each) for each in zip(arrays, places, strict=True)])
        return None if self._scratch is None else _Written(batch, self._scratch)

    def _place(self, size: int) -> NDArray[np.uint8]:
        """Room in memory, in long stretches: those that come with a system's large pages.

        Arrays of their own would be short, and a fault for every small page of them takes longer
        than what fills it.
        """
        if size > len(self._room):
            self._room = np.empty(max(size, _STRETCH), np.uint8)
        place, self._room = self._room[:size], self._room[-(-size // _ALIGNED) * _ALIGNED :]
        self._bytes += size
        return place


class _KeptPart:
    """One partition."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self._batches: list[Batch | _Written] | None = None

    def batches(self, keep: Callable[[Batch], Batch | _Written | None]) -> Iterator[Batch]:
        """As they were kept, or as they are decoded now, each given to `keep`."""
        if self._batches is not None:
            for each in self._batches:
                yield each if isinstance(each, Batch) else each.batch()
            return
        found = []
        for batch in self.partition.batches():
            found.append(keep(batch))
            yield batch
        whole = [each for each in found if each is not None]
        # Half a partition would be decoded with the rest of it, and is not worth its room.
        self._batches = whole if len(whole) == len(found) else None


class _Written:
    """A batch whose numbers are on disk."""

    def __init__(self, batch: Batch, scratch: Scratch) -> None:
        arrays = _arrays(batch)
        self._spans = [(scratch.put(array), array.dtype, array.shape) for array in arrays]
        # A view of nothing would hold all of them.
        self._empty = _with(batch, [array[:0].copy() for array in arrays])
        self._scratch = scratch

    def batch(self) -> Batch:
        """The batch again."""
        get = self._scratch.get
        return _with(self._empty, [get(s, kind).reshape(shape) for s, kind, shape in self._spans])


def _copied(array: NDArray[Any], place: NDArray[np.uint8]) -> NDArray[Any]:
    copy = place.view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _arrays(batch: Batch) -> list[NDArray[Any]]:
    """The arrays that a batch is made of."""
    found: list[NDArray[Any]] = [] if batch.matrix is None else [batch.matrix]
    for column in batch.columns:
        found += [column.values] if column.valid is None else [column.values, column.valid]
    return found


def _with(batch: Batch, arrays: Sequence[NDArray[Any]]) -> Batch:
    """The batch with other arrays."""
    others = iter(arrays)
    matrix = None if batch.matrix is None else next(others)
    columns: list[Column] = []
    for column in batch.columns:
        changed: dict[str, Any] = {"values": next(others)}
        if column.valid is not None:
            changed["valid"] = next(others)
        columns.append(replace(column, **changed))
    return replace(batch, columns=columns, matrix=matrix)
