"""Where the last radius is looked for, at which rank and for which share: all of it public.

With normal noise a question comes first: do more than a few records lie far outside, beyond a
multiple of the radius r that most records have? If so, they may be a group of their own, and the
last radius is sought out there, with a rank that would see such a group. If not, it is sought close
by, where a mistake costs little: with a larger rank, and for a small share.

With pure noise one choice among all places is cheaper than two, and its rank error is uniform. On
a line, with normal noise, there is no last radius: a curve of counts shows two ends
(`line_ends.py`).

N = 2√d/μ is the balance: with N records outside, all on one side, letting one more outside saves
as much noise as it costs bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from muhat.mechanisms.learning.line_ends import CURVE_SHARE, most_beyond
from muhat.mechanisms.learning.sharing import Sharing, short_fraction

Places = NDArray[np.int64]

SMALLEST = 2.0**-42
"""The least public radius, as a part of the largest: what records that are all equal get."""

EDGES = 4096
"""Public radii; each is 0.7 % larger than the one before."""

FEW_DIM, MANY_DIM = 4, 16
"""Below the first, records outside are likely to pull one way. From the second on, distances agree
so well that radii must be told apart finely."""

FAR_STEPS = (1.5, 2.2, 3.3, 6.0, 20.0)
"""Where a radius far outside is asked for, one by one, in units of where far begins."""

MOST_AGAIN, FINE = 6, 12
"""Between two of those it is looked for in so many rounds at most, until it is known to so many
steps of the scale."""

ASIDE_STEP, ASIDE_PLACES = 18, 4
"""Around a centre that was moved aside: radii so many steps of the scale apart, and how many."""

PURE_STEP, PURE_PLACES = 7, 122
"""Under pure noise: places close by are so many steps of the scale apart, and how many."""

NEAR_WEIGHT = 1 << 50
"""Of radii up to the one that most records have, under pure noise; of the farthest it is 1."""

MOST_EACH, MOST_NEAR = 0.035, 0.12
"""The largest shares of a comparison far outside, and of the search close by."""


@dataclass(frozen=True, eq=False)
class LastRadius:
    """The last radius of a chain whose steps share a promise."""

    sharing: Sharing

    @property
    def _dim(self) -> int:
        return self.sharing.dim

    @property
    def balance(self) -> float:
        """N."""
        return self.sharing.balance

    def _at_most_half(self, records: float) -> int:
        return min(math.ceil(records), self.sharing.n // 2)

    # Far outside.

    @property
    def far(self) -> int:
        """How many steps beyond a radius far begins: at 6, 3 or 2 times it."""
        times = 6.0 if self._dim < FEW_DIM else 3.0 if self._dim < MANY_DIM else 2.0
        return steps_of(times)

    @property
    def _group(self) -> float:
        """Records that may lie far outside even if they are a group.

        4N, since noise and bias add in squares and records outside seldom all lie on one side; less
        if that were too large a part of the records.
        """
        return min(4 * self.balance, max(2 * self.balance, self.sharing.n / 40))

    @cached_property
    def each_share(self) -> Fraction:
        """Of a comparison far outside: its noise reaches a group's size in 2.75 deviations.

        In up to four if it takes that many for one record in twenty to be seen by every one of up
        to twelve comparisons.
        """
        seen = self.sharing.n / 20 - self._group
        deviations = 4.0 if seen <= self._group else max(4 * self._group / seen, 2.75)
        return short_fraction(min(self.sharing.share_of(deviations / self._group), MOST_EACH))

    def far_share(self, places: int) -> Fraction:
        """Of a search far outside among so many places: each of its rounds is a comparison."""
        return (places - 1).bit_length() * self.each_share

    @property
    def beyond_far(self) -> int:
        """How many records a radius far outside, or around a moved centre, leaves beyond it."""
        strays = self._far_deviations / self.sharing.step_strength(float(self.each_share))
        return self._at_most_half(max(self._group, strays))

    @property
    def _far_deviations(self) -> float:
        """How much of its noise: a needless step outside costs more in few dimensions."""
        return 3.5 if self._dim < FEW_DIM else 2.5

    def far_places(self, place: int) -> list[int]:
        """Where it is asked whether a radius is large enough, given the place of r."""
        asked = [place + self.far + steps_of(times) for times in FAR_STEPS]
        return [*[each for each in asked if each < EDGES - 1], EDGES - 1]

    def places_between(self, below: int, place: int) -> Places:
        """Where to look between two places, without the first."""
        rounds = max(0, math.ceil(math.log2(max(place - below, 1) / FINE)))
        between = np.linspace(below, place, (1 << min(rounds, MOST_AGAIN)) + 1)
        return np.unique(np.rint(between[1:]).astype(np.int64))

    # Close by.

    @property
    def _near_rounds(self) -> int:
        return 4 if self._dim < FEW_DIM else 5

    @property
    def _wanted_near(self) -> float:
        """Records close by that may lie outside: 8N, but at most an eighth of all, or 2N.

        In few dimensions, where they are likely to pull one way, 6N, but a hundredth or 4N.
        """
        most, least, part = (6, 4, 100) if self._dim < FEW_DIM else (8, 2, 8)
        return min(most * self.balance, max(least * self.balance, self.sharing.n / part))

    @cached_property
    def near_share(self) -> Fraction:
        """Of the search close by: two deviations of its noise are the records it leaves outside."""
        each = self.sharing.share_of(2 / self._wanted_near)
        return short_fraction(min(self._near_rounds * each, MOST_NEAR))

    @property
    def beyond_near(self) -> int:
        """How many records a radius close by leaves outside."""
        strength = self.sharing.step_strength(float(self.near_share))
        strays = 2 * math.sqrt(self._near_rounds) / strength
        return self._at_most_half(max(self._wanted_near, strays))

    def near_places(self, place: int) -> Places:
        """Where a radius close by is looked for: from just below r to where far begins."""
        parts = np.arange(1, (1 << self._near_rounds) + 1) / (1 << self._near_rounds)
        start = place - 14
        if self._dim >= MANY_DIM:
            start, parts = place - 6, parts**1.3
        found = np.rint(start + (place + self.far - start) * parts).astype(np.int64)
        return np.unique(np.clip(found, 0, EDGES - 1))

    # Around a centre that was moved aside.

    def aside_places(self, smallest: int, outer: int) -> Places:
        """Where it is looked for; the last radius itself, which comes last, stands for no gain."""
        found = smallest + ASIDE_STEP * np.arange(ASIDE_PLACES - 1)
        return np.append(found[found < outer - ASIDE_STEP], outer)

    # One choice under pure noise.

    @property
    def _pure_reach(self) -> float:
        """How far the choice strays at strength 1, in records, among the places up to 3r."""
        return 2 * math.log(10 * steps_of(3.0) / PURE_STEP)

    @property
    def _small_part(self) -> float:
        return self.sharing.n * 0.03 * min(1.0, self._dim / 4)

    @cached_property
    def pure_share(self) -> Fraction:
        """Of the only search under pure noise."""
        many = self.sharing.share_of(self._pure_reach / (4 * self.balance))
        few = self.sharing.share_of(self._pure_reach / max(2 * self.balance, self._small_part))
        return short_fraction(min(max(min(0.15, many), few), 0.2))

    def pure_places(self, place: int) -> Places:
        """Where it looks: close to a radius finely, and up to the largest."""
        inside = place + PURE_STEP * (np.arange(PURE_PLACES) - 13)
        inside = inside[(inside >= 0) & (inside < EDGES - 1)]
        far = np.linspace(inside[-1] if len(inside) else 0, EDGES - 1, 61)
        return np.unique(np.concatenate([inside, np.rint(far[1:]).astype(np.int64)]))

    def pure_weights(self, places: Places, place: int) -> tuple[int, ...]:
        """How likely places are beforehand, given that of r: as the square of r by their radius.

        So radii that are needlessly large add as little to the mean square of the noise far out
        as close by. A group far outside must be a little larger to be seen.
        """
        ratio = SMALLEST ** ((places - place) / (EDGES - 1))
        weights = np.rint(NEAR_WEIGHT * np.minimum(ratio, 1) ** 2)
        return tuple(np.maximum(weights, 1).astype(int).tolist())

    @property
    def uncapped_pure(self) -> int:
        """How many records it would have to leave outside, of however many."""
        wanted = min(4 * self.balance, max(2 * self.balance, self._small_part))
        strays = self._pure_reach / self.sharing.step_strength(float(self.pure_share))
        return math.ceil(max(wanted, strays))

    @property
    def beyond_pure(self) -> int:
        """How many records it leaves outside."""
        return self._at_most_half(self.uncapped_pure)

    # All of them.

    @property
    def on_line(self) -> bool:
        """Whether two ends are sought instead of a radius."""
        return self._dim == 1 and not self.sharing.pure

    @property
    def likely_share(self) -> Fraction:
        """What the last radius costs if few records lie far outside."""
        if self.sharing.pure:
            return self.pure_share
        if self.on_line:
            return CURVE_SHARE
        return self.each_share + self.near_share

    @property
    def most_share(self) -> Fraction:
        """What it costs at most."""
        if self.sharing.pure or self.on_line:
            return self.likely_share
        far = len(FAR_STEPS) * self.each_share + self.far_share(1 << MOST_AGAIN)
        return self.each_share + max(far, self.near_share)

    @property
    def most_outside(self) -> int:
        """The most records that it is meant to leave outside."""
        if self.sharing.pure:
            return self.beyond_pure
        if self.on_line:
            return most_beyond(self.sharing)
        return max(self.beyond_far, self.beyond_near)

    @property
    def is_hopeless(self) -> bool:
        """Whether it would have to leave all records outside."""
        if self.sharing.pure:
            return self.uncapped_pure >= self.sharing.n
        if self.on_line:
            return self.most_outside >= self.sharing.n
        strays = self._far_deviations / self.sharing.step_strength(float(self.each_share))
        return max(2 * self.balance, strays) >= self.sharing.n


def steps_of(times: float) -> int:
    """How many steps of the scale a radius is from one so many times as large."""
    return round(math.log(times) * (EDGES - 1) / -math.log(SMALLEST))
