"""Laplace noise on ℓ₁ balls and products: the least there is, nearly, and as large as stated."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import muhat as mh

PURE = mh.PureDP(epsilon=1.0)


@pytest.mark.parametrize("dim", [2, 3, 10, 50])
def test_an_l1_ball_has_laplace_noise_next_to_the_least(dim):
    ball = mh.LpBall(p=1, radius=3, dim=dim, scale=np.linspace(1, 2, dim))
    plan = mh.plan_mean(domain=ball, n=1000, privacy=PURE)
    assert plan.mechanism == "laplace"
    expected = math.sqrt(2) * 2 * np.linalg.norm(ball.half_widths) / 1000
    assert plan.expected_error == pytest.approx(expected, rel=1e-9)
    assert plan.certificate.ratio < 1.06
    error = dict(plan.alternatives)["ellipsoid-norm"]
    assert error / plan.expected_error == pytest.approx(math.sqrt((dim + 1) / 2), rel=1e-6)


@pytest.mark.parametrize("parts", [(5, 30), (20, 20, 20)])
def test_the_parts_of_a_product_share_the_promise_as_is_best(parts):
    domain = math.prod((mh.Simplex(dim=d) for d in parts[1:]), start=mh.Simplex(dim=parts[0]))
    plan = mh.plan_mean(domain=domain, n=1000, privacy=PURE)
    assert plan.mechanism == "laplace"
    alone = [math.sqrt(8 * (d - 1)) / 1000 for d in parts]
    best = sum(size ** (2 / 3) for size in alone) ** 1.5
    assert plan.expected_error == pytest.approx(best, rel=1e-6)
    assert dict(plan.alternatives)["ellipsoid-norm"] > 1.2 * best


HEAVY = {d: np.array([10.0] + [1.0] * (d - 1)) for d in (4, 6, 20)}


@pytest.mark.parametrize("dim", HEAVY)
@pytest.mark.parametrize("origin", [False, True])
def test_one_heavy_share_has_a_scale_of_its_own_and_the_total_no_noise(dim, origin):
    """Beside a search over all scales 1/s, with s + s' ≤ ε for any two of them."""
    domain, weights = mh.Simplex(dim, origin=origin), HEAVY[dim]
    plan = mh.plan_mean(domain=domain, n=1000, privacy=PURE, weights=weights, mechanism="laplace")
    rng = np.random.default_rng(dim)
    rates = rng.dirichlet(np.ones(2), 4000)
    scales = 1 / np.column_stack([rates.max(axis=1), *[rates.min(axis=1)] * (dim - 1)])
    squares = 2 * scales**2
    if not origin:
        squares = squares * (1 - squares / squares.sum(axis=1, keepdims=True))
    best = np.sqrt((squares * weights**2).sum(axis=1)).min() / 1000
    assert plan.expected_error == pytest.approx(best, rel=1e-3)
    equal = math.sqrt(8) * np.linalg.norm(weights) / 1000
    assert plan.expected_error < 0.91 * equal
    shares = rng.dirichlet(np.ones(dim + origin), 1000)[:, :dim]
    release = plan.release(shares)
    if not origin:
        assert release.value.sum() == pytest.approx(1.0, abs=1e-12)


def test_a_table_of_shares_attains_its_sensitivity_and_is_refused_if_louder():
    plan = mh.plan_mean(domain=mh.Simplex(6), n=1000, privacy=PURE, weights=HEAVY[6])
    query, law = plan.recipe.query, plan.recipe.law
    moved = max(np.abs(one - other).sum() for one in query.table for other in query.table)
    declared = query.sensitivity(1, mh.Neighbors.SUBSTITUTE, 1)
    assert declared * 999_999 / 1_000_000 < moved <= declared <= law.unit
    louder = replace(query, table=np.rint(query.table * 1.001))
    with pytest.raises(AssertionError, match="more sensitive"):
        replace(plan.recipe, query=louder)


def test_a_secret_number_of_shares_keeps_one_scale():
    # One that comes or goes moves one part alone.
    plans = [
        mh.plan_sum(domain=mh.Simplex(20), n=None, privacy=PURE, weights=w, mechanism="laplace")
        for w in (HEAVY[20], np.ones(20))
    ]
    assert np.ptp(plans[0].recipe.scales) == 0
    assert (plans[0].recipe.scales == plans[1].recipe.scales).all()


