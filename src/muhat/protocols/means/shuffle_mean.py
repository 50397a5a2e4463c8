"""The mean of records of a known domain in the shuffle model, in one round.

Every device splits its record, on a grid and with its part of the noise, into shares that are
mixed with everybody's: the sum has the noise of a trusted curator. Or it sends a single message of
the local model, which may say more where it hides in a crowd. docs/proofs/shuffle-sums.md,
docs/proofs/amplification.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from muhat import bounds
from muhat._words import APPROXIMATE
from muhat.bounds import LowerBound
from muhat.domains import Domain
from muhat.errors import InvalidInput
from muhat.planning.task import Task
from muhat.privacy import ApproxDP, Privacy, with_delta
from muhat.privacy.amplification import local_epsilon
from muhat.protocols.means.one_round import (
    CLIPPED,
    FOLLOWED,
    OneRoundMean,
    mean_randomizer,
    weighted_error,
)
from muhat.protocols.protocol import Protocol, least_users
from muhat.protocols.randomizers.allowance import Allowance
from muhat.protocols.randomizers.cap_choice import best_cap
from muhat.protocols.randomizers.cap_randomizer import CapRandomizer
from muhat.protocols.randomizers.share_randomizer import ShareRandomizer

HONEST_SHARE = 0.9
"""Of the planned users, so many must answer, and the noise counts on them."""

SPARED = 1 - 1e-6
"""Of a single message's ε: devices check the promise again, and round upwards."""


@dataclass(frozen=True)
class ShuffleMean(OneRoundMean):
    """The mean over n people, whose devices trust the shuffler to mix."""

    kind: ClassVar[str] = "shuffle-mean"
    model: ClassVar[str] = "shuffle"

    def lower_bounds(self, shape: Domain, users: int) -> tuple[LowerBound, ...]:
        """What not even a trusted curator can beat."""
        return bounds.unbiased(shape, n=users, privacy=self.privacy, p=self.p)

    def assumptions(self) -> tuple[str, ...]:
        """What the promise and the errors rest on."""
        return (*TRUSTED, CLIPPED, FOLLOWED, ADDED)


ADDED = (
    "intervals treat the sum of many people's independent noise as normal, or as Laplace noise "
    "where that is what shares of it add up to in every coordinate"
)


TRUSTED = (
    "the shuffler mixes all messages, hands them on once and does not work with the server",
    "at least as many people as the stated minimum follow the protocol and keep their shares to "
    "themselves",
)


def approximate(promise: Privacy) -> ApproxDP:
    """The promise of a protocol with a shuffler."""
    found = with_delta(promise)
    if found is not None:
        return found
    raise InvalidInput(
        f"the shuffle model keeps promises (epsilon, delta), not {promise.describe()}: some delta "
        "is spent on the mixing.",
        hint=("Use ", APPROXIMATE, ", or the local model."),
    )


def shuffle_protocol(
    task: Task, minimum: int | None = None, most_bytes: int | None = None
) -> Protocol:
    """The protocol of the least error of those whose devices send at most so many bytes.

    Shares have the error of a trusted curator; a single message that hides in the crowd is short.
    """
    estimator, promise = ShuffleMean.of(task), approximate(task.privacy)
    least = least_users(estimator.n, minimum, HONEST_SHARE)
    routes, refusals = [], []
    for route in (_shares, _single_message):
        try:
            randomizer = route(estimator, promise, least)
            routes.append(Protocol(estimator, randomizer, estimator.n, least))
        except InvalidInput as refusal:
            refusals.append(refusal)
    if not routes:
        raise refusals[0]
    cheap = [each for each in routes if most_bytes is None or each.bytes_per_user <= most_bytes]
    if not cheap:
        needed = min(each.bytes_per_user for each in routes)
        raise InvalidInput(
            f"must be at least {needed}, the shortest message",
            parameter="most_bytes",
            value=str(most_bytes),
        )
    weights, n = estimator.weights, estimator.n
    return min(cheap, key=lambda each: weighted_error(mean_randomizer(each.randomizer), weights, n))


def _shares(estimator: ShuffleMean, promise: ApproxDP, least: int) -> ShareRandomizer:
    return ShareRandomizer.of_domain(
        estimator.domain,
        Allowance(promise),
        honest=least,
        users=estimator.n,
        p=estimator.p,
        weights=estimator.weights,
    )


def _single_message(estimator: ShuffleMean, promise: ApproxDP, least: int) -> CapRandomizer:
    """The local randomizer that is as loud as the crowd allows. docs/proofs/amplification.md."""
    alone = _cap(estimator, promise.epsilon)

    def share(epsilon: float) -> Fraction:
        codebook, cap = best_cap(alone.codebook.dim, epsilon)
        return Fraction(cap, codebook.size)

    return _cap(estimator, local_epsilon(promise, least, share=share) * SPARED)


def _cap(estimator: ShuffleMean, epsilon: float) -> CapRandomizer:
    return CapRandomizer.of(estimator.domain, epsilon, p=estimator.p, weights=estimator.weights)
