"""What sources hold from the first look at their records to the last: a snapshot, a transaction."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any


class Held(ExitStack):
    """What lets snapshots go; `kept` has what several sources share, by names of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[Hashable, Any] = {}


_HELD: ContextVar[Held | None] = ContextVar("held", default=None)


@contextmanager
def one_snapshot() -> Iterator[None]:
    """Sources that are opened meanwhile show the same records in all passes, if they can hold them.

    What they hold is let go at the end, however that comes about.
    """
    with Held() as held_now:
        before = _HELD.set(held_now)
        try:
            yield
        finally:
            _HELD.reset(before)


def held() -> Held | None:
    """Where a source puts what lets its snapshot go; None outside of a release."""
    return _HELD.get()
