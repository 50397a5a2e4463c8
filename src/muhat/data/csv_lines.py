"""CSV files as blocks of whole physical lines; a record is one line, whatever is in it.

Quotes can therefore never join two lines, and one record cannot change how another is read.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

BLOCK_BYTES = 1 << 22
LONGEST_LINE = 1 << 24

Codes = NDArray[np.uint8]
Positions = NDArray[np.intp]
Mask = NDArray[np.bool_]

_QUOTE, _COMMA, _NEWLINE, _RETURN, _SPACE = b'",\n\r '


@dataclass(frozen=True)
class Lines:
    """Whole lines in `text`, `count` of them, and `overlong` lines that were skipped."""

    text: bytes
    count: int
    overlong: int = 0


def open_bytes(path: Path) -> BinaryIO:
    """The file's bytes, decompressed if its name ends in .gz."""
    if path.name.lower().endswith(".gz"):
        return cast(BinaryIO, gzip.open(path, "rb"))
    return path.open("rb")


def seek_line(file: BinaryIO, position: int) -> int:
    """Move to the first line that begins at `position` (above 0) or later; returns where."""
    file.seek(position - 1)
    skipped, _ = _skip_line(file, file.read(BLOCK_BYTES))
    start = position - 1 + skipped
    file.seek(start)
    return start


def lines_between(file: BinaryIO, start: int, stop: int | None) -> Iterator[Lines]:
    """The lines that begin in [start, stop), in blocks of a few megabytes.

    `file` stands at `start`, where a line begins. Lines of more than 16 MiB are skipped and
    counted as `overlong`, so that memory stays bounded.
    """
    held, position = b"", start
    while stop is None or position < stop:
        if len(held) > LONGEST_LINE and not 0 <= held.find(b"\n") <= LONGEST_LINE:
            skipped, held = _skip_line(file, held)
            position += skipped
            yield Lines(b"", 0, overlong=1)
            continue
        end = _end_of_lines(held, None if stop is None else stop - position)
        if end:
            text = held[:end]
            yield Lines(text, int(np.count_nonzero(np.frombuffer(text, np.uint8) == _NEWLINE)))
            held, position = held[end:], position + end
            continue
        chunk = file.read(BLOCK_BYTES)
        if not chunk:
            if held:
                yield Lines(held, 1)
            return
        held += chunk


def blank_malformed(text: bytes) -> bytes:
    """The same lines, with those made blank whose quotes or carriage returns are malformed.

    Well formed means: a carriage return only at the end of a line; an even number of quotes
    in a line, each opening one at the start of a field, each closing one at its end, or doubled.
    """
    has_quotes = b'"' in text
    if not has_quotes and not _has_stray_returns(text):
        return text
    # A newline on either side, so that every byte has neighbours.
    codes = np.frombuffer(b"\n" + text + b"\n", np.uint8)
    ends = np.flatnonzero(codes == _NEWLINE)
    bad = np.zeros(len(ends), bool)
    returns = np.flatnonzero(codes == _RETURN)
    stray = returns[codes[returns + 1] != _NEWLINE]
    bad[np.searchsorted(ends, stray)] = True
    if has_quotes:
        bad |= _badly_quoted(codes, ends)
    return _blanked(codes, ends, bad) if bad.any() else text


def _has_stray_returns(text: bytes) -> bool:
    if b"\r" not in text:
        return False
    codes = np.frombuffer(text, np.uint8)
    return bool(np.any((codes[:-1] == _RETURN) & (codes[1:] != _NEWLINE)))


def _badly_quoted(codes: Codes, ends: Positions) -> Mask:
    """Which lines, by the newline that ends them, have quotes that are not well formed."""
    quotes = np.flatnonzero(codes == _QUOTE)
    line = np.searchsorted(ends, quotes)
    first_of_line = np.searchsorted(line, line)
    opens = (np.arange(len(quotes)) - first_of_line) % 2 == 0
    before, after = codes[quotes - 1], codes[quotes + 1]
    starts_field = (before == _COMMA) | (before == _NEWLINE) | (before == _QUOTE)
    ends_field = (after == _COMMA) | (after == _NEWLINE) | (after == _QUOTE) | (after == _RETURN)
    bad: Mask = np.bincount(line, minlength=len(ends)) % 2 == 1
    bad[line[~np.where(opens, starts_field, ends_field)]] = True
    return bad


def _blanked(codes: Codes, ends: Positions, bad: Mask) -> bytes:
    """Spaces in place of the bad lines; `codes` has one newline too many on either side."""
    which = np.flatnonzero(bad)
    edges = np.zeros(len(codes) + 1, np.int8)
    edges[ends[which - 1] + 1] += 1
    edges[ends[which]] -= 1
    blank = np.add.accumulate(edges[:-1], dtype=np.int8) > 0
    return np.where(blank, np.uint8(_SPACE), codes)[1:-1].tobytes()


def _end_of_lines(held: bytes, room: int | None) -> int:
    """Where the last whole line ends that begins in the first `room` bytes."""
    if room is not None and room <= len(held):
        end = held.find(b"\n", room - 1) + 1
        if end:
            return end
    return held.rfind(b"\n") + 1


def _skip_line(file: BinaryIO, held: bytes) -> tuple[int, bytes]:
    """Read past the end of the line that `held` begins: bytes skipped, and what follows it."""
    skipped = 0
    while (end := held.find(b"\n") + 1) == 0:
        skipped += len(held)
        held = file.read(BLOCK_BYTES)
        if not held:
            return skipped, b""
    return skipped + end, held[end:]
