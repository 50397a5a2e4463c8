"""The least noise that hides every shift: below all that is known, near the best, exact."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog

import muhat as mh
from muhat.bounds import every_shift
from muhat.bounds.every_shift import _log_grid_square, _weights, proved
from muhat.bounds.unbiased import SUBSTITUTION
from muhat.noise.least_stairs import least_stairs
from muhat.privacy import gaussian_mu

STEP = 1 << 30
SETTINGS = list(
    itertools.product((0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0), (1e-2, 1e-3, 1e-4, 1e-6, 1e-9))
)


def squares(epsilon: float, delta: float) -> list[float]:
    """Mean squares of noise that hides a shift of 1, and all that are smaller."""
    promise = mh.ApproxDP(epsilon=epsilon, delta=delta)
    b = math.exp(-epsilon)
    radii = np.linspace(0.02, 1, 10)
    j = np.arange(math.ceil(50 / epsilon) + 2)
    stairs = [float(np.sum(b**j * (t + j) ** 3) / np.sum(b**j * (t + j))) / 3 for t in radii]
    best = least_stairs(promise, STEP)
    assert best is not None
    normal = 1 / gaussian_mu(epsilon, delta) ** 2
    cut = math.log1p(math.expm1(epsilon) / (2 * delta)) / epsilon  # Geng et al. 2018
    x = np.linspace(0, cut, 4001)
    density = np.exp(-epsilon * x)
    truncated = float(np.trapezoid(density * x**2, x) / np.trapezoid(density, x))
    return [*stairs, 2 / epsilon**2, normal, truncated, float(best.second_moment) / STEP**2]


def test_no_noise_is_below_it_on_five_hundred_settings_and_the_best_is_near():
    """Planted: a bound that is 4 % higher would not stand."""
    seen = 0
    for epsilon, delta in SETTINGS:
        bound = math.exp(_log_grid_square(epsilon, delta))
        known = squares(epsilon, delta)
        seen += len(known)
        assert bound <= min(known)
        assert min(known) < bound * 1.04 or delta > 1e-3
    assert seen >= 500


@pytest.mark.parametrize(("epsilon", "delta"), [(0.7, 1e-2), (1.5, 1e-4), (3.0, 1e-6)])
def test_it_is_the_dual_of_a_linear_program_over_all_noise(epsilon, delta):
    """Noise on whole numbers up to 24 that hides shifts of 1, 2 and 3: at least V, and V is near.

    For each shift the excess of p over e^ε times the moved p adds up to δ at most.
    """
    cells, reach = 3, 24
    z = np.arange(-reach, reach + 1)
    size, moves = len(z), [s * sign for s in range(1, cells + 1) for sign in (1, -1)]
    rows, right = [], []
    for at, move in enumerate(moves):
        total = np.zeros(size * (1 + len(moves)))
        total[size * (at + 1) : size * (at + 2)] = 1
        rows.append(total)
        right.append(delta)
        for place in range(size):
            line = np.zeros_like(total)
            line[place] = 1
            if 0 <= place - move < size:
                line[place - move] = -math.exp(epsilon)
            line[size * (at + 1) + place] = -1
            rows.append(line)
            right.append(0.0)
    cost = np.concatenate([z.astype(float) ** 2, np.zeros(size * len(moves))])
    whole = np.concatenate([np.ones(size), np.zeros(size * len(moves))])
    best = linprog(cost, np.array(rows), right, whole[None], [1.0])
    value = float(proved(_weights(epsilon, delta, cells, 30), epsilon, delta))
    assert value <= best.fun * (1 + 1e-9)
    assert value > 0.98 * best.fun


def test_weights_of_any_kind_prove_no_more_than_noise_has():
    """Drawn weights, negative ones among them, and those of the solver made twice as large."""
    rng = np.random.default_rng(4)
    epsilon, delta, cells = 1.0, 1e-3, 4
    law = least_stairs(mh.ApproxDP(epsilon=epsilon, delta=delta), cells)
    good = _weights(epsilon, delta, cells, 40)
    assert proved(good, epsilon, delta) <= law.second_moment
    assert proved(good, epsilon, delta) > 0.9 * law.second_moment
    for scale in (0.0, 0.5, 2.0, 10.0):
        assert proved([scale * each for each in good], epsilon, delta) <= law.second_moment
    for _ in range(50):
        drawn = [each + rng.normal(size=len(each)) * 10 ** rng.uniform(-3, 1) for each in good]
        assert proved(drawn, epsilon, delta) <= law.second_moment


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-2), (2.0, 1e-6)])
def test_what_weights_prove_is_right_in_fifty_digits(epsilon, delta):
    weights = _weights(epsilon, delta, 4, 20)
    with mpmath.workdps(50):
        grown = mpmath.exp(mpmath.mpf(str(epsilon)))

        def at(s: int, x: int) -> mpmath.mpf:
            place = x + s // 2
            inside = 0 <= place < len(weights[s - 1])
            return max(mpmath.mpf(weights[s - 1][place]), 0) if inside else mpmath.mpf(0)

        least = min(
            x * x
            + mpmath.fsum(
                at(s, x) - grown * at(s, x - s) + at(s, -x) - grown * at(s, -x - s)
                for s in range(1, 5)
            )
            for x in range(60)
        )
        spent = mpmath.fsum(max(0.0, *each) for each in weights)
        exact = least - 2 * mpmath.mpf(str(delta)) * spent
    found = proved(weights, epsilon, delta)
    assert found.denominator > 1
    assert float(exact) - 1e-12 <= float(found) <= float(exact) + 1e-12


def test_plans_of_convex_sets_have_it_and_others_have_not():
    leaky, pure = mh.ApproxDP(epsilon=4.0, delta=1e-6), mh.PureDP(epsilon=4.0)
    for domain, ratio in ((mh.Box([0], [1]), 1.01), (mh.Box([0, 0], [1, 1]), 1.2)):
        plan = mh.plan_mean(domain=domain, n=1000, privacy=leaky)
        assert 1 <= plan.certificate.ratio < ratio
    total = mh.plan_sum(domain=mh.Box([-1], [1]), n=None, privacy=leaky, contributions=3)
    assert 1 <= total.certificate.ratio < 1.01
    for domain, privacy in (
        (mh.Points(np.eye(3)), leaky),
        (mh.Box([0], [1]), pure),  # by volume
        (mh.Box([0, 0], [1, 1]), mh.ZCDP(rho=0.5)),
        (mh.Box([0, 0], [1, 1]), mh.ApproxDP(epsilon=0.1, delta=1e-6)),
        (mh.Box([0, 0], [1, 1]), mh.ApproxDP(epsilon=20.0, delta=1e-6)),
    ):
        assert every_shift(domain, 1.0, SUBSTITUTION, privacy=privacy) == ()
    (bound,) = every_shift(mh.Box([0, 0], [1, 1]), 2.0, SUBSTITUTION, privacy=pure)
    plan = mh.plan_mean(domain=mh.Box([0], [1]), n=1, privacy=pure, population=False)
    assert bound.value == pytest.approx(2 * plan.expected_error, rel=1e-3)
    assert Fraction(bound.value) < Fraction(2 * plan.expected_error)
