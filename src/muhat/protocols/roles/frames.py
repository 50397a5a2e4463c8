"""Messages in a file or a pipe: each behind its length, in four bytes, least significant first.

A reader takes whatever it finds: of a message that is too long no more is held than shows it, and
a file that ends in the middle of a message ends one message earlier.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import IO

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
