"""Means of records that nobody has bounded: learn a ball around them privately, then average.

    c ← 0, r ← a quantile of ‖x − c‖, found among public radii
    repeat: c ← the noisy mean of the records clipped to the ball (c, r)
            r ← the reach of that noise, if most records are within it; else a quantile of ‖x − c‖
            stop if the last centre has not made it much smaller
    t ← a high quantile of ‖x − c‖
    if t is far beyond r and the records between pull one way: move c to the middle of both ends
    count the records outside the ball (c, t), with noise
    V ← the noisy mean of what records have between the radii r and t
    release the noisy mean of the records clipped to the ball (c, r), plus g·V

g ∈ [0, 1] shrinks V as James and Stein do: towards 1 if records beyond r pull the mean somewhere,
towards 0 if V is hardly more than its noise. Intervals are about the sum with V itself, whose noise
is known. If the centre has moved, and under pure privacy, there
is no V, and the last ball is (c, t). On a line, with normal noise, a curve of counts around (c, r)
shows two ends instead of t, and the records between them are averaged (`line_ends.py`), under
(ε, δ) with pure noise (`pure_mean.py`).

Every step is private by itself, given the outputs of the steps before it: a quantile rests on
counts of sensitivity 1, a mean is that of a public ball by then. The steps' shares of the promise
add up to at most 1 on every path, so the whole keeps the promise, and how many steps there were
may be told.

An improvement on Huang, Liang and Yi (2021). Proof: docs/proofs/unbounded.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.domains import Ball, Domain
from muhat.mechanisms.learning.last_radius import EDGES, Places
from muhat.mechanisms.learning.learning import Learnt
from muhat.mechanisms.learning.line_ends import CURVE_SHARE, LineEdges, line_interval, prefix_recipe
from muhat.mechanisms.learning.outside_count import OutsideCount, count_outside
from muhat.mechanisms.learning.pure_mean import PureMean
from muhat.mechanisms.learning.ratio_mean import Shell, ratio_mean
from muhat.mechanisms.learning.recentring_schedule import (
    ASIDE_SHARE,
    CLOSE,
    LOPSIDED,
    MOST_ROUNDS,
    SHRUNK,
    THICK,
    Schedule,
)
from muhat.mechanisms.learning.sharing import Sharing, around
from muhat.mechanisms.learning.shrinking import shrunk, together
from muhat.mechanisms.learning.steps import Reader, SourceReader, Step, Steps

if TYPE_CHECKING:
    from muhat.data import Source

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Recentring(Plain):
    """The chain as a method: its schedule is all that is decided beforehand."""

    schedule: Schedule

    name = "recentring"

    @property
    def pure_mean(self) -> PureMean | None:
        """The noise of the last step, if it is of another kind."""
        return self.schedule.pure_mean

    @property
    def summary(self) -> str:
        """What it does, in a few words."""
        if self.schedule.is_hopeless:
            return "n is too small to learn any ball: 0, the public default, at the full cost"
        pure = self.pure_mean
        part = "" if pure is None else f"; pure noise for {100 * float(pure.share):.0f} %"
        last = part and f"{part} of ε on the mean"
        return (
            "a ball around the records is learnt privately, most often in 2 rounds, "
            f"in at most {MOST_ROUNDS}{last}"
        )

    @property
    def sharing(self) -> Sharing:
        """The promise that its steps share."""
        return self.schedule

    @property
    def shares(self) -> dict[str, float]:
        """The share of the promise that each step takes; the mean has all that is left."""
        schedule = self.schedule
        if schedule.is_hopeless:
            return {"the public default": 1.0}
        ends = "curve of counts" if schedule.last.on_line else "last radius, most often"
        learning = {
            "first radius": float(schedule.first_share),
            "centre, each round": float(schedule.center_share),
            ends: float(schedule.last.likely_share),
            "records outside it": float(schedule.outside_share),
        }
        if schedule.pure_mean is not None:
            return {**learning, "all of these, at most": float(schedule.limit)}
        return {
            **learning,
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
        schedule.finder(len(schedule.radius_places), schedule.first_share)
        last, places = schedule.last, schedule.last.pure_places(0)
        if schedule.pure:
            schedule.finder(len(places), last.pure_share)
        elif last.on_line:
            schedule.finder(2, schedule.question_share)
            line = LineEdges.around(0.0, float(schedule.edges[0]), schedule)
            for cells, share in ((line.cells, CURVE_SHARE), (3, schedule.outside_share)):
                prefix_recipe(schedule, cells, share)
        else:
            schedule.finder(2, schedule.question_share)
            schedule.finder(2, last.each_share)
            schedule.finder(len(last.near_places(0)), last.near_share)
        schedule.search(2, schedule.outside_share)
        for share in (schedule.crude_share, schedule.least_final_share):
            schedule.recipe_in(self.largest_ball, share, schedule.weights)
        schedule.last_recipe(self.largest_ball, schedule.least_final_share)

    @property
    def largest_ball(self) -> Domain:
        """No step looks farther out."""
        schedule = self.schedule
        return around(np.zeros(schedule.dim), schedule.largest_radius, schedule.weights)

    def admit(self, source: Source) -> None:
        """Every source will do."""

    def run(self, source: Source) -> Learnt:
        """Carry the chain out."""
        return recentred_mean(self.schedule, SourceReader(source, self.schedule))


def recentred_mean(schedule: Schedule, reader: Reader, *, counted: bool = False) -> Learnt:
    """Carry the chain out; `counted`: the records are noisily counted with the mean."""
    if schedule.is_hopeless:
        default = Step("the public default", Fraction(1), 0.0)
        return Learnt(np.zeros(schedule.dim), None, None, (default,))
    chain = _Chain(schedule, reader, counted)
    found = chain.learn()
    if schedule.last.on_line:
        return chain.between(found)
    outer = chain.outer(found)
    moved = chain.aside(found, outer)
    ball = moved or _Around(found.center, outer, found.counts)
    outside = chain.outside(ball)
    radius = float(schedule.edges[ball.place])
    mean = chain.whole_mean(ball.center, radius) if moved else chain.mean(found, outer)
    return mean if mean.failure else replace(mean, outside=outside)


@dataclass(frozen=True, eq=False)
class _Around:
    """A centre, the place of a radius that most records have around it, and all their counts."""

    center: Floats
    place: int
    counts: Counts


class _Chain:
    """The chain under way: every choice follows from public numbers and outputs so far."""

    def __init__(self, schedule: Schedule, reader: Reader, counted: bool) -> None:
        self._schedule = schedule
        self._steps = Steps(schedule, reader)
        self._counted = counted

    def learn(self) -> _Around:
        """A centre, and a radius that most records have around it."""
        schedule, steps = self._schedule, self._steps
        best = self._first()
        share = schedule.center_share
        for _ in range(MOST_ROUNDS):
            radius = float(schedule.edges[best.place])
            noise = schedule.noise_place(radius, share)
            if noise >= best.place or not schedule.affords_round(steps.spent, share):
                break
            center, _, _ = steps.mean("center", best.center, radius, share)
            center = np.clip(center, -schedule.magnitude, schedule.magnitude)
            counts = self._counts(center)
            if self._is_all_noise(counts, noise):
                best, share = _Around(center, noise, counts), schedule.crude_share
                continue
            place = self._nearer(counts, noise, best.place)
            if place > best.place:
                break
            best = _Around(center, place, counts)
            nearer = float(schedule.edges[place])
            is_crude = share < schedule.center_share
            far_off = is_crude and schedule.noise(radius, float(share)) >= CLOSE * nearer
            if nearer > SHRUNK * radius and not far_off:
                break
            share = schedule.center_share
        return best

    def outer(self, found: _Around) -> int:
        """The place of the last radius: few records lie outside it."""
        last, counts = self._schedule.last, found.counts
        if self._schedule.pure:
            places = last.pure_places(found.place)
            weights = last.pure_weights(places, found.place)
            share, beyond = last.pure_share, last.beyond_pure
            return self._find("outer radius", counts, places, share, beyond, weights)
        below = found.place + last.far
        if below >= EDGES - 1 or self._is_outer(counts, below):
            places = last.near_places(found.place)
            return self._find("outer radius", counts, places, last.near_share, last.beyond_near)
        # Step by step: a search that halves would overshoot by far more if noise misled it.
        for place in last.far_places(found.place):
            if place == EDGES - 1 or self._is_outer(counts, place):
                break
            below = place
        finer = last.places_between(below, place)
        share = last.far_share(len(finer))
        return self._find("outer radius", counts, finer, share, last.beyond_far)

    def aside(self, found: _Around, outer: int) -> _Around | None:
        """A ball with another centre that holds as much and is smaller, if there seems to be one.

        If what lies between the radii r and t pulls towards u, the ball around c + u·(t − r)/2 of
        radius (t + r)/2 holds the ball (c, r), and reaches as far as t in the direction of u.
        """
        schedule, last = self._schedule, self._schedule.last
        inner, far = float(schedule.edges[found.place]), float(schedule.edges[outer])
        if schedule.pure or far < THICK * inner:
            return None
        pull, scale = self._shell("pull", found.center, inner, far, ASIDE_SHARE)
        length = float(np.linalg.norm(pull))
        if length <= LOPSIDED * scale * math.sqrt(schedule.dim):
            return None
        center = found.center + (far - inner) / 2 * pull / length / schedule.weights
        center = np.clip(center, -schedule.magnitude, schedule.magnitude)
        # The middle of both ends is no place for missing values: they stay where the centre was.
        reader = self._steps.reader.filling(found.center)
        counts = np.array(reader.distance_counts(center, schedule.edges), np.int64)
        places = last.aside_places(schedule.place_of((far + inner) / 2), outer)
        share = last.far_share(len(places))
        place = self._find("outer radius aside", counts, places, share, last.beyond_far)
        if place >= outer:
            return None
        self._steps.reader = reader
        return _Around(center, place, counts)

    def outside(self, ball: _Around) -> OutsideCount:
        """How many records lie outside the last ball, with noise."""
        schedule, steps = self._schedule, self._steps
        share = schedule.outside_share
        steps.transcript.charge(share)
        inside = int(ball.counts[: ball.place + 1].sum())
        split = np.array([inside, int(ball.counts.sum()) - inside])
        found = count_outside(schedule.search(2, share), split)
        steps.transcript.steps.append(Step("outside", share, float(schedule.edges[ball.place])))
        return found

    def between(self, found: _Around) -> Learnt:
        """The mean of records on a line, clipped to an interval that a curve of counts shows."""
        schedule, steps = self._schedule, self._steps
        if not self._counted:
            # The middle of both ends is no place for missing values: they stay at the centre.
            steps.reader = steps.reader.filling(found.center)
        radius = float(schedule.edges[found.place])
        ends = line_interval(steps, float(found.center[0]), radius, schedule.outside_share)
        center = np.array([(ends.lower + ends.upper) / 2])
        half = (ends.upper - ends.lower) / 2 * float(schedule.weights[0])
        mean = self.whole_mean(center, half)
        return mean if mean.failure else replace(mean, outside=ends.outside)

    def whole_mean(self, center: Floats, radius: float) -> Learnt:
        """The mean of the records clipped to a ball."""
        steps = self._steps
        if self._counted:
            ratio = steps.last_ratio(center, radius)
            domain = around(center, radius, self._schedule.weights)
            return ratio_mean(ratio, domain, tuple(steps.transcript.steps))
        value, noise, domain = steps.last_mean(center, radius)
        return Learnt(value, noise, domain, tuple(steps.transcript.steps))

    def mean(self, found: _Around, outer: int) -> Learnt:
        """The mean of the records clipped to the last ball, the outer part of it shrunk."""
        schedule, steps = self._schedule, self._steps
        center, inner, last = found.center, schedule.edges[found.place], schedule.edges[outer]
        share = schedule.shell_share(inner, last, 1 - steps.spent)
        if share is None:
            return self.whole_mean(center, float(last))
        shell, scale = self._shell("shell", center, float(inner), float(last), share)
        ball = around(center, float(last), schedule.weights)
        if self._counted:
            ratio = steps.last_ratio(center, float(inner))
            units = schedule.n / schedule.weights
            beyond = Shell(shell * units, shrunk(shell, scale) * units, scale * units)
            return ratio_mean(ratio, ball, tuple(steps.transcript.steps), beyond)
        value, noise, _ = steps.last_mean(center, float(inner))
        whole = together(noise, scale / schedule.weights)
        return Learnt(
            value + shrunk(shell, scale) / schedule.weights,
            whole,
            ball,
            tuple(steps.transcript.steps),
            unshrunk=value + shell / schedule.weights,
        )

    def _shell(
        self, name: str, center: Floats, inner: float, outer: float, share: Fraction
    ) -> tuple[Floats, float]:
        """The noisy mean of what records have between two radii, and the scale of its noise.

        Both in weighted coordinates.
        """
        schedule, steps = self._schedule, self._steps
        steps.transcript.charge(share)
        recipe = schedule.recipe_in(Ball(outer - inner, schedule.dim), share, np.ones(schedule.dim))
        lattice = recipe.query.lattice
        assert lattice is not None
        noisy = recipe.run(steps.reader.excess(center, inner, lattice), schedule.n)
        steps.transcript.steps.append(Step(name, share, outer))
        value = np.array([float(total / schedule.n) for total in noisy])
        return value, float(recipe.scales.max()) / schedule.n

    def _first(self) -> _Around:
        schedule, center = self._schedule, np.zeros(self._schedule.dim)
        counts, places = self._counts(center), schedule.radius_places
        place = self._find("radius", counts, places, schedule.first_share, schedule.beyond)
        return _Around(center, place, counts)

    def _is_all_noise(self, counts: Counts, noise: int) -> bool:
        """Whether most records are as close to a new centre as its noise lets them be."""
        schedule = self._schedule
        share, beyond = schedule.question_share, schedule.question_beyond
        return share > 0 and self._within("question", counts, noise, share, beyond)

    def _nearer(self, counts: Counts, noise: int, place: int) -> int:
        """The place of a radius that most records have around a new centre."""
        schedule = self._schedule
        places = schedule.nearer_places(noise, place)
        share = schedule.radius_share(len(places))
        return self._find("radius", counts, places, share, schedule.beyond)

    def _counts(self, center: Floats) -> Counts:
        return self._steps.counts(center, self._schedule.edges)

    def _is_outer(self, counts: Counts, place: int) -> bool:
        """Whether few enough records lie beyond a place far outside."""
        last = self._schedule.last
        return self._within("outer question", counts, place, last.each_share, last.beyond_far)

    def _within(self, name: str, counts: Counts, place: int, share: Fraction, beyond: int) -> bool:
        """Whether no more than so many records seem to lie beyond a place, by one comparison."""
        places = np.array([place, EDGES - 1])
        return self._find(name, counts, places, share, beyond) == place

    def _find(
        self,
        name: str,
        counts: Counts,
        places: Places,
        share: Fraction,
        above: int,
        weights: tuple[int, ...] | None = None,
    ) -> int:
        """The place that leaves about so many records outside, and pay for it.

        A single place is no question.
        """
        if len(places) == 1:
            return int(places[0])
        schedule, steps = self._schedule, self._steps
        steps.transcript.charge(share)
        up_to = np.cumsum(counts)[places]
        # Records beyond the last place count there: all of them are in some cell.
        up_to[-1] = counts.sum()
        merged = np.diff(up_to, prepend=0)
        cell = schedule.finder(len(places), share, weights).find(merged, above=above)
        place = int(places[cell])
        steps.transcript.steps.append(Step(name, share, float(schedule.edges[place])))
        return place
