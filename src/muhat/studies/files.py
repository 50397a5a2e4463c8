"""The folder of results, refused before the work if it cannot be written."""

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
