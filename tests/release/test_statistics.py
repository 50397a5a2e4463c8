"""Releases in bulk: errors, covariances, laws and coverage are as predicted.

Comparisons allow 5.5 standard errors (a false alarm below 4e-8 each); distribution tests pass
at p > 1e-6. Every test has a planted error that it must catch, large enough to be missed with
a probability below 1e-6 too.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import muhat as mh

RNG = np.random.default_rng(6)
X = RNG.normal(size=(50, 2)) * [3, 0.3] + [1, 2]
DOMAINS = {
    "box": mh.Box([-9, 0], [9, 3]),
    "ball": mh.Ball(radius=5, dim=2, center=[1, 2]),
    "ellipsoid": mh.Ellipsoid([[30, 2], [2, 1]], center=[1, 2]),
}
PROMISES = {
    "zcdp": mh.ZCDP(rho=0.5),
    "approx": mh.ApproxDP(epsilon=1, delta=1e-6),
    "pure": mh.PureDP(epsilon=1),
}
ALLOWED = 5.5
SKEWED = 7.0
"""Standard errors of mean products, which are measured too: those of squares of Laplace noise, at
2,500 of them, are 5.5 off once in 200,000 times, and 7 once in 10 million."""


LISTED = RNG.normal(size=(30, 2)) * [3, 0.3]
FURTHER = {
    "l3 ball": (mh.LpBall(p=3, radius=4, dim=2, center=[1, 2], scale=[1, 0.2]), X),
    "nuclear norm": (mh.SchattenBall(p=1, shape=(2, 1), radius=3), X),
    "simplex": (mh.Simplex(dim=2, origin=True), np.abs(X) / 9),
    "tensors": (mh.MomentTensor(order=2, dim=2), X / 5),
    "zonotope": (mh.Zonotope([[2.0, 1.0], [0.0, 0.3]]), X / 3),
    "points": (mh.Points(LISTED), LISTED[RNG.integers(0, 30, 50)]),
}


def draw(plan: mh.Plan, releases: int, data: np.ndarray = X) -> np.ndarray:
    return np.array([plan.release(data).value for _ in range(releases)])


def exact_mean(plan: mh.Plan, data: np.ndarray = X) -> np.ndarray:
    return plan.domain.clip(data).mean(axis=0)


def deviations_of_mean(noise: np.ndarray, covariance: np.ndarray) -> float:
    return float(np.max(np.abs(noise.mean(axis=0)) / np.sqrt(np.diag(covariance) / len(noise))))


def deviations_of_covariance(noise: np.ndarray, covariance: np.ndarray) -> float:
    products = noise[:, :, None] * noise[:, None, :]
    error = products.mean(axis=0) - covariance
    return float(np.max(np.abs(error) / (products.std(axis=0) / math.sqrt(len(noise)))))


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("domain", DOMAINS)
def test_ten_thousand_releases_have_the_predicted_error_and_covariance(domain, promise):
    plan = mh.plan_mean(domain=DOMAINS[domain], n=50, privacy=PROMISES[promise])
    noise = draw(plan, 10_000) - exact_mean(plan)
    assert deviations_of_mean(noise, plan.covariance) < ALLOWED
    assert deviations_of_covariance(noise, plan.covariance) < SKEWED
    assert deviations_of_covariance(noise * 1.25, plan.covariance) > SKEWED
    assert deviations_of_mean(noise + plan.standard_error / 5, plan.covariance) > ALLOWED
    squares = (noise**2).sum(axis=1)
    spread = squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - plan.expected_error**2) < ALLOWED * spread


@pytest.mark.parametrize("promise", ["zcdp", "pure"])
@pytest.mark.parametrize("name", FURTHER)
def test_releases_of_further_domains_have_the_predicted_covariance(name, promise):
    domain, data = FURTHER[name]
    plan = mh.plan_mean(domain=domain, n=50, privacy=PROMISES[promise])
    source = domain.preimage()
    clipped = source.domain.clip(data)
    mean = (clipped if source.matrix is None else clipped @ source.matrix.T).mean(axis=0)
    noise = draw(plan, 4_000, data) - mean
    assert deviations_of_mean(noise, plan.covariance) < ALLOWED
    assert deviations_of_covariance(noise, plan.covariance) < SKEWED
    assert deviations_of_covariance(noise * 1.8, plan.covariance) > SKEWED
    assert deviations_of_mean(noise + plan.standard_error / 2, plan.covariance) > ALLOWED


@pytest.mark.slow
@pytest.mark.parametrize("p", [4, math.inf])
@pytest.mark.parametrize("promise", ["zcdp", "pure"])
@pytest.mark.parametrize("domain", DOMAINS)
def test_the_error_in_other_norms_is_as_predicted(domain, promise, p):
    plan = mh.plan_mean(domain=DOMAINS[domain], n=50, privacy=PROMISES[promise], p=p)
    noise = draw(plan, 5_000) - exact_mean(plan)
    squares = np.linalg.norm(noise, p, axis=1) ** 2
    spread = squares.std() / math.sqrt(len(squares))
    # A simulated prediction is rounded up by 4 of its own standard errors, less than 1 %.
    high = 1.02 if plan.expected_error_method == "monte carlo" else 1.0
    assert squares.mean() < plan.expected_error**2 + SKEWED * spread
    assert squares.mean() > plan.expected_error**2 / high - SKEWED * spread
    assert squares.mean() * 1.5 > plan.expected_error**2 + SKEWED * spread


@pytest.mark.parametrize("rho", [1e-6, 0.5, 50.0])
def test_the_noise_of_a_release_is_normal_at_every_privacy_level(rho):
    plan = mh.plan_mean(domain=mh.Box([0], [1]), n=1, privacy=mh.ZCDP(rho=rho))
    data = np.array([0.25])
    z = (draw(plan, 3_000, data)[:, 0] - 0.25) * math.sqrt(2 * rho)
    assert stats.kstest(z, "norm").pvalue > 1e-6
    assert stats.kstest(z * 1.8, "norm").pvalue < 1e-6


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 20.0])
def test_the_noise_of_a_pure_release_is_laplace_at_every_privacy_level(epsilon):
    plan = mh.plan_mean(
        domain=mh.Box([0], [1]), n=1, privacy=mh.PureDP(epsilon=epsilon), mechanism="laplace"
    )
    z = (draw(plan, 3_000, np.array([0.25]))[:, 0] - 0.25) * epsilon
    assert stats.kstest(z, "laplace").pvalue > 1e-6
    assert stats.kstest(z * 2.0, "laplace").pvalue < 1e-6


def misses(plan: mh.Plan, releases: int, truth: np.ndarray, data: np.ndarray, **options) -> float:
    """How many standard errors the number of missed intervals lies above its expectation."""
    missed = 0
    for _ in range(releases):
        lower, upper = plan.release(data).interval(0.9, **options)
        outside = (truth < lower) | (truth > upper)
        missed += outside.any() if options.get("simultaneous") else outside[0]
    return (missed - 0.1 * releases) / math.sqrt(0.09 * releases)


@pytest.mark.slow
@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("n", [50, None])
@pytest.mark.parametrize("promise", ["zcdp", "pure"])
@pytest.mark.parametrize("domain", DOMAINS)
def test_intervals_cover_as_often_as_they_say(domain, promise, n, simultaneous):
    plan = mh.plan_mean(domain=DOMAINS[domain], n=n, privacy=PROMISES[promise])
    truth = exact_mean(plan)
    above = misses(plan, 2_000, truth, X, simultaneous=simultaneous)
    assert above < ALLOWED
    if not simultaneous:
        assert above > -ALLOWED  # exact, not just safe
    wrong = truth + 1.2 * (plan.standard_error if n else plan.error_at(50))
    assert misses(plan, 2_000, wrong, X, simultaneous=simultaneous) > ALLOWED


@pytest.mark.slow
def test_a_population_interval_covers_the_population_mean():
    plan = mh.plan_mean(domain=mh.Box([0], [1]), n=100, privacy=mh.ZCDP(rho=0.5))
    rng = np.random.default_rng(8)
    missed = 0
    for _ in range(1_000):
        data = (rng.random(100) < 0.5).astype(float)
        lower, upper = plan.release(data).interval(0.9, target="population")
        missed += not lower[0] <= 0.5 <= upper[0]
    assert missed < 100 + ALLOWED * math.sqrt(90)


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, None])
@pytest.mark.parametrize("promise", ["zcdp", "pure"])
@pytest.mark.parametrize("domain", DOMAINS)
def test_sums_are_unbiased_with_the_predicted_covariance(domain, promise, n):
    plan = mh.plan_sum(domain=DOMAINS[domain], n=n, privacy=PROMISES[promise])
    noise = draw(plan, 4_000) - plan.domain.clip(X).sum(axis=0)
    assert deviations_of_mean(noise, plan.covariance) < ALLOWED
    assert deviations_of_covariance(noise, plan.covariance) < SKEWED
    assert deviations_of_covariance(noise * 1.4, plan.covariance) > SKEWED


@pytest.mark.slow
@pytest.mark.parametrize("promise", ["zcdp", "pure"])
def test_the_ratio_has_its_asymptotic_error(promise):
    data = np.repeat(X, 40, axis=0)
    plan = mh.plan_mean(domain=DOMAINS["box"], n=None, privacy=PROMISES[promise])
    releases = [plan.release(data) for _ in range(3_000)]
    noise = np.array([release.value for release in releases]) - exact_mean(plan)
    stated = releases[0].covariance
    assert deviations_of_covariance(noise, stated) < ALLOWED + 2
    assert deviations_of_covariance(noise * 1.6, stated) > ALLOWED + 2
