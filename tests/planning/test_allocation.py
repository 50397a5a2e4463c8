"""Shares of a promise: the best ones, and the least that meet targets."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from muhat.noise.kinds import NoiseKind
from muhat.planning.allocation import TargetedError, as_fractions, best_shares, needed_shares

KINDS = list(NoiseKind)


def total(errors: np.ndarray, shares: np.ndarray, kind: NoiseKind) -> float:
    power = 1 if kind is NoiseKind.NORMAL else 2
    return float((errors**2 / shares**power).sum())


@pytest.mark.parametrize("kind", KINDS)
def test_no_other_shares_have_a_smaller_sum_of_squared_errors(kind: NoiseKind) -> None:
    errors = np.array([1.0, 7.0, 0.3])
    best = best_shares(errors.tolist(), kind)
    least = total(errors, best, kind)
    grid = np.linspace(0.02, 0.96, 48)
    others = [
        total(errors, np.array([a, b, 1 - a - b]), kind)
        for a, b in itertools.product(grid, grid)
        if a + b < 0.99
    ]
    assert best.sum() == pytest.approx(1)
    assert least <= min(others)


@pytest.mark.parametrize("kind", KINDS)
def test_one_wish_takes_what_its_formula_says(kind: NoiseKind) -> None:
    """Σ c²/s = t² has the least Σ s for s = c·Σc/t²; with pure noise s = (c²·(Σc^⅔)/t²)^½ …"""
    wish = TargetedError("mean", 2.0, 1.0, {0: 3.0, 1: 1.0})
    shares = needed_shares([wish], 2, kind)
    assert wish.error(shares, kind) == pytest.approx(2.0, rel=1e-6)
    expected = 4.0 if kind is NoiseKind.NORMAL else (3 ** (2 / 3) + 1) ** 1.5 / 2
    assert shares.sum() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_several_wishes_are_met_with_the_least_that_a_search_finds(kind: NoiseKind) -> None:
    wishes = [
        TargetedError("a", 1.0, 1.0, {0: 1.0, 1: 1.0}),
        TargetedError("b", 0.5, 2.0, {1: 2.0}),
        TargetedError("c", 9.0, 1.0, {0: 1.0}),
    ]
    shares = needed_shares(wishes, 3, kind)
    assert shares[2] == 0
    used = shares[:2]
    for wish in wishes:
        assert wish.error(shares, kind) <= wish.target * wish.scale * (1 + 1e-6)
    grid = np.geomspace(0.2, 40, 400)
    feasible = [
        a + b
        for a, b in itertools.product(grid, grid)
        if all(
            wish.error(np.array([a, b, 1.0]), kind) <= wish.target * wish.scale for wish in wishes
        )
    ]
    assert used.sum() <= min(feasible) * (1 + 1e-6)


def test_without_wishes_nothing_is_needed() -> None:
    assert needed_shares([], 3, NoiseKind.NORMAL).tolist() == [0, 0, 0]


def test_fractions_never_add_up_to_more_than_was_meant() -> None:
    shares = best_shares([math.pi, 1 / 3, 1e-7, 5e4], NoiseKind.NORMAL)
    exact = as_fractions(shares.tolist())
    assert sum(exact) <= 1
    assert all(part <= Fraction(share) for part, share in zip(exact, shares, strict=True))
