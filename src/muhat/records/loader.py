"""Compiled loops, loaded when a process has done so much without them that it has become worth it.

numba takes as long to load as numpy takes for some hundred million values. What it compiles is used
if it does what its source does to values that try every branch; else, and without the extra `fast`,
numpy goes on, to the same bits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Loops = TypeVar("Loops")

WORTH_LOADING = 1 << 27
"""Values after which loops are loaded: numpy has then spent about what loading takes."""


class Loader(Generic[Loops]):
    """Counts the values that numpy deals with, and loads loops when that has become worth it."""

    def __init__(self, checked: Callable[[], Loops | None]) -> None:
        self._checked = checked
        self._lock = threading.Lock()
        self._values = 0
        self._loops: Loops | None = None
        self._tried = False

    def after(self, values: int) -> Loops | None:
        """The loops, if they are loaded, or worth loading now that so many values more come."""
        if not self._tried:
            self._values += values
            if self._values >= WORTH_LOADING:
                with self._lock:
                    if not self._tried:
                        self._loops, self._tried = self._checked(), True
        return self._loops


def if_they_agree(compiled: Callable[[], Loops], agree: Callable[[Loops], bool]) -> Loops | None:
    """The loops, if they can be had and do what their source does; else None."""
    try:
        loops = compiled()
        return loops if agree(loops) else None
    except Exception:
        # No numba, one that knows not this Python, or no place for its cache: numpy goes on. The
        # charge has been made, and a release must not fail for want of speed.
        return None


def compiler() -> Any:
    """The module of numba, unless it is told to compile nothing."""
    import numba

    if numba.config.DISABLE_JIT:
        raise ImportError("numba is told to compile nothing")
    return numba


def read_only(kind: Any) -> Any:
    """numba's type of contiguous arrays that a loop reads."""
    return compiler().types.Array(kind, 1, "C", readonly=True)
