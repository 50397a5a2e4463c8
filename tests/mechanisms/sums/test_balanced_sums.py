"""Balanced noise on means of points and of parts: sensitivity, plans, releases, refusals."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.errors import DataChanged
from muhat.noise.balanced import Balanced
from muhat.noise.balanced_laplace import BalancedLaplace
from muhat.privacy import Neighbors

PURE = mh.PureDP(epsilon=1.0)
CUBE = np.array(list(itertools.product([0.0, 2.0], repeat=3)))[:6]
BODIES = {
    "shares": (mh.Simplex(4), BalancedLaplace),
    "shares of a part": (mh.Simplex(3, origin=True), BalancedLaplace),
    "moved": (mh.Simplex(4) + np.array([1.0, 0.0, -2.0, 0.5]), BalancedLaplace),
    "categories": (mh.Points(np.eye(4)), Balanced),
    "corners": (mh.Points(CUBE), Balanced),
}


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("name", BODIES)
def test_replaced_records_move_integers_as_far_as_is_said_and_not_their_total(name, contributions):
    domain, kind = BODIES[name]
    plan = mh.plan_mean(domain=domain, n=8, privacy=PURE, contributions=contributions)
    assert plan.mechanism == "balanced"
    recipe = plan.recipe
    query, law = recipe.query, recipe.law
    assert isinstance(law, kind)
    declared = query.sensitivity(1.0, Neighbors.SUBSTITUTE, contributions)
    assert law.keeps(PURE, declared)
    assert not law.keeps(PURE, declared * Fraction(1_000_001, 1_000_000) + 1)

    def integers(rows):
        found = exact_sums(open_source(rows, dim=domain.dim), query.lattice)
        return query.answer(found.total, found.rows)

    corners = domain.vertices()
    rng, largest = np.random.default_rng(5), 0
    for trial in range(60):
        rows = domain.clip(rng.normal(size=(8, domain.dim)) * 3)
        other = rows.copy()
        if trial % 2:
            rows[:contributions], other[:contributions] = corners[trial % 3], corners[3]
        else:
            other[:contributions] = rng.normal(size=domain.dim) * 10.0 ** rng.integers(-3, 300)
        ours, theirs = integers(rows), integers(other)
        assert sum(ours) == sum(theirs)
        largest = max(largest, sum(abs(a - b) for a, b in zip(ours, theirs, strict=True)))
    assert declared * 0.999 < largest <= declared
    with pytest.raises(AssertionError, match="more sensitive"):
        replace(recipe, protection=replace(recipe.protection, contributions=contributions + 1))
    with pytest.raises(AssertionError, match="no change of a total"):
        replace(recipe, protection=replace(recipe.protection, neighbors=Neighbors.ADD_REMOVE))
    smaller = replace(law, **{"cells" if kind is Balanced else "parts": 3})
    with pytest.raises(AssertionError, match="fewer numbers"):
        replace(recipe, law=smaller)


def test_planted_noise_of_a_total_that_moves_is_refused():
    shares = mh.plan_mean(domain=mh.Simplex(4), n=8, privacy=PURE)
    columns = mh.plan_mean(domain=mh.Box([0.0] * 4, [1.0] * 4), n=8, privacy=PURE)
    with pytest.raises(AssertionError, match="no change of a total"):
        replace(columns.recipe, law=shares.recipe.law)


def test_another_number_of_records_is_noticed():
    query = mh.plan_mean(domain=mh.Simplex(3), n=8, privacy=PURE).recipe.query
    whole = 1 << query.lattice.part_bits
    assert sum(query.answer([whole, 0, whole], 2)) == 2 * query._whole
    with pytest.raises(DataChanged):
        query.answer([whole, 0, whole], 3)


@pytest.mark.parametrize("name", BODIES)
def test_releases_have_the_stated_errors_and_intervals(name):
    """600 releases: false alarms below 1e-7; half the noise is caught."""
    domain, _ = BODIES[name]
    number, times = 50, 600
    rows = domain.clip(np.random.default_rng(2).normal(size=(number, domain.dim)))
    plan = mh.plan_mean(domain=domain, n=number, privacy=mh.PureDP(epsilon=2.0))
    assert plan.mechanism == "balanced"
    truth = rows.mean(axis=0)
    errors, held, together = [], [], []
    for _ in range(times):
        release = plan.release(rows)
        errors.append(release.value - truth)
        (low, high), (least, most) = release.interval(), release.interval(simultaneous=True)
        held.append((low <= truth + 1e-12) & (truth - 1e-12 <= high))
        together.append(((least <= truth + 1e-12) & (truth - 1e-12 <= most)).all())
    squares = np.sum(np.square(errors), axis=1)
    off = abs(squares.mean() - plan.expected_error**2)
    assert off < 6 * squares.std() / math.sqrt(times)
    assert off + 0.5 * plan.expected_error**2 > 6 * squares.std() / math.sqrt(times)
    wide = 5.6 * math.sqrt(0.05 * 0.95 / times)
    assert (np.mean(held, axis=0) > 0.95 - wide).all()
    assert np.mean(together) > 0.95 - wide
    ratio = np.std(errors, axis=0) / release.standard_error
    assert (np.abs(ratio - 1) < 5.6 * math.sqrt(5 / 4 / times)).all()
    assert release.covariance == pytest.approx(np.cov(np.array(errors).T), abs=0.3 * max(squares))
    again = mh.Release.from_json(release.to_json())
    assert again.interval()[0].tolist() == release.interval()[0].tolist()
    assert plan.certificate.ratio >= 1


def test_sums_of_categories_are_whole_and_have_their_total():
    told = np.eye(5)[np.arange(40) % 3]
    release = mh.sum(told, domain=mh.Points(np.eye(5)), n=40, privacy=PURE)
    assert release.mechanism == "balanced"
    assert np.allclose(release.value, np.rint(release.value), atol=1e-9)
    assert release.value.sum() == pytest.approx(40)


@pytest.mark.parametrize(
    "asked",
    [
        {"domain": mh.Simplex(4), "n": None},
        {"domain": mh.Simplex(2)},
        {"domain": mh.Ball(1, 3)},
        {"domain": mh.Points(np.random.default_rng(0).normal(size=(5, 3)))},
        {"domain": mh.Simplex(2000)},
        {"domain": mh.Simplex(4), "privacy": mh.PureDP(epsilon=1e-7), "contributions": 1000},
        {"domain": mh.Points(np.eye(4)), "privacy": mh.PureDP(epsilon=60)},
    ],
    ids=repr,
)
def test_what_it_is_not_for_has_other_noise_and_is_refused_by_name(asked):
    terms = {"n": 100, "privacy": PURE, **asked}
    planner = mh.plan_sum if terms["n"] is None else mh.plan_mean
    assert planner(**terms).mechanism != "balanced"
    with pytest.raises(mh.InvalidInput, match="balanced is for"):
        planner(**terms, mechanism="balanced")
