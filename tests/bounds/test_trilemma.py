"""Bias, accuracy, privacy: the sharpened bound against formulas, brute force and mechanisms."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
import sys

import mpmath
import numpy as np
import pytest
from scipy import integrate

from muhat import bounds
from muhat.bounds.score import QUARTER, Score
from muhat.bounds.trilemma_search import Landscape, distances, log_moment, peak
from muhat.errors import InvalidInput
from muhat.privacy import GDP, ZCDP, ApproxDP, PureDP

PROMISES = [
    PureDP(epsilon=0.01),
    PureDP(epsilon=1.0),
    PureDP(epsilon=20.0),
    ApproxDP(epsilon=1.0, delta=1e-6),
    ApproxDP(epsilon=0.1, delta=1e-3),
    ZCDP(rho=0.1),
    ZCDP(rho=3.0),
    GDP(mu=1.0),
]


def design(n, epsilon, delta, bias, low, high, order=2.0, interval=1.0):
    """The bound at one interval, from the formula of the design alone."""
    growth = math.expm1(epsilon)

    def integrand(log_p):
        p = math.exp(log_p)
        q = (1 - delta) * growth**2 / ((1 + p * growth) * (math.exp(epsilon) - p * growth))
        q += delta / (p * (1 - p))
        return min(n * math.sqrt(q), math.sqrt(n / (p * (1 - p)))) * p

    start = max(low, high * 1e-14)
    total = integrate.quad(integrand, math.log(start), math.log(high), limit=500, epsrel=1e-10)[0]
    grid = np.linspace(low, high, 2001)
    h = grid * (1 - grid) * (grid ** (order - 1) + (1 - grid) ** (order - 1))
    v = min(float(np.max(h)) ** (-1 / order), interval / high)
    return (v * (high - low) - 2 * bias) / total


@pytest.mark.parametrize(
    ("n", "epsilon", "delta", "bias", "printed", "best"),
    [
        (1000, 1.0, 0.0, 1e-3, 0.1199, 0.11994),
        (1000, 1.0, 1e-6, 1e-3, 0.1053, 0.10778),
        (10_000, 0.5, 1e-8, 1e-4, 0.178, 0.18954),
    ],
)
def test_the_reference_values_are_reached(n, epsilon, delta, bias, printed, best):
    """`printed` is the best with a = 0; for δ > 0 a positive a is better still."""
    value = bounds.trilemma(n=n, epsilon=epsilon, delta=delta, bias=bias).value
    assert value == pytest.approx(best, rel=1e-4)
    from_zero = max(
        design(n, epsilon, delta, bias, 0, b) for b in np.geomspace(5 * bias**2, 100 * bias**2, 60)
    )
    assert from_zero == pytest.approx(printed, rel=5e-3)
    assert from_zero * (1 - 1e-5) <= value <= from_zero * 1.07


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.3, 1e-5), (6.0, 1e-9)])
@pytest.mark.parametrize("order", [1.3, 2.0, 5.0])
def test_the_search_finds_what_a_grid_finds(epsilon, delta, order):
    n, bias = 200, 1e-3
    value = bounds.trilemma(n=n, epsilon=epsilon, delta=delta, bias=bias, moment_order=order).value
    power = order / (order - 1)
    highs = np.geomspace(max(bias**power, 1e-12), 0.5, 25)
    grid = max(
        design(n, epsilon, delta, bias, share * high, high, order)
        for high in highs
        for share in (0.0, 0.01, 0.1, 0.3, 0.7)
    )
    assert value >= grid * (1 - 1e-5)


@pytest.mark.parametrize("bias", [1e-100, 1e-12, 1e-6, 1e-4])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0])
def test_the_closed_form_of_pure_privacy_and_two_moments(bias, epsilon):
    """1/(16nβ sinh(ε/2)), up to v = 1/√(b(1−b)) for 1/√b, which is next to nothing for a small β.

    From above too: a lower bound must not exceed what the formula can give.
    """
    n = 7
    closed = 1 / (16 * n * bias * math.sinh(epsilon / 2))
    value = bounds.trilemma(n=n, epsilon=epsilon, bias=bias).value
    assert closed * (1 - 1e-5) <= value <= closed * (1 + 40 * bias + 1e-12)


@pytest.mark.parametrize("bias", [1e-150, 1e-200, 1e-300, 5e-324])
def test_biases_whose_squares_are_no_floats_give_less_and_never_more(bias):
    closed = 1 / (16 * 7 * math.sinh(0.5)) / bias if bias > 1e-305 else math.inf
    assert 1e100 < bounds.trilemma(n=7, epsilon=1.0, bias=bias).value <= closed * (1 + 1e-9)


def clipped_laplace(n, epsilon, bias, order, interval):
    """The root of the mean square error that the noisy clipped mean is proved to stay below."""
    constant = (order - 1) ** (order - 1) / order**order
    pad = (constant / bias) ** (1 / (order - 1))
    noise = (interval + 2 * pad) / (epsilon * n)
    return math.sqrt(1 / n + bias**2 + 2 * noise**2)


def test_no_mechanism_is_below_it():
    biases = np.geomspace(1e-8, 0.3, 9)
    for n, epsilon, order, interval in itertools.product(
        [10, 10**5], [0.01, 1.0, 50.0], [2.0, 8.0], [0.1, 1.0, 100.0]
    ):
        achieved = [clipped_laplace(n, epsilon, bias, order, interval) for bias in biases]
        for delta in (0.0, 1e-9):
            curve = bounds.trilemma_curve(
                biases, n=n, epsilon=epsilon, delta=delta, moment_order=order, interval=interval
            )
            assert (curve <= achieved).all()


def test_name_and_shame_is_not_below_it():
    """Each record is published as x/δ with probability δ: (0, δ)-DP, unbiased.

    For means in [−½, ½] and E(X − μ)⁴ ≤ 1 its mean square error is at most (1 + ¼)/(nδ): the
    second moment of every record is at most 1 + ¼.
    """
    for n, delta in itertools.product([1, 30, 1000], [1e-6, 1e-3, 0.1]):
        found = bounds.trilemma(n=n, epsilon=1e-9, delta=delta, moment_order=4.0)
        assert found.strongest.value <= math.sqrt(1.25 / (n * delta))


def count_mechanism(n, loss, clip, rng):
    """A two-sided geometric count of n bits, processed at random: the law for every count."""
    top = n + clip
    values = np.arange(-clip, top + 1)
    law = np.exp(-loss * np.abs(values[None, :] - np.arange(n + 1)[:, None]))
    inner = law * (1 - math.exp(-loss)) / (1 + math.exp(-loss))
    inner[:, 0] = np.exp(-loss * (np.arange(n + 1) + clip)) / (1 + math.exp(-loss))
    inner[:, -1] = np.exp(-loss * (top - np.arange(n + 1))) / (1 + math.exp(-loss))
    assert np.allclose(inner.sum(axis=1), 1)
    return inner, rng.normal(size=values.size) + values * rng.choice([0.0, 1.0])


def speed_and_error(law, values, n, p, target):
    """d E[M]/dp and the root mean square error at p, exactly."""
    counts = np.arange(n + 1)
    choose = np.array([math.comb(n, int(k)) for k in counts], dtype=float)
    weights = choose * p**counts * (1 - p) ** (n - counts)
    slopes = weights * (counts - n * p) / (p * (1 - p))
    means, squares = law @ values, law @ (values - target) ** 2
    return float(slopes @ means), math.sqrt(float(weights @ squares))


def test_the_speed_of_private_answers_is_bounded():
    """|g'| ≤ α·min{n√Q, √(n/x)} for random processings of exact mechanisms, n = 1 … 6."""
    rng = np.random.default_rng(1)
    closest = 0.0
    for _ in range(400):
        n = int(rng.integers(1, 7))
        loss, p = math.exp(rng.uniform(-3, 2)), float(rng.uniform(0.001, 0.999))
        law, values = count_mechanism(n, loss, int(rng.integers(0, 4)), rng)
        slope, error = speed_and_error(law, values, n, p, float(values.mean()))
        leak = float(rng.choice([0.0, 0.2]))
        if leak:  # with probability δ everything is published
            shown = np.eye(n + 1)
            law = np.hstack([(1 - leak) * law, leak * shown])
            values = np.concatenate([values, rng.normal(size=n + 1)])
            slope, error = speed_and_error(law, values, n, p, 0.0)
        score = Score.of(n, ApproxDP(epsilon=loss, delta=leak) if leak else PureDP(epsilon=loss))
        theta = math.asin(math.sqrt(min(p, 1 - p)))
        x = p * (1 - p)
        limit = math.exp(score.log_speed(np.array([theta]))[0]) / (2 * math.sqrt(x))
        assert abs(slope) <= error * limit * (1 + 1e-9)
        closest = max(closest, abs(slope) / (error * limit))
    assert closest > 0.5  # a constant smaller by half would be seen


