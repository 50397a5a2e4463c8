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
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from muhat import _check, privacy
from muhat._arrays import Floats
from muhat._words import BALL_OR_BOX, rows
from muhat.domains import Reals
from muhat.ellipsoids.smallest import weight_vector
from muhat.errors import InvalidInput
from muhat.mechanisms.learning.sharing import around
from muhat.mechanisms.learning.shrinking import shrunk
from muhat.planning.caution import warn_of_large_delta
from muhat.privacy import Neighbors, Privacy
from muhat.protocols.encodings.cut_encoding import CutEncoding
from muhat.protocols.estimators.cut_counts import CutCounts
from muhat.protocols.estimators.range_spreads import reach as range_reach
from muhat.protocols.means.one_round import (
    FOLLOWED,
    NORMAL,
    column_names,
    normal_spread,
    numbered,
    require_magnitude,
    turnout,
    weighted_error,
)
from muhat.protocols.means.shuffle_chain_rounds import ChainRounds
from muhat.protocols.means.shuffle_chain_schedule import ShuffleChainSchedule
from muhat.protocols.means.shuffle_chain_state import (
    ChainState,
    after_aside,
    after_last,
    after_near,
    after_pull,
)
from muhat.protocols.means.shuffle_mean import HONEST_SHARE, TRUSTED, approximate
from muhat.protocols.protocol import MOST_USERS, Protocol, least_users
from muhat.protocols.randomizers.aims import read_numbers
from muhat.protocols.randomizers.joint_randomizer import JointRandomizer
from muhat.protocols.randomizers.randomizer import Bytes
from muhat.protocols.randomizers.share_randomizer import ShareRandomizer
from muhat.release.outside import CONFIDENCE, Outside
from muhat.release.release import Release

if TYPE_CHECKING:
    from muhat.protocols.roles.collector import Received

Parts = list[tuple[ShareRandomizer, Bytes]]

_ASKED: dict[str, set[tuple[str, ...]]] = {
    "near": {("domain", "cuts")},
    "last": {("cuts",)},
    "pull": {("shell",), ("shell", "cuts")},
    "aside": {("cuts",)},
    "mean": {("domain", "cuts"), ("domain", "shell", "cuts")},
}
"""The parts that a round has."""


