"""The public side of the local chain: who is asked what, and what follows from the answers.

Every step asks another group of people, so that everybody is asked once. What is known after a
step is a `Place`: public, and written into the next round's description.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from muhat._arrays import Floats
from muhat.domains import Ball
from muhat.privacy import Privacy, PureDP, pure_within
from muhat.protocols.encodings.range_cells import Distance
from muhat.protocols.estimators.range_choice import best_ranges, predicted_error
from muhat.protocols.estimators.range_counts import RangeCounts
from muhat.protocols.means.bounded_mean import best_randomizer
from muhat.protocols.means.local_chain_place import SURE, SURER, ChainStep, Place, least_radius
from muhat.protocols.randomizers.randomizer import MeanRandomizer
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer
from muhat.release.quantile_grids import RelativeGrid

FIRST_CELLS, FIRST_RATIO, FIRST_ERROR, FIRST_MOST = 32, 2.0, 0.08, 0.05
"""The first radius is looked for on all scales, coarsely: cells, their ratio, the standard error
of a part that is aimed at, and the part of the people it may take."""

FIRST_WORST, RADIUS_WORST = 0.12, 0.2
"""With larger standard errors a first radius is not looked for, and other radii are useless."""

RADIUS_CELLS, RADIUS_ERROR, RADIUS_MOST = 16, 0.06, 0.10
"""The same for a radius around a new centre."""

FAR, FAR_PART, SEEN = 6.0, 0.04, 2.5
"""Whether people lie far outside, beyond so many times the radius, is asked of such a part of them;
they do if the answers show it by so many standard errors."""

WIDE_CELLS, WIDE_PART = 16, 0.08
"""If they do, another radius is looked for on all scales: cells, and the part of the people."""

LAST_CELLS, LAST_PART = 16, 0.08
"""The last radius: cells, and the part of the people it takes."""

OUTSIDE_PART = 0.05
"""The part of the people who say whether they are in the last ball."""

CENTER_NOISE, CENTER_MOST, FINE_PART = 0.16, 0.12, 0.06
"""A new centre is off by such a part of the radius, if that many people are enough; the last one
takes a fixed part of them."""

BEYOND = 0.4
"""The part of the people that a radius leaves outside."""

NEAR, SHRUNK, OUTSIDE = 0.3, 0.8, 1.3
"""Centres are good enough when their noise is below the first part of the radius, and new ones
are no help when the radius stays between the two other parts of the last one."""

GROWN, BELOW_NOISE = 1.7, 0.4
"""A radius around a new centre is looked for up to so many times the old one, and down to such a
part of the centre's noise."""

LAST_LOWEST, LAST_LOW = 0.15, 0.5
"""The last radius is looked for from parts of the one before it, from the centre's noise if that
is between the two, up to where far outside begins."""

LEAST_LEFT = 0.22
"""The part of the people that is kept for the mean before another centre is looked for, or another
radius; a wide one takes of it."""

MOST_CENTERS = 30

SMALLEST = 2.0**-40
"""The least public radius, as a part of the largest: floats could not resolve much smaller ones."""


