"""A temporary file without a name: readable by this user alone, gone with the process."""

from __future__ import annotations

import sys
import tempfile
import threading
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MEMORY_BYTES = 1 << 28
"""At most so much is kept in memory before a file like this is made: see `room`."""


def room(most: int) -> int:
    """Bytes to be kept in memory: a quarter of what is free, at most so many."""
    return min(most, free_memory() // 4)


def free_memory() -> int:
    """Bytes that processes can still have, where the system says it as Linux does."""
    try:
        with open("/proc/meminfo", "rb") as lines:
            found = next(line for line in lines if line.startswith(b"MemAvailable:"))
        return int(found.split()[1]) << 10
    except (OSError, StopIteration):
        return sys.maxsize


@dataclass(frozen=True)
class Stretch:
    """A stretch of the file, in bytes."""

    start: int
    size: int


class Scratch:
    """The file, shared by threads; it is gone however the process ends."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self._end = 0

    def put(self, array: NDArray[Any], place: Stretch | None = None) -> Stretch:
        """Write an array, at the end or where there is room for it."""
        with self._lock:
            start = self._end if place is None else place.start
            self._file.seek(start)
            self._file.write(np.ascontiguousarray(array).data)
            # What is still in the buffer would be in the way of reading elsewhere.
            self._file.flush()
            self._end = max(self._end, start + array.nbytes)
        return Stretch(start, array.nbytes)

    def get(self, span: Stretch, dtype: np.dtype[Any] | type[np.generic]) -> NDArray[Any]:
        """What was written there, as one row of numbers."""
        found = np.empty(span.size, np.uint8)
        with self._lock:
            self._file.seek(span.start)
            read = self._file.readinto(found.data)
        if read != span.size:
            raise OSError("a temporary file is too short")
        return found.view(dtype)
