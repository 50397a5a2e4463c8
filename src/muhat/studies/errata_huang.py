"""Mistakes of Huang, Liang and Yi 2021 (HLY21), by numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np

from muhat.studies.mistakes import READ_AGAIN, Numbers, mistake

CELLS = 1024


def _search(u: int, below: Callable[[int], bool]) -> tuple[int, int]:
    """Algorithm 1 without noise on {0, …, u}: what it returns, and after how many rounds."""
    left, right, rounds = 0, u, 0
    while left < right:
        middle, rounds = (left + right) // 2, rounds + 1
        left, right = (middle + 1, right) if below(middle) else (left, middle)
    return (left + right) // 2, rounds


def _found(records: Sequence[int], u: int, rank: int) -> tuple[int, int]:
    """What `≤` of the paper and what `<` find."""

    def count(value: int) -> int:
        return sum(record <= value for record in records)

    paper, _ = _search(u, lambda middle: count(middle) <= rank)
    ours, _ = _search(u, lambda middle: count(middle) < rank)
    return paper, ours


@mistake(
    "HLY21",
    "Theorem 1: rounds",
    says="log u rounds of ρ/log u each spend ρ",
    means="{0, …, u} takes ⌈log₂(u+1)⌉ rounds",
    sign="≤",
)
def rounds() -> Numbers:
    u = 1024
    counts = (_search(u, lambda middle, c=cell: middle < c)[1] for cell in range(u + 1))  # type: ignore[misc]
    exact = max(counts)
    about = f"u = 1024, rounds; {exact / math.log2(u):.3g} times ρ is spent"
    return Numbers(exact, math.log2(u), math.ceil(math.log2(u + 1)), about)


@mistake(
    "HLY21",
    "Algorithm 1, line 5",
    says="c̃ ≤ m finds the m-th smallest record",
    means="c̃ < m does; ≤ finds the next one",
    sign="=",
)
def comparison() -> Numbers:
    records, u, rank = [2, 5, 9], 15, 2
    paper, ours = _found(records, u, rank)
    return Numbers(sorted(records)[rank - 1], paper, ours, "records 2, 5, 9, no noise, m = 2")


@mistake(
    "HLY21",
    "Algorithm 1, line 5, m = n",
    says="c̃ ≤ m finds the largest record at m = n",
    means="it returns u, whatever the records are",
    sign="=",
)
def comparison_at_the_end() -> Numbers:
    records, u = [2, 5, 9], 1_000_000
    paper, ours = _found(records, u, 3)
    return Numbers(max(records), paper, ours, "records 2, 5, 9, no noise, m = 3, u = 10⁶")


def _failure(beta: float, rounds_base: float, tail_base: float) -> float:
    """That the noise of one of T rounds passes the printed τ towards the wrong answer.

    In units of the noise's deviation √(log u/(2ρ)) τ is √log(log u/β), whatever ρ. The bases are
    those of log u and of the logarithm around it.
    """
    rounds = math.log(CELLS, rounds_base)
    printed = math.sqrt(math.log(rounds / beta, tail_base))
    return 1 - NormalDist().cdf(printed) ** math.ceil(math.log2(CELLS))


@mistake(
    "HLY21",
    "Theorem 1: τ",
    says="τ = √(log u·log(log u/β)/(2ρ)) fails with probability β at most",
    means="σ·Φ⁻¹(1 − β/T), T = ⌈log₂(u+1)⌉ rounds, or twice the logarithm under the root",
    sign="≤",
)
def rank_error() -> Numbers:
    rho, beta, small = 1 / 200, 0.05, 0.001
    rounds = math.log2(CELLS)
    deviation = math.sqrt(rounds / (2 * rho))
    normal = NormalDist()
    exact = deviation * normal.inv_cdf((1 - beta) ** (1 / rounds))
    printed = deviation * math.sqrt(math.log(rounds / beta))
    about = (
        "u = 1023, ρ = 1/200, β = 5 %, log₂u rounds and a natural logarithm for the tail: "
        f"{_failure(beta, 2, math.e):.1%} fail; natural throughout "
        f"{_failure(beta, math.e, math.e):.1%}; base 2 throughout {_failure(beta, 2, 2):.1%}, no "
        f"violation, and {_failure(small, 2, 2):.2%} at β = {small:.1%}"
    )
    return Numbers(exact, printed, deviation * normal.inv_cdf(1 - beta / rounds), about)


@mistake(
    "HLY21",
    "Theorem 2: τ",
    says="u → du² in Theorem 1, with ρ/4, gives 2√(log(du)·log(log(du)/β)/ρ)",
    means="2√(log(du)·log(2·log(du)/β)/ρ), as log(u²) = 2·log u",
    sign="≤",
    source=READ_AGAIN,
)
def theorem_2() -> Numbers:
    u, rho, beta = 1023, 0.5, 0.05
    logs = math.log(u**2)
    exact = math.sqrt(logs * math.log(logs / beta) / (2 * rho / 4))
    single = math.log(u)
    printed = 2 * math.sqrt(single * math.log(single / beta) / rho)
    corrected = 2 * math.sqrt(single * math.log(2 * single / beta) / rho)
    return Numbers(exact, printed, corrected, "d = 1, u = 1023, ρ = 0.5, β = 5 %")


@mistake(
    "HLY21",
    "Lemma 3, proof",
    says="the noise has variance 2C²/(ρn)",
    means="2C²/(ρn²), as in (2)",
    sign="=",
    source=READ_AGAIN,
)
def lemma_3() -> Numbers:
    n, rho, clip = 1000, 0.5, 1.0
    exact = (2 * clip / n) ** 2 / (2 * rho)
    return Numbers(
        exact, 2 * clip**2 / (rho * n), 2 * clip**2 / (rho * n**2), "n = 1000, ρ = 0.5, C = 1"
    )


@mistake(
    "HLY21",
    "introduction: GS",
    says="the mean has sensitivity √(du)/n",
    means="√d·u/n",
    sign="=",
    source=READ_AGAIN,
)
def sensitivity() -> Numbers:
    n, d, u = 1000, 4, 100
    exact = float(np.linalg.norm(np.full(d, u) - np.zeros(d))) / n
    return Numbers(exact, math.sqrt(d * u) / n, math.sqrt(d) * u / n, "n = 1000, d = 4, u = 100")


@mistake(
    "HLY21",
    "Section 3.2: the best rank",
    says="clip √(2d/ρ) records, though the mean has 3ρ/4",
    means="√(2d/ρ'), ρ' = 3ρ/4",
    sign="≤",
    kind="loose",
)
def best_rank() -> Numbers:
    d, rho, n = 100, 0.5, 1000
    norms = np.linspace(0, 1, n)
    noise = math.sqrt(2 * d / (0.75 * rho))

    def error(clipped: float) -> float:
        radius = norms[n - 1 - math.floor(clipped)]
        return float(np.maximum(norms - radius, 0).sum() + radius * noise) / n

    least = min(error(clipped) for clipped in range(n))
    return Numbers(
        least,
        error(math.sqrt(2 * d / rho)),
        error(noise),
        "least error, d = 100, ρ = 0.5, n = 1000",
    )


@mistake(
    "HLY21",
    "Section 3.3: rotated records",
    says="PrivQuant searches the coordinates after the rotation HD, with no new domain given",
    means="they lie in ±d·u, which Theorem 3's log(du) pays for",
    sign="≤",
    kind="unsaid",
)
def rotated() -> Numbers:
    two = np.array([[1, 1], [1, -1]])
    hadamard = np.kron(two, two)
    turned = hadamard @ np.ones(4)
    return Numbers(
        float(np.abs(turned).max()), 1.0, 4.0, "d = 4, x = (u, u, u, u); largest coordinate ÷ u"
    )


MISTAKES = (
    rounds,
    comparison,
    comparison_at_the_end,
    rank_error,
    theorem_2,
    lemma_3,
    sensitivity,
    best_rank,
    rotated,
)
