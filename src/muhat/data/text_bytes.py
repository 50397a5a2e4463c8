"""The bytes of a text file, decompressed on the way; text in other encodings is refused by name."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

from muhat.errors import InvalidInput

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
