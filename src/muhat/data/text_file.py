"""A text file in units of work that threads share: ranges of bytes, each of whole records.

A record is a line, or what RFC 4180 makes of lines. Where a unit begins depends on the quotes
before it, so units are found one after another: whoever reads one to its end knows where the next
begins, and whoever comes first looks ahead. Memory stays bounded: a record of more than 16 MiB is
passed over and counted, and is a record of which everything is missing.

Bytes are decompressed on the way, and text in other encodings is refused by name.
"""

from __future__ import annotations

import bz2
import gzip
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import numpy as np

from muhat.data.base import Partition, hold_freed_memory
from muhat.data.csv_quotes import BREAK, Layout, cleaned, layout, lines, quotes_in
from muhat.data.file import File
from muhat.data.selection import Coders
from muhat.errors import InvalidInput
from muhat.records.columns import Batch

BLOCK_BYTES = 1 << 22
LONGEST_RECORD = 1 << 24


@dataclass(frozen=True)
class Piece:
    """Whole records at the start of `text`; the next one begins at the byte `end` of the file.

    Without a layout it stands for one record that was too long to be held.
    """

    end: int
    text: bytes = b""
    layout: Layout | None = None

    @property
    def count(self) -> int:
        """How many records it has."""
        return 1 if self.layout is None else self.layout.count

    def lines(self) -> bytes:
        """The records as they are."""
        return b"" if self.layout is None else self.text[: self.layout.end]

    def cleaned(self) -> bytes:
        """The records of a CSV text, those blanked of which nothing can be read."""
        return b"" if self.layout is None else cleaned(self.text, self.layout)


def pieces(
    file: BinaryIO, start: int, delimiter: bytes | None, block: int | None = None
) -> Iterator[Piece]:
    """The records from the byte `start` on, where one begins, a few megabytes (`block`) at a time.

    Without a delimiter quotes mean nothing, and every line is a record.
    """
    block = block or BLOCK_BYTES
    file.seek(start)
    held, position, wanted = b"", start, block
    while True:
        if len(held) < wanted:
            held += file.read(wanted - len(held))
        if not held:
            return
        # Where a piece ends follows from where it begins, whatever was read before: whoever comes
        # to its beginning by another way finds the same pieces from there on.
        text = held[:wanted]
        found = _laid_out(text, delimiter, final=len(text) < wanted)
        if found is not None and found.first <= LONGEST_RECORD:
            position += found.end
            yield Piece(position, text, found)
            held, wanted = held[found.end :], block
        elif len(text) > LONGEST_RECORD:
            if found is not None:
                position += found.first
            else:
                file.seek(position + len(text))
                position = _end_of_long_record(file, text, position, delimiter)
            file.seek(position)
            held, wanted = b"", block
            yield Piece(position)
        else:
            wanted += block


def _laid_out(text: bytes, delimiter: bytes | None, final: bool) -> Layout | None:
    if delimiter is not None:
        return layout(text, delimiter, final=final)
    return lines(text, len(text) if final else text.rfind(b"\n") + 1)


def _end_of_long_record(
    file: BinaryIO, chunk: bytes, position: int, delimiter: bytes | None
) -> int:
    """Where a record ends that begins at a position, with a chunk that does not show it."""
    first_break: int | None = None
    before, inside, fits = BREAK, 0, delimiter is not None
    while chunk:
        following = file.read(BLOCK_BYTES)
        codes = np.frombuffer(chunk, np.uint8)
        breaks = np.flatnonzero(codes == BREAK)
        if first_break is None and len(breaks):
            first_break = position + int(breaks[0]) + 1
        if fits and delimiter is not None:
            quotes = quotes_in(codes, delimiter, before, following[0] if following else BREAK)
            opens = np.zeros(len(quotes.places), bool)
            opens[inside::2] = True
            wrong = quotes.places[~np.where(opens, quotes.opening, quotes.closing)]
            ends = breaks[(np.searchsorted(quotes.places, breaks) + inside) % 2 == 0]
            if len(ends) and not (len(wrong) and wrong[0] < ends[0]):
                return position + int(ends[0]) + 1
            fits = not len(wrong)
            inside = (inside + len(opens)) % 2
        if not fits and first_break is not None:
            return first_break
        before, position, chunk = chunk[-1], position + len(chunk), following
    if first_break is None or (fits and not inside):
        return position
    return first_break


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
    is_text = True

    def __init__(self, path: Path, compression: str | None, delimiter: bytes | None) -> None:
        super().__init__(path)
        self._compression = compression
        self._delimiter = delimiter
        self._lock = threading.Lock()
        # Where pieces begin that need no second look, where they end, and how many records they
        # have: most tables are counted before they are read.
        self._plain: dict[int, tuple[int, int]] = {}
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
        hold_freed_memory()
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
            for piece in self._looked_at(file, start):
                yield piece
                if stop is not None and piece.end >= stop:
                    return

    def _looked_at(self, file: BinaryIO, start: int) -> Iterator[Piece]:
        """All pieces from a byte on: as they were found before, and then by their quotes."""
        file.seek(start)
        while start in self._plain:
            end, count = self._plain[start]
            text = file.read(end - start)
            if len(text) < end - start:
                # It has changed, which is found out when it has been read.
                break
            yield Piece(end, text, Layout(len(text), len(text), count))
            start = end
        for piece in pieces(file, start, self._delimiter):
            found = piece.layout
            # Where there are returns a second look takes the ends of all records.
            if found is not None and found.bad is None and piece.text.find(b"\r", 0, found.end) < 0:
                self._plain[start] = piece.end, piece.count
            start = piece.end
            yield piece


COMPRESSIONS = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".zst": b"\x28\xb5\x2f\xfd"}
"""The endings of their names, and what they begin with."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDE_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_SKIPPED_BYTES = 1 << 22


def open_bytes(path: Path, compression: str | None) -> BinaryIO:
    """The file's bytes; `compression` is one of COMPRESSIONS or None."""
    if compression == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if compression == ".bz2":
        return cast(BinaryIO, bz2.open(path, "rb"))
    if compression == ".zst":
        return cast(BinaryIO, _Forward(lambda: _open_zst(path)))
    return path.open("rb")


def mark_length(path: Path, compression: str | None) -> int:
    """How long the mark is that text in UTF-8 may begin with; InvalidInput for other encodings."""
    with open_bytes(path, compression) as file:
        start = file.read(4)
    for mark, name in _WIDE_MARKS.items():
        if start.startswith(mark):
            raise _wide(name)
    if start[:2].count(b"\0") == 1:
        raise _wide("UTF-16")
    return len(_BYTE_ORDER_MARK) if start.startswith(_BYTE_ORDER_MARK) else 0


def _wide(name: str) -> InvalidInput:
    return InvalidInput(
        f"the file is {name} text; only UTF-8 is read. Convert it: "
        f"iconv -f {name} -t UTF-8 OLD > NEW."
    )


def _open_zst(path: Path) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")


class _Forward:
    """A stream that can only be read forwards, opened again to go back."""

    def __init__(self, reopen: Callable[[], Any]) -> None:
        self._reopen = reopen
        self._stream = reopen()
        self._position = 0

    def __enter__(self) -> _Forward:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, size: int) -> bytes:
        """As of a file: fewer bytes only at the end."""
        data: bytes = self._stream.read(size)
        self._position += len(data)
        return data

    def seek(self, position: int) -> int:
        """Go to a byte."""
        if position < self._position:
            self._stream.close()
            self._stream, self._position = self._reopen(), 0
        while self._position < position and self.read(
            min(position - self._position, _SKIPPED_BYTES)
        ):
            pass
        return self._position
