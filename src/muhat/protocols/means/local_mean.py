"""The mean of records of a known domain in the local model: nobody but its owner sees a record.

Every device sends one message, private as it stands. docs/proofs/local.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from muhat import bounds
from muhat.bounds import LowerBound
from muhat.domains import Domain
from muhat.planning.task import Task
from muhat.privacy import Privacy, pure_within
from muhat.protocols.means.one_round import (
    CLIPPED,
    FOLLOWED,
    NORMAL,
    TRUSTS_NOBODY,
    OneRoundMean,
    weighted_error,
)
from muhat.protocols.protocol import Protocol, least_users
from muhat.protocols.randomizers.cap_randomizer import CapRandomizer
from muhat.protocols.randomizers.gaussian_randomizer import GaussianRandomizer
from muhat.protocols.randomizers.randomizer import MeanRandomizer


@dataclass(frozen=True)
class LocalMean(OneRoundMean):
    """The mean over n people, whose devices trust nobody."""

    kind: ClassVar[str] = "local-mean"
    model: ClassVar[str] = "local"

    def lower_bounds(self, shape: Domain, users: int) -> tuple[LowerBound, ...]:
        """What nobody can beat in the local model."""
        return bounds.local(shape, n=users, privacy=self.privacy, p=self.p)

    def assumptions(self) -> tuple[str, ...]:
        """The promise rests on nobody but the device itself."""
        return (TRUSTS_NOBODY, CLIPPED, FOLLOWED, NORMAL)


def local_protocol(task: Task, minimum: int | None = None) -> Protocol:
    """The protocol whose randomizer has the least error."""
    estimator = LocalMean.of(task)
    best = best_randomizer(task.domain, task.privacy, task.p, estimator.weights)
    return Protocol(estimator, best, estimator.n, least_users(estimator.n, minimum))


def best_randomizer(
    domain: Domain, promise: Privacy, p: float = 2, weights: tuple[float, ...] | None = None
) -> MeanRandomizer:
    """The randomizer of a domain with the least error of those that keep the promise.

    The pure one keeps every other promise that its ε implies.
    """
    pure = CapRandomizer.of(domain, pure_within(promise), p=p, weights=weights)
    if not promise.admits_normal:
        return pure
    both: list[MeanRandomizer] = [GaussianRandomizer(domain, promise, p, weights), pure]
    return min(both, key=lambda randomizer: weighted_error(randomizer, weights, 1))
