"""The least noise for a shift: attained where it can be, below every mechanism, right in 50 digits.

Additive noise on a grid is a linear programme; any mechanism on copies of a pair is another one.
"""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

from muhat.bounds import mean, mean_bounds, steps, sum_bounds
from muhat.domains import Ball, Box
from muhat.privacy import GDP, ZCDP, ApproxDP, PureDP, gaussian_mu_squared


def square(privacy, copies=math.inf):
    """The bound on E Z²."""
    if math.isinf(copies):
        return math.exp(steps.noise_floor(privacy).log_square)
    found = steps.any_floor(privacy, copies)
    return 0.0 if found is None else math.exp(found.log_square)


def geometric(epsilon):
    return 1 / (2 * math.sinh(epsilon / 2) ** 2)


def staircase(epsilon):
    """The least second moment of pure noise for reals (Geng and Viswanath)."""
    b = math.exp(-epsilon)
    return ((b * (1 + b) / 2) ** (2 / 3) + b) / (1 - b) ** 2


# --- pure ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 8.0])
def test_geometric_noise_attains_the_bound(epsilon):
    assert square(PureDP(epsilon=epsilon)) == pytest.approx(geometric(epsilon), rel=1e-12)
    assert square(PureDP(epsilon=epsilon)) < staircase(epsilon)


@pytest.mark.parametrize("epsilon", ["0.01", "0.7", "5"])
def test_the_weights_of_the_proof_are_right_in_fifty_digits(epsilon):
    with mpmath.workdps(50):
        b = mpmath.exp(-mpmath.mpf(epsilon))
        V = 2 * b / (1 - b) ** 2

        def weight(x, twist=1):
            if x < mpmath.mpf(-1) / 2:
                return mpmath.mpf(0)
            return b / (1 - b) * (x * x + twist * (2 * x + 1) / (1 - b))

        def total(x, twist=1):
            right = weight(x, twist) - weight(x - 1, twist) / b
            left = weight(-x, twist) - weight(-x - 1, twist) / b
            return x * x - V + right + left

        points = [mpmath.mpf(k) / 16 for k in range(-160, 161)]
        points += [side * 2 * k / (1 - b) for k in range(1, 9) for side in (-1, 1)]
        assert min(map(total, points)) > -(mpmath.mpf(10) ** -40)
        assert min(weight(x) for x in points) >= 0
        # A wrong constant in λ is seen at once.
        assert min(total(x, mpmath.mpf("1.001")) for x in points) < -(mpmath.mpf(10) ** -6)
        assert min(total(x, mpmath.mpf("0.999")) for x in points) < -(mpmath.mpf(10) ** -6)


def least_error_of_any(epsilon, copies, outputs=3):
    """min over all mechanisms of the largest E Z² on y = 0 … m, answers on a grid of 1/outputs."""
    grid = np.arange(0, copies + 0.5 / outputs, 1 / outputs)
    rows, answers = copies + 1, len(grid)
    b = math.exp(-epsilon)
    cost = np.zeros(rows * answers + 1)
    cost[-1] = 1
    below, limits = [], []
    for y in range(rows):
        line = np.zeros_like(cost)
        line[y * answers : (y + 1) * answers] = (grid - y) ** 2
        line[-1] = -1
        below.append(line)
        limits.append(0.0)
        for other in (y - 1, y + 1):
            if 0 <= other < rows:
                for k in range(answers):
                    line = np.zeros_like(cost)
                    line[y * answers + k], line[other * answers + k] = b, -1
                    below.append(line)
                    limits.append(0.0)
    sums = np.kron(np.eye(rows), np.ones(answers))
    equal = np.hstack([sums, np.zeros((rows, 1))])
    found = linprog(cost, np.array(below), limits, equal, np.ones(rows), method="highs")
    return float(found.fun)


@pytest.mark.parametrize(("epsilon", "copies"), [(0.5, 8), (1.0, 8), (2.0, 5), (4.0, 3)])
def test_no_mechanism_at_all_is_below_the_bound_for_any(epsilon, copies):
    least = least_error_of_any(epsilon, copies)
    found = square(PureDP(epsilon=epsilon), copies)
    assert 0.35 * least < found < least
    # The additive bound is no bound for any mechanism on so few records.
    assert least < geometric(epsilon)


# --- normal noise ----------------------------------------------------------------------------


@pytest.mark.parametrize("mu", ["0.9", "1.5", "2.5"])
def test_the_loss_of_normal_noise_in_fifty_digits(mu):
    with mpmath.workdps(50):
        m = mpmath.mpf(mu)

        def slope(x):  # 2x + ν(x) − ν(−x), by its own series
            j = range(-24, 25)
            terms = [2 * (x + i) * mpmath.exp(-(m**2) * ((x + i) ** 2 - x**2) / 2) for i in j]
            return mpmath.fsum(terms)

        def part(x):
            return slope(x) * mpmath.erfc(m * x / mpmath.sqrt(2))

        exact = m**2 * mpmath.quad(part, [0, 0.5], maxdegree=4)
        assert min(slope(mpmath.mpf(k) / 16) for k in range(1, 8)) > 0
        found = steps.normal_loss(float(m))
        assert exact <= found <= exact * mpmath.mpf("1.02")


