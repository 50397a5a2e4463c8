"""The options of a mean by the kind of its domain, for type checkers.

`plan_mean` and `mean` list every option once more, with its default; what goes together is said
here, and their overloads say what comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Required, TypedDict

from numpy.typing import ArrayLike

from muhat.domains import Domain
from muhat.privacy import Neighbors, Privacy


class CommonOptions(TypedDict, total=False):
    """What every mean has."""

    privacy: Required[Privacy]
    neighbors: Neighbors | str | None
    missing: str | None
    contributions: int
    mechanism: str | None


class BoundedOptions(CommonOptions, total=False):
    """Of records in a domain."""

    p: float
    weights: ArrayLike | Mapping[str, float] | None
    population: bool | None
    clip: Domain | None


class UnbiasedOptions(BoundedOptions, total=False):
    """Of a secret number of records in a domain, without bias."""

    faithful: bool


class LowBiasOptions(CommonOptions, total=False):
    """Of records in `Reals` whose moment is bounded, beside `moment` and `max_bias`."""

    weights: ArrayLike | None
    insist: bool
    max_error: float | None
    symmetric: bool
    unbiased: bool
    faithful: bool


class UnboundedOptions(CommonOptions, total=False):
    """Of records in `Reals` of which nothing is assumed."""

    p: float
    weights: ArrayLike | None
    insist: bool
    faithful: bool
    scale: tuple[float, float] | None


class RealsOptions(LowBiasOptions, UnboundedOptions, total=False):
    """Of records in `Reals` with or without an assumption."""
