"""Numbers in the text of proofs are those that a program computes."""

from __future__ import annotations

import math
from pathlib import Path

from muhat.mechanisms.learning.symmetric_column import SymmetricMean, least_first
from muhat.privacy import GDP, ZCDP, ApproxDP, PureDP
from muhat.privacy.worth import OFTEN, least_error

DOCS = Path(__file__).parents[2] / "docs"


def said(page: str, sentence: str) -> bool:
    """Whether a page has this sentence, wherever its lines break."""
    return " ".join(sentence.split()) in " ".join((DOCS / page).read_text().split())


def test_the_first_rows_of_symmetric_means_are_as_many_as_the_page_says():
    mean = SymmetricMean.planned(10**6, ApproxDP(epsilon=1, delta=1e-6), (4, 3**0.25), scale=1.0)
    ours = least_first(mean.search, mean.moments, 1e-12)
    rate = float(mean.search.rate)
    q = math.exp(-rate)
    paper = next(
        n for n in range(1, 10_000) if math.exp(-n / 128) + n * math.exp(-n / 16) / (1 + q) <= 1e-12
    )
    assert said(
        "proofs/symmetric.md",
        f"a failure of 10⁻¹² takes {ours:,} first rows by φ (λ = 4, normal records), "
        f"{paper:,} by that.",
    ), (ours, paper)


def test_promises_are_worth_little_from_where_the_page_says():
    right = 1 - least_error(PureDP(epsilon=1))
    page = "choosing-a-mechanism.md"
    assert said(page, f"At ε = 1 it is {right:.0%}".replace("%", " %"))
    assert said(page, "Beyond ε = 6.9, ρ = 19 or μ = 6.2 such a guess may be wrong less than once")
    assert OFTEN == 1000
    for promise, larger in (
        (PureDP(epsilon=6.9), PureDP(epsilon=6.95)),
        (ZCDP(rho=19), ZCDP(rho=19.5)),
        (GDP(mu=6.15), GDP(mu=6.2)),
    ):
        assert least_error(promise) > 1 / OFTEN > least_error(larger)
