"""How many records lie outside a ball that was learnt from them: a noisy count, paid for.

An interval about records clipped to such a ball says nothing of what lies beyond it, and a ball
may miss a group of records that is too small for its noise. The count is what a reader has to
judge that by. It is one comparison of a search over two cells, inside and outside, whose noisy
count is kept instead of compared. Proof: docs/proofs/unbounded.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.quantiles.search_walk import Counts
from muhat.noise.law import Law


@dataclass(frozen=True)
class Sides:
    """About so many records lie to the left and to the right, each with normal noise of a scale."""

    left: float
    right: float
    scale: float


@dataclass(frozen=True)
class OutsideCount:
    """About `value` records lie outside, with noise of a law and a scale.

    On a line `sides` may say on which side of it.
    """

    value: float
    law: Law
    scale: float
    sides: Sides | None = None

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise."""
        return self.scale * math.sqrt(self.law.variance(1))

    def most_on_sides(self, confidence: float) -> tuple[float, float]:
        """Ends that the numbers to the left and to the right do not exceed, each so surely."""
        reach = self.law.quantile(2 * confidence - 1, 1)
        if self.sides is None:
            return self.value + self.scale * reach, self.value + self.scale * reach
        far = self.sides.scale * reach
        return self.sides.left + far, self.sides.right + far

    def half_width(self, confidence: float) -> float:
        """How far the exact number may be away, at this confidence."""
        return self.scale * self.law.quantile(confidence, 1)


def count_outside(search: NoisySearch, counts: Counts) -> OutsideCount:
    """The noisy number of records in the second of two cells, for the strength of the search.

    The search compares F, the records inside, with N − ½, and may show by how much F exceeds that,
    with its noise: so N − F is known up to that noise. N, which may be secret, is not needed.
    """
    walk = search.start(int(counts.sum()), above=0)
    walk.descend(0, np.asarray(counts, np.int64), 1)
    (comparison,) = walk.comparisons
    return OutsideCount(0.5 - comparison.excess, search.law, search.noise_unit)
