"""What can be said beforehand about a coarse interval and the mean of records clipped to it.

Records are independent draws from a law with centre μ, standard deviation at most s and
E|X − μ|^λ ≤ ψ^λ, in any units. All are upper bounds, with a factor for the rounding of floats.
Proofs: docs/proofs/symmetric.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat.errors import InvalidInput

_SAFE = 1 + 1e-9
"""More than all roundings of a bound together."""

_LEAST = 1e-300
"""What a probability that underflows is bounded by."""

_MOST_CHOICES = 2048
"""How many numbers of far records a bound tries out; it holds for each of them."""


@dataclass(frozen=True)
class IntervalMoments:
    """What is assumed of the law of the records: `scale` is s, (`order`, `moment`) are (λ, ψ).

    λ is at least 2, so ψ bounds the standard deviation too.
    """

    scale: float
    order: float
    moment: float

    def __post_init__(self) -> None:
        for name in ("scale", "order", "moment"):
            object.__setattr__(self, name, _check.positive(name, getattr(self, name)))
        if self.order < 2:
            raise InvalidInput(f"the order of the moment must be at least 2; got {self.order:g}.")
        if self.scale > self.moment:
            object.__setattr__(self, "scale", self.moment)

    def outside(self, distance: float) -> float:
        """P(|X − μ| ≥ distance) is at most this: Chebyshev's and Markov's inequality."""
        nearby = min((self.scale / distance) ** 2, (self.moment / distance) ** self.order)
        return min(1.0, float(nearby) * _SAFE)

    def farthest(self, records: float) -> float:
        """The λ-norm of the largest |X − μ| among so many records, at most: ψ·n^{1/λ}."""
        return float(self.moment * records ** (1 / self.order))

    def clipping(self, distance: float) -> float:
        """What clipping beyond `distance` on both sides of μ moves the mean at most.

        C·ψ^λ/distance^{λ−1} with C = (λ − 1)^{λ−1}/λ^λ.
        """
        if distance <= 0:
            return math.inf
        power = self.order - 1
        factor = (power / self.order) ** power / self.order
        return float(factor * self.moment * (self.moment / distance) ** power) * _SAFE


@dataclass(frozen=True)
class Search:
    """The public numbers of a coarse search: records, width of a bin, rate of noise, threshold."""

    records: int
    width: float
    rate: float
    threshold: int

    def nothing(self, law: IntervalMoments) -> float:
        """P(⊥) at most.

        If at most m records are further than half a bin from μ, one of the two bins next to μ
        has a = ⌈(n − m)/2⌉, and finds itself at t or below with probability q^{a−t}/(1 + q).
        """
        _, many, half = self._crowd(law)
        missed = self._tail(half - self.threshold)
        return min(1.0, float((many + missed).min()) * _SAFE + _LEAST)

    def astray(self, law: IntervalMoments) -> float:
        """P(⊥, or a bin whose middle is more than a bin's width from μ) at most.

        The bins further away have m records together; for any s above t they reach s with
        probability max(m·q^{s−1}, q^{s−m})/(1 + q) at most, and the fuller bin next to μ stays
        below s with q^{a−s+1}/(1 + q).
        """
        m, many, half = self._crowd(law)
        least = 1.0
        for level in ((half + m) / 2, half / 2 + np.log(np.maximum(m, 1)) / (2 * self.rate)):
            s = np.maximum(np.ceil(level), self.threshold + 1.0)
            others = np.maximum(m * self._tail(s - 1), np.where(m > 0, self._tail(s - m), 0.0))
            found = many + self._tail(half - s + 1) + others
            least = min(least, float(found.min()) * _SAFE + _LEAST)
        return least

    def _crowd(self, law: IntervalMoments) -> tuple[Floats, Floats, Floats]:
        """Some m, P(more than m records outside) at most for each, and ⌈(n − m)/2⌉."""
        n = self.records
        m = np.unique(np.linspace(0, n // 2, min(n // 2 + 1, _MOST_CHOICES)).astype(np.int64))
        share = (m + 1) / n
        p = law.outside(self.width / 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Chernoff: e^{−n·KL(share, p)}, for shares above p. KL is off by 1e-14 at most.
            rest = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - p)), 0.0)
            divergence = share * np.log(share / p) + rest - 1e-14
        many = np.where((share > p) & (share <= 1), np.exp(-n * divergence), 1.0)
        return m.astype(np.float64), many, np.ceil((n - m) / 2)

    def _tail(self, reach: Floats) -> Floats:
        """P(ξ ≥ reach) = q^reach/(1 + q) for a whole reach ≥ 0; 1 below."""
        inside = np.exp(-self.rate * np.maximum(reach, 0)) / (1 + math.exp(-self.rate))
        return np.where(reach >= 0, inside, 1.0)
