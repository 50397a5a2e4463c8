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

from muhat.data.csv_file import CSV
from muhat.data.file import OPEN_FILES
from muhat.data.files import FileData
from muhat.data.formats import FORMATS
from muhat.data.text_file import COMPRESSIONS, open_bytes
from muhat.errors import InvalidInput

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
    compression = next((end for end, mark in COMPRESSIONS.items() if start.startswith(mark)), None)
    text = _start(path, compression).removeprefix(b"\xef\xbb\xbf").lstrip()
    kind = next((each for each in FORMATS if text.startswith(each.marks)), CSV)
    return kind.endings[0] + (compression or "")


def _start(path: Path, compression: str | None) -> bytes:
    try:
        with open_bytes(path, compression) as file:
            return file.read(_LONGEST_START)
    except (OSError, EOFError):
        return b""
