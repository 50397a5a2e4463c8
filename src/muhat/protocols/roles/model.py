"""Who is trusted with what, and all that follows from it.

    local     nobody: every message is private as it stands; everybody is asked in one round
    shuffle   a shuffler that mixes messages; everybody is asked in every round, and the rounds
              share the promise

Whether a description keeps what it says is checked wherever one is made or read, so on every
device too: one that lies about its promise is not answered. What it says about earlier rounds only
their devices can check.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from muhat import _check, bounds
from muhat._words import APPROXIMATE
from muhat.bounds import LowerBound
from muhat.domains import Domain
from muhat.errors import InvalidInput
from muhat.privacy import ApproxDP, Privacy, with_delta

if TYPE_CHECKING:
    from muhat.protocols.roles.protocol import Protocol

_SHARE = re.compile(r"[0-9]{1,40}(/[0-9]{1,40})?")


class Turnout(NamedTuple):
    """How many people must answer for a result, and how many of those the promise counts on."""

    minimum: int
    honest: int | None = None
    """None where it is all of the minimum."""

    @property
    def counted_on(self) -> int:
        """The people who follow the protocol, whose noise is enough."""
        return self.minimum if self.honest is None else self.honest


class Model(ABC):
    """What the local and the shuffle model differ in."""

    name: ClassVar[str]
    part_needed: ClassVar[float]
    """Of the planned users, so many are the least for a result unless another minimum is stated."""
    is_mixed: ClassVar[bool]
    """Whether a shuffler stands between devices and server, and everybody answers every round."""

    def least_users(self, users: int, minimum: int | None) -> int:
        """The minimum that was asked for, or the usual part of the users."""
        if minimum is not None:
            return _check.count("minimum", minimum, most=users)
        return max(1, -int(-self.part_needed * users // 1))

    def turnout(self, users: int, minimum: int | None, honest: int | None) -> Turnout:
        """Both numbers as they were asked for; without a minimum the usual part, or all honest."""
        if honest is not None:
            honest = _check.count("honest", honest, most=users)
        least = self.least_users(users, minimum)
        if minimum is None and honest is not None:
            least = max(least, honest)
        return Turnout(least, honest)

    def check_answered(self, protocol: Protocol, answered: Iterable[Protocol]) -> None:
        """Refuse a round that tells more than the promise, after those a device has answered."""
        before = tuple(answered)
        if any(each.task != protocol.task for each in before):
            raise InvalidInput("the rounds answered must be rounds of the same protocol.")
        self.check_shares(protocol, [each.randomizer.share for each in before])

    def check_shares(self, protocol: Protocol, before: Sequence[Fraction]) -> None:
        """The same, where of the rounds answered their shares of the promise are known."""
        if before and not self.is_mixed:
            raise InvalidInput("in the local model a device answers one round and no other.")
        taken = sum(before, protocol.randomizer.share)
        if taken > 1:
            raise InvalidInput(
                f"the round's messages do not keep {protocol.privacy.describe()} after the rounds "
                f"answered: together they take {float(taken):.3g} times the promise."
            )

    def check_promise(self, protocol: Protocol) -> None:
        """Refuse a round whose messages promise less than the protocol says."""
        if not self.keeps(protocol):
            raise InvalidInput(
                f"the round's messages do not keep {protocol.privacy.describe()} in the "
                f"{self.name} model with {protocol.counted_on} honest users, which the description "
                "promises."
            )

    @abstractmethod
    def keeps(self, protocol: Protocol) -> bool:
        """Whether a round, with those before it, keeps the protocol's promise."""

    @abstractmethod
    def promise(self, promise: Privacy) -> Privacy:
        """The same promise, which must be of a kind that protocols of this model keep."""

    @abstractmethod
    def trust(self, protocol: Protocol) -> str:
        """Whom a person trusts with what."""

    @abstractmethod
    def assumed(self, protocol: Protocol) -> tuple[str, ...]:
        """What the promise rests on."""

    @abstractmethod
    def lower_bounds(
        self, shape: Domain, *, n: int, privacy: Privacy, p: float
    ) -> tuple[LowerBound, ...]:
        """What no estimate of a mean with the same trust and promise can beat."""


class _Local(Model):
    name = "local"
    part_needed = 0.5
    is_mixed = False

    def keeps(self, protocol: Protocol) -> bool:
        return protocol.randomizer.keeps(protocol.privacy)

    def promise(self, promise: Privacy) -> Privacy:
        return promise

    def trust(self, protocol: Protocol) -> str:
        return "nobody: every message is private as it stands"

    def assumed(self, protocol: Protocol) -> tuple[str, ...]:
        return ("every device keeps the promise about its own record by itself; nobody is trusted",)

    def lower_bounds(
        self, shape: Domain, *, n: int, privacy: Privacy, p: float
    ) -> tuple[LowerBound, ...]:
        return bounds.local(shape, n=n, privacy=privacy, p=p)


class _Shuffle(Model):
    name = "shuffle"
    part_needed = 0.9
    is_mixed = True

    def keeps(self, protocol: Protocol) -> bool:
        randomizer = protocol.randomizer
        kept = randomizer.keeps_mixed(protocol.privacy, protocol.counted_on)
        return kept and spent_before(protocol) + randomizer.share <= 1

    def promise(self, promise: Privacy) -> ApproxDP:
        return approximate(promise)

    def trust(self, protocol: Protocol) -> str:
        return (
            "that the shuffler mixes messages and does not work with the server, and that at least "
            f"{_honest(protocol)} are honest"
        )

    def assumed(self, protocol: Protocol) -> tuple[str, ...]:
        return (
            "the shuffler mixes all messages, hands them on once and does not work with the server",
            f"at least {_honest(protocol)} follow the protocol and keep their messages to "
            "themselves",
        )

    def lower_bounds(
        self, shape: Domain, *, n: int, privacy: Privacy, p: float
    ) -> tuple[LowerBound, ...]:
        found = bounds.mean(shape, n=n, privacy=privacy, p=p)
        return tuple(bound for bound in found if not bound.is_of_noise)


def _honest(protocol: Protocol) -> str:
    """How many must be honest; all, if no more answer than must, is a warning to the reader."""
    honest, least = protocol.counted_on, protocol.minimum
    return f"{honest} users" + (" (all, if no more answer)" if honest == least else f" of {least}")


LOCAL, SHUFFLE = _Local(), _Shuffle()

NORMAL = "intervals treat the sum of many people's independent noise as normal"


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


def explained_before(protocol: Protocol) -> bool:
    """Whether the fragments of all rounds before this one may be honest people's."""
    return not any(entry.get("unexplained") for entry in protocol.learnt)


def spent_before(protocol: Protocol) -> Fraction:
    """What the rounds before this one have taken of the promise, as the description says."""
    taken = [str(entry["share"]) for entry in protocol.learnt]
    if not all(_SHARE.fullmatch(share) for share in taken):
        raise InvalidInput("the share of a round must be a fraction, such as '1/50'.")
    return sum(map(Fraction, taken), Fraction(0))
