"""Messages in files: what was written comes back, and nothing breaks the reader."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest

from muhat.protocols.frames import LONGEST, read_messages, write_messages


def test_messages_come_back_as_they_were_written():
    messages = [b"", b"one", bytes(1000)]
    stream = io.BytesIO()
    write_messages(stream, messages)
    stream.seek(0)
    assert list(read_messages(stream)) == messages


def test_a_file_that_ends_too_early_gives_an_empty_message():
    stream = io.BytesIO()
    write_messages(stream, [b"first", b"second"])
    for end in range(10, len(stream.getvalue())):
        found = list(read_messages(io.BytesIO(stream.getvalue()[:end])))
        assert found[0] == b"first"
        assert found[1:] in ([b""], [])


def test_a_message_too_long_to_be_one_is_skipped():
    body = struct.pack("<I", LONGEST + 1) + bytes(LONGEST + 1) + struct.pack("<I", 2) + b"ok"
    assert list(read_messages(io.BytesIO(body))) == [b"", b"ok"]


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_are_read_to_the_end(seed):
    noise = np.random.default_rng(seed).bytes(5000)
    assert all(isinstance(found, bytes) for found in read_messages(io.BytesIO(noise)))
