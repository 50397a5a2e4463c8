"""The mean of records of a known domain in one round, whoever is trusted with what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from muhat import _check, privacy
from muhat._arrays import Floats
from muhat._words import example_of_reals
from muhat.bounds import LowerBound
from muhat.domains import Domain, Reals
from muhat.ellipsoids.smallest import weight_vector
from muhat.errors import InvalidInput
from muhat.noise.law import LAWS
from muhat.noise.spread import Spread
from muhat.planning.plan import metric_name
from muhat.planning.task import Task
from muhat.privacy import Neighbors, Privacy
from muhat.protocols.estimators.own_spread import of_records
from muhat.protocols.protocol import Protocol
from muhat.protocols.randomizers.aims import aims_of, read_aims
from muhat.protocols.randomizers.cap_randomizer import CapRandomizer
from muhat.protocols.randomizers.gaussian_randomizer import GaussianRandomizer
from muhat.protocols.randomizers.randomizer import MeanRandomizer, Randomizer
from muhat.protocols.randomizers.share_randomizer import ShareRandomizer
from muhat.release.certificate import Certificate
from muhat.release.release import Release

if TYPE_CHECKING:
    from muhat.protocols.roles.collector import Received


@dataclass(frozen=True)
class OneRoundMean(ABC):
    """The mean over n people whose records lie in a domain, each of them asked once.

    The error that is made small is ‖diag(weights)·error‖_p.
    """

    domain: Domain
    privacy: Privacy
    n: int
    p: float = 2.0
    weights: tuple[float, ...] | None = None
    columns: tuple[str, ...] | None = None

    kind: ClassVar[str]
    model: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _check.count("n", self.n))
        object.__setattr__(self, "p", _check.norm_order(self.p))
        if self.weights is not None:
            weights = weight_vector(self.weights, self.domain.dim)
            object.__setattr__(self, "weights", tuple(weights.tolist()))
        object.__setattr__(self, "columns", column_names(self.columns, self.domain.dim))

    @classmethod
    def of(cls, task: Task) -> Self:
        """What a task asks for."""
        assert task.n is not None
        plain = bool((task.weights == 1).all())
        weights = None if plain else tuple(task.weights.tolist())
        return cls(task.domain, task.privacy, task.n, task.p, weights, task.columns)

    def after(self, protocol: Protocol, received: Received) -> Release:
        """The estimate of the mean, with what is known about its error."""
        randomizer = mean_randomizer(protocol.randomizer)
        value, users = randomizer.mean(received.nonces, received.payloads), received.users
        if len(value) != self.domain.dim:
            raise InvalidInput("the round's randomizer is about another domain than the mean.")
        own = of_records(randomizer, received)
        return Release(
            statistic="mean",
            value=value,
            columns=self.columns or numbered(self.domain.dim),
            mechanism=f"{self.model}-{randomizer.kind}",
            privacy=self.privacy,
            neighbors=Neighbors.SUBSTITUTE,
            n=users,
            contributions=1,
            missing="center",
            domain=self.domain,
            noise=own.used,
            certificate=self.certificate(randomizer, users),
            assumptions=(*self.assumptions(), own.describe(), *turnout(protocol, users)),
            plan_digest=protocol.digest,
            ledger_head=None,
        )

    def certificate(self, randomizer: MeanRandomizer, users: int) -> Certificate | None:
        """How close to the best possible; for ℓ₂ errors."""
        if self.p != 2:
            return None
        shape = self.domain
        if self.weights is not None:
            shape = np.diag(self.weights) @ self.domain
        error = weighted_error(randomizer, self.weights, users)
        metric = metric_name(self.p, "mean", self.weights, self.domain)
        return Certificate(metric, self.p, error, "bound", self.lower_bounds(shape, users))

    @abstractmethod
    def lower_bounds(self, shape: Domain, users: int) -> tuple[LowerBound, ...]:
        """What no protocol with the same trust and promise can beat."""

    @abstractmethod
    def assumptions(self) -> tuple[str, ...]:
        """What the promise and the errors rest on."""

    def describe(self) -> str:
        """What is estimated, in a sentence."""
        return f"the mean of {self.n} people's records in {self.domain!r}"

    def to_dict(self) -> dict[str, Any]:
        """The description."""
        return {
            **aims_of(self),
            "privacy": privacy.to_dict(self.privacy),
            "n": self.n,
            "columns": None if self.columns is None else list(self.columns),
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The estimator described."""
        return cls(
            privacy=privacy.from_dict(fields["privacy"]),
            n=fields["n"],
            columns=fields["columns"],
            **read_aims(fields),
        )


TRUSTS_NOBODY = "every device keeps the promise about its own record by itself; nobody is trusted"
CLIPPED = (
    "errors are about the records clipped to the domain, a missing value counting as its centre"
)
FOLLOWED = (
    "people follow the protocol: a false message can move the mean further than a false record"
)
NORMAL = "intervals treat the sum of many people's independent noise as normal"


def mean_randomizer(randomizer: Randomizer) -> MeanRandomizer:
    """The same randomizer, which must be one of means."""
    if not isinstance(randomizer, GaussianRandomizer | CapRandomizer | ShareRandomizer):
        raise InvalidInput("the round's randomizer does not estimate a mean.")
    return randomizer


def weighted_error(
    randomizer: MeanRandomizer, weights: tuple[float, ...] | None, users: int
) -> float:
    """The root mean square of ‖diag(weights)·error‖₂ over so many messages; an upper bound."""
    if weights is None:
        return randomizer.expected_error(users)
    errors = randomizer.spread(users).standard_error
    return float(np.linalg.norm(np.array(weights) * errors))


def normal_spread(covariance: Floats) -> Spread:
    """The noise of a sum over many people: normal, with this covariance."""
    scales = np.sqrt(np.diag(covariance))
    if np.count_nonzero(covariance) == np.count_nonzero(scales):
        return Spread(LAWS["normal"], len(scales), scales)
    values, vectors = np.linalg.eigh(covariance)
    factor = vectors * np.sqrt(np.maximum(values, 0))
    return Spread(LAWS["normal"], len(scales), scales, factor)


def turnout(protocol: Protocol, users: int) -> tuple[str, ...]:
    """A sentence if fewer have answered than were planned."""
    if users == protocol.users:
        return ()
    return (f"{users} of {protocol.users} planned users have answered; the mean is over them",)


def column_names(columns: Sequence[str] | None, dim: int) -> tuple[str, ...] | None:
    """The names of the coordinates, one each."""
    if columns is None:
        return None
    names = tuple(map(str, columns))
    if len(names) != dim or len(set(names)) != dim:
        raise InvalidInput(
            f"must be {dim} different names", parameter="columns", value=str(len(names))
        )
    return names


def numbered(dim: int) -> tuple[str, ...]:
    """What coordinates without a name are called."""
    return tuple(str(index) for index in range(dim))


def require_magnitude(domain: Reals) -> None:
    """Refuse records without a bound that the first round could start from."""
    if domain.magnitude is None:
        raise InvalidInput(
            "must be given to learn centre and radius: a generous public bound on every "
            "coordinate, for instance ",
            example_of_reals(domain.dim),
            parameter="magnitude",
        )