def test_randomised_response_meets_the_speed_exactly():
    """One bit: the best estimate of p has equality in the Cauchy–Schwarz inequality."""
    for loss, p in itertools.product([0.1, 1.0, 3.0], [0.01, 0.3, 0.5]):
        keep = 1 / (1 + math.exp(-loss))
        law = np.array([[keep, 1 - keep], [1 - keep, keep]])
        seen = np.array([1 - p, p]) @ law
        score_of_output = (law[1] - law[0]) / seen
        slope, error = speed_and_error(law, score_of_output, 1, p, 0.0)
        theta = math.asin(math.sqrt(p))
        log_speed = Score.of(1, PureDP(epsilon=loss)).log_speed(np.array([theta]))[0]
        limit = math.exp(log_speed) / (2 * math.sqrt(p * (1 - p)))
        assert slope == pytest.approx(error * limit, rel=1e-9)


def test_gaussian_noise_obeys_the_bound_for_concentrated_privacy():
    """N(0, 1) and N(μ, 1) weighted p to 1 − p: xQ ≤ κx/(1 + κx), κ = e^{μ²} − 1."""
    for mu, p in itertools.product([0.1, 1.0, 2.0], [1e-4, 0.05, 0.5, 0.9]):

        def excess(y, mu=mu, p=p):
            one, zero = math.exp(-((y - mu) ** 2) / 2), math.exp(-(y**2) / 2)
            return (one - zero) ** 2 / (p * one + (1 - p) * zero) / math.sqrt(2 * math.pi)

        q = integrate.quad(excess, -15, 15 + mu, limit=400)[0]
        theta = np.array([math.asin(math.sqrt(min(p, 1 - p)))])
        share = math.exp(2 * Score.of(1, GDP(mu=mu)).log_root(theta)[0])
        assert p * (1 - p) * q <= share * (1 + 1e-9)
        assert share == pytest.approx(
            math.exp(2 * Score.of(1, ZCDP(rho=mu**2 / 2)).log_root(theta)[0])
        )


