"""The operating system's entropy, replaced while tests run by streams that names decide.

Every test draws from a stream keyed by its own name, every fixture that outlives a test and every
module that is being collected from one keyed by theirs. So a run gives the same result in any
order and on any number of workers. `--entropy KEY` (`make test-fresh`) gives other streams.

Processes that a test forks or starts draw from the operating system, as the product does: what is
asserted of them must not depend on a draw.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import shake_256
from itertools import count

import pytest

Entropy = Callable[[int], bytes]

SYSTEM: Entropy = os.urandom


def stream(name: str) -> Entropy:
    """As `os.urandom`, but the bytes are those of `name`, and of the number of calls before."""
    calls = count()

    def urandom(size: int) -> bytes:
        return shake_256(f"{name}\0{next(calls)}".encode()).digest(size)

    return urandom


@contextmanager
def drawing_from(source: Entropy) -> Iterator[None]:
    """Have everything in this process draw from `source`."""
    before = os.urandom
    _replace(source)
    try:
        yield
    finally:
        _replace(before)


def _replace(source: Entropy) -> None:
    os.urandom = source
    random._urandom = source  # what `random.SystemRandom` and `secrets` draw from


def drawn_once(function):
    """`functools.cache` for what draws: whoever asks first, it draws from a stream of its own."""

    @cache
    def drawn(*arguments):
        with drawing_from(KeyedEntropy.of(f"{function.__module__}.{function.__name__}{arguments}")):
            return function(*arguments)

    return drawn


class KeyedEntropy:
    """The plugin: hooks around whatever may draw. There is one key for a whole run."""

    key = ""

    @classmethod
    def of(cls, name: str) -> Entropy:
        return stream(f"{cls.key}\0{name}")

    def pytest_report_header(self) -> str:
        return f"entropy: keyed by the names of the tests{self.key and f' and {self.key!r}'}"

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector):
        with drawing_from(self.of(f"collecting {collector.nodeid}")):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        own = item.get_closest_marker("system_entropy") is not None
        with drawing_from(SYSTEM if own else self.of(item.nodeid)):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        if fixturedef.scope == "function":
            return (yield)
        parameter = getattr(request, "param_index", 0)
        with drawing_from(self.of(f"{fixturedef.baseid}::{fixturedef.argname}[{parameter}]")):
            return (yield)


os.register_at_fork(after_in_child=lambda: _replace(SYSTEM))
