"""A noisy vector drawn towards 0, as far as it may be noise (James and Stein 1961).

    g = max(0, 1 − (d − 2)σ²/‖V‖²), and no coordinate moves by more than 1.5σ

The limit (Efron and Morris 1972) keeps a single coordinate that is not noise from being lost among
many that are. Intervals are about V itself, whose noise is known: docs/proofs/unbounded.md.
"""

from __future__ import annotations

import numpy as np

from muhat._arrays import Floats
from muhat.noise.spread import Spread

MOST_MOVED = 1.5
"""Deviations that a coordinate moves at most: it stays well within its 95 % interval, and of the
noise of a vector that is nothing else 95 % is saved."""


def shrunk(value: Floats, scale: float) -> Floats:
    """V − (1 − g)V, the second part limited to ±1.5σ in every coordinate."""
    length_squared = float(value @ value)
    noise = max(len(value) - 2, 1) * scale**2
    part = 1.0 if noise >= length_squared else noise / length_squared
    return np.asarray(value - np.clip(part * value, -MOST_MOVED * scale, MOST_MOVED * scale))


def together(noise: Spread, scales: Floats) -> Spread:
    """The spread of a vector with this noise and independent normal noise of such scales."""
    both = np.hypot(noise.scales, scales)
    if noise.factor is None:
        return Spread(noise.law, noise.rows, both)
    factor = np.hstack([noise.factor, np.diag(scales)])
    return Spread(noise.law, noise.rows + len(scales), both, factor)
