"""How well two neighbouring outputs can be told apart, when both must have a small variance.

For laws P, Q with the mixture w = (P + Q)/2 let κ² = E_w r, r = ((P − Q)/(P + Q))². If their
means are Δ apart,

    (Var_P + Var_Q)/2 ≥ (Δ²/4)(1/κ² − 1),

which for additive noise, where both variances are one, is a bound on every dataset. The functions
return ln of 4/(1/κ² − 1), so that neighbouring outputs have (Var + Var')/2 ≥ Δ²/(this number), as
`divergences.log_pair_approx` does. Proofs: docs/proofs/bounds.md.
"""

from __future__ import annotations

import math

import numpy as np

from muhat.bounds.divergences import log_one_sided_pure, log_pair_approx

SMALLEST_MU = 1e-4
"""Below it the closed form loses less than a part in 10⁸."""

LARGEST_MU = 256.0
"""Above it the integral is bounded: neighbours can be told apart anyway."""

LARGEST_LOSS = 60.0
"""Groups whose privacy loss is larger bound nothing."""


def log_pair_zcdp(rho: float) -> float:
    """ln(4 sinh² s), s·tanh s = ρ/2: 4·E_w √r·artanh √r is the sum of both divergences, ≤ 2ρ.

    >>> round(math.exp(log_pair_zcdp(0.1)), 4)  # against e^{2ρ} − 1 = 0.2214 and 2ρ = 0.2
    0.2068
    """
    half = rho / 2
    low, high = max(math.sqrt(half), half), math.sqrt(half) + half
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if middle * math.tanh(middle) < half:
            low = middle
        else:
            high = middle
    return log_one_sided_pure(2 * high * (1 + 1e-14))


def log_pair_gdp(mu: float) -> float:
    """ln(4κ²/(1 − κ²)) of N(−μ/2, 1) and N(μ/2, 1), where every divergence of μ-GDP is largest.

    (P−Q)/(P+Q) = tanh(μx/2), so κ² = E_w tanh²(μx/2) and 1 − κ² = e^{−μ²/8}·E sech(μZ/2).
    """
    if mu < SMALLEST_MU:
        # tanh² t ≤ t² and E_w x² = 1 + μ²/4.
        square = (mu / 2) ** 2 * (1 + (mu / 2) ** 2)
        log_square = 2 * math.log(mu / 2) + math.log1p((mu / 2) ** 2)
        return math.log(4) + log_square - math.log1p(-square) + 1e-12
    if mu > LARGEST_MU:
        from scipy.special import log_ndtr

        # sech t ≥ e^{−|t|}, so 1 − κ² ≥ 2Φ(−μ/2), by less than a factor π/2; and κ ≤ 1.
        return math.log(2) - float(log_ndtr(-mu / 2)) * (1 + 1e-12)
    # The trapezoidal rule: both integrands are analytic and bounded for |Im x| ≤ π/(2μ), so its
    # relative error is far below a rounding (docs/proofs/bounds.md).
    strip = min(math.pi / (2 * mu), 2.0)
    step = strip / 8
    x = np.arange(0.0, mu / 2 + 12, step)
    doubled = np.where(x == 0, 1.0, 2.0) * step / math.sqrt(2 * math.pi)
    t = mu * x / 2
    sech = 2 * np.exp(-t) / (1 + np.exp(-2 * t))
    log_rest = math.log(float(np.sum(doubled * np.exp(-(x**2) / 2) * sech))) - mu**2 / 8
    if log_rest < -1:
        log_square = math.log1p(-math.exp(log_rest))
    else:
        mixture = (np.exp(-((x - mu / 2) ** 2) / 2) + np.exp(-((x + mu / 2) ** 2) / 2)) / 2
        log_square = math.log(float(np.sum(doubled * mixture * np.tanh(t) ** 2)))
    return math.log(4) + log_square - log_rest + 1e-12


def log_group_approx(epsilon: float, delta: float) -> float:
    """ln of the least 4/((1/κ² − 1)k²) over groups of k records, every k being valid.

    k records together are (kε, δ(e^{kε}−1)/(e^ε−1))-DP and move the answers k times as far. It
    helps where δ is not far below ε².

    >>> log_group_approx(1.0, 1e-6) == log_pair_approx(1.0, 1e-6)
    True
    """
    best, k, quarter = math.inf, 1, 0
    while k * epsilon <= LARGEST_LOSS or k == 1:
        loss = 1.0 if k == 1 else math.expm1(k * epsilon) / math.expm1(epsilon) * (1 + 1e-12)
        if delta * loss >= 1:
            break
        best = min(best, log_pair_approx(k * epsilon, delta * loss) - 2 * math.log(k))
        while round(2 ** (quarter / 4)) <= k:
            quarter += 1
        k = round(2 ** (quarter / 4))
    return best
