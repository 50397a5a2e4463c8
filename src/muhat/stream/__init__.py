"""Answers while the data come in: running sums, each released as soon as it is known."""

from __future__ import annotations

from muhat.stream.counter import PrefixCounter, prefix_counter, restore, start
from muhat.stream.plan import plan_prefix_counter

__all__ = [
    "PrefixCounter",
    "plan_prefix_counter",
    "prefix_counter",
    "restore",
    "start",
]
