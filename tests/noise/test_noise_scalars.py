"""The law of the rounded values: rounding, distribution, independence of the low bits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import noise_reference as reference
import numpy as np
import pytest
from noise_reference import Replay
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import trapezoid

from muhat.errors import InvalidInput
from muhat.noise import FRACTION_BITS, rounded_laplace, rounded_normal, strips
from muhat.noise.density import LAPLACE, NORMAL
from muhat.noise.scalars import rounded

SAMPLERS = {"normal": rounded_normal, "laplace": rounded_laplace}
DENSITIES = {"normal": NORMAL, "laplace": LAPLACE}
SCIPY = {"normal": stats.norm, "laplace": stats.laplace}
FALSE_ALARM = 1e-6  # of each statistical test below
ONES = 2**64 - 1

both_laws = pytest.mark.parametrize("law", SAMPLERS)


def unit(values: NDArray[np.int64]) -> NDArray[np.float64]:
    return values * 2.0**-FRACTION_BITS


def cells_p_value(law: str, values: NDArray[np.float64]) -> float:
    """χ² against the exact probabilities of 98 cells, tails included."""
    edges = np.linspace(-4.8, 4.8, 97) if law == "normal" else np.linspace(-11, 11, 97)
    edges = np.concatenate([[-np.inf], edges, [np.inf]])
    below = SCIPY[law].cdf(edges)
    # Above the median from the other side, so that small probabilities keep their digits.
    chance = np.where(edges[:-1] < 0, np.diff(below), -np.diff(SCIPY[law].sf(edges)))
    counts = np.histogram(values, edges)[0]
    return float(stats.chisquare(counts, chance / chance.sum() * values.size).pvalue)


def kolmogorov_p_value(law: str, values: NDArray[np.float64]) -> float:
    return float(stats.kstest(values, SCIPY[law].cdf, method="asymp").pvalue)


def repeated(sampler: Callable[[int], NDArray[np.int64]], size: int) -> NDArray[np.int64]:
    return np.concatenate([sampler(size // 4) for _ in range(4)])


@both_laws
def test_cells_have_their_exact_probabilities(law: str) -> None:
    values = unit(SAMPLERS[law](1_000_000))
    assert cells_p_value(law, values) > FALSE_ALARM
    assert cells_p_value(law, values * 1.02) < FALSE_ALARM
    assert cells_p_value(law, values / 1.02) < FALSE_ALARM


@both_laws
@pytest.mark.slow
def test_cells_have_their_exact_probabilities_in_a_long_run(law: str) -> None:
    values = unit(repeated(SAMPLERS[law], 16_000_000))
    assert cells_p_value(law, values) > FALSE_ALARM
    assert cells_p_value(law, values * 1.005) < FALSE_ALARM


@both_laws
def test_the_distribution_function_is_the_laws(law: str) -> None:
    values = unit(SAMPLERS[law](4_000_000))
    assert kolmogorov_p_value(law, values) > FALSE_ALARM
    assert kolmogorov_p_value(law, values * 1.02) < FALSE_ALARM


@both_laws
@pytest.mark.parametrize("low_bit", [0, 8, 16, 24, 32])
def test_low_bits_are_uniform(law: str, low_bit: int) -> None:
    values = SAMPLERS[law](200_000)
    digits = (values >> low_bit) & 255
    assert stats.chisquare(np.bincount(digits, minlength=256)).pvalue > FALSE_ALARM
    planted = digits & np.where(np.arange(digits.size) % 20 == 0, 254, 255)
    assert stats.chisquare(np.bincount(planted, minlength=256)).pvalue < FALSE_ALARM


@both_laws
def test_within_a_strip_the_density_falls_as_it_should(law: str) -> None:
    """The mean place within strips of 1/64; always accepting would make it exactly one half."""
    size, rounds = 4_000_000, 4
    total = 0.0
    for _ in range(rounds):
        total += float((np.abs(unit(SAMPLERS[law](size))) * 64 % 1).sum())
    place = np.linspace(0, 1, 65)
    k = np.arange(64 * 40)[:, None]
    density = SCIPY[law].pdf((k + place) / 64).sum(axis=0)
    expected = trapezoid(place * density, place) / trapezoid(density, place)
    deviation = np.sqrt(1 / 12 / (size * rounds))
    assert abs(total / (size * rounds) - expected) < 5.5 * deviation
    assert abs(0.5 - expected) > 11 * deviation


@both_laws
def test_the_sign_is_fair_and_neighbours_are_uncorrelated(law: str) -> None:
    values = unit(SAMPLERS[law](1_000_000))
    root = np.sqrt(values.size)
    assert abs(np.mean(np.sign(values))) * root < 5.5
    variance = SCIPY[law].var()
    for lag in (1, 2, strips.BLOCK):
        assert abs(np.mean(values[lag:] * values[:-lag])) / variance * root < 5.6
    planted = values[1:] + 0.01 * values[:-1]
    assert abs(np.mean(planted * values[:-1])) / variance * root > 4.5


@both_laws
def test_a_value_is_the_nearest_integer_of_its_real_sample(law: str) -> None:
    for negative in (False, True):
        for low_bits in range(8):
            x = 2**40 + low_bits
            words = reference.words_of(
                reference.threshold(law, 70, 78) + 2**60, 78, x, negative=negative
            )
            magnitude = (70 + Fraction(2 * x + 1, 2**50)) / 64 * 2**54
            nearest = int(magnitude + Fraction(1, 2))
            expected = -nearest if negative else nearest
            assert rounded(DENSITIES[law], 1, Replay(words)).tolist() == [expected]


def test_a_value_too_large_for_64_bits_becomes_a_python_integer() -> None:
    # P(|Laplace| > 512) is 2^-739: twelve words of ones.
    first, second = reference.words_of(2**78 - 1, 78, 1)
    plain = reference.words_of(0, 78, 5)[0]
    deep = [second, *[ONES, 0] * 11, 0, 0]
    values = rounded(LAPLACE, 3, Replay([plain, first, plain, *deep]))
    assert values.dtype == object
    assert values[0] == values[2] == 3
    assert values[1] > 2**63
    floor = reference.trial("laplace", [first, *deep])
    assert isinstance(floor, int)
    assert values[1] == (floor + 1) // 2


def test_a_value_settled_in_the_tail_is_an_ordinary_one_if_it_fits() -> None:
    first, second = reference.words_of(2**78 - 1, 78, 1)
    words = [first, second, ONES, 0, 0, 0]
    values = rounded(LAPLACE, 1, Replay(words))
    floor = reference.trial("laplace", words)
    assert isinstance(floor, int)
    assert values.dtype == np.int64
    assert values.tolist() == [(floor + 1) // 2]


@pytest.mark.parametrize("sampler", SAMPLERS.values())
def test_sizes_are_checked(sampler: Callable[[int], NDArray[np.int64]]) -> None:
    assert sampler(0).shape == (0,)
    assert sampler(0).dtype == np.int64
    assert sampler(5).dtype == np.int64
    for wrong in (-1, 1.5, "3", True, None):
        with pytest.raises(InvalidInput, match="size"):
            sampler(wrong)  # type: ignore[arg-type]
