"""The public side of the local chain: who is asked what, and what follows from the answers.

Every step asks another group of people, so that everybody is asked once. What is known after a
step is a `Place`: public, and written into the next round's description.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from muhat import _check
from muhat.domains import Ball
from muhat.errors import InvalidInput
from muhat.privacy import ZCDP, Privacy, PureDP, pure_within
from muhat.protocols.local_chain_radius import least_radius
from muhat.protocols.local_mean import best_randomizer
from muhat.protocols.randomizer import Floats, MeanRandomizer
from muhat.protocols.range_cells import Distance
from muhat.protocols.range_choice import best_ranges, predicted_error
from muhat.protocols.range_counts import RangeCounts
from muhat.protocols.range_randomizer import RangeRandomizer
from muhat.release.quantile_grids import RelativeGrid

FIRST_CELLS, FIRST_RATIO, FIRST_ERROR, FIRST_MOST = 32, 2.0, 0.08, 0.05
"""The first radius is looked for on all scales, coarsely: cells, their ratio, the standard error
of a share that is aimed at, and the part of the people it may take."""

FIRST_WORST, RADIUS_WORST = 0.12, 0.2
"""With larger standard errors a first radius is not looked for, and other radii are useless."""

RADIUS_CELLS, RADIUS_ERROR, RADIUS_MOST = 16, 0.06, 0.10
"""The same for a radius around a new centre."""

LAST_CELLS, LAST_SHARE = 64, 0.07
"""The last radius: cells, and the part of the people it takes."""

CENTER_NOISE, CENTER_MOST, FINE_SHARE = 0.16, 0.12, 0.08
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

LAST_LOWEST, LAST_LOW, LAST_HIGH = 0.15, 0.5, 16.0
"""The last radius is looked for between parts of the one before it: from the centre's noise, if
that is between the first two, up to the third."""

LEAST_LEFT = 0.3
"""The part of the people that is kept for the mean before another centre is looked for."""

MOST_CENTERS = 30

SMALLEST = 2.0**-40
"""The least public radius, as a part of the largest: floats could not resolve much smaller ones."""


class Step(StrEnum):
    """What a round asks for."""

    FIRST = "first radius"
    CENTER = "center"
    RADIUS = "radius"
    FINE = "last center"
    LAST = "last radius"
    MEAN = "mean"

    @property
    def is_mean(self) -> bool:
        """Whether devices send their records, clipped and randomised; else their distances."""
        return self in (Step.CENTER, Step.FINE, Step.MEAN)


@dataclass(frozen=True)
class Place:
    """What is known about where the records lie, and what is asked next.

    Attributes:
        step: what is asked next.
        center: a point near the records.
        radius: most records were seen within it, around this centre or the one before.
        noise: the root mean square error of the centre.
        asked: how many people have been asked so far.
    """

    step: Step
    center: tuple[float, ...]
    radius: float
    noise: float
    asked: int

    def to_dict(self) -> dict[str, Any]:
        """The place as plain data."""
        return {
            "next": self.step.value,
            "center": list(self.center),
            "radius": self.radius,
            "noise": self.noise,
            "asked": self.asked,
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Place:
        """What `to_dict` described."""
        try:
            return cls(
                Step(_check.one_of("next", fields["next"], [step.value for step in Step])),
                tuple(_check.real("a coordinate of the centre", each) for each in fields["center"]),
                _check.positive("radius", fields["radius"]),
                _check.positive("noise", fields["noise"]),
                _check.count("asked", fields["asked"], least=0),
            )
        except (KeyError, TypeError):
            raise InvalidInput("what earlier rounds have learnt is not well described.") from None


@dataclass(frozen=True)
class ChainSchedule:
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

    @property
    def fine_users(self) -> int:
        """How many people find the last centre."""
        return self._group(self.n, FINE_SHARE)

    @property
    def last_users(self) -> int:
        """How many people find the last radius."""
        return self._group(self.n, LAST_SHARE)

    def users(self, place: Place) -> int:
        """How many people are asked next."""
        match place.step:
            case Step.FIRST:
                return self.first_users
            case Step.CENTER:
                return self.center_users
            case Step.RADIUS:
                return self.radius_users
            case Step.FINE:
                return self.fine_users
            case Step.LAST:
                return self.last_users
            case Step.MEAN:
                return self.n - place.asked

    def first(self) -> Place:
        """Nothing is known but the magnitude."""
        error = self._counting_error(FIRST_CELLS) / math.sqrt(self.first_users)
        step = Step.FIRST if error <= FIRST_WORST else Step.CENTER
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
            case Step.FIRST:
                return geometric(radius * FIRST_RATIO ** (1 - FIRST_CELLS), radius, FIRST_CELLS)
            case Step.RADIUS:
                high = min(GROWN * radius, 2 * self.reach)
                return geometric(min(BELOW_NOISE * noise, high / 8), high, RADIUS_CELLS)
            case _:
                low = min(LAST_LOW * radius, max(noise, LAST_LOWEST * radius))
                return geometric(low, min(LAST_HIGH * radius, 4 * self.reach), LAST_CELLS)

    def centered(self, place: Place, center: Floats, users: int) -> Place:
        """After a centre was found by the answers of so many people."""
        inside = np.clip(center, -self.magnitude, self.magnitude)
        return replace(
            place,
            step=Step.RADIUS if place.step is Step.CENTER else Step.LAST,
            center=tuple(inside.tolist()),
            noise=self.noise(place.radius, users),
            asked=place.asked + self.users(place),
        )

    def counted(self, place: Place, counts: RangeCounts, centers: int) -> Place:
        """After distances were counted; `centers` is how many have been tried."""
        known = replace(place, asked=place.asked + self.users(place))
        if place.step is Step.LAST:
            left = self.n - known.asked
            radius = least_radius(counts, self.noise(1.0, left))
            return replace(known, step=Step.MEAN, radius=radius)
        radius = max(counts.quantile(1 - BEYOND), SMALLEST * self.reach)
        if place.step is Step.FIRST:
            return replace(known, step=Step.CENTER, radius=radius)
        same = SHRUNK * place.radius < radius < OUTSIDE * place.radius
        settled = same or place.noise < NEAR * radius or radius <= SMALLEST * self.reach
        more = not settled and centers < MOST_CENTERS and self._affords_center(known.asked)
        return replace(known, step=Step.CENTER if more else Step.FINE, radius=radius)

    @property
    def likely_users(self) -> int:
        """How many people are left for the mean after two centres, the common path."""
        pairs = 2 * (self.center_users + self.radius_users)
        before = self.users(self.first()) if self.first().step is Step.FIRST else 0
        return self.n - before - pairs - self.fine_users - self.last_users

    @property
    def least_n(self) -> int:
        """The least number of people for which centres are better than nothing."""
        for_centers = (2 * self.unit_error) ** 2 / CENTER_MOST
        for_radii = (self._counting_error(RADIUS_CELLS) / RADIUS_WORST) ** 2 / RADIUS_MOST
        return math.ceil(max(for_centers, for_radii, 100))

    def _affords_center(self, asked: int) -> bool:
        more = self.center_users + self.radius_users + self.fine_users + self.last_users
        return asked + more <= (1 - LEAST_LEFT) * self.n

    def _counting(self, cells: int, error: float, most: float) -> int:
        return self._group((self._counting_error(cells) / error) ** 2, most)

    def _counting_error(self, cells: int) -> float:
        """The standard error of a share of the people, if there were one person only."""
        many = 1 << 20
        return predicted_error(_best_counting(cells, self.privacy), many).average * math.sqrt(many)

    def _group(self, wanted: float, most: float) -> int:
        # A product of floats may lie next to the whole number that is meant.
        return max(1, math.ceil(round(min(wanted, most * self.n), 6)))


@lru_cache(maxsize=64)
def _best_counting(cells: int, promise: Privacy) -> RangeRandomizer:
    """The best messages about so many cells, whatever they are."""
    grid = geometric(1.0, 2.0, cells)
    return best_ranges(Distance((0.0,)), grid, counting_promise(promise))


def counting_promise(promise: Privacy) -> Privacy:
    """What messages for counts promise: counts gain from zCDP; other promises they keep purely."""
    return promise if isinstance(promise, ZCDP) else PureDP(epsilon=pure_within(promise))


def geometric(low: float, high: float, cells: int) -> RelativeGrid:
    """A grid of so many cells, the last of which ends at `high`."""
    ratio = (high / low) ** (1 / (cells - 1))
    # A hair above the ratio: rounding must not make another cell.
    return RelativeGrid(low, high, ratio * (1 + 1e-12))