@pytest.mark.parametrize("weights", [np.ones(6), HEAVY[6]], ids=["equal", "heavy"])
def test_intervals_of_shares_are_those_of_sums_of_laplace_noise(weights):
    """20,000 draws of the noise: 5.5 standard errors of every coverage, a covariance's too.

    At 50 % an interval of one Laplace variable of the same variance would be too short.
    """
    domain = mh.Simplex(6)
    plan = mh.plan_mean(domain=domain, n=1000, privacy=PURE, weights=weights, mechanism="laplace")
    spread, trials = plan.recipe.sum_spread, 20_000
    drawn = np.random.default_rng(3).laplace(size=(trials, 6)) @ spread.factor.T
    for confidence in (0.5, 0.95, 0.999):
        held = (np.abs(drawn) <= spread.half_widths(confidence, joint=False)).mean(axis=0)
        allowed = 5.5 * math.sqrt(confidence * (1 - confidence) / trials)
        assert (np.abs(held - confidence) < allowed + 1e-4).all()
    assert drawn.var(axis=0) == pytest.approx(
        spread.standard_error**2, rel=5.5 * math.sqrt(5 / trials)
    )
    one = spread.scales * spread.law.quantile(0.5, 6)
    held = (np.abs(drawn) <= one).mean(axis=0).min()
    assert 0.5 - held > 5.5 * math.sqrt(0.25 / trials)
    together = (np.abs(drawn) <= spread.half_widths(0.9, joint=True)).all(axis=1).mean()
    assert together > 0.9 - 5.5 * math.sqrt(0.09 / trials)


@pytest.mark.parametrize("size", [6, 20, 100])
def test_categories_have_the_noise_of_their_counts(size):
    """Of tables of counts with a public total; no worse than Laplace noise for each of them."""
    plan = mh.plan_mean(domain=mh.Points(np.eye(size)[::-1]), n=1000, privacy=PURE)
    counts = mh.plan_queries(mh.workloads.identity(size), privacy=PURE, neighbors="substitute")
    assert plan.mechanism == "balanced"
    assert plan.expected_error == pytest.approx(counts.expected_error / 1000, rel=1e-9)
    alternatives = dict(plan.alternatives)
    assert alternatives["laplace"] == pytest.approx(math.sqrt(8 * size) / 1000, rel=1e-9)
    assert alternatives["ellipsoid-norm"] == pytest.approx(
        math.sqrt(2 * size * (size - 1)) / 1000, rel=1e-6
    )
    told = np.eye(size)[np.arange(4000) % 3]
    release = mh.mean(told, domain=plan.domain, n=4000, privacy=PURE)
    # Beyond 22 scales once in e^22, for a hundred numbers: P < 1e-7.
    assert (np.abs(release.value - told.mean(axis=0)) < 22 * 2 / 4000).all()
    assert (release.value[:3] > 0.3).all()


def test_corners_of_an_l1_ball_have_the_noise_of_the_ball():
    corners = mh.LpBall(p=1, dim=8, scale=np.arange(1, 9), center=np.full(8, 3.0))
    for kind in ("mean", "sum"):
        planner = {"mean": mh.plan_mean, "sum": mh.plan_sum}[kind]
        plans = [
            planner(domain=K, n=1000, privacy=PURE)
            for K in (corners, mh.Points(corners.vertices()))
        ]
        assert plans[0].mechanism == plans[1].mechanism == "laplace"
        assert plans[0].expected_error == pytest.approx(plans[1].expected_error, rel=1e-9)
        told = np.repeat(corners.vertices()[:4], 250, axis=0)
        truth = told.mean(axis=0) if kind == "mean" else told.sum(axis=0)
        off = np.abs(plans[1].release(told).value - truth)
        assert (off < 22 * plans[1].recipe.scales / (1000 if kind == "mean" else 1)).all()


def test_few_corners_keep_the_noise_of_the_ellipsoid():
    plan = mh.plan_mean(domain=mh.Simplex(3) * mh.Simplex(3), n=100, privacy=PURE)
    assert plan.mechanism == "ellipsoid-norm"
    assert "laplace" in dict(plan.alternatives)


