"""The shuffler hands everything on once, mixed; the sum is what a trusted curator would give."""

from __future__ import annotations

import hashlib
import json
import struct

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.protocols import Protocol
from muhat.protocols.means.shuffle_chain import ShuffleChain
from muhat.protocols.roles.model import Turnout

PROMISE = mh.ApproxDP(epsilon=1.0, delta=1e-6)
N = 200


@pytest.fixture(scope="module")
def protocol() -> Protocol:
    return protocols.shuffle_mean(domain=mh.Ball(1.0, dim=2), n=N, privacy=PROMISE, minimum=150)


@pytest.fixture(scope="module")
def messages(protocol: Protocol) -> list[bytes]:
    return protocol.crowd().randomize_many(np.full((N, 2), 0.3))


def test_mixing_changes_no_sum(protocol, messages):
    plain, mixed, shuffler = protocol.server(), protocol.server(), protocol.shuffler()
    plain.take(messages)
    shuffler.take(messages)
    mixed.take(shuffler.mixed())
    assert mixed.users == N
    np.testing.assert_array_equal(plain.finish().value, mixed.finish().value)


def test_a_server_holds_the_sum_of_fragments_and_not_the_messages(protocol, messages):
    whole, first, second = (protocol.server() for _ in range(3))
    for message in messages:
        whole.take(message)
    assert [len(each) for each in whole._payloads] == [1]
    assert len(whole.state()) < 200 + N * 16 + protocol.bytes_per_user
    first.take(messages[:120])
    second.take(messages[120:])
    first.take(messages[:3])
    first.merge(protocol.server(second.state()))
    first.merge(second)  # all of it is here
    second.merge(first)  # which has all that is here
    assert first.rejected == {"replayed": 3 + 80}
    for other in (first, second, protocol.server(whole.state())):
        assert other.users == N
        assert other.received().payloads.tobytes() == whole.received().payloads.tobytes()
        np.testing.assert_array_equal(other.finish().value, whole.finish().value)


def test_sums_that_have_some_messages_in_common_are_not_merged(protocol, messages):
    first, second, late = (protocol.server() for _ in range(3))
    first.take(messages[:120])
    second.take(messages[80:])
    late.take(protocol.crowd().randomize_many(np.zeros((N - 119, 2))))
    for other in (second, late):
        with pytest.raises(mh.InvalidInput, match="sums are not taken apart"):
            first.merge(other)
        with pytest.raises(mh.InvalidInput, match="sums are not taken apart"):
            first.restore(other.state())
    assert first.users == 120
    first.take(messages[80:])
    assert first.users == N


def test_states_with_every_message_are_read_as_before(protocol, messages):
    server, shuffler = protocol.server(), protocol.shuffler()
    server.take(messages)
    shuffler.take(messages)
    body = shuffler.state()[43:]
    old = b"MHSERVER1" + hashlib.sha256(body).digest() + body
    again = protocol.server(old)
    assert again.users == N
    assert again.state() == server.state()


def test_nothing_of_a_message_stays_together(protocol, messages):
    shuffler = protocol.shuffler()
    shuffler.take(messages)
    handed_on = shuffler.mixed()
    assert not {message[12:28] for message in messages} & {m[12:28] for m in handed_on}
    # Each of 200 payloads has m·2 shares of 200 people: none comes through by chance.
    assert not {message[28:] for message in messages} & {m[28:] for m in handed_on}


def test_messages_are_handed_on_once(protocol, messages):
    shuffler = protocol.shuffler()
    shuffler.take(messages)
    shuffler.mixed()
    with pytest.raises(mh.InvalidInput, match="already"):
        shuffler.mixed()
    with pytest.raises(mh.InvalidInput, match="already"):
        shuffler.take(messages)


def test_after_they_were_handed_on_no_way_leads_to_the_messages(protocol, messages):
    shuffler, late = protocol.shuffler(), protocol.shuffler()
    shuffler.take(messages)
    saved = shuffler.state()
    shuffler.mixed()
    late.take(messages[:3])
    for attempt in (
        shuffler.state,
        shuffler.received,
        lambda: shuffler.merge(late),
        lambda: late.merge(shuffler),
        lambda: shuffler.restore(saved),
    ):
        with pytest.raises(mh.InvalidInput, match="already"):
            attempt()
    assert late.users == 3


def test_a_server_does_not_take_what_a_shuffler_has_not_mixed(protocol, messages):
    shuffler, server = protocol.shuffler(), protocol.server()
    shuffler.take(messages)
    with pytest.raises(mh.InvalidInput, match="Server"):
        server.merge(shuffler)
    with pytest.raises(mh.InvalidInput, match="not that of a Server"):
        server.restore(shuffler.state())
    assert protocol.shuffler().restore(shuffler.state()).users == N
    assert server.users == 0


def test_shufflers_in_several_processes_mix_as_one(protocol, messages):
    first, second = protocol.shuffler(), protocol.shuffler()
    first.take(messages[:120])
    second.take(messages[80:])
    first.merge(protocol.shuffler().restore(second.state()))
    assert len(first.mixed()) == N


