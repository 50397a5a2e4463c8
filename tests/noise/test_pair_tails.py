"""Combinations of two coordinates of noise: tails against simulation and against known laws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from muhat.noise.laws import SHAPES

DRAWS = 400_000
NAMES = [name for name, shape in SHAPES.items() if not isinstance(shape, type)]
PAIRS = [(1.0, 0.0), (1.0, 0.3), (0.3, -1.0), (1.0, 1.0), (1.0, 1 - 1e-9), (2.0, 1e-7)]


def draws_of(name, rows):
    rng = np.random.default_rng(rows)
    if name == "laplace":
        return rng.laplace(size=(DRAWS, 2))
    if name == "maximum-norm":
        return rng.gamma(rows + 1, size=(DRAWS, 1)) * rng.uniform(-1, 1, (DRAWS, 2))
    if name == "diamond-norm":
        turned = rng.gamma(rows + 1, size=(DRAWS, 1)) * rng.uniform(-1, 1, (DRAWS, 2))
        return turned @ [[0.5, 0.5], [-0.5, 0.5]]
    normal = rng.normal(size=(DRAWS, 2))
    if name == "normal":
        return normal
    return normal * np.sqrt(rng.chisquare(rows + 1, size=(DRAWS, 1)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", [2, 3, 7])
def test_tails_are_those_of_simulated_noise(name, rows):
    """Fixed draws; 6.5 standard errors allow for 36 comparisons a law at 1e-9 each."""
    noise = draws_of(name, rows)
    for a, b in PAIRS:
        reach = np.array([0.5, 3.0, 6.0])
        exact = SHAPES[name].pair_tail(reach, np.full(3, a), np.full(3, b), rows)
        seen = [(np.abs(noise @ [a, b]) > t).mean() for t in reach]
        errors = 6.5 * np.sqrt(exact * (1 - exact) / DRAWS) + 1e-12
        assert (np.abs(exact - seen) < errors).all()


@pytest.mark.parametrize("name", NAMES)
def test_one_coordinate_alone_has_the_tail_of_the_law(name):
    law = SHAPES[name]
    for reach in (0.1, 2.0, 9.0):
        one = np.array([3.0])
        tail = law.pair_tail(3 * np.array([reach]), one, 0 * one, 4)[0]
        assert tail == pytest.approx(law.tail(reach, 4), rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_quantile_of_a_combination_is_a_norm_of_its_coefficients(name):
    """Convex in the second coefficient: what intervals of ratios rest on."""
    law = SHAPES[name]

    def quantile(b):
        low, high = 0.0, 1e3
        for _ in range(60):
            middle = (low + high) / 2
            tail = law.pair_tail(np.array([middle]), np.array([1.0]), np.array([b]), 5)[0]
            low, high = (middle, high) if tail > 0.05 else (low, middle)
        return high

    places = np.linspace(0, 4, 41)
    values = np.array([quantile(b) for b in places])
    assert (np.diff(values, 2) > -1e-6).all()
    steepest = law.quantile(0.95, 5)
    assert (np.diff(values) / 0.1 <= steepest * (1 + 1e-6)).all()
    assert math.isclose(values[0], law.quantile(0.95, 5), rel_tol=1e-6)
