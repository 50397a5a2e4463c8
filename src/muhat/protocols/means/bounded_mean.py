"""The mean of records of a known domain, in one round.

local     every device sends one message, private as it stands. docs/proofs/local.md
shuffle   every device splits its record, on a grid and with its part of the noise, into
          fragments that are mixed with everybody's: the sum has the noise of a trusted
          curator. Or it sends a single message of the local model, which may say more where
          it hides in a crowd. docs/proofs/shuffle-sums.md, docs/proofs/amplification.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from muhat import _check
from muhat.bounds.line_messages import LEAST_EPSILON
from muhat.domains import Domain
from muhat.ellipsoids.smallest import weight_vector
from muhat.errors import InvalidInput
from muhat.planning.task import Task
from muhat.privacy import Privacy, pure_within
from muhat.privacy.amplification import local_epsilon
from muhat.protocols.encodings.corners import Corners
from muhat.protocols.encodings.domain_encoding import DomainEncoding
from muhat.protocols.encodings.record_numbers import AIMS
from muhat.protocols.estimators.false_messages import (
    OUTSIDE,
    is_outside,
    moved_mean,
    not_caught,
)
from muhat.protocols.estimators.own_spread import of_records
from muhat.protocols.means.mean_estimator import (
    CLIPPED,
    MeanEstimator,
    unlike,
)
from muhat.protocols.randomizers.allowance import Allowance
from muhat.protocols.randomizers.cap_randomizer import CapRandomizer
from muhat.protocols.randomizers.fragment_randomizer import FragmentRandomizer
from muhat.protocols.randomizers.gaussian_randomizer import GaussianRandomizer
from muhat.protocols.randomizers.interval_randomizer import IntervalRandomizer
from muhat.protocols.randomizers.pure_randomizer import HidingRandomizer
from muhat.protocols.randomizers.randomizer import MeanRandomizer, Received
from muhat.protocols.randomizers.stairs_randomizer import StairsRandomizer
from muhat.protocols.randomizers.subset_randomizer import SubsetRandomizer
from muhat.protocols.roles.model import LOCAL, NORMAL, SHUFFLE, Model, approximate
from muhat.protocols.roles.protocol import Protocol
from muhat.release.certificate import Certificate, metric_name
from muhat.release.release import Release

SPARED = 1 - 1e-6
"""Of a single message's ε: devices check the promise again, and round upwards."""

ADDED = (
    "intervals treat the sum of many people's independent noise as normal, or as Laplace noise "
    "where that is what fragments of it add up to in every coordinate"
)


