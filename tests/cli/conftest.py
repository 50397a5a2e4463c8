"""What the tests of several commands share."""

from __future__ import annotations

import pytest


@pytest.fixture
def documented_keys() -> set[str]:
    """The keys that the JSON of every release has."""
    account = "mechanism privacy neighbors n columns cost certificate assumptions ledger_head"
    return {"schema", "value", "standard_error", "interval", *account.split()}


@pytest.fixture
def own_device(tmp_path, monkeypatch):
    """Another user for the test: what its device answers, no other test has answered."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
