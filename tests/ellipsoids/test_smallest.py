"""The smallest ellipsoid: closed forms, containment, certified floors."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh
from muhat.ellipsoids import smallest_ellipsoid, zonotopes

RNG = np.random.default_rng(2)
A = np.array([[4.0, 1.0], [1.0, 3.0]])
INF = np.inf


def test_a_box_has_the_closed_form_of_its_sides():
    box = mh.Box([0, 0, 0], [1, 2, 5])
    w = np.array([1.0, 2.0, 5.0])
    assert mh.gamma(box, 2) == pytest.approx(w.sum(), rel=1e-14)
    assert mh.gamma(box, INF) == pytest.approx(np.linalg.norm(w), rel=1e-14)
    assert mh.gamma(box, 4) == pytest.approx(np.sum(w ** (4 / 3)) ** (3 / 4), rel=1e-14)
    assert mh.gamma(box, 2, "shifted") == pytest.approx(w.sum() / 2, rel=1e-14)


@pytest.mark.parametrize("p", [2, 3, 4, 10, INF])
def test_a_ball_and_an_ellipsoid_are_their_own_ellipsoids(p):
    assert mh.gamma(mh.Ball(radius=3, dim=5), p) == pytest.approx(6 * 5 ** (1 / p), rel=1e-14)
    e = smallest_ellipsoid(mh.Ellipsoid(A), p)
    assert np.allclose(e.matrix, 4 * A)
    assert e.value == pytest.approx(np.linalg.norm(2 * np.sqrt(np.diag(A)), p), rel=1e-14)


@pytest.mark.parametrize("p", [2, 2.5, 4, INF])
@pytest.mark.parametrize("weights", [None, [1.0, 0.01]])
def test_the_ellipsoid_contains_the_body_and_touches_it(p, weights):
    box = mh.Box([-1, 3], [4, 3.5])
    e = smallest_ellipsoid(box, p, weights=weights)
    corners = np.array([[5.0, 0.5], [5.0, -0.5]])
    sizes = np.einsum("ij,jk,ik->i", corners, np.linalg.inv(e.matrix), corners)
    assert sizes.max() == pytest.approx(1, rel=1e-12)
    w = np.ones(2) if weights is None else np.array(weights)
    assert e.value == pytest.approx(np.linalg.norm(w * e.scales, p), rel=1e-12)


@pytest.mark.parametrize("p", [2, 4, INF])
def test_no_other_diagonal_ellipsoid_around_a_box_is_smaller(p):
    box = mh.Box([0, 0, 0], [1, 2, 7])
    best = mh.gamma(box, p)
    for _ in range(200):
        M = np.exp(RNG.normal(size=3))
        M *= np.sum(np.array([1.0, 2.0, 7.0]) ** 2 / M)
        assert np.linalg.norm(np.sqrt(M), p) >= best * (1 - 1e-12)


@pytest.mark.parametrize("p", [2, 4, INF])
@pytest.mark.parametrize(
    "K",
    [
        mh.Box([1000, 1000], [1100, 1100]),
        mh.Box([0, 0], [1, 1]),
        mh.Ball(radius=1, dim=2, center=[1, 2]),
        mh.Ellipsoid(A, center=[3, -4]),
        mh.Box([-1, 2], [1, 3]),
    ],
    ids=repr,
)
def test_both_sides_of_a_domain_are_contained_and_the_floor_is_below(K, p):
    e = smallest_ellipsoid(K, p, "symmetric")
    cloud = K.clip(K.center + RNG.normal(size=(20_000, 2)) * 1e4)
    inverse = np.linalg.inv(e.matrix)
    assert np.einsum("ij,jk,ik->i", cloud, inverse, cloud).max() <= 1 + 1e-9
    assert np.linalg.norm(cloud, p, axis=1).max() * (1 - 1e-3) <= e.value
    assert 0 < e.floor <= e.value
    assert e.gap < 0.6


@pytest.mark.parametrize("p", [2, 4, INF])
def test_in_one_dimension_both_sides_have_no_gap(p):
    e = smallest_ellipsoid(mh.Box([3], [5]), p, "symmetric")
    assert e.value == pytest.approx(5, rel=1e-12)
    assert e.gap < 1e-9


@pytest.mark.parametrize("p", [2, 4, INF])
@pytest.mark.parametrize(
    "K",
    [
        mh.Box([0, 1, -2], [1, 3, 4]),
        mh.Box(np.zeros(8), np.arange(1.0, 9.0)),
        mh.LpBall(p=1, radius=1, dim=3, center=[1, 2, 3]),
        mh.Box([0], [1]) * mh.Simplex(dim=2),
    ],
    ids=repr,
)
def test_both_sides_of_few_corners_have_no_gap(K, p):
    e = smallest_ellipsoid(K, p, "symmetric")
    assert contains(e, K.vertices())
    assert contains(e, -K.vertices())
    assert e.gap < 1e-8


def test_a_secret_number_of_records_in_a_box_has_a_certificate_that_meets_it():
    K = mh.Box([0, 0], [1, 2])
    plan = mh.plan_sum(domain=K, n=None, privacy=mh.ZCDP(0.5))
    assert plan.expected_error == pytest.approx((3 + 5**0.5) / 2, rel=1e-6)
    assert plan.certificate.ratio < 1.03


def test_a_huge_matrix_is_refused_and_its_diagonal_is_not():
    e = smallest_ellipsoid(mh.Ball(radius=1, dim=30_000))
    assert e.diagonal.shape == (30_000,)
    with pytest.raises(mh.InvalidInput, match="diagonal"):
        _ = e.matrix


@pytest.mark.parametrize(
    "arguments", [{"p": 1}, {"p": "two"}, {"body": "round"}, {"tol": 0}, {"weights": [1, 0]}]
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(mh.InvalidInput):
        smallest_ellipsoid(mh.Box([0, 0], [1, 1]), **arguments)


def contains(e, points, slack=1e-9):
    """Whether every row of points lies in the ellipsoid F·B, by least squares on its span."""
    y, *_ = np.linalg.lstsq(e.root, points.T, rcond=None)
    inside = np.linalg.norm(y, axis=0) <= 1 + slack
    on_span = np.allclose(e.root @ y, points.T, atol=1e-9 * (1 + np.abs(points).max()))
    return bool(inside.all() and on_span)


def sample(K, count=300):
    """Extreme points of K in random directions."""
    return np.array([K.extreme_point(theta) for theta in RNG.normal(size=(count, K.dim))])


MANY = RNG.normal(size=(40, 3))
BODIES = {
    "lp 1": mh.LpBall(p=1, dim=3, scale=[1, 2, 3]),
    "lp 1.5": mh.LpBall(p=1.5, dim=3, center=[1, 0, 0]),
    "lp 3": mh.LpBall(p=3, radius=2, dim=3, scale=[1, 2, 3]),
    "simplex": mh.Simplex(dim=4),
    "simplex with 0": mh.Simplex(dim=4, origin=True),
    "points": mh.Points(MANY),
    "symmetric points": mh.Points(np.vstack([MANY, -MANY]) + np.array([5.0, 0, 0])),
    "one point": mh.Points([[1.0, 2.0]]),
    "a segment": mh.Points([[1.0, 2.0, 3.0], [2.0, 2.0, 5.0]]),
    "zonotope": mh.Zonotope(RNG.normal(size=(3, 5))),
    "large zonotope": mh.Zonotope(RNG.normal(size=(3, 30))),
    "schatten 1": mh.SchattenBall(p=1, shape=(2, 3)),
    "schatten inf": mh.SchattenBall(p=INF, shape=(2, 3), radius=2),
    "tensors 2": mh.MomentTensor(order=2, dim=3),
    "tensors 3": mh.MomentTensor(order=3, dim=2),
    "product": mh.Ball(radius=1, dim=2) * mh.Simplex(dim=2),
    "sum": mh.Ball(radius=1, dim=2) + mh.Box([0, 0], [1, 3]),
    "image": np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]]) @ mh.Ball(radius=2, dim=3),
    "image of lp": np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]]) @ mh.LpBall(p=3, dim=3),
    "moved": mh.Simplex(dim=3) + np.array([1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("p", [2, 4, INF])
@pytest.mark.parametrize("name", BODIES)
def test_every_domain_has_a_certified_ellipsoid_around_its_differences(name, p):
    K = BODIES[name]
    e = smallest_ellipsoid(K, p)
    points = sample(K)
    differences = (points[:, None] - points[None, ::10]).reshape(-1, K.dim)
    assert contains(e, differences)
    assert e.floor <= e.value
    assert e.value == pytest.approx(np.linalg.norm(e.scales, p), rel=1e-8, abs=1e-300)
    assert e.gap <= {"sum": 0.3, "image of lp": 0.1}.get(
        name, (0.2 if p > 2 else 1e-4) if "tensors" in name else 1e-6
    )


@pytest.mark.parametrize("p", [2, 4, INF])
@pytest.mark.parametrize("name", BODIES)
def test_a_free_shift_saves_at_most_a_factor_between_two_and_the_root_of_two(name, p):
    K = BODIES[name]
    shifted, difference = smallest_ellipsoid(K, p, "shifted"), smallest_ellipsoid(K, p)
    assert difference.floor <= 2 * shifted.value * (1 + 1e-9)
    assert shifted.floor * np.sqrt(2) <= difference.value * (1 + 1e-9)


@pytest.mark.parametrize("p", [2, 3, INF])
@pytest.mark.parametrize("d", [2, 5, 9])
def test_simplices_have_their_closed_forms(d, p):
    assert mh.gamma(mh.Simplex(dim=d), p) == pytest.approx(
        d ** (1 / p - 0.5) * np.sqrt(2 * (d - 1)), rel=1e-9
    )
    shifted = mh.gamma(mh.Simplex(dim=d), p, "shifted")
    assert shifted == pytest.approx((d - 1) * d ** (1 / p - 1), rel=1e-7)
    a = (d - 1) ** 2
    y = (4 - a + np.sqrt(a * a + 8 * a)) / 8
    w = y / d
    expected = d ** (1 / p - 0.5) * ((d - 1) * np.sqrt(w) + np.sqrt(w * (1 - y)))
    found = mh.gamma(mh.Simplex(dim=d, origin=True), p, "shifted")
    assert found == pytest.approx(expected, rel=1e-7)
    assert mh.gamma(mh.Simplex(dim=d), p, "symmetric") == pytest.approx(d ** (1 / p), rel=1e-12)
    # The closed form of K − K against the solver on the same corners.
    for K in (mh.Simplex(dim=d), mh.Simplex(dim=d, origin=True)):
        listed = mh.Points(K.vertices())
        assert mh.gamma(K, p) == pytest.approx(mh.gamma(listed, p), rel=1e-8)


@pytest.mark.parametrize("p", [2, 3, INF])
def test_lp_balls_have_the_closed_form_and_the_cube_agrees_with_the_solver(p):
    s = np.array([1.0, 2.0, 3.5])
    for r in (1, 1.7, 2, 3, 8, INF):
        inverse = 1 / p + max(0, 0.5 - 1 / r)
        order = 1 / inverse if inverse else INF
        found = mh.gamma(mh.LpBall(p=r, dim=3, scale=s), p, "shifted")
        assert found == pytest.approx(np.linalg.norm(s, order), rel=1e-12)
    cube = mh.Box(-s, s)
    assert mh.gamma(mh.Points(cube.vertices()), p) == pytest.approx(mh.gamma(cube, p), rel=1e-8)


def test_the_reference_zonotope_has_its_values():
    i, j = np.mgrid[1:5, 1:11]
    A = ((i**2 + 3 * i * j + 2 * j**2 + j + 1) % 7) - 3.0
    values = [mh.gamma(mh.Zonotope(A), p, "shifted") for p in (2, 4, INF)]
    reference = [35.412416366, 26.497644916, 24]
    zero_based = ((i - 1) ** 2 + 3 * (i - 1) * (j - 1) + 2 * (j - 1) ** 2 + j) % 7 - 3.0
    others = [mh.gamma(mh.Zonotope(zero_based), p, "shifted") for p in (2, 4, INF)]
    assert np.allclose(values, reference, rtol=1e-8) or np.allclose(others, reference, rtol=1e-8)


@pytest.mark.parametrize("p", [2, 4, INF])
def test_the_certified_pair_around_a_zonotope_is_within_its_proved_factor(p, monkeypatch):
    generators = np.random.default_rng(9).normal(size=(4, 10))
    exact = mh.gamma(mh.Zonotope(generators), p, "shifted")
    monkeypatch.setattr(zonotopes, "is_searched", lambda count, rank: False)
    pair = smallest_ellipsoid(mh.Zonotope(generators), p, "shifted")
    assert pair.floor <= exact * (1 + 1e-9) <= pair.value * (1 + 2e-9)
    assert pair.gap <= np.sqrt(np.pi / 2) - 1 + 0.02


@pytest.mark.parametrize("body", ["difference", "shifted"])
@pytest.mark.parametrize("p", [2, 4, INF])
def test_gamma_obeys_the_laws_of_the_paper(p, body):
    """Theorem 17: hull invariance, monotonicity, homogeneity, triangle inequality."""
    points = np.random.default_rng(10).normal(size=(12, 3))
    other = np.random.default_rng(11).normal(size=(6, 3))

    def value(rows):
        return mh.gamma(mh.Points(rows), p, body)

    inside = points.mean(axis=0, keepdims=True)
    assert value(np.vstack([points, inside])) == pytest.approx(value(points), rel=1e-7)
    assert value(np.vstack([points, other])) >= value(points) * (1 - 1e-8)
    assert value(3 * points) == pytest.approx(3 * value(points), rel=1e-7)
    assert value(points + 100.0) == pytest.approx(value(points), rel=1e-6)
    total = (points[:, None] + other[None]).reshape(-1, 3)
    assert value(total) <= (value(points) + value(other)) * (1 + 1e-8)


def test_degenerate_bodies_cost_what_they_must():
    assert mh.gamma(mh.Points([[1.0, 2.0]])) == 0
    a = np.array([1.0, 0.0, 2.0])
    segment = smallest_ellipsoid(mh.Points([[5.0, 5.0, 5.0], 5 + a]))
    assert segment.value == pytest.approx(np.linalg.norm(a), rel=1e-9)
    assert segment.factor.shape == (3, 1)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (np.eye(3), "ndarray"),
        ([[1.0, 0.0]], "list"),
        ("ball", "str"),
        (None, "NoneType"),
        (mh.Ball, "the class Ball"),
        (mh.workloads.prefix(3), "Prefix"),
    ],
)
def test_what_is_no_domain_is_refused_in_a_sentence(body, shown):
    promise = mh.ZCDP(rho=0.5)
    for use in (
        lambda: mh.gamma(body),
        lambda: mh.smallest_ellipsoid(body),
        lambda: mh.bounds.unbiased(body, n=10, privacy=promise),
    ):
        with pytest.raises(
            mh.InvalidInput, match=rf"K must be a muhat domain.*; got {shown}\. "
        ) as e:
            use()
        assert "mh.Points(array)" in e.value.hint


def test_a_floor_is_never_below_what_the_body_reaches_along_an_axis():
    weights = np.ones(6)
    weights[0] = 10
    tensor = mh.MomentTensor(order=2, dim=3)
    assert tensor.dim == len(weights)
    for K in (tensor, tensor + np.full(6, 5.0)):
        lower, upper = K.bounding_box
        reaches = {
            "difference": upper - lower,
            "shifted": (upper - lower) / 2,
            "symmetric": np.maximum(-lower, upper),
        }
        for p in (2, 4, np.inf):
            for body, reach in reaches.items():
                found = mh.smallest_ellipsoid(K, p, body, weights=weights)
                far = float(np.max(weights * reach))
                assert far * (1 - 1e-12) <= found.floor <= found.value
