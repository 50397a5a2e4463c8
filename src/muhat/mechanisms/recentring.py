"""Means of records that nobody has bounded: learn a ball around them privately, then average.

    c ← 0
    repeat: r ← the 0.9-quantile of ‖x − c‖, by noisy binary search over public radii
            stop if the last centre has not made it much smaller
            c ← the noisy mean of the records clipped to the ball (c, r)
    t ← a high quantile of ‖x − c‖, near r
    release the noisy mean of the records clipped to the ball (c, t)

Every step is private by itself, given the outputs of the steps before it: a search has counts of
sensitivity 1, a mean is that of a public ball by then. The steps' shares of the promise add up to
at most 1 on every path, so the whole keeps the promise, and how many steps there were may be told.

An improvement on Huang, Liang and Yi (2021). Proof: docs/proofs/unbounded.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from muhat.domains import Ball, Domain, Ellipsoid
from muhat.domains.lattice import Lattice
from muhat.mechanisms.body import Body
from muhat.mechanisms.ellipsoidal import ellipsoid_norm, gaussian
from muhat.mechanisms.recentring_schedule import BEYOND, SHRUNK, Floats, Schedule
from muhat.mechanisms.recipe import Recipe
from muhat.noise.spread import Spread


class Reader(Protocol):
    """Passes over the records; what they return is data, never to be shown."""

    def distance_counts(self, center: Floats, edges: Floats) -> Sequence[int]:
        """How many records have their distance from the centre in each cell."""

    def excess(self, center: Floats, inner: float, lattice: Lattice) -> Sequence[int]:
        """The exact sums, in weighted coordinates, of what lies beyond an inner radius."""

    def sums(self, lattice: Lattice) -> Sequence[int]:
        """The exact sums of the records' integers."""


@dataclass(frozen=True)
class Step:
    """One step of the chain: what it was, the share of the promise it took, what came out."""

    name: str
    share: Fraction
    radius: float


@dataclass
class Transcript:
    """The steps taken, in order; their shares never exceed 1."""

    steps: list[Step] = field(default_factory=list)

    @property
    def spent(self) -> Fraction:
        """The sum of all shares, exactly."""
        return sum((step.share for step in self.steps), Fraction(0))

    def charge(self, share: Fraction) -> None:
        """Refuse a step that would exceed the promise; called before its noise is drawn."""
        if share <= 0 or self.spent + share > 1:
            raise AssertionError("the steps would exceed the promise")


@dataclass(frozen=True, eq=False)
class Recentred:
    """What came out of the chain; all of it is private output."""

    value: Floats
    noise: Spread
    ball: Domain
    steps: tuple[Step, ...]

    @property
    def rounds(self) -> int:
        """How often a radius was searched for before the last one."""
        return sum(step.name == "radius" for step in self.steps)


def recentred_mean(schedule: Schedule, reader: Reader) -> Recentred:
    """Carry the chain out."""
    chain = _Chain(schedule, reader)
    center, radius = chain.learn()
    inner, outer = chain.thresholds(center, radius)
    threshold = inner if chain.inner_is_better(center, inner, outer) else outer
    share = 1 - chain.transcript.spent
    value, noise, ball = chain.mean("mean", center, threshold, share)
    return Recentred(value, noise, ball, tuple(chain.transcript.steps))


def around(center: Floats, radius: float, weights: Floats) -> Domain:
    """{x : ‖weights∘(x − center)‖ ≤ radius}."""
    if (weights == 1).all():
        return Ball(radius, len(center), center)
    return Ellipsoid(np.diag((radius / weights) ** 2), center)


def recipe_in(ball: Domain, schedule: Schedule, share: Fraction, weights: Floats) -> Recipe:
    """The noisy sum of records clipped to a ball, for a share of the promise."""
    protection = schedule.protect(share)
    body = Body.of(ball, 2.0, weights, protection.neighbors)
    mechanism = ellipsoid_norm if schedule.pure else gaussian
    return mechanism(body, 2.0, weights, protection)


