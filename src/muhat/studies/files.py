"""The folder of results: refused before the work if it cannot be written, files written whole."""

from __future__ import annotations

import os
from pathlib import Path

from muhat.errors import InvalidInput


def prepare(folder: Path) -> None:
    """Make the folder, or refuse one that cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        writable = False
    if not writable:
        raise InvalidInput(f"--out must be a folder that can be written; got {str(folder)!r:.200}.")


def put(path: Path, content: str | bytes) -> None:
    """Write a file, UTF-8 if it is text; who stops halfway leaves the one that was there."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InvalidInput(f"{str(path)!r:.200} cannot be written: {error.strerror}.") from None
