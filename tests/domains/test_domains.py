"""What every domain must satisfy: support functions, clipping, widths, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.domains import from_dict

RNG = np.random.default_rng(1)
A = np.array([[4.0, 1.0, 0.2], [1.0, 3.0, -0.5], [0.2, -0.5, 1.0]])
CLOUD = np.round(RNG.normal(size=(40, 3)) * 64) / 64
GENERATORS = RNG.normal(size=(3, 5))
T = RNG.normal(size=(3, 4))
CLIPPING = [
    mh.Ball(radius=2, dim=3, center=[1, -2, 3]),
    mh.Box(lower=[-1, 0, 10], upper=[1, 5, 11]),
    mh.Ellipsoid(A, center=[1, 2, 3]),
    mh.Ellipsoid([4.0, 1.0, 0.01], center=[1, 2, 3]),
    mh.LpBall(p=1, radius=2, dim=3, center=[1, 0, 0], scale=[1, 2, 0.5]),
    mh.LpBall(p=1.3, dim=3),
    mh.LpBall(p=2, dim=3, scale=[3, 2, 1]),
    mh.LpBall(p=5, radius=0.1, dim=3, center=[1, 2, 3]),
    mh.LpBall(p=np.inf, radius=3, dim=3, scale=[1, 2, 3]),
    mh.Simplex(dim=3),
    mh.Simplex(dim=3, origin=True),
    mh.Simplex(dim=3) + np.array([1.0, -2.0, 5.0]),
    mh.Points(CLOUD),
    mh.Points(np.concatenate([CLOUD, -CLOUD]) + np.eye(3)[0]),
    mh.SchattenBall(p=1, shape=(3, 1)),
    mh.SchattenBall(p=3, shape=(2, 3), radius=2, center=np.arange(6)),
    mh.SchattenBall(p=np.inf, shape=(2, 2)),
    mh.Ball(radius=1, dim=2, center=[1, 1]) * mh.Box([0], [1]),
    mh.Simplex(dim=2, origin=True) * mh.LpBall(p=1, dim=2) * mh.Points([[0], [3]]),
    mh.Choices(dim=3, most=2),
    np.arange(5.0) + mh.Choices(dim=5, most=2),
]
LIFTING = [
    mh.MomentTensor(order=1, dim=3),
    mh.MomentTensor(order=2, dim=3),
    mh.MomentTensor(order=2, dim=1),
    mh.MomentTensor(order=2, dim=2) + np.array([1.0, 2.0, 3.0]),
    mh.MomentTensor(order=2, dim=2) * mh.Ball(1, 2),
]
HARD = [mh.MomentTensor(order=3, dim=2), mh.MomentTensor(order=4, dim=3)]
"""Their support function is an upper bound only."""
COMBINED = [
    mh.Zonotope(GENERATORS, center=[1, 2, 3]),
    mh.Zonotope([[1, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]]),
    mh.Ball(1, 3, [1, 2, 3]) + mh.LpBall(p=1, dim=3),
    mh.Points(CLOUD) + mh.Simplex(3) + mh.Box([0, 0, 0], [1, 2, 3]),
    (mh.Ball(1, 3) + mh.LpBall(p=1, dim=3)) + [1, 2, 3],
    T @ mh.Ball(1, 4, [1, 2, 3, 4]),
    T @ mh.LpBall(p=3, dim=4),
    T @ mh.Simplex(4),
    T @ mh.Box([0, 0, 0, 0], [1, 2, 3, 4]),
    T @ (mh.Simplex(4) + np.arange(4.0)),
    T @ (mh.Ball(1, 2) * mh.Simplex(2, origin=True)),
    T @ (mh.Ball(1, 4) + mh.LpBall(p=1, dim=4)),
    T @ (mh.LpBall(p=1.5, dim=3) * (np.ones((1, 2)) @ mh.Ball(1, 2))),
    np.ones((2, 3)) @ mh.Simplex(3),
    RNG.normal(size=(2, 6)) @ mh.MomentTensor(order=2, dim=3),
    mh.Zonotope(GENERATORS) * mh.Simplex(2),
    mh.Zonotope(GENERATORS) + (T @ mh.Ball(1, 4)),
]
EXACT = [*CLIPPING, *LIFTING, *COMBINED]
EVERY = [*EXACT, *HARD]


def directions(K, count=7):
    return np.random.default_rng(K.dim).normal(size=(count, K.dim))


@pytest.mark.parametrize("K", EXACT, ids=repr)
def test_support_is_attained_at_a_point_inside(K):
    probes = np.concatenate([directions(K, 200), np.eye(K.dim), -np.eye(K.dim)])
    limits = np.array([K.support(probe) for probe in probes])
    for theta in [*directions(K), *np.eye(K.dim), np.zeros(K.dim)]:
        x = K.extreme_point(theta)
        assert x.shape == (K.dim,)
        assert theta @ x == pytest.approx(K.support(theta), rel=1e-12, abs=1e-12)
        assert (probes @ x <= limits + 1e-12 * (1 + np.abs(limits))).all()


@pytest.mark.parametrize("K", [*CLIPPING, *LIFTING, *HARD], ids=repr)
def test_support_is_the_largest_product_with_a_clipped_record(K):
    generator = np.random.default_rng(2)
    far = generator.normal(size=(100_000, K.record_dim)) * 50
    far *= generator.choice([1, 1e-3], size=far.shape)
    cloud = K.clip(K.record_center + far)
    assert cloud.shape == (len(far), K.dim)
    for theta in directions(K, 4):
        best = (cloud @ theta).max()
        assert best <= K.support(theta) + 1e-9
        if K not in HARD:
            assert best >= K.support(theta) - 0.05 * K.width(theta)


@pytest.mark.parametrize("K", [K for K in EVERY if K.vertices() is not None], ids=repr)
def test_the_vertices_have_the_same_hull(K):
    corners = K.vertices()
    assert corners.shape[1] == K.dim
    for theta in directions(K):
        assert (corners @ theta).max() == pytest.approx(K.support(theta), rel=1e-12, abs=1e-12)


def test_vertices_are_listed_for_polytopes_only():
    listed = {repr(K) for K in EVERY if K.vertices() is not None}
    assert {repr(mh.Box([-1, 0, 10], [1, 5, 11])), repr(mh.Simplex(3))} <= listed
    assert {repr(mh.Points(CLOUD)), repr(COMBINED[0]), repr(COMBINED[3])} <= listed
    for K in (mh.Ball(1, 3), mh.LpBall(p=3, dim=3), mh.SchattenBall(1, (2, 2)), mh.Ellipsoid(A)):
        assert K.vertices() is None
    assert mh.Box(np.zeros(16), np.ones(16)).vertices().shape == (1 << 16, 16)
    assert mh.Box(np.zeros(17), np.ones(17)).vertices() is None
    assert mh.Zonotope(np.ones((2, 17))).vertices() is None
    assert mh.Zonotope(np.eye(2, 40)).vertices().shape == (4, 2)
    assert (mh.Points(CLOUD) * mh.Points(CLOUD) * mh.Points(CLOUD)).vertices().shape == (64000, 9)
    big = mh.Points(np.eye(300)[:, :3])
    assert (big + big).vertices() is None
    assert (big * big).vertices() is None


@pytest.mark.parametrize("K", EVERY, ids=repr)
def test_widths_agree_with_the_support_function(K):
    axes = np.eye(K.dim)
    lower, upper = K.bounding_box
    if K not in HARD:
        assert np.allclose(upper, [K.support(e) for e in axes], atol=1e-13)
        assert np.allclose(lower, [-K.support(-e) for e in axes], atol=1e-13)
        assert np.allclose(K.half_widths, [K.width(e) / 2 for e in axes], atol=1e-13)
    assert np.allclose(upper - lower, 2 * K.half_widths, atol=1e-13)
    for theta in directions(K):
        assert K.width(theta) == pytest.approx(K.support(theta) + K.support(-theta), rel=1e-9)


@pytest.mark.parametrize("K", EVERY, ids=repr)
def test_reach_is_the_support_function_seen_from_the_center(K):
    thetas = directions(K)
    reach = K.reach(thetas)
    assert reach.shape == (len(thetas),)
    assert np.shape(K.reach(thetas[0])) == ()
    for theta, value in zip(thetas, reach, strict=True):
        assert value + theta @ K.center == pytest.approx(K.support(theta), rel=1e-12, abs=1e-12)
    assert (reach >= -1e-12).all(), "the centre lies in the hull"
    if K.is_symmetric:
        assert np.allclose(K.reach(-thetas), reach, rtol=1e-12, atol=1e-12)


def test_symmetry_is_claimed_where_it_holds():
    symmetric = [K for K in EVERY if K.is_symmetric]
    assert all(K.is_symmetric for K in CLIPPING[:9])
    assert mh.Points(CLOUD) not in symmetric
    assert CLIPPING[13] in symmetric
    assert mh.Simplex(2).is_symmetric
    assert mh.Simplex(1, origin=True).is_symmetric
    assert not mh.Simplex(3).is_symmetric
    assert not mh.Simplex(2, origin=True).is_symmetric
    assert not mh.MomentTensor(2, 2).is_symmetric
    assert mh.MomentTensor(3, 2).is_symmetric


@pytest.mark.parametrize("K", EVERY, ids=repr)
def test_no_point_is_farther_than_the_farthest(K):
    weights = np.linspace(0.5, 2.0, K.dim)
    points = np.array([K.extreme_point(theta) for theta in directions(K, 80)])
    far = np.linalg.norm((points - K.center) * weights, axis=1).max()
    assert far <= K.farthest(weights) * (1 + 1e-12) + 1e-12
    assert far >= 0.4 * K.farthest(weights)


@pytest.mark.parametrize("K", CLIPPING, ids=repr)
def test_clipping_is_idempotent_and_ends_inside(K):
    far = np.random.default_rng(3).normal(size=(500, K.dim)) * 100
    once = K.clip(K.center + far)
    assert np.allclose(K.clip(once), once, rtol=1e-12, atol=1e-14)
    for theta in directions(K, 50):
        assert (once @ theta).max() <= K.support(theta) + 1e-11


@pytest.mark.parametrize("K", [K for K in CLIPPING if "Points" not in repr(K)], ids=repr)
def test_points_inside_stay(K):
    corners = np.array([K.extreme_point(theta) for theta in directions(K, 50)])
    shares = np.random.default_rng(4).dirichlet(np.full(50, 0.3), size=100)
    inside = shares @ corners
    assert np.allclose(K.clip(inside), inside, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("K", [*CLIPPING, *LIFTING, *HARD], ids=repr)
def test_a_record_is_clipped_by_itself_whatever_it_is(K):
    generator = np.random.default_rng(5)
    data = K.record_center + generator.normal(size=(60, K.record_dim)) * 3
    data[::7, 0] = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-308, 1e200, 1e150, 0.0]
    data[7] = 1e308
    data[14] = np.nan
    together = K.clip(data)
    assert np.isfinite(together).all()
    assert (together <= K.bounding_box[1] + 1e-12).all()
    assert (together >= K.bounding_box[0] - 1e-12).all()
    for record, clipped in zip(data, together, strict=True):
        assert np.allclose(K.clip(record), clipped, rtol=1e-13, atol=1e-15)
    missing = np.where(np.isfinite(data[:3]), data[:3], K.record_center)
    assert np.array_equal(K.clip(missing), together[:3])


@pytest.mark.parametrize("K", EVERY, ids=repr)
def test_records_of_every_domain_live_in_a_domain_that_clips(K):
    source = K.preimage()
    assert source.domain.clip(source.domain.record_center).shape == (source.domain.dim,)
    assert source.dense().shape == (K.dim, source.domain.dim)
    for theta in directions(K):
        moved = theta @ source.dense()
        value = theta @ source.offset + source.domain.support(moved)
        assert value == pytest.approx(K.support(theta), rel=1e-12)
    if K in CLIPPING or K in LIFTING:
        assert source.domain is K
        assert source.matrix is None


@pytest.mark.parametrize("K", [K for K in COMBINED if K.preimage().domain is not K], ids=repr)
def test_what_has_no_clip_says_how_records_are_given(K):
    with pytest.raises(mh.InvalidInput, match=r"clip="):
        K.clip(np.zeros((2, K.record_dim)))


@pytest.mark.parametrize("K", EVERY, ids=repr)
def test_a_domain_survives_its_dict(K):
    again = from_dict(json.loads(json.dumps(K.to_dict())))
    assert type(again) is type(K)
    assert again == K
    assert hash(again) == hash(K)
    assert repr(again) == repr(K)
    assert again.support(np.ones(K.dim)) == K.support(np.ones(K.dim))


def test_domains_differ_unless_they_are_the_same():
    assert len(set(EVERY)) == len(EVERY)
    assert mh.Ball(1, 2) != "ball"


@pytest.mark.parametrize("K", EVERY, ids=repr)
def test_domains_cannot_be_changed(K):
    with pytest.raises(AttributeError):
        K.center = np.zeros(K.dim)
    for values in (K.center, K.half_widths):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1.0


@pytest.mark.parametrize("K", EVERY, ids=repr)
def test_wrong_shapes_are_refused(K):
    with pytest.raises(mh.InvalidInput):
        K.support(np.ones(K.dim + 1))
    with pytest.raises(mh.InvalidInput):
        K.extreme_point(np.full(K.dim, np.nan))
    with pytest.raises(mh.InvalidInput):
        K.clip(np.ones((2, K.record_dim + 1)))
    with pytest.raises(mh.InvalidInput):
        K + np.ones(K.dim + 1)
    with pytest.raises(mh.InvalidInput):
        np.ones((2, K.dim + 1)) @ K


def test_an_unknown_kind_is_refused():
    with pytest.raises(mh.InvalidInput, match="teapot"):
        from_dict({"domain": "teapot"})


def test_a_box_keeps_integers_beyond_the_floats():
    box = mh.Box([2**60], [2**60 + 1000])
    assert box.bounds == ((Fraction(2**60), Fraction(2**60 + 1000)),)
    assert box.half_widths[0] == 500


def test_a_diagonal_ellipsoid_needs_no_matrix():
    d = 100_000
    K = mh.Ellipsoid(np.linspace(1, 4, d))
    assert K.is_diagonal
    assert K.support(np.eye(1, d, d - 1)[0]) == 2.0
    assert K.farthest(np.ones(d)) == 2.0
    assert np.allclose(K.clip(K.clip(np.ones(d))), K.clip(np.ones(d)))
    with pytest.raises(mh.InvalidInput, match="not built"):
        _ = K.factor


def test_a_diagonal_matrix_and_its_diagonal_are_the_same_ellipsoid():
    dense, thin = mh.Ellipsoid(np.diag([4.0, 9.0])), mh.Ellipsoid([4.0, 9.0])
    assert dense == thin
    for name, value in (("matrix", [4, 9]), ("factor", [2, 3]), ("inverse_factor", [1 / 2, 1 / 3])):
        assert np.array_equal(getattr(thin, name), np.diag(value))
    full = mh.Ellipsoid(A)
    assert not full.is_diagonal
    assert np.allclose(full.factor @ full.factor.T, A)
    assert np.allclose(full.factor @ full.inverse_factor, np.eye(3))


@pytest.mark.parametrize(
    "make",
    [
        lambda: mh.Ball(radius=-1, dim=2),
        lambda: mh.Ball(radius=float("nan"), dim=2),
        lambda: mh.Ball(radius=float("inf"), dim=2),
        lambda: mh.Ball(radius=1, dim=0),
        lambda: mh.Ball(radius=1, dim=2.5),
        lambda: mh.Ball(radius=1, dim=True),
        lambda: mh.Ball(radius=1, dim=10**15),
        lambda: mh.Ball(radius=1, dim=2, center=[0]),
        lambda: mh.Ball(radius=1e200, dim=2),
        lambda: mh.Ball(radius=1e-200, dim=2),
        lambda: mh.Box([1], [0]),
        lambda: mh.Box([0, 0], [1]),
        lambda: mh.Box([float("nan")], [1]),
        lambda: mh.Box([0], [float("inf")]),
        lambda: mh.Box([], []),
        lambda: mh.Box(["a"], [1]),
        lambda: mh.Box(["0"], ["1"]),
        lambda: mh.Box([0j], [1]),
        lambda: mh.Box([[0]], [[1]]),
        lambda: mh.Ellipsoid([[1, 2], [2, 1]]),
        lambda: mh.Ellipsoid([[1, 2, 3]]),
        lambda: mh.Ellipsoid([[1, 0.5], [0.4, 1]]),
        lambda: mh.Ellipsoid([[1, 0], [0, float("nan")]]),
        lambda: mh.Ellipsoid([[1, 0], [0, 1e-30]]),
        lambda: mh.Ellipsoid([1, 1e-30]),
        lambda: mh.Ellipsoid([1, -1]),
        lambda: mh.Ellipsoid([]),
        lambda: mh.Ellipsoid(np.ones((2, 2, 2))),
        lambda: mh.Ellipsoid("round"),
        lambda: mh.Ellipsoid(None),
    ],
)
def test_a_bad_domain_is_refused(make):
    with pytest.raises(mh.InvalidInput):
        make()
