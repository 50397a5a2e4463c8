"""Theorem E.6 as it is printed: its constants, and the promise that they keep."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from muhat.errors import InvalidInput
from muhat.mechanisms.sums.smooth import SmoothMean
from muhat.mechanisms.sums.smooth_printed import PrintedSmoothMean

EPSILONS = [Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(12)]


def printed(n: int, epsilon: Fraction) -> float:
    """√3·τ·S(n) on an interval of length 1, once more: β = ε/12, τ = √3/ε."""
    rate, tau = float(epsilon) / 12, math.sqrt(3) / float(epsilon)
    return math.sqrt(3) * tau * max(math.exp(-rate * (n - 1)), 1 / max(n, 1))


def loss(s: float, other: float, moved: float) -> float:
    """What two neighbours' densities differ by at most (Lemma 1 of the page)."""
    return abs(math.log(s / other)) + 2 * math.acosh(
        1 + (moved**2 + (s - other) ** 2) / (2 * s * other)
    )


def log_density(y: np.ndarray, f: float, s: float) -> np.ndarray:
    return 3 * math.log(s) - 2 * np.log(s * s + (y - f) ** 2)


def replay(words: np.ndarray) -> Callable[[int], np.ndarray]:
    """A source of these words, in their order."""
    left = iter(words)
    return lambda count: np.array([next(left) for _ in range(count)], np.uint64)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_standard_error_is_the_papers_and_never_below_ours(epsilon: Fraction) -> None:
    theirs, ours = (made.of((-1, 1), epsilon) for made in (PrintedSmoothMean, SmoothMean))
    for n in (0, 1, 2, 3, 10, 50, 100, 1000, 10**6):
        assert theirs.standard_error_at(n) == pytest.approx(2 * printed(n, epsilon), rel=1e-9)
    for n in (1, 10, 100, 1000, 10**6):
        assert theirs.standard_error_at(n) > ours.standard_error_at(n)


@pytest.mark.parametrize("epsilon", [*EPSILONS, Fraction(64)])
def test_neighbours_lose_at_most_eleven_twelfths_of_what_is_promised(epsilon: Fraction) -> None:
    """A record added to n others moves the mean by 1/(n + 1), to none by the whole interval."""
    numbers = [*range(200), *range(200, 20_000, 97)]
    errors = {n: printed(n, epsilon) for m in numbers for n in (m, m + 1)}
    added = max(loss(errors[n], errors[n + 1], 1 / (n + 1)) for n in numbers)
    replaced = max(loss(errors[n], errors[n], 1 / n) for n in numbers[1:])
    assert added <= Fraction(11, 12) * epsilon * (1 + 1e-9)
    assert replaced <= 2 * epsilon / 3 * (1 + 1e-9)
    if epsilon <= 1:
        halved = max(loss(errors[n] / 2, errors[n + 1] / 2, 1 / (n + 1)) for n in numbers)
        assert halved > epsilon


def test_densities_of_neighbours_at_the_ends_differ_by_at_most_epsilon() -> None:
    epsilon, y = Fraction(1), np.linspace(-60, 60, 20_001)
    for n in range(30):
        s, other = printed(n, epsilon), printed(n + 1, epsilon)
        for f in (0.0, 0.5, 1.0) if n else (0.0,):
            for g in ((f * n) / (n + 1), (f * n + 1) / (n + 1)):
                assert np.abs(log_density(y, f, s) - log_density(y, g, other)).max() <= epsilon


def test_without_records_the_mean_is_zero_or_the_end_next_to_it() -> None:
    for interval, empty in (((-1, 2), 0), ((3, 5), 3), ((-4, -2), -2)):
        mean = PrintedSmoothMean.of(interval, Fraction(1))
        assert mean.empty == empty
        # Words and their mirror image give values at the same distance from it.
        words = np.random.default_rng(3).integers(0, 2**64, 64, np.uint64)
        mirrored = words.copy()
        mirrored[1::2] = ~mirrored[1::2]
        pair = (mean.run(0, 0, replay(each)) for each in (words, mirrored))
        assert abs(sum(pair) - 2 * empty) <= mean.grid
    assert mean.covers_replacement


def test_arguments_of_the_printed_mean_are_checked() -> None:
    for interval, epsilon in [((1, 1), 1), ((2, 1), 1), ((0, 1), 0), ((0, 1), -1)]:
        with pytest.raises(InvalidInput):
            PrintedSmoothMean.of(interval, Fraction(epsilon))
    huge, most = (PrintedSmoothMean.of((0, 1), Fraction(e)) for e in (10**6, 64))
    assert [huge.standard_error_at(n) for n in (0, 9)] == [
        most.standard_error_at(n) for n in (0, 9)
    ]
    assert huge.run(0, 0) is not None
