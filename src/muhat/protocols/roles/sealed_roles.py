"""Shuffler and server of reports that are sealed: the one mixes what it cannot read.

The shuffler knows how many reports there are, and whether two of them, or two of their pieces, are
the same; it takes those of one description under one key, so that nobody can be told by a key of
their own. The server sees pieces in random order, and opens them. docs/threats.md says what each of
them could still do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Bytes
from muhat.errors import InvalidInput
from muhat.protocols.encodings.encoding import fresh_nonces
from muhat.protocols.randomizers.randomizer import Received, random_order
from muhat.protocols.roles.collector import Collector, Intake
from muhat.protocols.roles.messages import HEADER_BYTES
from muhat.protocols.roles.sealed_reports import Reports
from muhat.protocols.roles.sealing_keys import ServerKey
from muhat.protocols.roles.server import Server
from muhat.protocols.roles.shuffler import Shuffler


class _OfReports(Collector):
    """What collects reports in the place of messages."""

    def __init__(self, reports: Reports) -> None:
        super().__init__(reports.protocol)
        self.reports = reports

    @property
    def _label(self) -> bytes:
        return self.reports.label

    @property
    def _payload_bytes(self) -> int:
        return self.reports.payload_bytes

    @property
    def _digest(self) -> bytes:
        return self.reports.digest

    @property
    def _holds_sum(self) -> bool:
        return False

    def marks(self, message: bytes) -> list[bytes]:
        """Digests of its pieces: see `Collector`, and `_without_copies`."""
        size = self.reports.piece_bytes
        places = range(HEADER_BYTES, HEADER_BYTES + self._payload_bytes, size)
        return [hashlib.sha256(message[at : at + size]).digest() for at in places]

    def _possible(self, payloads: Bytes) -> NDArray[np.bool_]:
        return np.ones(len(payloads), bool)

    def _without_copies(self, held: Received) -> Received:
        """The reports of which no piece is in another one before it.

        Sealing draws a new key for every piece: what is the same is a copy. What begins alike and
        goes on otherwise does not open; taken for a copy, it could push an honest report aside.
        """
        pieces = self.reports.pieces(held.payloads)
        flat = np.ascontiguousarray(pieces).reshape(-1, self.reports.piece_bytes)
        _, first = np.unique(flat.view(f"S{self.reports.piece_bytes}"), return_index=True)
        new = np.zeros(len(flat), bool)
        new[first] = True
        rows = new.reshape(pieces.shape[:2]).all(axis=1)
        return Received(held.nonces[rows], held.payloads[rows])


class SealedShuffler(_OfReports, Shuffler):
    """Takes reports, and hands their pieces on in an order that nobody knows."""

    _state_begins = b"MHSEALEDSHUFFLER1"

    def take(self, messages: Iterable[bytes] | bytes) -> Intake:
        """Take reports as long as the key is valid: see `Collector.take`."""
        self.reports.key.require_valid()
        return super().take(messages)

    def _to_mix(self) -> Received:
        return self._without_copies(self.received())

    def _mix(self, held: Received) -> tuple[Bytes, Bytes]:
        """Each group of pieces in an order of its own."""
        pieces = self.reports.pieces(held.payloads)
        mixed, groups = np.empty_like(pieces), np.array(self.reports.groups)
        for group in range(len(self.protocol.randomizer.groups)):
            among = np.flatnonzero(groups == group)
            flat = pieces[:, among].reshape(-1, self.reports.piece_bytes)
            shape = len(pieces), len(among), self.reports.piece_bytes
            mixed[:, among] = flat[random_order(len(flat))].reshape(shape)
        return fresh_nonces(len(mixed)), mixed.reshape(held.payloads.shape)


class SealedServer(_OfReports, Server):
    """Keeps mixed reports as they are, and opens them when the round is closed.

    A single message that cannot be opened, or is none, is left out. A fragment that cannot be
    opened takes the sum that it belongs to with it, and nobody knows whose it was: there is no
    result.
    """

    _state_begins = b"MHSEALEDSERVER1"

    def __init__(self, reports: Reports, key: ServerKey) -> None:
        super().__init__(reports)
        if key.public.public != reports.key.public:
            raise InvalidInput(f"the reports are sealed to the key {reports.key.id}, not to this.")
        self._key = key

    def _opened(self) -> Received:
        sealed = self.received()
        held = self._without_copies(sealed)
        pieces, whole = self.reports.opened(held.payloads, self._key)
        randomizer = self.protocol.randomizer
        if randomizer.messages > 1:
            lost = len(whole) - sum(whole) + sealed.users - held.users
            if lost:
                raise InvalidInput(
                    f"pieces of {lost} mixed reports cannot be opened or occur twice: their sums "
                    "are lost, and nothing is released. A device or the shuffler is at fault."
                )
            return Received(*randomizer.joined(pieces))
        nonces, payloads = randomizer.joined(pieces[np.array(whole, bool)])
        valid = randomizer.valid(payloads)
        nonces, payloads = nonces[valid], payloads[valid]
        _, first = np.unique(nonces, axis=0, return_index=True)
        return Received(nonces[first], payloads[first])
