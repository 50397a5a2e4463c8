"""Means of records that nobody has bounded in the local model: learn a ball, then average.

    first radius    how far people are from 0, on all scales
    center          the noisy mean of the ball becomes the next centre
    radius          how far people are from it; again, until the noise of the centre is small
                    beside the radius, or the radius stays
    far outside     whether people lie far outside of it; if so, a wide radius, on all scales
    last center     a better one, by more people
    last radius     the one with the least error, what clipping takes and noise together
    outside         how many are not in the last ball
    mean            the mean of the last ball, by everybody who has not been asked yet

Every round asks another group, so everybody is asked once and has the whole promise; a ball is
learnt from other people's messages alone. docs/proofs/local-chain.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat.domains import Ball, Reals
from muhat.errors import InvalidInput
from muhat.noise.laws import LAWS
from muhat.privacy import Privacy
from muhat.protocols.encodings.range_cells import Distance
from muhat.protocols.estimators.false_messages import LEARNT
from muhat.protocols.estimators.own_spread import of_people
from muhat.protocols.estimators.range_counts import range_counts
from muhat.protocols.means.local_chain_place import ChainStep, Place
from muhat.protocols.means.local_chain_schedule import LocalChainSchedule
from muhat.protocols.means.mean_estimator import (
    UnboundedMean,
    too_few,
    weights_in_reals,
)
from muhat.protocols.randomizers.noise_randomizer import NoiseRandomizer
from muhat.protocols.randomizers.pure_randomizer import PureRandomizer
from muhat.protocols.randomizers.randomizer import MeanRandomizer, Randomizer, Received
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer
from muhat.protocols.roles.model import LOCAL, NORMAL, Model
from muhat.protocols.roles.protocol import MOST_USERS, Protocol
from muhat.release.outside import CONFIDENCE, Outside
from muhat.release.release import Release


@dataclass(frozen=True)
class GroupedMean(UnboundedMean):
    """One that asks another group in every round, and averages the last one."""

    model: ClassVar[Model] = LOCAL

    def group_minimum(self, minimum: int, users: int) -> int:
        """A group's part of the minimum of all n people."""
        return max(1, -(-minimum * users // self.n))

    def require_ball(
        self, protocol: Protocol, center: Sequence[float], radius: float
    ) -> MeanRandomizer:
        """What a round asks, which must be for the mean of records clipped to this ball."""
        asked, ball = protocol.randomizer, self._ball(center, radius)
        if not isinstance(asked, PureRandomizer | NoiseRandomizer) or asked.domain != ball:
            raise InvalidInput("the round asks for something else than what has been learnt.")
        return asked

    def require_distances(self, protocol: Protocol, center: tuple[float, ...]) -> RangeRandomizer:
        """What a round asks, which must be how far people are from this centre."""
        asked = protocol.randomizer
        if not isinstance(asked, RangeRandomizer) or asked.look != Distance(center):
            raise InvalidInput("the round asks for something else than what has been learnt.")
        return asked

    def _ball(self, center: Sequence[float], radius: float) -> Ball:
        return Ball(radius, dim=self.domain.dim, center=np.array(center))

    def of_last_group(
        self,
        protocol: Protocol,
        received: Received,
        center: Sequence[float],
        radius: float,
        **found: Any,
    ) -> Release:
        """The mean of the last group, clipped to a ball that others have found."""
        asked = self.require_ball(protocol, center, radius)
        own = of_people(asked, received, radius)
        assumptions = (
            "every device keeps the promise about its own record by itself, and answers one round "
            "only; nobody is trusted",
            "errors are about the records clipped to the last ball, a missing value counting as "
            "its centre; the ball is learnt from people who are not in the mean",
            f"the mean is over those of the {self.n} people who were asked last; they stand for "
            "all, as errors allow for, if who is asked when was drawn at random",
            self.false_answers(protocol, received.users),
            LEARNT,
            NORMAL,
            own.describe(),
        )
        return self.release(
            protocol,
            received.users,
            assumptions,
            value=asked.mean(received.nonces, received.payloads),
            mechanism=self.kind,
            domain=self._ball(center, radius),
            noise=own.used,
            certificate=None,
            **found,
        )


@dataclass(frozen=True)
class LocalChain(GroupedMean):
    """The mean over n people, by a ball that is looked for step by step."""

    columns: tuple[str, ...] | None = None

    kind: ClassVar[str] = "local-chain"

    @cached_property
    def schedule(self) -> LocalChainSchedule:
        """Who is asked what."""
        return LocalChainSchedule(self.domain.dim, self.magnitude, self.n, self.privacy)

    def error_at(self, radius: float) -> float:
        """The root mean square ℓ₂ noise if nearly all records lie within this radius.

        Around their centre. The common path is assumed, and that the last ball has about this
        radius; what clipping takes from the records outside it comes on top.
        """
        schedule = self.schedule
        return schedule.noise(_check.positive("radius", radius), schedule.likely_users)

    def first(self, minimum: int) -> Protocol:
        """The first round; `minimum` is of all n people, and every group has its part of it."""
        schedule = self.schedule
        place = schedule.first()
        users = schedule.users(place)
        return Protocol(self, _asks(schedule, place), users, self.group_minimum(minimum, users))

    def check_round(self, protocol: Protocol) -> None:
        """What is asked is about the place that was found last: see `Estimator`."""
        place = self._place(protocol)
        for entry in protocol.learnt:
            _check.one_of("step", entry["step"], list(ChainStep))
            _check.count("people", entry["people"], most=MOST_USERS)
        if place.step.is_mean:
            self.require_ball(protocol, place.center, place.radius)
        else:
            self.require_distances(protocol, place.center)

    def _place(self, protocol: Protocol) -> Place:
        """What the round started from."""
        if not protocol.learnt:
            return self.schedule.first()
        told = protocol.learnt[-1]
        return Place.from_dict({key: told[key] for key in told.keys() - {"step", "people"}})

    def after(self, protocol: Protocol, received: Received) -> Protocol | Release:
        """The next round, or the mean."""
        schedule, place = self.schedule, self._place(protocol)
        if place.step is ChainStep.MEAN:
            return self.of_last_group(
                protocol,
                received,
                place.center,
                place.radius,
                told=(_rounds(protocol),),
                outside=_outside(protocol, place, received.users),
            )
        if place.step.is_mean:
            asked = self.require_ball(protocol, place.center, place.radius)
            center = asked.mean(received.nonces, received.payloads)
            found = schedule.centered(place, center, received.users)
        else:
            counts = range_counts(protocol.randomizer, received.nonces, received.payloads)
            found = schedule.counted(place, counts, _centers(protocol))
        entry = {"step": place.step.value, "people": received.users, **found.to_dict()}
        return protocol.following(_asks(schedule, found), schedule.users(found), entry)


def local_chain(
    domain: Reals,
    *,
    n: int,
    privacy: Privacy,
    weights: ArrayLike | Mapping[str, float] | None = None,
    columns: Sequence[str] | None = None,
    minimum: int | None = None,
) -> Protocol:
    """The first round of a mean of records that nobody has bounded: see `local_mean`.

    Eight to ten rounds, two more for every factor of five that the magnitude is too large, if
    people are far from 0. Every round asks people who have not been asked before.

    >>> import muhat as mh
    >>> protocol = local_chain(mh.Reals(2, 1e3), n=100_000, privacy=mh.PureDP(epsilon=1.0))
    >>> protocol.users, protocol.randomizer.kind
    (1370, 'ranges')
    """
    n = _check.count("n", n, most=MOST_USERS)
    require_unweighted(weights, domain.dim)
    chain = LocalChain(domain, privacy, n, None if columns is None else tuple(columns))
    if n < chain.schedule.least_n:
        raise too_few(n, chain.schedule.least_n, domain.dim, privacy)
    return chain.first(LOCAL.least_users(n, minimum))


def require_unweighted(weights: ArrayLike | Mapping[str, float] | None, dim: int) -> None:
    """Refuse weights that are not all 1: distances are those of the records as they are."""
    if weights_in_reals(weights, dim) is not None:
        raise InvalidInput(
            "must be 1 in the local model where records are not bounded; measure the columns "
            "in units in which errors count alike instead",
            parameter="weights",
        )


def _asks(schedule: LocalChainSchedule, place: Place) -> Randomizer:
    if place.step.is_mean:
        return schedule.ball(place.center, place.radius)
    return schedule.distances(place)


def _centers(protocol: Protocol) -> int:
    """How many centres earlier rounds have tried."""
    return sum(entry["step"] == ChainStep.CENTER for entry in protocol.learnt)


def _outside(protocol: Protocol, place: Place, users: int) -> Outside | None:
    """How many of all who have answered are not in the last ball."""
    if place.outside is None:
        return None
    people = sum(entry["people"] for entry in protocol.learnt) + users
    part, error = place.outside
    reach = LAWS["normal"].quantile(CONFIDENCE, 1)
    return Outside.of(part * people, reach * error * people, people)


def _rounds(protocol: Protocol) -> str:
    """The rounds, and how many people have answered each."""
    steps = ", ".join(f"{entry['step']} {entry['people']}" for entry in protocol.learnt)
    return f"the rounds before the mean, and how many people have answered: {steps}"
