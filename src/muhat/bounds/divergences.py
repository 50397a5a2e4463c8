"""How far apart the outputs on neighbouring datasets can be: the constants of the lower bounds.

Three outputs matter: P₀ on X, and P₊, P₋ on two neighbours of X that are neighbours of each
other. With u = dP₊/dP₀ and v = dP₋/dP₀,

    one-sided:  E₀(u − 1)² = χ²(P₊‖P₀),      two-sided:  J = E₀(u − v)².

The functions return logarithms of upper bounds, so that neither a tiny nor a huge privacy loss
leaves the floats. Proofs: docs/proofs/bounds.md.
"""

from __future__ import annotations

import math

from muhat.privacy.rounding import as_typed


def log_one_sided_zcdp(rho: float) -> float:
    """ln(e^{2ρ} − 1): χ² = e^{D₂} − 1 and D₂ ≤ 2ρ."""
    return _log_expm1(2 * rho)


def log_two_sided_zcdp(rho: float) -> float:
    """ln V(ρ), the smaller of two bounds on J.

    V = min{2(e^{2ρ} − e^{−ρ}), inf over k > 0 of (e^{2ρ}−1)^{k/(k+1)} (2d_k)^{1/(k+1)} e^{(k+2)ρ}},
    d_k = (1−s)²(2s/(1+s))^k, s = (√((k+2)²+8k) − (k+2))/4. Every k is valid.
    """
    from scipy.optimize import minimize_scalar

    def log_bound(log_k: float) -> float:
        k = math.exp(log_k)
        # 2s² + (k+2)s = k: so 1 − s = 2s(1+s)/k and 2s/(1+s) = 1 − 2s/k, free of cancellation.
        s = 2 * k / ((k + 2) * (1 + math.sqrt(1 + 8 / (k + 2) * (k / (k + 2)))))
        log_d = 2 * math.log(2 * s * (1 + s) / k) + k * math.log1p(-2 * s / k)
        mixed = (k * log_one_sided_zcdp(rho) + math.log(2) + log_d) / (k + 1)
        return mixed + (k + 2) * rho

    middle = max(0.0, -math.log(rho) / 2)  # the best k grows like ρ^{-1/2}
    best = minimize_scalar(log_bound, bounds=(middle - 20, middle + 12), method="bounded")
    affinity = math.log(2) + 2 * rho + math.log(-math.expm1(-3 * rho))
    return min(affinity, float(best.fun))


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
