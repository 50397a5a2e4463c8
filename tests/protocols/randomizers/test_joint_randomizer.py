"""Several things asked at once keep one promise, and are mixed each on its own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.protocols.encodings.cut_encoding import CutEncoding, Radius
from muhat.protocols.encodings.domain_encoding import DomainEncoding
from muhat.protocols.encodings.encoding import fresh_nonces
from muhat.protocols.randomizers.allowance import Allowance
from muhat.protocols.randomizers.fragment_randomizer import FragmentRandomizer
from muhat.protocols.randomizers.joint_randomizer import JointRandomizer

PROMISE = mh.ApproxDP(epsilon=1.0, delta=1e-6)
PEOPLE = 300


def counts(share: Fraction, promise: mh.ApproxDP = PROMISE, dim: int = 2) -> FragmentRandomizer:
    return FragmentRandomizer.of(
        CutEncoding(Radius((0.0,) * dim), (1.0, 2.0, 3.0)),
        Allowance(promise, share),
        honest=200,
        users=PEOPLE,
    )


def mean(share: Fraction) -> FragmentRandomizer:
    return FragmentRandomizer.of(
        DomainEncoding(mh.Ball(3.0, dim=2)), Allowance(PROMISE, share), honest=200, users=PEOPLE
    )


@pytest.fixture(scope="module")
def joint() -> JointRandomizer:
    return JointRandomizer((mean(Fraction(3, 4)), counts(Fraction(1, 4))))


@pytest.fixture(scope="module")
def payloads(joint: JointRandomizer) -> np.ndarray:
    records = np.random.default_rng(1).normal(size=(PEOPLE, 2))
    return joint.randomize(records, fresh_nonces(PEOPLE))


def test_a_payload_is_that_of_all_parts(joint, payloads):
    first, second = joint.parts
    assert payloads.shape == (PEOPLE, first.payload_bytes + second.payload_bytes)
    assert joint.messages == first.messages + second.messages
    assert joint.valid(payloads).all()
    assert JointRandomizer.from_dict(joint.to_dict()) == joint


def test_mixing_keeps_every_number_of_every_part_and_its_sum(joint, payloads):
    mixed = joint.mixed(np.zeros((len(payloads), 16), np.uint8), payloads)[1]
    assert (mixed != payloads).any(axis=1).all()
    for (part, before), (_, after) in zip(joint.split(payloads), joint.split(mixed), strict=True):
        assert part.totals(before, len(before)) == part.totals(after, len(after))
        for number in range(part.numbers):
            shares = [part.unpacked(each)[:, number].ravel() for each in (before, after)]
            np.testing.assert_array_equal(np.sort(shares[0]), np.sort(shares[1]))


def test_a_payload_with_one_impossible_part_is_not_valid(joint, payloads):
    wrong = payloads.copy()
    wrong[0, joint.parts[0].payload_bytes - 1] = 255
    wrong[1, -1] = 255
    spare = [
        8 * (part.payload_bytes // part.messages) - part.noise.modulus_bits > 0
        for part in joint.parts
    ]
    assert joint.valid(wrong)[:3].tolist() == [not spare[0], not spare[1], True]


def test_parts_must_share_one_promise_and_one_kind_of_record():
    with pytest.raises(mh.InvalidInput):
        JointRandomizer((mean(Fraction(3, 4)), counts(Fraction(1, 3))))
    other = mh.ApproxDP(epsilon=0.5, delta=1e-6)
    with pytest.raises(mh.InvalidInput):
        JointRandomizer((mean(Fraction(1, 4)), counts(Fraction(1, 4), other)))
    with pytest.raises(mh.InvalidInput):
        JointRandomizer((mean(Fraction(1, 4)), counts(Fraction(1, 4), dim=1)))
    with pytest.raises(mh.InvalidInput):
        JointRandomizer(())
    assert JointRandomizer((mean(Fraction(3, 4)), counts(Fraction(1, 4)))).share == 1
