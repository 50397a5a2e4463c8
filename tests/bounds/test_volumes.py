"""The least pure noise for a convex body: attained by balls, below every noise, in 50 digits."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

import muhat as mh
from muhat.bounds.unbiased import SUBSTITUTION
from muhat.bounds.volumes import log_radial_square, volume_bound
from muhat.domains.norms import log_ball_volume


def stairs(dim, epsilon, start):
    """E‖Z‖² of the radial staircase whose first step ends at `start`, for the unit ball."""
    j = np.arange(math.ceil((dim + 2 + 12 * math.sqrt(dim + 2) + 60) / epsilon) + 3)
    with np.errstate(divide="ignore"):
        logs = np.log(start + j)
    peak = np.max((dim + 2) * logs - epsilon * j)
    above = np.sum(np.exp((dim + 2) * logs - epsilon * j - peak))
    below = np.sum(np.exp(dim * logs - epsilon * j - peak))
    return dim / (dim + 2) * above / below


def test_no_radial_noise_is_below_the_bound_on_five_hundred_settings():
    losses = (0.02, 0.1, 0.4, 1.0, 2.0, 3.5, 6.0, 10.0, 20.0)
    starts = (1e-3, 0.03, 0.1, 0.3, 0.45, 0.6, 0.8, 1.0, 1.7)
    settings = list(itertools.product((1, 2, 3, 7, 20, 64, 65), losses, starts))
    assert len(settings) >= 500
    for dim, epsilon, start in settings:
        bound = math.exp(log_radial_square(dim, epsilon))
        assert bound < stairs(dim, epsilon, start)
        assert bound < dim * (dim + 1) / epsilon**2  # the ball's own K-norm noise


@pytest.mark.parametrize(("dim", "epsilon"), [(1, 1.0), (1, 4.0), (2, 2.0), (3, 8.0), (10, 4.0)])
def test_the_best_stairs_touch_the_bound(dim, epsilon):
    least = min(stairs(dim, epsilon, start) for start in np.linspace(0.005, 1, 400))
    bound = math.exp(log_radial_square(dim, epsilon))
    assert bound < least < bound * 1.012
    # So a constant that is 2 % too large would be caught.
    assert 1.02 * bound > least


def test_in_one_dimension_it_is_the_staircase():
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        b = math.exp(-epsilon)
        known = ((b * (1 + b) / 2) ** (2 / 3) + b) / (1 - b) ** 2
        assert math.exp(log_radial_square(1, epsilon)) == pytest.approx(known, rel=2e-4)


@pytest.mark.parametrize(("dim", "epsilon"), [(1, "1"), (4, "3"), (12, "0.5"), (70, "2")])
def test_the_sum_is_positive_for_all_starts_in_fifty_digits(dim, epsilon):
    level = math.exp(log_radial_square(dim, float(epsilon))) * (dim + 2) / dim
    with mpmath.workdps(50):
        b = mpmath.exp(-mpmath.mpf(epsilon))
        for k in range(33):
            t = mpmath.mpf(k) / 32
            terms = range(int((dim + 90) / float(epsilon)) + 2)
            above = mpmath.fsum(b**j * (t + j) ** (dim + 2) for j in terms)
            assert above > level * mpmath.fsum(b**j * (t + j) ** dim for j in terms)


def test_volumes_of_balls_boxes_and_products():
    assert math.exp(log_ball_volume(2, 2)) == pytest.approx(math.pi)
    assert math.exp(log_ball_volume(3, 1)) == pytest.approx(8 / 6)
    assert math.exp(log_ball_volume(5, math.inf)) == pytest.approx(32)
    for domain, volume in (
        (mh.Ball(radius=3, dim=2, center=[5, 5]), 9 * math.pi),
        (mh.Box([0, 0, 0], [2, 4, 6]), 48.0),
        (mh.Ellipsoid(np.array([[4.0, 1.0], [1.0, 2.0]])), math.sqrt(7) * math.pi),
        (mh.LpBall(p=1, radius=2, dim=2), 8.0),
        (mh.Ball(radius=1, dim=2) * mh.Box([0], [1]), math.pi),
        (mh.Ball(radius=1, dim=2) + np.array([1.0, 2.0]), math.pi),
    ):
        found = domain.log_half_volume()
        assert found is not None
        assert math.exp(found) == pytest.approx(volume, rel=1e-9)
        assert math.exp(found) <= volume * (1 + 1e-15)
    assert mh.Points(np.eye(3)).log_half_volume() is None  # not convex


@pytest.mark.parametrize("seed", range(4))
def test_volumes_of_zonotopes_and_simplices_are_those_of_their_hulls(seed):
    from scipy.spatial import ConvexHull

    draws = np.random.default_rng(seed)
    A = draws.normal(size=(3, 6)) * np.array([[1.0], [10.0], [0.1]])
    corners = np.array(list(itertools.product([-1, 1], repeat=6))) @ A.T
    for domain in (mh.Zonotope(A), A @ mh.Box([0] * 6, [2] * 6), mh.Zonotope(A) + np.ones(3)):
        assert math.exp(domain.log_half_volume()) == pytest.approx(ConvexHull(corners).volume)
    weights = draws.uniform(0.2, 5, 4)
    for domain in (mh.Simplex(4), mh.Simplex(4, origin=True), mh.Simplex(4) + np.ones(4)):
        ends = domain.vertices() * weights
        apart = (ends[:, None] - ends[None]).reshape(-1, 4) / 2
        _, sizes, axes = np.linalg.svd(apart, full_matrices=False)
        rank, volume = domain.half_volume(weights)
        assert rank == np.sum(sizes > 1e-9)
        assert math.exp(volume) == pytest.approx(ConvexHull(apart @ axes[:rank].T).volume)
    both = mh.Simplex(4) * mh.Zonotope(A)
    rank, volume = both.half_volume(np.append(weights, [1.0, 2.0, 3.0]))
    parts = mh.Simplex(4).half_volume(weights), mh.Zonotope(A).half_volume(np.arange(1.0, 4))
    assert (rank, volume) == (6, pytest.approx(parts[0][1] + parts[1][1]))


def test_what_has_no_volume_or_too_many_parts_has_no_such_bound():
    given = {"privacy": mh.PureDP(epsilon=1.0)}
    flat = mh.Zonotope([[1.0, 2.0], [1.0, 2.0]])
    many = mh.Zonotope(np.random.default_rng(0).normal(size=(9, 24)))
    for domain in (flat, many, mh.Simplex(1), mh.Points(np.eye(3))):
        assert volume_bound(domain, 1.0, SUBSTITUTION, **given) == ()
    # The nearest of a flat in another norm is no linear map.
    assert volume_bound(mh.Simplex(3), 1.0, SUBSTITUTION, p=3, **given) == ()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 8.0])
def test_no_plan_for_shares_and_zonotopes_is_below_it_and_the_best_are_near(epsilon):
    """Noise on two of the parts of a whole hides a hexagon, which is nearly round."""
    hexagon = mh.Zonotope([[1.0, 0.5, -0.5], [0.0, 0.8, 0.8]])
    for domain, near in (
        (mh.Simplex(3), 1.11),
        (mh.Simplex(6), 1.5),
        (mh.Simplex(3, origin=True), 1.33),
        (hexagon, 1.11),
    ):
        for weights in (np.ones(domain.dim), np.linspace(1, 4, domain.dim)):
            plan = mh.plan_mean(
                domain=domain, n=100, privacy=mh.PureDP(epsilon=epsilon), weights=weights
            )
            (bound,) = (each for each in plan.certificate.bounds if each.theorem == "B12")
            assert bound.value < plan.expected_error
            if (weights == 1).all():
                assert plan.certificate.ratio < near
    shares = mh.plan_mean(domain=mh.Simplex(3), n=100, privacy=mh.PureDP(epsilon=0.1))
    assert shares.certificate.ratio < 1.005


@pytest.mark.parametrize("p", [2, 3, math.inf])
def test_the_body_may_have_any_shape_and_the_error_any_norm(p):
    """K-norm noise of the body itself, radius Gamma(d + 1, 1/ε), is never below."""
    draws = np.random.default_rng(5)
    weights = np.array([1.0, 3.0, 0.5])
    sides = np.array([1.0, 0.2, 2.0])
    noise = draws.gamma(4, 1.0, 20_000)[:, None] * draws.uniform(-1, 1, (20_000, 3)) * sides
    error = np.sqrt(np.mean(np.linalg.norm(noise * weights, p, axis=1) ** 2))
    (bound,) = volume_bound(
        mh.Box(-sides, sides),
        1.0,
        SUBSTITUTION,
        privacy=mh.PureDP(epsilon=1.0),
        p=p,
        weights=weights,
    )
    assert 0.6 * error < bound.value < error
    assert (bound.mechanisms, bound.datasets) == ("additive", "every")


def test_plans_of_pure_means_use_it():
    for domain, ratio in (
        (mh.Ball(radius=1, dim=2), 1.004),
        (mh.Ball(radius=1, dim=10), 1.00001),
        (mh.Ball(radius=1, dim=100), 1.00001),
        (mh.Box([0.0] * 10, [1.0] * 10), 1.10),
        (mh.Box([0.0] * 100, [1.0] * 100), 1.18),
    ):
        plan = mh.plan_mean(domain=domain, n=1000, privacy=mh.PureDP(epsilon=1.0))
        assert 1 <= plan.certificate.ratio < ratio
    total = mh.plan_sum(domain=mh.Ball(radius=2, dim=5), n=None, privacy=mh.PureDP(epsilon=1.0))
    assert 1 <= total.certificate.ratio < 1.001
    several = mh.plan_mean(
        domain=mh.Ball(radius=1, dim=5), n=100, privacy=mh.PureDP(epsilon=1.0), contributions=4
    )
    assert 1 <= several.certificate.ratio < 1.001


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-9, 100.0, 1e5, 1e300])
def test_extreme_promises_give_finite_bounds(epsilon):
    for dim in (1, 50, 10**6):
        domain, privacy = mh.Ball(1.0, dim=dim), mh.PureDP(epsilon=epsilon)
        (bound,) = volume_bound(domain, 1.0, SUBSTITUTION, privacy=privacy)
        assert 0 <= bound.value < math.inf


def test_other_promises_have_no_such_bound():
    for privacy in (mh.GDP(mu=1), mh.ApproxDP(epsilon=1, delta=1e-6)):
        assert volume_bound(mh.Ball(1.0, dim=2), 1.0, SUBSTITUTION, privacy=privacy) == ()