@dataclass(frozen=True)
class LocalChainSchedule:
    """Group sizes and decisions: all of them functions of public numbers.

    `magnitude` bounds every coordinate of a record.
    """

    dim: int
    magnitude: float
    n: int
    privacy: Privacy

    @property
    def reach(self) -> float:
        """All records lie within it around 0."""
        return self.magnitude * math.sqrt(self.dim)

    @cached_property
    def unit_error(self) -> float:
        """The root mean square error of one message about a record of the unit ball."""
        return self.ball((0.0,) * self.dim, 1.0).expected_error(1)

    def noise(self, radius: float, users: int) -> float:
        """The root mean square error of the mean of so many messages in a ball."""
        return radius * self.unit_error / math.sqrt(users)

    @cached_property
    def center_users(self) -> int:
        """How many people find a new centre."""
        return self._group((self.unit_error / CENTER_NOISE) ** 2, CENTER_MOST)

    @cached_property
    def radius_users(self) -> int:
        """How many people find a radius around a new centre."""
        return self._counting(RADIUS_CELLS, RADIUS_ERROR, RADIUS_MOST)

    @cached_property
    def first_users(self) -> int:
        """How many people find the first radius."""
        return self._counting(FIRST_CELLS, FIRST_ERROR, FIRST_MOST)

    def users(self, place: Place) -> int:
        """How many people are asked next."""
        match place.step:
            case ChainStep.FIRST:
                return self.first_users
            case ChainStep.CENTER:
                return self.center_users
            case ChainStep.RADIUS:
                return self.radius_users
            case ChainStep.MEAN:
                return self.n - place.asked
            case _:
                return self._group(self.n, _PARTS[place.step])

    def first(self) -> Place:
        """Nothing is known but the magnitude."""
        error = self._counting_error(FIRST_CELLS) / math.sqrt(self.first_users)
        step = ChainStep.FIRST if error <= FIRST_WORST else ChainStep.CENTER
        return Place(step, (0.0,) * self.dim, self.reach, self.reach, 0)

    def ball(self, center: tuple[float, ...], radius: float) -> MeanRandomizer:
        """What devices run for a mean of records clipped to a ball."""
        domain = Ball(radius, dim=self.dim, center=np.array(center))
        return best_randomizer(domain, self.privacy)

    def distances(self, place: Place) -> RangeRandomizer:
        """What devices run for a radius around the centre."""
        grid = self.grid(place)
        chosen = _best_counting(grid.cells, self.privacy)
        return replace(chosen, look=Distance(place.center), grid=grid)

    def grid(self, place: Place) -> RelativeGrid:
        """Where the radius is looked for."""
        radius, noise = place.radius, place.noise
        match place.step:
            case ChainStep.FIRST:
                return geometric(radius * FIRST_RATIO ** (1 - FIRST_CELLS), radius, FIRST_CELLS)
            case ChainStep.RADIUS:
                high = min(GROWN * radius, 2 * self.reach)
                return geometric(min(BELOW_NOISE * noise, high / 8), high, RADIUS_CELLS)
            case ChainStep.FAR:
                return geometric(FAR * radius, 2 * FAR * radius, 2)
            case ChainStep.WIDE:
                return geometric(radius, max(2 * self.reach, 4 * FAR * radius), WIDE_CELLS)
            case ChainStep.OUTSIDE:
                return geometric(radius, 2 * radius, 2)
            case _:
                low = min(LAST_LOW * radius, max(noise, LAST_LOWEST * radius))
                return geometric(low, FAR * radius, LAST_CELLS)

    def centered(self, place: Place, center: Floats, users: int) -> Place:
        """After a centre was found by the answers of so many people."""
        inside = np.clip(center, -self.magnitude, self.magnitude)
        return replace(
            place,
            step=ChainStep.RADIUS if place.step is ChainStep.CENTER else ChainStep.LAST,
            center=tuple(inside.tolist()),
            noise=self.noise(place.radius, users),
            asked=place.asked + self.users(place),
        )

    def counted(self, place: Place, counts: RangeCounts, centers: int) -> Place:
        """After distances were counted; `centers` is how many have been tried."""
        known = replace(place, asked=place.asked + self.users(place))
        match place.step:
            case ChainStep.FIRST:
                return replace(known, step=ChainStep.CENTER, radius=self._most(counts))
            case ChainStep.RADIUS:
                return self._around(place, known, counts, centers)
            case ChainStep.FAR:
                if not _seen_beyond(counts):
                    return replace(known, step=ChainStep.FINE)
                return replace(known, step=ChainStep.WIDE, outside=part_beyond(counts))
            case ChainStep.WIDE:
                radius = max(self._least(counts, known.asked, SURER), _halfway(place, counts))
                return replace(known, step=ChainStep.FINE, radius=radius, outside=None)
            case ChainStep.LAST:
                radius = self._least(counts, known.asked, SURE)
                # At the end of the grid there may be more to find beyond it.
                end = counts.grid.value(counts.grid.cells - 2)
                again = radius >= end and self._affords(known.asked)
                return replace(
                    known, step=ChainStep.FAR if again else ChainStep.OUTSIDE, radius=radius
                )
            case _:
                return replace(known, step=ChainStep.MEAN, outside=part_beyond(counts))

    def _around(self, place: Place, known: Place, counts: RangeCounts, centers: int) -> Place:
        """Another centre, unless it would not be better, or people would run out."""
        radius = self._most(counts)
        same = SHRUNK * place.radius < radius < OUTSIDE * place.radius
        settled = same or place.noise < NEAR * radius or radius <= SMALLEST * self.reach
        # Where a part of the people stays far behind, a smaller ball would be about the others.
        settled = settled or (radius < OUTSIDE * place.radius and _seen_beyond(counts))
        pair = self.center_users + self.radius_users
        more = not settled and centers < MOST_CENTERS and self._affords(known.asked + pair)
        return replace(known, step=ChainStep.CENTER if more else ChainStep.FAR, radius=radius)

    def _most(self, counts: RangeCounts) -> float:
        """The radius that most people do not exceed."""
        return max(counts.quantile(1 - BEYOND), SMALLEST * self.reach)

    def _least(self, counts: RangeCounts, asked: int, sure: float) -> float:
        """The radius with the least error, if all who are left are asked for the mean."""
        return least_radius(counts, self.noise(1.0, self.n - asked), sure)

    @property
    def likely_users(self) -> int:
        """How many people are left for the mean after two centres, the common path."""
        pairs = 2 * (self.center_users + self.radius_users)
        before = self.users(self.first()) if self.first().step is ChainStep.FIRST else 0
        return self.n - before - pairs - self._rest

    @property
    def least_n(self) -> int:
        """The least number of people for which centres are better than nothing."""
        for_centers = (2 * self.unit_error) ** 2 / CENTER_MOST
        for_radii = (self._counting_error(RADIUS_CELLS) / RADIUS_WORST) ** 2 / RADIUS_MOST
        return math.ceil(max(for_centers, for_radii, 100))

    @property
    def _rest(self) -> int:
        """How many people are asked between the last pair and the mean, unless others are far."""
        return sum(
            self._group(self.n, part) for step, part in _PARTS.items() if step != ChainStep.WIDE
        )

    def _affords(self, asked: int) -> bool:
        """Whether enough people are left for the mean after all that usually follows."""
        return asked + self._rest <= (1 - LEAST_LEFT) * self.n

    def _counting(self, cells: int, error: float, most: float) -> int:
        return self._group((self._counting_error(cells) / error) ** 2, most)

    def _counting_error(self, cells: int) -> float:
        """The standard error of a part of the people, if there were one person only."""
        many = 1 << 20
        return predicted_error(_best_counting(cells, self.privacy), many).average * math.sqrt(many)

    def _group(self, wanted: float, most: float) -> int:
        # A product of floats may lie next to the whole number that is meant.
        return max(1, math.ceil(round(min(wanted, most * self.n), 6)))


