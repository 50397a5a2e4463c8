"""Messages that point at a public vector: exactly private, unbiased, nearly as good as possible."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import muhat as mh
from muhat.bounds.local import largest_shrinkage
from muhat.protocols.encodings.ball_map import BallMap
from muhat.protocols.randomizers import cap_choice
from muhat.protocols.randomizers.cap_choice import (
    best_cap,
    excess_variance,
    gain,
    moments,
    nearest_sums,
)
from muhat.protocols.randomizers.cap_randomizer import CapRandomizer
from muhat.protocols.randomizers.codebook import Codebook

DOMAINS = [
    mh.Ball(3.0, dim=1, center=[-1]),
    mh.Ball(3.0, dim=2, center=[1, -1]),
    mh.Ball(1e-3, dim=3),
    mh.Box([0, -5], [1, 5]),
    mh.Box([0, 0, 2], [1, 1e6, 2.0001]),
    mh.Ellipsoid([[2, 1], [1, 2]]),
    mh.Simplex(dim=3),
    mh.Simplex(dim=2),
    mh.Points(np.array([[0.0, 0.0, 1.0], [1.0, 0.5, 2.0], [0.2, 2.0, 3.0]])),
    mh.LpBall(p=3, radius=1.0, dim=3),
    mh.Ball(1.0, dim=2) * mh.Box([0], [1]),
    np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0]]) @ mh.Box([0, 0, 0], [1, 1, 1]),
    mh.MomentTensor(order=2, dim=2),
]
HOSTILE = [0.0, -0.0, 0.3, -7.5, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan]
EPSILONS = [1e-6, 0.3, 1.0, 3.0, 12.0, 200.0]


def numbered_nonces(rows: int, first: int = 0) -> np.ndarray:
    """Different nonces, the same ones on every run."""
    digests = [hashlib.md5(str(first + row).encode()).digest() for row in range(rows)]
    return np.frombuffer(b"".join(digests), np.uint8).reshape(rows, 16)


def seeded_words(seed: int):
    generator = np.random.default_rng(seed)
    return lambda count: generator.integers(0, 1 << 64, count, np.uint64)


def extremes(randomizer: CapRandomizer) -> tuple[Fraction, Fraction]:
    """1/Z and g/Z, from the written formula."""
    g = gain(randomizer.epsilon)
    total = randomizer.codebook.size + (g - 1) * randomizer.cap
    return 1 / total, g / total


def small(domain: mh.Domain, epsilon: float) -> CapRandomizer:
    """With few vectors, so that whole laws are quick to list."""
    ball = BallMap.around(domain)
    size = min(16, best_cap(ball.rank, epsilon)[0].size)
    return CapRandomizer(ball, epsilon, Codebook(ball.rank, size), max(1, size // 5))


def test_the_gain_is_below_the_exponential_and_close_to_it():
    with mpmath.workdps(60):
        for epsilon in (1e-9, 1e-6, 0.1, 0.5, 1.0, 2.0, 10.0, 63.9, 64.0):
            ideal = mpmath.exp(mpmath.mpf(repr(epsilon)))
            g = gain(epsilon)
            exact = mpmath.mpf(g.numerator) / g.denominator
            assert 0 <= ideal - exact <= ideal * mpmath.mpf(2) ** -60
            assert (ideal - exact) / (ideal - 1) <= mpmath.mpf(2) ** -60
    assert gain(1e300) == gain(64.0)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_no_likelihood_ratio_exceeds_the_gain(domain):
    for epsilon in EPSILONS:
        randomizer = small(domain, epsilon)
        least, most = extremes(randomizer)
        assert most / least == gain(epsilon)
        grid = list(itertools.product(HOSTILE, repeat=randomizer.record_dim))
        grid = grid[:: len(grid) // 100 * 2 + 1]
        for nonce in numbered_nonces(2):
            reached = set()
            for record in grid:
                law = randomizer.law(record, nonce)
                assert sum(law) == 1
                assert least <= min(law)
                assert max(law) <= most
                reached.update((min(law), max(law)))
        # Some record uses the promise up. (At a huge ε a distance of 1 − 2^-53 is not 1.)
        if isinstance(domain, mh.Ball | mh.Ellipsoid) and epsilon < 5:
            assert max(reached) / min(reached) > 1 + (gain(epsilon) - 1) * Fraction(9, 10)


def test_a_device_that_heeds_its_record_too_often_is_found_out():
    randomizer = small(mh.Ball(1.0, dim=3), 1.0)
    _, most = extremes(randomizer)
    (nonce,) = numbered_nonces(1)
    assert most * (1 - Fraction(1, 10**12)) < max(randomizer.law([0, 0, 1], nonce)) <= most
    randomizer.__dict__["favour"] = randomizer.favour * Fraction(101, 100)
    assert max(randomizer.law([0, 0, 1], nonce)) > most * Fraction(1002, 1000)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("domain", [mh.Ball(1.0, dim=d) for d in (1, 2, 3, 20)], ids=repr)
def test_floats_that_err_wildly_break_no_promise(domain, seed, monkeypatch):
    random = np.random.default_rng(seed)

    def garbage(self, records):
        lengths = random.choice(
            [math.nan, math.inf, -3.0, 0.5, 1 + 1e-9, 1e300, -0.0], len(records)
        )
        directions = random.choice(
            [math.nan, math.inf, -1e308, 0.0, 1.0], (len(records), self.rank)
        )
        return lengths, directions

    monkeypatch.setattr(BallMap, "polar", garbage)
    randomizer = CapRandomizer.of(domain, 1.5)
    least, most = extremes(randomizer)
    for nonce in numbered_nonces(20):
        law = randomizer.law(np.zeros(domain.dim), nonce)
        assert sum(law) == 1
        assert least <= min(law)
        assert max(law) <= most
    payloads = randomizer.randomize(np.zeros((50, domain.dim)), numbered_nonces(50))
    assert randomizer.valid(payloads).all()


def chi_square(counts: np.ndarray, law: np.ndarray) -> float:
    expected = law * counts.sum()
    return float(np.sum((counts - expected) ** 2 / expected))


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("length", [0.0, 0.4, 1.0])
def test_messages_have_the_stated_law(dim, length):
    # 40,000 messages of one record and nonce; nine χ² tests at 1e-7 each.
    from scipy.stats import chi2

    rows = 40_000
    randomizer = small(mh.Ball(1.0, dim=dim), 2.0)
    (nonce,) = numbered_nonces(1)
    record = np.zeros(dim)
    record[-1] = length
    payloads = randomizer.randomize(
        np.repeat(record[None], rows, axis=0),
        np.repeat(nonce[None], rows, axis=0),
        seeded_words(dim),
    )
    counts = np.bincount(payloads[:, 0], minlength=randomizer.codebook.size)
    threshold = chi2.isf(1e-7, randomizer.codebook.size - 1)
    law = np.array([float(p) for p in randomizer.law(record, nonce)])
    assert chi_square(counts, law) < threshold
    # The record on the other side, or a little nearer to the centre, would be another law.
    shorter = record + 0.1 if length == 0 else record * 0.8
    for other in (shorter, -record if length else -shorter):
        wrong = np.array([float(p) for p in randomizer.law(other, nonce)])
        assert chi_square(counts, wrong) > 2 * threshold


def point(randomizer: CapRandomizer, record: np.ndarray) -> tuple[float, np.ndarray]:
    length, direction = randomizer.map.polar(record[None])
    return float(length[0]), direction[0]


def exact_covariance(randomizer: CapRandomizer, record: np.ndarray) -> np.ndarray:
    """Of one message about this record: docs/proofs/local.md."""
    t, u = point(randomizer, record)
    gamma, second = randomizer.moments
    rank = randomizer.codebook.dim
    base = 1 / (rank * gamma**2)
    along, identity = np.outer(u, u), np.eye(rank)
    across = (identity - along) / max(rank - 1, 1)
    inner = base * identity + t * (second / gamma**2 - base) * (along - across) - t * t * along
    axes = randomizer.map.axes
    axes = np.diag(axes) if axes.ndim == 1 else axes
    return axes @ inner @ axes.T


UNBIASED = [(domain, 20.0) for domain in DOMAINS if not isinstance(domain, mh.Ball)]
UNBIASED += [(mh.Ball(1.0, dim=d, center=[5] * d), 5.5) for d in (1, 2, 8)]
UNBIASED += [(mh.Ball(2.0, dim=3), 20.0)]


@pytest.mark.parametrize(("domain", "first"), UNBIASED, ids=repr)
def test_the_mean_is_unbiased_and_has_the_stated_covariance(domain, first):
    # 15,000 messages of one record; along each of at most 8 axes and in all, the mean and the
    # square at 6 standard errors, 14 domains: P < 5e-7 together.
    rows, epsilon = 15_000, 2.0
    randomizer = CapRandomizer.of(domain, epsilon)
    assert randomizer.payload_bytes == 1
    record = np.full(randomizer.record_dim, 5.0)
    record[0] = first
    source = domain.preimage()
    truth = source.domain.clip(record)
    if source.matrix is not None:
        truth = source.matrix @ truth + source.offset
    nonces = numbered_nonces(rows)
    payloads = randomizer.randomize(np.repeat(record[None], rows, axis=0), nonces, seeded_words(3))
    vectors = randomizer.codebook.vectors(nonces, payloads[:, 0].astype(np.int64))
    t, u = point(randomizer, record)
    gamma, second = randomizer.moments
    frame = np.linalg.qr(np.column_stack([u, np.eye(len(u))]))[0] if len(u) > 1 else u[:, None]
    along = vectors @ frame * np.sign(frame[:, 0] @ u)

    def off(gamma: float, second: float) -> float:
        rank = len(u)
        across = (1 - second) / max(rank - 1, 1)
        squares = t * np.array([second, *[across] * (rank - 1)]) + (1 - t) / rank
        firsts = np.array([gamma * t, *[0.0] * (rank - 1)])
        worst = 0.0
        for values, stated in ((along, firsts), (along**2, squares)):
            errors = np.maximum(values.std(axis=0), 1e-9) / math.sqrt(rows)
            worst = max(worst, float(np.max(np.abs(values.mean(axis=0) - stated) / errors)))
        return worst

    assert off(gamma, second) < 6
    assert off(gamma * 1.25, second) > 9
    spread = np.sqrt(np.trace(exact_covariance(randomizer, record)) / rows)
    assert np.linalg.norm(randomizer.mean(nonces, payloads) - truth) < 6 * spread


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0, 9.0])
def test_no_record_has_more_error_than_is_stated(domain, epsilon):
    randomizer = CapRandomizer.of(domain, epsilon)
    random = np.random.default_rng(2)
    records = (
        random.normal(size=(200, randomizer.record_dim))
        * 10.0 ** random.uniform(-3, 1, 200)[:, None]
    )
    stated, error = randomizer.covariance(7), randomizer.expected_error(7)
    size = float(np.trace(stated))
    for record in randomizer.domain.preimage().domain.record_center + records:
        covariance = exact_covariance(randomizer, record) / 7
        assert np.linalg.eigvalsh(stated - covariance).min() >= -1e-9 * size
        assert math.sqrt(np.trace(covariance)) <= error * (1 + 1e-9)
    assert error <= math.sqrt(size) * (1 + 1e-9)


def test_the_stated_errors_are_attained():
    # e < 2 here and e > 2 there: inside, and on the surface.
    for epsilon, dim in ((1.0, 8), (8.0, 3), (12.0, 40)):
        randomizer = CapRandomizer.of(mh.Ellipsoid(np.linspace(9, 1, dim)), epsilon)
        lengths = np.linspace(0, 3, 400)
        records = np.zeros((400, dim))
        records[:, 0] = lengths
        found = [exact_covariance(randomizer, record) for record in records]
        stated = randomizer.covariance(1)[0, 0]
        assert max(one[0, 0] for one in found) == pytest.approx(stated, rel=1e-4)
        worst = math.sqrt(max(np.trace(one) for one in found))
        assert worst == pytest.approx(randomizer.expected_error(1), rel=1e-4)
    ball = CapRandomizer.of(mh.Ball(2.0, dim=8), 1.0)
    gamma = ball.moments.shrinkage
    assert ball.expected_error(100) == pytest.approx(2 / (gamma * 10), rel=1e-12)
    surface = exact_covariance(ball, np.array([2.0, *[0.0] * 7]))
    assert np.trace(surface) == pytest.approx(4 * (1 / gamma**2 - 1), rel=1e-12)


@pytest.mark.parametrize("weights", [None, (1.0, 3.0, 0.2)], ids=str)
def test_the_worst_of_listed_points_is_one_of_them(weights):
    points = np.array([[0.0, 0.0, 1.0], [1.0, 0.5, 2.0], [0.2, 2.0, 3.0], [0.5, 0.7, 2.0]])
    stretch = np.diag(weights or np.ones(3))
    for listed in (mh.Points(points), np.diag([2.0, 1.0, 3.0]) @ mh.Points(points)):
        randomizer = CapRandomizer.of(listed, 2.0)
        records = listed.preimage().domain.vertices()
        found = [stretch @ exact_covariance(randomizer, one) @ stretch for one in records]
        worst = math.sqrt(max(np.trace(one) for one in found))
        assert randomizer.expected_error(1, weights) == pytest.approx(worst, rel=1e-9)
        ball = np.linalg.norm(np.diag(stretch) * randomizer.spread(1).standard_error)
        assert worst < 0.95 * ball


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("dim", [1, 2, 3, 8, 32, 128, 784])
def test_the_variance_is_within_one_per_cent_of_the_least(dim, epsilon):
    codebook, cap = best_cap(dim, epsilon)
    excess = excess_variance(codebook, cap, epsilon)
    allowed = {1: 1e-12, 2: 2e-4}.get(dim, 0.01)
    assert excess < (0.065 if (dim, epsilon) == (784, 8.0) else allowed)
    assert moments(codebook, cap, epsilon).shrinkage <= largest_shrinkage(dim, epsilon) * (
        1 + 1e-12
    )
    assert codebook.size <= 256 or epsilon > 2


def test_the_sign_alone_is_far_from_it():
    # Half of a pair is favoured: the randomised response of a sign, 16 % worse at ε = 1.
    assert excess_variance(Codebook(8, 2), 1, 1.0) == pytest.approx(0.16, abs=0.02)


def slow_sums(dim: int, size: int, count: int) -> tuple[float, float]:
    """E of the sums over the nearest vectors, by the binomial law and 20 digits."""
    half = size // 2

    def expected(t):
        tail = mpmath.betainc((dim - 1) / mpmath.mpf(2), 0.5, 0, 1 - t * t, regularized=True)
        return mpmath.fsum(
            min(j, count) * mpmath.binomial(half, j) * tail**j * (1 - tail) ** (half - j)
            for j in range(1, half + 1)
        )

    with mpmath.workdps(20):
        edges = [0, mpmath.mpf(1) / 2, 1]
        first = mpmath.quad(expected, edges)
        second = mpmath.quad(lambda t: 2 * t * expected(t), edges)
    return float(first), float(second)


@pytest.mark.parametrize(("dim", "size", "count"), [(3, 12, 3), (4, 8, 1), (8, 12, 6), (20, 8, 3)])
def test_the_sums_over_the_nearest_agree_with_slow_arithmetic(dim, size, count):
    found = nearest_sums(Codebook(dim, size), count)
    assert found == pytest.approx(slow_sums(dim, size, count), rel=1e-12)


def test_the_sums_over_the_nearest_do_not_depend_on_the_nodes(monkeypatch):
    shapes = [(3, 32), (8, 256), (8, 4096), (128, 4096), (784, 512), (100_000, 32), (3, 1 << 16)]
    books = [(Codebook(dim, size), k) for dim, size in shapes for k in (1, 2, size // 9, size // 2)]
    found = [nearest_sums.__wrapped__(book, k) for book, k in books]
    monkeypatch.setattr(cap_choice, "PANELS", 4 * cap_choice.PANELS)
    for (book, k), sums in zip(books, found, strict=True):
        assert sums == pytest.approx(nearest_sums.__wrapped__(book, k), rel=1e-10)


@pytest.mark.parametrize(("size", "count"), [(8, 1), (8, 2), (8, 3), (16, 8)])
def test_the_sums_of_a_polygon(size, count):
    turns = (np.arange(20_000) + 0.5) / 20_000 * 2 * math.pi
    corners = np.cos(turns[:, None] + np.arange(size) * 2 * math.pi / size)
    nearest = np.sort(corners, axis=1)[:, -count:]
    found = nearest_sums(Codebook(2, size), count)
    assert found == pytest.approx((nearest.sum(1).mean(), (nearest**2).sum(1).mean()), rel=1e-6)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_a_description_goes_through_json(domain):
    randomizer = CapRandomizer.of(domain, 0.7, p=4)
    text = json.dumps(randomizer.to_dict())
    again = CapRandomizer.from_dict(json.loads(text))
    assert again == randomizer
    assert hash(again) == hash(randomizer)
    assert json.dumps(again.to_dict()) == text
    nonces, records = numbered_nonces(30), np.full((30, randomizer.record_dim), 0.2)
    payloads = randomizer.randomize(records, nonces, seeded_words(1))
    assert (again.randomize(records, nonces, seeded_words(1)) == payloads).all()
    assert (again.mean(nonces, payloads) == randomizer.mean(nonces, payloads)).all()
    assert randomizer.privacy == mh.PureDP(epsilon=0.7)


SPOILED = {
    "epsilon": [0, -1.0, math.nan, math.inf, "1", None, 1e-12],
    "size": [0, 7, 1 << 20, "32", None, 2.5],
    "cap": [0, 17, 10**9, "3", None],
    "codebook": ["polygon", 3, None],
    "axes": [[], ["0x1p0"], "zero", "0x0p0", "-0x1p0", [["0x1p0"] * 3], None, "inf", [[]]],
    "center": [[], ["0x1p0"], ["x"] * 3, None, ["nan"] * 3],
    "domain": [None, {}, {"domain": "none"}, {"domain": "ball"}, []],
}


@pytest.mark.parametrize("name", SPOILED)
def test_malformed_descriptions_are_refused(name):
    fields = CapRandomizer.of(mh.Ball(1.0, dim=3), 0.25).to_dict()
    assert CapRandomizer.from_dict(dict(fields)).cap == 15
    for value in SPOILED[name]:
        with pytest.raises(mh.InvalidInput):
            CapRandomizer.from_dict({**fields, name: value})
    with pytest.raises(mh.InvalidInput):
        CapRandomizer.from_dict({key: value for key, value in fields.items() if key != name})


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_hostile_records_become_ordinary_messages(domain):
    randomizer = CapRandomizer.of(domain, 1.0)
    dim = randomizer.record_dim
    grid = np.array(list(itertools.product(HOSTILE, repeat=dim)))[::3]
    nonces = numbered_nonces(len(grid))
    payloads = randomizer.randomize(grid, nonces)
    assert payloads.shape == (len(grid), randomizer.payload_bytes)
    assert payloads.dtype == np.uint8
    assert randomizer.valid(payloads).all()
    assert np.isfinite(randomizer.mean(nonces, payloads)).all()
    (nonce,) = numbered_nonces(1)
    source = domain.preimage().domain
    missing = randomizer.law(np.full(dim, math.nan), nonce)
    assert missing == randomizer.law(source.record_center, nonce)


def test_records_outside_count_as_clipped():
    randomizer = CapRandomizer.of(mh.Ball(1.0, dim=3), 1.0)
    (nonce,) = numbered_nonces(1)
    assert randomizer.law([0, 3e200, 0], nonce) == randomizer.law([0, 1, 0], nonce)
    assert randomizer.law([0, 0.5, 0], nonce) != randomizer.law([0, 1, 0], nonce)
    # In the centre every vector is as likely as the other.
    assert set(randomizer.law([0, 0, 0], nonce)) == {Fraction(1, 128)}


def test_wrong_shapes_are_refused_without_a_value():
    randomizer = CapRandomizer.of(mh.Ball(1.0, dim=3), 1.0)
    for records in (
        np.full((2, 2), 0.77),
        np.full(3, 0.77),
        np.full((3, 3), 0.77),
        np.float64(0.77),
    ):
        with pytest.raises(mh.InvalidInput, match="shape") as refused:
            randomizer.randomize(records, numbered_nonces(2))
        assert "77" not in str(refused.value)
    with pytest.raises(mh.InvalidInput, match="points must be numbers") as refused:
        randomizer.randomize(np.full((2, 3), "0.77x"), numbered_nonces(2))
    assert "77" not in str(refused.value)
    with pytest.raises(mh.InvalidInput, match="nonces"):
        randomizer.randomize(np.zeros((2, 3)), np.zeros((2, 8), np.uint8))
    with pytest.raises(mh.InvalidInput, match="one message"):
        randomizer.mean(np.zeros((0, 16), np.uint8), np.zeros((0, 1), np.uint8))


def test_payloads_that_name_no_vector_are_not_valid():
    randomizer = CapRandomizer.of(mh.Ball(1.0, dim=3), 0.25)
    assert randomizer.payload_bytes == 1
    assert randomizer.valid(np.array([[0], [31], [32], [255]], np.uint8)).tolist() == [
        True,
        True,
        False,
        False,
    ]
    wide = CapRandomizer.of(mh.Ball(1.0, dim=3), 4.0)
    assert wide.payload_bytes == 2
    assert wide.codebook.size == 512
    found = wide.valid(np.array([[255, 1], [0, 2], [255, 255]], np.uint8))
    assert found.tolist() == [True, False, False]


def test_flat_domains_have_fewer_dimensions():
    assert CapRandomizer.of(mh.Simplex(dim=5), 1.0).codebook.dim == 4
    assert CapRandomizer.of(DOMAINS[-2], 1.0).codebook.kind == "signs"
    randomizer = CapRandomizer.of(mh.Simplex(dim=5), 1.0)
    nonces = numbered_nonces(10)
    mean = randomizer.mean(nonces, randomizer.randomize(np.eye(5)[[0, 1] * 5], nonces))
    assert mean.sum() == pytest.approx(1, abs=1e-9)
    with pytest.raises(mh.InvalidInput, match="single point"):
        CapRandomizer.of(mh.Points([[1.0, 2.0]]), 1.0)


def test_the_ellipsoid_is_the_smallest_for_the_error_asked():
    box = mh.Box([0, 0], [1, 9])
    plain = CapRandomizer.of(box, 1.0)
    error = mh.ellipsoids.smallest_ellipsoid(box, 2, "shifted").value
    base = math.sqrt(plain.map.squares().sum())
    assert base == pytest.approx(error, rel=1e-12)
    weighted = CapRandomizer.of(box, 1.0, weights=[9, 1])
    alike = weighted.map.axes * np.array([9, 1])
    assert alike[0] == pytest.approx(alike[1], rel=1e-9)
    assert CapRandomizer.of(box, 1.0, p=math.inf).map.axes.tolist() != plain.map.axes.tolist()


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1", 1e-12])
def test_promises_that_are_none_are_refused(epsilon):
    with pytest.raises(mh.InvalidInput, match="epsilon"):
        CapRandomizer.of(mh.Ball(1.0, dim=2), epsilon)


def test_nothing_shows_a_record():
    randomizer = CapRandomizer.of(mh.Ball(1.0, dim=2), 1.0)
    randomizer.randomize(np.full((1, 2), 0.123456), numbered_nonces(1))
    assert "0.123" not in repr(randomizer) + json.dumps(randomizer.to_dict())


@pytest.mark.slow
def test_a_hundred_thousand_people_in_eight_dimensions():
    # One draw of the error of 100,000 people's mean: 8 coordinates at 6 standard errors, P < 2e-8.
    people = np.random.default_rng(0).normal(size=(100_000, 8))
    people /= np.maximum(np.linalg.norm(people, axis=1), 1)[:, None]
    randomizer = CapRandomizer.of(mh.Ball(1.0, dim=8), 1.0)
    nonces = numbered_nonces(len(people))
    payloads = randomizer.randomize(people, nonces, seeded_words(9))
    mean = randomizer.mean(nonces, payloads)
    room = 6 * np.sqrt(np.diag(randomizer.covariance(len(people))))
    assert (np.abs(mean - people.mean(axis=0)) < room).all()
    moved = people + np.array([0.5, *[0.0] * 7])
    assert np.abs(mean - moved.mean(axis=0)).max() > 2 * room.max()


@pytest.mark.slow
@pytest.mark.parametrize("record", [[1.0, 0.0, 0.0], [0.5, 0.5, 0.5]], ids=str)
def test_at_a_small_epsilon_the_variance_is_the_stated_one(record):
    """4,000 means of 100 messages, within 5.5 standard errors: a false alarm of 1e-7 a record."""
    randomizer = CapRandomizer.of(mh.Ball(1.0, dim=3), 0.1)
    nonces = np.random.default_rng(1).integers(0, 256, (400_000, 16), np.uint8)
    payloads = randomizer.randomize(np.tile(record, (len(nonces), 1)), nonces)
    means = [
        randomizer.mean(nonces[start : start + 100], payloads[start : start + 100])
        for start in range(0, len(nonces), 100)
    ]
    squares = np.square(np.array(means) - record).sum(axis=1)
    spread = squares.std() / np.sqrt(len(squares))
    stated = randomizer.expected_error(100) ** 2
    assert abs(squares.mean() - stated) < 5.5 * spread
    assert squares.mean() + 5.5 * spread < 1.2 * stated  # and not 1.44 times as much