@pytest.mark.parametrize("privacy", PROMISES, ids=str)
@pytest.mark.parametrize("n", [1, 1000, 10**6])
def test_the_integral_is_rounded_up_and_by_little(privacy, n):
    score = Score.of(n, privacy)
    kappa, delta = mpmath.exp(score.log_gain), score.leak

    def speed(theta):
        x = mpmath.sin(2 * theta) ** 2 / 4
        share = delta + (1 - delta) * kappa * x / (1 + kappa * x)
        return 2 * mpmath.sqrt(n) * min(mpmath.sqrt(n * share), 1)

    for low, high in [(0.0, 1e-3), (1e-4, 0.3), (0.1, 1.2), (0.0, math.pi / 2)]:
        cuts = {mpmath.mpf(low), mpmath.mpf(high), mpmath.mpf(QUARTER)}
        cuts |= {mpmath.mpf(score.turning), mpmath.pi / 2 - score.turning}
        cuts |= {mpmath.mpf(high) * mpmath.mpf(10) ** -k for k in range(1, 7)}
        inside = sorted(cut for cut in cuts if low <= cut <= high)
        exact = mpmath.quad(speed, inside, maxdegree=7)
        assert exact * (1 - 1e-9) <= score.integral(low, high) <= exact * (1 + 4e-6)


