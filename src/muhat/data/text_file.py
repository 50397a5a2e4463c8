"""A text file in units of work that threads share: ranges of bytes, each of whole records.

Where a unit begins depends on the quotes before it, so units are found one after another: whoever
reads one to its end knows where the next begins, and whoever comes first looks ahead.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from muhat.data.base import Partition
from muhat.data.columns import Batch
from muhat.data.files import File
from muhat.data.selection import Coders
from muhat.data.text_bytes import mark_length, open_bytes
from muhat.data.text_records import Piece, pieces

PARTITION_BYTES = 1 << 24


class Parses(Protocol):
    """What makes batches of the chosen columns of records."""

    def batch(self, piece: Piece) -> Batch:
        """The records of a piece."""


class TextFile(File):
    """One text file, plain or compressed.

    `delimiter` is that of CSV, None where every line is a record.
    """

    bytes_a_thread = 1 << 24

    def __init__(self, path: Path, compression: str | None, delimiter: bytes | None) -> None:
        super().__init__(path)
        self._compression = compression
        self._delimiter = delimiter
        self._lock = threading.Lock()
        self.begin(mark_length(path, compression))

    def begin(self, start: int) -> None:
        """Say where the first record begins."""
        stops = range(start + PARTITION_BYTES, self.size, PARTITION_BYTES)
        self._stops = [*stops, None] if self._compression is None else [None]
        self._starts = [start]

    @property
    def start(self) -> int:
        """Where the first record begins."""
        return self._starts[0]

    @abstractmethod
    def parser(self, positions: Sequence[int], coders: Coders) -> Parses:
        """What reads the fields at these positions."""

    def count_rows(self) -> int:
        """The records, by a look at all of them."""
        units = range(len(self._stops))
        return sum(piece.count for unit in units for piece in self.unit(unit))

    def partitions(self, positions: Sequence[int], coders: Coders) -> list[Partition]:
        """Ranges of bytes; a compressed file is one."""
        return [
            self._partition(unit, self.parser(positions, coders))
            for unit in range(len(self._stops))
        ]

    def _partition(self, unit: int, parser: Parses) -> Partition:
        def batches() -> Iterator[Batch]:
            for piece in self.unit(unit):
                yield parser.batch(piece)

        stop = self._stops[unit]
        before = self._stops[unit - 1] if unit else None
        size = (self.size if stop is None else stop) - (before or self.start)
        return Partition(max(size, 0), batches)

    def unit(self, number: int) -> Iterator[Piece]:
        """The records of a unit of work, a piece after another."""
        with self._lock:
            while len(self._starts) <= number:
                start = self._starts[-1]
                for piece in self._pieces(len(self._starts) - 1, start):
                    start = piece.end
                self._starts.append(start)
            start = self._starts[number]
        for piece in self._pieces(number, start):
            start = piece.end
            yield piece
        with self._lock:
            if len(self._starts) == number + 1:
                self._starts.append(start)

    def _pieces(self, number: int, start: int) -> Iterator[Piece]:
        stop = self._stops[number]
        if stop is not None and start >= stop:
            return
        with open_bytes(self.path, self._compression) as file:
            for piece in pieces(file, start, self._delimiter):
                yield piece
                if stop is not None and piece.end >= stop:
                    return
