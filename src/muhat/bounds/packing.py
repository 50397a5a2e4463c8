"""Code words in a ball: what no purely private mechanism can beat (B7).

Some dataset has an error E‖answer − mean‖₂ of at least

    max over m ≤ n and D ≤ d of  L·(m/n)·√(D/d)·G/(1 + G),   G = (P_D − 1)·e^{−mε},

with P_D = ⌈2^d/Σ_{i<D} C(d, i)⌉ words of length d at Hamming distance D (Gilbert and Varshamov).
Proof: docs/proofs/ball.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def packing_error(n: int, dim: int, epsilon: float) -> float:
    """The bound for the unit ball, rounded down; any m and D are valid, the best are searched."""
    log_others = _log_packing_sizes(dim)
    # m·G/(1+G) is log-concave in m and best where x = mε solves ln(x − 1) + x = ln(P_D − 1).
    low, high = np.ones(dim), np.maximum(2.0, log_others)
    with np.errstate(divide="ignore"):
        for _ in range(60):
            x = (low + high) / 2
            above = np.log(x - 1) + x > log_others
            low, high = np.where(above, low, x), np.where(above, x, high)
    middle = np.floor(np.minimum(high / epsilon, float(n)))
    best = 0.0
    distances = np.arange(1, dim + 1)
    for offset in (0, 1):
        m = np.clip(middle + offset, 1, n)
        share = np.exp(-np.logaddexp(0, m * epsilon - log_others))
        best = max(best, float(np.max(m / n * np.sqrt(distances / dim) * share)))
    return best * (1 - 1e-10)


def _log_packing_sizes(dim: int) -> NDArray[np.float64]:
    """ln(P_D − 1) for D = 1 … d, from exact integers; -inf where there is only one word."""
    words = 1 << dim
    choose, below = 1, 0
    logarithms = np.empty(dim)
    for distance in range(1, dim + 1):
        below += choose
        choose = choose * (dim - distance + 1) // distance
        others = -(-words // below) - 1
        logarithms[distance - 1] = math.log(others) if others else -math.inf
    return logarithms
