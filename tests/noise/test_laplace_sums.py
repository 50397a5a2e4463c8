"""Reaches of sums of Laplace variables: never short, and hardly long."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from muhat.errors import InvalidInput
from muhat.noise import laplace_sums
from muhat.noise.laplace_sums import STEP, LaplaceSums, few_tail, shape_of, unit_reach

MISSES = [0.5, 0.05, 1e-3, 1e-6, 1e-9]


def exact_tail(coefficients: list[float], t: float) -> float:
    """Partial fractions, for coefficients that are far enough apart."""
    total = 0.0
    for j, a in enumerate(coefficients):
        weight = math.prod(a**2 / (a**2 - b**2) for i, b in enumerate(coefficients) if i != j)
        total += weight * math.exp(-t / a)
    return total


def exact_reach(tail, miss: float) -> float:
    return brentq(lambda t: tail(t) - miss, 0, 200, xtol=1e-12)


@pytest.mark.parametrize("miss", MISSES)
def test_one_variable_has_its_own_quantile(miss):
    assert unit_reach(((0, 1),), miss) == pytest.approx(-math.log(miss), rel=1e-9)


@pytest.mark.parametrize("miss", MISSES)
@pytest.mark.parametrize("steps", [(0, 44), (0, 30, 90), (0, 10, 60, 200), (0, 400)])
def test_sums_reach_as_far_as_their_law_and_hardly_farther(steps, miss):
    shape = tuple((step, 1) for step in steps)
    exact = exact_reach(lambda t: exact_tail([STEP**-step for step in steps], t), miss)
    found = unit_reach(shape, miss)
    assert exact <= found <= exact * (1 + 2e-3)


@pytest.mark.parametrize("miss", MISSES)
def test_two_equal_coefficients_have_the_law_of_their_convolution(miss):
    exact = exact_reach(lambda t: (1 + t / 2) * math.exp(-t), miss)
    assert exact <= unit_reach(((0, 2),), miss) <= exact * (1 + 1e-3)


def test_many_equal_coefficients_are_nearly_normal():
    assert unit_reach(((0, 10_000),), 0.05) == pytest.approx(1.959964 * math.sqrt(20_000), rel=1e-3)


def test_a_reach_that_gives_misses_away_would_be_seen():
    """The planted error: twice the misses that are asked for."""
    exact = exact_reach(lambda t: (1 + t / 2) * math.exp(-t), 0.05)
    assert unit_reach(((0, 2),), 0.05) >= exact
    assert unit_reach(((0, 2),), 0.1) < exact * 0.9


def test_coefficients_are_rounded_up_by_a_step_at_most():
    generator = np.random.default_rng(3)
    sizes = generator.exponential(size=400)
    shape = shape_of(sizes, np.ones(400, np.int64))
    listed = np.repeat([step for step, _ in shape], [number for _, number in shape])
    rounded, ordered = sizes.max() * STEP ** -listed.astype(float), np.sort(sizes)[::-1]
    assert (rounded >= ordered * (1 - 1e-8)).all()
    assert (rounded <= ordered * STEP * (1 + 1e-7)).all()


def test_joined_shapes_reach_as_far_as_each_of_them(monkeypatch):
    monkeypatch.setattr(laplace_sums, "MOST_SHAPES", 3)
    rows = [np.array([[1.0] * (1 + i) + [0.3] * (9 - i)]) for i in range(10)]
    alone = [LaplaceSums.of_rows([row]).reaches(0.05)[0] for row in rows]
    joined = LaplaceSums.of_rows(rows)
    assert len(joined.shapes) == 3
    assert (joined.reaches(0.05) >= alone).all()


def test_sums_survive_json_and_odd_ones_are_refused():
    sums = LaplaceSums.of_rows([np.array([[2.0, -1.0, 0.0], [0.0, 0.0, 0.0]])])
    again = LaplaceSums.from_dict(sums.to_dict())
    assert again.to_dict() == sums.to_dict()
    assert again.reaches(0.1)[1] == 0
    for change in (
        {"peaks": [-1.0, 0.0]},
        {"which": [0, 9]},
        {"which": [0]},
        {"shapes": [[[1, 1]], [[0, 1]]]},
        {"shapes": [[[0, 0]], [[0, 1]]]},
        {"shapes": [[[0, 1], [5000, 1]], [[0, 1]]]},
    ):
        with pytest.raises(InvalidInput):
            LaplaceSums.from_dict({**sums.to_dict(), **change})
    with pytest.raises(InvalidInput):
        sums.reaches(0.0)


FEW = [
    ([1.0], 1.001),
    ([1.0, 0.0], 1.001),
    ([1.0, 1.0], 1.02),
    ([1.0, 0.99, 0.3], 1.02),
    ([1.0] * 5, 1.06),
    ([1.0] * 8, 1.25),
    ([1.0, 0.5] * 6, 1.6),
]


@pytest.mark.parametrize(("sizes", "longer"), FEW, ids=str)
def test_the_tail_of_a_few_is_never_short_and_hardly_long(sizes, longer):
    """Beside the proved reach of the same sum, itself long by a factor of 1 + 1/64 at most."""
    misses = np.array(MISSES[1:])
    sums = LaplaceSums.of_rows([np.array([sizes])])
    reaches = np.array([float(sums.reaches(miss)[0]) for miss in misses])
    coefficients = np.outer(sizes, np.ones(len(misses)))
    assert (few_tail(reaches / (1 + 1 / 50), coefficients) >= misses).all()
    assert (few_tail(reaches * longer, coefficients) <= misses).all()


def test_the_tail_of_nothing_is_nothing():
    assert few_tail(np.array([0.0, 1.0]), np.zeros((3, 2))).tolist() == pytest.approx([1.0, 0.0])
    assert few_tail(np.array([1e300]), np.ones((2, 1)))[0] < 1e-9
