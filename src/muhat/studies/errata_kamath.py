"""Mistakes of Kamath, Mouzakis, Regehr, Singhal, Steinke and Ullman 2024 (K24), by numbers."""

from __future__ import annotations

import math

import numpy as np

from muhat.studies.mistakes import READ_AGAIN, Numbers, mistake


@mistake(
    "K24",
    "after Theorem 1.2",
    says="for large δ the bound is 1/(n²ε²√δ)",
    means="1/(n²ε√δ), the second term of (2)",
    sign="=",
)
def after_theorem_1_2() -> Numbers:
    n, epsilon, delta, bias = 1000, 0.1, 1e-8, 1e-4
    corrected = 1 / (n**2 * epsilon * math.sqrt(delta))
    exact = min(1 / (n * epsilon * bias) ** 2, corrected)
    return Numbers(exact, corrected / epsilon, corrected, "n = 1000, ε = 0.1, δ = 10⁻⁸, β = 10⁻⁴")


@mistake(
    "K24",
    "Lemma 3.1",
    says="max{0, t − c} ≤ (λ−1)^(λ−1)/(λ^λ·e^(λ−1))·|t|^λ",
    means="c^(λ−1) for e^(λ−1)",
    sign="≤",
    source=READ_AGAIN,
)
def lemma_3_1() -> Numbers:
    t, c = 1.0, 0.5
    return Numbers(max(0.0, t - c), t**2 / (4 * math.e), t**2 / (4 * c), "λ = 2, t = 1, c = ½")


@mistake(
    "K24",
    "Lemma D.3",
    says="|E X| ≤ √(E Y²·(e^(D₂) − 1))",
    means="|E X − E Y|, or e^(D₂) without − 1; the same in Proposition D.4",
    sign="≤",
)
def lemma_d_3() -> Numbers:
    mean, second, divergence = 1.0, 1.0, 0.0
    return Numbers(
        mean,
        math.sqrt(second * math.expm1(divergence)),
        math.sqrt(second * math.exp(divergence)),
        "X = Y = 1",
    )


@mistake(
    "K24",
    "Remark after Proposition A.1",
    says="every estimator has α² ≥ 1/(4·√(n+1)²)",
    means="1/(4·(√n + 1)²)",
    sign="≥",
)
def remark_a_1() -> Numbers:
    n, share = 100, 0.3
    hits = np.arange(n + 1)
    logs = [
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(share)
        + (n - k) * math.log1p(-share)
        for k in range(n + 1)
    ]
    guess = (math.sqrt(n) / 2 + hits) / (n + math.sqrt(n))
    exact = float(np.exp(logs) @ (guess - share) ** 2)
    return Numbers(
        exact, 1 / (4 * (n + 1)), 1 / (4 * (math.sqrt(n) + 1) ** 2), "Hodges and Lehmann, n = 100"
    )


@mistake(
    "K24",
    "Theorem 4.8, proof, ⊥",
    says="the error given ⊥ is Σ E(X_iξ_i − μ)²/(n₂δ)²",
    means="Σ E(X_iξ_i − δμ)²/(n₂δ)²",
    sign="=",
)
def theorem_4_8() -> Numbers:
    delta, n, mean = 0.01, 10, 1.0
    exact = mean**2 * delta * (1 - delta) * n / (n * delta) ** 2

    def summed(shift: float) -> float:
        once = delta * (mean - shift) ** 2 + (1 - delta) * shift**2
        return n * once / (n * delta) ** 2

    return Numbers(exact, summed(mean), summed(delta * mean), "all records 1, n₂ = 10, δ = 0.01")


@mistake(
    "K24",
    "Lemma 4.10, proof",
    says="clip to [y−c, y+c] of −x is −(clip to [y−c, y+c] of x)",
    means="clip to [−y−c, −y+c] of −x",
    sign="=",
    source=READ_AGAIN,
)
def lemma_4_10() -> Numbers:
    x, y, c = -2.0, 1.0, 0.5

    def clip(value: float, centre: float) -> float:
        return min(max(value, centre - c), centre + c)

    return Numbers(-clip(x, y), clip(-x, y), clip(-x, -y), "x = −2, y = 1, c = ½")


@mistake(
    "K24",
    "Theorem E.6, the case |x'| = 0",
    says="(b−a)·e^(−β|x|) ≤ (b−a)/|x|",
    means="(b−a)·max{e^(−β(|x|−1)), 1/|x|}, the bound at the end",
    sign="≤",
)
def theorem_e_6() -> Numbers:
    n, beta = 10, 1 / 12
    corrected = max(math.exp(-beta * (n - 1)), 1 / n)
    return Numbers(math.exp(-beta * n), 1 / n, corrected, "|x| = 10, β = 1/12, b − a = 1")


MISTAKES = (
    after_theorem_1_2,
    lemma_3_1,
    lemma_d_3,
    remark_a_1,
    theorem_4_8,
    lemma_4_10,
    theorem_e_6,
)
