"""The same examples and the same entropy on every run: a test fails for a reason, not by chance."""

from __future__ import annotations

import pytest
from hypothesis import settings

from keyed_entropy import KeyedEntropy

settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=False)
settings.load_profile("fixed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--entropy", default="", help="another key for what tests draw")


def pytest_configure(config: pytest.Config) -> None:
    KeyedEntropy.key = config.getoption("--entropy")
    config.pluginmanager.register(KeyedEntropy())
