"""Zonotopes, also flat ones and those that remember the box they come from."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

import muhat as mh
from muhat.data.engine import record_integers
from muhat.domains import from_dict
from muhat.domains.lattice import Lattice
from muhat.records.columns import Batch

RNG = np.random.default_rng(10)


def test_support_is_a_sum_of_absolute_products():
    A, c = RNG.normal(size=(3, 30)), np.array([1.0, 2.0, 3.0])
    K = mh.Zonotope(A, center=c)
    cube = RNG.choice([-1.0, 1.0], size=(5000, 30))
    for theta in RNG.normal(size=(5, 3)):
        assert K.support(theta) == pytest.approx(theta @ c + np.abs(A.T @ theta).sum())
        assert (cube @ A.T @ theta).max() <= K.support(theta) - theta @ c
    assert np.allclose(K.half_widths, np.abs(A).sum(axis=1))
    far = np.linalg.norm(cube @ A.T, axis=1).max()
    assert far <= K.farthest(np.ones(3)) <= np.linalg.norm(A, axis=0).sum() + 1e-9


def test_the_farthest_corner_is_exact_for_few_generators():
    K = mh.Zonotope(RNG.normal(size=(3, 9)), center=[1, 2, 3])
    weights = np.array([1.0, 0.3, 2.0])
    far = np.linalg.norm((K.vertices() - K.center) * weights, axis=1).max()
    assert K.farthest(weights) == pytest.approx(far, rel=1e-14)


def test_flat_zonotopes_are_domains():
    nothing = mh.Zonotope(np.zeros((2, 3)), center=[4, 5])
    assert not nothing.half_widths.any()
    assert nothing.farthest(np.ones(2)) == 0
    assert nothing.vertices().tolist() == [[4, 5]]
    segment = mh.Zonotope([[1, 0, 2], [1, 0, 2]])
    assert segment.width([1, -1]) == 0
    assert segment.half_widths.tolist() == [3, 3]


@pytest.mark.parametrize("shape", [(1, 3), (2, 5), (3, 9), (4, 7)], ids=str)
def test_records_are_points_of_it_and_move_along_rays(shape):
    """How far out a record lies, by linear programming."""
    dim, count = shape
    A, center = RNG.normal(size=shape), RNG.normal(size=dim)
    K = mh.Zonotope(A, center=center)
    assert K.preimage().domain is K
    records = center + RNG.normal(size=(20, dim)) * 3 * np.exp(RNG.normal(size=(20, 1)))
    sides = np.hstack([np.vstack([np.eye(count), -np.eye(count)]), -np.ones((2 * count, 1))])
    for x, clipped in zip(records, K.clip(records), strict=True):
        size = linprog(
            np.append(np.zeros(count), 1.0),
            A_ub=sides,
            b_ub=np.zeros(2 * count),
            A_eq=np.hstack([A, np.zeros((dim, 1))]),
            b_eq=x - center,
            bounds=[(None, None)] * count + [(0, None)],
        ).fun
        assert clipped == pytest.approx(center + (x - center) / max(size, 1), abs=1e-7)
    inside = center + RNG.uniform(-1, 1, size=(50, count)) @ A.T
    assert np.allclose(K.clip(inside), inside, rtol=1e-12, atol=1e-12)


def test_parallel_and_coplanar_generators_have_the_facets_of_their_sum():
    K = mh.Zonotope([[1.0, 2, 0, 0, 1], [0, 0, 1, 0, 1], [0, 0, 0, 1, 0]])
    same = mh.Zonotope([[3.0, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0]])
    records = RNG.normal(size=(50, 3)) * 5
    assert np.allclose(K.clip(records), same.clip(records))


@pytest.mark.parametrize("promise", [mh.ZCDP(0.5), mh.PureDP(1.0)], ids=["zcdp", "pure"])
def test_records_of_it_are_released_and_none_leaves_the_integers(promise):
    K = mh.Zonotope([[2.0, 1.0, 0.0], [0.0, 1.0, 1.0]], center=[5, -5])
    plan = mh.plan_mean(domain=K, n=400, privacy=promise)
    hostile = [0.0, 5.0, -7.5, 1e308, -1e308, 5e-324, np.inf, -np.inf, np.nan]
    records = np.array([(a, b) for a in hostile for b in hostile])
    lattice = plan.recipe.query.lattice
    integers = record_integers(lattice, Batch(len(records), matrix=records))
    assert (integers.astype(object) ** 2).sum(axis=1).max() <= lattice.radius**2
    data = K.center + RNG.normal(size=(400, 2)) * 2
    release = plan.release(data)
    far = np.abs(release.value - K.clip(data).mean(axis=0))
    assert (far < 8 * plan.standard_error).all()  # once in 10^15 draws, or e^−11 for pure noise
    assert from_dict(K.to_dict()) == K
    assert Lattice.from_dict(lattice.to_dict()) == lattice


def test_a_flat_zonotope_clips_to_its_plane():
    K = mh.Zonotope([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    nearest = K.clip([[1.0, 0.0, 9.0], [7.0, 7.0, 0.0]])
    assert np.allclose(nearest, [[1 / 9, 1 / 9, 2], [1, 1, 0]])


@pytest.mark.parametrize("promise", [mh.ZCDP(0.5), mh.PureDP(1.0)], ids=["zcdp", "pure"])
def test_records_beside_a_flat_zonotope_are_released_from_its_plane(promise):
    K = mh.Zonotope([[1.0, 0.0, 0.5], [1.0, 0.0, 0.5], [0.0, 2.0, 1.0]], center=[5, -5, 0])
    plan = mh.plan_mean(domain=K, n=400, privacy=promise)
    lattice = plan.recipe.query.lattice
    assert plan.recipe.query.rows == 2
    hostile = [0.0, 5.0, -7.5, 1e308, -1e308, 5e-324, np.inf, -np.inf, np.nan]
    records = np.array(list(product(hostile, repeat=3)))
    integers = record_integers(lattice, Batch(len(records), matrix=records))
    assert (integers.astype(object) ** 2).sum(axis=1).max() <= lattice.radius**2
    data = K.center + RNG.normal(size=(400, 3)) * 2
    release = plan.release(data)
    far = release.value - K.clip(data).mean(axis=0)
    assert (np.abs(far) < 8 * plan.standard_error).all()
    assert far[0] == pytest.approx(far[1], abs=1e-9)


def test_flat_parts_and_too_many_facets_take_the_coordinates_of_the_generators():
    flat = mh.Zonotope([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    many = mh.Zonotope(RNG.normal(size=(9, 24)))
    with pytest.raises(mh.InvalidInput, match="coordinates of its generators"):
        many.clip(np.zeros(9))
    for K in (many, flat + mh.Ball(1, 3)):
        with pytest.raises(mh.InvalidInput, match="coordinates of its generators"):
            mh.plan_mean(domain=K, n=10, privacy=mh.GDP(1.0))
    for K in (flat, many):
        count = K.generators.shape[1]
        image = K.generators @ mh.Box([-1] * count, [1] * count)
        plan = mh.plan_mean(domain=image, n=10, privacy=mh.GDP(1.0))
        assert plan.expected_error == pytest.approx(mh.gamma(K) / 10, rel=1e-6)


def test_twenty_generators_in_five_dimensions_have_their_records_released():
    """Beyond the facets that are found at a time; once in 10^15 draws."""
    K = mh.Zonotope(RNG.normal(size=(5, 20)))
    plan = mh.plan_mean(domain=K, n=50, privacy=mh.ZCDP(0.5))
    data = RNG.normal(size=(50, 5)) * 20
    moved = K.clip(data)
    assert (np.abs(moved - data).max(axis=1) > 0).any()
    directions = RNG.normal(size=(500, 5))
    assert (moved @ directions.T <= K.reach(directions) * (1 + 1e-9)).all()
    far = np.abs(plan.release(data).value - moved.mean(axis=0))
    assert (far < 8 * plan.standard_error).all()
    assert len(mh.Zonotope(RNG.normal(size=(6, 18))).facets) == 8568  # 18 over 5


def test_an_image_of_a_box_takes_records_of_the_box():
    box = mh.Box([0, 16], [200_000, 90])
    T, S = np.array([[1.0, 2.0], [0.5, -1.0], [0.0, 1.0]]), RNG.normal(size=(2, 3))
    K = S @ (T @ box + [1, 2, 3])
    source = K.preimage()
    assert isinstance(K, mh.Zonotope)
    assert source.domain == box
    assert np.allclose(source.matrix, S @ T)
    assert np.allclose(source.offset, S @ [1, 2, 3])
    assert from_dict(K.to_dict()) == K
    assert from_dict(K.to_dict()).preimage().domain == box
    both = K + mh.Zonotope([[1.0], [2.0]])
    assert both.preimage().domain == box * mh.Box([-1], [1])
    for theta in RNG.normal(size=(4, 2)):
        expected = K.support(theta) + abs(theta @ [1, 2])
        assert both.support(theta) == pytest.approx(expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mh.Zonotope([]),
        lambda: mh.Zonotope(np.empty((3, 0))),
        lambda: mh.Zonotope(np.empty((0, 3))),
        lambda: mh.Zonotope([1, 2, 3]),
        lambda: mh.Zonotope(3.0),
        lambda: mh.Zonotope([[1, np.nan]]),
        lambda: mh.Zonotope([[1, np.inf]]),
        lambda: mh.Zonotope([[1], [2, 3]]),
        lambda: mh.Zonotope("cube"),
        lambda: mh.Zonotope(np.eye(2), center=[1]),
        lambda: mh.Zonotope(np.eye(2), center=[1, np.nan]),
        lambda: mh.Zonotope([[1e-150]]),
        lambda: mh.Zonotope([[1e145]]),
        lambda: mh.Zonotope.from_box(np.eye(2), mh.Box([0], [1])),
    ],
)
def test_a_bad_zonotope_is_refused(make):
    with pytest.raises(mh.InvalidInput):
        make()
