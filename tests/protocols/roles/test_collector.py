"""Servers take what is a message, refuse the rest one by one, and lose nothing in between."""

from __future__ import annotations

import hashlib
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.protocols import Protocol
from muhat.protocols.roles.messages import HEADER_BYTES

N = 40


@pytest.fixture(scope="module")
def protocol() -> Protocol:
    return protocols.local_mean(
        domain=mh.Ball(1.0, dim=3), n=N, privacy=mh.ZCDP(rho=0.5), minimum=10
    )


@pytest.fixture(scope="module")
def messages(protocol: Protocol) -> list[bytes]:
    return protocol.crowd().randomize_many(np.full((N, 3), 0.2))


def test_a_message_is_as_long_as_the_description_says(protocol, messages):
    assert {len(message) for message in messages} == {protocol.bytes_per_user}


def test_the_result_is_the_same_for_every_order_and_batch(protocol, messages):
    values = []
    for cut, step in ((0, 1), (7, -1), (N, 1)):
        server = protocol.server()
        server.take(messages[:cut][::step])
        server.take(iter(messages[cut:][::step]))
        values.append(server.finish().value)
    for one, other in pairwise(values):
        np.testing.assert_array_equal(one, other)


def test_one_message_may_be_taken_by_itself(protocol, messages):
    server = protocol.server()
    assert server.take(messages[0]).accepted == 1
    assert server.users == 1


def test_states_are_saved_restored_and_merged_in_any_way(protocol, messages):
    whole = protocol.server()
    whole.take(messages)
    first, second = protocol.server(), protocol.server()
    first.take(messages[:25])
    second.take(messages[15:])  # ten of them arrive at both
    again = protocol.server(second.state())
    again.merge(protocol.server(first.state()))
    assert again.users == N
    assert again.rejected == {"replayed": 10}
    np.testing.assert_array_equal(again.finish().value, whole.finish().value)
    assert protocol.server(whole.state()).state() == whole.state()


def test_a_damaged_or_foreign_state_is_refused(protocol, messages):
    server = protocol.server()
    server.take(messages)
    state = server.state()
    for damaged in (b"", state[:-1], state[:50], state + b"x", b"X" + state[1:]):
        with pytest.raises(mh.InvalidInput, match="damaged"):
            protocol.server(damaged)
    other = protocols.local_mean(domain=mh.Ball(2.0, dim=3), n=N, privacy=mh.ZCDP(rho=0.5))
    with pytest.raises(mh.InvalidInput, match="another protocol"):
        other.server(state)
    with pytest.raises(mh.InvalidInput, match="different protocols"):
        other.server().merge(server)


def test_what_is_no_message_is_rejected_with_its_reason(protocol, messages):
    good = messages[0]
    flipped = bytearray(good)
    flipped[2] ^= 1
    wrong_round = bytearray(good)
    wrong_round[3] += 1
    other = bytearray(good)
    other[5] ^= 255
    impossible = good[:HEADER_BYTES] + b"\xff\xff\xff\x7f" * 3
    server = protocol.server()
    intake = server.take(
        [
            *(b"", good[:-1], good + b"\0", b"ZZ" + good[2:]),
            *(bytes(flipped), bytes(wrong_round), bytes(other), impossible),
            *("text", None, 3, good, good),
        ]
    )
    assert intake.accepted == 1
    assert intake.rejected == {
        "not bytes": 3,
        "too short": 2,
        "oversized": 1,
        "not a message of muhat": 1,
        "another version": 1,
        "another protocol": 1,
        "another round": 1,
        "an impossible payload": 1,
        "replayed": 1,
    }
    assert "3 not bytes" in str(intake)
    assert server.rejected == intake.rejected


def test_messages_of_other_rounds_are_told_from_damaged_ones_whatever_their_length(protocol):
    flat = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=N, privacy=mh.ZCDP(rho=0.5))
    long = protocols.local_mean(domain=mh.Ball(1.0, dim=8), n=N, privacy=mh.ZCDP(rho=0.5))
    sent = [
        each.client(account=False).randomize([0.0] * each.randomizer.record_dim)
        for each in (flat, long)
    ]
    later = [message[:3] + bytes([7]) + message[4:] for message in sent]
    views = [memoryview(message) for message in sent]
    found = protocol.server().take([*sent, *later, *views]).rejected
    assert found == {"another protocol": 2, "another round": 2, "too short": 1, "oversized": 1}
    same = protocols.local_mean(domain=mh.Ball(2.0, dim=3), n=N, privacy=mh.ZCDP(rho=0.5))
    message = same.client(account=False).randomize([0.0] * 3)
    later_same = message[:3] + bytes([2]) + message[4:]
    found = protocol.server().take([message, later_same]).rejected
    assert found == {"another protocol": 1, "another round": 1}


def test_more_messages_than_users_are_refused(protocol, messages):
    server = protocol.server()
    server.take(messages)
    late = protocol.crowd().randomize_many(np.zeros((3, 3)))
    assert server.take(late).rejected == {"more messages than users": 3}
    assert server.take(messages[:2]).rejected == {"replayed": 2}
    assert server.users == N


