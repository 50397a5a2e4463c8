"""Balanced noise of fine steps: draws, moments and tails beside the density that it stands for."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

import muhat as mh
from muhat.errors import InvalidInput
from muhat.noise.balanced_laplace import LARGEST_RATE, MOST_PARTS, BalancedLaplace
from muhat.noise.discrete import discrete_laplace
from muhat.noise.entropy import system_words
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laws import SHAPES

RATE = Fraction(1, 3 << 36)


def density(parts: int, x: np.ndarray, *, wide: float = 60.0, size: int = 1 << 16) -> np.ndarray:
    """That of z₁ by definition: e^−|x| times the density of the others' sum, by Fourier's law."""
    turns = np.fft.fftfreq(size, d=2 * wide / size) * 2 * math.pi
    others = (1 + turns**2) ** -(parts - 1)
    law = np.fft.fftshift(np.fft.ifft(others).real)
    grid = (np.arange(size) - size // 2) * 2 * wide / size
    found = np.exp(-np.abs(x)) * np.interp(x, grid, law)
    return found / np.trapezoid(found, x)


@pytest.mark.parametrize("parts", [3, 4, 7, 40])
def test_variances_and_tails_are_those_of_the_density(parts: int) -> None:
    law = BalancedLaplace(parts, RATE)
    x = np.linspace(-40, 40, 400_001)
    p, step = density(parts, x), x[1] - x[0]
    one = law.variance(parts) * float(law.unit * RATE) ** 2 * (1 - 1 / parts)
    assert one == pytest.approx(float(p @ x**2) * step, rel=1e-5)
    along = math.sqrt(1 - 1 / parts) * float(law.unit * RATE)
    for reach in (0.3, 1.0, 3.0, 8.0):
        beyond = float(p[np.abs(x) > reach].sum()) * step
        assert law.tail(reach / along, parts) == pytest.approx(beyond, rel=2e-3)
        assert law.joint_tail(reach / along, parts) == pytest.approx(
            min(1, parts * beyond), rel=2e-3
        )


@pytest.mark.parametrize("parts", [2, 3, 9])
def test_draws_add_up_to_nothing_and_have_the_stated_law(parts: int) -> None:
    """4,000 draws: false alarms below 1e-7. Planted: the last part takes what is left."""
    law, number = BalancedLaplace(parts, RATE), 4000
    drawn = np.array([law.drawn(system_words) for _ in range(number)]).astype(np.float64)
    assert (drawn.sum(axis=1) == 0).all()
    one = law.variance(parts) * law.unit**2 * (1 - 1 / parts)
    # E z⁴ ≤ 6(E z²)², of every part; the correlation of squares is below that.
    wide = 5.5 * math.sqrt(5 / number)
    ratios = (drawn**2).mean(axis=0) / one
    assert (np.abs(ratios - 1) < wide).all()
    for chance in (0.5, 0.05):
        reach = law.quantile(1 - chance, parts) * law.unit * math.sqrt(1 - 1 / parts)
        missed = (np.abs(drawn) > reach).mean(axis=0)
        assert (np.abs(missed - chance) < 5.5 * math.sqrt(chance * (1 - chance) / number)).all()
    free = discrete_laplace(RATE, number * (parts - 1)).reshape(number, -1).astype(np.float64)
    assert (free.sum(axis=1) ** 2).mean() / one > 1 + 2 * wide


@pytest.mark.parametrize("parts", [3, 6])
def test_draws_have_the_stated_law(parts: int) -> None:
    """χ² of 4,000 draws of the first part and the last: false alarms below 1e-7."""
    law, number = BalancedLaplace(parts, RATE), 4000
    ends = np.array([law.quantile(chance, parts) for chance in np.arange(1, 16) / 16])
    expected = np.full(16, number / 16)
    ends *= law.unit * math.sqrt(1 - 1 / parts)

    def statistic(one: np.ndarray) -> float:
        seen = np.bincount(np.searchsorted(ends, np.abs(one)), minlength=16)
        return float(np.sum((seen - expected) ** 2 / expected))

    drawn = np.array([law.drawn(system_words) for _ in range(number)]).astype(np.float64)
    limit = chi2.isf(2e-8, 15)
    assert statistic(drawn[:, 0]) < limit
    assert statistic(drawn[:, -1]) < limit
    assert statistic(1.2 * drawn[:, 0]) > limit


@pytest.mark.parametrize("parts", [2, 3, 4])
def test_no_outcome_is_likelier_than_its_moves_allow(parts: int) -> None:
    """P(z) ∝ e^(−rate·‖z‖₁): all outcomes and moves of a small lattice, in whole numbers.

    Planted: noise on a total that moves tells.
    """
    sizes = range(-4, 5)
    lattice = {
        (*z, -sum(z)): sum(map(abs, z)) + abs(sum(z)) for z in product(sizes, repeat=parts - 1)
    }
    for move, length in lattice.items():
        moved = {tuple(a + b for a, b in zip(z, move, strict=True)): w for z, w in lattice.items()}
        apart = [weight - lattice[z] for z, weight in moved.items() if z in lattice]
        assert max(apart, default=0) <= length
        if 0 < length <= 4:
            assert max(apart) == length
    assert all(tuple(x + (not at) for at, x in enumerate(z)) not in lattice for z in lattice)


def test_it_keeps_what_its_rate_times_the_moves_allows() -> None:
    law = BalancedLaplace(5, RATE)
    moved = Fraction(3 << 36)
    assert law.keeps(mh.PureDP(epsilon=1.0), moved)
    assert not law.keeps(mh.PureDP(epsilon=1.0), moved + 1)
    assert not law.keeps(Strength(NoiseKind.NORMAL, Fraction(10**6)), Fraction(1))


def test_it_is_written_and_read() -> None:
    law = BalancedLaplace(7, RATE)
    assert SHAPES[law.name] is BalancedLaplace
    assert BalancedLaplace.from_dict(law.to_dict()) == law


@pytest.mark.parametrize(
    ("parts", "rate"),
    [(1, RATE), (MOST_PARTS + 1, RATE), (3, 2 * LARGEST_RATE), (3, Fraction(1, 1 << 51))],
)
def test_what_it_is_not_for_is_refused(parts: int, rate: Fraction) -> None:
    with pytest.raises(InvalidInput, match="balanced noise is for"):
        BalancedLaplace(parts, rate)
    with pytest.raises(AssertionError, match="all parts together"):
        BalancedLaplace(3, RATE).sample(2)
