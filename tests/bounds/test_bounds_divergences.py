"""The constants of the lower bounds, against brute force and against 50-digit arithmetic."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.optimize import linprog

import muhat as mh
from muhat.bounds import divergences
from muhat.bounds.divergences import one_sided, pair, two_sided


def test_each_kind_has_the_sharpest_constants_that_are_proved_for_it():
    pure, rho, mu = mh.PureDP(epsilon=1.5), mh.ZCDP(rho=0.3), mh.GDP(mu=0.8)
    assert one_sided(pure) == pair(pure) == divergences.log_one_sided_pure(1.5)
    assert two_sided(pure) == divergences.log_two_sided_pure(1.5)
    assert one_sided(rho) == divergences.log_one_sided_zcdp(0.3)
    assert two_sided(rho) == divergences.log_two_sided_zcdp(0.3)
    assert pair(rho) == divergences.log_pair_zcdp(0.3)
    assert one_sided(mu) == divergences.log_one_sided_zcdp(0.32)
    assert two_sided(mu) == divergences.log_two_sided_zcdp(0.32)
    assert pair(mu) == divergences.log_pair_gdp(0.8)
    approximate = mh.ApproxDP(epsilon=1.0, delta=1e-6)
    assert one_sided(approximate) is two_sided(approximate) is None
    assert pair(approximate) == divergences.log_pair_approx(1.0, 1e-6)


def test_one_order_bounds_the_variance_of_the_likelihood_ratio_from_two_on():
    low, high = mh.RDP(alpha=1.9, epsilon=0.4), mh.RDP(alpha=2.0, epsilon=0.4)
    assert one_sided(low) is two_sided(low) is None
    assert one_sided(high) == divergences.log_one_sided_zcdp(0.2)
    assert two_sided(high) == divergences.log_two_sided_renyi(0.4)
    assert pair(low) == divergences.log_pair_zcdp(0.4)
    assert pair(high) == min(pair(low), one_sided(high))


@pytest.mark.parametrize("size", [2, 3, 6])
def test_no_three_laws_are_farther_apart_than_their_divergences_of_order_two_allow(size):
    """Two neighbours P₊, P₋ of P₀ that are neighbours of each other, at random; nearly attained."""
    generator, closest = np.random.default_rng(3), 0.0
    for _ in range(4000):
        spread = generator.uniform(0.01, 1.5)
        laws = np.exp(spread * generator.normal(size=(3, size)))
        middle, up, down = laws / laws.sum(axis=1, keepdims=True)
        laws = [middle, up, down]
        most = max(math.log(np.sum(p**2 / q)) for p in laws for q in laws)
        apart = math.log(np.sum((up - down) ** 2 / middle))
        assert apart <= divergences.log_two_sided_renyi(most) + 1e-9
        closest = max(closest, math.exp(apart - divergences.log_two_sided_renyi(most)))
    assert closest > 0.2, "a bound that is five times too small would have been found"


LOSSES = [1e-300, 1e-20, 1e-6, 0.01, 0.3, 0.69, 0.7, 1.0, 3.0, 30.0, 600.0]


def exactly_log(number):
    return float(mp.log(number))


@pytest.mark.parametrize("loss", LOSSES)
def test_logarithms_are_right_at_every_size(loss):
    with mp.workdps(350):
        x = mpf(repr(loss))
        pure = 4 * mp.sinh(x / 2) ** 2
        cases = [
            (divergences.log_one_sided_zcdp(loss), mp.expm1(2 * x)),
            (divergences.log_one_sided_pure(loss), pure),
            (
                divergences.log_two_sided_pure(loss),
                pure if mp.exp(x) <= 2 else 2 * (mp.exp(x) - 1) ** 2 / (2 + mp.exp(x)),
            ),
        ]
        for delta in (1e-300, 1e-12, 1e-3, 0.5, 0.999999):
            d = mpf(repr(delta))
            kappa_squared = d + (1 - d) * mp.tanh(x / 2) ** 2
            cases.append((divergences.log_pair_approx(loss, delta), 4 / (1 / kappa_squared - 1)))
        for value, exact in cases:
            assert value == pytest.approx(exactly_log(exact), rel=5e-16, abs=5e-14)


# --- J of pure privacy is a linear program ---------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.69, math.log(2), 0.75, 1.0, 2.0, 4.0])
def test_the_two_sided_pure_constant_is_the_optimum_of_its_linear_program(epsilon):
    ratio = math.exp(epsilon)
    marks = np.unique([*np.linspace(1 / ratio, ratio, 13), 1.0, 1 / ratio, ratio])
    points = [
        (u, v)
        for u, v in itertools.product(marks, marks)
        if u <= ratio * v * (1 + 1e-12) and v <= ratio * u * (1 + 1e-12)
    ]
    u, v = np.array(points).T
    answer = linprog(
        -((u - v) ** 2),
        A_eq=np.stack([np.ones_like(u), u, v]),
        b_eq=[1.0, 1.0, 1.0],
        method="highs",
    )
    assert -answer.fun == pytest.approx(math.exp(divergences.log_two_sided_pure(epsilon)), rel=1e-7)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_one_sided_pure_constant_is_the_largest_variance_of_a_likelihood_ratio(epsilon):
    u = np.linspace(math.exp(-epsilon), math.exp(epsilon), 41)
    answer = linprog(
        -((u - 1) ** 2), A_eq=np.stack([np.ones_like(u), u]), b_eq=[1.0, 1.0], method="highs"
    )
    assert -answer.fun == pytest.approx(math.exp(divergences.log_one_sided_pure(epsilon)), rel=1e-7)


# --- V(ρ) ------------------------------------------------------------------------------------


def test_the_two_sided_zcdp_constant_is_its_formula():
    def v(rho, k):
        s = (mp.sqrt((k + 2) ** 2 + 8 * k) - (k + 2)) / 4
        d = (1 - s) ** 2 * (2 * s / (1 + s)) ** k
        mixed = mp.expm1(2 * rho) ** (k / (k + 1)) * (2 * d) ** (1 / (k + 1))
        return mixed * mp.exp((k + 2) * rho)

    with mp.workdps(50):
        for rho in (1e-8, 1e-4, 0.01, 0.1, 1.0, 5.0):
            r = mpf(repr(rho))
            grid = [v(r, mpf(10) ** (mpf(j) / 40)) for j in range(-240, 241)]
            best = min(*grid, 2 * (mp.exp(2 * r) - mp.exp(-r)))
            found = mp.exp(mpf(divergences.log_two_sided_zcdp(rho)))
            assert best * (1 - mpf("1e-3")) <= found <= best * (1 + mpf("1e-6"))
            assert found >= mp.expm1(2 * r)


def test_the_two_sided_zcdp_constant_is_asymptotically_that_of_the_gaussian():
    excess = [
        math.exp(divergences.log_two_sided_zcdp(rho)) / (2 * rho) for rho in (1e-2, 1e-6, 1e-12)
    ]
    assert 1 < excess[2] < 1.00001 < excess[1] < 1.01 < excess[0] < 1.17


@pytest.mark.parametrize("rho", [0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0])
def test_gaussian_triples_stay_below_the_two_sided_zcdp_constant(rho):
    """J = e^{‖a‖²} + e^{‖b‖²} − 2e^{⟨a,b⟩} for N(0, I), N(a, I), N(b, I)."""
    largest = math.sqrt(2 * rho)
    ceiling = math.exp(divergences.log_two_sided_zcdp(rho))
    sizes, angles = np.linspace(0, largest, 40), np.linspace(0, math.pi, 61)
    a, b, angle = np.meshgrid(sizes, sizes, angles, indexing="ij")
    product = a * b * np.cos(angle)
    allowed = a**2 + b**2 - 2 * product <= largest**2 * (1 + 1e-12)
    j = np.exp(a**2) + np.exp(b**2) - 2 * np.exp(product)
    assert j[allowed].max() <= ceiling
    assert j[allowed].max() >= math.expm1(2 * rho) * (1 - 1e-9)


def test_discrete_triples_stay_below_the_two_sided_zcdp_constant():
    """ρ of each triple is measured, sup D_α/α over orders and pairs, then J is compared."""
    source = np.random.default_rng(7)
    orders = np.concatenate([1 + np.logspace(-3, 2, 60)])
    tightest = 0.0
    for _ in range(300):
        laws = source.dirichlet(np.full(4, source.choice([0.5, 2.0, 30.0])), size=3) + 1e-6
        if source.random() < 0.5:  # the worst triples of pure privacy are reflections
            laws[1:, :] = laws[0] * (1 + source.uniform(0, 0.9) * np.array([[1, -1, 1, -1]] * 2))
            laws[2, :] = laws[0] * 2 - laws[1]
        laws /= laws.sum(axis=1, keepdims=True)
        rho = 0.0
        for p, q in itertools.permutations(laws, 2):
            logs = np.log(p) * orders[:, None] + np.log(q) * (1 - orders[:, None])
            top = logs.max(axis=1)
            renyi = (top + np.log(np.exp(logs - top[:, None]).sum(axis=1))) / (orders - 1)
            rho = max(rho, float((renyi / orders).max()))
        j = float((((laws[1] - laws[2]) ** 2) / laws[0]).sum())
        # The order just above 1 is not on the grid: one part in a hundred covers it.
        quotient = j / math.exp(divergences.log_two_sided_zcdp(rho * 1.01))
        tightest = max(tightest, quotient)
    assert 0.2 < tightest <= 1
