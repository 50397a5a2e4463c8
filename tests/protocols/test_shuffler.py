"""The shuffler hands everything on once, mixed; the sum is what a trusted curator would give."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.protocols import Protocol

PROMISE = mh.ApproxDP(epsilon=1.0, delta=1e-6)
N = 200


@pytest.fixture(scope="module")
def protocol() -> Protocol:
    return protocols.shuffle_mean(domain=mh.Ball(1.0, dim=2), n=N, privacy=PROMISE, minimum=150)


@pytest.fixture(scope="module")
def messages(protocol: Protocol) -> list[bytes]:
    return protocol.client().randomize_many(np.full((N, 2), 0.3))


def test_mixing_changes_no_sum(protocol, messages):
    plain, mixed, shuffler = protocol.server(), protocol.server(), protocol.shuffler()
    plain.take(messages)
    shuffler.take(messages)
    mixed.take(shuffler.mixed())
    assert mixed.users == N
    np.testing.assert_array_equal(plain.finish().value, mixed.finish().value)


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


def test_the_noise_counts_on_the_minimum_of_people(protocol):
    assert protocol.randomizer.noise.honest == 150
    fewer = protocols.shuffle_mean(domain=mh.Ball(1.0, dim=2), n=N, privacy=PROMISE, minimum=50)
    assert fewer.randomizer.expected_error(N) > protocol.randomizer.expected_error(N)


def test_the_error_is_that_of_a_trusted_curator():
    for dim, n in ((1, 500), (8, 2000), (32, 2000)):
        ball = mh.Ball(1.0, dim=dim)
        there = protocols.shuffle_mean(domain=ball, n=n, privacy=PROMISE, minimum=n)
        central = mh.plan_mean(domain=ball, n=n, privacy=PROMISE)
        assert there.randomizer.expected_error(n) <= 1.03 * central.expected_error


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
        (f'"shares":{noise.shares}', f'"shares":{noise.shares - 1}'),
        (f'"honest":{noise.honest}', f'"honest":{noise.honest // 2}'),
        ('"share":"1"', '"share":"1/2"'),
    ):
        assert old in text
        with pytest.raises(mh.InvalidInput):
            Protocol.from_json(text.replace(old, new))


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
