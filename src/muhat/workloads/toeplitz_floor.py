"""What no factorisation of running sums can beat, in closed form.

For every A = L·R with columns of R no longer than 1, every orthogonal Y and every unit vector s,

    Σ_j s_j·(YᵀA)_jj = tr(Yᵀ·L·R·diag(s)) ≤ ‖L‖_F·‖R·diag(s)‖_F ≤ ‖L‖_F.

With Y the polar factor of A, YᵀA = G = (AᵀA)^½, and the best s gives γ_(2)(A) ≥ ‖diag G‖₂, which
is at least the Schatten bound tr(G)/√n. For p > 2, ‖x‖_p ≥ n^{1/p − 1/2}·‖x‖₂.

The singular values of A are σ_k = 1/(2·sin θ_k), θ_k = (2k − 1)π/(4n + 2), and its right singular
vectors 2/√(2n+1)·cos((2j + 1)θ_k), j = 0, …, n − 1. Hence

    G_jj = 2/(2n + 1)·(Σ_k σ_k + C_j),   C_j = Σ_k σ_k·cos((4j + 2)θ_k),

and as σ_k·sin 2θ_k = cos θ_k, the differences C_{j+1} − C_j = −S(4j + 3) − S(4j + 5) are sums
S(m) = Σ_k sin(m·θ_k) = sin²(nmα)/sin(mα), α = π/(4n + 2): no transform is needed.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats


def singular_values(size: int) -> Floats:
    """The singular values of running sums, the largest first, to a few 2^−53 of each."""
    return np.asarray(0.5 / np.sin((2 * np.arange(size) + 1) * (math.pi / (4 * size + 2))))


def root_diagonal(size: int) -> Floats:
    """Lower bounds of the diagonal of (AᵀA)^½, of shape (n,), within 10^−7 of it up to n = 2^22."""
    values = singular_values(size)
    angles = (2 * np.arange(size) + 1) * (math.pi / (4 * size + 2))
    steps = _sine_sums(size, 4 * np.arange(size - 1) + 3)
    steps += _sine_sums(size, 4 * np.arange(size - 1) + 5)
    total, first = float(np.sum(values)), float(np.sum(values * np.cos(2 * angles)))
    sums = np.full(size, total + first)
    sums[1:] -= np.cumsum(steps)
    # Every term is within 16 units of 2^−53 of itself, and every one of n additions adds one.
    error = (size + 32) * 2.0**-52 * (2 * total + float(np.sum(np.abs(steps))))
    return np.asarray(np.maximum(sums - error, 0.0) * (2 / (2 * size + 1) * (1 - 2.0**-50)))


def _sine_sums(size: int, orders: NDArray[np.int64]) -> Floats:
    """S(m) for odd 0 < m < 4n + 2; both angles are reduced in integers."""
    period = 4 * size + 2
    unit = math.pi / period
    near = np.minimum(orders, period - orders)
    turned = (size * orders) % period
    turned = np.minimum(turned, period - turned)
    return np.asarray(np.sin(unit * turned) ** 2 / np.sin(unit * near))


@lru_cache(maxsize=8)
def prefix_floor(size: int, p: float) -> float:
    """n^{1/p − 1/2}·‖diag (AᵀA)^½‖₂ ≤ γ_(p)(A), rounded down.

    >>> round(prefix_floor(256, 2) ** 2, 1)
    1624.7
    """
    square = float(np.sum(root_diagonal(size) ** 2))
    power = 0.0 if math.isinf(p) else 1 / p
    return math.pow(size, power - 0.5) * math.sqrt(square) * (1 - 2.0**-28)
