"""How far sums of stairs reach, beside their exact law; queries answered from cells with stairs."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import muhat as mh
from muhat.noise.stair_sums import law_of_sum, log_moment
from muhat.noise.stairs import Stairs


def exact_tail(coefficients, ratio, reach):
    """P(|Σ a_j z_j| > reach) for whole coefficients, by convolution."""
    size = 400
    z = np.arange(-size, size + 1)
    law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(z)
    total = np.ones(1)
    for a in coefficients:
        spread = np.zeros(2 * a * size + 1)
        spread[::a] = law
        total = np.convolve(total, spread)
    places = np.abs(np.arange(len(total)) - len(total) // 2)
    return float(total[places > reach].sum())


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("coefficients", [(1,), (1, 1, 1), (3, 1), (2, 2, 1, 1, 1), (1,) * 12])
def test_sums_are_rarely_farther_off(epsilon, coefficients):
    law = Stairs(1, 1, Fraction(np.exp(-epsilon)))
    row = np.array([coefficients], np.float64) * law.unit  # z is counted in units of the law
    for miss in (0.2, 0.05, 1e-3):
        (reach,) = law.sums([row]).reaches(miss)
        assert exact_tail(coefficients, float(law.ratio), reach) <= miss
        if len(set(coefficients)) == 1:
            # The least whole number that will do.
            assert exact_tail(coefficients, float(law.ratio), reach - 1) > miss
        elif epsilon < 4 and miss < 0.01:
            # Chernoff's bound is not far off where misses are rare.
            assert exact_tail(coefficients, float(law.ratio), reach / 2) > miss


@pytest.mark.parametrize("ratio", [0.3, 1 - 2.0**-8, 1 - 2.0**-12])
@pytest.mark.parametrize("number", [1, 30, 1000])
def test_laws_of_sums_are_those_of_40_digits(ratio, number):
    """Far below what is counted as missed, even where the ratio is near 1.

    S is the difference of two sums of k geometric numbers.
    """
    half = round(20 * np.sqrt(2 * ratio * number) / (1 - ratio)) + 40
    found = law_of_sum(number, half, ratio)
    with mpmath.workdps(40):
        b = mpmath.mpf(ratio)
        for j in (0, 1, half // 40, half // 10):
            exact = b**j * mpmath.binomial(number - 1 + j, j) * (1 - b) ** (2 * number)
            exact *= mpmath.hyp2f1(number, number + j, j + 1, b * b)
            assert abs(found[j] - exact) < 2.0**-47 * found[0]
        for rate in (0.005, 0.3, 0.995):
            rate *= -np.log(ratio)
            exact = -mpmath.log(1 - 2 * b / (1 - b) ** 2 * (mpmath.cosh(rate) - 1))
            assert log_moment(np.array([rate]), ratio)[0] == pytest.approx(float(exact), rel=1e-12)


def test_queries_at_a_large_epsilon_have_stairs_on_cells():
    """Laplace noise on cells and sums has 5.3 where geometric noise on cells has 1.2."""
    plan = mh.plan_queries(
        mh.workloads.prefix(64), privacy=mh.PureDP(epsilon=8), neighbors="add-remove"
    )
    b = np.exp(-8.0)
    assert plan.mechanism == "stairs noise, every cell"
    least = np.sqrt(64 * 65 / 2) * np.sqrt(2 * b) / (1 - b)
    assert plan.expected_error == pytest.approx(least, rel=1e-6)
    assert plan.expected_error < 0.3 * min(error for _, error in plan.alternatives)


@pytest.mark.parametrize(
    "workload", [mh.workloads.prefix(16), mh.workloads.marginals((3, 4, 2), 2)], ids=["p", "m"]
)
def test_their_errors_and_intervals_hold(workload):
    """False alarms below 1e-6: 6 standard errors of what was seen, and of 95 %."""
    counts = np.random.default_rng(2).integers(0, 30, workload.shape[1])
    exact = workload.apply(counts.astype(np.float64))
    plan = mh.plan_queries(workload, privacy=mh.PureDP(epsilon=4), neighbors="add-remove")
    assert "stairs" in plan.mechanism
    squares, held = [], []
    for _ in range(150):
        release = plan.release(counts.reshape(workload.cells))
        squares.append(float(np.sum((release.value - exact) ** 2)))
        low, high = release.interval()
        held.append(np.mean((low <= exact) & (exact <= high)))
    spread = np.std(squares) / np.sqrt(len(squares))
    assert abs(np.mean(squares) - plan.expected_error**2) < 6 * spread
    assert np.mean(held) > 0.95 - 6 * np.sqrt(0.05 * 0.95 / len(held))
    again = mh.Release.from_json(release.to_json())
    assert np.array_equal(again.interval()[0], release.interval()[0])