class _Chain:
    """The chain under way: every choice follows from public numbers and outputs so far."""

    def __init__(self, schedule: Schedule, reader: Reader) -> None:
        self._schedule = schedule
        self._reader = reader
        self.transcript = Transcript()

    def learn(self) -> tuple[Floats, float]:
        """A centre, and a radius that most records have around it."""
        schedule = self._schedule
        center = np.zeros(schedule.dim)
        radius = self._radius(center)
        for remaining in reversed(range(schedule.limits.rounds)):
            nearer, _, _ = self.mean("center", center, radius, schedule.center_share)
            nearer = np.clip(nearer, -schedule.magnitude, schedule.magnitude)
            if not remaining:
                return nearer, radius
            smaller = self._radius(nearer)
            if smaller > radius:
                return center, radius
            finished = smaller > SHRUNK * radius
            center, radius = nearer, smaller
            if finished:
                break
        return center, radius

    def thresholds(self, center: Floats, radius: float) -> tuple[float, float]:
        """Two radii for the last ball: one well inside, and one with few records outside.

        At the outer one noise and the bias of clipping are in balance in the worst case.
        """
        schedule = self._schedule
        edges = schedule.thresholds(radius)
        share = schedule.threshold_share
        after = 1 - self.transcript.spent - share
        above = schedule.beyond_threshold(schedule.search(len(edges), share), float(after))
        counts = self._counts(center, edges)
        outer = self._search("outer radius", counts, edges, share, above)
        if not schedule.compares:
            return outer, outer
        inside = int(BEYOND * schedule.n)
        inner = self._search("inner radius", counts, edges, schedule.inner_share, inside)
        return inner, outer

    def inner_is_better(self, center: Floats, inner: float, outer: float) -> bool:
        """Whether clipping to the inner radius saves more noise than it costs bias.

        The bias is the mean of what records have between the two radii. Its noisy square,
        ‖V‖² − dσ², tells, with one of its deviations to spare.
        """
        schedule = self._schedule
        left = 1 - self.transcript.spent
        share = schedule.comparison_share(inner, outer, left)
        if share is None:
            return False
        self.transcript.charge(share)
        between = Ball(outer - inner, schedule.dim)
        recipe = recipe_in(between, schedule, share, np.ones(schedule.dim))
        lattice = recipe.query.lattice
        assert lattice is not None
        noisy = recipe.run(self._reader.excess(center, inner, lattice), schedule.n)
        bias = np.array([float(total / schedule.n) for total in noisy])
        self.transcript.steps.append(Step("comparison", share, inner))
        variance = schedule.noise(between.radius, float(share)) ** 2
        after = float(left - share)
        saved = schedule.noise(outer, after) ** 2 - schedule.noise(inner, after) ** 2
        slack = 1 - math.sqrt(2 / schedule.dim)
        return float(bias @ bias) - slack * variance <= saved

    def mean(
        self, name: str, center: Floats, radius: float, share: Fraction
    ) -> tuple[Floats, Spread, Domain]:
        """The noisy mean of the records clipped to a ball, its noise, and the ball."""
        self.transcript.charge(share)
        schedule = self._schedule
        ball = around(center, radius, schedule.weights)
        recipe = recipe_in(ball, schedule, share, schedule.weights)
        lattice = recipe.query.lattice
        assert lattice is not None
        assert recipe.center is not None
        totals = self._reader.sums(lattice)
        noisy = [total / schedule.n for total in recipe.run(totals, schedule.n)]
        self.transcript.steps.append(Step(name, share, radius))
        spread = Spread(recipe.law, recipe.query.rows, recipe.scales, recipe.factor)
        return recipe.center + recipe.to_domain(noisy), spread.shrunk(schedule.n), ball

    def _radius(self, center: Floats) -> float:
        schedule = self._schedule
        counts = self._counts(center, schedule.radii)
        above = int(BEYOND * schedule.n)
        return self._search("radius", counts, schedule.radii, schedule.radius_share, above)

    def _counts(self, center: Floats, edges: Floats) -> NDArray[np.int64]:
        return np.array(self._reader.distance_counts(center, edges), np.int64)

    def _search(
        self, name: str, counts: NDArray[np.int64], edges: Floats, share: Fraction, above: int
    ) -> float:
        self.transcript.charge(share)
        search = self._schedule.search(len(edges), share)
        found = float(edges[search.find(counts, self._schedule.n - above)])
        self.transcript.steps.append(Step(name, share, found))
        return found
