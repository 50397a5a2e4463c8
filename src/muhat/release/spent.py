"""What a promise was spent on."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from muhat._plain import Plain


@dataclass(frozen=True)
class Spent(Plain):
    """Noise of a release, and its exact share of the promise: 0 where it rides with another."""

    noise: str
    share: Fraction

    def __str__(self) -> str:
        if not self.share:
            return f"{self.noise}: nothing, it rides with the sums"
        return f"{self.noise}: {float(100 * self.share):.3g} %"
