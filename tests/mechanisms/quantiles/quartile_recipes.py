"""Quartiles of two columns, by any choice."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from muhat.data.grids import UniformGrid
from muhat.mechanisms.quantiles.choice import Choice
from muhat.mechanisms.quantiles.quantile import QuantileRecipe
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors, Privacy

QUARTILES = [Fraction(part, 4) for part in (1, 2, 3)]


def quartile_recipe(
    finder: type[Choice],
    law: Any,
    promise: Privacy,
    neighbors: Neighbors = Neighbors.SUBSTITUTE,
    n: int | None = 1000,
    **options: Any,
) -> QuantileRecipe:
    """With intervals, of n records."""
    grids = [UniformGrid.between(0, 1e6), UniformGrid.between(0, 100, 1.0)]
    protection = Protection(promise, neighbors, 1)
    return QuantileRecipe.of(
        grids, QUARTILES, n, law, protection, intervals=True, finder=finder, **options
    )
