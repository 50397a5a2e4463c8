"""A noisy number of complete records, and as many of them at random: for means of bounded bias.

    R̂ = R + noise;   N = ⌊R̂ − v⌋, which exceeds R with a probability of 10^−9 at most;
    the mechanism for N records, on N of the complete ones in random order

Records that are independent draws stay so, whichever are drawn: what the mechanism for N promises
of its bias and its error holds as it stands. Proof: docs/proofs/recorded.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from muhat._plain import Plain
from muhat.mechanisms.learning.outside_count import OutsideCount, count_outside
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laws import independent_law
from muhat.privacy import Privacy

FAILURE = 1e-9
"""How often N may exceed R."""

MOST_SHARE = 0.2
"""The largest share of the count."""

_SAFE = 1 + 1e-6


@dataclass(frozen=True)
class RecordedNumber(Plain, keys=("search", "margin")):
    """What counts complete records, and the promise that is left for their mean."""

    search: NoisySearch
    rest: Privacy
    share: Fraction

    @classmethod
    def of(cls, promise: Privacy, n: int, contributions: int) -> RecordedNumber:
        """The count of up to n records with the share that costs the mean the least.

        A share s takes s of the mean's noise (half of it if shares are of μ²), and leaves v/n of
        the records out, v ∝ 1/s (1/√s).
        """
        # Where a δ may be spent there is normal noise too, but at rare failures it reaches farther.
        kind = NoiseKind.PURE if promise.spends_delta else NoiseKind.named_by(promise)
        law, whole = independent_law(kind), Strength.of(promise, kind)
        reach = law.quantile(1 - 2 * FAILURE, 1) * contributions
        part = reach / (n * math.sqrt(whole.squared))
        wanted = min(part ** (2 / (kind.power + 2)), MOST_SHARE)
        share = Fraction(max(round(1000 * wanted), 1), 1000)
        count = Strength.of(promise.part(share), kind)
        search = NoisySearch(2, law, count.squared, contributions)
        return cls(search, promise.part(1 - share), share)

    @cached_property
    def margin(self) -> float:
        """v."""
        return self.search.noise_unit * self.search.law.quantile(1 - 2 * FAILURE, 1) * _SAFE

    def draw(self, complete: int) -> tuple[OutsideCount, int]:
        """R̂ with its noise, and N; it may be 0."""
        found = count_outside(self.search, np.array([0, complete]))
        return found, max(math.floor(found.value - self.margin), 0)