@dataclass(frozen=True)
class ShuffleChain:
    """The mean over n people whose records lie anywhere within a generous magnitude."""

    domain: Reals
    privacy: Privacy
    n: int
    weights: tuple[float, ...] | None = None
    columns: tuple[str, ...] | None = None

    kind: ClassVar[str] = "shuffle-chain"
    model: ClassVar[str] = "shuffle"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _check.count("n", self.n))
        approximate(self.privacy)
        require_magnitude(self.domain)
        if self.weights is not None:
            weights = weight_vector(self.weights, self.domain.dim)
            object.__setattr__(self, "weights", tuple(weights.tolist()))
        object.__setattr__(self, "columns", column_names(self.columns, self.domain.dim))

    @property
    def lengths(self) -> tuple[float, ...]:
        """The weights of distances."""
        return self.weights or (1.0,) * self.domain.dim

    @property
    def schedule(self) -> ShuffleChainSchedule:
        """What rounds may spend, and where they look."""
        assert self.domain.magnitude is not None
        promise = approximate(self.privacy)
        return ShuffleChainSchedule(self.domain.magnitude, self.lengths, self.n, promise)

    def first(self, minimum: int) -> Protocol:
        """The first round."""
        state = ChainState.first(self.schedule)
        return Protocol(self, self._asks(state, Fraction(0), minimum), self.n, minimum)

    def after(self, protocol: Protocol, received: Received) -> Protocol | Release:
        """The next round, or the mean."""
        joint = protocol.randomizer
        if not isinstance(joint, JointRandomizer):
            raise InvalidInput("the round's randomizer is not one of this protocol.")
        schedule, state = self.schedule, self._state(protocol)
        parts = list(joint.split(received.payloads))
        kinds = tuple(part.encoding.kind for part in joint.parts)
        ends = state.stage == "mean" and _cuts(joint.parts[-1]) != (state.high,)
        if kinds not in _ASKED[state.stage] or len(state.center) != joint.record_dim or ends:
            raise InvalidInput("the round asks for something else than what has been learnt.")
        if state.stage == "mean":
            return self._release(protocol, state, parts, received.users)
        spent = _spent(protocol)
        following = self._following(schedule, state, parts, spent, protocol.round)
        entry = {
            "stage": state.stage,
            "share": str(joint.share),
            "people": received.users,
            "description": protocol.digest,
            "next": following.to_dict(),
        }
        asks = self._asks(following, spent, protocol.minimum)
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
        parts: Parts,
        spent: Fraction,
        rounds: int,
    ) -> ChainState:
        """What the answers of a round lead to."""
        if state.stage in ("last", "aside"):
            after = after_last if state.stage == "last" else after_aside
            return after(schedule, state, CutCounts.of(*parts[0]))
        asked, payloads = parts[0]
        value = asked.mean_of(asked.totals(payloads), len(payloads))
        if state.stage == "pull":
            noise = asked.expected_error(len(payloads))
            again = CutCounts.of(*parts[1]) if parts[1:] else None
            return after_pull(schedule, state, again, value, noise)
        counts = CutCounts.of(*parts[1])
        noise = weighted_error(asked, self.weights, len(payloads))
        return after_near(schedule, state, counts, value, noise, spent, rounds)

    def _asks(self, state: ChainState, spent: Fraction, honest: int) -> JointRandomizer:
        """What everybody is asked in a round."""
        return ChainRounds(self.schedule, self.weights, honest).asked(state, spent)

    def _release(self, protocol: Protocol, state: ChainState, parts: Parts, users: int) -> Release:
        """The mean, with its noise, of the last ball."""
        lengths = np.array(self.lengths)
        asked, payloads = parts[0]
        value, covariance = asked.mean_of(asked.totals(payloads), users), asked.covariance(users)
        unshrunk = None
        for beyond, shares in parts[1:-1]:
            shell = beyond.mean_of(beyond.totals(shares), users)
            scales: Floats = np.sqrt(np.diag(beyond.covariance(users)))
            unshrunk = value + shell / lengths
            value = value + shrunk(shell, float(scales.max())) / lengths
            covariance = covariance + np.diag((scales / lengths) ** 2)
        return Release(
            statistic="mean",
            value=value,
            columns=self.columns or numbered(self.domain.dim),
            mechanism=self.kind,
            privacy=self.privacy,
            neighbors=Neighbors.SUBSTITUTE,
            n=users,
            contributions=1,
            missing="center",
            domain=around(np.array(state.center), state.high, lengths),
            noise=normal_spread(covariance),
            certificate=None,
            assumptions=(*self._assumptions(), *turnout(protocol, users), _rounds(protocol)),
            plan_digest=protocol.digest,
            ledger_head=None,
            outside=_outside(*parts[-1]),
            unshrunk=unshrunk,
        )

    def _assumptions(self) -> tuple[str, ...]:
        return (
            *TRUSTED,
            "errors are about the records clipped to the last ball, which is learnt privately, a "
            "missing value counting as its centre",
            "what lies beyond an inner radius may count with a smaller weight in the value, if it "
            "is noise; intervals are about the mean without that",
            f"values beyond ±{self.domain.magnitude:g} may be clipped to that",
            FOLLOWED,
            NORMAL,
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
            "weights": None if self.weights is None else list(self.weights),
            "columns": None if self.columns is None else list(self.columns),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The estimator described."""
        return cls(
            Reals.from_fields(fields["domain"]),
            privacy.from_dict(fields["privacy"]),
            fields["n"],
            read_numbers(fields["weights"]),
            fields["columns"],
        )


def shuffle_chain(
    domain: Reals,
    *,
    n: int,
    privacy: Privacy,
    weights: ArrayLike | Mapping[str, float] | None = None,
    columns: Sequence[str] | None = None,
    minimum: int | None = None,
) -> Protocol:
    """The first round of a mean of records that nobody has bounded: see `shuffle_mean`.

    Four rounds are enough most often, up to three more if people are far outside on one side or
    the magnitude is far too large, and twelve at most. Between a hundredth and a tenth of
    the promise is spent in each but the last, which has all that is left, a quarter at least.
    """
    n = _check.count("n", n, most=MOST_USERS)
    promise = approximate(privacy)
    warn_of_large_delta(promise, n, stacklevel=3)
    if isinstance(weights, Mapping):
        raise InvalidInput(
            "must be numbers in Reals, one a column, not a dict of names", parameter="weights"
        )
    scales = None if weights is None else tuple(weight_vector(weights, domain.dim).tolist())
    plain = scales is None or all(scale == 1 for scale in scales)
    names = None if columns is None else tuple(columns)
    chain = ShuffleChain(domain, promise, n, None if plain else scales, names)
    _require_enough(chain.schedule)
    return chain.first(least_users(n, minimum, HONEST_SHARE))


def _require_enough(schedule: ShuffleChainSchedule) -> None:
    if not schedule.is_enough:
        dimensions = "one column" if schedule.dim == 1 else f"{schedule.dim} columns"
        raise InvalidInput(
            rows(schedule.n),
            f" is too small for {dimensions} and {schedule.promise.describe()}: "
            f"at least {schedule.least_n} people are needed to learn where their records lie.",
            hint=("Spend more, or bound the records (", BALL_OR_BOX, ")."),
        )


def _spent(protocol: Protocol) -> Fraction:
    """The shares of the promise of all rounds up to this one, which `Protocol` has checked."""
    joint = protocol.randomizer
    assert isinstance(joint, JointRandomizer)
    before = sum((Fraction(entry["share"]) for entry in protocol.learnt), Fraction(0))
    return before + joint.share


def _cuts(asked: ShareRandomizer) -> tuple[float, ...]:
    """Where people are counted; nowhere if something else is asked."""
    return asked.encoding.cuts if isinstance(asked.encoding, CutEncoding) else ()


def _outside(asked: ShareRandomizer, payloads: Bytes) -> Outside:
    """How many people are not in the last ball."""
    counts = CutCounts.of(asked, payloads)
    reach = float(range_reach(asked.noise.law, CONFIDENCE, counts.errors)[-1])
    return Outside.of(counts.people - float(counts.below[-1]), reach, counts.people)


def _rounds(protocol: Protocol) -> str:
    """The rounds and their exact shares of the promise."""
    joint = protocol.randomizer
    assert isinstance(joint, JointRandomizer)
    taken = [f"{entry['stage']} {entry['share']}" for entry in protocol.learnt]
    steps = ", ".join([*taken, f"mean {joint.share}"])
    return f"the rounds and their shares of the promise: {steps}"
