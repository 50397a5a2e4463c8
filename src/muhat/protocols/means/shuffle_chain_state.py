"""What a round of the shuffle chain starts from, and what follows from its answers.

    near    the mean of a ball, and counts of distances from its centre
    last    counts of distances, finely: the last radius
    pull    where people beyond a ball lie, and whether they do
    aside   counts around a centre that was moved towards them
    mean    the mean of the last ball

All of it is public: functions of what earlier rounds have told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np

from muhat import _check
from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.protocols.estimators.cut_counts import CutCounts
from muhat.protocols.means.shuffle_chain_schedule import MANY_DIM, MOST_NEAR, ShuffleChainSchedule

STAGES = ("near", "last", "pull", "aside", "mean")

MOST = 0.8
"""A radius is one that this part of the people does not exceed."""

INSIDE = 0.6
"""A mean of a ball is a new centre if this part of the people seems to be in it."""

CLEAR, DEVIATIONS = 0.25, 5.0
"""A centre is good enough if this part of the people are farther from it than its noise explains,
and so many deviations of their count."""

SHRUNK = 0.75
"""A new centre is worth a round if its noise reaches no farther than this part of the radius."""

VISIBLE = 1.3
"""If people are so much farther off than a centre's noise explains, their own spread shows."""

MARGIN = 1.1
"""A ball is so much larger than what it is meant for."""

THICK, LOPSIDED = 2.5, 2.0
"""A centre may move aside if the last radius is so many times the radius, and what lies between
pulls it by so many times its noise."""

GAINED = 0.97
"""It does if that makes the last radius smaller by this factor."""

REACH, EIGHTY = 2.326, 0.842
"""Normal deviations of 99 % and of 80 %."""


@dataclass(frozen=True)
class ChainState(Plain):
    """What the next round is about.

    Attributes:
        stage: one of `STAGES`.
        center: where distances are measured from.
        radius: of the ball whose mean is asked for; later, one that most people have.
        low: where cuts begin, while centres are sought.
        high: where they end; later, the last radius.
        noise: of the centre, root mean square; None if nobody has looked yet.
        sharp: whether the counts are good enough for the last radius.
        close: a last radius for the case that nobody is far outside.
        aside: a centre moved towards the people outside.
    """

    stage: str
    center: tuple[float, ...]
    radius: float
    low: float
    high: float
    noise: float | None = None
    sharp: bool = False
    close: float | None = None
    aside: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _check.one_of("stage", self.stage, STAGES)
        for name in ("radius", "high"):
            object.__setattr__(self, name, _check.positive(name, getattr(self, name)))
        object.__setattr__(self, "low", _check.real("low", self.low))
        for point in (self.center, self.aside or ()):
            for value in point:
                _check.real("a coordinate of a centre", value)

    @classmethod
    def first(cls, schedule: ShuffleChainSchedule) -> Self:
        """Around 0, all that the magnitude allows."""
        center, largest = (0.0,) * schedule.dim, schedule.largest
        return cls("near", center, largest / 2, 0.0, largest)

    @property
    def is_first(self) -> bool:
        """Whether nothing is known yet."""
        return self.low == 0 and self.stage == "near"


def after_near(
    schedule: ShuffleChainSchedule,
    state: ChainState,
    counts: CutCounts,
    mean: Floats,
    noise: float,
    spent: Fraction,
    rounds: int,
) -> ChainState:
    """Another centre, another ball around the same one, or on to the last radius.

    `noise` is the root mean square noise of the mean; `spent` and `rounds` are those so far.
    """
    radius = counts.value_beyond((1 - MOST) * counts.people)
    if state.noise is not None and _is_clear(counts, schedule.clear * state.noise):
        return _to_last(schedule, state, counts, radius)
    if rounds >= MOST_NEAR or not schedule.affords_near(spent):
        return _to_last(schedule, state, counts, radius)
    reach = schedule.reach(REACH) * noise
    if _within(counts, state.radius) >= INSIDE * counts.people and reach < SHRUNK * radius:
        center = np.clip(mean, -schedule.magnitude, schedule.magnitude)
        alone = state.noise is None
        sharp = alone or radius >= VISIBLE * schedule.reach(EIGHTY) * (state.noise or 0.0)
        high = MARGIN * radius if sharp else max(4 * reach, 2 * radius)
        ball = min(MARGIN * reach, schedule.largest)
        return ChainState("near", tuple(center.tolist()), ball, noise / 2, high, noise, sharp)
    if 0.9 * state.radius <= radius <= state.radius:
        return _to_last(schedule, state, counts, radius)
    ball = min(MARGIN * radius, schedule.largest)
    return replace(state, radius=ball, low=radius / 8, high=4 * radius, sharp=False)


