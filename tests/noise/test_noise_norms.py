"""Noise with density ∝ exp(−‖z‖): certified rounding, and the laws of radius and direction."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from fractions import Fraction
from math import isqrt

import noise_reference as reference
import numpy as np
import pytest
from noise_reference import OPEN, Replay
from numpy.typing import NDArray
from scipy import stats

from muhat.errors import InvalidInput
from muhat.noise import norms, rounded_euclidean, rounded_maximum
from muhat.noise.density import LAPLACE, NORMAL
from muhat.noise.norms import RealNumbers

FALSE_ALARM = 2e-7  # of each of at most four comparisons of a test
ONES = 2**64 - 1
GUARD = 400

SAMPLERS = {"euclidean": rounded_euclidean, "maximum": rounded_maximum}
both_norms = pytest.mark.parametrize("norm", SAMPLERS)


def vectors(norm: str, dim: int, count: int) -> NDArray[np.float64]:
    return np.array([SAMPLERS[norm](dim) for _ in range(count)]) * 2.0**-54


def length(norm: str, z: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.linalg.norm(z, ord=2 if norm == "euclidean" else np.inf, axis=1)


def moments(norm: str, dim: int) -> tuple[float, float]:
    """The mean of ‖z‖₂²/d, which is E[z_1²], and of its square."""
    if norm == "euclidean":
        return dim + 1, (dim + 1) * (dim + 2) * (dim + 3) / dim
    rising = (dim + 1) * (dim + 2) * (dim + 3) * (dim + 4)
    return (dim + 1) * (dim + 2) / 3, rising * (1 / 5 + (dim - 1) / 9) / dim


# A radial number is a trial in strip k = 20 (accepted by its first word) with x and more bits;
# one of the direction is the same, or plain bits of a number in [−1, 1).


def plain_word(law: str, x: int, *, negative: bool) -> int:
    """A first word that is accepted in strip 20 whatever follows."""
    u = reference.threshold(law, 20, 14) + 2
    return reference.words_of(u, 14, x, negative=negative)[0]


def number(law: str, word: int, more: list[int]) -> Fraction:
    """The middle of what the bits leave open, as a signed real."""
    floor = reference.trial(law, [word, 0])
    assert isinstance(floor, int)
    for extra in more:
        floor = floor << 64 | extra
    bits = 55 + 64 * len(more)
    return Fraction(2 * floor + 1, 2 ** (bits + 1))


def root(square: Fraction) -> Fraction:
    return Fraction(isqrt(square.numerator * 4**GUARD // square.denominator), 2**GUARD)


def nearest(value: Fraction) -> int:
    return (value + Fraction(1, 2)).__floor__()


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_euclidean_noise_is_the_rounded_product_of_its_samples(dim: int) -> None:
    for _ in range(40):
        first = [
            plain_word("normal", secrets.randbits(49), negative=secrets.randbits(1) == 1)
            for _ in range(2 * dim + 1)
        ]
        more = [secrets.randbits(64) for _ in first]
        samples = [number("normal", a, [b]) for a, b in zip(first, more, strict=True)]
        radius = root(sum((g * g for g in samples[: dim + 1]), Fraction(0)))
        expected = [nearest(2**54 * radius * g) for g in samples[dim + 1 :]]
        assert norms.euclidean(dim, Replay(first + more)).tolist() == expected


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_maximum_noise_is_the_rounded_product_of_its_samples(dim: int) -> None:
    for _ in range(40):
        first = [
            plain_word("laplace", secrets.randbits(49), negative=secrets.randbits(1) == 1)
            for _ in range(dim + 1)
        ]
        direction = [secrets.randbits(64) for _ in range(dim)]
        more = [secrets.randbits(64) for _ in range(2 * dim + 1)]
        radius = sum(
            (abs(number("laplace", a, [b])) for a, b in zip(first, more, strict=False)), Fraction(0)
        )
        signed = [word - (word >> 63 << 64) for word in direction]
        expected = [
            nearest(2**54 * radius * Fraction(2 * (word << 64 | extra) + 1, 2**128))
            for word, extra in zip(signed, more[dim + 1 :], strict=True)
        ]
        assert norms.maximum(dim, Replay(first + direction + more)).tolist() == expected


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("radius", [1, 10**6, 3 << 54, (1 << 90) + 1])
def test_points_in_a_ball_are_the_rounded_quotients_of_their_samples(dim: int, radius: int) -> None:
    for _ in range(10):
        first = [
            plain_word("normal", secrets.randbits(49), negative=secrets.randbits(1) == 1)
            for _ in range(dim + 2)
        ]
        more = [secrets.randbits(64) for _ in first]
        samples = [number("normal", a, [b]) for a, b in zip(first, more, strict=True)]
        whole = root(sum((g * g for g in samples), Fraction(0)))
        expected = [nearest(radius * g / whole) for g in samples[:dim]]
        assert norms.in_ball(dim, radius, Replay(first + more)).tolist() == expected


@pytest.mark.parametrize("radius", [1, 10**6, 3 << 54, (1 << 90) + 1])
def test_points_in_a_cube_are_the_rounded_products_of_their_samples(radius: int) -> None:
    for _ in range(20):
        first, more = ([secrets.randbits(64) for _ in range(3)] for _ in range(2))
        signed = [word - (word >> 63 << 64) for word in first]
        expected = [
            nearest(radius * Fraction(2 * (word << 64 | extra) + 1, 2**128))
            for word, extra in zip(signed, more, strict=True)
        ]
        assert norms.in_cube(3, radius, Replay(first + more)).tolist() == expected


def test_points_at_a_tie_of_their_rounding_draw_more_bits() -> None:
    # A sixth is a tie of round(3u), as far as 127 bits tell.
    sixth = (1 << 127) // 6
    tie = [sixth >> 64, sixth & ONES]
    with pytest.raises(AssertionError, match="more words"):
        norms.in_cube(1, 3, Replay(tie))
    assert norms.in_cube(1, 3, Replay([*tie, 0])).tolist() == [0]
    assert norms.in_cube(1, 3, Replay([*tie, ONES])).tolist() == [1]
    words = [plain_word("normal", 7, negative=False)] * 4
    # Four equal numbers: each is half of the length of all, whatever these bits are.
    start = [*words, 5, 5, 5, 5]
    with pytest.raises(AssertionError, match="more words"):
        norms.in_ball(2, 1, Replay(start))
    more, less = [ONES, ONES, 0, 0], [0, 0, ONES, ONES]
    assert norms.in_ball(2, 1, Replay([*start, *more])).tolist() == [1, 1]
    assert norms.in_ball(2, 1, Replay([*start, *less])).tolist() == [0, 0]


@pytest.mark.parametrize("sign", [1, -1])
def test_an_open_rounding_draws_more_bits_of_the_same_samples(sign: int) -> None:
    """U is chosen so that G·U is at a tie of the rounding as far as the first bits tell."""

    def radius(*bits: list[int]) -> Fraction:
        return sum(
            (abs(number("laplace", a, list(b))) for a, *b in zip(*bits, strict=True)), Fraction(0)
        )

    first = [plain_word("laplace", 2**40 + 1, negative=sign < 0) for _ in range(2)]
    more = [secrets.randbits(64), secrets.randbits(64)]
    tie = Fraction(2 * sign * 10**15 + 1, 2)
    u = (tie / 2**54 / radius(first, more) * 2**127).__floor__()
    start = [*first, (u >> 64) % 2**64, *more, u % 2**64]
    with pytest.raises(AssertionError, match="more words"):
        norms.maximum(1, Replay(start))
    outcomes = set()
    for further in ([0, 0], [ONES, ONES], [secrets.randbits(64), secrets.randbits(64)]):
        for last in (0, ONES):
            direction = Fraction(2 * (u << 64 | last) + 1, 2**192)
            expected = nearest(2**54 * radius(first, more, further) * direction)
            replay = Replay([*start, *further, last])
            assert norms.maximum(1, replay).tolist() == [expected]
            assert not replay.words
            outcomes.add(expected)
    assert outcomes == {sign * 10**15, sign * 10**15 + 1}


def test_enclosures_of_the_radius_enclose_it() -> None:
    reals = RealNumbers([3, -1, 0, -8], bits=0)
    assert reals.magnitudes() == [3, 0, 0, 7]
    for _ in range(200):
        least = [secrets.randbits(8) for _ in range(4)]
        lower, upper = norms._norm(least)
        assert lower**2 <= sum(a**2 for a in least)
        assert upper**2 >= sum((a + 1) ** 2 for a in least)
        assert upper - lower <= 4
        assert norms._sum(least) == (sum(least), sum(a + 1 for a in least))


def test_bits_that_decided_a_trial_are_not_drawn_again() -> None:
    x = 0x1_2345_6789_ABCD
    u = reference.boundary("normal", 70, Fraction(2 * x + 1, 2**50), 78)
    first, second = reference.words_of(u, 78, x)
    words = [first, second, 0, 77]
    assert reference.trial("normal", words) not in (OPEN, "reject")
    reals = RealNumbers.from_density(NORMAL, 1, Replay(words))
    floor = reals.floors[0]
    reals.refine(Replay([12345]))
    assert reals.floors == [floor << 64 | 77]
    assert reals.bits == 119
    reals.refine(Replay([12345]))
    assert reals.floors == [(floor << 64 | 77) << 64 | 12345]


def test_coordinates_too_large_for_64_bits_become_python_integers() -> None:
    first, second = reference.words_of(2**78 - 1, 78, 1)
    plain = plain_word("laplace", 1, negative=True)
    deep = [second, *[ONES, 0] * 11, 0, 0]
    large = norms.maximum(1, Replay([plain, first, *deep, ONES >> 1, 0, 0, 0]))
    assert large.dtype == object
    assert large[0] > 2**63
    small = norms.maximum(1, Replay([plain, first, *deep, 1 << 50, 0, 0, 0]))
    assert small.dtype == np.int64


def test_the_largest_dimensions_work() -> None:
    for sampler in SAMPLERS.values():
        assert sampler(2000).shape == (2000,)
    assert rounded_maximum(5000).dtype == object


@both_norms
@pytest.mark.parametrize("dim", [2, 5])
def test_the_radius_has_the_gamma_law(norm: str, dim: int) -> None:
    radius = length(norm, vectors(norm, dim, 8000))
    assert stats.kstest(radius, stats.gamma(dim).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(radius * 1.2, stats.gamma(dim).cdf).pvalue < FALSE_ALARM
    assert stats.kstest(radius, stats.gamma(dim + 1).cdf).pvalue < FALSE_ALARM


@both_norms
@pytest.mark.parametrize("dim", [1, 3, 16])
def test_second_moments_are_the_laws(norm: str, dim: int) -> None:
    squares = (vectors(norm, dim, 6000) ** 2).mean(axis=1)
    expected, square = moments(norm, dim)
    error = np.sqrt((square - expected**2) / squares.size)
    assert abs(squares.mean() - expected) < 5.5 * error
    assert abs(squares.mean() * 1.5 - expected) > 5.5 * error


@both_norms
def test_in_one_dimension_it_is_laplace_noise(norm: str) -> None:
    values = vectors(norm, 1, 12_000)[:, 0]
    assert stats.kstest(values, stats.laplace.cdf).pvalue > FALSE_ALARM
    assert stats.kstest(values * 1.5, stats.laplace.cdf).pvalue < FALSE_ALARM


@both_norms
def test_the_direction_is_symmetric(norm: str) -> None:
    z = vectors(norm, 3, 6000)
    orthant = (z > 0) @ np.array([1, 2, 4])
    assert stats.chisquare(np.bincount(orthant, minlength=8)).pvalue > FALSE_ALARM
    largest = np.argmax(np.abs(z), axis=1)
    assert stats.chisquare(np.bincount(largest, minlength=3)).pvalue > FALSE_ALARM
    planted = np.argmax(np.abs(z * [1.2, 1, 1]), axis=1)
    assert stats.chisquare(np.bincount(planted, minlength=3)).pvalue < FALSE_ALARM


def test_the_euclidean_direction_is_uniform_on_the_sphere() -> None:
    # Archimedes: each coordinate of a uniform point of the sphere in R³ is uniform.
    z = vectors("euclidean", 3, 6000)
    height = z[:, 2] / length("euclidean", z)
    assert stats.kstest(height, stats.uniform(-1, 2).cdf).pvalue > FALSE_ALARM
    planted = z * [1, 1, 1.5]
    height = planted[:, 2] / length("euclidean", planted)
    assert stats.kstest(height, stats.uniform(-1, 2).cdf).pvalue < FALSE_ALARM


def test_low_bits_of_a_coordinate_are_uniform() -> None:
    for sampler in SAMPLERS.values():
        digits = np.concatenate([sampler(16) for _ in range(400)]) & 31
        assert stats.chisquare(np.bincount(digits, minlength=32)).pvalue > FALSE_ALARM
        assert stats.chisquare(np.bincount(digits & 30, minlength=32)).pvalue < FALSE_ALARM


def test_reals_start_with_the_bits_of_their_law() -> None:
    reals = RealNumbers.uniform(2, Replay([0, ONES]))
    assert reals.floors == [0, -1]
    assert reals.bits == 63
    word = plain_word("laplace", 5, negative=True)
    assert RealNumbers.from_density(LAPLACE, 1, Replay([word])).floors == [
        reference.trial("laplace", [word, 0])
    ]


@pytest.mark.parametrize("sampler", SAMPLERS.values())
def test_dimensions_are_checked(sampler: Callable[[int], NDArray[np.int64]]) -> None:
    for wrong in (0, -1, 1.5, "3", True, None):
        with pytest.raises(InvalidInput, match="dim"):
            sampler(wrong)  # type: ignore[arg-type]
