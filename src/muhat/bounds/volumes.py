"""Volumes in a ball: what no private mechanism can beat, biased or not.

m of n records lie at an unknown point v of the ball of radius L, the others at its centre. The
answer must find m·v/n, yet it can differ by little from the answer to records that are all at the
centre. Root mean square errors of some dataset, for every m ≤ n and with R = L·m/n:

    (ε, δ)-DP:  √(d/(d + 2))·R·(1 − δ_m)^{1/2 + 1/d}·e^{−mε/d},  δ_m = δ(e^{mε} − 1)/(e^ε − 1),
    ρ-zCDP:     √(d/(2πe))·V_d^{1/d}·R·e^{−m²ρ/d},  V_d the volume of the unit ball.

Proofs: docs/proofs/ball.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from muhat.privacy import Privacy
from muhat.privacy.rounding import float_at_least


def volume_error(n: int, dim: int, privacy: Privacy) -> float:
    """The bound for the unit ball, rounded down."""
    if privacy.point is not None:
        epsilon, delta = privacy.point
        log_delta = math.log(delta) if delta else -math.inf
        constant, most = -math.log1p(2 / dim) / 2, n

        def log_error(m: float) -> float:
            kept = _log_kept(m, epsilon, log_delta)
            return constant + math.log(m / n) + (0.5 + 1 / dim) * kept - m * epsilon / dim

        start = dim / epsilon
    else:
        rho, most = _divergence(privacy, n)
        log_volume = dim / 2 * math.log(math.pi) - math.lgamma(dim / 2 + 1)
        constant = (math.log(dim / (2 * math.pi)) - 1) / 2 + log_volume / dim

        def log_error(m: float) -> float:
            return constant + math.log(m / n) - m * (m * rho / dim)

        start = math.sqrt(dim / 2) / math.sqrt(rho)
    # Sums of logarithms no larger than a few thousand times the result's: a wide margin.
    best = max(log_error(m) for m in _candidates(log_error, most, start))
    return math.exp(best) * (1 - 1e-9)


def _divergence(privacy: Privacy, n: int) -> tuple[float, int]:
    """ρ, and for how many records together the relative entropy is known to be at most m²ρ."""
    first = privacy.renyi(Fraction(1))
    if first is None:
        raise AssertionError("a promise is a point, or bounds a divergence")
    return float_at_least(first), 1 if privacy.implied_rho is None else n


def _log_kept(m: float, epsilon: float, log_delta: float) -> float:
    """ln(1 − δ_m); −inf where so little is kept that its digits would be lost."""
    if log_delta == -math.inf:
        return 0.0
    log_group = log_delta + (m - 1) * epsilon
    log_group += math.log(-math.expm1(-m * epsilon)) - math.log(-math.expm1(-epsilon))
    return math.log1p(-math.exp(log_group)) if log_group < -1e-4 else -math.inf


def _candidates(log_error: Callable[[float], float], n: int, start: float) -> set[int]:
    """Whole numbers around the maximum of a concave function; every one of them is valid."""
    low, high = 1.0, float(max(1, min(n, start)))
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if log_error(left) < log_error(right):
            low = left
        else:
            high = right
    return {min(max(math.floor(low) + offset, 1), n) for offset in (-1, 0, 1, 2)}