@pytest.mark.parametrize("order", [1.001, 1.5, 2.0, 3.0, 3.001, 4.0, 11.0, 300.0])
def test_the_moments_have_the_peak_that_is_claimed(order):
    p = np.concatenate([np.geomspace(1e-9, 0.5, 20001), 1 - np.geomspace(1e-3, 0.5, 5001)[::-1]])
    h = p * (1 - p) * (p ** (order - 1) + (1 - p) ** (order - 1))
    theta = peak(order)
    top = math.exp(order * log_moment(np.array([theta]), order)[0])
    assert top == pytest.approx(h.max(), rel=1e-5)
    assert top >= h.max() * (1 - 1e-12)
    rng = np.random.default_rng(3)
    for low, high in np.sort(rng.choice(p, size=(100, 2)), axis=1):
        largest = h[(low <= p) & (p <= high)].max()
        ends = np.arcsin(np.sqrt(np.array([low]))), np.arcsin(np.sqrt(np.array([high])))
        v = distances(*ends, order, math.inf)[0]
        assert v**order * largest <= 1 + 1e-9


def test_it_is_monotone():
    def values(name, numbers, **more):
        base = {"n": 500, "epsilon": 0.5, "delta": 1e-7, "bias": 1e-3, **more}
        return [bounds.trilemma(**{**base, name: number}).value for number in numbers]

    for name, numbers in {
        "n": [1, 10, 100, 10**4, 10**6],
        "epsilon": [1e-6, 1e-3, 0.1, 1.0, 10.0, 700.0],
        "delta": [0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.5],
        "bias": [0.0, 1e-9, 1e-6, 1e-3, 0.01, 0.1, 0.4, 0.6, 10.0],
        "moment_order": [1.2, 1.5, 2.0, 2.5, 4.0, 20.0, math.inf],
    }.items():
        found = values(name, numbers)
        tolerance = [value * (1 + 1e-5) for value in found]
        assert all(later <= earlier for earlier, later in zip(tolerance, found[1:], strict=False))
    longer = values("interval", [0.01, 0.1, 1.0, 10.0])
    assert longer == sorted(longer)


def test_scales_are_units():
    plain = bounds.trilemma(n=100, epsilon=1.0, delta=1e-6, bias=0.002)
    scaled = bounds.trilemma(
        n=100, epsilon=1.0, delta=1e-6, bias=2.0, scale=1000.0, interval=1000.0
    )
    for one, other in zip(plain, scaled, strict=True):
        if one.value is not None:
            assert other.value == pytest.approx(1000 * one.value, rel=1e-9)


def test_the_papers_constants_stand_beside_it():
    n, epsilon, delta, bias = 1000, 1.0, 1e-8, 1e-3
    found = {b.theorem: b for b in bounds.trilemma(n, epsilon, delta, bias)}
    sinh, tau = math.sinh(epsilon), math.sqrt(delta)
    best = max(
        1 / (32 * n * sinh * gamma + 16 * n * tau / gamma)
        for gamma in np.geomspace(16 * bias, 0.2, 20001)
    )
    assert found["K24 Theorem 2.1"].value == pytest.approx(best, rel=1e-6)
    rough = 1 / (64 * n * sinh * max(16 * bias, math.sqrt(tau / (2 * sinh))))
    assert found["K24 Corollary 2.3"].value == pytest.approx(rough)
    floor = 1 / math.sqrt(6 * (n + 2))
    assert found["K24 Theorem 2.4"].value == pytest.approx(max(rough, floor))
    assert found["K24 Theorem 2.8, by shuffling"].value is None
    assert "rate" in found["K24 Theorem 2.8, by shuffling"].sentence()


def test_ours_is_never_below_the_papers():
    for n, epsilon, delta, bias, order in itertools.product(
        [1, 10**4], [0.001, 1.0, 30.0], [0.0, 1e-10, 1e-3], [0.0, 0.0125], [1.5, 2.0, 4.0]
    ):
        found = bounds.trilemma(n, epsilon, delta, bias, order)
        assert found.strongest.source == "derived"
        for bound in found:
            if bound.source == "paper" and bound.theorem != "K24 Theorem 2.4":
                assert (bound.value or 0) <= found.value


