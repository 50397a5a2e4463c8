"""The unbiased mean with a secret number of records: its promise, its rounding, its law."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from muhat.data import exact_sums, open_source
from muhat.domains.lattice import BoxLattice
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.smooth import SmoothMean, SmoothRecipe

EPSILONS = [Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(12)]


def deviation(mean, n, scale=1.0):
    """s(n) once more, in floats, with the constants of the mechanism."""
    lasting = float(mean.scale) / (max(n, mean.turn) - float(mean.shift))
    return scale * float(mean.width) * (lasting + float(mean.start) * math.exp(-mean.rate * n))


def loss(s, other, moved):
    """What two neighbours' densities differ by at most, by the formula of the proof."""
    return abs(math.log(s / other)) + 2 * math.acosh(
        1 + (moved**2 + (s - other) ** 2) / (2 * s * other)
    )


def most_moved(n):
    return 0.5 if n == 0 else 1 / (n + 1)


def worst_loss(mean, numbers, scale=1.0):
    return max(
        loss(deviation(mean, n, scale), deviation(mean, n + 1, scale), most_moved(n))
        for n in numbers
    )


def log_density(y, f, s):
    return 3 * math.log(s) - 2 * np.log(s * s + (y - f) ** 2)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_densities_of_neighbours_differ_by_at_most_epsilon(epsilon):
    """On a grid of outputs, for n to 50 and every dataset of records at the two ends."""
    mean = SmoothMean.of((0, 1), epsilon)
    grid = np.concatenate(
        [-np.geomspace(1e-4, 1e4, 250)[::-1], [0.0], np.geomspace(1e-4, 1e4, 250)]
    )
    found = 0.0
    for n in range(51):
        s, other = deviation(mean, n), deviation(mean, n + 1)
        for ones in range(n + 1):
            f = ones / n if n else 0.5
            for record in (0, 1):
                g = (ones + record) / (n + 1)
                outputs = f + s * grid
                ratio = log_density(outputs, f, s) - log_density(outputs, g, other)
                found = max(found, float(np.abs(ratio).max()))
    assert found <= epsilon * (1 + 1e-9)
    assert found > 0.85 * epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_formula_of_the_loss_is_what_the_densities_show(epsilon):
    mean = SmoothMean.of((0, 1), epsilon)
    for n in (0, 1, 2, 7, 40, 1000):
        s, other, moved = deviation(mean, n), deviation(mean, n + 1), most_moved(n)
        y = np.concatenate([np.linspace(-40, 40, 400_001) * s, [-1e9, 1e9]])
        ratio = np.abs(log_density(y, 0.0, s) - log_density(y, moved, other)).max()
        assert ratio <= loss(s, other, moved) * (1 + 1e-9)
        assert ratio > loss(s, other, moved) * (1 - 1e-4)


@pytest.mark.parametrize("epsilon", [*EPSILONS, Fraction(1, 1000), Fraction(40)])
def test_the_promise_is_kept_for_every_number_and_used_up(epsilon):
    mean = SmoothMean.of((0, 1), epsilon)
    numbers = [*range(4000), 10**4, 10**5, 10**6, 10**9]
    assert worst_loss(mean, numbers) <= epsilon * (1 + 1e-7)
    assert worst_loss(mean, numbers) > 0.999 * epsilon
    assert worst_loss(mean, numbers, scale=0.85) > epsilon + min(0.04 * epsilon, 0.5)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda mean: replace(mean, scale=mean.scale * Fraction(999_999, 10**6)),
        lambda mean: replace(mean, shift=mean.shift / 2),
        lambda mean: replace(mean, turn=mean.turn - 2),
        lambda mean: replace(mean, start=mean.start * Fraction(999, 1000)),
        lambda mean: replace(mean, rate=mean.epsilon / 3),
        lambda mean: replace(mean, rate=-mean.rate),
        lambda mean: replace(mean, epsilon=mean.epsilon * Fraction(99, 100)),
    ],
)
def test_noise_that_is_too_small_does_not_exist(wrong):
    with pytest.raises(AssertionError):
        wrong(SmoothMean.of((0, 1), Fraction(1)))


def test_noise_is_a_third_below_the_papers_and_far_less_for_few_records():
    mean = SmoothMean.of((0, 1), Fraction(1))

    def papers(n):
        """τ·S·√3 with β = ε/12 and τ = √3/ε, Theorem E.6."""
        return 3 * max(math.exp(-(n - 1) / 12), 1 / n)

    assert mean.standard_error_at(10**5) / papers(10**5) < 0.661
    assert mean.standard_error_at(100) / papers(100) < 0.67
    assert mean.standard_error_at(20) / papers(20) < 0.2
    assert all(mean.standard_error_at(n) < papers(n) for n in (3, 5, 10, 30))