@dataclass(frozen=True)
class BoundedMean(MeanEstimator, keys=(*AIMS, "privacy", "n", "columns")):
    """The mean over n people whose records lie in a domain, each of them asked once.

    The error that is made small is ‖diag(weights)·error‖_p.
    """

    domain: Domain
    privacy: Privacy
    n: int
    p: float = 2.0
    weights: tuple[float, ...] | None = None
    columns: tuple[str, ...] | None = None

    tails: ClassVar[str]
    """What intervals rest on."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("p", _check.norm_order(self.p))
        if self.weights is not None:
            weights = weight_vector(self.weights, self.domain.dim)
            self._set("weights", tuple(weights.tolist()))

    @classmethod
    def of(cls, task: Task) -> Self:
        """What a task asks for."""
        assert task.terms.n is not None
        weights = unlike(task.asked.weights)
        columns = task.asked.columns
        return cls(task.asked.domain, task.privacy, task.terms.n, task.asked.p, weights, columns)

    def check_round(self, protocol: Protocol) -> None:
        """The only round asks for a mean of such records: see `Estimator`."""
        protocol.require_only()
        self.mean_randomizer(protocol)

    def after(self, protocol: Protocol, received: Received) -> Release:
        """The estimate of the mean, with what is known about its error."""
        randomizer, users = self.mean_randomizer(protocol), received.users
        value = randomizer.mean(received.nonces, received.payloads)
        own = of_records(randomizer, received)
        told = (OUTSIDE,) if is_outside(value, self.domain, own.worst) else ()
        followed = self.false_answers(protocol, users)
        return self.release(
            protocol,
            users,
            (*self.model.assumed(protocol), CLIPPED, followed, self.tails, own.describe()),
            told,
            value=value,
            mechanism=f"{self.model.name}-{randomizer.kind}",
            domain=self.domain,
            noise=own.used,
            certificate=self.certificate(randomizer, users),
        )

    def certificate(self, randomizer: MeanRandomizer, users: int) -> Certificate | None:
        """How close to the best possible; for ℓ₂ errors."""
        if self.p != 2:
            return None
        shape = self.domain
        if self.weights is not None:
            shape = np.diag(self.weights) @ self.domain
        error = randomizer.expected_error(users, self.weights)
        metric = metric_name(self.p, "mean", self.weights, self.domain)
        bounds = self.model.lower_bounds(shape, n=users, privacy=self.privacy, p=self.p)
        return Certificate(metric, self.p, error, "bound", bounds)

    def describe(self) -> str:
        return f"the mean of {self.n} people's records in {self.domain!r}"


@dataclass(frozen=True)
class LocalMean(BoundedMean):
    """The mean over n people, whose devices trust nobody."""

    kind: ClassVar[str] = "local-mean"
    model: ClassVar[Model] = LOCAL
    tails: ClassVar[str] = NORMAL


@dataclass(frozen=True)
class ShuffleMean(BoundedMean):
    """The mean over n people, whose devices trust the shuffler to mix."""

    kind: ClassVar[str] = "shuffle-mean"
    model: ClassVar[Model] = SHUFFLE
    tails: ClassVar[str] = ADDED

    def false_answers(self, protocol: Protocol, people: int) -> str:
        """Fragments beside what the local model has to offer: see `Estimator`."""
        asked, local = self.mean_randomizer(protocol), self._local_beside
        step = local.false_step(people)
        if asked.false_step(people) is not None or step is None:
            return super().false_answers(protocol, people)
        larger, error = (each.expected_error(people, self.weights) for each in (local, asked))
        off = f"(local_mean) errors are about {larger / error:.2g} times as large"
        return not_caught("the mean", f"{off}, and {moved_mean(step, people, self.names)}")

    @cached_property
    def _local_beside(self) -> MeanRandomizer:
        return best_randomizer(self.domain, self.privacy, self.p, self.weights)


def local_protocol(task: Task, minimum: int | None = None, name: str | None = None) -> Protocol:
    """The protocol whose randomizer has the least error, or is called so."""
    estimator = LocalMean.of(task)
    best = best_randomizer(task.asked.domain, task.privacy, task.asked.p, estimator.weights, name)
    return Protocol(estimator, best, estimator.n, LOCAL.least_users(estimator.n, minimum))


def best_randomizer(
    domain: Domain,
    promise: Privacy,
    p: float = 2,
    weights: tuple[float, ...] | None = None,
    name: str | None = None,
) -> MeanRandomizer:
    """The randomizer of a domain with the least error of those that keep the promise.

    The pure ones keep every other promise that their ε implies. With a `name` that one.
    """
    epsilon = pure_within(promise)
    found: list[MeanRandomizer] = [*hiding_randomizers(domain, epsilon, p, weights)]
    if found[0].spread(1).rows == 1 and epsilon >= LEAST_EPSILON and Corners.of(domain) is None:
        found.append(IntervalRandomizer.of(domain, epsilon, p, weights))
    found.extend(StairsRandomizer.every(domain, epsilon, p, weights))
    if promise.admits_normal:
        found.insert(0, GaussianRandomizer(domain, promise, p, weights))
    if name is not None:
        named = {randomizer.kind: randomizer for randomizer in found}
        return named[_check.one_of("mechanism", name, sorted(named))]
    # The first of those whose errors are the same but for rounding.
    return min(found, key=lambda randomizer: float(f"{randomizer.expected_error(1, weights):.9g}"))


def hiding_randomizers(
    domain: Domain, epsilon: float, p: float, weights: tuple[float, ...] | None
) -> Iterator[HidingRandomizer]:
    """One of a few directions, and, for records that are means of a few corners, a set of those."""
    yield CapRandomizer.of(domain, epsilon, p=p, weights=weights)
    if Corners.of(domain) is not None:
        yield SubsetRandomizer.of(domain, epsilon, weights)


def shuffle_protocol(
    task: Task,
    minimum: int | None = None,
    most_bytes: int | None = None,
    honest: int | None = None,
) -> Protocol:
    """The protocol of the least error of those whose devices send at most so many bytes.

    Fragments have the error of a trusted curator; a single message that hides in the crowd is
    short.
    """
    estimator = ShuffleMean.of(task)
    turnout = SHUFFLE.turnout(estimator.n, minimum, honest)
    routes, refusals = [], []
    for route in (_fragments, _single_messages):
        try:
            for randomizer in route(estimator, turnout.counted_on):
                routes.append(
                    Protocol(
                        estimator, randomizer, estimator.n, turnout.minimum, honest=turnout.honest
                    )
                )
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
    return min(cheap, key=lambda each: estimator.mean_randomizer(each).expected_error(n, weights))


def _fragments(estimator: ShuffleMean, honest: int) -> Iterator[MeanRandomizer]:
    encoding = DomainEncoding(estimator.domain, p=estimator.p, weights=estimator.weights)
    allowance = Allowance(approximate(estimator.privacy))
    yield FragmentRandomizer.of(encoding, allowance, honest=honest, users=estimator.n)


def _single_messages(estimator: ShuffleMean, honest: int) -> Iterator[MeanRandomizer]:
    """Local randomizers that are as loud as the crowd allows. docs/proofs/amplification.md."""
    promise, weights = approximate(estimator.privacy), estimator.weights
    for alone in hiding_randomizers(estimator.domain, promise.epsilon, estimator.p, weights):

        def share(epsilon: float, alone: HidingRandomizer = alone) -> Fraction:
            return alone.at(epsilon, weights).favoured

        yield alone.at(local_epsilon(promise, honest, share=share) * SPARED, weights)
