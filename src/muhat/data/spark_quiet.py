"""Spark's voice on the driver, held while it works for us: its messages quote what was read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


class _Hold:
    """How many pieces of work want silence, and what makes noise again after the last."""

    lock = threading.Lock()
    depth = 0
    restore: tuple[Any, str] | None = None


@contextmanager
def quiet(session: Any) -> Iterator[None]:
    """The driver logs nothing meanwhile. Executors and servers have logs of their own."""
    with _Hold.lock:
        _Hold.depth += 1
        if _Hold.depth == 1:
            _Hold.restore = _silenced(session)
    try:
        yield
    finally:
        with _Hold.lock:
            _Hold.depth -= 1
            if _Hold.depth == 0:
                _unsilenced(_Hold.restore)


def _silenced(session: Any) -> tuple[Any, str] | None:
    """Turn Spark's loggers off; the context and the level to return to, if there is one here."""
    _disable(True)
    # A Connect client has no context: its server logs elsewhere.
    context = getattr(session, "_sc", None)
    if context is None:
        return None
    root = context._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
    level = str(root.getLevel().toString())
    context.setLogLevel("OFF")
    return context, level


def _unsilenced(restore: tuple[Any, str] | None) -> None:
    _disable(False)
    if restore is not None:
        context, level = restore
        # A context that was stopped meanwhile has nothing left to say.
        if context._jsc is not None:
            context.setLogLevel(level)


def _disable(disabled: bool) -> None:
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        PySparkLogger.getLogger(name).disabled = disabled
