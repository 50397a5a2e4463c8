"""Shares: exact modulo q, uniform, and with a sum that a trusted curator could have released."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import muhat as mh
from muhat.errors import InvalidInput
from muhat.noise.entropy import system_words
from muhat.protocols.encodings.domain_encoding import DomainEncoding
from muhat.protocols.encodings.encoding import NONCE_BYTES
from muhat.protocols.encodings.tree_encoding import TreeEncoding
from muhat.protocols.randomizers.allowance import Allowance
from muhat.protocols.randomizers.fragment_noise import FragmentNoise, Sensitivity
from muhat.protocols.randomizers.fragment_randomizer import FragmentRandomizer

FALSE_ALARM = 1e-7
PROMISE = Allowance(mh.ApproxDP(epsilon=1.0, delta=1e-6))


def nonces(people):
    return np.zeros((people, NONCE_BYTES), np.uint8)


def randomized(randomizer, records, words=system_words):
    return randomizer.randomize(np.asarray(records, float), nonces(len(records)), words)


def coin(scale=1, law="laplace", parameter=Fraction(1, 2), honest=3, bits=8, shares=14):
    """One of two cells, with a loose promise that few people keep."""
    encoding = TreeEncoding(2, (1,), scale=scale)
    promise = Allowance(mh.ApproxDP(epsilon=1.0, delta=0.1))
    moved = encoding.sensitivity
    return FragmentRandomizer(
        encoding, FragmentNoise(moved, promise, honest, law, parameter, bits, shares)
    )


@pytest.fixture
def without_noise(monkeypatch):
    def none(self, people, words=system_words):
        return np.zeros((people, self.sensitivity.numbers), np.int64)

    monkeypatch.setattr(FragmentNoise, "sample", none)


@pytest.mark.usefixtures("without_noise")
def test_sums_are_exact_modulo_q():
    randomizer = FragmentRandomizer.of(
        TreeEncoding(8, (1, 2), dim=2), PROMISE, honest=90, users=100
    )
    records = np.random.default_rng(1).integers(0, 8, (100, 2))
    payloads = randomized(randomizer, records)
    shares = randomizer.unpacked(payloads)
    assert shares.shape == (100, 24, randomizer.noise.fragments)
    exact = randomizer.encoding.integers(records)
    q = randomizer.noise.modulus
    assert (shares.sum(axis=2) % np.uint64(q) == exact.view(np.uint64)).all()
    remainders = shares.sum(axis=(0, 2)) % np.uint64(q)
    assert randomizer.sums(remainders, 100) == exact.sum(axis=0).tolist()


@pytest.mark.usefixtures("without_noise")
def test_negative_numbers_survive_the_modulus():
    randomizer = FragmentRandomizer.of(
        DomainEncoding(mh.Box([-1.0], [1.0])), PROMISE, honest=45, users=50
    )
    for value in (-1.0, 1.0):
        found = randomizer.mean(nonces(50), randomized(randomizer, np.full((50, 1), value)))
        assert found == pytest.approx([value], abs=float(2 * randomizer.encoding.unit))


def noise_of_groups(randomizer, people, groups):
    """What the sums of groups of so many people are off by."""
    payloads = randomized(randomizer, np.zeros((people * groups, 1)))
    shares = randomizer.unpacked(payloads).reshape(groups, people, randomizer.numbers, -1)
    remainders = shares.sum(axis=(1, 3)) % np.uint64(randomizer.noise.modulus)
    sums = np.array([randomizer.sums(row, people) for row in remainders])
    return (sums - [people * randomizer.encoding.scale, 0]).ravel()


def central_law(law, parameter, honest, k):
    if law == "laplace":
        weights = np.exp(-float(parameter) * np.abs(k))
    else:
        weights = np.exp(-(k**2) / (2.0 * honest * float(parameter)))
    return weights / weights.sum()


def p_value(noise, law, parameter, honest, cut):
    """χ² of the noise against the noise of a trusted curator, the tails taken together."""
    k = np.arange(-3000, 3001)
    chances = np.bincount(np.clip(k, -cut, cut) + cut, central_law(law, parameter, honest, k))
    counts = np.bincount(np.clip(noise, -cut, cut) + cut, minlength=2 * cut + 1)
    return stats.chisquare(counts, chances * counts.sum()).pvalue


@pytest.mark.parametrize(
    ("law", "scale", "parameter", "cut"),
    [("laplace", 1, Fraction(1, 2), 6), ("gaussian", 3, Fraction(50), 30)],
)
def test_the_sum_of_messages_is_the_release_of_a_trusted_curator(law, scale, parameter, cut):
    randomizer = coin(scale, law, parameter, bits=10, shares=16)
    noise = noise_of_groups(randomizer, 3, 10_000)
    assert p_value(noise, law, parameter, 3, cut) > FALSE_ALARM
    # Four people's noise, or a tenth less of it, is told apart.
    assert p_value(noise_of_groups(randomizer, 4, 10_000), law, parameter, 3, cut) < 1e-30
    wrong = parameter * (Fraction(10, 9) if law == "laplace" else Fraction(9, 10) ** 2)
    assert p_value(noise, law, wrong, 3, cut) < 1e-15


def share_p_values(randomizer, payloads):
    """χ² of every pair of shares of a number against the uniform law of pairs, for q = 4."""
    shares = randomizer.unpacked(payloads)[:, 0].astype(int)
    for first, second in combinations(range(shares.shape[1]), 2):
        yield stats.chisquare(np.bincount(4 * shares[:, first] + shares[:, second], minlength=16))


def test_shares_are_uniform_and_independent_in_pairs():
    moved = Sensitivity(2, Fraction(2), Fraction(3, 2))
    encoding = TreeEncoding(2, (1,))
    promise = Allowance(mh.ApproxDP(epsilon=1.0, delta=0.5))
    noise = FragmentNoise(encoding.sensitivity, promise, 2, "laplace", Fraction(1, 2), 2, 6)
    randomizer = FragmentRandomizer(encoding, noise)
    records = np.zeros((20_000, 1))
    tested = list(share_p_values(randomizer, randomized(randomizer, records)))
    assert min(test.pvalue for test in tested) > FALSE_ALARM / len(tested)

    def biased(count):
        """Words of which every bit is set with chance 5/8."""
        return system_words(count) | system_words(count) & system_words(count)

    tested = list(share_p_values(randomizer, randomized(randomizer, records, biased)))
    assert min(test.pvalue for test in tested) < 1e-30
    with pytest.raises(InvalidInput, match="other numbers"):
        FragmentRandomizer(
            encoding, FragmentNoise(moved, promise, 2, "laplace", Fraction(1, 2), 2, 6)
        )


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_means_are_unbiased_with_the_stated_variance(law):
    """Errors of 600 means in units of their deviation: the mean within 5.5 standard errors, the
    variance within 6.6, the kurtosis at most that of Laplace noise: 3e-7, squares being skewed."""
    people, times = 20, 600
    dim = 2 if law == "laplace" else 40
    domain = mh.Ball(1.0, dim=dim)
    randomizer = FragmentRandomizer.of(DomainEncoding(domain), PROMISE, honest=people, users=people)
    assert randomizer.noise.law == law
    records = domain.clip(np.random.default_rng(5).normal(size=(people, dim)))
    payloads = randomized(randomizer, np.tile(records, (times, 1)))
    means = np.array([randomizer.mean(nonces(people), part) for part in np.split(payloads, times)])
    scale = np.sqrt(np.diag(randomizer.covariance(people)))
    errors = ((means - records.mean(axis=0)) / scale).ravel()
    assert abs(errors.mean()) < 5.5 / np.sqrt(errors.size)
    room = 0.02 + 6.6 * np.sqrt(5 / errors.size)
    assert abs(errors.var() - 1) < room
    assert randomizer.expected_error(people) == pytest.approx(np.linalg.norm(scale))
    # With the promise of half the noise the variance would be off by far more.
    assert abs(errors.var() / 4 - 1) > 0.5 > room


def test_hostile_records_make_valid_messages():
    randomizer = FragmentRandomizer.of(
        DomainEncoding(mh.Ball(1.0, dim=3)), PROMISE, honest=45, users=50
    )
    hostile = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.5]
    records = np.array([[a, b, 0.1] for a in hostile for b in hostile])
    payloads = randomized(randomizer, records)
    assert payloads.shape == (49, randomizer.payload_bytes)
    assert payloads.dtype == np.uint8
    assert randomizer.valid(payloads).all()


@pytest.mark.parametrize("bits", [7, 8, 9, 16, 17])
def test_payloads_keep_shares_and_impossible_ones_are_told(bits):
    randomizer = coin(bits=bits, shares=20)
    shares = system_words(5 * 2 * 20).reshape(5, 2, 20) % np.uint64(1 << bits)
    payloads = randomizer.packed(shares)
    assert payloads.shape == (5, randomizer.payload_bytes)
    assert randomizer.payload_bytes == 2 * 20 * -(-bits // 8)
    assert (randomizer.unpacked(payloads) == shares).all()
    assert randomizer.valid(payloads).all()
    if bits % 8:
        payloads[3, -1] |= 1 << (bits % 8)
        assert randomizer.valid(payloads).tolist() == [True, True, True, False, True]


def test_one_device_and_many_have_the_same_messages():
    randomizer = FragmentRandomizer.of(
        DomainEncoding(mh.Ball(1.0, dim=2)), PROMISE, honest=45, users=50
    )
    assert randomized(randomizer, [[0.1, 0.2]]).shape == (1, randomizer.payload_bytes)
    assert randomized(randomizer, np.empty((0, 2))).shape == (0, randomizer.payload_bytes)


def test_the_error_is_next_to_that_of_a_trusted_curator():
    """Rounding and discreteness cost at most 1 % if everybody is honest.

    Beside a curator's noise of a law that is a sum of many: stairs and the noise of a norm are not.
    """
    laws = ("plain-laplace", "gaussian", "gaussian")
    for (dim, users), law in zip([(1, 1000), (32, 1000), (64, 10**6)], laws, strict=True):
        domain = mh.Ball(1.0, dim=dim)
        shares = FragmentRandomizer.of(DomainEncoding(domain), PROMISE, honest=users, users=users)
        central = mh.plan_mean(
            domain=domain,
            n=users,
            privacy=mh.ApproxDP(epsilon=1.0, delta=9.9e-7),
            mechanism=law,
        )
        assert shares.expected_error(users) < 1.01 * np.linalg.norm(central.standard_error)


def test_finer_grids_are_not_sent_where_they_do_not_help():
    sizes = [
        FragmentRandomizer.of(
            DomainEncoding(mh.Ball(1.0, dim=8)), PROMISE, honest=9 * n // 10, users=n
        )
        for n in (10**3, 10**4, 10**5, 10**6)
    ]
    assert [each.noise.modulus_bits <= 32 for each in sizes] == [True] * 4
    assert max(each.payload_bytes for each in sizes) <= 200


def test_descriptions_come_back_and_false_ones_are_refused():
    for randomizer in (
        FragmentRandomizer.of(DomainEncoding(mh.Ball(1.0, dim=3)), PROMISE, honest=90, users=100),
        FragmentRandomizer.of(TreeEncoding(16, (1, 2, 4, 8), dim=2), PROMISE, honest=90, users=100),
    ):
        fields = json.loads(json.dumps(randomizer.to_dict()))
        again = FragmentRandomizer.from_dict(fields)
        assert again == randomizer
        assert again.privacy == mh.ApproxDP(epsilon=1.0, delta=1e-6)
        fields["noise"]["shares"] -= 1
        with pytest.raises(InvalidInput, match="does not keep its promise"):
            FragmentRandomizer.from_dict(fields)
    described = randomizer.to_dict()
    described["encoding"]["scale"] *= 2
    with pytest.raises(InvalidInput, match="does not keep its promise"):
        FragmentRandomizer.from_dict(described)
    with pytest.raises(InvalidInput, match="kind of encoding"):
        FragmentRandomizer.from_dict({**described, "encoding": {"kind": "trees"}})


def test_counts_have_no_mean():
    randomizer = coin()
    with pytest.raises(InvalidInput, match="no mean"):
        randomizer.covariance(3)


def test_a_share_of_the_budget_costs_in_proportion():
    whole, part = (
        FragmentRandomizer.of(
            DomainEncoding(mh.Ball(1.0, dim=64)),
            PROMISE.part(Fraction(share)),
            honest=1000,
            users=1000,
        )
        for share in (1, Fraction(1, 4))
    )
    assert part.expected_error(1000) == pytest.approx(2 * whole.expected_error(1000), rel=0.02)


def test_planning_for_more_people_than_can_be_counted_is_refused():
    with pytest.raises(InvalidInput, match="users"):
        FragmentRandomizer.of(DomainEncoding(mh.Ball(1.0, dim=2)), PROMISE, honest=10, users=9)


def test_intervals_of_laplace_noise_are_as_long_as_its_tails():
    """40,000 sums of real shares of noise. Normal ones of its variance would cover 93.75 %."""
    people, sums = 20, 40_000
    made = FragmentRandomizer.of(
        DomainEncoding(mh.Ball(1.0, dim=1)), PROMISE, honest=people, users=people
    )
    assert made.noise.law == "laplace"
    spread = made.spread(people)
    (reach,) = spread.half_widths(0.95, joint=False) / spread.standard_error
    assert reach == pytest.approx(np.log(20) / 2**0.5)
    noise = made.noise.sample(people * sums).reshape(sums, people).sum(axis=1)
    covered = np.mean(np.abs(noise) <= reach * made.noise.variance(people) ** 0.5)
    # The noise is in whole steps, many of them.
    assert abs(covered - 0.95) < 5.5 * (0.95 * 0.05 / sums) ** 0.5 + 1e-3
