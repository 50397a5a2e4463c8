"""What no mechanism at all can beat on a Euclidean ball.

For pure privacy an explicit packing (B7, docs/proofs/bounds.md): honest about its constant, and
weak. For the others only rates are known, so there is no number.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from muhat import _check
from muhat.bounds.lower_bound import LowerBound
from muhat.privacy import Privacy, PureDP

_CITATION = "Bassily, Smith and Thakurta 2014; Steinke and Ullman 2015"


def ball(n: int, dim: int, radius: float, privacy: Privacy) -> tuple[LowerBound, ...]:
    """Lower bounds on E‖answer − mean‖₂ of any private mean of n records in a ball, n public.

    Pure ε-DP: some dataset has an error of at least

        max over m ≤ n and D ≤ d of  L·(m/n)·√(D/d)·G/(1 + G),   G = (P_D − 1)·e^{−mε},

    with P_D = ⌈2^d/Σ_{i<D} C(d, i)⌉ words of length d at Hamming distance D (Gilbert and
    Varshamov).

    >>> (bound,) = ball(n=1000, dim=100, radius=1.0, privacy=PureDP(epsilon=1.0))
    >>> bound.sentence()
    'Every 1-DP (pure) mechanism has error at least 0.0116 on some dataset.'
    """
    n, dim = _check.count("n", n), _check.count("dim", dim)
    radius = _check.positive("radius", radius)
    assumptions = (
        "n is public and neighbours replace one record.",
        "Records lie in a Euclidean ball; the error is the mean Euclidean distance.",
    )
    if not isinstance(privacy, PureDP):
        rate = "Only the rate is known: the constant of the theorem is not explicit."
        return (
            LowerBound(
                None,
                "any",
                "some",
                "BST14 Theorem 5.5, SU15 Theorem 1.1",
                "paper",
                (*assumptions, rate),
                privacy.describe(),
                _CITATION,
            ),
        )
    value = radius * _packing(n, dim, privacy.epsilon) * (1 - 1e-10)
    return (
        LowerBound(
            value,
            "any",
            "some",
            "B7, an explicit packing",
            "derived",
            assumptions,
            privacy.describe(),
            _CITATION,
        ),
    )


def _packing(n: int, dim: int, epsilon: float) -> float:
    """The bound for the unit ball; any m and D are valid, the best ones are searched."""
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
        log_odds = log_others - m * epsilon
        share = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
        best = max(best, float(np.max(m / n * np.sqrt(distances / dim) * share)))
    return best


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