def exact_value(mean, f, n, words):
    """f + s(n)·w by mpmath, for the point that all the words spell."""
    bits = 64 * len(words) // 2
    spelt = [
        sum(int(w) << (bits - 64 * (i + 1)) for i, w in enumerate(words[k::2])) for k in (0, 1)
    ]
    x, y = (mpmath.mpf(v - (1 << bits) * (v >> (bits - 1))) / 2 ** (bits - 1) for v in spelt)

    def real(value):
        return mpmath.mpf(value.numerator) / value.denominator

    lasting = real(mean.scale / (max(n, mean.turn) - mean.shift))
    s = real(mean.width) * (lasting + real(mean.start) * mpmath.exp(-real(mean.rate) * n))
    return real(f) + s * y / (1 + x)


class Recorded:
    """A fixed stream of words, and how many of them were used."""

    def __init__(self, seed, inside=True):
        rng = np.random.default_rng(seed)
        self.words = rng.integers(0, 2**64, 40, dtype=np.uint64)
        if inside:
            self.words[:2] = rng.integers(0, 2**62, 2, dtype=np.uint64) - np.uint64(2**61)
        self.used = 0

    def __call__(self, count):
        self.used += count
        return self.words[self.used - count : self.used]


@pytest.mark.parametrize("n", [0, 1, 2, 5, 11, 12, 300, 10**9])
def test_the_value_is_the_real_one_rounded_to_the_grid(n):
    with mpmath.workdps(400):
        for seed in range(25):
            for epsilon in (Fraction(1, 10), Fraction(2)):
                mean = SmoothMean.of((Fraction(-1, 3), 2), epsilon)
                f = Fraction(seed, 30) if n else Fraction(5, 6)
                source = Recorded(seed)
                value = mean.run(f * n, n, source)
                exact = exact_value(mean, f, n, source.words.tolist())
                assert value == int(mpmath.nint(exact / float(mean.grid))) * mean.grid
                assert source.used == 4


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("n", [3, 50])
def test_a_value_next_to_a_tie_draws_bits_until_it_is_decided(n, side):
    """f is chosen so that the real value lies 2^-300 beside the middle between two grid points."""
    mean = SmoothMean.of((0, 1), Fraction(1))
    with mpmath.workdps(500):
        source = Recorded(7)
        shift = exact_value(mean, Fraction(0), n, source.words.tolist())
        step = float(mean.grid)
        target = (mpmath.floor(shift / step) + mpmath.mpf(1) / 2) * step
        gap = target - shift + side * step * mpmath.mpf(2) ** -300
        f = Fraction(int(mpmath.nint(gap * mpmath.mpf(2) ** 1200)), 2**1200)
        value = mean.run(f * n, n, source)
        exact = exact_value(mean, f, n, source.words.tolist())
        assert value == int(mpmath.nint(exact / step)) * mean.grid
        assert source.used >= 10


def test_mirrored_bits_give_the_mirrored_value():
    """So the noise is symmetric about f, exactly up to the grid: the release is unbiased."""
    mean = SmoothMean.of((0, 1), Fraction(1))
    for seed in range(50):
        source, mirror = Recorded(seed), Recorded(seed)
        mirror.words[1::2] = ~mirror.words[1::2]
        f = Fraction(seed, 49)
        pair = mean.run(f * 60, 60, source) + mean.run(f * 60, 60, mirror)
        assert abs(pair - 2 * f) <= mean.grid


def test_runs_are_centred_with_the_stated_standard_error():
    """Scores of Student's law: bounded, with mean 0 and variance 2 (place) and 1 (scale).

    The planted errors are expected 13 and 16 standard errors away.
    """
    mean, n, runs = SmoothMean.of((-1, 3), Fraction(1)), 40, 9_000
    records = [Fraction(i % 7, 2) for i in range(n)]
    f = float(sum(records) / n)
    values = np.array([float(mean.run(sum(records), n)) for _ in range(runs)])

    def place(shift):
        z = (values - f - shift) / deviation(mean, n)
        return abs(np.mean(4 * z / (1 + z**2))) / math.sqrt(2 / runs)

    def scale(factor):
        z = (values - f) / (factor * deviation(mean, n))
        return abs(np.mean(4 * z**2 / (1 + z**2) - 1)) * math.sqrt(runs)

    assert place(0.0) < 5.5
    assert scale(1.0) < 5.5
    assert place(0.1 * deviation(mean, n)) > 6
    assert scale(1.2) > 6
    assert scale(1 / 1.2) > 6


def test_errors_are_stated_for_hypothetical_numbers_only():
    mean = SmoothMean.of((0, 10), Fraction(1), n_min=500)
    errors = [mean.standard_error_at(n) for n in range(1000)]
    assert errors == sorted(errors, reverse=True)
    assert errors[500] == pytest.approx(deviation(mean, 500), rel=1e-9)