def after_last(schedule: ShuffleChainSchedule, state: ChainState, counts: CutCounts) -> ChainState:
    """The last radius, and whether there is more to find out about it."""
    return _chosen(schedule, state, counts, state.radius)


def after_pull(
    schedule: ShuffleChainSchedule,
    state: ChainState,
    counts: CutCounts | None,
    pull: Floats,
    noise: float,
) -> ChainState:
    """A centre moved aside, to be tried, or the mean.

    `pull` is the mean of what lies beyond the radius, in weighted coordinates, and `noise` its
    root mean square noise.
    """
    outer = state.high
    if counts is not None:
        outer = _first(counts, np.maximum(schedule.group / 2, 1.5 * counts.errors))
        if outer <= counts.cuts[0] and schedule.dim >= MANY_DIM and state.close is not None:
            outer = state.close
    state = replace(state, high=outer)
    length = float(np.linalg.norm(pull))
    if outer < THICK * state.radius or length <= LOPSIDED * noise:
        return replace(state, stage="mean")
    step = (outer - state.radius) / 2 * pull / length / np.array(schedule.lengths)
    moved = np.clip(np.array(state.center) + step, -schedule.magnitude, schedule.magnitude)
    return replace(state, stage="aside", aside=tuple(moved.tolist()))


def after_aside(schedule: ShuffleChainSchedule, state: ChainState, counts: CutCounts) -> ChainState:
    """The ball around the moved centre, if it is smaller, else the one before."""
    assert state.aside is not None
    outer = _first(counts, np.maximum(schedule.group, 2 * counts.errors))
    if outer >= GAINED * state.high:
        return replace(state, stage="mean", aside=None)
    return ChainState("mean", state.aside, outer, 0.0, outer, state.noise)


def _to_last(
    schedule: ShuffleChainSchedule, state: ChainState, counts: CutCounts, radius: float
) -> ChainState:
    """To the choice of the last radius, by these counts if they are good enough."""
    if state.sharp:
        return _chosen(schedule, state, counts, radius)
    return replace(state, stage="last", radius=radius, sharp=True)


def _chosen(
    schedule: ShuffleChainSchedule, state: ChainState, counts: CutCounts, radius: float
) -> ChainState:
    """Close by, few enough people outside; far outside, if a group of them seems to be there."""
    errors, beyond = counts.errors, counts.beyond
    edge = min(int(np.searchsorted(counts.cuts, 0.999 * schedule.far * radius)), len(errors) - 1)
    few = max(schedule.outside, 2 * float(np.median(errors)))
    close = counts.value_beyond(min(few, counts.people / 2))
    close = min(max(close, 0.9 * radius), float(counts.cuts[edge]))
    groups = np.maximum(schedule.group, schedule.deviations * errors)
    outer = close
    if beyond[edge] > groups[edge]:
        outer = _first(counts, groups, edge + 1)
    stage = "pull" if outer >= THICK * radius else "mean"
    return replace(state, stage=stage, radius=radius, high=outer, close=close, sharp=False)


def _first(counts: CutCounts, few: Floats, start: int = 0) -> float:
    """The first cut that so few people exceed, or the last one."""
    enough = np.flatnonzero(counts.beyond[start:] <= few[start:])
    place = start + int(enough[0]) if len(enough) else len(counts.cuts) - 1
    return float(counts.cuts[min(place, len(counts.cuts) - 1)])


def _is_clear(counts: CutCounts, mark: float) -> bool:
    """Whether enough people are farther away than this, which is one of the cuts."""
    place = int(np.searchsorted(counts.cuts, mark * (1 - 1e-9)))
    if place == len(counts.cuts):
        return False
    needed = max(CLEAR * counts.people, DEVIATIONS * float(counts.errors[place]))
    return bool(counts.beyond[place] >= needed)


def _within(counts: CutCounts, radius: float) -> float:
    """How many people seem to have at most this distance, which is one of the cuts."""
    place = min(int(np.searchsorted(counts.cuts, radius)), len(counts.cuts) - 1)
    return float(counts.monotone[place])
