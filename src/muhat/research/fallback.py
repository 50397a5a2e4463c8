"""The symmetric mean that always answers: where no interval is found, records are published."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from muhat.data.halves import split_rows
from muhat.mechanisms.learning.symmetric import run_alone
from muhat.mechanisms.learning.symmetric_column import SymmetricMean
from muhat.research.disclosure import disclosed_total, open_column, require_acceptance


def symmetric_mean_with_fallback(
    data: Any,
    mean: SymmetricMean,
    *,
    columns: Sequence[str] | Sequence[int] | None = None,
    accept_disclosure: bool = False,
) -> float:
    """Publish a record in the clear with probability δ where the symmetric mean finds no interval.

    The value of `mean`, or name and shame of the other rows if no interval was found: unbiased
    without a condition. It is (ε, δ)-private, for the first rows lose (ε, δ) and each of the others
    (ε, 0) or (0, δ). Kamath et al. (2024), Algorithm 2 as it is printed.
    """
    require_acceptance(accept_disclosure)
    source = open_column(data, columns)
    outcome = run_alone(mean, source)
    if outcome.value is not None:
        return outcome.value
    tail = split_rows(source, mean.first).tail
    total = disclosed_total(tail, mean.delta, lambda values: values)
    return float(Fraction(total) / (mean.delta * mean.second))