def test_what_can_be_shown_is_the_same_after_any_run():
    mean = SmoothMean.of((0, 1), Fraction(1), n_min=100)
    before = repr(mean), json.dumps(mean.to_dict())
    for n in (0, 1, 1000, 1001):
        mean.run(Fraction(n, 2), n)
        assert (repr(mean), json.dumps(mean.to_dict())) == before
    fields = {name: Fraction(mean.to_dict()[name]) for name in ("scale", "shift", "rate", "start")}
    assert replace(mean, **fields) == mean


def test_arguments_are_checked():
    for interval, epsilon in [((1, 1), 1), ((2, 1), 1), ((0, 1), 0), ((0, 1), -1)]:
        with pytest.raises(InvalidInput):
            SmoothMean.of(interval, Fraction(epsilon))
    with pytest.raises(InvalidInput, match="n_min"):
        SmoothMean.of((0, 1), Fraction(1), n_min=0)


def test_several_columns_share_epsilon_for_the_least_error():
    lattice = BoxLattice.around([0.0, -5.0, 7.0], [1.0, 3.0, 7.0])
    recipe = SmoothRecipe.of(lattice, Fraction(1), contributions=2)
    assert recipe.epsilon == 1
    assert recipe.means[2] is None
    first, second, _ = recipe.means
    assert float(second.epsilon / first.epsilon) == pytest.approx(8 ** (2 / 3))
    assert float(first.epsilon + second.epsilon) == pytest.approx(0.5)
    n = 10**6
    best = np.linalg.norm(recipe.standard_error_at(n))
    for share in (0.1, 0.15, 0.25, 0.3):
        pair = [
            SmoothMean.of((0, 1), Fraction(share / 2)).standard_error_at(n),
            SmoothMean.of((-5, 3), Fraction((1 - share) / 2)).standard_error_at(n),
        ]
        assert np.linalg.norm(pair) > best
    assert json.dumps(recipe.to_dict())


def test_integer_sums_become_values_of_the_domain():
    lattice = BoxLattice.around([10.0, 2.0], [30.0, 2.0])
    recipe = SmoothRecipe.of(lattice, Fraction(50))
    step = lattice.grid[0]
    n, at = 1000, Fraction(12)
    total = int(n * (at - lattice.center_units[0] * step) / step)
    value, constant = recipe.run([total, 0], n)
    assert constant == 2
    assert abs(value - at) < Fraction(1, 100)
    empty, _ = recipe.run([0, 0], 0)
    assert abs(empty - 20) < 1


def test_records_are_read_by_the_exact_kernel():
    """Clipped, missing and dropped records included: the sum and the count are all it needs."""
    lattice = BoxLattice.around([0.0], [8.0])
    records = np.array([[-3.0], [5.0], [np.nan], [100.0], [2.5]] * 400)
    recipe = SmoothRecipe.of(lattice, Fraction(20))
    for missing, expected in (("center", (0 + 5 + 4 + 8 + 2.5) / 5), ("drop", 15.5 / 4)):
        sums = exact_sums(open_source(records, None, 1), lattice, missing=missing)
        (value,) = recipe.run(sums.total, sums.rows)
        assert abs(float(value) - expected) < 0.05


def replaced_loss(mean: SmoothMean, n: int) -> float:
    """The loss between two datasets of n records of which one goes from end to end, exactly."""
    move = float(mean.width) / n
    return 2 * math.acosh(1 + move**2 / (2 * float(mean._deviation(n, 256)[0]) ** 2))


@pytest.mark.parametrize("epsilon", [2**-20, 0.01, 0.3, 1.0, 1.55, 1.8, 2.0, 3.0, 3.88])
def test_a_replaced_record_costs_no_more_where_that_is_said(epsilon: float) -> None:
    mean = SmoothMean.of((-1, 3), Fraction(epsilon))
    assert mean.covers_replacement
    numbers = {*range(1, 200), *(int(x) for x in np.geomspace(1, 10 * mean.turn, 400))}
    worst = max(replaced_loss(mean, n) for n in numbers)
    # The last of it is for rationals that are short.
    assert 0.97 * epsilon < worst <= epsilon * (1 + 1e-9)
    # Planted: a third less noise for small numbers, and noise that falls faster than k/n.
    if epsilon < 1.5:
        small = replace(mean, start=mean.start)
        object.__setattr__(small, "start", mean.start / 3)
        assert not small.covers_replacement
        assert max(replaced_loss(small, n) for n in numbers) > epsilon


def test_where_it_is_not_proved_it_is_not_said() -> None:
    for epsilon in (3.9, 5, 64, 1000):
        mean = SmoothMean.of((0, 1), Fraction(epsilon))
        assert not mean.covers_replacement
        assert replaced_loss(mean, 10**4) > min(epsilon, 64) or epsilon > 64