@pytest.mark.parametrize("mu", [0.7, 1.0, 1.8])
def test_the_bound_for_normal_noise_is_the_dual_value_of_its_tests(mu):
    """min h − 2∫νδ, integrated as it stands, is c²/μ²."""
    x = (np.arange(40_000) + 0.5) / 2000 - 0.5
    j = np.arange(1, 60)[:, None]
    weight = np.sum(2 * (x + j) * np.exp(-(mu**2) * (j * x + j * j / 2)), axis=0)
    t = mu**2 * (x + 0.5)
    leak = norm.cdf(mu / 2 - t / mu) - np.exp(np.minimum(t, 700)) * norm.cdf(-mu / 2 - t / mu)
    least = 2 * np.sum(weight[:1000]) / 2000
    value = least - 2 * np.sum(weight * leak) / 2000
    assert value * (1 - 2e-4) < square(GDP(mu=mu)) < value * (1 + 2e-5)
    assert np.sum(weight) / 2000 <= steps.total_weight(mu) * (1 + 1e-6)
    assert steps.total_weight(mu) == pytest.approx(np.sum(weight) / 2000, rel=1e-3)
    assert weight.max() <= math.exp(mu**2 / 8) * (2 / mu**2 + 2 / mu)


def least_normal_noise(mu, cells, reach):
    """The least E Z² of noise on a grid of 1/cells whose half-lines hide a shift of 1."""
    z = np.arange(-reach * cells, reach * cells + 1) / cells
    lines, limits = [], []
    for t in np.linspace(-mu * 4, mu * 4, 33):
        leak = norm.cdf(mu / 2 - t / mu) - math.exp(t) * norm.cdf(-mu / 2 - t / mu)
        for s in z:
            for side in (1, -1):
                lines.append(1.0 * (side * z > s) - math.exp(t) * (side * z > s + 1))
                limits.append(leak)
    found = linprog(z**2, np.array(lines), limits, np.ones((1, len(z))), [1.0], method="highs")
    return float(found.fun)


@pytest.mark.parametrize("mu", [1.5, 2.0])
def test_no_noise_on_a_grid_is_below_the_bound_for_normal_noise(mu):
    least = least_normal_noise(mu, 4, 3)
    assert square(GDP(mu=mu)) < least * (1 + 1e-7)
    assert least < 1.1 / mu**2


# --- (ε, δ) ----------------------------------------------------------------------------------


def least_cut_noise(epsilon, delta, reach):
    """The least E Z² of noise on the integers for (ε, δ), slack variables for the leak."""
    z = np.arange(-reach, reach + 1)
    size = len(z)
    lines, limits = [], []
    for shift, part in ((1, 0), (-1, 1)):
        for k in range(size):
            line = np.zeros(3 * size)
            line[k] = 1
            if 0 <= k - shift < size:
                line[k - shift] = -math.exp(epsilon)
            line[(1 + part) * size + k] = -1
            lines.append(line)
            limits.append(0.0)
        line = np.zeros(3 * size)
        line[(1 + part) * size : (2 + part) * size] = 1
        lines.append(line)
        limits.append(delta)
    cost = np.concatenate([z**2, np.zeros(2 * size)])
    equal = np.concatenate([np.ones(size), np.zeros(2 * size)])[None]
    # Its tolerance would be a tenth of the smallest δ.
    exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(cost, np.array(lines), limits, equal, [1.0], method="highs", options=exact)
    return float(found.fun)


@pytest.mark.parametrize(
    ("epsilon", "delta", "near"),
    [(0.5, 1e-2, 1.1), (1.0, 1e-2, 1.04), (1.0, 1e-3, 1.01), (2.0, 1e-4, 1.01), (1.0, 1e-6, 1.01)],
)
def test_cut_noise_on_integers_is_just_above_the_bound(epsilon, delta, near):
    least = least_cut_noise(epsilon, delta, 30)
    found = square(ApproxDP(epsilon=epsilon, delta=delta))
    assert found <= least * (1 + 1e-7) <= found * near**2


@pytest.mark.parametrize(("epsilon", "delta"), [("0.01", "1e-6"), ("1", "1e-3"), ("6", "1e-9")])
def test_the_search_for_a_reach_is_right_in_fifty_digits(epsilon, delta):
    with mpmath.workdps(50):
        b, leak = mpmath.exp(-mpmath.mpf(epsilon)), mpmath.mpf(delta)
        best, second, start = mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(0)
        for n in range(1, int((6 + mpmath.log(1 / leak)) / mpmath.mpf(epsilon)) + 4):
            second += b**n * n * n
            reach = n + mpmath.mpf(1) / 2
            V = 2 * (1 - b) / (1 + b) * (second + reach**2 * b ** (n + 1) / (1 - b))
            start += b**n * (reach - 1) ** 2
            if start + b ** (n + 1) / (1 - b) * reach**2 >= b / (1 - b) * V:
                best = max(best, V - 2 * leak * b / (1 - b) * (reach**2 - V))
    found = square(ApproxDP(epsilon=float(epsilon), delta=float(delta)))
    assert best * (1 - mpmath.mpf("1e-8")) < found <= best


