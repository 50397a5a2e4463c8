"""The noise of the ball at its own δ: upper sums against quadrature, what is kept and refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.noise.euclidean_norm import EuclideanNorm
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laws import SHAPES
from muhat.noise.norm_at_delta import NormAtDelta, _beyond, _radii, delta_at_most
from muhat.noise.spread import Spread

PROMISE = mh.ApproxDP(epsilon=1.0, delta=1e-6)


def quadrature(dim: int, moved: float, epsilon: float) -> float:
    """δ by two trapezoidal rules."""
    from scipy.stats import gamma

    r = np.linspace(1e-3, dim + 14 * dim**0.5 + 20, 1201)[:, None]
    c = np.linspace(-1, 1, 3001)
    density = (1 - c * c) ** ((dim - 3) / 2)
    density /= np.trapezoid(density, c)
    loss = np.sqrt(r**2 - 2 * r * moved * c + moved**2) - r
    lost = np.maximum(0, -np.expm1(epsilon - loss))
    return float(np.trapezoid(np.trapezoid(lost * density, c) * gamma(dim).pdf(r[:, 0]), r[:, 0]))


@pytest.mark.parametrize(
    ("dim", "moved", "epsilon"),
    [(4, 1.2, 1.0), (5, 0.7, 0.5), (16, 1.21, 1.0), (33, 2.5, 2.0), (64, 2.0, 1.0), (8, 0.5, 0.1)],
)
def test_upper_sums_are_above_the_integral_and_not_by_much(dim, moved, epsilon):
    exact = quadrature(dim, moved, epsilon)
    bound = delta_at_most(dim, Fraction(moved), Fraction(epsilon))
    assert exact * (1 - 1e-4) < bound < 1.15 * exact
    assert delta_at_most(dim, Fraction(moved), Fraction(epsilon), 4) >= bound * (1 - 1e-9)


def test_moves_farther_lose_more_and_none_below_epsilon():
    moves = [Fraction(k, 20) for k in range(19, 60)]
    found = [delta_at_most(12, moved, Fraction(1), 8) for moved in moves]
    assert found == sorted(found)
    assert found[0] == found[1] == 0 < found[2]
    assert delta_at_most(12, Fraction(100), Fraction(1)) == 1


def test_chances_of_radii_cover_everything():
    for dim in (4, 64):
        radii, chances = _radii(dim, 256)
        assert radii[0] == 0
        assert 1 <= sum(map(Fraction, chances)) < 1 + Fraction(1, 10**9)
        low, high = _beyond(dim, Fraction(radii[-1]))
        assert 0 < low < high < low * (1 + Fraction(1, 10**20)) < Fraction(1, 10**9)


def test_it_keeps_more_than_pure_noise_and_planted_moves_are_refused():
    law = NormAtDelta(16)
    unit = law.unit
    assert law.keeps(PROMISE, Fraction(121, 100) * unit)
    assert not EuclideanNorm().keeps(PROMISE, Fraction(121, 100) * unit)
    assert quadrature(16, 1.225, 1.0) > 1e-6
    assert not law.keeps(PROMISE, Fraction(1225, 1000) * unit)
    assert not law.keeps(mh.ApproxDP(epsilon=0.98, delta=1e-6), Fraction(121, 100) * unit)
    assert not NormAtDelta(8).keeps(PROMISE, Fraction(121, 100) * unit)
    for promise in (
        mh.PureDP(epsilon=1.2),
        mh.ZCDP(rho=0.46),
        Strength(NoiseKind.PURE, Fraction(144, 100)),
        Strength(NoiseKind.NORMAL, Fraction(4)),
    ):
        assert not law.keeps(promise, Fraction(121, 100) * unit)
    # It stays purely private at its own strength.
    assert law.keeps(mh.PureDP(epsilon=1.21), Fraction(121, 100) * unit)


def test_it_is_drawn_written_and_read_for_its_own_dimension():
    law = NormAtDelta(5)
    assert law.sample(5).shape == (5,)
    with pytest.raises(AssertionError, match="own dimension"):
        law.sample(4)
    assert SHAPES[law.name] is NormAtDelta
    spread = Spread(law, 5, np.ones(5))
    assert Spread.from_dict(spread.to_dict()).law == law
    for dim in (3, 65):
        with pytest.raises(mh.InvalidInput, match="4 to 64"):
            NormAtDelta(dim)


@pytest.mark.parametrize(
    ("dim", "error"), [(4, 4.45), (8, 8.05), (16, 13.62), (32, 21.4), (64, 32.0)]
)
def test_balls_under_approximate_privacy_have_less_error(dim, error):
    plan = mh.plan_mean(domain=mh.Ball(radius=0.5, dim=dim), n=1, privacy=PROMISE)
    assert plan.mechanism == "ellipsoid-norm-delta"
    assert plan.expected_error == pytest.approx(error, rel=2e-3)
    recipe = plan.recipe
    with pytest.raises(AssertionError, match="more sensitive"):
        replace(recipe, protection=replace(recipe.protection, contributions=2))
    with pytest.raises(AssertionError, match="more sensitive"):
        replace(recipe, law=EuclideanNorm())


@pytest.mark.parametrize(
    ("domain", "gain"),
    [
        (mh.LpBall(p=3, dim=16), 0.17),
        (mh.Ball(1, 8) * mh.Ball(2, 8), 0.17),
        (mh.Box([0.0] * 56, [1.0] * 56), 0.06),
    ],
    ids=repr,
)
def test_other_bodies_have_the_noise_of_their_ellipsoid_at_its_own_delta(domain, gain):
    plan = mh.plan_mean(domain=domain, n=1000, privacy=PROMISE)
    assert plan.mechanism == "ellipsoid-norm-delta"
    assert plan.expected_error < (1 - gain) * min(error for _, error in plan.alternatives)
    recipe = plan.recipe
    with pytest.raises(AssertionError, match="more sensitive"):
        replace(recipe, protection=replace(recipe.protection, contributions=2))
    centre = np.tile(domain.center, (1000, 1))
    # Beyond 20 deviations of a coordinate once in 1e9.
    off = plan.release(centre).value - domain.center
    assert (np.abs(off) < 20 * plan.standard_error).all()


def test_the_rows_of_the_query_decide_and_not_the_dimension():
    flat = np.hstack([np.random.default_rng(1).normal(size=(30, 8)), np.zeros((30, 8))])
    for domain, rows in ((mh.Points(flat), 8), (mh.Simplex(17), 16)):
        plan = mh.plan_mean(
            domain=domain, n=1000, privacy=PROMISE, mechanism="ellipsoid-norm-delta"
        )
        assert plan.recipe.law == NormAtDelta(rows)
        assert plan.expected_error > 0
    with pytest.raises(mh.InvalidInput, match="4 to 64"):
        mh.plan_mean(
            domain=mh.Points(flat[:3]), n=9, privacy=PROMISE, mechanism="ellipsoid-norm-delta"
        )


def test_elsewhere_it_does_not_compete_and_is_refused_by_name():
    for domain, promise in (
        (mh.Ball(1, 3), PROMISE),
        (mh.Ball(1, 65), PROMISE),
        (mh.Ball(1, 8), mh.PureDP(epsilon=1.0)),
    ):
        with pytest.raises(mh.InvalidInput, match="approximate privacy, in 4 to 64"):
            mh.plan_mean(domain=domain, n=9, privacy=promise, mechanism="ellipsoid-norm-delta")