def test_too_few_people_to_hide_among_are_not_handed_on(protocol, messages):
    shuffler = protocol.shuffler()
    shuffler.take(messages[:149])
    with pytest.raises(mh.InvalidInput, match=r"149 of 200 .* at least 150"):
        shuffler.mixed()
    shuffler.take(messages[:150])  # 149 of them again, which are not counted twice
    assert shuffler.users == 150
    server = protocol.server()
    server.take(shuffler.mixed())
    assert server.finish().n == 150


def test_no_message_counts_twice_towards_the_minimum(protocol, messages):
    few = protocol.shuffler()
    few.take(messages[:149])
    few.restore(few.state())
    few.merge(few)
    few.merge(protocol.shuffler().restore(few.state()))
    assert few.users == 149
    # A state that somebody made up, whole and with one message 200 times.
    once = protocol.shuffler()
    once.take(messages[:1])
    begins, body = b"MHSHUFFLER1", once.state()[43:]
    digest, counts, message = body[:32], body[40:120], body[120:]
    forged = digest + struct.pack("<Q", N) + counts + message[:16] * N + message[16:] * N
    whole = begins + hashlib.sha256(forged).digest() + forged
    assert protocol.shuffler().restore(whole).users == 1
    for shuffler in (few, once.restore(whole)):
        with pytest.raises(mh.InvalidInput, match="needed to hide among"):
            shuffler.mixed()
    assert few.users == 149  # what is refused is not lost


def test_the_noise_counts_on_the_minimum_of_people(protocol):
    assert protocol.randomizer.noise.honest == 150
    fewer = protocols.shuffle_mean(domain=mh.Ball(1.0, dim=2), n=N, privacy=PROMISE, minimum=50)
    assert fewer.randomizer.expected_error(N) > protocol.randomizer.expected_error(N)


def test_turnout_and_honesty_are_two_numbers(messages):
    ball = mh.Ball(1.0, dim=2)
    wary = protocols.shuffle_mean(domain=ball, n=N, privacy=PROMISE, minimum=150, honest=100)
    assert (wary.minimum, wary.honest, wary.counted_on) == (150, 100, 100)
    assert wary.randomizer.noise.honest == 100
    again = Protocol.from_json(wary.to_json())
    assert again == wary
    assert "at least 100 users of 150 are honest" in repr(again)
    shuffler, server = wary.shuffler(), wary.server()
    shuffler.take(wary.crowd().randomize_many(np.zeros((149, 2))))
    with pytest.raises(mh.InvalidInput, match="at least 150"):
        shuffler.mixed()
    shuffler.take(wary.crowd().randomize_many(np.zeros((1, 2))))
    server.take(shuffler.mixed())
    assert any(
        "100 users of 150 follow the protocol" in said for said in server.finish().assumptions
    )
    # A description whose noise counts on more people than it says is no promise.
    text = wary.to_json()
    assert '"honest":100,"learnt"' in text
    with pytest.raises(mh.InvalidInput, match="with 99 honest users"):
        Protocol.from_json(text.replace('"honest":100,"learnt"', '"honest":99,"learnt"'))


def test_without_a_number_of_honest_people_all_of_the_minimum_are_counted_on(protocol):
    assert protocol.honest is None
    assert protocol.counted_on == 150
    assert '"honest":150' in protocol.to_json()  # of the noise alone
    assert "150 users (all, if no more answer) are honest" in repr(protocol)
    more = protocols.shuffle_mean(domain=mh.Ball(1.0, dim=2), n=N, privacy=PROMISE, honest=190)
    assert (more.minimum, more.counted_on) == (190, 190)


@pytest.mark.parametrize("honest", [0, 151, -1, 2.5, "many", 201])
def test_honest_people_are_among_those_who_answer(protocol, honest):
    with pytest.raises(mh.InvalidInput, match="honest"):
        protocols.shuffle_mean(
            domain=mh.Ball(1.0, dim=2), n=N, privacy=PROMISE, minimum=150, honest=honest
        )
    with pytest.raises(mh.InvalidInput):
        Protocol.from_json(json.dumps({**json.loads(protocol.to_json()), "honest": honest}))


def test_the_local_model_counts_on_nobody():
    local = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=N, privacy=PROMISE)
    with pytest.raises(mh.InvalidInput, match="counts on nobody"):
        Protocol.from_json(json.dumps({**json.loads(local.to_json()), "honest": 10}))


def test_every_protocol_of_the_shuffle_model_counts_on_the_honest_in_every_round():
    asked = {"n": 2000, "privacy": PROMISE, "minimum": 1900, "honest": 1500}
    line = {"lower": 0, "upper": 100}
    rounds = []
    people = np.random.default_rng(5).uniform(0, 100, (2000, 1))
    protocols.simulate(protocols.shuffle_quantile(**line, **asked), people, watch=rounds.append)
    assert len(rounds) > 1
    rounds.append(protocols.shuffle_ranges(**line, cells=4, **asked))
    rounds.append(protocols.shuffle_mean(domain=mh.Reals(dim=1, magnitude=10), **asked))
    for each in rounds:
        assert (each.minimum, each.honest) == (1900, 1500)
        assert {part.noise.honest for part in each.randomizer.parts} == {1500}