# --- all of them -----------------------------------------------------------------------------


def settings():
    losses = (1e-3, 0.05, 0.3, 0.7, 1.0, 1.7, 2.5, 4.0, 10.0)
    kinds = ("pure", "gdp", "zcdp", "approx", "leaky")
    return list(itertools.product(losses, kinds, (1, 3, 20, 1000, 10**6, math.inf), (1, 4)))


def promise(kind, loss):
    return {
        "pure": lambda: PureDP(epsilon=loss),
        "gdp": lambda: GDP(mu=loss),
        "zcdp": lambda: ZCDP(rho=loss),
        "approx": lambda: ApproxDP(epsilon=loss, delta=1e-6),
        "leaky": lambda: ApproxDP(epsilon=loss, delta=0.05),
    }[kind]()


def least_known(privacy):
    """The least E Z² for a shift of 1 that anybody is known to achieve, of the laws tried here."""
    found = []
    if privacy.admits_normal:
        found.append(1 / float(gaussian_mu_squared(privacy)))
    if privacy.point is not None:
        found.append(geometric(privacy.point[0]))
    return min(found)


def test_no_mechanism_is_below_a_bound_on_five_hundred_settings():
    tried = settings()
    assert len(tried) >= 500
    for loss, kind, copies, pairs in tried:
        privacy = promise(kind, loss)
        least = least_known(privacy)
        assert square(privacy, copies) <= least * (1 + 1e-12)
        if math.isinf(copies):
            totals = sum_bounds(1.0, privacy=privacy)
        else:
            n = pairs * copies
            totals = mean_bounds(float(n), n=n, privacy=privacy, contact_pairs=pairs)
            # A constant in the middle of the row of datasets errs by half of it.
            centre = copies / 2
            anybody = [bound for bound in totals if bound.mechanisms == "any"]
            assert all((bound.value or 0) <= centre for bound in anybody)
        for bound in totals:
            if bound.mechanisms != "unbiased":
                assert bound.value is None or bound.value <= math.sqrt(least)


def test_bounds_for_any_mechanism_grow_with_the_records_up_to_those_of_noise():
    for kind, loss in itertools.product(("pure", "gdp", "zcdp", "approx"), (0.1, 1.0, 2.0)):
        privacy = promise(kind, loss)
        numbers = [square(privacy, copies) for copies in (1, 10, 100, 10**4, 10**8, math.inf)]
        assert numbers == sorted(numbers)
        assert numbers[-2] == pytest.approx(numbers[-1], rel=1e-5)
        assert numbers[3] > 0.97 * numbers[-1]


def test_a_constant_one_per_cent_too_large_would_be_seen():
    """Geometric and normal noise touch the bounds, so 1 % more is above what is achieved."""
    assert square(PureDP(epsilon=1.0)) * 1.01 > geometric(1.0)
    assert square(ApproxDP(epsilon=1.0, delta=1e-6)) * 1.01 > geometric(1.0)
    assert square(GDP(mu=1.0)) * 1.01 > 1.0
    assert math.sqrt(square(GDP(mu=2.0))) * 1.03 > 1 / 2


@pytest.mark.parametrize("loss", [1e-300, 1e-100, 1e-9, 30.0, 1e3, 1e5])
def test_extreme_promises_give_finite_bounds(loss):
    for kind, copies in itertools.product(("pure", "gdp", "zcdp", "approx"), (1, 10**6)):
        privacy = promise(kind, loss)
        for bound in (
            *sum_bounds(1.0, privacy=privacy),
            *mean_bounds(1.0, n=copies, privacy=privacy, contact_pairs=1),
        ):
            assert bound.value is None or 0 <= bound.value < math.inf


def test_the_classes_are_never_mixed():
    for privacy in (PureDP(epsilon=1.0), GDP(mu=1.0), ZCDP(rho=0.1)):
        found = mean(Ball(1.0, dim=3), n=300, privacy=privacy)
        kinds = {(bound.mechanisms, bound.datasets) for bound in found}
        assert kinds >= {("any", "some"), ("unbiased", "every"), ("additive", "every")}
        assert ("any", "every") not in kinds
        anybody = next(bound for bound in found if bound.mechanisms == "any")
        assert any("100 records at each of 3 places" in given for given in anybody.assumptions)
        noise = next(bound for bound in found if bound.mechanisms == "additive")
        assert any("same for all datasets" in given for given in noise.assumptions)


def test_nothing_is_said_of_any_mechanism_where_places_outnumber_records():
    found = mean(Box([0.0] * 8, [1.0] * 8), n=3, privacy=GDP(mu=1.0))
    assert all(bound.mechanisms != "any" for bound in found)
