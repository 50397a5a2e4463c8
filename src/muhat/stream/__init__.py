"""Answers while the data come in: running sums, each released as soon as it is known."""

from __future__ import annotations

from muhat.stream.counter import PrefixCounter, prefix_counter
from muhat.stream.restoring import restore

__all__ = ["PrefixCounter", "prefix_counter", "restore"]
