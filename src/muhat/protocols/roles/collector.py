"""What collects people's messages: in any order, in batches, in any number of processes.

A collector holds the messages it has taken, each once, so that states merge whatever arrived
twice, and what comes of them depends on the set of messages alone. Only where two messages have
the same nonce, or more people have answered than were planned, do those count that came first.

Where messages add up, a server holds nonces and one sum. States then merge that have no message in
common, or of which one has all of the other's: a sum is not taken apart.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Bytes
from muhat.errors import InvalidInput
from muhat.protocols.encodings.encoding import NONCE_BYTES
from muhat.protocols.randomizers.randomizer import Received
from muhat.protocols.roles.messages import Rejection, batches

if TYPE_CHECKING:
    from muhat.protocols.roles.protocol import Protocol

_DIGEST_BYTES = 32
_COUNTS = f"<Q{len(Rejection)}Q"
_FIXED_BYTES = _DIGEST_BYTES + struct.calcsize(_COUNTS)
_MOST_COUNTED = (1 << 63) - 1


@dataclass(frozen=True)
class Intake:
    """What became of some messages: how many were taken, and why others were not."""

    accepted: int
    rejected: dict[str, int]

    def __str__(self) -> str:
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.rejected.items())
        return f"{self.accepted} taken" + (f", rejected: {reasons}" if reasons else "")


class Collector:
    """The messages of one round, each from another person."""

    _state_begins: ClassVar[bytes]
    """What tells a server's state from a shuffler's: mixed messages from those that are not."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self._seen: set[bytes] = set()
        self._nonces: list[Bytes] = []
        self._payloads: list[Bytes] = []
        self._rejected: Counter[Rejection] = Counter()

    @property
    def _label(self) -> bytes:
        """What every message begins with."""
        return self.protocol.label

    @property
    def _payload_bytes(self) -> int:
        """What follows the nonce of a message."""
        return self.protocol.randomizer.payload_bytes

    @property
    def _digest(self) -> bytes:
        """What tells the states of this round from others'."""
        return bytes.fromhex(self.protocol.digest)

    @property
    def _holds_sum(self) -> bool:
        """Whether one payload is held in the place of all."""
        return False

    def _possible(self, payloads: Bytes) -> NDArray[np.bool_]:
        """Which payloads may be some device's."""
        return self.protocol.randomizer.valid(payloads)

    @property
    def users(self) -> int:
        """How many people's messages have been taken."""
        return len(self._seen)

    @property
    def rejected(self) -> dict[str, int]:
        """How many messages were not taken, by reason."""
        return _reasons(self._rejected)

    def take(self, messages: Iterable[bytes] | bytes) -> Intake:
        """Take messages, one or many. What is wrong with one never stops the others."""
        return self.resume(messages)

    def resume(self, messages: Iterable[bytes] | bytes) -> Intake:
        """Take what was taken before and kept elsewhere: as `take`, whatever has ended since."""
        if isinstance(messages, bytes | bytearray | memoryview):
            messages = [bytes(messages)]
        if not isinstance(messages, Iterable):
            raise InvalidInput("must be bytes, or many of them", parameter="messages")
        before, rejected = self.users, Counter[Rejection]()
        for nonces, payloads in batches(messages, self._label, self._payload_bytes, rejected):
            self._add(nonces, payloads, rejected)
        self._rejected += rejected
        return Intake(self.users - before, _reasons(rejected))

    def refusal(self, message: bytes) -> Rejection | None:
        """Why a message cannot be one of this round; whether it is here already is not asked."""
        rejected = Counter[Rejection]()
        for _, payloads in batches([message], self._label, self._payload_bytes, rejected):
            if not self._possible(payloads).all():
                return Rejection.PAYLOAD
        return next((reason for reason, count in rejected.items() if count), None)

    def marks(self, message: bytes) -> list[bytes]:
        """What no two messages of this round have in common unless one is a copy, beside nonces."""
        return []

    def merge(self, other: Self) -> None:
        """Take what another one of the same round has taken."""
        if type(other) is not type(self):
            raise InvalidInput(
                f"a {type(self).__name__} merges with another one; got {type(other).__name__}."
            )
        if other._digest != self._digest:
            raise InvalidInput("messages of different protocols or rounds cannot be merged.")
        held, rejected = other.received(), Counter(other._rejected)
        self._join(held.nonces, held.payloads, rejected)
        self._rejected += rejected

    def state(self) -> bytes:
        """Everything that is held, to be saved or sent on; `restore` goes on from it."""
        held = self.received()
        counts = [min(self._rejected[reason], _MOST_COUNTED) for reason in Rejection]
        body = self._digest + struct.pack(_COUNTS, held.users, *counts)
        body += held.nonces.tobytes() + held.payloads.tobytes()
        return self._state_begins + hashlib.sha256(body).digest() + body

    def _add(self, nonces: Bytes, payloads: Bytes, rejected: Counter[Rejection]) -> None:
        """Keep what is possible, new, and not more than there are users."""
        possible = self._possible(payloads)
        if not possible.all():
            rejected[Rejection.PAYLOAD] += int((~possible).sum())
            nonces, payloads = nonces[possible], payloads[possible]
        keys = _keys(nonces)
        kept = self._new(keys, rejected)
        if len(kept) < len(keys):
            nonces, payloads = nonces[kept], payloads[kept]
        if len(kept):
            self._keep(nonces, payloads)

    def _keep(self, nonces: Bytes, payloads: Bytes) -> None:
        """Hold new messages, or their sum."""
        # A part of a batch would hold all of it.
        self._nonces.append(nonces.copy())
        self._payloads.append(payloads)
        if self._holds_sum:
            self._payloads = [self.protocol.randomizer.added(np.concatenate(self._payloads))]

    def _join(self, nonces: Bytes, payloads: Bytes, rejected: Counter[Rejection]) -> None:
        """Take what another one held, which may be a sum."""
        if len(payloads) == len(nonces):
            self._add(nonces, payloads, rejected)
            return
        keys = set(_keys(nonces))
        known = len(keys & self._seen)
        if not self._possible(payloads).all():
            rejected[Rejection.PAYLOAD] += len(nonces)
        elif known == len(nonces):
            rejected[Rejection.REPLAYED] += known
        elif (
            known in (0, self.users)
            and len(keys) == len(nonces)
            and self.users - known + len(keys) <= self.protocol.users
        ):
            if known:
                rejected[Rejection.REPLAYED] += known
                self._nonces, self._payloads = [], []
            self._seen |= keys
            self._keep(nonces, payloads)
        else:
            raise InvalidInput(
                "some of the messages are here already, and not all, or they are more than the "
                "users that were planned: sums are not taken apart. Take the messages themselves."
            )

    def _new(self, keys: list[bytes], rejected: Counter[Rejection]) -> Sequence[int]:
        """Which of these nonces are taken, from now on: each once, up to the number of users."""
        most, seen, together = self.protocol.users, self._seen, set(keys)
        if (
            len(together) == len(keys)
            and seen.isdisjoint(together)
            and len(seen) + len(keys) <= most
        ):
            seen |= together
            return range(len(keys))
        kept = []
        for row, key in enumerate(keys):
            if key in seen:
                rejected[Rejection.REPLAYED] += 1
            elif len(seen) == most:
                rejected[Rejection.FULL] += 1
            else:
                seen.add(key)
                kept.append(row)
        return kept

    def received(self) -> Received:
        """The messages, ordered by nonce."""
        nonces = np.concatenate([np.empty((0, NONCE_BYTES), np.uint8), *self._nonces])
        high, low = nonces.view(">u8").T
        order = np.lexsort((low, high))
        if self._holds_sum and len(order) > 1:
            return Received(nonces[order], self._payloads[0])
        places = np.empty(len(order), np.intp)
        places[order] = np.arange(len(order))
        payloads, start = np.empty((len(order), self._payload_bytes), np.uint8), 0
        for block in self._payloads:
            payloads[places[start : start + len(block)]] = block
            start += len(block)
        # What is in order now need not be held twice.
        self._nonces, self._payloads = [nonces[order]], [payloads]
        return Received(self._nonces[0], payloads)

    def restore(self, state: bytes) -> Self:
        """Take everything that `state()` saved; InvalidInput if it is damaged.

        That it is whole is checked, not who made it.
        """
        body = self._body_of(state)
        if body[:_DIGEST_BYTES] != self._digest:
            raise InvalidInput("the state belongs to another protocol or round.")
        users, *counts = struct.unpack_from(_COUNTS, body, _DIGEST_BYTES)
        size, split = self._payload_bytes, users * NONCE_BYTES
        held = np.frombuffer(body, np.uint8, offset=_FIXED_BYTES)
        if len(held) != split + users * size and not (
            self._holds_sum and users and len(held) == split + size
        ):
            raise InvalidInput("the state is damaged: its messages are not of the right length.")
        rejected = Counter(dict(zip(Rejection, counts, strict=True)))
        self._join(held[:split].reshape(-1, NONCE_BYTES), held[split:].reshape(-1, size), rejected)
        self._rejected += rejected
        return self

    def _body_of(self, state: bytes) -> bytes:
        """What a state says, if it is whole."""
        if not isinstance(state, bytes | bytearray | memoryview):
            raise InvalidInput("must be bytes", parameter="state", value=type(state).__name__)
        whole, begins = bytes(state), self._state_begins
        start = len(begins) + _DIGEST_BYTES
        body = whole[start:]
        expected = begins + hashlib.sha256(body).digest()
        if whole[:start] != expected or len(body) < _FIXED_BYTES:
            raise InvalidInput(
                f"the state is damaged, or is not that of a {type(self).__name__} of muhat."
            )
        return body

    def __repr__(self) -> str:
        taken = f"{self.users} of {self.protocol.users} users"
        return f"{type(self).__name__}(round {self.protocol.round}, {taken})"


def _keys(nonces: Bytes) -> list[bytes]:
    flat = nonces.tobytes()
    return [flat[at : at + NONCE_BYTES] for at in range(0, len(flat), NONCE_BYTES)]


def _reasons(rejected: Counter[Rejection]) -> dict[str, int]:
    return {str(reason): count for reason, count in rejected.items() if count}