_PARTS = {
    ChainStep.FAR: FAR_PART,
    ChainStep.WIDE: WIDE_PART,
    ChainStep.FINE: FINE_PART,
    ChainStep.LAST: LAST_PART,
    ChainStep.OUTSIDE: OUTSIDE_PART,
}
"""The parts of the people that single steps take."""


def part_beyond(counts: RangeCounts) -> tuple[float, float]:
    """The part of the people in the last cell, and its standard error.

    The error is about all people, of whom those who were asked are a random part.
    """
    part = 1 - float(counts.prefix()[-2])
    inside = min(max(part, 0.0), 1.0)
    sampling = inside * (1 - inside) / max(counts.users, 1)
    return part, math.sqrt(float(counts.standard_error()[-2]) ** 2 + sampling)


def _seen_beyond(counts: RangeCounts) -> bool:
    """Whether people in the last cell are more than noise."""
    part, error = part_beyond(counts)
    return part > SEEN * error


def _halfway(place: Place, counts: RangeCounts) -> float:
    """A radius that half of the people far outside exceed, or as many as can be told from none."""
    far, _ = place.outside or (0.0, 0.0)
    left = max(far / 2, SEEN * float(np.median(counts.standard_error()[1:-1])))
    return counts.quantile(1 - left) if left < far else place.radius


@lru_cache(maxsize=64)
def _best_counting(cells: int, promise: Privacy) -> RangeRandomizer:
    """The best messages about so many cells, whatever they are."""
    grid = geometric(1.0, 2.0, cells)
    return best_ranges(Distance((0.0,)), grid, counting_promise(promise))


def counting_promise(promise: Privacy) -> Privacy:
    """What messages for counts promise: counts gain from zCDP; other promises they keep purely."""
    if promise.rho_within is not None:
        return promise
    return PureDP(epsilon=pure_within(promise))


def geometric(low: float, high: float, cells: int) -> RelativeGrid:
    """A grid of so many cells, the last of which ends at `high`."""
    ratio = (high / low) ** (1 / (cells - 1))
    # A hair above the ratio: rounding must not make another cell.
    return RelativeGrid(low, high, ratio * (1 + 1e-12))
