"""Messages that name a set of corners: exactly private, unbiased, and nothing errs less."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat import protocols
from muhat.noise.enclosures import falling_exponential
from muhat.protocols import Protocol
from muhat.protocols.encodings.corners import Corners
from muhat.protocols.randomizers.cap_choice import gain
from muhat.protocols.randomizers.subset_randomizer import SubsetRandomizer

TRIANGLE = mh.Points(np.array([[0.0, 0.0], [1.0, 0.5], [0.2, 2.0]]))
DOMAINS = [
    mh.Simplex(dim=2),
    mh.Simplex(dim=5),
    mh.Simplex(dim=3, origin=True),
    TRIANGLE,
    TRIANGLE + np.array([1e3, 0.0]),
    mh.Points(np.array([[0.0, 0, 5], [1, 0, 5], [0, 3, 5], [2, 2, 5], [0, 0, 5], [1, 1, 5]])),
    np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]) @ mh.Simplex(dim=3),
]
EPSILONS = [1e-6, 0.3, 1.0, 3.0, 12.0]
HOSTILE = [0.0, 0.3, 1.0, -7.5, 1e308, -1e308, 5e-324, math.inf, math.nan]


def numbers(randomizer: SubsetRandomizer, sets: list[tuple[int, ...]]) -> np.ndarray:
    """Sets as payloads."""
    held = np.zeros((len(sets), randomizer.size), np.bool_)
    for row, named in zip(held, sets, strict=True):
        row[list(named)] = True
    return np.packbits(held, axis=1, bitorder="little")


def records_of(randomizer: SubsetRandomizer) -> list[np.ndarray]:
    """Every corner, means of some, and whatever else a device may be given."""
    inner = randomizer.domain.preimage().domain
    corners = inner.vertices()
    means = [corners.mean(axis=0), corners[:2].mean(axis=0), 0.9 * corners[0] + 0.1 * corners[1]]
    hostile = list(itertools.product(HOSTILE, repeat=randomizer.record_dim))
    return [*corners, *means, *map(np.array, hostile[:: len(hostile) // 20 + 1])]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_no_set_is_likelier_by_more_than_the_promise(domain):
    size = len(Corners.of(domain).points)
    for epsilon, chosen in itertools.product(EPSILONS, range(1, size // 2 + 1)):
        randomizer = SubsetRandomizer(domain, epsilon, chosen)
        laws = [randomizer.law(record) for record in records_of(randomizer)]
        assert all(sum(law.values()) == 1 for law in laws)
        assert all(len(law) == math.comb(size, chosen) for law in laws)
        ratios = [max(law[y] for law in laws) / min(law[y] for law in laws) for y in laws[0]]
        # At most g, which is below e^ε, and as much as that: nothing of the promise is left.
        assert max(ratios) == gain(epsilon)
        assert max(ratios) * falling_exponential(Fraction(str(epsilon)), 300)[0] <= 1


def test_a_device_that_keeps_its_corner_too_often_is_found_out():
    randomizer = SubsetRandomizer(mh.Simplex(dim=5), 1.0, 2)
    randomizer.__dict__["keep"] = randomizer.keep * Fraction(1001, 1000)
    law = randomizer.law([1, 0, 0, 0, 0])
    assert max(law.values()) / min(law.values()) > gain(1.0) * Fraction(1001, 1000)


def test_a_description_that_promises_more_than_its_sets_keep_is_refused():
    protocol = protocols.local_mean(domain=TRIANGLE, n=100, privacy=mh.PureDP(epsilon=1.0))
    fields = json.loads(protocol.to_json())
    assert Protocol.from_json(json.dumps(fields)).randomizer == protocol.randomizer
    fields["randomizer"]["epsilon"] = 1.0001
    with pytest.raises(mh.InvalidInput, match="do not keep"):
        Protocol.from_json(json.dumps(fields))
    fields["randomizer"].update(epsilon=1.0, chosen=2)
    with pytest.raises(mh.InvalidInput, match="chosen"):
        Protocol.from_json(json.dumps(fields))


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_every_set_together_has_the_record_as_mean_and_the_stated_covariance(domain):
    size = len(Corners.of(domain).points)
    nonce = np.zeros((1, 16), np.uint8)
    source = domain.preimage()
    for epsilon, chosen in itertools.product([0.3, 3.0], range(1, size // 2 + 1)):
        randomizer = SubsetRandomizer(domain, epsilon, chosen)
        sets = list(itertools.combinations(range(size), chosen))
        payloads = numbers(randomizer, sets)
        assert randomizer.valid(payloads).all()
        answers = np.array([randomizer.mean(nonce, row[None]) for row in payloads])
        (shown,) = randomizer.estimates(nonce, payloads)
        center = randomizer.corners.middle
        assert np.allclose(center + shown * randomizer.longest, answers, rtol=1e-12, atol=1e-9)
        worst, trace = np.zeros(domain.dim), 0.0
        for record in records_of(randomizer):
            law = np.array([float(part) for part in randomizer.law(record).values()])
            inside = source.domain.clip(record)
            truth = inside if source.matrix is None else source.matrix @ inside
            truth = truth + source.offset
            scale = np.abs(answers - truth).max()
            assert np.allclose(law @ answers, truth, rtol=0, atol=1e-9 * scale)
            variances = law @ (answers - truth) ** 2
            worst, trace = np.maximum(worst, variances), max(trace, float(variances.sum()))
            assert (variances / randomizer.longest**2 >= randomizer.least_variance - 1e-9).all()
            if any((inside == corner).all() for corner in source.domain.vertices()):
                offset, all_offsets = truth - center, randomizer.corners.offsets
                _, common, own = randomizer.moments
                stated = common * (all_offsets**2).sum(axis=0) + own * offset**2
                assert np.allclose(variances, stated, rtol=1e-9, atol=1e-9 * scale)
        assert (worst <= randomizer.spread(1).standard_error ** 2 * (1 + 1e-9) + 1e-12).all()
        assert trace <= randomizer.expected_error(1) ** 2 * (1 + 1e-9)


def test_the_stated_errors_are_attained():
    corners = SubsetRandomizer.of(mh.Points(np.eye(5)), 3.0)
    nonce = np.zeros((1, 16), np.uint8)
    for randomizer, record in (
        (corners, np.eye(5)[0]),
        (SubsetRandomizer.of(mh.Simplex(dim=5), 3.0), np.full(5, 0.2)),
    ):
        law = randomizer.law(record)
        answers = [randomizer.mean(nonce, row[None]) for row in numbers(randomizer, list(law))]
        squares = [float(part) for part in law.values()] @ np.sum((answers - record) ** 2, axis=1)
        assert math.sqrt(squares) == pytest.approx(randomizer.expected_error(1), rel=1e-9)


@pytest.mark.parametrize("domain", [TRIANGLE, mh.Simplex(dim=4)], ids=repr)
def test_sets_are_drawn_from_their_law(domain):
    # 40,000 sets at a false alarm rate of 1e-7 for each of two domains and two records.
    from scipy.stats import chi2

    randomizer, rows = SubsetRandomizer.of(domain, 1.0), 40_000
    corner, mean = domain.vertices()[0], domain.vertices()[:2].mean(axis=0)
    for record in (corner, mean):
        law = randomizer.law(record)
        records, nonces = np.tile(record, (rows, 1)), np.zeros((rows, 16), np.uint8)
        payloads = randomizer.randomize(records, nonces)
        assert randomizer.valid(payloads).all()
        counts = np.bincount(payloads[:, 0], minlength=256)
        counts = counts[numbers(randomizer, list(law))[:, 0]]
        assert counts.sum() == rows

        def distance(law, counts=counts):
            expected = rows * np.array([float(part) for part in law.values()])
            return float(np.sum((counts - expected) ** 2 / expected))

        most = chi2.isf(1e-7, len(law) - 1)
        assert distance(law) < most
        # Another corner, and a promise that is a quarter larger.
        assert distance(randomizer.law(domain.vertices()[2])) > 5 * most
        louder = SubsetRandomizer(domain, 1.25, randomizer.chosen)
        assert distance(louder.law(corner)) > 2 * most or record is mean


@pytest.mark.parametrize(("size", "epsilon", "error"), [(5, 3.0, 0.00487), (20, 3.0, 0.0123)])
def test_categories_have_the_least_error_that_there_is(size, epsilon, error):
    listed = mh.Points(np.eye(size))
    protocol = protocols.local_mean(domain=listed, n=20_000, privacy=mh.PureDP(epsilon=epsilon))
    assert protocol.randomizer.kind == "subset"
    assert protocol.randomizer.expected_error(20_000) == pytest.approx(error, rel=2e-3)
    other = protocols.local_mean(
        domain=listed, n=20_000, privacy=mh.PureDP(epsilon=epsilon), mechanism="cap"
    )
    assert other.randomizer.kind == "cap"
    assert other.randomizer.expected_error(20_000) > 1.9 * error
    certificate = protocol.estimator.certificate(protocol.randomizer, 20_000)
    assert certificate.ratio == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("size", [2, 3, 7, 40])
def test_no_other_number_of_corners_errs_less(size, epsilon):
    domain = mh.Points(np.eye(size))
    found = SubsetRandomizer.of(domain, epsilon)
    for chosen in range(1, size // 2 + 1):
        other = SubsetRandomizer(domain, epsilon, chosen)
        assert found.expected_error(1) <= other.expected_error(1) * (1 + 1e-12)
    assert abs(found.chosen - size / (math.exp(epsilon) + 1)) <= 1 or found.chosen == 1


def test_many_points_in_few_dimensions_are_told_by_directions():
    turns = np.arange(60) * 2 * math.pi / 60
    circle = mh.Points(np.column_stack([np.cos(turns), np.sin(turns)]))
    protocol = protocols.local_mean(domain=circle, n=100, privacy=mh.PureDP(epsilon=1.0))
    assert protocol.randomizer.kind == "cap"
    with pytest.raises(mh.InvalidInput, match="mechanism"):
        protocols.local_mean(
            domain=mh.Ball(1.0, dim=2), n=10, privacy=mh.PureDP(epsilon=1.0), mechanism="subset"
        )


def test_the_mean_of_many_people_is_where_it_should_be():
    # Seven numbers at 6 standard errors: a false alarm rate below 1e-7.
    domain, n = mh.Simplex(dim=7), 30_000
    protocol = protocols.local_mean(domain=domain, n=n, privacy=mh.PureDP(epsilon=2.0))
    shares = np.random.default_rng(5).dirichlet(np.full(7, 0.3), n)
    release = protocols.simulate(protocol, shares)
    off = np.abs(release.value - shares.mean(axis=0)) / release.standard_error
    assert off.max() < 6
    assert release.mechanism == "local-subset"
    assert (release.standard_error <= protocol.randomizer.spread(n).standard_error * 1.0001).all()
    assert (np.abs(release.value - shares[0])).max() > 0.02


def test_sets_hide_in_a_crowd():
    promise = mh.ApproxDP(epsilon=1.0, delta=1e-6)
    asked = {"domain": mh.Points(np.eye(6)), "n": 2_000, "privacy": promise}
    short = protocols.shuffle_mean(**asked, most_bytes=40)
    assert short.randomizer.kind == "subset"
    alone = protocols.local_mean(**asked)
    assert short.randomizer.epsilon > 3 * alone.randomizer.epsilon
    fields = json.loads(short.to_json())
    fields["randomizer"]["epsilon"] *= 1.01
    with pytest.raises(mh.InvalidInput, match="do not keep"):
        Protocol.from_json(json.dumps(fields))


def test_messages_that_no_device_makes_are_not_valid():
    randomizer = SubsetRandomizer(mh.Simplex(dim=12), 1.0, 3)
    payloads = np.array([[7, 0], [3, 0], [15, 0], [0, 14], [0, 28], [3, 16], [255, 255]], np.uint8)
    assert randomizer.valid(payloads).tolist() == [True, False, False, True, False, False, False]
    with pytest.raises(mh.InvalidInput, match="one message"):
        randomizer.mean(np.zeros((0, 16), np.uint8), payloads[:0])
    with pytest.raises(mh.InvalidInput, match="records must have shape"):
        randomizer.randomize(np.zeros((2, 3)), np.zeros((2, 16), np.uint8))
    with pytest.raises(mh.InvalidInput, match="means of 2 to 4096 corners"):
        SubsetRandomizer(mh.Ball(1.0, dim=2), 1.0, 1)
