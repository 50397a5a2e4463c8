"""What an error is, in words."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from muhat.domains import Domain

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def metric_name(
    p: float, statistic: str, weights: ArrayLike | None = None, domain: Domain | None = None
) -> str:
    """What an error is, and in which unit if columns are weighted."""
    order = "ℓ∞" if math.isinf(p) else f"ℓ{p:g}".translate(SUBSCRIPTS)
    weighted, unit = unit_of(weights, domain)
    return f"root mean square {weighted}{order} error of the {statistic}{unit}"


def unit_of(weights: ArrayLike | None, domain: Domain | None) -> tuple[str, str]:
    """What is said before and behind "error", if columns are weighted."""
    if weights is None or domain is None or np.all(np.equal(weights, 1)):
        return "", ""
    if np.allclose(np.asarray(weights) * domain.half_widths, 0.5, rtol=1e-12, atol=0.0):
        return "", ", in widths of the bounds"
    return "weighted ", ""
