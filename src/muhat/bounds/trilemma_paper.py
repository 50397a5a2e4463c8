"""The trilemma with the constants of Kamath et al. 2024 (K24): Theorems 2.1, 2.4 and 2.8.

They speak of the means in [0, 1] and of E|X − μ|^λ ≤ 1; other scales by division. The error is
the root mean square error α, for which Lemma 2.2 gives τ = √δ.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

from muhat.bounds.lower_bound import LowerBound

CITATION = "Kamath et al. 2024, arXiv:2301.13334"

Maker = Callable[[float | None, str, str, tuple[str, ...]], LowerBound]
"""(value, theorem, source, further assumptions) → the bound."""


def paper_bounds(
    make: Maker,
    *,
    n: int,
    epsilon: float,
    delta: float,
    bias: float,
    order: float,
    scale: float,
    interval: float,
) -> tuple[LowerBound, ...]:
    """Theorem 2.1 at its best γ, Corollary 2.3, for λ = 2 Theorem 2.4, and the rate of 2.8.

    `bias` and `interval` are in units of `scale`; the values are in the unit of the data.
    """
    log_sinh = _log_sinh(epsilon)
    refused = outside(bias, order, interval)

    def bound(log_value: float | None, theorem: str, reason: str | None) -> LowerBound:
        if reason is not None or log_value is None:
            return make(None, theorem, "paper", (str(reason),))
        if math.isinf(log_value) and log_value > 0:
            return make(sys.float_info.max, theorem, "paper", ())
        value = math.exp(min(log_value, 709.0)) * (1 - 1e-11) if log_value > -700 else 0.0
        return make(min(value * scale, sys.float_info.max), theorem, "paper", ())

    general = None if refused else log_theorem(n, epsilon, delta, bias, order)
    found = [bound(general, "K24 Theorem 2.1", refused)]
    reason = refused or _too_leaky(log_sinh, delta, order)
    simple = None if reason else _log_corollary(n, log_sinh, delta, bias, order)
    found.append(bound(simple, "K24 Corollary 2.3", reason))
    if order == 2:
        with_sampling = None if simple is None else max(simple, -math.log(6 * (n + 2)) / 2)
        found.append(bound(with_sampling, "K24 Theorem 2.4", reason))
        rate = (
            "Only the rate is known: α² is Ω(1/(n²ε²β²·ln(1/(nε²β²)))) if β² is Ω̃(1/(nε)) or less "
            "and δ is O(n³ε⁴β⁶)."
        )
        found.append(make(None, "K24 Theorem 2.8, by shuffling", "paper", (rate,)))
    return tuple(found)


def outside(bias: float, order: float, interval: float) -> str | None:
    """Why Theorem 2.1 says nothing here, if so."""
    if math.isinf(order):
        return "It speaks of finite moments."
    if interval < 1:
        return "It needs an interval of means at least as long as the scale."
    if 16 * bias > 1 / 5:
        return f"It needs a bias of at most 1/80 of the scale; here it is {bias:.4g}."
    return None


def _too_leaky(log_sinh: float, delta: float, order: float) -> str | None:
    """δ ≤ (2 sinh(ε)/(5^{λ/(λ−1)}(λ−1)))², or why not."""
    if delta == 0:
        return None
    log_limit = math.log(2 / (order - 1)) + log_sinh - order / (order - 1) * math.log(5)
    if math.log(delta) <= 2 * log_limit - 1e-12:
        return None
    limit = math.exp(min(2 * log_limit, 0.0))
    return f"It needs a δ of at most {limit:.4g}; here it is {delta:.4g}."


def _log_sinh(epsilon: float) -> float:
    return epsilon - math.log(2) + math.log(-math.expm1(-2 * epsilon))


def log_theorem(
    n: int, epsilon: float, delta: float, bias: float, order: float, error_order: float = 2.0
) -> float:
    """−ln of 32n·sinh(ε)·γ^{1/(λ−1)} + 16nτ/γ at the best γ in [16β, 1/5] (equation 4).

    τ = δ^{1−1/k} for the k-th moment of the error (Lemma 2.2).
    """
    log_gamma, log_sinh = -math.inf, _log_sinh(epsilon)
    log_tau = (1 - 1 / error_order) * math.log(delta) if delta else -math.inf
    if delta:
        stationary = math.log((order - 1) / 2) + log_tau - log_sinh
        log_gamma = (1 - 1 / order) * stationary
    if bias:
        log_gamma = max(log_gamma, math.log(16) + math.log(bias))
    log_gamma = min(log_gamma, math.log(1 / 5))
    first = math.log(32 * n) + log_sinh + log_gamma / (order - 1)
    if not delta:
        return -first
    second = math.log(16 * n) + log_tau - log_gamma
    return -max(first, second) - math.log1p(math.exp(-abs(first - second)))


def _log_corollary(n: int, log_sinh: float, delta: float, bias: float, order: float) -> float:
    """ln of the bound of Corollary 2.3; for λ = 2 it is the second branch of Theorem 2.4."""
    logs = [-math.inf]
    if bias:
        logs.append((math.log(16) + math.log(bias)) / (order - 1))
    if delta:
        logs.append((math.log((order - 1) / 2) + math.log(delta) / 2 - log_sinh) / order)
    return -(math.log(32 * n) + log_sinh + math.log(order / (order - 1)) + max(logs))
