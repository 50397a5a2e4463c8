"""A bar on the terminal for work that takes long."""

from __future__ import annotations

import math
import sys
import threading
import time
from types import TracebackType
from typing import Any

PATIENCE_SECONDS = 2.0

GAP_SECONDS = 1.0
"""Passes that follow each other so closely are one piece of work."""


class WorkDone:
    """When the present piece of work began, and when its last pass ended."""

    began = ended = -math.inf

    @classmethod
    def start(cls) -> float:
        """A pass starts: the beginning of the work that it belongs to."""
        now = time.monotonic()
        if now - cls.ended > GAP_SECONDS:
            cls.began = now
        return cls.began


class Progress:
    """Shows itself on stderr once the work has taken two seconds; safe to call from threads.

    Work of several passes is shown pass by pass, and has its two seconds once.
    """

    def __init__(self, size: int, words: str = "reading", *, show: bool = True) -> None:
        self._size, self._words = size, words
        self._done = 0
        self._bar: Any = None
        self._task: Any = None
        self._lock = threading.Lock()
        self._started = WorkDone.start()
        self._wanted = show and size > 0 and sys.stderr is not None and sys.stderr.isatty()

    def advance(self, size: int) -> None:
        """Some more of the size is done."""
        if not self._wanted:
            return
        with self._lock:
            self._done += size
            if self._bar is None and time.monotonic() - self._started > PATIENCE_SECONDS:
                self._show()
            if self._bar is not None:
                self._bar.update(self._task, completed=self._done)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        WorkDone.ended = time.monotonic()
        if self._bar is not None:
            self._bar.stop()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn(self._words),
            BarColumn(),
            TaskProgressColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._words, total=self._size)
        self._bar.start()
