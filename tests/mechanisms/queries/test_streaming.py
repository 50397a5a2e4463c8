"""Running sums in integers: the sensitivity in rational arithmetic, and what is released."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from muhat.errors import InvalidInput
from muhat.mechanisms.queries import streaming
from muhat.mechanisms.queries.streaming import PrefixQuery, RunningNoise, shares_of, unit_exponent
from muhat.workloads.toeplitz import SquareRootDecoder


def replayed(seed: int):
    generator = np.random.default_rng(seed)
    return lambda count: generator.integers(0, 1 << 64, count, np.uint64, endpoint=False)


NOISES = [
    RunningNoise(300, (-36,), (1 << 36,), (Fraction(1),), Fraction(1), 1),
    RunningNoise(300, (-36,), (12345678901,), (Fraction(1),), Fraction(1, 7), 3),
    RunningNoise(41, (-30, -29), (1 << 31, 999), shares_of([2.0, 1e-5], 2.0), Fraction(9), 2),
    RunningNoise(1, (0,), (1,), (Fraction(1),), Fraction(1, 10**6), 1),
]


@pytest.mark.parametrize("noise", NOISES)
def test_no_term_moves_the_gaussian_mechanism_by_more_than_mu(noise):
    """Exactly: Σ_j (c·Q_j·‖column of F‖/D_j)² ≤ μ² at every time, and hardly less at the start."""
    f, square = Fraction(1), Fraction(0)
    weights = [noise.weights(j).tolist() for j in range(noise.dim)]
    for k in range(noise.size):
        f = f if k == 0 else f * Fraction(2 * k - 1, 2 * k)
        square += f * f
        moved = sum(
            (Fraction(noise.contributions * reach, column[noise.size - 1 - k])) ** 2
            for reach, column in zip(noise.reaches, weights, strict=True)
        )
        assert moved * square <= noise.strength_squared
        if all(column[0] > 1 << 20 for column in weights):
            assert moved * square >= noise.strength_squared * (1 - Fraction(1, 10**5))


def test_a_weight_one_too_small_would_be_caught():
    noise = NOISES[0]
    f, square = Fraction(1), Fraction(1)
    for k in range(1, noise.size):
        f *= Fraction(2 * k - 1, 2 * k)
        square += f * f
    weight = int(noise.weights(0)[0] * (1 - 1e-9))
    assert Fraction(noise.reaches[0], weight) ** 2 * square > noise.strength_squared


@pytest.mark.parametrize("p", [2.0, 4.0, math.inf])
def test_shares_are_those_of_the_smallest_ellipsoid_around_a_box(p):
    reaches = [1.0, 4.0, 9.0]
    shares = shares_of(reaches, p)
    assert sum(shares) <= 1
    assert float(sum(shares)) == pytest.approx(1)
    power = 2.0 if math.isinf(p) else 2 * p / (p + 2)
    matrix = [reach**2 / float(share) for reach, share in zip(reaches, shares, strict=True)]
    value = max(matrix) ** 0.5 if math.isinf(p) else sum(m ** (p / 2) for m in matrix) ** (1 / p)
    assert value == pytest.approx(sum(reach**power for reach in reaches) ** (1 / power))


def test_shares_of_more_than_the_whole_are_refused():
    with pytest.raises(AssertionError, match="share"):
        RunningNoise(3, (0, 0), (1, 1), (Fraction(1), Fraction(1, 9)), Fraction(1), 1)


def test_standard_deviations_are_those_of_the_noise():
    """Each against the row of A·D·F⁻¹ with the integers D themselves."""
    noise = NOISES[1]
    rows = SquareRootDecoder(noise.size).row_norms() * noise.factor(0) * 2.0**-36
    assert np.allclose(noise.standard_deviations[:, 0], rows, rtol=1e-9)


@pytest.mark.parametrize("mu_squared", [Fraction(1, 10**12), Fraction(1, 3), Fraction(10**6)])
def test_the_unit_is_fine_beside_the_noise(mu_squared):
    exponent = unit_exponent(Fraction(1), Fraction(1), mu_squared, 1)
    noise = 1 / math.sqrt(mu_squared)
    assert math.ldexp(1.0, exponent) <= noise * 2.0**-29


def test_a_promise_that_is_no_promise_is_refused():
    with pytest.raises(InvalidInput, match="too weak"):
        unit_exponent(Fraction(1), Fraction(1), Fraction(10**30), 1)
    with pytest.raises(InvalidInput, match="too strong"):
        PrefixQuery(10, Fraction(1, 10**24))


def test_released_answers_are_exact_sums_and_the_noise():
    query = PrefixQuery(50, Fraction(1, 5))
    counts = np.arange(50)
    exponent = query.noise.exponents[0]
    noise = query.noise.draw(replayed(4))[:, 0]
    expected = [
        float(Fraction(int(total)) + int(shift) * Fraction(2) ** exponent)
        for total, shift in zip(np.cumsum(counts), noise, strict=True)
    ]
    assert query.answers(counts, replayed(4)).tolist() == expected
    huge = counts.astype(object) * 10**30
    assert query.answers(huge, replayed(4))[-1] == pytest.approx(float(np.cumsum(huge)[-1]))


def test_neighbours_reach_the_same_answers():
    """Whatever comes out for x comes out for its neighbour with other noise: all are multiples."""
    query = PrefixQuery(20, Fraction(1))
    step = 2.0 ** query.noise.exponents[0]
    for counts in (np.zeros(20, int), np.eye(1, 20, 3, dtype=int)[0]):
        answers = query.answers(counts)
        assert (np.rint(answers / step) * step == answers).all()


@pytest.mark.parametrize(
    "counts", [np.ones(3), np.ones(2, int), [[1, 2, 3]], ["a", "b", "c"], [1.5, 2, 3]]
)
def test_counts_must_be_whole_numbers_one_a_cell(counts):
    with pytest.raises(InvalidInput, match="3 whole numbers"):
        PrefixQuery(3, Fraction(1)).answers(counts)


@pytest.mark.parametrize("planted", [1.0, 1.5])
def test_errors_of_releases_are_as_predicted(planted):
    """Sum of squared standardised errors of one answer a release: χ², false alarm 10^−6."""
    query = PrefixQuery(12, Fraction(2), contributions=2)
    counts = np.arange(12)
    scores = [
        planted * (query.answers(counts) - np.cumsum(counts))[t % 12] / query.scales[t % 12]
        for t in range(1200)
    ]
    total = float(np.sum(np.square(scores)))
    # A χ² of 1200 degrees: mean 1200, deviation 49; 5.2 deviations on either side, 5e-7. Planted,
    # it is 2700 with a deviation of 110.
    assert (945 < total < 1455) == (planted == 1.0)


def test_plans_are_described_by_integers():
    noise = NOISES[2]
    again = RunningNoise.from_dict(noise.to_dict())
    assert again.to_dict() == noise.to_dict()
    assert PrefixQuery(5, Fraction(1)).to_dict()["size"] == 5
    assert streaming.NOISE_BITS < streaming.TERM_BITS
