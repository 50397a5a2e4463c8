"""Messages in files: what was written comes back, and nothing breaks the reader."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest

from muhat.protocols.roles.messages import read_messages, write_messages


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


def test_of_a_message_that_is_too_long_the_beginning_is_held_and_the_rest_skipped():
    for length in (11, 1000, 1 << 22):
        body = struct.pack("<I", length) + bytes(length) + struct.pack("<I", 2) + b"ok"
        assert list(read_messages(io.BytesIO(body), longest=10)) == [bytes(11), b"ok"]


def test_a_length_that_promises_more_than_there_is_costs_nothing():
    body = struct.pack("<I", (1 << 32) - 1) + b"short"
    assert list(read_messages(io.BytesIO(body))) == [b""]
    # Just as long as a message would be: it is not taken for one.
    assert list(read_messages(io.BytesIO(struct.pack("<I", 20) + bytes(10)), longest=50)) == [b""]


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_are_read_to_the_end(seed):
    noise = np.random.default_rng(seed).bytes(5000)
    assert all(isinstance(found, bytes) for found in read_messages(io.BytesIO(noise)))
