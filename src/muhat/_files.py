"""Files that are written whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from muhat.errors import InvalidInput


def put(path: Path, content: str | bytes) -> None:
    """Write a file, UTF-8 if it is text; who stops halfway leaves the one that was there.

    Everybody may read it whom the umask allows to.
    """
    part = path.with_name(f".{path.name[:200]}.{os.urandom(4).hex()}.part")
    data = content.encode() if isinstance(content, str) else content
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
            file.write(data)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InvalidInput(f"{str(path)!r:.200} cannot be written: {error.strerror}.") from None
