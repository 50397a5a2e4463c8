"""Mistakes of Zou, Liu and Upadhyay 2025 (ZLU25), by numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from muhat.bounds import linear_queries, minimum_width
from muhat.privacy import ApproxDP
from muhat.privacy.gaussian_curve import gaussian_delta, gaussian_mu
from muhat.studies.mistakes import READ_AGAIN, Numbers, least_sigma, mistake
from muhat.workloads import parity, prefix
from muhat.workloads.factorize import factorize


@mistake(
    "ZLU25",
    "Lemma 2.14",
    says="running sums have κ = 2",
    means="κ = 2/√(4n − 3): the maximum over the ℓ₁ ball is at a column",
    sign="=",
)
def lemma_2_14() -> Numbers:
    n = 256
    exact = minimum_width(prefix(n)).upper
    return Numbers(exact, 2.0, 2 / math.sqrt(4 * n - 3), "n = 256")


@mistake(
    "ZLU25",
    "Theorem D.1",
    says="(E‖z‖_p^p)^(1/p) is at most √min{p, ln 2m} times the norm of the deviations",
    means="√p: the p-th moment of one normal variable grows like √(p/e)",
    sign="≤",
)
def theorem_d_1() -> Numbers:
    p = 100.0
    exact = math.sqrt(2) * math.exp((math.lgamma((p + 1) / 2) - math.lgamma(0.5)) / p)
    return Numbers(exact, math.sqrt(math.log(2)), math.sqrt(p), "one query, m = 1, p = 100")


@mistake(
    "ZLU25",
    "Lemma 2.13",
    says="γ_(p) of running sums is at least n^(1/p)·ln n",
    means="at least n^(1/p)·ln(n)/π, and the 1/96 of Theorem 2.11 changes with it",
    sign="≥",
    source=READ_AGAIN,
)
def lemma_2_13() -> Numbers:
    n = 256
    exact = factorize(prefix(n), 2).value
    printed = math.sqrt(n) * math.log(n)
    return Numbers(exact, printed, printed / math.pi, "n = 256, p = 2")


@mistake(
    "ZLU25",
    "Lemma F.3, proof",
    says="2ε·M(x/2ε) is ½-private if M is ε-private",
    means="⌈1/2ε⌉·ε: a step of 1/2ε is not a whole number of steps",
    sign="≤",
)
def lemma_f_3() -> Numbers:
    epsilon = 0.3
    y = np.linspace(-6, 6, 48_001)

    def level(x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Minus the logarithm of staircase noise, which is ε-private: ε a step of 1."""
        whole = np.floor(np.abs(x))
        return np.asarray(epsilon * (whole + (np.abs(x) - whole >= 0.5)))

    exact = float(np.max(np.abs(level(y) - level(y + 1 / (2 * epsilon)))))
    return Numbers(exact, 0.5, math.ceil(1 / (2 * epsilon)) * epsilon, "staircase noise, ε = 0.3")


@mistake(
    "ZLU25",
    "Theorem 1.2, informal",
    says="noise N(0, ‖R‖²·I) on R·x is (ε, δ)-DP",
    means="times 9/2·ln(1/δ)/ε², as Theorem D.1 has it, or less",
    sign="≤",
    kind="unsaid",
)
def theorem_1_2() -> Numbers:
    epsilon, delta = 0.1, 1e-6
    enough = math.sqrt(4.5 * math.log(1 / delta)) / epsilon
    return Numbers(
        1 / gaussian_mu(epsilon, delta), 1.0, enough, "σ needed ÷ ‖R‖, ε = 0.1, δ = 10⁻⁶"
    )


@mistake(
    "ZLU25",
    "Lemma A.12, δ near 1",
    says="σ² = (9/2)·ln(1/δ)/ε² is (ε, δ)-DP for all δ < 1",
    means="the exact curve: σ = 1/μ(ε, δ)",
    sign="≤",
)
def lemma_a_12_large() -> Numbers:
    epsilon, delta = 1.0, 0.999
    printed = math.sqrt(4.5 * math.log(1 / delta)) / epsilon
    seen = gaussian_delta(1 / printed, epsilon)
    about = f"σ needed, ε = 1, δ = 0.999; that noise has δ = {seen:.6f}"
    return Numbers(1 / gaussian_mu(epsilon, delta), printed, least_sigma(epsilon, delta), about)


@mistake(
    "ZLU25",
    "Lemma A.12",
    says="σ = √(9/2·ln(1/δ))/ε",
    means="σ = 1/μ(ε, δ), the exact curve",
    sign="≤",
    kind="loose",
)
def lemma_a_12() -> Numbers:
    epsilon, delta = 1.0, 1e-6
    printed = math.sqrt(4.5 * math.log(1 / delta)) / epsilon
    exact = 1 / gaussian_mu(epsilon, delta)
    return Numbers(exact, printed, least_sigma(epsilon, delta), "ε = 1, δ = 10⁻⁶")


@mistake(
    "ZLU25",
    "Theorem 2.1",
    says="additive noise errs (1 − δ')·γ/(8(e^(3ε) − 1)) at least",
    means="γ/(√2·sinh(ε/2)), which geometric noise attains, for a small δ",
    sign="≥",
    kind="loose",
)
def theorem_2_1() -> Numbers:
    privacy = ApproxDP(epsilon=1.0, delta=1e-6)
    workload = parity(8, 2)
    found = factorize(workload)
    exact = found.expected_error(1 / gaussian_mu(privacy.epsilon, privacy.delta))
    bounds = linear_queries(workload, privacy, floor=found.floor)
    ours = next(b.value for b in bounds if b.is_of_noise)
    assert ours is not None
    grown = 2 * privacy.delta / -math.expm1(-privacy.epsilon)
    printed = (1 - grown) * found.value / (8 * math.expm1(3 * privacy.epsilon))
    return Numbers(exact, printed, ours, "28 parities of 8 bits, ε = 1, δ = 10⁻⁶, p = 2")


MISTAKES = (
    lemma_2_14,
    theorem_d_1,
    lemma_2_13,
    lemma_f_3,
    theorem_1_2,
    lemma_a_12_large,
    lemma_a_12,
    theorem_2_1,
)
