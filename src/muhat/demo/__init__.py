"""The data that ship with the package: 10,000 invented people (scripts/make_demo_data.py)."""

from __future__ import annotations

from pathlib import Path

SALARIES = Path(__file__).parent / "salaries.csv"
BOUNDS = {"salary": (0, 200_000), "age": (16, 90)}
"""Chosen as a user would: from what the columns mean, not from their values."""
