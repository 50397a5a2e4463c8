"""Mistakes of Huang, Liang and Yi 2021 (HLY21) about the private search, by numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from muhat.mechanisms.noisy_search import NoisySearch
from muhat.noise.law import LAWS
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
    spent = exact / math.log(u)
    about = f"u = 1024, rounds; read as natural logarithms {spent:.2f} times ρ is spent"
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


def _failure(error: float, rho: float) -> float:
    """That one of the rounds is wrong if each count is `error` + 1 records from the rank."""
    needed = math.ceil(math.log2(CELLS))
    deviation = math.sqrt(needed / (2 * rho))
    right = 0.5 * math.erfc(-(math.floor(error) + 1) / (deviation * math.sqrt(2)))
    return 1 - right**needed


@mistake(
    "HLY21",
    "Theorem 1: τ",
    says="τ = √(log u·log(log u/β)/(2ρ)) fails with probability β at most",
    means="σ·Φ⁻¹(1 − β/T) − ½, rounded up",
    sign="≤",
)
def rank_error() -> Numbers:
    rho, beta = 1 / 200, 0.05
    logs = math.log(CELLS - 1)
    printed = math.sqrt(logs * math.log(logs / beta) / (2 * rho))
    exact = next(error for error in range(1000) if _failure(error, rho) <= beta)
    ours = NoisySearch(CELLS, LAWS["normal"], Fraction(1, 100)).rank_error(1 - beta)
    about = f"u = 1023, ρ = 1/200, β = 5 %; the printed τ fails in {_failure(printed, rho):.0%}"
    return Numbers(exact, printed, ours, about)


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


MISTAKES = (rounds, comparison, comparison_at_the_end, rank_error, theorem_2)
