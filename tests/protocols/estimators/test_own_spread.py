"""The sample's own error: never below the true one, and smaller than that of the worst records."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.protocols.estimators.own_spread import of_people, of_records
from muhat.protocols.randomizers.cap_randomizer import CapRandomizer
from muhat.protocols.randomizers.gaussian_randomizer import GaussianRandomizer
from muhat.protocols.randomizers.interval_randomizer import IntervalRandomizer
from muhat.protocols.randomizers.randomizer import Received

RUNS, PEOPLE = 250, 120
LEAST = 0.95 - 5.5 * (0.95 * 0.05 / RUNS) ** 0.5
"""95 % intervals cover less often once in 2e7 comparisons; there are about 30."""


def received(randomizer, records, generator):
    words = lambda count: generator.integers(0, 1 << 64, count, np.uint64)  # noqa: E731
    nonces = generator.integers(0, 256, (len(records), 16), np.uint8)
    return Received(nonces, randomizer.randomize(records, nonces, words))


def covers(spread, value, target, part=1.0):
    return np.abs(value - target) <= part * spread.half_widths(0.95, joint=False)


SAMPLES = {
    "all at the end": lambda n, dim: np.full((n, dim), 1 / dim**0.5),
    "all in the centre": lambda n, dim: np.zeros((n, dim)),
    "anywhere": lambda n, dim: np.random.default_rng(1).uniform(-1, 1, (n, dim)) / dim**0.5,
}


MORE = pytest.param(CapRandomizer, 3, marks=pytest.mark.slow)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
@pytest.mark.parametrize(("made", "dim"), [(CapRandomizer, 1), MORE, (IntervalRandomizer, 1)])
@pytest.mark.parametrize("name", SAMPLES)
def test_intervals_cover_the_mean_of_the_records_as_often_as_they_say(name, made, dim, epsilon):
    """Half as wide they would not: 67 % for normal noise."""
    randomizer = made.of(mh.Ball(1.0, dim=dim), epsilon)
    records, generator = SAMPLES[name](PEOPLE, dim), np.random.default_rng(7)
    hits, narrow = np.zeros(dim), np.zeros(dim)
    for _ in range(RUNS):
        sent = received(randomizer, records, generator)
        own = of_records(randomizer, sent)
        value = randomizer.mean(sent.nonces, sent.payloads)
        hits += covers(own.used, value, records.mean(axis=0))
        narrow += covers(own.used, value, records.mean(axis=0), part=0.5)
        assert (own.used.standard_error <= own.worst.standard_error * (1 + 1e-12)).all()
    assert (hits >= LEAST * RUNS).all()
    assert (narrow < LEAST * RUNS).all()


def test_records_at_the_end_have_less_than_half_of_the_worst_error():
    randomizer = CapRandomizer.of(mh.Box([0], [10]), 3.0)
    sent = received(randomizer, np.full((20_000, 1), 10.0), np.random.default_rng(2))
    own = of_records(randomizer, sent)
    assert own.gain == pytest.approx(2.3, abs=0.1)
    assert "2.3" in own.describe()


def test_answers_that_are_all_alike_are_no_proof_of_no_error():
    """At ε = 8 three in ten thousand messages are false: fifty alike are the rule."""
    randomizer = CapRandomizer.of(mh.Ball(1.0, dim=1), 8.0)
    sent = received(randomizer, np.ones((50, 1)), np.random.default_rng(3))
    assert len(np.unique(sent.payloads)) == 1
    own = of_records(randomizer, sent)
    value = randomizer.mean(sent.nonces, sent.payloads)
    assert covers(own.used, value, 1.0).all()
    assert (own.used.standard_error > 0).all()


@pytest.mark.parametrize(
    "randomizer",
    [
        CapRandomizer.of(mh.Ball(1.0, dim=1), 1.0),
        CapRandomizer.of(mh.Ball(1.0, dim=1), 6.0),
        IntervalRandomizer.of(mh.Ball(1.0, dim=1), 4.0),
        GaussianRandomizer(mh.Ball(1.0, dim=1), mh.GDP(mu=6.0)),
    ],
    ids=["loud noise", "little noise", "few numbers", "normal noise"],
)
def test_intervals_of_a_part_cover_the_mean_of_all_people(randomizer):
    """Little noise: who was asked by chance is nearly all of the error, and is counted."""
    generator, hits = np.random.default_rng(8), 0
    for _ in range(RUNS):
        records = np.where(generator.random((PEOPLE, 1)) < 0.3, 1.0, -1.0)
        sent = received(randomizer, records, generator)
        own = of_people(randomizer, sent, 1.0)
        value = randomizer.mean(sent.nonces, sent.payloads)
        hits += covers(own.used, value, -0.4).all()
    assert hits >= LEAST * RUNS


def test_a_release_has_the_smaller_error_and_says_what_the_other_is():
    """The two errors' ratio is 2.31 ± 0.023 here: 13 deviations from 2."""
    people = np.full(30_000, 10.0)
    made = protocols.local_mean(
        domain={"age": (0, 10)}, n=30_000, privacy=mh.PureDP(epsilon=3.0), mechanism="cap"
    )
    release = protocols.simulate(made, people)
    worst = made.randomizer.spread(30_000).standard_error
    assert worst[0] / release.standard_error[0] > 2
    assert any("for the worst records they would be up to 2" in one for one in release.assumptions)
    assert release.certificate.error == pytest.approx(worst[0] / 10)
    exact = protocols.local_mean(
        domain={"age": (0, 10)}, n=30_000, privacy=mh.ZCDP(rho=0.5), mechanism="gaussian"
    )
    again = protocols.simulate(exact, people)
    assert again.standard_error == pytest.approx(exact.randomizer.spread(30_000).standard_error)
    assert "standard errors are those of the worst records" in again.assumptions


@pytest.mark.parametrize("size", [1e-120, 1.0, 1e120])
def test_errors_scale_with_the_domain_on_every_scale(size):
    """Fourth powers of its numbers are no floats."""
    randomizer = CapRandomizer.of(mh.Ball(size, dim=2), 1.0)
    sent = received(randomizer, np.zeros((500, 2)), np.random.default_rng(4))
    for own in (of_records(randomizer, sent), of_people(randomizer, sent, size)):
        error = own.used.standard_error / size
        assert np.isfinite(error).all()
        assert (error > 0.05).all()
        assert (error < 0.2).all()


def test_flat_and_oblique_domains_have_errors_of_their_own():
    line = CapRandomizer.of(mh.Points(np.array([[0.0, 0.0, 5.0], [3.0, 4.0, 5.0]])), 3.0)
    ends = np.tile([3.0, 4.0, 5.0], (2000, 1))
    own = of_records(line, received(line, ends, np.random.default_rng(5)))
    first, second, third = own.used.standard_error
    assert second / first == pytest.approx(4 / 3)
    assert third == pytest.approx(0, abs=1e-9)
    assert own.gain > 2
