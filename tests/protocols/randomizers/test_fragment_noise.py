"""Noise in shares: the promise against everything that can be seen, computed and not sampled."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

import muhat as mh
from muhat.errors import InvalidInput
from muhat.privacy import as_typed, gaussian_delta
from muhat.privacy.conversions import group_delta
from muhat.privacy.rounding import float_at_least, float_at_most, root_at_least
from muhat.protocols.encodings.encoding import Sensitivity
from muhat.protocols.randomizers.allowance import Allowance
from muhat.protocols.randomizers.fragment_noise import (
    LAWS,
    SMOOTHED,
    SMOOTHING,
    FragmentNoise,
    _normal_variance,
    _tau,
    fit,
)

ONE = Sensitivity(1, Fraction(1), Fraction(1))
PROMISE = mh.ApproxDP(epsilon=1.0, delta=1e-6)


def fragment_noise(moved, allowance, *, honest, users, low, high, law=None):
    """The noise of least variance that keeps the allowance."""
    laws = LAWS if law is None else (law,)
    found = [fit(moved, allowance, honest, users, (low, high), each) for each in laws]
    return min(filter(None, found), key=lambda noise: noise.variance(users))


def kept_delta(noise):
    """The δ that a round keeps by itself, at the ε of the whole promise."""
    epsilon, delta = noise.allowance.promise.epsilon, Fraction(0)
    if noise.law == "gaussian":
        tau = _tau(noise)
        mu = root_at_least(noise.sensitivity.l2**2 / _normal_variance(noise))
        less = float_at_most(as_typed(epsilon) - 2 * tau)
        # e^τ ≤ 1/(1 − τ)
        delta = as_typed(gaussian_delta(mu, less)) / (1 - tau)
    return float_at_least(delta + as_typed(group_delta(epsilon, noise.eta, 2)))


def hockey_stick(first, second, epsilon):
    """The least δ with first ≤ e^ε·second + δ."""
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


# What the shuffler hands on, for two people with q = 4 and six shares each.


def uniform_shares(q, m):
    """For every number modulo q, the law of the multiset of its shares."""
    laws = [{} for _ in range(q)]
    for first in product(range(q), repeat=m - 1):
        for number in range(q):
            shares = (*first, (number - sum(first)) % q)
            view = tuple(shares.count(value) for value in range(q))
            laws[number][view] = laws[number].get(view, 0.0) + q ** (1.0 - m)
    return laws


def two_people(records, noise, q, m):
    """The law of all shares of two people whose noise has this law modulo q."""
    alone = uniform_shares(q, m)
    noisy = []
    for record in records:
        law = {}
        for shift, chance in enumerate(noise):
            for view, part in alone[(record + shift) % q].items():
                law[view] = law.get(view, 0.0) + chance * part
        noisy.append(law)
    views = {}
    for (one, p), (other, r) in product(noisy[0].items(), noisy[1].items()):
        both = tuple(map(sum, zip(one, other, strict=True)))
        views[both] = views.get(both, 0.0) + p * r
    return views


def laplace_part_modulo(rate, h, q):
    """The law of NB(1/h) − NB(1/h) modulo q, from its characteristic function."""
    a = math.exp(-rate)
    t = 2 * np.pi * np.arange(q) / q
    transform = ((1 - a) ** 2 / np.abs(1 - a * np.exp(1j * t)) ** 2) ** (1 / h)
    return np.fft.ifft(transform).real


def seen_delta(rate, epsilon, q=4, m=6):
    """The least δ for one of two people who has 1 instead of 0, from all that is seen."""
    noise = laplace_part_modulo(rate, 2, q)
    first, second = two_people((0, 0), noise, q, m), two_people((1, 0), noise, q, m)
    views = sorted(first)
    laws = [np.array([law[view] for view in views]) for law in (first, second)]
    return max(hockey_stick(*laws, epsilon), hockey_stick(*laws[::-1], epsilon))


def test_the_promise_covers_all_that_two_people_show():
    tiny = Allowance(mh.ApproxDP(epsilon=1.0, delta=0.2))
    noise = FragmentNoise(ONE, tiny, 2, "laplace", Fraction(1), 2, 6)
    assert kept_delta(noise) <= 0.2
    assert 0 < seen_delta(1.0, 1.0) <= kept_delta(noise)
    # A third of the noise would not do, and cannot be made.
    assert seen_delta(3.0, 1.0) > 0.2
    with pytest.raises(InvalidInput, match="does not keep its promise"):
        FragmentNoise(ONE, tiny, 2, "laplace", Fraction(3), 2, 6)
    with pytest.raises(InvalidInput, match="does not keep its promise"):
        FragmentNoise(ONE, tiny, 2, "laplace", Fraction(1), 2, 5)


# The law of the sum alone.


def discrete_gaussian_law(variance, reach):
    k = np.arange(-reach, reach + 1)
    law = np.exp(-(k**2) / (2 * float(variance)))
    return law / law.sum()


def summed(law, people):
    total = law
    for _ in range(people - 1):
        total = np.convolve(total, law)
    return total


def shifted_delta(law, shift, epsilon):
    padded = np.pad(law, abs(shift))
    return hockey_stick(padded, np.roll(padded, shift), epsilon)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_sums_of_gaussian_shares_keep_the_promise_and_hardly_more(epsilon):
    moved = Sensitivity(1, Fraction(30), Fraction(30))
    allowance = Allowance(mh.ApproxDP(epsilon=epsilon, delta=1e-4))
    noise = fragment_noise(moved, allowance, honest=5, users=5, low=0, high=30, law="gaussian")
    reach = math.ceil(9 * math.sqrt(noise.parameter))
    found = shifted_delta(summed(discrete_gaussian_law(noise.parameter, reach), 5), 30, epsilon)
    assert 0.95e-4 < found < kept_delta(noise) <= 1e-4
    less = summed(discrete_gaussian_law(noise.parameter * Fraction(49, 50), reach), 5)
    assert shifted_delta(less, 30, epsilon) > 1e-4


def test_the_factor_between_rounded_normal_and_discrete_noise_is_as_near_to_one_as_stated():
    """1 ± u for every coset of the integers, 1 + u for the integers themselves: see the proof."""
    with mpmath.workdps(60):
        u = 2 * mpmath.nsum(lambda k: mpmath.exp(-2 * mpmath.pi**2 * 3 * k**2), [1, mpmath.inf])
        assert SMOOTHING == 3
        assert mpmath.log((1 + u) / (1 - u)) < mpmath.mpf(SMOOTHED.numerator) / SMOOTHED.denominator


def laplace_law(rate, reach):
    k = np.arange(-reach, reach + 1)
    law = np.exp(-float(rate) * np.abs(k))
    return law / law.sum()


def test_two_rounds_keep_one_promise_together():
    """A Gaussian half and a pure half: the law of both sums at once, every pair of them."""
    whole = Allowance(mh.ApproxDP(epsilon=2.0, delta=1e-3))
    rounds = {"honest": 5, "users": 5, "low": 0, "high": 12}
    moved = Sensitivity(1, Fraction(12), Fraction(12))
    first = fragment_noise(moved, whole.part(Fraction(1, 2)), law="gaussian", **rounds)
    second = fragment_noise(moved, whole.part(Fraction(1, 2)), law="laplace", **rounds)

    def together(variance, rate):
        one = discrete_gaussian_law(5 * variance, math.ceil(7 * math.sqrt(5 * variance)))
        other = laplace_law(rate, math.ceil(14 / rate))
        pair = [np.pad(law, 12) for law in (one, other)]
        moved = [np.roll(law, 12) for law in pair]
        return hockey_stick(np.outer(*pair), np.outer(*moved), 2.0)

    assert together(first.parameter, second.parameter) < 1e-3
    assert together(first.parameter / 2, 2 * second.parameter) > 2e-3
    # Two Gaussian halves are exactly one whole.
    assert 2 * whole.part(Fraction(1, 2)).mu_squared == whole.mu_squared


def test_parts_of_an_allowance_add_up():
    whole = Allowance(PROMISE)
    parts = [whole.part(Fraction(1, 3)), whole.part(Fraction(2, 3)).part(Fraction(1, 2))]
    assert parts[0] == parts[1]
    assert 3 * parts[0].mu_squared == whole.mu_squared
    assert 3 * parts[0].distance("laplace") <= whole.distance("gaussian")
    assert parts[0].pure < whole.pure == 1
    # All of δ for the mixing if the noise needs none, else a 128th of it.
    spent = 1e-6 / (1 + math.e)
    assert whole.distance("laplace") == pytest.approx(spent, rel=1e-12)
    assert whole.distance("gaussian") == pytest.approx(spent / 128, rel=1e-12)
    assert whole.distance("laplace") <= spent * (1 + 1e-15)


@pytest.mark.parametrize("share", [0, -1, 2, Fraction(3, 2), Fraction(1, 1 << 70)])
def test_shares_of_a_promise_lie_between_nothing_and_all(share):
    with pytest.raises(InvalidInput, match="share"):
        Allowance(PROMISE, Fraction(share))


@pytest.mark.parametrize(
    "promise", [mh.PureDP(epsilon=1.0), mh.ZCDP(rho=0.1), mh.ApproxDP(epsilon=100.0, delta=1e-6)]
)
def test_promises_that_mixing_cannot_keep_are_refused(promise):
    with pytest.raises(InvalidInput):
        Allowance(promise)


def test_the_law_of_least_variance_is_chosen():
    few = fragment_noise(ONE, Allowance(PROMISE), honest=90, users=100, low=0, high=1)
    assert few.law == "laplace"
    many = Sensitivity(64, Fraction(8000), Fraction(1000))
    found = [
        fragment_noise(many, Allowance(PROMISE), honest=90, users=100, low=0, high=1000, law=law)
        for law in ("gaussian", "laplace")
    ]
    best = fragment_noise(many, Allowance(PROMISE), honest=90, users=100, low=0, high=1000)
    assert best == found[0]
    assert best.variance(100) < found[1].variance(100)


def test_variances_are_those_of_the_laws():
    laplace = fragment_noise(ONE, Allowance(PROMISE), honest=4, users=10, low=0, high=1)
    law = laplace_law(laplace.parameter, 80)
    exact = float((law * np.arange(-80, 81) ** 2).sum())
    assert laplace.variance(4) == pytest.approx(exact, rel=1e-12)
    assert laplace.variance(10) == pytest.approx(2.5 * exact, rel=1e-12)
    moved = Sensitivity(1, Fraction(30), Fraction(30))
    gaussian = fragment_noise(
        moved, Allowance(PROMISE), honest=4, users=10, low=0, high=30, law="gaussian"
    )
    assert gaussian.variance(10) == pytest.approx(10 * float(gaussian.parameter), rel=1e-12)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_noise_leaves_its_reach_less_often_than_stated(law):
    """The exact tail of the sum of all people, against the chance that a sum is misread."""
    from muhat.protocols.encodings.modulus import WRAP

    moved = Sensitivity(1, Fraction(2), Fraction(2))
    noise = fragment_noise(moved, Allowance(PROMISE), honest=4, users=8, low=0, high=2, law=law)
    reach = noise.reach(8)
    if law == "gaussian":
        total = summed(discrete_gaussian_law(noise.parameter, reach), 8)
    else:
        total = summed(laplace_law(noise.parameter, 3 * reach), 2)
    outside = np.abs(np.arange(total.size) - total.size // 2) > reach
    assert 1e-4 * WRAP < total[outside].sum() < WRAP


def test_descriptions_come_back_and_weaker_ones_are_refused():
    noise = fragment_noise(ONE, Allowance(PROMISE), honest=900, users=1000, low=0, high=1)
    fields = json.loads(json.dumps(noise.to_dict()))
    assert FragmentNoise.of_numbers(fields, ONE) == noise
    weaker = {
        "shares": noise.fragments - 1,
        "modulus_bits": 40,
        "honest": 90,
        "parameter": "101/100",
        "share": "1/2",
        "promise": {"kind": "approx", "epsilon": 1.0, "delta": 1e-9},
        "law": "gaussian",
    }
    for name, value in weaker.items():
        with pytest.raises(InvalidInput, match="does not keep its promise"):
            FragmentNoise.of_numbers({**fields, name: value}, ONE)
    with pytest.raises(InvalidInput, match="does not keep its promise"):
        FragmentNoise.of_numbers(fields, Sensitivity(1, Fraction(2), Fraction(2)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("parameter", "1e999999999"),
        ("parameter", "9" * 300),
        ("parameter", 1.0),
        ("parameter", "-1"),
        ("parameter", "0"),
        ("share", "nan"),
        ("honest", 0),
        ("honest", 10**20),
        ("modulus_bits", 64),
        ("shares", 1),
        ("shares", 10**9),
        ("shares", True),
        ("law", "none"),
        ("promise", {"kind": "pure", "epsilon": 1.0}),
    ],
)
def test_hostile_descriptions_are_refused(name, value):
    noise = fragment_noise(ONE, Allowance(PROMISE), honest=900, users=1000, low=0, high=1)
    with pytest.raises(InvalidInput):
        FragmentNoise.of_numbers({**noise.to_dict(), name: value}, ONE)


def test_what_cannot_be_counted_is_refused_with_a_reason():
    wide = Sensitivity(1, Fraction(1 << 45), Fraction(1 << 45))
    for law in LAWS:
        assert fit(wide, Allowance(PROMISE), 10, 1 << 20, (0, 1 << 45), law) is None
    with pytest.raises(InvalidInput, match="users"):
        fragment_noise(ONE, Allowance(PROMISE), honest=10, users=9, low=0, high=1)
    with pytest.raises(InvalidInput, match="above 0"):
        Sensitivity(1, Fraction(0), Fraction(1))