def test_sparse_bodies_have_pure_noise_under_approximate_privacy_too():
    promise = mh.ApproxDP(epsilon=1.0, delta=1e-9)
    plan = mh.plan_mean(domain=mh.LpBall(p=1, dim=40), n=1000, privacy=promise)
    assert plan.mechanism == "laplace"
    normal = mh.plan_mean(
        domain=mh.LpBall(p=1, dim=40), n=1000, privacy=promise, mechanism="gaussian"
    )
    assert plan.expected_error < 0.6 * normal.expected_error


DOMAINS = [
    mh.LpBall(p=1, radius=2, dim=4, center=[1, 0, 5, 2], scale=[1, 2, 3, 0.1]),
    mh.Simplex(20) * mh.Box([5, 5], [6, 7]),
    mh.Box([5, 5], [6, 7]) * mh.LpBall(p=1, dim=3) * mh.Choices(6, 2),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("statistic", ["mean", "sum"])
def test_what_is_released_is_about_the_clipped_records(domain, statistic):
    # Of 22 numbers at most, each beyond 22 scales of its noise once in e^22: P < 1e-7.
    x = domain.center + np.random.default_rng(7).normal(size=(3000, domain.dim)) * 0.3
    kept = domain.clip(x)
    planner, truth = (
        (mh.plan_mean, kept.mean(axis=0))
        if statistic == "mean"
        else (mh.plan_sum, kept.sum(axis=0))
    )
    plan = planner(domain=domain, n=3000, privacy=PURE, mechanism="laplace")
    release = plan.release(x)
    off = np.abs(release.value - truth) / (release.standard_error / math.sqrt(2))
    assert off.max() < 22
    # A centre that is counted twice, or not at all, would be seen.
    size = 1 if statistic == "mean" else 3000
    assert (domain.center * size / release.standard_error).max() > 100


def test_a_sum_of_a_secret_number_of_records_is_measured_from_zero():
    domain = mh.LpBall(p=1, dim=3) * mh.Box([5, 5], [6, 7]) * mh.Simplex(30)
    x = domain.center + np.random.default_rng(8).normal(size=(2000, domain.dim)) * 0.2
    plan = mh.plan_sum(domain=domain, n=None, privacy=PURE)
    assert plan.mechanism == "laplace"
    release = plan.release(x)
    off = release.value - domain.clip(x).sum(axis=0)
    assert (np.abs(off) < 22 * release.standard_error / math.sqrt(2)).all()


def test_the_noise_has_its_law():
    # 8000 numbers in 20 cells that are equally likely: a false alarm rate of 1e-7.
    from scipy.stats import chi2, laplace

    ball = mh.LpBall(p=1, dim=2, scale=[1, 5])
    plan = mh.plan_mean(domain=ball, n=10, privacy=PURE)
    recipe = plan.recipe
    noise = np.array([[float(x) for x in recipe.run([0, 0], 10)] for _ in range(4000)])
    scale = 2 / PURE.epsilon
    counts, _ = np.histogram(laplace.cdf(noise.ravel() / scale), 20, (0, 1))
    distance = float(np.sum((counts - 400) ** 2 / 400))
    assert distance < chi2.isf(1e-7, 19)
    wrong, _ = np.histogram(laplace.cdf(noise.ravel() / scale / 1.2), 20, (0, 1))
    assert float(np.sum((wrong - 400) ** 2 / 400)) > 2 * chi2.isf(1e-7, 19)
    assert plan.recipe.to_domain([1, 1]).tolist() == [1.0, 5.0]


def test_records_that_are_clipped_elsewhere_are_clipped_there():
    inner = mh.Ball(0.5, dim=2)
    for domain in (mh.Box([-1, -1], [1, 1]), mh.LpBall(p=1, dim=2)):
        plan = mh.plan_mean(
            domain=domain, clip=inner, n=1_000_000, privacy=mh.PureDP(8.0), mechanism="laplace"
        )
        release = plan.release(np.tile([1.0, 0.0], (1_000_000, 1)))
        assert release.value == pytest.approx([0.5, 0.0], abs=1e-4)
