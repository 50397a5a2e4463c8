"""Several pieces of work at a time, each in an interpreter of its own.

A fork would copy whatever threads hold at that moment, so that interpreters are fresh ones. One
that dies, killed for its memory perhaps, does not stop the others; all of them end with the caller.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

Work = Callable[[str, Callable[[float], None]], Any]
"""(name, progress) → what came out."""


def side_by_side(
    names: Sequence[str], work: Work, jobs: int, progress: Callable[[str, float], None]
) -> Iterator[tuple[str, Any]]:
    """Every name with what its work gave, in the order in which they end; None if it died.

    `work` is sent to other interpreters, so it is a function of a module, or a `partial` of one.
    """
    context = multiprocessing.get_context("spawn")
    waiting, running = list(names), dict[Any, tuple[str, BaseProcess]]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                ours, theirs = context.Pipe(duplex=False)
                name = waiting.pop(0)
                started = context.Process(target=_tell, args=(theirs, work, name))
                with _unheard():
                    started.start()
                theirs.close()
                running[ours] = name, started
            for pipe in wait(list(running)):
                name, process = running[pipe]
                part, outcome = _hear(pipe)
                if part is not None:
                    progress(name, part)
                    continue
                process.join()
                del running[pipe]
                yield name, outcome
    finally:
        for _, process in running.values():
            process.terminate()
            process.join()


def _tell(pipe: Connection, work: Work, name: str) -> None:
    """What the other interpreter does: (how far, None) again and again, then (None, outcome)."""
    with suppress(BrokenPipeError):  # nobody listens any more
        pipe.send((0.0, None))
        pipe.send((None, work(name, lambda part: pipe.send((part, None)))))


def _hear(pipe: Any) -> tuple[float | None, Any]:
    try:
        part, outcome = pipe.recv()
    except EOFError:
        return None, None
    return part, outcome


@contextmanager
def _unheard() -> Iterator[None]:
    """Ctrl-C waits, and whoever starts meanwhile never hears it: only the caller does."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which lets Ctrl-C through again if it starts later
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
