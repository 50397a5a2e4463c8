"""Whether a description keeps what it says: the promise, the randomizer and the minimum of users.

Checked wherever a description is made or read, so on every device too: a description that lies
about its promise is not answered.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from muhat.errors import InvalidInput
from muhat.privacy import ApproxDP, Privacy, PureDP, pure_within
from muhat.privacy.amplification import amplified
from muhat.protocols.cap_randomizer import CapRandomizer
from muhat.protocols.share_randomizer import ShareRandomizer

if TYPE_CHECKING:
    from muhat.protocols.protocol import Protocol
    from muhat.protocols.randomizer import Randomizer


def check_promise(protocol: Protocol) -> None:
    """Refuse a round whose messages promise less than the protocol says."""
    kept = _KEPT[protocol.model](protocol.randomizer, protocol.privacy, protocol.minimum)
    if not kept:
        raise InvalidInput(
            f"the round's messages do not keep {protocol.privacy.describe()} with "
            f"{protocol.minimum} users, which the description promises."
        )


def _kept_locally(randomizer: Randomizer, promise: Privacy, users: int) -> bool:
    """Every message by itself keeps the promise."""
    said = randomizer.privacy
    if isinstance(randomizer, ShareRandomizer):
        return False
    return said == promise or (isinstance(said, PureDP) and said.epsilon <= pure_within(promise))


def _kept_mixed(randomizer: Randomizer, promise: Privacy, users: int) -> bool:
    """The mixed messages of so many users do."""
    if isinstance(randomizer, ShareRandomizer):
        return randomizer.privacy == promise and randomizer.noise.honest <= users
    if isinstance(randomizer, CapRandomizer) and isinstance(promise, ApproxDP):
        part = Fraction(randomizer.cap, randomizer.codebook.size)
        found = amplified(randomizer.epsilon, users, promise.delta, share=part)
        return found.epsilon <= promise.epsilon
    return _kept_locally(randomizer, promise, users)


_KEPT = {"local": _kept_locally, "shuffle": _kept_mixed}
