"""What a device sends if it is sealed: the pieces of a message, each for the server alone.

    bytes 0–1     "MS"
    byte  2       version of the format
    byte  3       round
    bytes 4–11    the first bytes of SHA-256 over "muhat sealed", the description's SHA-256, the key
    bytes 12–27   number: random, tells the report from all others
    bytes 28–     the sealed pieces, one after the other, all of one length

A fragment is a piece, in eight bytes whatever its modulus; so is a whole message, nonce and
payload, where messages are not split. Each is sealed by itself (`sealing_keys.py`), for the label
of the report (the bytes 0–11) and its group, the number that it is a fragment of, in two bytes, the
most significant first. So a shuffler can permute pieces that it cannot read, and nobody can use a
piece for another round, another number or another key.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from muhat._arrays import Bytes
from muhat.protocols.encodings.encoding import NONCE_BYTES, fresh_nonces
from muhat.protocols.roles.messages import HEADER_BYTES, LABEL_BYTES, VERSION, pack
from muhat.protocols.roles.sealing_keys import OVERHEAD, SealingKey, ServerKey

if TYPE_CHECKING:
    from muhat.protocols.roles.protocol import Protocol

MAGIC = b"MS"
_PURPOSE = b"muhat sealed"


@dataclass(frozen=True)
class Reports:
    """The reports of one round that are sealed to one key."""

    protocol: Protocol
    key: SealingKey

    @cached_property
    def digest(self) -> bytes:
        """What tells this round under this key from all others."""
        described = bytes.fromhex(self.protocol.digest)
        return hashlib.sha256(_PURPOSE + described + self.key.public).digest()

    @property
    def label(self) -> bytes:
        """What every report begins with."""
        return MAGIC + bytes([VERSION, self.protocol.round]) + self.digest[:8]

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """Of every piece, with which others it is mixed."""
        sizes = self.protocol.randomizer.groups
        return tuple(np.repeat(np.arange(len(sizes)), sizes).tolist())

    @cached_property
    def piece_bytes(self) -> int:
        """Of a sealed piece."""
        randomizer = self.protocol.randomizer
        none = (
            np.empty((0, NONCE_BYTES), np.uint8),
            np.empty((0, randomizer.payload_bytes), np.uint8),
        )
        return int(randomizer.pieces(*none).shape[2]) + OVERHEAD

    @property
    def payload_bytes(self) -> int:
        """What follows the number of a report."""
        return len(self.groups) * self.piece_bytes

    @property
    def report_bytes(self) -> int:
        """What a device sends."""
        return HEADER_BYTES + self.payload_bytes

    def seal(self, message: bytes) -> bytes:
        """A device's message as a report."""
        whole = np.frombuffer(message, np.uint8)[None, :]
        nonces, payloads = whole[:, LABEL_BYTES:HEADER_BYTES], whole[:, HEADER_BYTES:]
        (pieces,) = self.protocol.randomizer.pieces(nonces, payloads)
        sealed = b"".join(
            self.key.seal(piece.tobytes(), self._info(group))
            for piece, group in zip(pieces, self.groups, strict=True)
        )
        number = fresh_nonces(1)
        (report,) = pack(self.label, number, np.frombuffer(sealed, np.uint8)[None, :])
        return report

    def opened(self, payloads: Bytes, key: ServerKey) -> tuple[Bytes, list[bool]]:
        """The pieces of reports, (rows, pieces, bytes), and of every row whether all were opened.

        A piece that cannot be opened is zeros.
        """
        size = self.piece_bytes - OVERHEAD
        found = np.zeros((len(payloads), len(self.groups), size), np.uint8)
        whole = []
        for row, pieces in zip(found, self.pieces(payloads), strict=True):
            opened = [
                key.unseal(piece.tobytes(), self._info(group))
                for piece, group in zip(pieces, self.groups, strict=True)
            ]
            fits = [piece is not None and len(piece) == size for piece in opened]
            for place, piece in enumerate(opened):
                if piece is not None and fits[place]:
                    row[place] = np.frombuffer(piece, np.uint8)
            whole.append(all(fits))
        return found, whole

    def pieces(self, payloads: Bytes) -> Bytes:
        """The sealed pieces of reports, (rows, pieces, bytes)."""
        return payloads.reshape(len(payloads), len(self.groups), self.piece_bytes)

    def _info(self, group: int) -> bytes:
        return self.label + group.to_bytes(2, "big")
