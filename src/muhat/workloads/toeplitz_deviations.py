"""The standard deviations of a million running sums in about a second.

Row t of L = A·D·F⁻¹ is Σ_{i<t} δ_i·F_i + d_t·F_t, where F_i is row i of F and δ_i = d_i − d_{i+1}.
Every number in it is positive. With

    κ(i, t) = F_i·F_t = Σ_{m ≤ i} f(m)·f(m + t − i)    and    Q_t = Σ_{i<t} δ_i·κ(i, t),

the squared length of the part without d_t grows from S_0 = 0 by 2δ_t·Q_t + δ_t²·κ(t, t), and
that of the row is S_t + 2d_t·Q_t + d_t²·κ(t, t). Only Q costs more than O(n). For k ≥ 1

    f(k) = (1/π)·∫₀¹ x^k/√(x(1 − x)) dx = Σ_q w_q·λ_q^k    up to a relative error ε,

by the trapezoidal rule in y = ln(−ln x), where the integrand is analytic; ε is measured at every
k that is used. Then Q_t = Σ_q w_q·Σ_{i<t} λ_q^(t−i)·δ_i·G_q(i) with G_q(i) = Σ_{m≤i} f(m)·λ_q^m:
one cumulative sum and one recurrence a node. As all terms are positive, the relative error of Q,
hence of the variance, is at most ε.
"""

from __future__ import annotations

import math

import numpy as np

from muhat._arrays import Floats

DEVIATION_ERROR = 1e-6
"""The relative error of `deviations`: half of ε, and the rounding of the sums."""

Nodes = tuple[Floats, Floats]

STEP = 0.6
_LOWEST = -10.0
"""Nodes reach down to e^−10/n; what lies below acts as a constant."""


def deviations(coefficients: Floats, lengths: Floats, nodes: Nodes | None = None) -> Floats:
    """The length of every row of L, for f and d of shape (n,).

    `nodes` are the rates −ln λ_q and the weights w_q > 0 of the exponential sum.
    """
    from scipy.linalg import lapack

    size = len(coefficients)
    falls = np.append(lengths[:-1] - lengths[1:], 0.0)
    rates, weights = nodes or exponential_sum(size)
    mixed = np.zeros(size)
    # The recurrence h_t = λ·(h_{t−1} + x_{t−1}) is a triangular system with two diagonals.
    diagonals = np.ones((2, size), order="F")
    reached = np.zeros(size)
    fitted = np.zeros(size)
    for rate, weight in zip(rates, weights, strict=True):
        powers = _powers(rate, size)
        reached[:] = 0
        np.multiply(np.cumsum(coefficients * powers)[:-1], falls[:-1], out=reached[1:])
        decay = math.exp(-rate)
        reached *= decay
        diagonals[1] = -decay
        held, _ = lapack.dtbtrs(diagonals, reached[:, None], uplo="L")
        mixed += weight * held[:, 0]
        powers *= weight
        fitted += powers
    ratio = fitted[1:] / coefficients[1:]
    if size > 1 and not np.abs(ratio - 1).max() < DEVIATION_ERROR:
        raise ArithmeticError("the exponential sum is not accurate enough")
    squares = np.cumsum(coefficients**2)
    grown = np.cumsum(2 * falls * mixed + falls**2 * squares)
    variances = lengths * (2 * mixed + lengths * squares)
    variances[1:] += grown[:-1]
    return np.asarray(np.sqrt(variances))


def exponential_sum(size: int) -> Nodes:
    """Rates and weights with f(k) ≈ Σ_q weights_q·exp(−rates_q·k) for 1 ≤ k < size."""
    lowest = _LOWEST - math.log(size)
    y = np.arange(lowest, math.log(30.0), STEP)
    rates = np.exp(y)
    # x = e^−s: dx/√(x(1−x)) = e^{−s/2}/√(1 − e^−s) ds, and ds = s dy.
    weights = STEP / math.pi * rates * np.exp(-rates / 2) / np.sqrt(-np.expm1(-rates))
    # Below the lowest node the weights are STEP/π·e^{y/2}: a geometric series at the rate 0.
    shrink = math.exp(-STEP / 2)
    constant = STEP / math.pi * math.exp(lowest / 2) * shrink / (1 - shrink)
    return np.append(rates, 0.0), np.append(weights, constant)


def _powers(rate: float, size: int) -> Floats:
    """exp(−rate·k) for k < size, as an outer product."""
    block = math.isqrt(size) + 1
    step = np.exp(-rate * np.arange(block))
    starts = np.exp(-rate * block * np.arange(block))
    return np.asarray(np.multiply.outer(starts, step).ravel()[:size])
