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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from muhat.domains import Ball
from muhat.mechanisms.learning import Learnt
from muhat.mechanisms.recentring_schedule import BEYOND, SHRUNK, Schedule
from muhat.mechanisms.sharing import Floats, Sharing, around
from muhat.mechanisms.steps import Reader, SourceReader, Step, Steps

if TYPE_CHECKING:
    from muhat.data import Source


@dataclass(frozen=True, eq=False)
class Recentring:
    """The chain as a method: its schedule is all that is decided beforehand."""

    schedule: Schedule

    name = "recentring"

    @property
    def summary(self) -> str:
        """What it does, in a few words."""
        rounds = self.schedule.limits.rounds
        return f"a ball around the records is learnt privately, in at most {rounds} rounds"

    @property
    def sharing(self) -> Sharing:
        """The promise that its steps share."""
        return self.schedule

    @property
    def shares(self) -> dict[str, float]:
        """The share of the promise that each step takes; the mean has all that is left."""
        schedule = self.schedule
        return {
            "radius, each round": float(schedule.radius_share),
            "centre, each round": float(schedule.center_share),
            "last radius": float(schedule.threshold_share + schedule.inner_share),
            "the mean, after two rounds": float(schedule.likely_final_share),
            "the mean, at least": float(schedule.least_final_share),
        }

    @property
    def final_share(self) -> float:
        """The share that the mean itself has after two rounds."""
        return float(self.schedule.likely_final_share)

    @property
    def is_enough(self) -> bool:
        """Whether every step works almost surely with this many records."""
        return self.schedule.is_enough

    @property
    def least_n(self) -> int:
        """The least number of records for which every step works almost surely."""
        return self.schedule.least_n

    def check(self) -> None:
        """Make every kind of step once."""
        schedule = self.schedule
        schedule.search(schedule.limits.radius_cells, schedule.radius_share)
        schedule.search(sum(schedule.limits.grid), schedule.threshold_share)
        ball = around(np.zeros(schedule.dim), schedule.largest_radius, schedule.weights)
        for share in (schedule.center_share, schedule.least_final_share):
            schedule.recipe_in(ball, share, schedule.weights)

    def run(self, source: Source) -> Learnt:
        """Carry the chain out."""
        return recentred_mean(self.schedule, SourceReader(source, self.schedule))

    def to_dict(self) -> dict[str, Any]:
        """All that decides the release."""
        return self.schedule.to_dict()


def recentred_mean(schedule: Schedule, reader: Reader) -> Learnt:
    """Carry the chain out."""
    chain = _Chain(schedule, reader)
    center, radius = chain.learn()
    inner, outer = chain.thresholds(center, radius)
    threshold = inner if chain.inner_is_better(center, inner, outer) else outer
    steps = chain.steps
    value, noise, ball = steps.mean("mean", center, threshold, 1 - steps.spent)
    return Learnt(value, noise, ball, tuple(steps.transcript.steps))


class _Chain:
    """The chain under way: every choice follows from public numbers and outputs so far."""

    def __init__(self, schedule: Schedule, reader: Reader) -> None:
        self._schedule = schedule
        self.steps = Steps(schedule, reader)

    def learn(self) -> tuple[Floats, float]:
        """A centre, and a radius that most records have around it."""
        schedule = self._schedule
        center = np.zeros(schedule.dim)
        radius = self._radius(center)
        for remaining in reversed(range(schedule.limits.rounds)):
            nearer, _, _ = self.steps.mean("center", center, radius, schedule.center_share)
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
        after = 1 - self.steps.spent - share
        above = schedule.beyond_threshold(schedule.search(len(edges), share), float(after))
        counts = self.steps.counts(center, edges)
        outer = self.steps.search("outer radius", counts, edges, share, above)
        if not schedule.compares:
            return outer, outer
        inside = int(BEYOND * schedule.n)
        inner = self.steps.search("inner radius", counts, edges, schedule.inner_share, inside)
        return inner, outer

    def inner_is_better(self, center: Floats, inner: float, outer: float) -> bool:
        """Whether clipping to the inner radius saves more noise than it costs bias.

        The bias is the mean of what records have between the two radii. Its noisy square,
        ‖V‖² − dσ², tells, with one of its deviations to spare.
        """
        schedule = self._schedule
        left = 1 - self.steps.spent
        share = schedule.comparison_share(inner, outer, left)
        if share is None:
            return False
        self.steps.transcript.charge(share)
        between = Ball(outer - inner, schedule.dim)
        recipe = schedule.recipe_in(between, share, np.ones(schedule.dim))
        lattice = recipe.query.lattice
        assert lattice is not None
        noisy = recipe.run(self.steps.reader.excess(center, inner, lattice), schedule.n)
        bias = np.array([float(total / schedule.n) for total in noisy])
        self.steps.transcript.steps.append(Step("comparison", share, inner))
        variance = schedule.noise(between.radius, float(share)) ** 2
        after = float(left - share)
        saved = schedule.noise(outer, after) ** 2 - schedule.noise(inner, after) ** 2
        slack = 1 - math.sqrt(2 / schedule.dim)
        return float(bias @ bias) - slack * variance <= saved

    def _radius(self, center: Floats) -> float:
        schedule = self._schedule
        counts = self.steps.counts(center, schedule.radii)
        above = int(BEYOND * schedule.n)
        return self.steps.search("radius", counts, schedule.radii, schedule.radius_share, above)
