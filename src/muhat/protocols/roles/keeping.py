"""Whether a description keeps what it says: the promise, the randomizer and the minimum of users.

Checked wherever a description is made or read, so on every device too: a description that lies
about its promise is not answered. What it says about earlier rounds only their devices can check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from muhat.errors import InvalidInput
from muhat.privacy import Privacy, pure_within
from muhat.privacy.amplification import amplified
from muhat.protocols.randomizers.cap_randomizer import CapRandomizer
from muhat.protocols.randomizers.gaussian_randomizer import GaussianRandomizer
from muhat.protocols.randomizers.joint_randomizer import shared_parts
from muhat.protocols.randomizers.range_randomizer import RangeRandomizer

if TYPE_CHECKING:
    from muhat.protocols.protocol import Protocol
    from muhat.protocols.randomizers.randomizer import Randomizer

_ALONE = (GaussianRandomizer, CapRandomizer, RangeRandomizer)
"""Whose messages are private before they are mixed."""

_SHARE = re.compile(r"[0-9]{1,40}(/[0-9]{1,40})?")


def check_promise(protocol: Protocol) -> None:
    """Refuse a round whose messages promise less than the protocol says."""
    kept = _KEPT[protocol.model](protocol.randomizer, protocol.privacy, protocol.minimum)
    if protocol.model == "shuffle":
        # Everybody takes part in every round, so that rounds share the promise.
        kept = kept and _shares_before(protocol) + share_of(protocol) <= 1
    if not kept:
        raise InvalidInput(
            f"the round's messages do not keep {protocol.privacy.describe()} in the "
            f"{protocol.model} model with {protocol.minimum} users, which the description promises."
        )


def check_answered(protocol: Protocol, answered: Iterable[Protocol]) -> None:
    """Refuse a round that would tell more than the promise, after those a device has answered."""
    before = tuple(answered)
    if any(each.estimator.to_dict() != protocol.estimator.to_dict() for each in before):
        raise InvalidInput("the rounds answered must be rounds of the same protocol.")
    if before and protocol.model == "local":
        raise InvalidInput("in the local model a device answers one round and no other.")
    taken = sum(map(share_of, (*before, protocol)), Fraction(0))
    if taken > 1:
        raise InvalidInput(
            f"the round's messages do not keep {protocol.privacy.describe()} after the rounds "
            f"answered: together they take {float(taken):.3g} times the promise."
        )


def share_of(protocol: Protocol) -> Fraction:
    """The part of the promise that the round takes."""
    parts = shared_parts(protocol.randomizer)
    return sum((part.noise.allowance.share for part in parts), Fraction(not parts))


def _kept_locally(randomizer: Randomizer, promise: Privacy, users: int) -> bool:
    """Every message by itself keeps the promise."""
    said = randomizer.privacy
    if not isinstance(randomizer, _ALONE):
        return False
    if said == promise:
        return True
    return said.implied_epsilon is not None and said.implied_epsilon <= pure_within(promise)


def _kept_mixed(randomizer: Randomizer, promise: Privacy, users: int) -> bool:
    """The mixed messages of so many users do."""
    if parts := shared_parts(randomizer):
        honest = max(part.noise.honest for part in parts)
        return randomizer.privacy == promise and honest <= users
    if isinstance(randomizer, CapRandomizer) and promise.spends_delta:
        assert promise.point is not None
        epsilon, delta = promise.point
        part = Fraction(randomizer.cap, randomizer.codebook.size)
        found = amplified(randomizer.epsilon, users, delta, share=part)
        return found.epsilon <= epsilon
    return _kept_locally(randomizer, promise, users)


def _shares_before(protocol: Protocol) -> Fraction:
    """What the rounds before this one have taken of the promise, as the description says."""
    taken = [str(entry["share"]) for entry in protocol.learnt]
    if not all(_SHARE.fullmatch(share) for share in taken):
        raise InvalidInput("the share of a round must be a fraction, such as '1/50'.")
    return sum(map(Fraction, taken), Fraction(0))


_KEPT = {"local": _kept_locally, "shuffle": _kept_mixed}
