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
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check, privacy
from muhat._words import BALL_OR_BOX, rows
from muhat.domains import Ball, Reals
from muhat.ellipsoids.smallest import weight_vector
from muhat.errors import InvalidInput
from muhat.noise.law import LAWS
from muhat.planning.caution import warn_of_large_delta
from muhat.privacy import Neighbors, Privacy
from muhat.protocols.estimators.own_spread import of_people
from muhat.protocols.means.local_chain_place import ChainStep, Place
from muhat.protocols.means.local_chain_schedule import LocalChainSchedule
from muhat.protocols.means.one_round import (
    FOLLOWED,
    NORMAL,
    column_names,
    mean_randomizer,
    numbered,
    require_magnitude,
    turnout,
)
from muhat.protocols.protocol import MOST_USERS, Protocol, least_users
from muhat.protocols.randomizers.randomizer import Randomizer
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer
from muhat.release.outside import CONFIDENCE, Outside
from muhat.release.release import Release

if TYPE_CHECKING:
    from muhat.protocols.roles.collector import Received


@dataclass(frozen=True)
class LocalChain:
    """The mean over n people whose records lie anywhere within a generous magnitude."""

    domain: Reals
    privacy: Privacy
    n: int
    columns: tuple[str, ...] | None = None

    kind: ClassVar[str] = "local-chain"
    model: ClassVar[str] = "local"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _check.count("n", self.n))
        require_magnitude(self.domain)
        object.__setattr__(self, "columns", column_names(self.columns, self.domain.dim))

    @cached_property
    def schedule(self) -> LocalChainSchedule:
        """Who is asked what."""
        assert self.domain.magnitude is not None
        return LocalChainSchedule(self.domain.dim, self.domain.magnitude, self.n, self.privacy)

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
        least = max(1, -(-minimum * users // self.n))
        return Protocol(self, _asks(schedule, place), users, least)

    def after(self, protocol: Protocol, received: Received) -> Protocol | Release:
        """The next round, or the mean."""
        schedule = self.schedule
        place = Place.from_dict(protocol.learnt[-1]) if protocol.learnt else schedule.first()
        if place.step is ChainStep.MEAN:
            return self._release(protocol, place, received)
        if place.step.is_mean:
            asked = mean_randomizer(protocol.randomizer)
            center = asked.mean(received.nonces, received.payloads)
            found = schedule.centered(place, center, received.users)
        else:
            counts = range_randomizer(protocol).estimate(received.nonces, received.payloads)
            found = schedule.counted(place, counts, _centers(protocol))
        entry = {"step": place.step.value, "people": received.users, **found.to_dict()}
        return protocol.following(_asks(schedule, found), schedule.users(found), entry)

    def _release(self, protocol: Protocol, place: Place, received: Received) -> Release:
        asked, users = mean_randomizer(protocol.randomizer), received.users
        own = of_people(asked, received, place.radius)
        return Release(
            statistic="mean",
            value=asked.mean(received.nonces, received.payloads),
            columns=self.columns or numbered(self.domain.dim),
            mechanism=self.kind,
            privacy=self.privacy,
            neighbors=Neighbors.SUBSTITUTE,
            n=users,
            contributions=1,
            missing="center",
            domain=Ball(place.radius, dim=self.domain.dim, center=np.array(place.center)),
            noise=own.used,
            certificate=None,
            assumptions=(
                *last_group(self.n),
                own.describe(),
                *turnout(protocol, users),
                _rounds(protocol),
            ),
            outside=_outside(protocol, place, users),
            plan_digest=protocol.digest,
            ledger_head=None,
        )

    def describe(self) -> str:
        """What is estimated, in a sentence."""
        return f"the mean of {self.n} people's records, wherever they lie in {self.domain!r}"

    def to_dict(self) -> dict[str, Any]:
        """The description."""
        return {
            "domain": self.domain.to_dict(),
            "privacy": privacy.to_dict(self.privacy),
            "n": self.n,
            "columns": None if self.columns is None else list(self.columns),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The estimator described."""
        return cls(
            Reals.from_fields(fields["domain"]),
            privacy.from_dict(fields["privacy"]),
            fields["n"],
            fields["columns"],
        )


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
    warn_of_large_delta(privacy, n, stacklevel=3)
    require_unweighted(weights, domain.dim)
    chain = LocalChain(domain, privacy, n, None if columns is None else tuple(columns))
    _require_enough(chain.schedule)
    return chain.first(least_users(n, minimum))


def require_unweighted(weights: ArrayLike | Mapping[str, float] | None, dim: int) -> None:
    """Refuse weights that are not all 1: distances are those of the records as they are."""
    if isinstance(weights, Mapping):
        raise InvalidInput(
            "must be numbers in Reals, one a column, not a dict of names", parameter="weights"
        )
    if weights is not None and (weight_vector(weights, dim) != 1).any():
        raise InvalidInput(
            "must be 1 in the local model where records are not bounded; measure the columns "
            "in units in which errors count alike instead",
            parameter="weights",
        )


def range_randomizer(protocol: Protocol) -> RangeRandomizer:
    """The round's randomizer, which must be one of counts."""
    if not isinstance(protocol.randomizer, RangeRandomizer):
        raise InvalidInput("the round's randomizer does not count.")
    return protocol.randomizer


def last_group(n: int) -> tuple[str, ...]:
    """What promise and errors rest on if groups of n people are asked one after the other."""
    return (
        "every device keeps the promise about its own record by itself, and answers one round "
        "only; nobody is trusted",
        "errors are about the records clipped to the last ball, a missing value counting as its "
        "centre; the ball is learnt from people who are not in the mean",
        f"the mean is over those of the {n} people who were asked last; they stand for all, as "
        "errors allow for, if who is asked when was drawn at random",
        FOLLOWED,
        NORMAL,
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
    share, error = place.outside
    reach = LAWS["normal"].quantile(CONFIDENCE, 1)
    return Outside.of(share * people, reach * error * people, people)


def _rounds(protocol: Protocol) -> str:
    """The rounds, and how many people have answered each."""
    steps = ", ".join(f"{entry['step']} {entry['people']}" for entry in protocol.learnt)
    return f"the rounds before the mean, and how many people have answered: {steps}"


def _require_enough(schedule: LocalChainSchedule) -> None:
    if schedule.n < schedule.least_n:
        dimensions = "one column" if schedule.dim == 1 else f"{schedule.dim} columns"
        raise InvalidInput(
            rows(schedule.n),
            f" is too small for {dimensions} and {schedule.privacy.describe()}: "
            f"at least {schedule.least_n} people are needed to learn where their records lie.",
            hint=("Spend more, or bound the records (", BALL_OR_BOX, ")."),
        )
