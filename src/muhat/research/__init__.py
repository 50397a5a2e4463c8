"""Estimators that publish a record in the clear with probability δ: for research, never for people.

They keep (ε, δ)-differential privacy on paper, and show what that definition allows. Each refuses
to run without `accept_disclosure=True`; no plan chooses them, no account is kept, and the command
line does not know them.
"""

from __future__ import annotations

from muhat.research.combination import (
    combination_mse_bound,
    name_and_shame_combination,
    symmetric_mean_with_fallback,
)
from muhat.research.disclosure import name_and_shame

__all__ = [
    "combination_mse_bound",
    "name_and_shame",
    "name_and_shame_combination",
    "symmetric_mean_with_fallback",
]
