"""Means of records that nobody has bounded in the shuffle model: learn a ball, then average.

    near    the noisy mean of a ball becomes the next centre, counts of distances from the old one
            say whether most people are in the ball, and how far they are; again, until the noise
            of the centre is small beside their distances
    last    a last radius that leaves few people outside
    pull, aside    if people are far outside on one side: a ball whose centre moves towards them
    mean    the mean of the last ball, with all of the promise that is left; what lies between its
            inner and its outer radius is shrunk where it is noise. And how many are outside

Everybody takes part in every round, and rounds share the promise. The three-round estimator of
Huang, Liang and Yi (2021, Theorem 8) made practical; what it learns, and how, is close to what a
trusted curator does (mechanisms/learning/recentring.py), with counts between many cuts at once
instead of searches. docs/proofs/shuffle-chain.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import Floats
from muhat.domains import Reals
from muhat.ellipsoids.smallest import weight_vector
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.sharing import around, short_fraction
from muhat.mechanisms.learning.shrinking import shrunk
from muhat.noise.laws import LAWS
from muhat.noise.spread import Spread
from muhat.privacy import Privacy
from muhat.protocols.encodings.cut_encoding import CutEncoding, Radius
from muhat.protocols.encodings.domain_encoding import DomainEncoding, ShellEncoding
from muhat.protocols.encodings.encoding import Encoding
from muhat.protocols.estimators.cut_counts import CutCounts
from muhat.protocols.estimators.false_messages import NOT_CAUGHT, UNEXPLAINED
from muhat.protocols.estimators.range_spreads import reach as range_reach
from muhat.protocols.means.mean_estimator import (
    UnboundedMean,
    too_few,
    weights_in_reals,
)
from muhat.protocols.means.shuffle_chain_schedule import (
    OUTSIDE_PART,
    PULL_SHARE,
    ShuffleChainSchedule,
)
from muhat.protocols.means.shuffle_chain_state import (
    STAGES,
    ChainState,
    after_aside,
    after_last,
    after_near,
    after_pull,
)
from muhat.protocols.randomizers.allowance import Allowance
from muhat.protocols.randomizers.fragment_randomizer import FragmentRandomizer, PartSums
from muhat.protocols.randomizers.joint_randomizer import JointRandomizer
from muhat.protocols.randomizers.randomizer import Received
from muhat.protocols.roles.model import (
    NORMAL,
    SHUFFLE,
    Model,
    Turnout,
    approximate,
    explained_before,
    spent_before,
)
from muhat.protocols.roles.protocol import MOST_USERS, Protocol
from muhat.release.outside import CONFIDENCE, Outside
from muhat.release.release import Release

_ASKED: dict[str, set[tuple[str, ...]]] = {
    "near": {("domain", "cuts")},
    "last": {("cuts",)},
    "pull": {("shell",), ("shell", "cuts")},
    "aside": {("cuts",)},
    "mean": {("domain", "cuts"), ("domain", "shell", "cuts")},
}
"""The parts that a round has."""


@dataclass(frozen=True)
class ShuffleChain(UnboundedMean):
    """The mean over n people whose records lie anywhere within a generous magnitude."""

    weights: tuple[float, ...] | None = None
    columns: tuple[str, ...] | None = None

    kind: ClassVar[str] = "shuffle-chain"
    model: ClassVar[Model] = SHUFFLE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights is not None:
            weights = weight_vector(self.weights, self.domain.dim)
            self._set("weights", tuple(weights.tolist()))

    @property
    def lengths(self) -> tuple[float, ...]:
        """The weights of distances."""
        return self.weights or (1.0,) * self.domain.dim

    @property
    def schedule(self) -> ShuffleChainSchedule:
        """What rounds may spend, and where they look."""
        promise = approximate(self.privacy)
        return ShuffleChainSchedule(self.magnitude, self.lengths, self.n, promise)

    def first(self, turnout: Turnout) -> Protocol:
        """The first round."""
        state = ChainState.first(self.schedule)
        asks = self._asks(state, Fraction(0), turnout.counted_on)
        return Protocol(self, asks, self.n, turnout.minimum, honest=turnout.honest)

    def check_round(self, protocol: Protocol) -> None:
        """What is asked is about the state that the last round led to: see `Estimator`."""
        joint, state = _joint(protocol), self._state(protocol)
        kinds = tuple(part.encoding.kind for part in joint.parts)
        wrong = kinds not in _ASKED[state.stage]
        wrong |= not len(state.center) == joint.record_dim == self.domain.dim
        wrong |= state.stage == "mean" and _cuts(joint.parts[-1]) != (state.high,)
        radius = (
            state.high if kinds == ("domain", "cuts") and state.stage == "mean" else state.radius
        )
        ball = around(np.array(state.center), radius, np.array(self.lengths))
        encoding = joint.parts[0].encoding
        wrong |= type(encoding) is DomainEncoding and encoding.domain != ball
        if wrong:
            raise InvalidInput("the round asks for something else than what has been learnt.")
        for entry in protocol.learnt:
            _check.one_of("stage", entry["stage"], STAGES)
            _check.count("people", entry["people"], most=MOST_USERS)

    def after(self, protocol: Protocol, received: Received) -> Protocol | Release:
        """The next round, or the mean."""
        joint, state, schedule = _joint(protocol), self._state(protocol), self.schedule
        parts = joint.summed(received)
        honest = all(part.is_explained for part in parts)
        if state.stage == "mean":
            told = () if honest and explained_before(protocol) else (UNEXPLAINED,)
            return self._release(protocol, state, parts, told)
        spent = spent_before(protocol) + joint.share
        following = self._following(schedule, state, parts, spent, protocol.round)
        entry = {
            "stage": state.stage,
            "share": str(joint.share),
            "people": received.users,
            "description": protocol.digest,
            "next": following.to_dict(),
            **({} if honest else {"unexplained": True}),
        }
        asks = self._asks(following, spent, protocol.counted_on)
        return protocol.following(asks, protocol.users, entry)

    def _state(self, protocol: Protocol) -> ChainState:
        """What the round started from."""
        if not protocol.learnt:
            return ChainState.first(self.schedule)
        return ChainState.from_dict(dict(protocol.learnt[-1].get("next") or {}))

    def _following(
        self,
        schedule: ShuffleChainSchedule,
        state: ChainState,
        parts: Sequence[PartSums],
        spent: Fraction,
        rounds: int,
    ) -> ChainState:
        """What the answers of a round lead to."""
        if state.stage in ("last", "aside"):
            after = after_last if state.stage == "last" else after_aside
            return after(schedule, state, CutCounts.of(parts[0]))
        first, people = parts[0], parts[0].people
        if state.stage == "pull":
            noise = first.asked.expected_error(people)
            again = CutCounts.of(parts[1]) if parts[1:] else None
            return after_pull(schedule, state, again, first.mean, noise)
        counts = CutCounts.of(parts[1])
        noise = first.asked.expected_error(people, self.weights)
        return after_near(schedule, state, counts, first.mean, noise, spent, rounds)

    def _asks(self, state: ChainState, spent: Fraction, honest: int) -> JointRandomizer:
        """What everybody is asked in a round."""
        return ChainRounds(self.schedule, self.weights, honest).asked(state, spent)

    def _release(
        self,
        protocol: Protocol,
        state: ChainState,
        parts: Sequence[PartSums],
        told: tuple[str, ...],
    ) -> Release:
        """The mean, with its noise, of the last ball."""
        lengths = np.array(self.lengths)
        users = parts[0].people
        value, covariance = parts[0].mean, parts[0].asked.covariance(users)
        unshrunk = None
        for beyond in parts[1:-1]:
            shell = beyond.mean
            scales: Floats = np.sqrt(np.diag(beyond.asked.covariance(users)))
            unshrunk = value + shell / lengths
            value = value + shrunk(shell, float(scales.max())) / lengths
            covariance = covariance + np.diag((scales / lengths) ** 2)
        return self.release(
            protocol,
            users,
            self._assumptions(protocol),
            (_rounds(protocol), *told),
            value=value,
            mechanism=self.kind,
            domain=around(np.array(state.center), state.high, lengths),
            noise=_normal(covariance),
            certificate=None,
            outside=_outside(parts[-1]),
            unshrunk=unshrunk,
        )

    def _assumptions(self, protocol: Protocol) -> tuple[str, ...]:
        return (
            *self.model.assumed(protocol),
            "errors are about the records clipped to the last ball, which is learnt privately, a "
            "missing value counting as its centre",
            "what lies beyond an inner radius may count with a smaller weight in the value, if it "
            "is noise; intervals are about the mean without that",
            f"values beyond ±{self.domain.magnitude:g} may be clipped to that",
            NOT_CAUGHT,
            NORMAL,
        )


def shuffle_chain(
    domain: Reals,
    *,
    n: int,
    privacy: Privacy,
    weights: ArrayLike | Mapping[str, float] | None = None,
    columns: Sequence[str] | None = None,
    minimum: int | None = None,
    honest: int | None = None,
) -> Protocol:
    """The first round of a mean of records that nobody has bounded: see `shuffle_mean`.

    Four rounds are enough most often, up to three more if people are far outside on one side or
    the magnitude is far too large, and twelve at most. Between a hundredth and a tenth of
    the promise is spent in each but the last, which has all that is left, a quarter at least.
    """
    n = _check.count("n", n, most=MOST_USERS)
    promise, scales = approximate(privacy), weights_in_reals(weights, domain.dim)
    chain = ShuffleChain(domain, promise, n, scales, None if columns is None else tuple(columns))
    if not chain.schedule.is_enough:
        raise too_few(n, chain.schedule.least_n, domain.dim, promise)
    return chain.first(SHUFFLE.turnout(n, minimum, honest))


def _normal(covariance: Floats) -> Spread:
    """The noise of a sum over many people: normal, with this covariance."""
    scales = np.sqrt(np.diag(covariance))
    if np.count_nonzero(covariance) == np.count_nonzero(scales):
        return Spread(LAWS["normal"], len(scales), scales)
    values, vectors = np.linalg.eigh(covariance)
    factor = vectors * np.sqrt(np.maximum(values, 0))
    return Spread(LAWS["normal"], len(scales), scales, factor)


def _joint(protocol: Protocol) -> JointRandomizer:
    """What a round asks, which must be several things at once."""
    if not isinstance(protocol.randomizer, JointRandomizer):
        raise InvalidInput("the round's randomizer is not one of this protocol.")
    return protocol.randomizer


def _cuts(asked: FragmentRandomizer) -> tuple[float, ...]:
    """Where people are counted; nowhere if something else is asked."""
    return asked.encoding.cuts if isinstance(asked.encoding, CutEncoding) else ()


def _outside(part: PartSums) -> Outside:
    """How many people are not in the last ball."""
    counts = CutCounts.of(part)
    reach = float(range_reach(part.asked.noise.law, CONFIDENCE, counts.errors)[-1])
    return Outside.of(counts.people - float(counts.below[-1]), reach, counts.people)


def _rounds(protocol: Protocol) -> str:
    """The rounds and their exact shares of the promise."""
    taken = [f"{entry['stage']} {entry['share']}" for entry in protocol.learnt]
    steps = ", ".join([*taken, f"mean {protocol.randomizer.share}"])
    return f"the rounds and their shares of the promise: {steps}"


@dataclass(frozen=True)
class ChainRounds:
    """Rounds of a schedule; `honest` people at least follow the protocol."""

    schedule: ShuffleChainSchedule
    weights: tuple[float, ...] | None
    honest: int

    def asked(self, state: ChainState, spent: Fraction) -> JointRandomizer:
        """The round that a state leads to, after others have spent that part of the promise."""
        return JointRandomizer(tuple(self._parts(state, spent)))

    def _parts(self, state: ChainState, spent: Fraction) -> list[FragmentRandomizer]:
        schedule, center = self.schedule, state.center
        match state.stage:
            case "near":
                mean = self._mean(center, state.radius, schedule.center_share)
                return [mean, self._near_counts(state)]
            case "last":
                cuts = schedule.last_cuts(state.radius)
                return [self._counts(center, cuts, schedule.last_share)]
            case "pull":
                pull = self._shell(center, state.radius, state.high, PULL_SHARE)
                again = schedule.again_cuts(state.radius, state.high)
                if again is None:
                    return [pull]
                return [pull, self._counts(center, again, schedule.again_share)]
            case "aside":
                assert state.aside is not None
                cuts = schedule.aside_cuts(state.radius, state.high)
                return [self._counts(state.aside, cuts, schedule.aside_share)]
            case _:
                return self._last_mean(state, 1 - spent)

    def _near_counts(self, state: ChainState) -> FragmentRandomizer:
        schedule = self.schedule
        if state.is_first:
            return self._counts(state.center, schedule.first_cuts(), schedule.near_share)
        if state.sharp and state.noise is not None:
            cuts = schedule.sharp_cuts(state.noise, state.radius, state.high)
            return self._counts(state.center, cuts, schedule.last_share)
        cuts = schedule.near_cuts(state.low, state.radius, state.high, state.noise)
        return self._counts(state.center, cuts, schedule.near_share)

    def _last_mean(self, state: ChainState, left: Fraction) -> list[FragmentRandomizer]:
        """With all that is left: the ball within, what lies between it and the last radius, and
        how many people are outside that."""
        for_count = short_fraction(float(left) * OUTSIDE_PART)
        outside = self._counts(state.center, (state.high,), for_count)
        left -= for_count
        share = self.schedule.shell_share(state.radius, state.high, left)
        if share is None:
            return [self._mean(state.center, state.high, left), outside]
        return [
            self._mean(state.center, state.radius, left - share),
            self._shell(state.center, state.radius, state.high, share),
            outside,
        ]

    def _mean(self, center: Sequence[float], radius: float, share: Fraction) -> FragmentRandomizer:
        ball = around(np.array(center), radius, np.array(self.schedule.lengths))
        return self._ask(DomainEncoding(ball, weights=self.weights), share)

    def _shell(
        self, center: tuple[float, ...], inner: float, outer: float, share: Fraction
    ) -> FragmentRandomizer:
        return self._ask(ShellEncoding.between(Radius(center, self.weights), inner, outer), share)

    def _counts(
        self, center: tuple[float, ...], cuts: Sequence[float], share: Fraction
    ) -> FragmentRandomizer:
        return self._ask(CutEncoding(Radius(center, self.weights), tuple(cuts)), share)

    def _ask(self, encoding: Encoding, share: Fraction) -> FragmentRandomizer:
        allowance = Allowance(self.schedule.promise).part(share)
        return FragmentRandomizer.of(encoding, allowance, honest=self.honest, users=self.schedule.n)
