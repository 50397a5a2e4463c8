"""Student's t with 3 degrees of freedom: its law, its bits, and its quantiles."""

from __future__ import annotations

import math
import os
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from noise_reference import Replay
from scipy import stats

from muhat.errors import InvalidInput
from muhat.noise.enclosures import falling_exponential
from muhat.noise.student import RealStudent, quantile, tail

FALSE_ALARM = 4e-7  # of each of at most two comparisons of a test
SIZE = 300_000
ROOT = np.sqrt(3)


class Buffered:
    """The operating system's words, fetched many at a time: what a long test can afford."""

    def __init__(self):
        self.words, self.at = np.empty(0, np.uint64), 0

    def __call__(self, count):
        if self.at + count > len(self.words):
            self.words, self.at = np.frombuffer(os.urandom(1 << 23), np.uint64), 0
        self.at += count
        return self.words[self.at - count : self.at]


@pytest.fixture(scope="module")
def samples():
    source = Buffered()
    floors = np.array([RealStudent.draw(source)._point.floors for _ in range(SIZE)])
    x, y = floors[:, 0] * 2.0**-63, floors[:, 1] * 2.0**-63
    return y / (1 + x)


def words_of(x: Fraction, y: Fraction, words: int) -> list[int]:
    """The words that spell x and y, in turn: two's complement, the highest bits first."""
    numbers = [math.floor(value * 2 ** (64 * words - 1)) % 2 ** (64 * words) for value in (x, y)]
    spelt = [
        [number >> 64 * (words - 1 - i) & (2**64 - 1) for number in numbers] for i in range(words)
    ]
    return [word for pair in spelt for word in pair]


def scale_score(w):
    """The derivative of the log-density in ln(scale): mean 0 and variance 1, and at most 3."""
    return 4 * w**2 / (1 + w**2) - 1


def cells(w):
    """χ² against 64 equally likely cells."""
    counts = np.bincount((stats.t(3).cdf(ROOT * w) * 64).astype(int), minlength=64)
    return stats.chisquare(counts).pvalue


def test_samples_follow_the_law(samples):
    assert cells(samples) > FALSE_ALARM
    assert stats.kstest(samples * ROOT, stats.t(3).cdf, method="asymp").pvalue > FALSE_ALARM
    assert abs(scale_score(samples).mean()) * np.sqrt(SIZE) < 5.5


def test_four_degrees_of_freedom_are_caught(samples):
    """The laws are 0.0117 apart, and 0.0051 is the threshold: far more than chance can bridge."""
    planted = stats.t(4).ppf(stats.t(3).cdf(samples * ROOT))
    assert stats.kstest(planted, stats.t(3).cdf, method="asymp").pvalue < FALSE_ALARM


@pytest.mark.parametrize("factor", [1.02, 1 / 1.02])
def test_a_scale_wrong_by_a_fiftieth_is_caught(samples, factor):
    """The score is expected 10.9 standard errors from 0, over five beyond the threshold."""
    assert abs(scale_score(samples * factor).mean()) * np.sqrt(SIZE) > 5.5


def test_sign_and_neighbours_are_independent(samples):
    signs = np.sign(samples)
    assert abs(signs.mean()) * np.sqrt(SIZE) < 5.5
    assert abs(np.mean(signs[1:] * signs[:-1])) * np.sqrt(SIZE) < 5.5
    score = scale_score(samples)
    assert abs(np.mean(score[1:] * score[:-1])) * np.sqrt(SIZE) < 5.5
    assert abs(np.mean(score * signs)) * np.sqrt(SIZE) < 5.5


def test_bounds_enclose_the_slope_and_refining_only_narrows_them():
    rng = np.random.default_rng(5)
    for _ in range(200):
        x, y = (Fraction(int(v), 2**62) for v in rng.integers(-(2**61), 2**61, 2))
        x, y = x + Fraction(1, 3**200), y - Fraction(1, 3**190)
        student = RealStudent.draw(Replay(words_of(x, y, 4)))
        widths = []
        for _ in range(3):
            low, high = student.bounds()
            assert low <= y / (1 + x) <= high
            widths.append(high - low)
            student.refine()
        assert widths[0] > 2**60 * widths[1] > 2**120 * widths[2]


def test_points_on_the_edge_are_settled_by_more_bits():
    """(3/5, 4/5) moved in or out by 2^-100: the first word of each coordinate decides nothing."""
    inside = words_of(Fraction(3, 5) - Fraction(1, 2**100), Fraction(4, 5), 3)
    student = RealStudent.draw(Replay(inside))
    assert student.bits == 63 + 64
    low, high = student.bounds()
    assert low <= Fraction(1, 2) + Fraction(1, 2**99) <= high or abs(low - Fraction(1, 2)) < 2**-90
    outside = words_of(Fraction(3, 5) + Fraction(1, 2**100), Fraction(4, 5), 2)
    centre = words_of(Fraction(0), Fraction(1, 4), 1)
    student = RealStudent.draw(Replay(outside + centre))
    assert student.bits == 63
    assert student.bounds()[0] <= Fraction(1, 4) <= student.bounds()[1]


def test_a_point_that_may_be_the_far_left_end_is_refined_until_it_is_not():
    words = words_of(Fraction(-1), Fraction(0), 1) + words_of(Fraction(-1, 2), Fraction(0), 1)
    source = Replay(words_of(Fraction(-1) + Fraction(1, 2**80), Fraction(1, 2**90), 3) + words)
    student = RealStudent.draw(source)
    low, high = student.bounds()
    assert low <= Fraction(1, 2**10) <= high
    assert student.bits > 63


@pytest.mark.parametrize("reach", [0.0, 1e-3, 0.7, 3.0, 150.0, 201.0, 1e5, 1e9])
def test_the_tail_is_students(reach):
    with mpmath.workdps(60):
        w = mpmath.mpf(reach)
        exact = 1 - 2 / mpmath.pi * (mpmath.atan(w) + w / (1 + w * w))
        assert abs(tail(reach) / exact - 1) < 1e-11


def test_quantiles_are_rounded_up():
    for confidence in (0.01, 0.5, 0.95, 0.999, 1 - 1e-9):
        exact = stats.t(3).isf((1 - confidence) / 2) / ROOT
        assert exact * (1 - 1e-8) < quantile(confidence) < exact * (1 + 1e-7)
        assert tail(quantile(confidence)) <= 1 - confidence
    with pytest.raises(InvalidInput, match="confidence"):
        quantile(1.0)


def test_exponentials_lie_in_their_enclosures():
    with mpmath.workdps(120):
        for amount in (
            Fraction(0),
            Fraction(1, 10**9),
            Fraction(1, 3),
            Fraction(17),
            Fraction(300),
        ):
            for precision in (64, 200):
                low, high = falling_exponential(amount, precision)
                scaled = mpmath.exp(-mpmath.mpf(amount.numerator) / amount.denominator)
                assert mpmath.mpf(low.numerator) / low.denominator <= scaled
                assert scaled <= mpmath.mpf(high.numerator) / high.denominator
                assert high - low <= Fraction(8, 2**precision)
