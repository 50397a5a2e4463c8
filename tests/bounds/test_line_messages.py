"""The best message about one number: its program beside others, and floors with fifty digits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog

import muhat as mh
from muhat.bounds import line_messages as program
from muhat.bounds.line_messages import (
    COARSE,
    ENOUGH,
    LARGEST_EPSILON,
    LEAST_EPSILON,
    drawing,
    line_floor,
    line_messages,
)

EPSILONS = [0.25, 0.5, 1.0, 2.0, 3.5, 5.0]


def test_the_program_is_that_of_all_messages_for_three_places():
    """With every set of places, steps or not, and a fine grid of numbers: no less is possible."""
    for epsilon in (0.5, 1.0, 3.0):
        gain, x = math.exp(epsilon), np.array([-1.0, 0.0, 1.0])
        reach = 1.6 * (gain + 1) / (gain - 1)
        sets = [np.array(one) for one in np.ndindex(2, 2, 2) if 0 < sum(one) < 3]
        columns = [(f, y) for f in sets for y in np.linspace(-reach, reach, 1201)]
        f = np.array([1 + (gain - 1) * one for one, _ in columns]).T / gain
        y = np.array([number for _, number in columns])
        found = linprog(
            np.append(np.zeros(len(y)), 1.0),
            np.hstack([f * y**2, -np.ones((3, 1))]),
            x**2,
            np.hstack([np.vstack([f, f * y]), np.zeros((6, 1))]),
            np.concatenate([np.ones(3), x]),
            bounds=(0, None),
        )
        ours = program._solved(3, gain, program._first_columns(3, gain))
        assert ours.floor <= found.fun * (1 + 1e-9)
        assert ours.variance == pytest.approx(found.fun, rel=5e-3)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_was_found_is_a_message_and_near_its_floor(epsilon):
    found, gain = line_messages(epsilon), math.exp(epsilon)
    assert found.floor <= found.variance <= found.floor * 1.005
    assert drawing(found.places) <= ENOUGH * found.variance
    places, x = np.arange(found.places), np.linspace(-1, 1, found.places)
    columns = found.columns
    inside = (places[:, None] >= columns.first) & (places[:, None] <= columns.last)
    f = np.where(inside, 1.0, 1 / gain) * found.weights
    both = f + f[::-1]
    assert both.sum(axis=1) == pytest.approx(np.ones(found.places), abs=1e-6)
    assert (f - f[::-1]) @ columns.values == pytest.approx(x, abs=1e-6)
    assert (both @ columns.values**2 - x**2).max() == pytest.approx(found.variance, rel=1e-5)


def dual_of(epsilon: float) -> np.ndarray:
    """The last dual of the coarse program."""
    gain = math.exp(epsilon)
    found = program._solved(COARSE, gain, program._first_columns(COARSE, gain))
    around = program._beside(found.columns, 0.02)
    columns = (around + program._first_columns(COARSE, gain)).distinct(COARSE, 1e-9)
    return program._program(COARSE, gain, columns)[2]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_floors_are_feasible_with_fifty_digits(epsilon):
    """Σf·(u + vy − sy²) ≤ 0 for the worst f at 600 numbers y and all vertices; s adds up to 1."""
    dual = dual_of(epsilon)
    floor, _ = program._floor_of(dual, math.exp(epsilon))
    x = np.linspace(-1, 1, COARSE)
    with mpmath.workdps(50):
        gain = mpmath.exp(mpmath.mpf(epsilon))
        u, v, s = ([mpmath.mpf(float(each)) for each in row] for row in dual)
        plain = sum(u) + sum(a * mpmath.mpf(float(b)) for a, b in zip(v, x, strict=True))
        plain -= sum(a * mpmath.mpf(float(b)) ** 2 for a, b in zip(s, x, strict=True))
        lowered = (plain - mpmath.mpf(floor)) / COARSE
        assert lowered > 0
        vertices, _, _ = program.worst_values(dual, math.exp(epsilon))
        for y in [*np.linspace(-4, 4, 600), *vertices, -1e6, 1e6]:
            number = mpmath.mpf(float(y))
            terms = [
                a - lowered + b * number - c * number**2 for a, b, c in zip(u, v, s, strict=True)
            ]
            assert sum(each if each > 0 else each / gain for each in terms) <= 0
        assert abs(sum(s) - 1) < 1e-15 * COARSE
        assert min(s) >= 0


def test_the_worst_number_is_found_however_far_it_is_and_however_flat_a_parabola():
    """Of planted duals: far beyond all roots, and a root that a difference would lose."""
    gain = math.e
    far = np.array([[-1.0, -100.0, -1.0], [0.0, 100.0, 0.0], [0.5, 0.0, 0.5]])
    y, _, excess = program.worst_values(far, gain)
    best = int(excess.argmax())
    # Beyond the root 1: −2/e − 100 + 100y − y²/e.
    assert y[best] == pytest.approx(50 * gain)
    assert excess[best] == pytest.approx(2500 * gain - 100 - 2 / gain)
    flat = np.array([[0.5, 0.0], [-1.0, 0.0], [1e-18, 1.0]])
    y, inside, _ = program.worst_values(flat, gain)
    assert inside[0].tolist() == [False, True, True, False]
    assert y[-1] == pytest.approx(0.5)


def test_a_planted_dual_that_is_too_good_is_brought_down():
    dual, gain = dual_of(2.0), math.exp(2.0)
    honest, _ = program._floor_of(dual, gain)
    planted = dual.copy()
    planted[0] += 0.01
    floor, violated = program._floor_of(planted, gain)
    assert floor < honest
    assert len(violated)


def known_variances(epsilon: float) -> dict[str, float]:
    """At the worst record of [−1, 1]: messages that others found, and noise on the record."""
    e, h = math.exp(epsilon), math.exp(epsilon / 2)
    b = math.exp(-epsilon)
    return {
        "randomised response": ((e + 1) / (e - 1)) ** 2,
        "piecewise": 1 / (h - 1) + (h + 3) / (3 * (h - 1) ** 2),
        "hybrid": (h + 3) / (3 * h * (h - 1)) + (e + 1) ** 2 / (h * (e - 1) ** 2),
        "Laplace": 8 / epsilon**2,
        "staircase": 4 * ((b * (1 + b) / 2) ** (2 / 3) + b) / (1 - b) ** 2,
    }


def test_no_floor_exceeds_any_message_and_the_best_message_is_ours():
    """504 settings: 84 ε with five other messages and our own each."""
    for epsilon in np.geomspace(LEAST_EPSILON, 1.6, 84):
        found = line_messages(float(epsilon))
        ours = found.variance + drawing(found.places)
        for variance in (*known_variances(epsilon).values(), ours):
            assert found.floor <= variance
        assert ours <= min(known_variances(epsilon).values()) * (1 + 1e-4)


@pytest.mark.slow
def test_more_places_are_as_good_at_large_epsilons():
    for epsilon in (2.2, 2.8, 4.0, 6.0, 8.0, LARGEST_EPSILON):
        found = line_messages(epsilon)
        ours = found.variance + drawing(found.places)
        assert found.floor <= ours <= 0.85 * min(known_variances(epsilon).values())
        assert ours <= found.floor * (1.05 if epsilon < 9 else 1.2)


def test_less_privacy_is_never_worse_and_other_epsilons_have_no_program():
    floors = [line_floor(epsilon) for epsilon in (0.25, 0.3, 0.7, 1.0, 1.6, 2.5)]
    assert floors == sorted(floors, reverse=True)
    for epsilon in (0.2, 10.5):
        assert line_floor(epsilon) == 0
        with pytest.raises(mh.InvalidInput, match="program of messages"):
            line_messages(epsilon)


def test_the_bound_is_the_width_times_the_floor_and_holds_on_every_scale():
    for low, high, n in ((0.0, 1.0, 100), (-5.0, 1e6, 1), (1e-9, 2e-9, 10**6)):
        bounds = mh.bounds.local(mh.Box([low], [high]), n, mh.PureDP(epsilon=1.0))
        (found,) = (each for each in bounds if each.theorem == "B10 on a line")
        expected = (high - low) / 2 * math.sqrt(line_floor(1.0) / n)
        assert found.value == pytest.approx(expected, rel=1e-9)
        assert found.value == max(each.value for each in bounds)
        assert (found.mechanisms, found.datasets) == ("unbiased", "some")
