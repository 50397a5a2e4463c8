"""Normal noise on devices: as private as promised, unbiased, with the variance that is stated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import muhat as mh
from muhat.data.engine import record_integers
from muhat.noise import FRACTION_BITS
from muhat.privacy import gaussian_mu_squared
from muhat.protocols.randomizers.gaussian_randomizer import GaussianRandomizer
from muhat.records.columns import Batch

DOMAINS = [
    mh.Ball(3.0, dim=2, center=[1, -1]),
    mh.Box([0, -5], [1, 5]),
    mh.Simplex(dim=3),
    mh.Points(np.array([[0.0, 0.0], [1.0, 0.5], [0.2, 2.0]])),
    mh.LpBall(p=3, radius=1.0, dim=3),
    mh.Ball(1.0, dim=2) * mh.Box([0], [1]),
]
PROMISES = [mh.ZCDP(rho=0.5), mh.GDP(mu=2.0), mh.ApproxDP(epsilon=1.0, delta=1e-6)]
HOSTILE = [0.0, -0.0, 0.3, -7.5, 1e308, -1e308, 5e-324, math.inf, math.nan]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("promise", PROMISES, ids=repr)
def test_no_pair_of_records_is_further_apart_than_the_promise_allows(domain, promise):
    randomizer = GaussianRandomizer(domain, promise)
    query = randomizer.plan.recipe.query
    grid = np.array(list(itertools.product(HOSTILE, repeat=randomizer.record_dim)))
    with np.errstate(all="ignore"):
        integers = record_integers(query.lattice, Batch(len(grid), matrix=grid)).tolist()
    answers = {tuple(query.answer(row, 1)) for row in integers}
    allowed = gaussian_mu_squared(promise) * (1 << 2 * FRACTION_BITS)
    for one, other in itertools.combinations(answers, 2):
        assert sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) <= allowed


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_the_mean_is_unbiased_and_its_variance_is_the_stated_one(domain):
    # 20,000 messages of one record. The mean has 5.5 standard errors of room in each of at most
    # three coordinates; the variance, over 2,000 of them, 5.5·√(2/2000) = 17 %: P < 4e-7 together.
    n = 20_000
    randomizer = GaussianRandomizer(domain, mh.ZCDP(rho=0.5))
    record = np.full((1, randomizer.record_dim), 0.4)
    payloads = randomizer.randomize(np.repeat(record, n, axis=0), np.empty((n, 16), np.uint8))
    exact = GaussianRandomizer(domain, mh.ZCDP(rho=30_000.0))
    truth = exact.mean(
        np.empty((n, 16), np.uint8),
        exact.randomize(np.repeat(record, n, axis=0), np.empty((n, 16), np.uint8)),
    )
    spread = np.sqrt(np.diag(randomizer.covariance(n)) + np.diag(exact.covariance(n)))
    assert randomizer.valid(payloads).all()
    moved = np.abs(randomizer.mean(np.empty((n, 16), np.uint8), payloads) - truth)
    assert (moved <= 5.5 * spread).all()
    parts = [randomizer.mean(np.empty((1, 16), np.uint8), part[None]) for part in payloads[:2000]]
    room = 5.5 * math.sqrt(2 / len(parts))
    variance = float(np.trace(np.atleast_2d(np.cov(np.array(parts).T))))
    promised = float(np.trace(randomizer.covariance(1)))
    assert abs(variance / promised - 1) < room
    assert abs(variance / (promised * 1.5) - 1) > room  # half as much again would be noticed


def test_a_promise_that_normal_noise_cannot_keep_is_refused():
    with pytest.raises(mh.InvalidInput, match="no pure promise"):
        GaussianRandomizer(mh.Ball(1.0, dim=2), mh.PureDP(epsilon=1.0))
    with pytest.raises(mh.InvalidInput, match="promises nothing"):
        GaussianRandomizer(mh.Ball(1.0, dim=2), mh.GDP(mu=1000.0))


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("rho", [0.5, 30_000.0])
def test_honest_numbers_are_within_reach_and_false_ones_hardly_farther(domain, rho):
    randomizer = GaussianRandomizer(domain, mh.ZCDP(rho=rho))
    grid = np.array(list(itertools.product(HOSTILE, repeat=randomizer.record_dim)))
    payloads = randomizer.randomize(grid, np.empty((len(grid), 16), np.uint8))
    assert randomizer.valid(payloads).all()
    # Two records are μ = √(2ρ) apart, and noise is at most 10.
    assert randomizer.reach < (2 * math.sqrt(2 * rho) + 10.1) * 2**20
    false = np.full((1, len(payloads[0]) // 4), randomizer.reach + 1, "<i4")
    for wrong in (false, -false):
        assert not randomizer.valid(wrong.view(np.uint8)).any()
