"""Numbers in the text of proofs are those that a program computes."""

from __future__ import annotations

import math
from pathlib import Path

from muhat.mechanisms.symmetric_column import SymmetricMean, least_first
from muhat.privacy import ApproxDP

PROOFS = Path(__file__).parents[2] / "docs" / "proofs"


def said(page: str, sentence: str) -> bool:
    """Whether a page has this sentence, wherever its lines break."""
    return " ".join(sentence.split()) in " ".join((PROOFS / page).read_text().split())


def test_the_first_rows_of_symmetric_means_are_as_many_as_the_page_says():
    mean = SymmetricMean.planned(10**6, ApproxDP(epsilon=1, delta=1e-6), (4, 3**0.25), scale=1.0)
    ours = least_first(mean.search, mean.moments, 1e-12)
    rate = float(mean.search.rate)
    q = math.exp(-rate)
    paper = next(
        n for n in range(1, 10_000) if math.exp(-n / 128) + n * math.exp(-n / 16) / (1 + q) <= 1e-12
    )
    assert said(
        "symmetric.md",
        f"a failure of 10⁻¹² takes {ours:,} first rows by φ (λ = 4, normal records), "
        f"{paper:,} by that.",
    ), (ours, paper)