def test_outside_their_range_the_papers_theorems_have_no_number():
    cases = [
        ({"bias": 0.02}, "1/80"),
        ({"bias": 0.001, "interval": 0.5}, "interval"),
        ({"bias": 0.001, "moment_order": math.inf}, "finite"),
    ]
    for change, word in cases:
        found = bounds.trilemma(**{"n": 10, "epsilon": 1.0, **change})
        (theorem,) = [b for b in found if b.theorem == "K24 Theorem 2.1"]
        assert theorem.value is None
        assert word in theorem.sentence()
    leaky = bounds.trilemma(n=10, epsilon=0.1, delta=0.01, bias=0.001)
    assert [b.value is None for b in leaky if "2.1" in b.theorem] == [False]
    assert [b.value is None for b in leaky if "2.4" in b.theorem] == [True]
    assert not [b for b in bounds.trilemma(n=10, privacy=ZCDP(rho=1.0)) if b.source == "paper"]


def test_the_floor_is_that_of_van_trees():
    found = bounds.trilemma(n=1000, epsilon=1.0, bias=0.1)
    assert found.floor == pytest.approx(1 / math.sqrt(1000 + 4 * math.pi**2))
    assert found.strongest.value == found.floor
    fourth = bounds.trilemma(n=10**6, epsilon=1.0, bias=0.1, moment_order=4.0)
    assert fourth.floor >= 1 / math.sqrt(10**6 * math.sqrt(3) + 4 * math.pi**2) * (1 - 1e-9)


def test_the_floor_is_below_what_is_possible_without_privacy():
    """For λ = 2 the sample mean errs by 1/√n, for λ = ∞ too; the middle by half the interval."""
    for n, order, interval in itertools.product(
        [1, 30, 10**5], [2.0, 3.0, math.inf], [1e-3, 1.0, 50.0]
    ):
        floor = bounds.trilemma(
            n=n, epsilon=9.0, bias=1.0, moment_order=order, interval=interval
        ).floor
        assert 0 < floor <= min(1 / math.sqrt(n), interval / 2)


