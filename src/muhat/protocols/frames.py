"""Messages in a file or a pipe: each behind its length, in four bytes, least significant first.

A reader takes whatever it finds: a message that is too long to be one is skipped without being
held, and a file that ends in the middle of a message ends one message earlier.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import BinaryIO

LONGEST = 1 << 26
"""No message is longer."""

_CHUNK = 1 << 20


def write_messages(stream: BinaryIO, messages: Iterable[bytes]) -> None:
    """Append messages to a stream."""
    for message in messages:
        stream.write(struct.pack("<I", len(message)) + message)


def read_messages(stream: BinaryIO) -> Iterator[bytes]:
    """The messages of a stream, one by one; what is no message comes out as an empty one."""
    while len(head := stream.read(4)) == 4:
        (length,) = struct.unpack("<I", head)
        if length > LONGEST:
            _skip(stream, length)
            yield b""
            continue
        message = stream.read(length)
        yield message if len(message) == length else b""
    if head:
        yield b""


def _skip(stream: BinaryIO, length: int) -> None:
    while length > 0 and (read := len(stream.read(min(length, _CHUNK)))):
        length -= read
