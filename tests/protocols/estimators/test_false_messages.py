"""What a false message does is bounded, said beforehand, and seen where it can be."""

from __future__ import annotations

import math

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.protocols.estimators.false_messages import LEARNT, NOT_CAUGHT, OUTSIDE
from muhat.protocols.randomizers.noise_randomizer import NoiseRandomizer
from muhat.protocols.roles.messages import pack

PURE = mh.PureDP(epsilon=1.0)
NORMAL = mh.ZCDP(rho=0.5)
MIXED = mh.ApproxDP(epsilon=1.0, delta=1e-6)
N = 40
OBLIQUE = np.array([[1.0, 0.5], [0.0, 1.0]]) @ mh.Box([0, 0], [1, 1])
MEANS = {
    "cap": (mh.Ball(1.0, dim=3), PURE, None),
    "cap on a line": (mh.Box([0.0], [4.0]), PURE, "cap"),
    "few numbers": (mh.Box([0.0], [4.0]), PURE, "interval"),
    "cap, oblique": (OBLIQUE, PURE, None),
    "subset": (mh.Points(np.eye(4)), PURE, "subset"),
    "gaussian": (mh.Box([0.0, 0.0], [1.0, 9.0]), NORMAL, None),
    "gaussian, oblique": (OBLIQUE, NORMAL, None),
    "stairs": (mh.Box([0.0, 0.0], [1.0, 9.0]), mh.PureDP(epsilon=8.0), None),
    "stairs, oblique": (OBLIQUE, mh.PureDP(epsilon=8.0), None),
}


def loudest(randomizer, rows):
    """Nonces and payloads that a sender may choose: every answer is one of some record."""
    draw = np.random.default_rng(3)
    nonces = draw.integers(0, 256, (rows, 16), np.uint8)
    if isinstance(randomizer, NoiseRandomizer):
        signs = draw.choice([-1, 1], (rows, randomizer.query.rows))
        payloads = (signs * randomizer.reach).astype(randomizer.number).view(np.uint8)
    else:
        payloads = randomizer.randomize(draw.normal(0, 9, (rows, randomizer.record_dim)), nonces)
    assert randomizer.valid(payloads).all()
    return nonces, payloads


@pytest.mark.parametrize("name", MEANS)
def test_no_false_message_moves_the_mean_farther_than_was_said(name):
    domain, promise, mechanism = MEANS[name]
    protocol = protocols.local_mean(domain=domain, n=N, privacy=promise, mechanism=mechanism)
    randomizer = protocol.randomizer
    step = randomizer.false_step(N)
    nonces, payloads = loudest(randomizer, N + 200)
    honest = nonces[:N].copy(), payloads[:N].copy()
    means = []
    for nonce, payload in zip(nonces[N:], payloads[N:], strict=True):
        sent = honest[0].copy(), honest[1].copy()
        sent[0][0], sent[1][0] = nonce, payload
        means.append(randomizer.mean(*sent))
    moved = np.ptp(means, axis=0)
    assert (moved <= step * (1 + 1e-9)).all()
    # The bound is no wider than it has to be by much: half of it is passed.
    assert (moved > step / 4).any()
    several = [a.copy() for a in honest]
    several[0][:5], several[1][:5] = nonces[-5:], payloads[-5:]
    far = np.abs(randomizer.mean(*several) - randomizer.mean(*honest))
    assert (far <= 5 * step * (1 + 1e-9)).all()


def test_on_a_line_the_bound_is_attained():
    randomizer = protocols.local_mean(domain=mh.Box([0.0], [4.0]), n=N, privacy=PURE).randomizer
    nonces, payloads = loudest(randomizer, 300)
    alone = [
        randomizer.mean(nonce[None], payload[None])[0]
        for nonce, payload in zip(nonces, payloads, strict=True)
    ]
    np.testing.assert_allclose(max(alone) - min(alone), randomizer.false_step(1)[0])


