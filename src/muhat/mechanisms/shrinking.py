"""A noisy vector drawn towards 0, as far as it may be noise (James and Stein 1961).

    g = max(0, 1 − (d − 2)σ²/‖V‖²)

Why the intervals of a sum with such a part hold: docs/proofs/unbounded.md.
"""

from __future__ import annotations

import numpy as np

from muhat.mechanisms.sharing import Floats
from muhat.noise.spread import Spread


def shrunk(value: Floats, scale: float) -> Floats:
    """g·V, g = max(0, 1 − (d − 2)σ²/‖V‖²): closer to its mean than V if that is 0, and never
    farther in the mean square for d ≥ 3 (James and Stein, 1961)."""
    length_squared = float(value @ value)
    noise = max(len(value) - 2, 1) * scale**2
    if noise >= length_squared:
        return np.zeros(len(value))
    return np.asarray(value * (1 - noise / length_squared))


def together(noise: Spread, scales: Floats) -> Spread:
    """The spread of a vector with this noise and independent normal noise of such scales."""
    both = np.hypot(noise.scales, scales)
    if noise.factor is None:
        return Spread(noise.law, noise.rows, both)
    factor = np.hstack([noise.factor, np.diag(scales)])
    return Spread(noise.law, noise.rows + len(scales), both, factor)
