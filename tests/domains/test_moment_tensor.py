"""Moment tensors against full tensors built entry by entry."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pytest

import muhat as mh

RNG = np.random.default_rng(11)
CASES = [(1, 1), (1, 4), (2, 1), (2, 2), (2, 5), (3, 1), (3, 2), (3, 4), (4, 3), (5, 2), (6, 2)]
"""Order and dimension."""


def full_tensor(x, order):
    return reduce(np.multiply.outer, [x] * order)


def in_ball(count, dim):
    x = RNG.normal(size=(count, dim))
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1)


@pytest.mark.parametrize(("order", "dim"), CASES)
def test_the_basis_is_orthonormal(order, dim):
    K = mh.MomentTensor(order, dim)
    assert K.dim == math.comb(dim + order - 1, order)
    assert K.record_dim == dim
    assert K.multiplicities.sum() == dim**order
    x, y = RNG.normal(size=(2, dim))
    assert K.lift(x) @ K.lift(y) == pytest.approx((x @ y) ** order, rel=1e-10, abs=1e-12)
    assert np.allclose(K.tensor(K.lift(x)), full_tensor(x, order), rtol=1e-12)
    assert K.lift(np.stack([x, y])).shape == (2, K.dim)
    assert np.array_equal(K.lift(np.stack([x, y]))[1], K.lift(y))


@pytest.mark.parametrize(("order", "dim"), CASES)
def test_coordinates_follow_the_multisets(order, dim):
    K = mh.MomentTensor(order, dim)
    x = RNG.normal(size=dim)
    for index, multiplicity, coordinate in zip(K.indices, K.multiplicities, K.lift(x), strict=True):
        counts = np.bincount(index, minlength=dim)
        multinomial = math.factorial(order) // math.prod(map(math.factorial, counts.tolist()))
        assert multiplicity == multinomial
        assert coordinate == pytest.approx(math.sqrt(multinomial) * np.prod(x**counts))


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, 7, np.inf])
@pytest.mark.parametrize(("order", "dim"), CASES)
def test_weights_give_the_norm_of_the_full_tensor(order, dim, p):
    K = mh.MomentTensor(order, dim)
    z = RNG.normal(size=K.dim)
    over_basis = np.linalg.norm(K.tensor_weights(p) * z, p)
    assert over_basis == pytest.approx(np.linalg.norm(K.tensor(z).ravel(), p), rel=1e-12)


@pytest.mark.parametrize(("order", "dim"), CASES)
def test_the_center_is_the_mean_on_the_sphere_shrunk_to_the_centroid(order, dim):
    K = mh.MomentTensor(order, dim)
    x = np.random.default_rng(1).normal(size=(200_000, dim))
    lifted = K.lift(x / np.linalg.norm(x, axis=1, keepdims=True))
    expected = lifted.mean(axis=0) * K.dim / (K.dim + 1)
    error = lifted.std(axis=0) / math.sqrt(len(x))
    assert (np.abs(K.center - expected) <= 5.5 * error + 1e-12).all()
    if order % 2:
        assert not K.center.any()


def test_the_centroid_of_two_by_two_densities_is_exact():
    """{X ⪰ 0, tr X ≤ 1} is a cone in R³: its centroid is 3/4 of the way from 0 to I/2."""
    K = mh.MomentTensor(2, 2)
    assert np.allclose(K.tensor(K.center), np.eye(2) * 3 / 8)


@pytest.mark.parametrize(("order", "dim"), CASES)
def test_half_widths_are_the_extremes_of_monomials(order, dim):
    K = mh.MomentTensor(order, dim)
    lower, upper = K.bounding_box
    lifted = K.lift(in_ball(100_000, dim) if dim > 1 else np.linspace(-1, 1, 101)[:, None])
    assert (lifted <= upper + 1e-12).all()
    assert (lifted >= lower - 1e-12).all()
    assert (lifted.max(axis=0) >= upper - 0.25).all()
    for row, index in enumerate(K.indices):
        x = np.sqrt(np.bincount(index, minlength=dim) / order)
        assert K.lift(x)[row] == pytest.approx(upper[row], rel=1e-12)


@pytest.mark.parametrize(("order", "dim"), CASES)
def test_support_bounds_every_tensor_and_is_nearly_attained(order, dim):
    K = mh.MomentTensor(order, dim)
    cloud = K.lift(in_ball(50_000, dim))
    for theta in RNG.normal(size=(4, K.dim)):
        found = theta @ K.extreme_point(theta)
        assert (cloud @ theta).max() <= found + 1e-9
        assert found <= K.support(theta) * (1 + 1e-12) + 1e-12
        if order <= 2:
            assert found == pytest.approx(K.support(theta), rel=1e-12)


def test_support_of_order_two_is_the_largest_eigenvalue():
    K = mh.MomentTensor(2, 3)
    theta = RNG.normal(size=6)
    largest = np.linalg.eigvalsh(K.tensor(theta))[-1]
    assert K.support(theta) == pytest.approx(max(largest, 0))
    swap = K.lift([1, 0, 0]) - K.lift([0, 1, 0])
    assert swap @ K.extreme_point(swap) == pytest.approx(1)


@pytest.mark.parametrize(("order", "dim"), CASES)
def test_records_are_clipped_to_the_unit_ball_and_lifted(order, dim):
    K = mh.MomentTensor(order, dim)
    x = RNG.normal(size=(50, dim)) * 3
    assert np.allclose(K.clip(x), K.lift(mh.Ball(1, dim).clip(x)), rtol=1e-12)
    small = x / 100
    assert np.array_equal(K.clip(small), K.lift(small))
    distance = np.linalg.norm(K.clip(x) - K.center, axis=1).max()
    assert distance <= K.farthest(np.ones(K.dim)) * (1 + 1e-12)


@pytest.mark.parametrize(("order", "dim"), CASES)
def test_the_farthest_tensor_is_exact_without_weights(order, dim):
    K = mh.MomentTensor(order, dim)
    ends = K.lift(np.stack([np.zeros(dim), np.eye(dim)[0], np.full(dim, dim**-0.5)]))
    far = np.linalg.norm(ends - K.center, axis=1).max()
    assert K.farthest(np.ones(K.dim)) == pytest.approx(far, rel=1e-12)


def test_large_tensors_are_lifted_without_being_built():
    K = mh.MomentTensor(3, 60)
    assert K.dim == 37_820
    theta = RNG.normal(size=K.dim)
    assert theta @ K.extreme_point(theta) <= K.support(theta)
    with pytest.raises(mh.InvalidInput, match="not built"):
        mh.MomentTensor(5, 30).tensor(np.ones(math.comb(34, 5)))
    assert mh.MomentTensor(100, 2).multiplicities.max() == pytest.approx(math.comb(100, 50))


@pytest.mark.parametrize(
    "make",
    [
        lambda: mh.MomentTensor(0, 3),
        lambda: mh.MomentTensor(-1, 3),
        lambda: mh.MomentTensor(1.5, 3),
        lambda: mh.MomentTensor(2, 0),
        lambda: mh.MomentTensor(2, None),
        lambda: mh.MomentTensor("2", 3),
        lambda: mh.MomentTensor(101, 1),
        lambda: mh.MomentTensor(10, 1000),
        lambda: mh.MomentTensor(2, 3).tensor_weights(0.5),
        lambda: mh.MomentTensor(2, 3).tensor([1, 2]),
        lambda: mh.MomentTensor(2, 3).lift([1, 2]),
    ],
)
def test_bad_moments_are_refused(make):
    with pytest.raises(mh.InvalidInput):
        make()


@pytest.mark.parametrize("order", [1, 2, 3, 4, 10])
@pytest.mark.parametrize("privacy", [mh.ZCDP(rho=0.5), mh.PureDP(epsilon=1)])
def test_moments_of_one_number_are_means_of_an_interval(order, privacy):
    interval = mh.Box([-1.0], [1.0]) if order % 2 else mh.Box([0.0], [1.0])
    made = mh.plan_mean(domain=mh.MomentTensor(order, 1), n=1000, privacy=privacy)
    same = {"mechanism": made.mechanism, "missing": "none", "population": False}
    simple = mh.plan_mean(domain=interval, n=1000, privacy=privacy, **same)
    assert made.expected_error == pytest.approx(simple.expected_error, rel=1e-9)