def test_it_is_said_before_anybody_answers_and_with_the_release():
    bounds = {"age": (16, 90), "pay": (0, 1e5)}
    protocol = protocols.local_mean(domain=bounds, n=N, privacy=NORMAL)
    age, pay = protocol.randomizer.false_step(N)
    told = f"one false message of {N} moves the mean by at most {age:.3g} in age, {pay:.3g} in pay"
    assert told in repr(protocol)
    release = protocols.simulate(protocol, np.full((N, 2), 50.0))
    assert any(told in said for said in release.assumptions)
    wide = protocols.local_mean(domain=mh.Ball(1.0, dim=9), n=N, privacy=PURE)
    largest = wide.randomizer.false_step(N).max()
    assert f"any coordinate of the mean by at most {largest:.3g}" in repr(wide)


def test_single_messages_in_a_crowd_are_bounded_too():
    short = protocols.shuffle_mean(domain=mh.Ball(1.0, dim=2), n=1000, privacy=MIXED, most_bytes=40)
    alone = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=1000, privacy=PURE)
    assert "one false message of 1000" in repr(short)
    # As loud as the crowd allows is less loud for a liar than a small epsilon makes it.
    assert (short.randomizer.false_step(1000) < alone.randomizer.false_step(1000)).all()


def spoilt(protocol, messages, part):
    """The messages, one of them with a fragment that adds a part of the modulus."""
    randomizer, modulus = protocol.randomizer, protocol.randomizer.noise.modulus
    *others, last = messages
    whole = np.frombuffer(last, np.uint8)[None, :]
    fragments = randomizer.unpacked(np.ascontiguousarray(whole[:, 28:]))
    fragments[0, 0, 0] = (int(fragments[0, 0, 0]) + int(part * modulus)) % modulus
    return [*others, *pack(protocol.label, whole[:, 12:28], randomizer.packed(fragments))]


def test_a_false_fragment_is_not_caught_but_a_mean_outside_of_the_domain_is_seen():
    protocol = protocols.shuffle_mean(domain=mh.Ball(1.0, dim=2), n=100, privacy=MIXED)
    said = protocol.estimator.false_answers(protocol, 100)
    assert said in repr(protocol)
    assert "its sender is not caught; in the local model (local_mean) errors are about" in said
    alone = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=100, privacy=MIXED).randomizer
    larger = alone.expected_error(100) / protocol.randomizer.expected_error(100)
    assert f"{larger:.2g} times as large, and one false message of 100 moves the mean" in said
    messages = protocol.crowd().randomize_many(np.full((100, 2), 0.3))
    seen, values = [], []
    for part in (0, 1 / 16, 7 / 16, 9 / 16):
        server = protocol.server()
        assert server.take(spoilt(protocol, messages, part)).accepted == 100
        release = server.finish()
        assert said in release.assumptions
        seen.append(OUTSIDE in release.assumptions)
        values.append(release.value[0])
    assert np.ptp(values) > 2  # one person among a hundred
    assert not seen[0]
    assert any(seen)


def test_honest_means_at_the_edge_are_not_called_false():
    """Of 10 means with much noise none; the chance that one is would be 1e-8."""
    for _ in range(5):
        for promise, plan in ((MIXED, protocols.shuffle_mean), (PURE, protocols.local_mean)):
            protocol = plan(domain=mh.Box([0.0], [1.0]), n=50, privacy=promise)
            release = protocols.simulate(protocol, np.ones((50, 1)))
            assert OUTSIDE not in release.assumptions


def test_rounds_that_learn_say_so():
    reals = mh.Reals(dim=1, magnitude=10.0)
    chain = protocols.local_mean(domain=reals, n=20_000, privacy=PURE)
    people = math.ceil(chain.randomizer.false_step(chain.users))
    assert people < chain.users / 10
    told = f"one false message of {chain.users} moves the number of people up to any value by at "
    assert f"{LEARNT}: {told}most {people} people, and k of them" in repr(chain)
    asked = {"n": 20_000, "privacy": PURE, "mechanism": "local-three-rounds"}
    several = protocols.local_mean(domain=mh.Reals(dim=2, magnitude=10.0), **asked)
    assert LEARNT in repr(several)
    assert NOT_CAUGHT in repr(protocols.shuffle_mean(domain=reals, n=3000, privacy=MIXED))