def test_no_bias_and_no_delta_is_impossible():
    for privacy in (PureDP(epsilon=1.0), ZCDP(rho=1.0), GDP(mu=1.0)):
        found = bounds.trilemma(n=100, privacy=privacy)
        assert found.impossible
        assert found.value == math.inf
        assert found.to_dict()["value"] is None
        assert found.sentence().startswith("No ")
        assert "∞" in repr(found)
    assert bounds.trilemma(n=100, epsilon=1.0, delta=1e-6, moment_order=1.9).impossible
    possible = [
        bounds.trilemma(n=100, epsilon=1.0, delta=1e-6),
        bounds.trilemma(n=100, epsilon=1.0, moment_order=math.inf),
        bounds.trilemma(n=100, epsilon=1.0, bias=1e-300),
    ]
    for found in possible:
        assert not found.impossible
        assert math.isfinite(found.value)
    # λ = 2, a → b → 0: the information about a rare record is at most n²δ/p.
    assert possible[0].value == pytest.approx(1 / (100 * math.sqrt(1e-6)), rel=1e-3)
    assert possible[1].value >= 1 / (2 * 100 * math.sinh(0.5)) * (1 - 1e-5)


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": 1, "epsilon": 700.0, "bias": 1e-3},
        {"n": 1, "epsilon": 1e5, "bias": 1e-3},
        {"n": 1, "epsilon": 1e-300, "bias": 1e-3},
        {"n": 2**53 - 1, "epsilon": 1.0, "bias": 1e-12},
        {"n": 10, "epsilon": 1.0, "bias": 5e-324},
        {"n": 10, "epsilon": 1.0, "bias": 1e300},
        {"n": 10, "epsilon": 1.0, "bias": 1e-3, "moment_order": 1 + 1e-9},
        {"n": 10, "epsilon": 1.0, "bias": 1e-3, "moment_order": 1e12},
        {"n": 10, "epsilon": 1.0, "bias": 1e-3, "moment_order": math.inf},
        {"n": 10, "epsilon": 1.0, "delta": 1 - 1e-16, "bias": 1e-3},
        {"n": 10, "epsilon": 1.0, "delta": 5e-324, "bias": 0.0},
        {"n": 10, "epsilon": 1.0, "bias": 1e-3, "scale": 1e-140, "interval": 1e-5},
        {"n": 10, "epsilon": 1.0, "bias": 1e-3, "scale": 1e300, "interval": 1e305},
        {"n": 10, "privacy": ZCDP(rho=1e-12), "bias": 1e-3},
        {"n": 10, "privacy": ZCDP(rho=1e6), "bias": 1e-3},
        {"n": 10, "privacy": GDP(mu=1e3), "bias": 1e-3},
    ],
)
def test_extreme_arguments_give_finite_numbers(arguments):
    found = bounds.trilemma(**arguments)
    assert 0 <= found.value <= sys.float_info.max
    assert 0 < found.floor <= found.strongest.value
    assert found.sentence() in repr(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_bias_as_large_as_the_interval_leaves_the_other_bounds():
    found = bounds.trilemma(n=20, epsilon=0.01, bias=0.6)
    assert found.value == 0
    assert found.strongest.theorem == "B8, any bias"
    assert "More is known" in repr(found)


def test_the_bound_for_any_bias_is_below_the_best_mechanism():
    """The better of a clipped mean of any bias and the middle of the interval."""
    for n, epsilon in itertools.product([10, 1000, 10**5], [0.01, 0.1, 1.0]):
        achieved = min(
            [clipped_laplace(n, epsilon, bias, 2.0, 1.0) for bias in np.geomspace(1e-3, 1, 200)]
            + [0.5]
        )
        found = bounds.trilemma(n=n, epsilon=epsilon, bias=10.0).strongest.value
        assert achieved / 6 < found <= achieved


def test_the_curve_is_the_strongest_bound_at_every_bias():
    biases = np.geomspace(1e-5, 2, 12).reshape(3, 4)
    more = {"n": 300, "epsilon": 0.7, "delta": 1e-7, "moment_order": 3.0, "scale": 2.0}
    curve = bounds.trilemma_curve(biases, **more)
    assert curve.shape == biases.shape
    for bias, value in zip(biases.ravel(), curve.ravel(), strict=True):
        alone = bounds.trilemma(bias=float(bias), **more).strongest.value
        assert value == pytest.approx(alone, rel=1e-4)
    with_zero = bounds.trilemma_curve([0.0, 0.1], n=10, privacy=ZCDP(rho=1.0))
    assert with_zero[0] == math.inf
    assert math.isfinite(with_zero[1])
    assert bounds.trilemma_curve([], n=10, epsilon=1.0).shape == (0,)


def test_a_planted_error_in_the_rounding_is_seen():
    """The certified value is below the unrounded one, and by no more than 10⁻⁴."""
    landscape = Landscape(Score.of(1000, PureDP(epsilon=1.0)), 2.0, 1.0, 1e-3)
    exact = max(design(1000, 1.0, 0.0, 1e-3, 0, b) for b in np.linspace(1.55e-5, 1.65e-5, 11))
    assert exact * (1 - 1e-5) <= landscape.best(1e-3) <= exact * (1 + 1e-5)
    assert landscape.best(1e-3 * 1.001) < exact * (1 - 5e-4)


def test_it_reads_well_and_travels():
    found = bounds.trilemma(n=1000, epsilon=1.0, delta=1e-6, bias=0.001)
    text = repr(found)
    assert "B8, sharpened" in text
    assert "rate only" in text
    assert "mean in an interval of length 1 and Var X ≤ 1" in found.sentence()
    assert found._repr_html_().count("<tr>") == len(found) + 1
    assert [b.datasets for b in found] == ["class"] * len(found)
    assert found[0].sentence().startswith("Every 0.001-biased (1, 1e-06)-DP mechanism")
    assert pickle.loads(pickle.dumps(found)) == found == copy.deepcopy(found)
    assert len({found, copy.copy(found)}) == 1
    with pytest.raises(AttributeError):
        found.bias = 2.0


@pytest.mark.parametrize(
    "change",
    [
        {"n": 0},
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": None},
        {"epsilon": math.inf},
        {"delta": 1.0},
        {"delta": 2.0},
        {"delta": -0.1},
        {"bias": -1e-9},
        {"bias": math.nan},
        {"moment_order": 1.0},
        {"moment_order": math.nan},
        {"moment_order": -math.inf},
        {"scale": 0.0},
        {"interval": 0.0},
        {"interval": math.inf},
        {"interval": 1e-200},
        {"privacy": ZCDP(rho=1.0)},
        {"epsilon": None, "delta": 0.0, "privacy": 1.0},
    ],
)
def test_wrong_arguments_are_refused(change):
    arguments = {"n": 10, "epsilon": 1.0, "delta": 1e-6, "bias": 0.1, **change}
    with pytest.raises(InvalidInput):
        bounds.trilemma(**arguments)
    arguments["biases"] = [arguments.pop("bias")]
    with pytest.raises(InvalidInput):
        bounds.trilemma_curve(**arguments)


# --- other moments, and secret numbers of records --------------------------------------------


def test_at_order_two_moments_are_the_trilemma_itself():
    for privacy in (PureDP(epsilon=1.0), ApproxDP(epsilon=0.5, delta=1e-8)):
        whole = bounds.trilemma(1000, bias=0.002, privacy=privacy)
        ours, paper = bounds.trilemma_moment(1000, bias=0.002, privacy=privacy, error_order=2.0)
        assert whole.value <= ours.value < whole.value * (1 + 1e-5)
        (printed,) = (b for b in whole.bounds if b.theorem == "K24 Theorem 2.1")
        assert paper.value == pytest.approx(printed.value)


@pytest.mark.parametrize("order", [1.0, 1.3, 2.0, 5.0])
def test_moments_grow_with_their_order_and_are_above_the_papers(order):
    for privacy in (PureDP(epsilon=0.5), ApproxDP(epsilon=0.5, delta=1e-7)):
        for bias in (1e-4, 1e-2):
            found = bounds.trilemma_moment(400, bias=bias, privacy=privacy, error_order=order)
            if order == 1 and privacy.point[1]:
                assert found[0].value is None
                continue
            ours, paper = found
            assert ours.value > paper.value
            higher, _ = bounds.trilemma_moment(
                400, bias=bias, privacy=privacy, error_order=1.5 * order
            )
            assert higher.value >= ours.value


def test_a_private_mean_of_low_bias_errs_more_in_every_moment():
    """Clipped at c = 1/(4β), with Laplace noise: E|M − μ| ≤ √(Var X/n) + β + scale."""
    for n, epsilon, bias in ((1000, 1.0, 1e-3), (10**5, 0.1, 1e-3), (100, 2.0, 1e-2)):
        scale = (1 + 2 / (4 * bias)) / (epsilon * n)
        absolute = 1 / math.sqrt(n) + bias + scale
        ours, _ = bounds.trilemma_moment(n, bias=bias, privacy=PureDP(epsilon=epsilon))
        assert 0 < ours.value < absolute


def test_the_mean_absolute_error_has_a_closed_integral():
    """a = 0, λ = 2, v = b^−½ or more: (√b − 2β)/(n·ln(1 + b(e^ε − 1)))."""
    n, epsilon, bias = 1000, 1.0, 1e-3
    ours, _ = bounds.trilemma_moment(n, bias=bias, privacy=PureDP(epsilon=epsilon))
    b = np.exp(np.linspace(-15, math.log(0.5), 2000))
    least = (np.sqrt(b) - 2 * bias) / (n * np.log1p(b * math.expm1(epsilon)))
    assert 0.99 * least.max() < ours.value < 1.2 * least.max()


def test_a_secret_number_of_records_is_two_steps():
    one = bounds.trilemma(
        500, bias=1e-3, privacy=ApproxDP(epsilon=0.5, delta=1e-6), neighbors="add-remove"
    )
    two = ApproxDP(epsilon=1.0, delta=1e-6 * (1 + math.exp(0.5)))
    assert one.value == pytest.approx(bounds.trilemma(500, bias=1e-3, privacy=two).value, rel=1e-9)
    assert "secret" in one.bounds[0].assumptions[0]
    assert bounds.trilemma(500, 1.0, neighbors="add-remove").impossible
    with pytest.raises(InvalidInput):
        bounds.trilemma_moment(9, bias=0.1, privacy=PureDP(epsilon=1.0), error_order=0.5)
    (endless, _) = bounds.trilemma_moment(9, bias=0.0, privacy=PureDP(epsilon=1.0))
    assert endless.value > 1e300
