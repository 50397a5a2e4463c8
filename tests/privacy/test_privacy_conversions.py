"""The exact relations between promises, against 80-digit arithmetic."""

from __future__ import annotations

import decimal
import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from mpmath import mp, mpf

from muhat.errors import InvalidInput
from muhat.privacy import (
    GDP,
    ZCDP,
    ApproxDP,
    PureDP,
    as_typed,
    conversions,
    gaussian_curve,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_mu_squared,
)

DELTAS = [1e-300, 1e-200, 1e-100, 1e-30, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.9]
EPSILONS = [1e-6, 1e-4, 0.01, 0.1, 1.0, 3.0, 10.0, 50.0, 100.0]


@pytest.fixture(autouse=True)
def eighty_digits():
    with mp.workdps(80):
        yield


def curve(mu, epsilon):
    """The textbook difference, with digits for what it cancels at a small mu."""
    with mp.workdps(80 + 2 * max(0, -math.frexp(mu)[1] // 3)):
        mu, epsilon = mpf(repr(float(mu))), mpf(repr(float(epsilon)))
        upper, lower = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        root = mp.sqrt(2)
        return (mp.erfc(-upper / root) - mp.exp(epsilon) * mp.erfc(-lower / root)) / 2


@pytest.mark.parametrize("epsilon", [0.0, *EPSILONS])
def test_mu_is_the_largest_float_on_the_curve(epsilon):
    for delta in DELTAS:
        mu = gaussian_mu(epsilon, delta)
        assert curve(mu, epsilon) <= mpf(repr(delta)) < curve(math.nextafter(mu, math.inf), epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_epsilon_and_delta_are_the_least_floats_on_the_curve(epsilon):
    for delta in DELTAS:
        mu = gaussian_mu(epsilon, delta)
        least = gaussian_epsilon(mu, delta)
        assert curve(mu, least) <= mpf(repr(delta))
        assert least == 0 or curve(mu, math.nextafter(least, 0)) > mpf(repr(delta))
        value = gaussian_delta(mu, epsilon)
        assert mpf(repr(math.nextafter(value, 0))) < curve(mu, epsilon) <= mpf(repr(value))


def test_the_curve_is_right_to_thirty_digits():
    grid = itertools.product([1e-7, 1e-3, 0.1, 1.0, 5.0, 14.0], [0.0, 1e-6, 0.01, 1.0, 10.0, 100.0])
    for mu, epsilon in grid:
        a = mu / 2 - epsilon / mu
        if a < -2000:
            continue  # e^{-2e6}: no float is that small
        exact = curve(mu, epsilon)
        with decimal.localcontext(gaussian_curve.context()):
            value = gaussian_curve._curve(decimal.Decimal(repr(mu)), decimal.Decimal(repr(epsilon)))
        assert abs(mpf(str(value[0])) / exact - 1) < mpf("1e-30")


def test_the_known_calibration_at_one_and_a_millionth():
    assert round(1 / gaussian_mu(1.0, 1e-6), 4) == 4.2247


def test_the_curve_at_its_ends():
    assert gaussian_delta(1e6, 1.0) == 1.0
    assert gaussian_delta(1e-3, 100.0) == 5e-324
    assert gaussian_delta(1e-300, 1e300) == 5e-324
    assert gaussian_epsilon(1e-9, 0.1) == 0.0
    assert gaussian_epsilon(1e150, 1e-6) == pytest.approx(5e299)
    assert gaussian_mu(1e300, 1e-5) == pytest.approx(math.sqrt(2) * 1e150)
    tiny = gaussian_mu(1e-300, 1e-300)
    assert gaussian_delta(tiny, 1e-300) <= 1e-300
    nearly_one = gaussian_mu(1e-3, 0.9999999999999999)
    assert curve(nearly_one, 1e-3) <= mpf("0.9999999999999999")


def test_the_callers_decimal_context_does_not_matter():
    expected = gaussian_mu(1.0, 1e-6), ZCDP(rho=0.1).to("approx", delta=1e-6)
    with decimal.localcontext(prec=3, traps=[decimal.Inexact]):
        assert (gaussian_mu(1.0, 1e-6), ZCDP(rho=0.1).to("approx", delta=1e-6)) == expected


@pytest.mark.parametrize(
    "call",
    [
        lambda: gaussian_mu(-1.0, 0.1),
        lambda: gaussian_mu(1.0, 0.0),
        lambda: gaussian_mu(1.0, 1.0),
        lambda: gaussian_delta(0.0, 1.0),
        lambda: gaussian_delta(1.0, math.nan),
        lambda: gaussian_epsilon(math.inf, 0.1),
    ],
)
def test_the_curve_refuses_what_is_outside_it(call):
    with pytest.raises(InvalidInput):
        call()


# --- what Gaussian noise may spend -----------------------------------------------------------


def test_gaussian_mu_squared_is_exact_where_it_is_rational():
    assert gaussian_mu_squared(ZCDP(rho=0.1)) == Fraction(1, 5)
    assert gaussian_mu_squared(GDP(mu=0.1)) == Fraction(1, 100)


def test_gaussian_mu_squared_is_on_the_safe_side_of_the_curve():
    for epsilon, delta in itertools.product(EPSILONS[::2], DELTAS[::3]):
        square = gaussian_mu_squared(ApproxDP(epsilon=epsilon, delta=delta))
        mu = mp.sqrt(mpf(square.numerator) / square.denominator)
        root = mp.sqrt(2)
        for factor, safe in ((1, True), (1 + mpf("1e-12"), False)):
            m, e = mu * factor, mpf(repr(epsilon))
            value = mp.erfc((e / m - m / 2) / root) - mp.exp(e) * mp.erfc((e / m + m / 2) / root)
            assert (value / 2 <= mpf(repr(delta))) is safe


def test_gaussian_mu_squared_refuses_pure_privacy():
    with pytest.raises(InvalidInput, match="No Gaussian mechanism is purely private"):
        gaussian_mu_squared(PureDP(epsilon=1.0))


# --- zCDP ------------------------------------------------------------------------------------


def renyi_delta(rho, epsilon, alpha):
    gain = mp.exp((alpha - 1) * (alpha * rho - epsilon))
    return gain * (1 - 1 / alpha) ** alpha / (alpha - 1)


def renyi_epsilon(rho, delta, alpha):
    tail = -mp.log(delta) + (alpha - 1) * mp.log(1 - 1 / alpha) - mp.log(alpha)
    return alpha * rho + tail / (alpha - 1)


@pytest.mark.parametrize("rho", [1e-10, 1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-9, 1e-3, 0.3])
def test_zcdp_to_approx_is_the_best_over_all_orders(rho, delta):
    with mp.workdps(50):
        exact_rho, exact_delta = mpf(repr(rho)), mpf(repr(delta))
        level = -mp.log(exact_delta)
        s = mp.findroot(
            lambda s: exact_rho * s * s + mp.log(1 + s) - level,
            (mpf("1e-12"), mp.sqrt(level / exact_rho)),
            solver="anderson",
            tol=1e-50,
            verify=False,
        )
        best = max(mpf(0), renyi_epsilon(exact_rho, exact_delta, 1 + s))
        found = conversions.zcdp_epsilon(rho, delta)
        assert best * (1 - mpf("1e-20")) <= mpf(repr(found)) <= best * (1 + mpf("1e-14"))
        if found == 0:
            return
        around = [
            renyi_delta(exact_rho, mpf(repr(found)), 1 + s * (1 + k * mpf("1e-3")))
            for k in range(-3, 4)
        ]
        value = mpf(repr(conversions.zcdp_delta(rho, found)))
        assert value <= min(around) * (1 + mpf("1e-14"))
        assert value >= min(around) * (1 - mpf("1e-4"))
        assert value <= exact_delta


def test_zcdp_to_approx_beats_the_textbook_bound_and_never_the_gaussian_curve():
    for rho, delta in itertools.product([1e-4, 0.01, 0.1, 1.0, 10.0], [1e-12, 1e-6, 1e-3]):
        epsilon = ZCDP(rho=rho).to("approx", delta=delta).epsilon
        assert epsilon < rho + 2 * math.sqrt(rho * math.log(1 / delta))
        assert epsilon > gaussian_epsilon(math.sqrt(2 * rho), delta)


def test_zcdp_to_approx_at_its_ends():
    assert conversions.zcdp_epsilon(1e-300, 0.5) == 0.0
    assert conversions.zcdp_delta(1e300, 1.0) == 1.0
    assert conversions.zcdp_delta(1e-300, 1e300) == 5e-324
    assert conversions.zcdp_epsilon(1e300, 1e-6) == pytest.approx(1e300)
    epsilon = conversions.zcdp_epsilon(1e-300, 1e-300)
    assert conversions.zcdp_delta(1e-300, epsilon) == pytest.approx(1e-300)


# --- pure ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-150, 1e-8, 0.1, 1.0, 5.0, 40.0, 700.0, 1e5])
def test_pure_to_zcdp_and_gdp_are_tight_and_rounded_up(epsilon):
    with mp.workdps(320):
        e = mpf(repr(epsilon))
        rho = e * mp.tanh(e / 2)
        promise = PureDP(epsilon=epsilon)
        typed = mpf(repr(promise.to("zcdp").rho))
        assert rho <= typed <= rho * (1 + mpf("1e-15"))
        mu = promise.to("gdp").mu
        tail = 1 / (1 + mp.exp(e))

        def upper_tail(m):
            return mp.erfc(mpf(repr(m)) / (2 * mp.sqrt(2))) / 2

        assert upper_tail(mu) <= tail < upper_tail(math.nextafter(mu, 0))


def test_pure_to_anything_survives_an_enormous_epsilon():
    promise = PureDP(epsilon=1e300)
    assert promise.to("zcdp").rho == 1e300
    assert promise.to("gdp").mu == pytest.approx(2 * math.sqrt(2) * 1e150)


def test_randomised_response_attains_the_pure_relations():
    epsilon = mpf(1)
    p = mp.exp(epsilon) / (1 + mp.exp(epsilon))
    total_variation = 2 * p - 1
    mu = mpf(repr(PureDP(epsilon=1.0).to("gdp").mu))
    assert mp.almosteq(mp.erf(mu / (2 * mp.sqrt(2))), total_variation, 1e-14)
    divergence = p * mp.log(p / (1 - p)) + (1 - p) * mp.log((1 - p) / p)
    assert mp.almosteq(mpf(repr(PureDP(epsilon=1.0).to("zcdp").rho)), divergence, 1e-14)
    hockey_stick = p - mp.exp(mpf("0.5")) * (1 - p)
    delta = PureDP(epsilon=1.0).to("approx", epsilon=0.5).delta
    assert hockey_stick <= mpf(repr(delta)) <= hockey_stick * (1 + mpf("1e-15"))


# --- the one method --------------------------------------------------------------------------


def test_to_itself_is_the_same_promise():
    for promise in (
        PureDP(epsilon=1.0),
        ZCDP(rho=1.0),
        GDP(mu=1.0),
        ApproxDP(epsilon=1.0, delta=0.1),
    ):
        assert promise.to(promise.kind) is promise
    approximate = ApproxDP(epsilon=1.0, delta=1e-6)
    assert approximate.to("approx", delta=1e-6) is approximate
    with pytest.raises(InvalidInput, match="one point"):
        approximate.to("approx", delta=1e-7)
    with pytest.raises(InvalidInput, match="one point"):
        approximate.to("approx", epsilon=0.5)


@pytest.mark.parametrize(
    ("promise", "kind", "hint"),
    [
        (ZCDP(rho=0.1), "pure", "approx"),
        (ZCDP(rho=0.1), "gdp", "GDP from the start"),
        (GDP(mu=1.0), "pure", "approx"),
        (ApproxDP(epsilon=1.0, delta=1e-6), "pure", "PureDP"),
        (ApproxDP(epsilon=1.0, delta=1e-6), "zcdp", "ZCDP"),
        (ApproxDP(epsilon=1.0, delta=1e-6), "gdp", "GDP"),
    ],
)
def test_a_conversion_that_does_not_exist_says_why_and_what_to_do(promise, kind, hint):
    with pytest.raises(InvalidInput, match=f"implies no promise of kind.*{hint}"):
        promise.to(kind)


def test_gdp_to_zcdp_is_half_the_square_and_never_below():
    assert GDP(mu=0.2).to("zcdp") == ZCDP(rho=0.02)
    for mu in (1 / 3, math.pi, 1e-9, 12345.678):
        rho = as_typed(GDP(mu=mu).to("zcdp").rho)
        assert as_typed(mu) ** 2 / 2 <= rho <= as_typed(mu) ** 2 / 2 * (1 + Fraction(1, 10**15))
    with pytest.raises(InvalidInput, match="rho"):
        GDP(mu=1e300).to("zcdp")


def test_approx_needs_exactly_one_of_delta_and_epsilon():
    for arguments in ({}, {"delta": 1e-6, "epsilon": 1.0}):
        with pytest.raises(InvalidInput, match="exactly one"):
            GDP(mu=1.0).to("approx", **arguments)
    with pytest.raises(InvalidInput, match="belong to kind 'approx'"):
        GDP(mu=1.0).to("zcdp", delta=1e-6)


def test_every_promise_becomes_approximate_from_either_side():
    assert PureDP(epsilon=1.0).to("approx", delta=1e-9) == ApproxDP(epsilon=1.0, delta=1e-9)
    assert PureDP(epsilon=1.0).to("approx", epsilon=1.0).delta == 5e-324
    for promise in (GDP(mu=0.5), ZCDP(rho=0.125)):
        there = promise.to("approx", delta=1e-6)
        back = promise.to("approx", epsilon=there.epsilon)
        assert back.delta <= 1e-6
        assert back.delta == pytest.approx(1e-6, rel=1e-12)
    assert GDP(mu=1e-9).to("approx", delta=0.1).epsilon == 5e-324


def test_a_promise_too_weak_to_say_anything_is_refused():
    for promise in (GDP(mu=1e6), ZCDP(rho=1e6), PureDP(epsilon=1e6)):
        with pytest.raises(InvalidInput, match="epsilon must be larger"):
            promise.to("approx", epsilon=1.0)


def test_a_planted_rounding_error_would_be_seen():
    mu = math.nextafter(gaussian_mu(1.0, 1e-6), 1)
    assert curve(mu, 1.0) > mpmath.mpf("1e-6")
