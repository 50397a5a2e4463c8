"""Statements of Kamath et al. 2024 (K24) that are true and lose a factor, by numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from muhat.bounds import trilemma
from muhat.mechanisms.learning.coarse_interval import least_threshold
from muhat.mechanisms.learning.tails import closed_pad, error_bound, pad, paper_pad
from muhat.mechanisms.learning.unknown_number import UnknownNumber
from muhat.studies.mistakes import Numbers, mistake


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
    lemma_e_5,
    proposition_3_5,
    algorithm_1,
    proposition_e_1,
    theorem_2_4,
    theorem_4_8_exponent,
)
