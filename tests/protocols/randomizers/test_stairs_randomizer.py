"""Stairs on devices: as private as promised, unbiased, with the variance that is stated."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.data.engine import record_integers
from muhat.noise.radial_stairs import MaximumStairs
from muhat.protocols.randomizers.stairs_randomizer import StairsRandomizer, shapes
from muhat.records.columns import Batch

PURE = mh.PureDP(epsilon=8.0)
DOMAINS = [
    mh.Ball(3.0, dim=2, center=[1, -1]),
    mh.Box([0, -5], [1, 5]),
    mh.Simplex(dim=3),
    mh.Points(np.array([[0.0, 0.0], [1.0, 0.5], [0.2, 2.0]])),
    mh.Ball(1.0, dim=2) * mh.Box([0], [1]),
]
HOSTILE = [0.0, -0.0, 0.3, -7.5, 1e308, -1e308, 5e-324, math.inf, math.nan]


def every(domain: mh.Domain, epsilon: float = 8.0) -> list[StairsRandomizer]:
    return list(StairsRandomizer.every(domain, epsilon, 2.0, None))


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_no_pair_of_records_is_more_than_a_step_apart_and_a_step_keeps_the_promise(domain):
    """Planted: a record that moves by a step and a bit takes two of them."""
    found = every(domain)
    assert [each.shape for each in found] == shapes(domain, PURE)
    for randomizer in found:
        law, query = randomizer.law, randomizer.query
        grid = np.array(list(itertools.product(HOSTILE, repeat=randomizer.record_dim)))
        with np.errstate(all="ignore"):
            integers = record_integers(query.lattice, Batch(len(grid), matrix=grid)).tolist()
        answers = np.array([*{tuple(query.answer(row, 1)) for row in integers}], object)
        for one, other in itertools.combinations(answers, 2):
            apart = [abs(a - b) for a, b in zip(one, other, strict=True)]
            if isinstance(law, MaximumStairs):
                assert max(apart) <= law.unit
            else:
                assert sum(a * a for a in apart) <= law.unit**2
        assert law.keeps(PURE, Fraction(law.unit))
        assert not law.keeps(PURE, Fraction(law.unit + 1))
        assert not law.keeps(mh.PureDP(epsilon=7.999), Fraction(law.unit))


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_the_mean_is_unbiased_and_its_variance_is_the_stated_one(domain):
    """2,000 messages of one record: 5.5 standard errors in each coordinate, and of the variance.

    A square of this noise has a kurtosis below 25; half of the variance would be noticed.
    """
    number = 2000
    for randomizer in every(domain):
        record = domain.clip(np.full((1, domain.dim), 0.4))
        none = np.empty((number, 16), np.uint8)
        payloads = randomizer.randomize(np.repeat(record, number, axis=0), none)
        assert randomizer.valid(payloads).all()
        spread = randomizer.spread(number)
        moved = np.abs(randomizer.mean(none, payloads) - record[0])
        assert (moved <= 5.5 * spread.standard_error).all()
        each = np.array([randomizer.mean(none[:1], part[None]) for part in payloads])
        variance = float(np.trace(np.cov(each.T)))
        room = 5.5 * math.sqrt(24 / number)
        assert abs(variance / float(np.trace(randomizer.covariance(1))) - 1) < room
        assert abs(2 - 1) > room
        squares = np.sum(randomizer.spread(1).standard_error ** 2)
        assert randomizer.expected_error(1) == pytest.approx(math.sqrt(squares))


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("epsilon", [8.0, 40.0])
def test_honest_numbers_are_within_reach_and_false_ones_hardly_farther(domain, epsilon):
    for randomizer in every(domain, epsilon):
        grid = np.array(list(itertools.product(HOSTILE, repeat=randomizer.record_dim)))
        payloads = randomizer.randomize(grid, np.empty((len(grid), 16), np.uint8))
        assert randomizer.valid(payloads).all()
        assert randomizer.reach < 40 << randomizer.kept_bits
        ends = (randomizer.reach + 1, -randomizer.reach - 1, 2**63 - 1, -(2**63))
        for end in ends:
            false = np.full((1, randomizer.payload_bytes // 8), end, "<i8")
            assert not randomizer.valid(false.view(np.uint8)).any()


def test_many_numbers_as_large_as_they_may_be_add_up():
    randomizer = every(mh.Ball(1.0, dim=2))[0]
    for end in (randomizer.reach, -randomizer.reach):
        payload = np.full((1, 2), end, "<i8").view(np.uint8)
        one = randomizer.mean(np.empty((1, 16), np.uint8), payload)
        many = np.repeat(payload, 100_000, axis=0)
        found = randomizer.mean(np.empty((len(many), 16), np.uint8), many)
        assert found == pytest.approx(one, rel=1e-12)


def test_it_is_taken_where_it_errs_least():
    for domain, epsilon, kind in (
        (mh.Ball(1.0, dim=2), 2.0, "cap"),
        (mh.Ball(1.0, dim=2), 8.0, "stairs"),
        (mh.Ball(1.0, dim=8), 8.0, "cap"),
        (mh.Box([0, 0], [1, 3]), 8.0, "stairs"),
        (mh.Simplex(dim=3), 8.0, "stairs"),
        (mh.Points(np.eye(3)), 8.0, "subset"),
        (mh.Box([0], [1]), 8.0, "interval"),
    ):
        protocol = protocols.local_mean(domain=domain, n=100, privacy=mh.PureDP(epsilon=epsilon))
        assert protocol.randomizer.kind == kind
    # A half of the error of K-norm noise, and a third of that of a few directions.
    plan = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=100, privacy=PURE)
    other = protocols.local_mean(
        domain=mh.Ball(1.0, dim=2), n=100, privacy=PURE, mechanism="cap"
    ).randomizer
    error = plan.randomizer.expected_error(100)
    assert error < 0.51 * 2 * math.sqrt(6) / 8 / 10
    assert error < 0.31 * other.expected_error(100)
    # And where a promise implies ε.
    weaker = protocols.local_mean(
        domain=mh.Ball(1.0, dim=2), n=100, privacy=mh.ApproxDP(epsilon=8.0, delta=1e-6)
    )
    assert weaker.randomizer.kind == "stairs"
    assert weaker.randomizer.keeps(weaker.estimator.privacy)


def test_a_round_of_it_has_the_stated_error_and_intervals():
    """200 rounds of 60 people: false alarms below 1e-6; half the variance is caught."""
    people = mh.Ball(1.0, dim=2).clip(np.random.default_rng(4).normal(size=(60, 2)))
    protocol = protocols.local_mean(domain=mh.Ball(1.0, dim=2), n=60, privacy=PURE)
    protocol = protocols.Protocol.from_cbor(protocol.to_cbor())
    truth, squares, held = people.mean(axis=0), [], []
    for _ in range(200):
        release = protocols.simulate(protocol, people)
        assert release.mechanism == "local-stairs"
        squares.append(float(np.sum((release.value - truth) ** 2)))
        low, high = release.interval()
        held.append((low <= truth) & (truth <= high))
    expected = protocol.randomizer.expected_error(60) ** 2
    room = 6 * np.std(squares) / math.sqrt(len(squares))
    assert abs(np.mean(squares) - expected) < room
    assert abs(np.mean(squares) - 2 * expected) > room
    assert np.mean(held) > 0.95 - 5.6 * math.sqrt(0.05 * 0.95 / len(held))


@pytest.mark.parametrize(
    ("domain", "epsilon", "shape"),
    [
        (mh.Ball(1.0, dim=2), 8.0, "box-stairs"),
        (mh.Ball(1.0, dim=2), 1e-6, "ellipsoid-stairs"),
        (mh.Ball(1.0, dim=1), 8.0, "ellipsoid-stairs"),
        (mh.Ball(1.0, dim=40), 8.0, "ellipsoid-stairs"),
        (mh.Ball(1.0, dim=2), 8.0, "laplace"),
    ],
)
def test_what_it_is_not_for_is_refused(domain, epsilon, shape):
    with pytest.raises(mh.InvalidInput, match="few columns and a large epsilon"):
        StairsRandomizer(domain, epsilon, shape)


def test_columns_that_are_constant_have_next_to_no_noise():
    """A point has none to be asked for."""
    flat = mh.Box([1, 2, 0], [1, 5, 9])
    assert [each.shape for each in every(flat)] == ["ellipsoid-stairs"]
    protocol = protocols.local_mean(domain=flat, n=10, privacy=PURE)
    assert protocol.randomizer.kind == "stairs"
    release = protocols.simulate(protocol, np.tile([1.0, 3.0, 4.0], (10, 1)))
    assert release.value[0] == 1
    with pytest.raises(mh.InvalidInput, match="single point"):
        protocols.local_mean(domain=mh.Box([1, 2], [1, 2]), n=10, privacy=PURE)
