"""How far apart two points may lie whose Bernoulli mixtures all have a bounded moment.

v·Bernoulli(p) has the λ-th absolute central moment v^λ·h(p),

    h(p) = p(1 − p)·[p^{λ−1} + (1 − p)^{λ−1}],

symmetric about ½. On [0, ½] it rises to p* and falls from there (p* = ½ if λ ≤ 3), so its maximum
over an interval is at an end or at p* or 1 − p*. Proof: docs/proofs/trilemma.md.
"""

from __future__ import annotations

import math

import numpy as np

from muhat._arrays import Floats


def log_moment(theta: Floats, order: float) -> Floats:
    """ln h(p)/λ at p = sin²θ; for λ = ∞ ln max(p, 1 − p)."""
    with np.errstate(divide="ignore"):
        low = 2 * np.log(np.minimum(np.sin(theta), np.cos(theta)))
    high: Floats = 2 * np.log(np.maximum(np.sin(theta), np.cos(theta)))
    if math.isinf(order):
        return high
    # p^{λ−1} + (1−p)^{λ−1}, the larger taken out.
    rest = np.log1p(np.exp((order - 1) * (low - high)))
    return np.asarray((low + order * high + rest) / order, dtype=np.float64)


def peak(order: float) -> float:
    """θ in (0, π/4] where h is largest.

    With p = 1/(1 + e^{2s}) h is stationary where λ·sinh((λ−2)s) = sinh(λs), that is
    λ·e^{−2s}(1 − e^{−2(λ−2)s}) = 1 − e^{−2λs}; the left side is larger below the root.
    """
    if order <= 3 or math.isinf(order):
        return math.pi / 4
    low, high = 0.0, math.log(order) / 2
    for _ in range(80):
        s = (low + high) / 2
        left = order * math.exp(-2 * s) * -math.expm1(-2 * (order - 2) * s)
        if left > -math.expm1(-2 * order * s):
            low = s
        else:
            high = s
    return math.atan(math.exp(-(low + high) / 2))


def distances(low: Floats, high: Floats, order: float, interval: float) -> Floats:
    """The largest v for all p between sin²`low` and sin²`high`, unrounded.

    The λ-th moment is at most 1, and the means, v(b − a) apart, lie in the interval.
    """
    top = peak(order)
    logs = np.maximum(log_moment(low, order), log_moment(high, order))
    if math.isfinite(order):
        highest = log_moment(np.array([top]), order)[0]
        inside = ((low <= top) & (top <= high)) | (
            (low <= math.pi / 2 - top) & (math.pi / 2 - top <= high)
        )
        logs = np.where(inside, highest, logs)
    width = np.sin(high - low) * np.sin(high + low)
    with np.errstate(divide="ignore", over="ignore"):
        return np.minimum(np.exp(-logs), interval / width)
