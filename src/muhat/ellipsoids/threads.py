"""One BLAS thread around the solver: more of them slow small matrices down on a busy machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  (its BLAS is a second library: load it, then count)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Within it, BLAS runs on one thread; results are then the same on every machine size."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
