"""The same examples and the same entropy on every run: a test fails for a reason, not by chance."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from keyed_entropy import KeyedEntropy

# Hypothesis mixes in constants of whatever local modules are imported by then: which examples a
# test gets would depend on the tests before it.
providers._get_local_constants = providers.Constants

settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=False)
settings.load_profile("fixed")


@pytest.fixture(scope="session", autouse=True)
def claims_of_tests(tmp_path_factory):
    """Keyed entropy names states alike on every run: their claims must not outlive it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state-home")))
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--entropy", default="", help="another key for what tests draw")


def pytest_configure(config: pytest.Config) -> None:
    KeyedEntropy.key = config.getoption("--entropy")
    config.pluginmanager.register(KeyedEntropy())
