"""What a false answer does to counts and quantiles is bounded, said, and seen if it can be."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.protocols.estimators.false_messages import UNEXPLAINED
from muhat.protocols.estimators.range_counts import range_counts
from muhat.protocols.roles.messages import pack

PURE = mh.PureDP(epsilon=1.0)
MIXED = mh.ApproxDP(epsilon=1.0, delta=1e-6)
N = 3000


def local(n=N, epsilon=1.0):
    promise = mh.PureDP(epsilon=epsilon)
    return protocols.local_quantile(lower=0, upper=63, resolution=1, n=n, privacy=promise)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_no_false_answer_moves_a_rank_farther_than_was_said(epsilon):
    """40 liars in the place of one honest person, with every answer that there is."""
    randomizer, draw = local(epsilon=epsilon).randomizer, np.random.default_rng(3)
    nonces = draw.integers(0, 256, (N, 16), np.uint8)
    payloads = randomizer.randomize(draw.normal(40, 9, (N, 1)), nonces)
    step, honest = randomizer.false_step(N), range_counts(randomizer, nonces, payloads)
    moved = []
    for _ in range(40):
        nonces[0] = draw.integers(0, 256, 16, np.uint8)
        for answer in range(randomizer.response.answers):
            payloads[0] = answer
            found = range_counts(randomizer, nonces, payloads)
            moved.append(N * np.abs(found.prefix() - honest.prefix()).max())
            moved.append(N * np.abs(found.monotone() - honest.monotone()).max())
    assert max(moved) <= step
    # The bound adds up the worst of every level: liars of flesh and blood reach a part of it.
    assert max(moved) > step / 8


def test_few_people_are_not_promised_a_bound():
    assert local(n=40).randomizer.false_step(40) == np.inf
    assert "by any number of people" in repr(local(n=40))


def test_it_is_said_before_anybody_answers_and_with_the_release():
    protocol = local()
    step = int(np.ceil(protocol.randomizer.false_step(N)))
    told = f"one false message of {N} moves the number of people up to any value by at most {step} "
    assert told in repr(protocol)
    release = protocols.simulate(protocol, np.full((N, 1), 20.0))
    assert any(told in said for said in release.assumptions)
    ranges = protocols.local_ranges(lower=0, upper=64, cells=64, n=N, privacy=PURE)
    twice = int(np.ceil(2 * ranges.randomizer.false_step(N)))
    assert f"moves the count of any range by at most {twice} people" in repr(ranges)


@pytest.mark.parametrize("kind", ["quantile", "ranges"])
def test_fragments_say_what_the_local_model_has_to_offer(kind):
    if kind == "quantile":
        protocol = protocols.shuffle_quantile(lower=0, upper=1e6, n=N, privacy=MIXED)
    else:
        protocol = protocols.shuffle_ranges(lower=0, upper=100, cells=10, n=N, privacy=MIXED)
    said = repr(protocol)
    assert "one false fragment sets" in said
    assert f"in the local model (local_{kind}) its standard error is about" in said
    assert f"one false message of {N} moves" in said


def spoilt(protocol, people, part):
    """The round's messages, the last of them with a fragment that adds a part of the modulus."""
    *others, last = protocol.crowd().randomize_many(people)
    whole = np.frombuffer(last, np.uint8)[None, :]
    asked = getattr(protocol.randomizer, "parts", (protocol.randomizer,))[0]
    payload = np.ascontiguousarray(whole[:, 28:])
    fragments = asked.unpacked(np.ascontiguousarray(payload[:, : asked.payload_bytes]))
    modulus = asked.noise.modulus
    fragments[0, 0, 0] = (int(fragments[0, 0, 0]) + int(part * modulus)) % modulus
    payload = np.concatenate([asked.packed(fragments), payload[:, asked.payload_bytes :]], axis=1)
    return [*others, *pack(protocol.label, whole[:, 12:28], payload)]


def answered(protocol, people, part, bad_round):
    """All rounds, one of them with a false fragment."""
    while isinstance(protocol, protocols.Protocol):
        server = protocol.server()
        server.take(spoilt(protocol, people, part if protocol.round == bad_round else 0))
        protocol = server.finish()
    return protocol


def asked(kind):
    if kind == "ranges":
        return protocols.shuffle_ranges(lower=0, upper=100, cells=10, n=300, privacy=MIXED)
    if kind == "quantile":
        return protocols.shuffle_quantile(lower=0, upper=1e6, n=600, privacy=MIXED)
    promise = mh.ApproxDP(epsilon=4.0, delta=1e-6)
    return protocols.shuffle_mean(domain=mh.Reals(1, 1000.0), n=600, privacy=promise)


@pytest.mark.parametrize(
    ("kind", "bad_round"), [("ranges", 1), ("quantile", 1), ("quantile", 2), ("mean", 1)]
)
def test_sums_that_no_records_have_are_called_so_in_whichever_round(kind, bad_round):
    protocol = asked(kind)
    people = np.random.default_rng(2).normal(50, 5, (protocol.users, 1))
    seen = [
        UNEXPLAINED in answered(protocol, people, part, bad_round).assumptions
        for part in (0, 7 / 16, 9 / 16)
    ]
    assert not seen[0]
    assert any(seen[1:])
