"""Mistakes of Kamath, Mouzakis, Regehr, Singhal, Steinke and Ullman 2024 (K24), by numbers.

Those at the end are true and lose a factor.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from muhat.bounds import trilemma
from muhat.mechanisms.learning.coarse_interval import least_threshold
from muhat.mechanisms.learning.tails import closed_pad, error_bound, pad, paper_pad
from muhat.mechanisms.learning.unknown_number import UnknownNumber
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
    "Lemma 3.2, proof",
    says="clipping moves the mean by C·E|X − μ|^λ/(b − μ)^(λ−1) at least, C = (λ−1)^(λ−1)/λ^λ",
    means="by minus that at least: the sign is lost in the last line",
    sign="≥",
    source=READ_AGAIN,
)
def lemma_3_2() -> Numbers:
    values, shares = np.array([4.0, -1.0]), np.array([0.2, 0.8])
    edge = 2.0
    mean = float(shares @ values)
    exact = float(shares @ np.clip(values, -edge, edge)) - mean
    bound = float(shares @ (values - mean) ** 2) / (4 * (edge - mean))
    return Numbers(exact, bound, -bound, "4 with probability 1/5, else −1; clipped to ±2, λ = 2")


@mistake(
    "K24",
    "Lemma 4.5, proof",
    says="Algorithm 1 names a bin above 2 + (2/ε)·ln(2/δ) counts",
    means="above 2 + (2/ε)·ln(1/δ), as Algorithm 1 has it",
    sign="=",
)
def lemma_4_5() -> Numbers:
    epsilon, delta, records = 1.0, 1e-6, 30

    def named(threshold: float) -> float:
        """That records + Lap(2/ε) is above it."""
        away = epsilon / 2 * (threshold - records)
        return math.exp(-away) / 2 if away > 0 else 1 - math.exp(away) / 2

    algorithm = 2 + 2 * math.log(1 / delta) / epsilon
    lemma = 2 + 2 * math.log(2 / delta) / epsilon
    rate = named(algorithm)
    return Numbers(rate, named(lemma), rate, "chance of a bin of 30 records, ε = 1, δ = 10⁻⁶")


@mistake(
    "K24",
    "Remark after Theorem 5.2: Bernoulli",
    says="Bernoulli(p) has natural parameters in U = [0, 1], so that U must be infinite",
    means="the natural parameter is ln(p/(1 − p)), U is infinite, and p is not the parameter",
    sign="=",
)
def bernoulli_remark() -> Numbers:
    share = 0.999
    exact = math.log(share) - math.log1p(-share)
    return Numbers(exact, share, 2 * math.atanh(2 * share - 1), "η of p = 0.999, e^η the odds")


@mistake(
    "K24",
    "Proposition 5.3, proof: entire",
    says="e^(Z(η)) is entire",
    means="analytic where Re η is inside U, which is all that the proposition needs",
    sign="=",
)
def proposition_5_3() -> Numbers:
    angles = np.linspace(0, 2 * math.pi, 1001)
    circle = np.exp(1j * angles)
    exact = abs(np.trapezoid(-1 / circle * 1j * circle, angles))
    return Numbers(
        exact,
        0.0,
        2 * math.pi,
        "exponential records, e^Z = −1/η on U = (−∞, 0); size of its integral around 0",
    )


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
    source=READ_AGAIN,
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


@mistake(
    "K24",
    "Lemma E.5",
    says="Student's noise with d degrees of freedom costs (d+1)β + (d+1)/(2√d·τ)",
    means="dβ for (d+1)β",
    sign="≤",
    kind="loose",
)
def lemma_e_5() -> Numbers:
    beta, tau = 1 / 12, math.sqrt(3)
    z = np.linspace(-60, 60, 240_001)
    losses = []
    for stretch in (math.exp(beta), math.exp(-beta)):
        for shift in (0.0, 1 / tau):
            other = 2 * np.log(3 + ((z - shift) / stretch) ** 2) + math.log(stretch)
            losses.append(float(np.max(np.abs(2 * np.log(3 + z**2) - other))))
    paid = 2 / (math.sqrt(3) * tau)
    return Numbers(max(losses), 4 * beta + paid, 3 * beta + paid, "d = 3, β = 1/12, τ = √3")


@mistake(
    "K24",
    "Proposition 3.5",
    says="clip β^(−1/(λ−1)) beyond the interval for a bias of β",
    means="(C/β)^(1/(λ−1)), C = (λ−1)^(λ−1)/λ^λ, is enough by Lemma 3.2",
    sign="≤",
    kind="loose",
)
def proposition_3_5() -> Numbers:
    about = (0.01, 2.0, 1.0)
    return Numbers(pad(*about), paper_pad(*about), closed_pad(*about), "β = 0.01, λ = 2, ψ = 1")


@mistake(
    "K24",
    "Algorithm 1",
    says="the fullest bin is named above 2 + (2/ε)·ln(1/δ) counts",
    means="discrete noise needs ⌈(2/ε)·ln(1/(δ(1 + e^(−ε/2))))⌉",
    sign="≤",
    kind="loose",
)
def algorithm_1() -> Numbers:
    q, delta = math.exp(-0.5), 1e-6
    exact = next(t for t in range(1, 100) if q**t / (1 + q) <= delta)
    corrected = least_threshold(Fraction(1), Fraction(1, 10**6))
    return Numbers(exact, 2 + 2 * math.log(1 / delta), corrected, "ε = 1, δ = 10⁻⁶")


@mistake(
    "K24",
    "Proposition E.1",
    says="hide n by a margin of ⌈ln(2/δ)/ε⌉ records",
    means="⌈ln(2/((1 + e^(−ε))δ))/ε⌉ is enough",
    sign="≤",
    kind="loose",
)
def proposition_e_1() -> Numbers:
    epsilon, delta = 0.5, 1e-6
    exact = UnknownNumber(Fraction(1, 2), Fraction(1, 10**6)).margin
    corrected = math.ceil(math.log(2 / ((1 + math.exp(-epsilon)) * delta)) / epsilon)
    printed = math.ceil(math.log(2 / delta) / epsilon)
    return Numbers(exact, printed, corrected, "ε = 0.5, δ = 10⁻⁶")


@mistake(
    "K24",
    "Theorem 2.4",
    says="low-bias means err as much as its constant says",
    means="the sharpened bound of docs/proofs/trilemma.md",
    sign="≥",
    kind="loose",
)
def theorem_2_4() -> Numbers:
    found = trilemma(n=1000, epsilon=1.0, delta=0.0, bias=1e-3, moment_order=2)
    paper = max(b.value for b in found.bounds if b.source == "paper" and b.value is not None)
    achieved = error_bound(
        2, 1, n=1000, width=1, pad=pad(1e-3, 2, 1), noise_per_width=math.sqrt(2) / 1000
    )
    return Numbers(achieved, paper, found.value, "n = 1000, ε = 1, δ = 0, bias 10⁻³")


@mistake(
    "K24",
    "Theorem 4.8, last line",
    says="given an interval, the last term has (n₁ + n₂ε)^(2/(λ−1))",
    means="(n₁ + n₂ε)^(2/λ), as in its second line and in the proof",
    sign="≤",
    kind="loose",
)
def theorem_4_8_exponent() -> Numbers:
    coarse, rest, order = 100.0, 900.0, 4
    proved = max(coarse ** (2 / order), rest ** (2 / order))
    whole = coarse + rest
    return Numbers(
        proved,
        whole ** (2 / (order - 1)),
        whole ** (2 / order),
        "λ = 4, n₁ = 100, n₂ε = 900, the larger term of the proof",
    )


MISTAKES = (
    after_theorem_1_2,
    lemma_3_1,
    lemma_3_2,
    lemma_4_5,
    lemma_d_3,
    remark_a_1,
    theorem_4_8,
    lemma_4_10,
    bernoulli_remark,
    proposition_5_3,
    theorem_e_6,
    lemma_e_5,
    proposition_3_5,
    algorithm_1,
    proposition_e_1,
    theorem_2_4,
    theorem_4_8_exponent,
)
