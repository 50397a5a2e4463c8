"""Spark's voice on the driver, held while it works for us: its messages quote what was read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from muhat.errors import MuhatError

T = TypeVar("T")

PATIENCE_SECONDS = 20

_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


@dataclass
class _Held:
    """How many pieces of work want silence, and what makes noise again after the last."""

    depth: int
    restore: Callable[[], None] | None


_LOCK = threading.Lock()
_HELD: dict[Any, _Held] = {}
"""What is held, by the context it belongs to: None for clients, whose servers log elsewhere."""


@contextmanager
def quiet(session: Any) -> Iterator[None]:
    """The driver logs nothing meanwhile. Executors and servers have logs of their own."""
    context = getattr(session, "_sc", None)
    with _LOCK:
        if context not in _HELD:
            # If this fails, nothing is held, and the work that would not be silent is not done.
            _HELD[context] = _Held(0, _silenced(context))
        _HELD[context].depth += 1
        _disable(True)
    try:
        yield
    except MuhatError:
        raise
    except Exception:
        _settle(context)
        raise
    finally:
        with _LOCK:
            held = _HELD[context]
            held.depth -= 1
            if held.depth == 0:
                del _HELD[context]
                _disable(bool(_HELD))
                if held.restore is not None:
                    # A driver that has ended meanwhile has nothing left to say.
                    with suppress(Exception):
                        held.restore()


def quietly(session: Any, work: Callable[[], T]) -> T | None:
    """What the work comes to; None if Spark failed, whose exceptions quote what they were about."""
    try:
        with quiet(session):
            return work()
    except MuhatError:
        raise
    except Exception:
        return None


def _settle(context: Any) -> None:
    """Wait for the other tasks of what failed: when they end, Spark logs why they had to.

    The scheduler itself is asked: what Spark tells its pages lags behind, either way.
    """
    if context is None:
        return
    with suppress(Exception):
        scheduler = context._jsc.sc().taskScheduler()
        until = time.monotonic() + PATIENCE_SECONDS
        while scheduler.rootPool().runningTasks() and time.monotonic() < until:
            time.sleep(0.05)
        # Answered only after whoever handles the end of the last task has logged it.
        scheduler.runningTasksByExecutors()


def _silenced(context: Any) -> Callable[[], None] | None:
    """Have a driver pass nothing on to any of its loggers; the way back."""
    if context is None:
        return None
    core = context._jvm.org.apache.logging.log4j.core
    running = context._jvm.org.apache.logging.log4j.LogManager.getContext(False)
    nothing = core.filter.DenyAllFilter.newBuilder().build()
    running.addFilter(nothing)

    def restore() -> None:
        running.removeFilter(nothing)

    return restore


def _disable(disabled: bool) -> None:
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        PySparkLogger.getLogger(name).disabled = disabled
