"""How far apart the outputs on neighbouring datasets can be: the constants of the lower bounds.

Three outputs matter: P₀ on X, and P₊, P₋ on two neighbours of X that are neighbours of each
other. With u = dP₊/dP₀ and v = dP₋/dP₀,

    one-sided:  E₀(u − 1)² = χ²(P₊‖P₀),      two-sided:  J = E₀(u − v)².

Where both of two neighbouring outputs must have a small variance they are compared as a pair: for
laws P, Q with the mixture w = (P + Q)/2 let κ² = E_w r, r = ((P − Q)/(P + Q))². If their means are
Δ apart,

    (Var_P + Var_Q)/2 ≥ (Δ²/4)(1/κ² − 1),

which for additive noise, where both variances are one, is a bound on every dataset. What is said of
a pair is 4/(1/κ² − 1), by which Δ² is divided.

The functions return logarithms of upper bounds, so that neither a tiny nor a huge privacy loss
leaves the floats. `one_sided`, `two_sided` and `pair` are those of a promise, from what it implies
and not from its kind; None where nothing is proved. Proofs: docs/proofs/bounds.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from muhat._arrays import Floats
from muhat.privacy import Privacy
from muhat.privacy.rounding import as_typed, float_at_least

SMALLEST_MU = 1e-4
"""Below it the closed form loses less than a part in 10⁸."""

LARGEST_MU = 256.0
"""Above it the integral is bounded: neighbours can be told apart anyway."""

LARGEST_LOSS = 60.0
"""Groups whose privacy loss is larger bound nothing."""

_TRIED, _ROUNDS = 65, 3
"""The best of so many k, and again between its neighbours: the bound is then within 10⁻¹⁰ of the
least. Importing a search of scipy's would take longer than a plan."""


def log_one_sided_zcdp(rho: float) -> float:
    """ln(e^{2ρ} − 1): χ² = e^{D₂} − 1 and D₂ ≤ 2ρ."""
    return _log_expm1(2 * rho)


def log_two_sided_zcdp(rho: float) -> float:
    """ln V(ρ), the smaller of two bounds on J.

    V = min{2(e^{2ρ} − e^{−ρ}), inf over k > 0 of (e^{2ρ}−1)^{k/(k+1)} (2d_k)^{1/(k+1)} e^{(k+2)ρ}},
    d_k = (1−s)²(2s/(1+s))^k, s = (√((k+2)²+8k) − (k+2))/4. Every k is valid.
    """

    def log_bound(log_k: Floats) -> Floats:
        k = np.exp(log_k)
        # 2s² + (k+2)s = k: so 1 − s = 2s(1+s)/k and 2s/(1+s) = 1 − 2s/k, free of cancellation.
        s = 2 * k / ((k + 2) * (1 + np.sqrt(1 + 8 / (k + 2) * (k / (k + 2)))))
        log_d = 2 * np.log(2 * s * (1 + s) / k) + k * np.log1p(-2 * s / k)
        mixed = (k * log_one_sided_zcdp(rho) + math.log(2) + log_d) / (k + 1)
        return np.asarray(mixed + (k + 2) * rho)

    middle = max(0.0, -math.log(rho) / 2)  # the best k grows like ρ^{-1/2}
    tried = np.linspace(middle - 20, middle + 12, _TRIED)
    for _ in range(_ROUNDS):
        best = int(np.argmin(log_bound(tried)))
        tried = np.linspace(tried[max(best - 1, 0)], tried[min(best + 1, _TRIED - 1)], _TRIED)
    affinity = math.log(2) + 2 * rho + math.log(-math.expm1(-3 * rho))
    return min(affinity, float(np.min(log_bound(tried))))


def log_two_sided_renyi(second: float) -> float:
    """ln(2(e^D − e^{−D})), D a bound on the Rényi divergence of order 2 alone.

    J = E u² + E v² − 2E uv; E u² ≤ e^D, and E uv ≥ e^{−D₁} ≥ e^{−D}, as divergences grow with
    their order.
    """
    return math.log(2) + second + math.log(-math.expm1(-2 * second))


def log_one_sided_pure(epsilon: float) -> float:
    """ln(4 sinh²(ε/2)): the largest variance of a likelihood ratio in [e^{−ε}, e^ε]."""
    return epsilon + 2 * math.log(-math.expm1(-epsilon))


def log_two_sided_pure(epsilon: float) -> float:
    """ln J for ε-DP: 4 sinh²(ε/2) if e^ε ≤ 2, else 2(e^ε − 1)²/(2 + e^ε)."""
    if epsilon <= math.log(2):
        return log_one_sided_pure(epsilon)
    return math.log(2) + 2 * _log_expm1(epsilon) - epsilon - math.log1p(2 * math.exp(-epsilon))


def log_one_sided_approx(epsilon: float, delta: float) -> float:
    """ln(4 sinh²(ε/2) + δ): √(1−δ)·Δ ≤ σ·√(this) + √δ·σ' for neighbours with means Δ apart."""
    return float(np.logaddexp(log_one_sided_pure(epsilon), math.log(delta)))


