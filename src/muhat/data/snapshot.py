"""What sources hold from the first look at their records to the last: a snapshot, a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

_HELD: ContextVar[ExitStack | None] = ContextVar("held", default=None)


@contextmanager
def one_snapshot() -> Iterator[None]:
    """Sources that are opened meanwhile show the same records in all passes, if they can hold them.

    What they hold is let go at the end, however that comes about.
    """
    with ExitStack() as stack:
        before = _HELD.set(stack)
        try:
            yield
        finally:
            _HELD.reset(before)


def held() -> ExitStack | None:
    """Where a source puts what lets its snapshot go; None outside of a release."""
    return _HELD.get()
