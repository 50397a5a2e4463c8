"""Quantiles one inside the other: which is chosen first, and how their errors add up.

The quantile in the middle of a list divides the records, the middle ones of the two halves divide
these again, and so on: of m quantiles every record takes part in at most ⌈log₂(m + 1)⌉ choices,
one a level. A quantile q between two others is found as a fraction of the records between them,

    share = (q − q_below)/(q_above − q_below),

so its rank is off by its own error and by (1 − share) and share times those of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

HALF = Fraction(1, 2)
_STEPS = 400
_PARTS = 10_000
"""Shares are multiples of 10^−4, so that they can be written down."""


class Turn(NamedTuple):
    """A choice: quantile number `place`, from 1 on, between those numbered `below` and `above`.

    0 stands for the lowest end, and one more than there are quantiles for the highest.
    """

    level: int
    place: int
    below: int
    above: int
    share: Fraction

    @property
    def weight(self) -> Fraction:
        """How far a record that comes or goes moves the number below less the target, at most."""
        return max(self.share, 1 - self.share)

    def target(self, records: int) -> Fraction:
        """How many records should lie below: the least has none, the greatest all others."""
        if self.share in (0, 1):
            return HALF if self.share == 0 else records - HALF
        return self.share * records


@lru_cache
def turns_of(fractions: tuple[Fraction, ...]) -> tuple[Turn, ...]:
    """The order of choices for ascending quantiles, level by level.

    >>> turns = turns_of((Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)))
    >>> [(turn.level, turn.place, str(turn.share)) for turn in turns]
    [(0, 2, '1/2'), (1, 1, '1/2'), (1, 3, '1/2')]
    """
    ends = (Fraction(0), *fractions, Fraction(1))
    found: list[Turn] = []
    level, between = 0, [(0, len(ends) - 1)]
    while between := [(low, high) for low, high in between if high - low > 1]:
        halves = []
        for low, high in between:
            middle = (low + high) // 2
            share = (ends[middle] - ends[low]) / (ends[high] - ends[low])
            found.append(Turn(level, middle, low, high, share))
            halves += [(low, middle), (middle, high)]
        level, between = level + 1, halves
    return tuple(found)


def deviation(turns: Sequence[Turn], deviations: Sequence[float]) -> float:
    """The largest of all quantiles' ranks, if each choice adds an error of such a deviation."""
    return float(np.sqrt((_parts(turns) * np.square(deviations)).sum(axis=1).max()))


def _parts(turns: Sequence[Turn]) -> NDArray[np.float64]:
    """By turns: the square of what each choice's error is of each rank's."""
    mixed = {0: np.zeros(len(turns)), len(turns) + 1: np.zeros(len(turns))}
    for own, turn in zip(np.eye(len(turns)), turns, strict=True):
        share = float(turn.share)
        mixed[turn.place] = own + (1 - share) * mixed[turn.below] + share * mixed[turn.above]
    return np.square([mixed[turn.place] for turn in turns])


@lru_cache
def level_shares(
    turns: tuple[Turn, ...], weights: tuple[float, ...], power: int
) -> tuple[Fraction, ...]:
    """What each level should have of a promise, so that the largest error is least.

    A choice at a level that has the share s errs by its `weight` over s, or over √s where squares
    add up (the `power` 2). For quantiles that matter each by so much the best s are a closed form,
    and whatever errs more than others comes to matter more.
    """
    exponent = 2 // power
    levels = np.array([turn.level for turn in turns])
    parts = _parts(turns) * np.square(weights)
    squares = np.stack([parts[:, levels == level].sum(axis=1) for level in range(levels[-1] + 1)])
    matters = np.ones(len(turns))
    best, least = np.ones(len(squares)), np.inf
    for _ in range(_STEPS):
        shares = (squares @ matters) ** (1 / (exponent + 1))
        shares /= shares.sum()
        errors = (squares / shares[:, None] ** exponent).sum(axis=0)
        if errors.max() < least:
            best, least = shares, errors.max()
        matters *= errors / errors.max()
    return tuple(Fraction(int(share * _PARTS), _PARTS) for share in best)
