"""Amplification by shuffling, against the text of the theorem."""

from __future__ import annotations

import itertools
import math

import mpmath
import pytest

from muhat.errors import InvalidInput
from muhat.privacy import as_typed
from muhat.privacy.shuffling import shuffled

POINTS = [
    (1.0, 0.0, 10_000, 1e-6),
    (1.0, 1e-12, 10_000, 1e-6),
    (0.1, 0.0, 300, 1e-6),
    (0.5, 1e-15, 1_000, 1e-8),
    (2.0, 0.0, 100_000, 1e-9),
    (3.0, 1e-18, 1_000_000, 1e-7),
    (5.0, 0.0, 1_000_000, 1e-6),
    (1e-9, 0.0, 2_000, 1e-12),
    (8.0, 1e-20, 10**9, 1e-10),
    (0.01, 1e-9, 50, 0.2),
]


def text(epsilon, delta, blocks, extra):
    """Theorem 2.7 of Kamath et al., evaluated independently with 60 digits."""
    with mpmath.workdps(60):
        typed = [as_typed(x) for x in (epsilon, delta, extra)]
        e0, d0, d1 = (mpmath.mpf(x.numerator) / x.denominator for x in typed)
        m = mpmath.mpf(blocks)
        assert d1 >= 2 * mpmath.exp(-m / (16 * mpmath.exp(e0)))
        inner = mpmath.sqrt(mpmath.exp(e0) * mpmath.log(4 / d1) / m) + mpmath.exp(e0) / m
        e1 = mpmath.log1p(8 * mpmath.tanh(e0 / 2) * inner)
        d = d1 + (mpmath.exp(e1) + 1) * (mpmath.exp(-e0) / 2 + 1) * m * d0
        return e1, d


@pytest.mark.parametrize("point", POINTS)
def test_it_is_the_text_of_the_theorem_rounded_up(point):
    promise = shuffled(*point)
    for ours, theirs in zip((promise.epsilon, promise.delta), text(*point), strict=True):
        typed = as_typed(ours)
        with mpmath.workdps(60):
            number = mpmath.mpf(typed.numerator) / typed.denominator
            assert theirs * (1 - mpmath.mpf(10) ** -50) <= number <= theirs * (1 + 1e-15)


def test_a_wrong_constant_would_be_seen():
    """The planted error: 16 for 8, or n for m in the last term, is far outside the tolerance."""
    exact = float(text(*POINTS[0])[0])
    wrong = math.log1p(2 * math.expm1(exact))
    assert wrong / shuffled(*POINTS[0]).epsilon > 1.5


def test_it_is_monotone():
    def epsilons(points):
        return [shuffled(*point).epsilon for point in points]

    base = (1.0, 1e-15, 10_000, 1e-6)
    grows = epsilons([(e, *base[1:]) for e in (0.01, 0.1, 0.5, 1.0, 2.0, 3.0)])
    assert grows == sorted(grows)
    falls = epsilons([(*base[:2], m, base[3]) for m in (1_000, 10_000, 10**6, 10**12)])
    assert falls == sorted(falls, reverse=True)
    falls = epsilons([(*base[:3], d) for d in (1e-12, 1e-9, 1e-6, 1e-3)])
    assert falls == sorted(falls, reverse=True)
    deltas = [shuffled(1.0, d, 10_000, 1e-6).delta for d in (0.0, 1e-18, 1e-15, 1e-12)]
    assert deltas == sorted(deltas)
    assert deltas[0] == 1e-6


def test_its_range_is_that_of_the_theorem():
    epsilon, extra = 1.0, 1e-6
    needed = math.ceil(16 * math.exp(epsilon) * math.log(2 / extra))
    shuffled(epsilon, 0.0, needed, extra)
    with pytest.raises(InvalidInput, match=f"{needed}; got {needed - 1}"):
        shuffled(epsilon, 0.0, needed - 1, extra)


def test_enough_blocks_are_better_than_none():
    for epsilon, blocks in itertools.product((0.1, 1.0, 3.0), (10**5, 10**7)):
        assert shuffled(epsilon, 0.0, blocks, 1e-6).epsilon < epsilon


def test_small_privacy_losses_keep_their_digits():
    """ε₁/ε₀ → 4(√(ln(4/δ₁)/m) + 1/m) as ε₀ → 0."""
    limit = 4 * (math.sqrt(math.log(4e6) / 1000) + 1 / 1000)
    for epsilon in (1e-10, 1e-100, 1e-300):
        assert shuffled(epsilon, 0.0, 1000, 1e-6).epsilon / epsilon == pytest.approx(limit)


@pytest.mark.parametrize(
    "point",
    [
        (0.0, 0.0, 1000, 1e-3),
        (-1.0, 0.0, 1000, 1e-3),
        (math.nan, 0.0, 1000, 1e-3),
        (700.0, 0.0, 2**53 - 1, 0.5),
        (1.0, 1.0, 1000, 1e-3),
        (1.0, -1e-9, 1000, 1e-3),
        (1.0, 0.0, 0, 1e-3),
        (1.0, 0.0, 1000.5, 1e-3),
        (1.0, 0.0, 10, 1e-3),
        (1.0, 0.0, 1000, 0.0),
        (1.0, 0.0, 1000, 1.0),
        (1.0, 1e-3, 1000, 1e-3),
        ("1", 0.0, 1000, 1e-3),
    ],
)
def test_what_the_theorem_does_not_cover_is_refused(point):
    with pytest.raises(InvalidInput):
        shuffled(*point)


def test_randomised_response_of_shuffled_blocks_keeps_the_promise():
    """The blocks hold one bit each; the hockey-stick divergence of the counts is computed."""
    epsilon, m, extra = 0.5, 400, 1e-3
    promise = shuffled(epsilon, 0.0, m, extra)
    flip = 1 / (1 + math.exp(epsilon))

    def counts(first):
        # All other bits are 0: the number of ones in the outputs, given the first bit.
        others = [math.comb(m - 1, k) * flip**k * (1 - flip) ** (m - 1 - k) for k in range(m)]
        one = 1 - flip if first else flip
        return [
            (others[k - 1] * one if k else 0) + (others[k] * (1 - one) if k < m else 0)
            for k in range(m + 1)
        ]

    for p, q in itertools.permutations([counts(0), counts(1)]):
        excess = sum(max(0.0, a - math.exp(promise.epsilon) * b) for a, b in zip(p, q, strict=True))
        assert excess <= promise.delta
