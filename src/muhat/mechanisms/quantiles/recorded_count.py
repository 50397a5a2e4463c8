"""The noisy number of recorded values of a column, beside searches on the same column.

Let R be the number of records of which the column has a value. A round of a search for the
quantile q moves by at most S·w, w = max(q, 1 − q), if a record's value comes or goes, and by S if
it changes. C·R moves by C in the first case and not at all in the second. So where records are
replaced the count is free: it may have what the rounds leave of the promise when a value goes.
Where they leave less than a round has, and always if records are added or removed, it has a share
like one more round.

With `groups` a record may also leave one group and come to another, whose searches and count are
then moved, too: a record that comes or goes does so twice.
Proof: docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from muhat import _check
from muhat._plain import Key, Plain
from muhat.errors import InvalidInput
from muhat.mechanisms.quantiles.noisy_search import NoisySearch, Sampler
from muhat.noise.law import IndependentFamily


@dataclass(frozen=True)
class RecordedCount(Plain, keys=("law", Key("multiplier", text=True))):
    """R with noise: round(2^54·z) is added to C·R, C the `multiplier`."""

    law: IndependentFamily
    multiplier: int

    def __post_init__(self) -> None:
        if self.multiplier < 1:
            raise InvalidInput("the promise is so strong that its noise drowns every count.")

    @property
    def scale(self) -> float:
        """The standard deviation of the noise, in records."""
        return self._unit * math.sqrt(self.law.variance(1))

    @property
    def _unit(self) -> float:
        return float(Fraction(self.law.unit, self.multiplier))

    def half_width(self, confidence: float) -> float:
        """Half the length of an interval around the noisy number."""
        return self._unit * self.law.quantile(_check.probability("confidence", confidence), 1)

    def release(self, recorded: int, sample: Sampler | None = None) -> float:
        """The noisy number of recorded values; it may be below 0."""
        noise = int((sample or self.law.sample)(1)[0])
        return float(Fraction(self.multiplier * recorded + noise, self.multiplier))


def count_beside(
    searches: Sequence[NoisySearch], strength_squared: Fraction, *, groups: bool = False
) -> RecordedCount:
    """The most precise count that the searches of one column leave room for.

    `strength_squared` is what the column has of the promise: μ², or ε². With `groups` there are
    such searches and such a count for each of several groups of records.
    """
    return RecordedCount(searches[0].law, room_beside(searches, strength_squared, groups=groups))


def room_beside(
    searches: Sequence[NoisySearch], strength_squared: Fraction, *, groups: bool = False
) -> int:
    """The multiplier of that count; 0 if there is no room for any."""
    law, power = searches[0].law, _power(searches)
    whole = strength_squared * law.unit**2
    if power == 1:
        whole = Fraction(math.isqrt(math.floor(whole)))
    room = []
    for times, gone, moved in _moves(searches, groups):
        left = max(math.floor(whole / times - moved), 0)
        room.append((left if power == 1 else math.isqrt(left)) // gone)
    return min(room)


def spent_beside(
    searches: Sequence[NoisySearch], count: RecordedCount, *, groups: bool = False
) -> Fraction:
    """The most of μ², or of ε², that the searches and the count of one column spend."""
    power = _power(searches)
    alone = sum(search.questions * search.sensitivity**power for search in searches)
    moves = [
        times * (moved + (gone * count.multiplier) ** power)
        for times, gone, moved in _moves(searches, groups)
    ]
    return Fraction(max(alone, *moves) ** (2 // power), count.law.unit**2)


def _moves(searches: Sequence[NoisySearch], groups: bool) -> list[tuple[int, int, int]]:
    """(groups, values that come or go in each, what the rounds of each move by then).

    With `groups`, all k records of a person come or go together: in one group, or where they are
    replaced in two. Everything else moves less, by what all k move if they change within a group.

    Without, of a person's k records b come or go and k − b change, or stay away where records are
    added or removed. The rounds move by at most Σ questions·(S·((k − b)·w' + b·w) + 1)^power, a
    convex function of b like the count's part, so b = 1 and b = k are enough.
    """
    k, power = searches[0].contributions, _power(searches)
    if groups:
        moved = sum(
            questions * (k * math.ceil(multiplier * weight)) ** power
            for questions, multiplier, weight in _steps(searches)
        )
        return [(2 if searches[0].replaced else 1, k, moved)]
    found = []
    for gone in {1, k}:
        others = (k - gone) if searches[0].replaced else 0
        moved = sum(
            questions * (math.ceil(multiplier * (others + weight * gone)) + 1) ** power
            for questions, multiplier, weight in _steps(searches)
        )
        found.append((1, gone, moved))
    return found


def _steps(searches: Sequence[NoisySearch]) -> list[tuple[int, int, Fraction]]:
    """How many questions, or halvings, S of each, and by how much a value that goes moves it."""
    halvings = [(one.rounds, one.multiplier, one.halving_weight) for one in searches]
    return halvings + [(one.further, one.multiplier, one.presence_weight) for one in searches]


def _power(searches: Sequence[NoisySearch]) -> int:
    """Squares add up over rounds of normal noise, and sizes over rounds of Laplace noise."""
    return int(searches[0].law.sensitivity_norm)
