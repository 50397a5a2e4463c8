"""Columns of records that a ball around most of them says little about."""

from __future__ import annotations

import numpy as np


def hard_shapes(n: int) -> dict[str, np.ndarray]:
    """n records of every shape, the same on every call."""
    generator = np.random.default_rng(11)
    few, some = generator.random(n), generator.normal(0, 1, n)
    return {
        "normal": 10 + some,
        "zeros and exponentials": np.where(few < 0.8, 0.0, generator.exponential(50, n)),
        "one in a hundred at 90": np.where(few < 0.01, 90.0, 0.0),
        "lognormal": np.exp(1.2 * some),
        "two scales": np.where(few < 0.05, 1000.0, 1.0) * some,
    }
