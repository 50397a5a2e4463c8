"""Picks the recipe before any data is seen, and carries it out."""

from __future__ import annotations

from muhat.planning.plan import Plan
from muhat.planning.planners import plan_count, plan_mean, plan_sum
from muhat.planning.shortcuts import count, mean, sum

__all__ = [
    "Plan",
    "count",
    "mean",
    "plan_count",
    "plan_mean",
    "plan_sum",
    "sum",
]