def log_two_sided_approx(epsilon: float, delta: float, *, pairs: int | None = None) -> float:
    """ln(J + (4e^ε + 6)δ), J that of ε-DP: (1−2δ)Δ ≤ σ·√(this) + √δ·(σ₊ + σ₋).

    With `pairs` N it is ln(J + (8e^ε + 6 + 4N)δ): P₀ is a mixture of N pairs P₊, P₋ in equal parts.
    """
    growths, rest = (4, 6) if pairs is None else (8, 6 + 4 * pairs)
    more = math.log(delta) + epsilon + math.log(growths + rest * math.exp(-epsilon))
    return float(np.logaddexp(log_two_sided_pure(epsilon), more))


def log_pair_approx(epsilon: float, delta: float) -> float:
    """ln of 4/(1/κ² − 1) = 4(δ + sinh²(ε/2))/(1 − δ), where κ² = δ + (1 − δ) tanh²(ε/2).

    Neighbouring outputs with means Δ apart have (Var + Var')/2 ≥ Δ²/(this number).
    """
    log_sinh = log_one_sided_pure(epsilon) / 2 - math.log(2)
    larger, smaller = max(math.log(delta), 2 * log_sinh), min(math.log(delta), 2 * log_sinh)
    # δ as typed: near 1 the binary float has lost digits of 1 − δ.
    rest = math.log(float(1 - as_typed(delta)))
    return math.log(4) + larger + math.log1p(math.exp(smaller - larger)) - rest


def _log_expm1(x: float) -> float:
    """ln(e^x − 1) for x > 0."""
    return math.log(math.expm1(x)) if x < 1 else x + math.log1p(-math.exp(-x))


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


def log_group_approx(epsilon: float, delta: float, most: float = math.inf) -> float:
    """ln of the least 4/((1/κ² − 1)k²) over groups of k ≤ `most` records, every k being valid.

    k records together are (kε, δ(e^{kε}−1)/(e^ε−1))-DP and move the answers k times as far. It
    helps where δ is not far below ε².

    >>> log_group_approx(1.0, 1e-6) == log_pair_approx(1.0, 1e-6)
    True
    """
    best, k, quarter = math.inf, 1, 0
    while k == 1 or (k <= most and k * epsilon <= LARGEST_LOSS):
        loss = 1.0 if k == 1 else math.expm1(k * epsilon) / math.expm1(epsilon) * (1 + 1e-12)
        if delta * loss >= 1:
            break
        best = min(best, log_pair_approx(k * epsilon, delta * loss) - 2 * math.log(k))
        while round(2 ** (quarter / 4)) <= k:
            quarter += 1
        k = round(2 ** (quarter / 4))
    return best


def one_sided(privacy: Privacy) -> float | None:
    """ln χ²(P₊‖P₀) of neighbouring outputs."""
    if privacy.implied_epsilon is not None:
        return log_one_sided_pure(privacy.implied_epsilon)
    if privacy.implied_rho is not None:
        return log_one_sided_zcdp(float_at_least(privacy.implied_rho))
    second = privacy.renyi(Fraction(2))
    return None if second is None else log_one_sided_zcdp(float_at_least(second / 2))


def two_sided(privacy: Privacy) -> float | None:
    """ln J of two neighbours of a dataset that are neighbours of each other."""
    if privacy.implied_epsilon is not None:
        return log_two_sided_pure(privacy.implied_epsilon)
    if privacy.implied_rho is not None:
        return log_two_sided_zcdp(float_at_least(privacy.implied_rho))
    second = privacy.renyi(Fraction(2))
    return None if second is None else log_two_sided_renyi(float_at_least(second))


def points(privacy: Privacy) -> list[tuple[float, float]]:
    """Some (ε, δ) that a promise implies, not all δ = 0: any point of its curve is one."""
    if privacy.point is not None:
        return [privacy.point]
    leak = privacy.leak or Fraction(1, 10**6)
    deltas = [min(float(times * leak), 0.5) for times in (2, 16, 256)]
    found = [(privacy.epsilon_at(delta), delta) for delta in deltas]
    return [point for point in found if math.isfinite(point[0])]


@lru_cache(maxsize=256)
def pair(privacy: Privacy) -> float:
    """ln of 4/(1/κ² − 1): neighbouring outputs have (Var + Var')/2 ≥ Δ² divided by this."""
    if privacy.implied_epsilon is not None:
        return log_one_sided_pure(privacy.implied_epsilon)
    if privacy.point is not None:
        return log_pair_approx(*privacy.point)
    if privacy.implied_mu is not None:
        return log_pair_gdp(privacy.implied_mu)
    first = privacy.renyi(Fraction(1))
    if first is None:
        return min(log_pair_approx(*point) for point in points(privacy))
    found = log_pair_zcdp(float_at_least(first))
    return found if privacy.implied_rho is not None else min(found, one_sided(privacy) or found)
