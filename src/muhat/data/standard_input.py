"""Standard input as a file: a pipe can be read only once, and releases may need several passes.

What comes is written to a temporary file without a name, which nobody else can open and which is
gone with the process. (Where the system has no such files it has a name, and belongs to the user
alone.) What it holds is told by its first bytes: a compressed file, Parquet, Arrow, JSON lines
from a brace, and CSV from anything else.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import weakref
from pathlib import Path
from typing import IO

from muhat.data.files import OPEN_FILES, FileData
from muhat.data.text_bytes import open_bytes
from muhat.errors import InvalidInput

_COMPRESSED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\x28\xb5\x2f\xfd": ".zst"}
_KINDS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\xff\xff\xff\xff": ".arrow",
    b"{": ".jsonl",
}
_CHUNK = 1 << 20
_LONGEST_START = 64


def standard_input(stream: IO[bytes], delimiter: str | None = None) -> FileData:
    """All that a stream holds, to be passed as `data`."""
    kept: IO[bytes] | None = None
    try:
        unnamed = sys.platform == "linux"
        kept = tempfile.TemporaryFile() if unnamed else tempfile.NamedTemporaryFile()  # noqa: SIM115
        shutil.copyfileobj(stream, kept, _CHUNK)
        kept.flush()
    except OSError:
        kept = None
    if kept is None:
        raise InvalidInput(
            "standard input could not be read to the end, or the folder of temporary files "
            f"({tempfile.gettempdir()!r:.80}) has no room for it."
        )
    path = OPEN_FILES / str(kept.fileno()) if unnamed else Path(kept.name)
    given = FileData(path, delimiter, _ending(path))
    weakref.finalize(given, kept.close)
    return given


def _ending(path: Path) -> str:
    """What the name of such a file would end in."""
    start = _start(path, None)
    compression = next((end for mark, end in _COMPRESSED.items() if start.startswith(mark)), None)
    text = _start(path, compression).removeprefix(b"\xef\xbb\xbf").lstrip()
    kinds = (end for mark, end in _KINDS.items() if text.startswith(mark))
    return next(kinds, ".csv") + (compression or "")


def _start(path: Path, compression: str | None) -> bytes:
    try:
        with open_bytes(path, compression) as file:
            return file.read(_LONGEST_START)
    except (OSError, EOFError):
        return b""