def test_nothing_is_released_below_the_minimum(protocol, messages):
    server = protocol.server()
    server.take(messages[:9])
    with pytest.raises(mh.InvalidInput, match=r"9 of 40 planned users .* at least 10"):
        server.finish()
    server.take(messages[9:10])
    release = server.finish()
    assert release.n == 10
    assert any("10 of 40 planned users" in said for said in release.assumptions)


def test_fuzzed_messages_never_stop_a_server(protocol, messages):
    rng = np.random.default_rng(7)
    size = protocol.bytes_per_user

    def fuzzed():
        for _ in range(100_000):
            kind = rng.integers(4)
            if kind == 0:  # random bytes of a random length
                yield rng.bytes(int(rng.integers(0, 2 * size)))
            elif kind == 1:  # the right length
                yield rng.bytes(size)
            else:  # a good message with a few bytes changed, the label included or not
                message = bytearray(messages[int(rng.integers(N))])
                start = 0 if kind == 2 else HEADER_BYTES - 16
                for place in rng.integers(start, size, 3):
                    message[place] = int(rng.integers(256))
                yield bytes(message)

    server = protocol.server()
    intake = server.take(fuzzed())
    assert intake.accepted + sum(intake.rejected.values()) == 100_000
    assert server.users <= N
    assert np.isfinite(server.finish().value).all()


def test_what_is_too_long_is_not_held(protocol, messages):
    server = protocol.server()
    tracemalloc.start()
    intake = server.take(bytes(1 << 22) for _ in range(64))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert intake.rejected == {"oversized": 64}
    assert peak < 1 << 24  # 64 of them have 2^28 bytes


def test_a_flood_of_replays_takes_no_memory(protocol, messages):
    server = protocol.server()
    server.take(messages)
    for _ in range(100):
        server.take(messages[0])
    assert len(server._payloads) == 1


def test_a_server_merged_with_itself_stays_what_it_is(protocol, messages):
    server = protocol.server()
    server.take(messages[:20])
    server.take(messages[20:])
    server.merge(server)
    assert server.users == N
    assert server.rejected == {"replayed": N}


def test_messages_of_one_nonce_count_once_whatever_they_say(protocol, messages):
    other = messages[0][:HEADER_BYTES] + messages[1][HEADER_BYTES:]
    first, second = protocol.server(), protocol.server()
    first.take([messages[0], other])
    second.take([other])
    first.merge(second)
    assert first.rejected == {"replayed": 2}
    assert first.received().payloads.tobytes() == messages[0][HEADER_BYTES:]


def test_a_state_that_somebody_made_up_is_read_as_carefully_as_messages(protocol, messages):
    good = protocol.server()
    good.take(messages[:5])
    start, body = good.state()[:9], bytearray(good.state()[41:])
    counts = 32 + 8  # behind the digest and the number of users

    def forged(changed):
        return start + hashlib.sha256(changed).digest() + bytes(changed)

    assert protocol.server(forged(body)).users == 5
    body[counts : counts + 8] = b"\xff" * 8  # rejected messages, as many as there can be
    server = protocol.server(forged(body))
    server.restore(forged(body))
    assert protocol.server(server.state()).users == 5
    body[32:40] = b"\xff" * 8
    with pytest.raises(mh.InvalidInput, match="damaged"):
        protocol.server(forged(body))
    impossible = bytearray(good.state()[41:])
    impossible[-12:] = b"\xff\xff\xff\x7f" * 3
    assert protocol.server(forged(impossible)).rejected == {"an impossible payload": 1}
    with pytest.raises(mh.InvalidInput, match="damaged"):
        protocol.server(forged(b"short"))


def test_a_state_holds_no_more_people_than_were_planned(protocol, messages):
    crowd = protocol.crowd().randomize_many(np.zeros((3 * N, 3)))
    servers = [protocol.server() for _ in range(3)]
    for index, server in enumerate(servers):
        server.take(crowd[index::3])
        servers[0].merge(server)
    assert servers[0].users == N
    assert servers[0].rejected == {"replayed": N, "more messages than users": 2 * N}


@pytest.mark.parametrize("state", ["text", 3, [b"MHSERVER1"], {}])
def test_a_state_that_is_not_bytes_is_refused(protocol, state):
    with pytest.raises(mh.InvalidInput, match="state must be bytes"):
        protocol.server(state)


def test_only_collectors_of_one_kind_are_merged(protocol):
    for other in (protocol.shuffler(), protocol, None, b""):
        with pytest.raises(mh.InvalidInput, match="Server merges with another one"):
            protocol.server().merge(other)


def test_take_refuses_what_is_not_a_collection(protocol):
    with pytest.raises(mh.InvalidInput, match="messages must be bytes"):
        protocol.server().take(3)


def test_no_repr_carries_a_record(protocol):
    canary = 0.123456789
    client = protocol.client(account=False)
    message = client.randomize([canary] * 3)
    server = protocol.server()
    server.take(message)
    assert "123456" not in repr(client) + repr(server) + repr(protocol)


def test_two_messages_of_one_record_have_nothing_in_common(protocol):
    one, other = protocol.crowd().randomize_many(np.zeros((2, 3)))
    assert one[:12] == other[:12]
    assert one[12:28] != other[12:28]
    assert one[28:] != other[28:]
