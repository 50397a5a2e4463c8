"""value ≥ Γ ≥ floor to the last bit: closed forms, products and sums against 50 digits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import muhat as mh
from muhat.domains import MinkowskiSum
from muhat.ellipsoids import smallest_ellipsoid

mpmath.mp.dps = 50
INF = math.inf
ORDERS = [2, 2.5, 3, 4, 10, 77.7, INF]
CLOSE = mpmath.mpf("1e-12")


def exact(value):
    return mpmath.mpf(float(value))


def norm(values, p):
    """‖values‖_p with 50 digits; p may be an mpf."""
    if mpmath.isinf(p):
        return max(values)
    return mpmath.fsum(value**p for value in values) ** (1 / mpmath.mpf(p))


def inverse(p):
    return mpmath.mpf(0) if math.isinf(p) else 1 / exact(p)


def lp_truth(sides, r, p):
    order = inverse(p) + max(mpmath.mpf(0), mpmath.mpf("0.5") - inverse(r))
    return norm(sides, mpmath.inf if order == 0 else 1 / order)


def weighted(weights, sizes):
    return [exact(w) * s for w, s in zip(weights, sizes, strict=True)]


def check(found, truth):
    """Proved on both sides, and good to 1e-12."""
    value, floor = exact(found.value), exact(found.floor)
    assert value >= truth >= floor
    assert value - truth <= CLOSE * truth
    assert truth - floor <= CLOSE * truth


def random_sizes(rng, dim):
    return np.exp(rng.normal(size=dim) * rng.choice([0.1, 2.0, 8.0]))


def random_ball(rng, dim):
    """A random body of a closed form, and its Γ_p around K − c for weights and p."""
    kind = rng.integers(0, 5)
    sizes = random_sizes(rng, dim)
    center = rng.normal(size=dim) * 100
    if kind == 0:
        radius = float(sizes[0])
        half = [exact(radius)] * dim
        return mh.Ball(radius, dim, center), lambda w, p: norm(weighted(w, half), p)
    if kind == 1:
        box = mh.Box(center - sizes, center + sizes)
        half = [mpmath.mpf(int(b.numerator)) / int(b.denominator) for b in _halves(box)]
        return box, lambda w, p: lp_truth(weighted(w, half), INF, p)
    if kind == 2:
        half = [mpmath.sqrt(exact(s)) for s in sizes]
        return mh.Ellipsoid(sizes, center), lambda w, p: norm(weighted(w, half), p)
    if kind == 3:
        r, radius = float(rng.choice([1, 1.5, 2, 2.1, 3, 8, INF])), 0.7
        half = [exact(radius) * exact(s) for s in sizes]
        body = mh.LpBall(p=r, radius=radius, dim=dim, center=center, scale=sizes)
        return body, lambda w, p: lp_truth(weighted(w, half), r, p)
    root = rng.normal(size=(dim, dim)) + 2 * np.eye(dim)
    A = root @ root.T
    A = (A + A.T) / 2
    half = [mpmath.sqrt(exact(a)) for a in np.diag(A)]
    return mh.Ellipsoid(A, center), lambda w, p: norm(weighted(w, half), p)


def _halves(box):
    return [(high - low) / 2 for low, high in box.bounds]


@pytest.mark.parametrize("p", ORDERS)
def test_closed_forms_are_proved_on_both_sides(p):
    rng = np.random.default_rng(60)
    for _ in range(60):
        dim = int(rng.choice([1, 2, 3, 7, 40]))
        K, truth = random_ball(rng, dim)
        w = random_sizes(rng, dim) if rng.random() < 0.5 else np.ones(dim)
        check(smallest_ellipsoid(K, p, "shifted", weights=w), truth(w, p))
        check(smallest_ellipsoid(K, p, weights=w), 2 * truth(w, p))


@pytest.mark.parametrize("p", ORDERS)
def test_products_are_proved_on_both_sides(p):
    rng = np.random.default_rng(61)
    order = 2 / (1 + 2 * inverse(p))
    for _ in range(40):
        parts = [random_ball(rng, int(rng.integers(1, 6))) for _ in range(3)]
        K = mh.domains.Product([part for part, _ in parts])
        w = random_sizes(rng, K.dim)
        truth = norm([f(w[b], p) for (_, f), b in zip(parts, K.blocks, strict=True)], order)
        check(smallest_ellipsoid(K, p, "shifted", weights=w), truth)


@pytest.mark.parametrize("p", ORDERS)
def test_sums_are_proved_on_both_sides(p):
    """K + 3K = 4K, with K and 3K kept apart."""
    rng = np.random.default_rng(62)
    for _ in range(20):
        dim = int(rng.integers(1, 6))
        sizes = random_sizes(rng, dim)
        scaled = mh.Ellipsoid(sizes), mh.Ellipsoid(9 * sizes)
        w = random_sizes(rng, dim)
        roots = [mpmath.sqrt(exact(a)) for a in np.concatenate([sizes, 9 * sizes])]
        half = [a + b for a, b in zip(roots[:dim], roots[dim:], strict=True)]
        found = smallest_ellipsoid(MinkowskiSum(scaled), p, "shifted", weights=w)
        truth = norm(weighted(w, half), p)
        assert exact(found.value) >= truth >= exact(found.floor)
        assert exact(found.value) - truth <= CLOSE * truth


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("d", [2, 3, 10, 333])
def test_simplices_are_proved_on_both_sides(d, p):
    n = mpmath.mpf(d)
    size = n ** (inverse(p) - mpmath.mpf("0.5"))
    check(smallest_ellipsoid(mh.Simplex(d), p), size * mpmath.sqrt(2 * (n - 1)))
    check(smallest_ellipsoid(mh.Simplex(d), p, "shifted"), size * (n - 1) / mpmath.sqrt(n))
    cornered = mh.Simplex(d, origin=True)
    check(smallest_ellipsoid(cornered, p), size * mpmath.sqrt(2 * n * n / (n + 1)))
    a = (n - 1) ** 2
    y = (4 - a + mpmath.sqrt(a * a + 8 * a)) / 8
    w = y / n
    truth = size * ((n - 1) * mpmath.sqrt(w) + mpmath.sqrt(w * (1 - y)))
    check(smallest_ellipsoid(cornered, p, "shifted"), truth)
    check(smallest_ellipsoid(mh.Simplex(d), p, "symmetric"), n ** inverse(p))


@pytest.mark.parametrize("p", ORDERS)
def test_schatten_balls_are_proved_on_both_sides(p):
    for r in (1, 1.7, 2, 3, INF):
        K = mh.SchattenBall(p=r, shape=(3, 5), radius=1.3)
        reach = exact(1.3) * mpmath.mpf(3) ** max(0, mpmath.mpf("0.5") - inverse(r))
        check(smallest_ellipsoid(K, p, "shifted"), reach * mpmath.mpf(15) ** inverse(p))


@pytest.mark.parametrize("d", [2, 3, 6, 12])
def test_second_moments_are_proved_on_both_sides(d):
    """2(I + ttᵀ)⁻¹ has the trace 2(dim − 1) + 2/(1 + d)."""
    K = mh.MomentTensor(2, d)
    found = smallest_ellipsoid(K)
    truth = mpmath.sqrt(2 * (K.dim - 1) + mpmath.mpf(2) / (1 + d))
    assert exact(found.value) >= truth >= exact(found.floor)
    assert found.gap < 1e-10


def test_a_box_lies_in_the_very_matrix_that_is_returned():
    rng = np.random.default_rng(63)
    for p in ORDERS:
        sides = random_sizes(rng, 12)
        found = smallest_ellipsoid(mh.Box(np.zeros(12), sides), p, weights=random_sizes(rng, 12))
        total = mpmath.fsum(
            exact(s) ** 2 / exact(m) ** 2 for s, m in zip(sides, found.scales, strict=True)
        )
        assert 1 - mpmath.mpf("1e-12") <= total <= 1


def test_a_body_of_many_sides_is_summed_without_loss():
    sides = np.random.default_rng(64).random(100_000)
    found = smallest_ellipsoid(mh.Box(np.zeros(100_000), sides))
    truth = mpmath.fsum(exact(side) for side in sides)
    check(found, truth)


def test_the_check_sees_a_value_that_is_one_rounding_too_small():
    found = smallest_ellipsoid(mh.Ball(radius=1.0, dim=3), 3)
    truth = 2 * mpmath.mpf(3) ** (mpmath.mpf(1) / 3)
    below = found.scaled(float(truth) * (1 - 2**-52) / found.value)
    with pytest.raises(AssertionError):
        check(below, truth)


@pytest.mark.parametrize("p", [2, 4, INF])
def test_weighted_shares_keep_their_floor_below_what_the_solver_finds(p):
    from muhat.domains.simplex import around_weighted_simplex

    rng = np.random.default_rng(65)
    for origin in (False, True):
        K = mh.Simplex(12, origin=origin)
        for spread in (0.1, 1.0, 3.0):
            w = np.exp(spread * rng.normal(size=12))
            for body in ("difference", "shifted"):
                pair = around_weighted_simplex(12, origin, body, p, w)
                best = smallest_ellipsoid(K, p, body, weights=w)
                assert pair.floor <= best.value
                assert pair.value >= best.floor


def test_many_weighted_shares_have_a_small_gap():
    w = np.exp(0.5 * np.random.default_rng(66).normal(size=300))
    assert smallest_ellipsoid(mh.Simplex(300), weights=w).gap < 0.01
