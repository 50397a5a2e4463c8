"""What collects people's messages: in any order, in batches, in any number of processes.

A collector holds the messages it has taken, each once, so that states merge whatever arrived
twice, and what comes of them depends on the set of messages alone.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from muhat.errors import InvalidInput
from muhat.protocols.messages import LABEL_BYTES, Rejection, blocks, unpack
from muhat.protocols.randomizer import NONCE_BYTES, Bytes

if TYPE_CHECKING:
    from muhat.protocols.protocol import Protocol

_STATE = b"MHSTATE1"
_COUNTS = f"<Q{len(Rejection)}Q"


@dataclass(frozen=True, eq=False)
class Received:
    """The messages of a round, ordered by nonce: shapes (users, 16) and (users, payload)."""

    nonces: Bytes
    payloads: Bytes

    @property
    def users(self) -> int:
        """How many people have answered."""
        return len(self.nonces)


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

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self._seen: set[bytes] = set()
        self._nonces: list[Bytes] = []
        self._payloads: list[Bytes] = []
        self._rejected: Counter[Rejection] = Counter()

    @property
    def users(self) -> int:
        """How many people's messages have been taken."""
        return len(self._seen)

    @property
    def rejected(self) -> dict[str, int]:
        """How many messages were not taken, by reason."""
        return {str(reason): count for reason, count in self._rejected.items() if count}

    def take(self, messages: Iterable[bytes] | bytes) -> Intake:
        """Take messages, one or many. What is wrong with one never stops the others."""
        if isinstance(messages, bytes | bytearray | memoryview):
            messages = [bytes(messages)]
        if not isinstance(messages, Iterable):
            raise InvalidInput("messages must be bytes, or many of them.")
        before, rejected = self.users, Counter[Rejection]()
        for block in blocks(messages):
            start, size = self.protocol.label, self.protocol.randomizer.payload_bytes
            self._add(*unpack(block, start, size, rejected), rejected)
        self._rejected += rejected
        reasons = {str(reason): count for reason, count in rejected.items() if count}
        return Intake(self.users - before, reasons)

    def merge(self, other: Self) -> None:
        """Take what another one of the same round has taken."""
        if other.protocol.label != self.protocol.label:
            raise InvalidInput("messages of different protocols or rounds cannot be merged.")
        rejected = Counter(other._rejected)
        for nonces, payloads in zip(other._nonces, other._payloads, strict=True):
            self._add(nonces, payloads, rejected)
        self._rejected += rejected

    def state(self) -> bytes:
        """Everything that is held, to be saved or sent on; `restore` goes on from it."""
        held = self.received()
        counts = struct.pack(_COUNTS, held.users, *(self._rejected[reason] for reason in Rejection))
        body = self.protocol.label + counts + held.nonces.tobytes() + held.payloads.tobytes()
        return _STATE + hashlib.sha256(body).digest() + body

    def _add(self, nonces: Bytes, payloads: Bytes, rejected: Counter[Rejection]) -> None:
        """Keep what is possible, new, and not more than there are users."""
        possible = self.protocol.randomizer.valid(payloads)
        rejected[Rejection.PAYLOAD] += int((~possible).sum())
        nonces, payloads = nonces[possible], payloads[possible]
        kept = np.zeros(len(nonces), bool)
        for row, nonce in enumerate(nonces):
            key = nonce.tobytes()
            if key in self._seen:
                rejected[Rejection.REPLAYED] += 1
            elif self.users == self.protocol.users:
                rejected[Rejection.FULL] += 1
            else:
                self._seen.add(key)
                kept[row] = True
        self._nonces.append(nonces[kept])
        self._payloads.append(payloads[kept])

    def received(self) -> Received:
        """The messages, ordered by nonce."""
        size = self.protocol.randomizer.payload_bytes
        nonces = np.concatenate([np.empty((0, NONCE_BYTES), np.uint8), *self._nonces])
        payloads = np.concatenate([np.empty((0, size), np.uint8), *self._payloads])
        high, low = nonces.view(">u8").T
        order = np.lexsort((low, high))
        return Received(nonces[order], payloads[order])

    def restore(self, state: bytes) -> Self:
        """Take everything that `state()` saved; InvalidInput if it is damaged."""
        start = len(_STATE) + 32
        saved, body = bytes(state[len(_STATE) : start]), bytes(state[start:])
        if state[: len(_STATE)] != _STATE or saved != hashlib.sha256(body).digest():
            raise InvalidInput("the state is damaged, or is not a state of muhat.")
        if body[:LABEL_BYTES] != self.protocol.label:
            raise InvalidInput("the state belongs to another protocol or round.")
        start, size = LABEL_BYTES + struct.calcsize(_COUNTS), self.protocol.randomizer.payload_bytes
        users, *counts = struct.unpack_from(_COUNTS, body.ljust(start, b"\0"), LABEL_BYTES)
        if len(body) != start + users * (NONCE_BYTES + size):
            raise InvalidInput("the state is damaged, or is not a state of muhat.")
        flat, split = np.frombuffer(body, np.uint8, offset=start), users * NONCE_BYTES
        rejected = Counter(dict(zip(Rejection, counts, strict=True)))
        self._add(flat[:split].reshape(-1, NONCE_BYTES), flat[split:].reshape(-1, size), rejected)
        self._rejected += rejected
        return self

    def __repr__(self) -> str:
        taken = f"{self.users} of {self.protocol.users} users"
        return f"{type(self).__name__}(round {self.protocol.round}, {taken})"
