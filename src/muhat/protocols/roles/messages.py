"""The envelope of a message: which protocol and round it belongs to, a nonce, and the payload.

    bytes 0–1     "MH"
    byte  2       version of the format
    byte  3       round
    bytes 4–11    the first bytes of the description's SHA-256
    bytes 12–27   nonce: random, tells the message from all others
    bytes 28–     payload, of the length that the description implies

A message says nothing about its sender but its payload. What cannot be a message of the round is
rejected one by one, with a reason, and never raises.

In a file or a pipe messages stand each behind its length, in four bytes, least significant first.

A reader takes whatever it finds: of a message that is too long no more is held than shows it, and
a file that ends in the middle of a message ends one message earlier.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice
from typing import IO

import numpy as np

from muhat._arrays import Bytes
from muhat.protocols.encodings.encoding import NONCE_BYTES

MAGIC = b"MH"
VERSION = 1
LABEL_BYTES = 12
HEADER_BYTES = LABEL_BYTES + NONCE_BYTES

MOST_AT_ONCE = 1 << 14
"""Messages handled together: enough to hide numpy's overhead ..."""

MOST_BYTES = 1 << 22
"""... if they are not too long for that."""


class Rejection(StrEnum):
    """Why a message was not taken."""

    NOT_BYTES = "not bytes"
    TOO_SHORT = "too short"
    OVERSIZED = "oversized"
    NOT_A_MESSAGE = "not a message of muhat"
    VERSION = "another version"
    PROTOCOL = "another protocol"
    ROUND = "another round"
    PAYLOAD = "an impossible payload"
    REPLAYED = "replayed"
    FULL = "more messages than users"


def label(round_number: int, digest: bytes) -> bytes:
    """The first bytes of every message of a round."""
    return MAGIC + bytes([VERSION, round_number]) + digest[:8]


def pack(start: bytes, nonces: Bytes, payloads: Bytes) -> list[bytes]:
    """The messages of these nonces and payloads, one a row."""
    size = HEADER_BYTES + payloads.shape[1]
    step = _at_once(size)
    made: list[bytes] = []
    for first in range(0, len(nonces), step):
        part = slice(first, first + step)
        rows = len(nonces[part])
        head = np.broadcast_to(np.frombuffer(start, np.uint8), (rows, LABEL_BYTES))
        whole = np.concatenate([head, nonces[part], payloads[part]], axis=1).tobytes()
        made += [whole[at : at + size] for at in range(0, rows * size, size)]
    return made


def _at_once(size: int) -> int:
    """How many messages of a length are handled together."""
    return max(1, min(MOST_AT_ONCE, MOST_BYTES // size))


def batches(
    messages: Iterable[object], start: bytes, payload_bytes: int, rejected: Counter[Rejection]
) -> Iterator[tuple[Bytes, Bytes]]:
    """Nonces and payloads of the messages that carry the label, some thousands at a time.

    Shapes (rows, 16) and (rows, payload_bytes). The others are counted in `rejected`, and of those
    that are too long none is held.
    """
    size = HEADER_BYTES + payload_bytes
    fitting = _fitting(messages, start, size, rejected)
    while block := list(islice(fitting, _at_once(size))):
        whole = np.frombuffer(b"".join(block), np.uint8).reshape(len(block), size)
        same = whole[:, :LABEL_BYTES] == np.frombuffer(start, np.uint8)
        for reason, part in _LABEL_PARTS:
            right = same[:, part].all(axis=1)
            if not right.all():
                rejected[reason] += int((~right).sum())
                whole, same = whole[right], same[right]
        yield whole[:, LABEL_BYTES:HEADER_BYTES], whole[:, HEADER_BYTES:]


_LABEL_PARTS = (
    (Rejection.NOT_A_MESSAGE, slice(0, 2)),
    (Rejection.VERSION, slice(2, 3)),
    # Of another round the digest differs too.
    (Rejection.ROUND, slice(3, 4)),
    (Rejection.PROTOCOL, slice(4, LABEL_BYTES)),
)


def _fitting(
    messages: Iterable[object], start: bytes, size: int, rejected: Counter[Rejection]
) -> Iterator[bytes]:
    """The messages of the right length, as they come."""
    for message in messages:
        if type(message) is bytes and len(message) == size:
            yield message
            continue
        if not isinstance(message, bytes | bytearray | memoryview):
            rejected[Rejection.NOT_BYTES] += 1
            continue
        length = message.nbytes if isinstance(message, memoryview) else len(message)
        if length == size:
            yield bytes(message)
        elif (other := _elsewhere(message, start)) is not None:
            rejected[other] += 1
        else:
            rejected[Rejection.TOO_SHORT if length < size else Rejection.OVERSIZED] += 1


def _elsewhere(message: bytes | bytearray | memoryview, start: bytes) -> Rejection | None:
    """Which label a message of another length carries, if it is not this round's."""
    said = b"" if isinstance(message, memoryview) else bytes(message[:LABEL_BYTES])
    if len(said) < LABEL_BYTES or said[:3] != start[:3] or said == start:
        return None
    return Rejection.ROUND if said[3] != start[3] else Rejection.PROTOCOL


LONGEST = 1 << 26
"""No message is longer, nor is a description."""

_CHUNK = 1 << 20


def write_messages(stream: IO[bytes], messages: Iterable[bytes]) -> int:
    """Append messages to a stream; how many there were."""
    count = 0
    for message in messages:
        stream.write(struct.pack("<I", len(message)) + message)
        count += 1
    return count


def read_messages(stream: IO[bytes], longest: int = LONGEST) -> Iterator[bytes]:
    """The messages of a stream, one by one.

    Of one that is longer than `longest` the beginning comes out, which is still too long; a last
    one that is not complete comes out empty.
    """
    while len(head := stream.read(4)) == 4:
        (length,) = struct.unpack("<I", head)
        wanted = min(length, longest + 1)
        message = stream.read(wanted)
        _skip(stream, length - wanted)
        yield message if len(message) == wanted else b""
    if head:
        yield b""


def _skip(stream: IO[bytes], length: int) -> None:
    while length > 0 and (read := len(stream.read(min(length, _CHUNK)))):
        length -= read
