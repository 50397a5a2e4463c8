"""The predicted errors of answers beyond p = 2: simulated alike for every law, or bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import muhat as mh
from muhat.noise.laplace_sums import LaplaceSums
from muhat.noise.laws import LAWS
from muhat.release.answer_noise import AnswerNoise
from muhat.release.certificate import Certificate


def laplace_noise(rows):
    decoder = np.array(rows, np.float64)
    scales = np.linalg.norm(decoder, axis=1)
    return AnswerNoise(LAWS["laplace"], scales, False, decoder, sums=LaplaceSums.of_rows([decoder]))


@pytest.mark.parametrize("p", [3, 6, math.inf])
def test_correlated_laplace_noise_is_simulated(p):
    decoder = np.tril(np.ones((12, 12)))
    error, method = laplace_noise(decoder).root_mean_square(p)
    assert method == "monte carlo"
    drawn = np.random.default_rng(3).laplace(size=(100_000, 12)) @ decoder.T
    squares = np.linalg.norm(drawn, p, axis=1) ** 2
    # Four standard errors were added to the prediction, and the measurement has its own.
    spread = squares.std() / math.sqrt(len(squares))
    assert squares.mean() - 6 * spread < error**2 < 1.03 * squares.mean() + 6 * spread


@pytest.mark.parametrize(
    "row", [[1.0], [3.0, 4.0], [1.0] * 8, [1.0] * 7 + [0.5], [5.0] + [1.0] * 40, [0.0, 2.0]]
)
def test_moments_of_a_sum_of_laplace_variables_are_bounded(row):
    noise = laplace_noise([row])
    a = np.array(row)
    # E z⁴ = 24 and E z² = 2 for one variable.
    fourth = 12 * np.sum(a**2) ** 2 + 12 * np.sum(a**4)
    bound = float(noise.scales[0] * noise._moment(4.0)[0]) ** 4
    assert fourth <= bound * (1 + 1e-12)
    assert noise.bound(4) >= noise.standard_error[0] * (1 - 1e-12)
    if len(set(row)) == 1:
        assert bound == pytest.approx(fourth)


def test_without_coefficients_one_variable_bounds_all():
    noise = AnswerNoise(LAWS["laplace"], np.array([2.0]), False)
    assert float(noise._moment(4.0)[0]) == pytest.approx(24**0.25)


def test_pure_and_normal_noise_are_compared_by_the_same_measure():
    promise = mh.ApproxDP(epsilon=0.5, delta=1e-9)
    plan = mh.plan_queries(mh.workloads.prefix(32), privacy=promise, p=math.inf)
    assert plan.mechanism == "laplace noise, cells and sums"
    errors = dict(plan.alternatives)
    assert errors["laplace noise, every cell"] > plan.expected_error
    assert errors["normal noise, optimised by interior point"] > 2.2 * plan.expected_error
    assert plan.expected_error_method == "monte carlo"


def test_if_one_has_a_bound_only_all_are_ranked_by_bounds(monkeypatch):
    promise = mh.ApproxDP(epsilon=0.5, delta=1e-9)
    monkeypatch.setattr("muhat.release.answer_noise.LARGEST_SIMULATION", 150)
    for p in (4, math.inf):
        plan = mh.plan_queries(mh.workloads.ranges(16), privacy=promise, p=p)
        assert plan.expected_error_method == "bound"
        assert (
            plan["queries"].noise.bound(p)
            == plan.expected_error
            <= min(dict(plan.alternatives).values())
        )
        assert "error of the answers: at most " in plan.describe()
        assert "would have had an error of at most: " in plan.describe()


def test_a_bound_is_printed_as_a_bound_and_nothing_else_is():
    for method in ("exact", "quadrature", "monte carlo", "bound"):
        text = Certificate("ℓ₄ error", 4.0, 1.25, method, ()).describe()
        assert ("at most" in text) == (method == "bound")
    counter = mh.stream.prefix_counter(1, mh.ZCDP(rho=0.5), p=4)
    assert counter.expected_error == pytest.approx(1.0, rel=1e-5)
    assert "Root mean square ℓ₄ error of all running sums: at most 1." in counter.describe()
    longer = mh.stream.prefix_counter(100, mh.ZCDP(rho=0.5), p=math.inf)
    assert longer.certificate.error <= np.linalg.norm(longer.standard_errors)
