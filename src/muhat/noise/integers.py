"""Arrays of whole numbers that never overflow: int64 where it suffices, Python integers else."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[Any]
"""int64, or object (Python integers) when a value is too large for that."""


def fits(value: int) -> bool:
    """Whether an integer can be an int64."""
    return -(1 << 63) <= value < 1 << 63


def as_integers(values: list[int]) -> Integers:
    """An int64 array if every value fits, else an object array of Python integers."""
    return np.array(values, np.int64 if all(map(fits, values)) else object)
