"""One file: what it was when it was opened, and what every kind of file is opened by."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from muhat.data.base import Partition
from muhat.data.selection import Coders, Columns, Field
from muhat.errors import DataChanged, InvalidInput

T = TypeVar("T")

OPEN_FILES = Path("/proc/self/fd")
"""Where Linux has the open files of a process, also those that have no name."""


class File(ABC):
    """One file of a known kind, opened as far as its schema and no further."""

    fields: list[Field]
    known_rows: int | None = None
    names_are_public = True
    bytes_a_thread = 1 << 27
    is_text = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened_as = self._fingerprint()

    @abstractmethod
    def count_rows(self) -> int:
        """How many records the file holds."""

    @abstractmethod
    def partitions(self, positions: Sequence[int], coders: Coders) -> list[Partition]:
        """Units of work that read the fields at these positions, in this order.

        `coders` has an entry for each of them.
        """

    def check_unchanged(self) -> None:
        """Raise DataChanged if size, time or identity of the file are not what they were."""
        try:
            now = self._fingerprint()
        except InvalidInput:
            now = None
        if now != self._opened_as:
            raise DataChanged(f"{shown(self.path)} has changed since it was opened.")

    def _fingerprint(self) -> tuple[int, ...]:
        status = status_of(self.path)
        if status is None:
            raise InvalidInput(f"{shown(self.path)} cannot be read. Is the path right?")
        return (status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._opened_as[0]

    @property
    def identity(self) -> tuple[int, ...]:
        """What every path to the same file has in common."""
        return self._opened_as[2:]


class Opening(NamedTuple):
    """How a file is to be read, apart from what its name says."""

    columns: Columns
    compression: str | None = None
    delimiter: str | None = None


@dataclass(frozen=True)
class Format:
    """A kind of file: `data/formats.py` lists them.

    `endings` are those of names, `marks` what such files begin with where that tells them from
    others, and text may be compressed.
    """

    endings: tuple[str, ...]
    opened: Callable[[Path, Opening], File]
    marks: tuple[bytes, ...] = ()
    is_text: bool = False


def unless_unreadable(path: Path, read: Callable[[], T]) -> T:
    """The result of `read`, or InvalidInput that says nothing of why: readers quote cells."""
    try:
        return read()
    except InvalidInput:
        raise
    except Exception:
        pass
    raise InvalidInput(f"{shown(path)} cannot be read: it is damaged or not what its name says.")


def status_of(path: Path) -> os.stat_result | None:
    """What the system knows of the file, or None if there is none or the path cannot be one."""
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def shown(path: Path) -> str:
    if path.parent == OPEN_FILES:
        return "standard input"
    return f"{str(path)!r:.200}"
