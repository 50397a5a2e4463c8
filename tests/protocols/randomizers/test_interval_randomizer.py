"""Messages of a few numbers: exactly private, unbiased, of the stated variance, refused if not."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.noise.entropy import system_words
from muhat.protocols import Protocol
from muhat.protocols.randomizers.cap_choice import gain
from muhat.protocols.randomizers.cap_randomizer import CapRandomizer
from muhat.protocols.randomizers.interval_randomizer import IntervalRandomizer

EPSILONS = [0.25, 0.7, 1.0, 2.0, 4.0]
BOX = mh.Box([10.0], [30.0])
DOMAINS = [
    BOX,
    mh.Ball(1e-9, dim=1, center=[5.0]),
    np.array([[1.0, -2.0]]) @ mh.Box([0.0, 0.0], [1.0, 3.0]),
    mh.Simplex(dim=2),
]
HOSTILE = [0.0, 10.0, 17.3, 29.999, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan]


def made(epsilon: float, domain: mh.Domain = BOX) -> IntervalRandomizer:
    return IntervalRandomizer.of(domain, epsilon)


def nonces(count: int) -> np.ndarray:
    return np.zeros((count, 16), np.uint8)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_number_is_likelier_by_more_than_the_promise(epsilon):
    randomizer = made(epsilon)
    records = [*HOSTILE, *np.random.default_rng(3).uniform(10, 30, 30)]
    laws = [randomizer.law([record]) for record in records]
    assert all(sum(law) == 1 for law in laws)
    ratios = [max(chances) / min(chances) for chances in zip(*laws, strict=True)]
    assert max(ratios) <= gain(epsilon)
    # Nor by much less: a 2^16th part, and what drawing a record to a place mixes.
    exact = [
        randomizer.law([10 + 20 * k / (randomizer.places - 1)]) for k in range(randomizer.places)
    ]
    sharpest = max(max(chances) / min(chances) for chances in zip(*exact, strict=True))
    assert gain(epsilon) * (1 - Fraction(1, 1 << 14)) < sharpest <= gain(epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_record_has_its_mean_and_no_more_than_the_stated_variance(epsilon):
    randomizer = made(epsilon)
    values, variances = randomizer.values, []
    for place in np.linspace(-1, 1, 301):
        law = np.array([float(chance) for chance in randomizer.law([20 + 10 * place])])
        assert law @ values == pytest.approx(place, abs=1e-9)
        variances.append(float(law @ values**2) - place**2)
    assert max(variances) <= randomizer.worst
    assert max(variances) > 0.995 * randomizer.worst
    assert randomizer.expected_error(100) == pytest.approx(10 * math.sqrt(randomizer.worst / 100))
    least = randomizer.least_variance * float(np.abs(values).max()) ** 2
    assert 0 < least <= min(variances) + 1e-12


def test_it_errs_less_than_one_of_two_ends_and_next_to_nothing_more_than_what_is_possible():
    for epsilon, part in ((0.3, 0.995), (1.0, 0.93), (2.0, 0.72), (4.0, 0.35)):
        asked = {"domain": BOX, "n": 1000, "privacy": mh.PureDP(epsilon=epsilon)}
        protocol = protocols.local_mean(**asked)
        randomizer = protocol.randomizer
        assert isinstance(randomizer, IntervalRandomizer)
        ends = CapRandomizer.of(BOX, epsilon).expected_error(1000)
        assert randomizer.expected_error(1000) < part * ends
        certificate = protocol.estimator.certificate(randomizer, 1000)
        assert 1 <= certificate.ratio < 1.006
        named = protocols.local_mean(**asked, mechanism="cap")
        assert isinstance(named.randomizer, CapRandomizer)
    # Where neither is better, or records are no numbers of an interval, it does not compete.
    for domain, epsilon in ((BOX, 0.2), (mh.Ball(1, 2), 2.0), (mh.Points([[0.0], [1.0]]), 2.0)):
        protocol = protocols.local_mean(domain=domain, n=10, privacy=mh.PureDP(epsilon=epsilon))
        assert not isinstance(protocol.randomizer, IntervalRandomizer)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_means_of_messages_are_those_of_the_records(domain):
    """20,000 messages of the same record, 5.5 standard errors: false alarms below 1e-7."""
    randomizer = made(1.5, domain)
    for weight in (0.0, 0.37, 1.0):
        inner = domain.preimage().domain
        lower, upper = inner.bounding_box
        record = inner.clip([lower + weight * (upper - lower)])[0]
        rows = np.tile(record, (20_000, 1))
        payloads = randomizer.randomize(rows, nonces(20_000))
        assert randomizer.valid(payloads).all()
        found = randomizer.mean(nonces(20_000), payloads)
        truth = domain.preimage()
        exact = record if truth.matrix is None else truth.matrix @ record + truth.offset
        error = randomizer.spread(20_000).standard_error
        assert (np.abs(found - exact) < 5.5 * error + 1e-12 * np.abs(exact)).all()
        spread = np.concatenate(list(randomizer.estimates(nonces(20_000), payloads)))
        center = randomizer.map.center
        lost = float(np.spacing(np.abs(center)).max())  # where the mean is written as a float
        assert (spread * randomizer.longest).mean(axis=0) == pytest.approx(
            found - center, rel=1e-6, abs=1e-9 * float(error.max()) + lost
        )


def test_draws_have_the_exact_chances():
    """40,000 messages of one record: false alarms 5e-8. Planted: the place above is forgotten."""
    from scipy.stats import chi2

    randomizer, record, number = made(1.0), 17.3, 40_000
    drawn = randomizer.randomize(np.full((number, 1), record), nonces(number))
    seen = np.bincount(drawn[:, 0], minlength=len(randomizer.values))

    def statistic(law: list[Fraction]) -> float:
        expected = np.array([float(chance) for chance in law]) * number
        often = expected > 20
        return float(np.sum((seen - expected)[often] ** 2 / expected[often]))

    limit = chi2.isf(5e-8, len(seen))
    assert statistic(randomizer.law([record])) < limit
    assert statistic(randomizer.law([randomizer.map.point(randomizer._points[5:6])[0]])) > 2 * limit


def test_the_work_is_the_same_whatever_the_record_is():
    randomizer, asked = made(2.0), []

    def counting(count: int) -> np.ndarray:
        asked.append(count)
        return system_words(count)

    for record in HOSTILE:
        randomizer.randomize(np.full((3, 1), record), nonces(3), counting)
    assert asked == [3, 3] * len(HOSTILE)
    missing = randomizer.law([math.nan])
    assert missing == randomizer.law([20.0])


def test_a_table_that_tells_more_is_refused_wherever_it_comes_from():
    randomizer = made(1.0)
    weights = list(randomizer.weights)
    weights[3] *= 3
    with pytest.raises(mh.InvalidInput, match="more than is promised"):
        replace(randomizer, weights=tuple(weights))
    protocol = protocols.local_mean(domain=BOX, n=100, privacy=mh.PureDP(epsilon=1.0))
    fields = json.loads(protocol.to_json())
    for name, value in (
        ("weights", weights),
        ("epsilon", 0.9),
        ("places", 9),
        ("first", [17] * len(weights)),
        ("values", ["0x1.0p+0"]),
        ("weights", [0] * len(weights)),
        ("last", None),
        ("values", ["nan"] * len(weights)),
    ):
        changed = json.loads(json.dumps(fields))
        changed["randomizer"][name] = value
        with pytest.raises(mh.InvalidInput):
            Protocol.from_json(json.dumps(changed))


def test_numbers_whose_mean_is_not_the_record_are_refused():
    """Of the same steps any ε keeps its promise: they are as many everywhere."""
    randomizer = made(1.0)
    moved = randomizer.values.copy()
    moved[5] += 1e-6
    for changed in ({"epsilon": 0.999}, {"epsilon": 1.001}, {"values": moved}):
        with pytest.raises(mh.InvalidInput, match="do not have the record as their mean"):
            replace(randomizer, **changed)


def test_it_is_written_and_read():
    protocol = protocols.local_mean(domain={"age": (16, 90)}, n=500, privacy=mh.PureDP(epsilon=1))
    for again in (Protocol.from_json(protocol.to_json()), Protocol.from_cbor(protocol.to_cbor())):
        assert again.randomizer == protocol.randomizer
        assert again.digest == protocol.digest
        assert hash(again.randomizer) == hash(protocol.randomizer)
        assert again.bytes_per_user == protocol.bytes_per_user
    release = protocols.simulate(protocol, np.full(500, 40.0))
    assert release.mechanism == "local-interval"
    # 20 deviations: P < 1e-80.
    assert abs(release.value[0] - 40) < 20 * release.standard_error[0]
    step = protocol.randomizer.false_step(500)
    largest = 2 * 37 * float(np.abs(protocol.randomizer.values).max()) / 500
    assert step == pytest.approx([largest])


def test_a_large_epsilon_has_the_table_of_ten():
    assert made(30.0).worst == pytest.approx(made(10.0).worst, rel=1e-9)
    assert made(30.0).epsilon == 30.0


def test_domains_of_more_dimensions_are_refused():
    with pytest.raises(mh.InvalidInput, match="one dimension"):
        IntervalRandomizer.of(mh.Ball(1.0, dim=2), 1.0)
