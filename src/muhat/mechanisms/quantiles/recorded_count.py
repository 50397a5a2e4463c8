"""The noisy number of recorded values of a column, beside searches on the same column.

Let R be the number of records of which the column has a value. A round of a search for the
quantile q moves by at most S·w, w = max(q, 1 − q), if a record's value comes or goes, and by S if
it changes. C·R moves by C in the first case and not at all in the second. So where records are
replaced the count is free: it may have what the rounds leave of the promise when a value goes.
Where records are added or removed it has a share like one more round.
Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from muhat import _check
from muhat.errors import InvalidInput
from muhat.mechanisms.quantiles.noisy_search import NoisySearch, Sampler
from muhat.noise import FRACTION_BITS
from muhat.noise.law import LAWS, Law

_WHOLE = 1 << 2 * FRACTION_BITS


@dataclass(frozen=True)
class RecordedCount:
    """R with noise: round(2^54·z) is added to C·R, C the `multiplier`."""

    law: Law
    multiplier: int

    def __post_init__(self) -> None:
        if self.multiplier < 1:
            raise InvalidInput("the promise is so strong that its noise drowns every count.")

    @property
    def scale(self) -> float:
        """The standard deviation of the noise, in records."""
        return float(Fraction(1 << FRACTION_BITS, self.multiplier)) * math.sqrt(
            self.law.variance(1)
        )

    def half_width(self, confidence: float) -> float:
        """Half the length of an interval around the noisy number."""
        unit = float(Fraction(1 << FRACTION_BITS, self.multiplier))
        return unit * self.law.quantile(_check.probability("confidence", confidence), 1)

    def release(self, recorded: int, sample: Sampler | None = None) -> float:
        """The noisy number of recorded values; it may be below 0."""
        noise = int((sample or self.law.sample)(1)[0])
        return float(Fraction(self.multiplier * recorded + noise, self.multiplier))

    def to_dict(self) -> dict[str, Any]:
        """All that decides the count, in integers."""
        return {"law": self.law.name, "multiplier": str(self.multiplier)}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> RecordedCount:
        """The count that `to_dict` described."""
        law = _check.one_of("law", fields["law"], ("normal", "laplace"))
        return cls(LAWS[law], int(fields["multiplier"]))


def count_beside(searches: Sequence[NoisySearch], strength_squared: Fraction) -> RecordedCount:
    """The most precise count that the searches of one column leave room for.

    `strength_squared` is what the column has of the promise: μ², or ε².
    """
    law = searches[0].law
    room = []
    for gone, moved in _moves(searches):
        if law.name == "normal":
            left = math.floor(strength_squared * _WHOLE - moved)
            room.append(math.isqrt(max(left, 0)) // gone)
        else:
            whole = math.isqrt(math.floor(strength_squared * _WHOLE))
            room.append(max(whole - moved, 0) // gone)
    return RecordedCount(law, int(min(room)))


def spent_beside(searches: Sequence[NoisySearch], count: RecordedCount) -> Fraction:
    """The most of μ², or of ε², that the searches and the count of one column spend."""
    spent = []
    for gone, moved in _moves(searches):
        if count.law.name == "normal":
            spent.append(moved + (gone * count.multiplier) ** 2)
        else:
            spent.append((moved + gone * count.multiplier) ** 2)
    questions = [search.questions * search.sensitivity ** _power(search) for search in searches]
    alone = sum(questions)
    spent.append(alone if count.law.name == "normal" else alone**2)
    return Fraction(max(spent), _WHOLE)


def _moves(searches: Sequence[NoisySearch]) -> list[tuple[int, int]]:
    """(values that come or go, what the rounds move by then), where that is largest.

    Of a person's k records b come or go and k − b change, or stay away where records are added or
    removed. The rounds move by at most Σ questions·(S·((k − b)·w' + b·w) + 1)^power, a convex
    function of b like the count's part, so b = 1 and b = k are enough.
    """
    k = searches[0].contributions
    found = []
    for gone in {1, k}:
        moved = 0
        for search in searches:
            others = (k - gone) if search.replaced else 0
            whole = search.multiplier * (others + search.presence_weight * gone)
            moved += search.questions * (math.ceil(whole) + 1) ** _power(search)
        found.append((gone, moved))
    return found


def _power(search: NoisySearch) -> int:
    """Squares add up over rounds of normal noise, and sizes over rounds of Laplace noise."""
    return 2 if search.law.name == "normal" else 1