def test_the_error_is_that_of_a_trusted_curator():
    """With normal noise; a curator may also have that of a norm, which nobody can share out."""
    for dim, n, best in ((1, 500, 1.08), (2, 500, 1.7), (8, 2000, 1.45), (32, 2000, 1.13)):
        ball = mh.Ball(1.0, dim=dim)
        there = protocols.shuffle_mean(domain=ball, n=n, privacy=PROMISE, minimum=n)
        error = there.randomizer.expected_error(n)
        normal = mh.plan_mean(domain=ball, n=n, privacy=PROMISE, mechanism="gaussian")
        assert error <= 1.03 * normal.expected_error
        central = mh.plan_mean(domain=ball, n=n, privacy=PROMISE)
        assert 0.99 * central.expected_error <= error <= best * central.expected_error


@pytest.mark.parametrize("promise", [mh.PureDP(epsilon=1.0), mh.ZCDP(rho=1.0), mh.GDP(mu=1.0)])
def test_a_promise_without_delta_is_refused_with_a_hint(promise):
    with pytest.raises(mh.InvalidInput, match="ApproxDP"):
        protocols.shuffle_mean(domain=mh.Ball(1.0, dim=2), n=N, privacy=promise)


def test_a_release_says_whom_it_trusts(protocol):
    release = protocols.simulate(protocol, np.zeros((N, 2)))
    assert release.mechanism == "shuffle-shares"
    assert any("shuffler" in said for said in release.assumptions)
    assert release.certificate.ratio > 1
    assert mh.Release.from_json(release.to_json()).privacy == PROMISE


def test_a_description_with_less_noise_than_promised_is_refused(protocol):
    text = protocol.to_json()
    noise = protocol.randomizer.noise
    for old, new in (
        (f'"shares":{noise.fragments}', f'"shares":{noise.fragments - 1}'),
        (f'"honest":{noise.honest}', f'"honest":{noise.honest // 2}'),
        ('"share":"1"', '"share":"1/2"'),
    ):
        assert old in text
        with pytest.raises(mh.InvalidInput):
            Protocol.from_json(text.replace(old, new))


def test_shares_of_several_parts_are_mixed_and_need_their_people_like_those_of_one():
    joint = ShuffleChain(mh.Reals(2, 9.0), PROMISE, N).first(Turnout(150))
    fields = json.loads(joint.to_json())
    shares = fields["randomizer"]["parts"][0]
    sent = joint.crowd().randomize_many(np.full((N, 2), 0.3))
    shuffler = joint.shuffler()
    shuffler.take(sent)
    assert not {message[28:] for message in sent} & {message[28:] for message in shuffler.mixed()}
    with pytest.raises(mh.InvalidInput, match="do not keep"):
        Protocol.from_json(json.dumps({**fields, "minimum": 149}))
    local = json.loads(
        protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=N, privacy=PROMISE).to_json()
    )
    for unmixed in (fields["randomizer"], {"kind": "shares", **shares}):
        with pytest.raises(mh.InvalidInput, match="do not keep"):
            Protocol.from_json(json.dumps({**local, "randomizer": unmixed}))


def test_a_route_that_cannot_be_taken_leaves_the_other():
    promise = mh.ApproxDP(epsilon=1e-6, delta=1e-300)  # more shares than there may be
    found = protocols.shuffle_mean(domain=mh.Ball(1.0, dim=2), n=50, privacy=promise)
    assert found.randomizer.kind == "cap"


def test_a_single_message_is_short_and_as_loud_as_the_crowd_allows():
    ball = mh.Ball(1.0, dim=3)
    short = protocols.shuffle_mean(domain=ball, n=1000, privacy=PROMISE, most_bytes=40)
    assert short.randomizer.kind == "cap"
    assert short.messages_per_user == 1
    assert 3 < short.randomizer.epsilon < 5
    alone = protocols.local_mean(domain=ball, n=1000, privacy=PROMISE)
    shares = protocols.shuffle_mean(domain=ball, n=1000, privacy=PROMISE)
    errors = [each.randomizer.expected_error(1000) for each in (shares, short, alone)]
    assert errors == sorted(errors)
    assert Protocol.from_json(short.to_json()).label == short.label
    release = protocols.simulate(short, np.full((1000, 3), 0.2))
    assert release.mechanism == "shuffle-cap"


def test_a_single_message_that_is_too_loud_for_its_crowd_is_refused():
    short = protocols.shuffle_mean(
        domain=mh.Ball(1.0, dim=3), n=1000, privacy=PROMISE, most_bytes=40
    )
    text = short.to_json()
    assert '"minimum":900' in text
    with pytest.raises(mh.InvalidInput, match="do not keep"):
        Protocol.from_json(text.replace('"minimum":900', '"minimum":600'))
    with pytest.raises(mh.InvalidInput, match="most_bytes must be at least 30"):
        protocols.shuffle_mean(domain=mh.Ball(1.0, dim=3), n=1000, privacy=PROMISE, most_bytes=20)
