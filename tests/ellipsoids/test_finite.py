"""Smallest ellipsoids around finite sets: the reference table, closed forms, contracts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from muhat.ellipsoids.finite import around_columns, around_differences, around_shifted
from muhat.ellipsoids.verification import dual_floor
from muhat.errors import InvalidInput

INF = np.inf
ORDERS = [2, 2.5, 4, 10, INF]


def prefix(n):
    return np.tril(np.ones((n, n)))


def workload():
    i, j = np.arange(10)[:, None], np.arange(25)[None, :]
    return (3 * i * i + 5 * i * j + 7 * j * j + i + j) % 11 - 5.0


def zonotope():
    """The vertices of A[−1, 1]^10, one of each pair ±."""
    i, j = np.arange(4)[:, None], np.arange(10)[None, :]
    A = (i * i + 3 * i * j + 2 * j * j + j + 1) % 7 - 3.0
    signs = np.array(list(itertools.product([-1, 1], repeat=9))).T
    return A @ np.vstack([np.ones(512), signs])


def marginals(m=6):
    """All 1- and 2-way marginals of m bits: a row a cell of a marginal, a column a record."""
    bits = np.array(list(itertools.product([0, 1], repeat=m))).T
    rows = [bits[a] == x for a in range(m) for x in (0, 1)]
    for a, b in itertools.combinations(range(m), 2):
        rows += [(bits[a] == x) & (bits[b] == y) for x in (0, 1) for y in (0, 1)]
    return np.array(rows, float)


REFERENCE = [
    ("prefix 2", around_columns, lambda: prefix(2), (1.6180339887, 1.3635556460, 1.1547005384)),
    ("prefix 16", around_columns, lambda: prefix(16), (6.7576147280, 3.3847244944, 1.7044802441)),
    ("prefix 256", around_columns, lambda: prefix(256), (40.390630652, 10.103242586, 2.5327161370)),
    ("workload", around_columns, workload, (29.041294399, 16.414380820, 9.3493715792)),
    ("workload, shifted", around_shifted, workload, (28.375038194, 16.072501818, 9.2028956671)),
    ("zonotope", around_columns, zonotope, (35.412416366, 26.497644916, 24.0)),
    ("marginals, shifted", around_shifted, marginals, (15.437253933, None, 1.8342712403)),
    ("marginals", around_columns, marginals, (18.035330145, None, 2.1455284802)),
]


@pytest.mark.parametrize(
    ("around", "points", "p", "expected"),
    [
        pytest.param(around, points, p, value, id=f"{name}, p={p}")
        for name, around, points, values in REFERENCE
        for p, value in zip((2, 4, INF), values, strict=True)
        if value is not None
    ],
)
def test_the_reference_table_is_met_to_eight_digits(around, points, p, expected):
    result = around(points(), p)
    assert result.converged
    assert result.gap <= 1e-9
    # The table has ten digits of its own.
    assert result.value == pytest.approx(expected, rel=2e-9)
    assert result.floor <= expected * (1 + 1e-10)
    assert result.value >= expected * (1 - 1e-10)


def check_value(result, expected):
    assert result.converged
    assert result.floor <= expected * (1 + 1e-13)
    assert result.value >= expected * (1 - 1e-13)
    assert result.value == pytest.approx(expected, rel=2e-9)


@pytest.mark.parametrize("p", ORDERS)
def test_box_vertices_have_the_closed_form_of_the_box(p):
    sides = np.array([1.0, 0.3, 7.0, 2.0, 0.01])
    vertices = np.array(list(itertools.product([-1, 1], repeat=5))).T * sides[:, None]
    order = 2.0 if p == INF else 2 * p / (p + 2)
    check_value(around_columns(vertices, p), np.linalg.norm(sides, order))
    check_value(around_shifted(vertices + 3.0, p), np.linalg.norm(sides, order))
    check_value(around_differences(vertices, p), 2 * np.linalg.norm(sides, order))


@pytest.mark.parametrize("p", ORDERS)
def test_scaled_axes_have_the_closed_form_of_the_cross_polytope(p):
    # {‖x/s‖_1 ≤ 1}: 1/κ = 1/p + max(0, ½ − 1) = 1/p.
    sides = np.array([3.0, 1.0, 0.2, 8.0])
    check_value(around_columns(np.diag(sides), p), np.linalg.norm(sides, p))


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("d", [2, 3, 8])
def test_simplex_has_its_closed_forms(d, p):
    power = 0 if p == INF else 1 / p
    check_value(around_shifted(np.eye(d), p), (d - 1) * d ** (power - 1))
    # Coordinates are alike, so Γ_p = d^{1/p − ½}·Γ_2, and Γ_2 = √(2(d − 1)).
    check_value(around_differences(np.eye(d), p), d ** (power - 0.5) * np.sqrt(2 * (d - 1)))
    with_origin = np.hstack([np.zeros((d, 1)), np.eye(d)])
    a = (d - 1) ** 2
    y = (4 - a + np.sqrt(a * a + 8 * a)) / 8
    w = y / d
    expected = d ** (power - 0.5) * ((d - 1) * np.sqrt(w) + np.sqrt(w * (1 - y)))
    check_value(around_shifted(with_origin, p), expected)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("d", [2, 4, 16])
def test_hadamard_columns_are_answered_best_by_themselves(d, p):
    H = np.ones((1, 1))
    while len(H) < d:
        H = np.block([[H, H], [H, -H]])
    check_value(around_columns(H, p), d ** (0.5 + (0 if p == INF else 1 / p)))


def test_coordinate_transitive_sets_have_one_ellipsoid_for_every_p():
    turns = np.array([np.roll([3.0, 1.0, 0.0, -2.0, 0.5], k) for k in range(5)]).T
    best = around_columns(turns, 2).value
    for p in ORDERS[1:]:
        power = 0 if p == INF else 1 / p
        assert around_columns(turns, p).value == pytest.approx(5 ** (power - 0.5) * best, rel=2e-9)


@pytest.mark.parametrize("p", [2, 3, INF])
def test_blocks_combine_by_their_rules(p):
    rng = np.random.default_rng(11)
    A, B = rng.normal(size=(3, 6)), rng.normal(size=(2, 5))
    a, b = around_columns(A, p).value, around_columns(B, p).value
    union = np.block([[A, np.zeros((3, 5))], [np.zeros((2, 6)), B]])
    assert around_columns(union, p).value == pytest.approx(np.linalg.norm([a, b], p), rel=3e-9)
    # The product is symmetric in each block, so both signs of the second must be listed.
    both = np.hstack([B, -B])
    product = np.vstack([np.repeat(A, 10, axis=1), np.tile(both, 6)])
    order = 2 if p == INF else 2 * p / (p + 2)
    expected = np.linalg.norm([a, b], order)
    assert around_columns(product, p).value == pytest.approx(expected, rel=3e-9)


@pytest.mark.parametrize("p", [2, 4, INF])
def test_no_ellipsoid_found_by_another_method_is_smaller(p):
    from scipy.optimize import minimize

    columns = np.array([[1.0, 0.2, -0.7, 2.0], [0.1, 1.0, 0.9, 1.5]])

    def size(entries):
        L = np.array([[np.exp(entries[0]), 0.0], [entries[1], np.exp(entries[2])]])
        reach = np.sqrt(np.sum(np.linalg.solve(L, columns) ** 2, axis=0)).max()
        return np.linalg.norm(np.sqrt(np.sum(L**2, axis=1)), p) * reach

    options = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000, "maxfev": 8000}
    starts = [[0, 0, 0], [0.5, 0.5, 0], [0, -0.5, 0.3]]
    best = min(minimize(size, x, method="Nelder-Mead", options=options).fun for x in starts)
    result = around_columns(columns, p)
    assert best >= result.floor * (1 - 1e-12)
    assert result.value == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("p", [2, 4, INF])
@pytest.mark.parametrize("around", [around_columns, around_shifted, around_differences])
def test_a_singleton_or_zero_costs_nothing(around, p):
    points = np.zeros((3, 4)) if around is around_columns else np.full((3, 4), 1000.3)
    result = around(points, p)
    assert (result.value, result.floor, result.gap) == (0, 0, 0)
    assert result.factor.shape == (3, 0)
    assert result.converged
    if around is around_shifted:
        assert (result.shift == 1000.3).all()


@pytest.mark.parametrize("p", ORDERS)
def test_a_segment_costs_its_length(p):
    a = np.array([[3.0], [-4.0], [0.5]])
    assert around_columns(a, p).value == pytest.approx(np.linalg.norm(a[:, 0], p), rel=1e-11)
    pair = np.hstack([a + 7, 7 + 0 * a])
    shifted, difference = around_shifted(pair, p), around_differences(pair, p)
    assert shifted.factor.shape == difference.factor.shape == (3, 1)
    assert shifted.value == pytest.approx(np.linalg.norm(a[:, 0], p) / 2, rel=1e-11)
    assert np.allclose(shifted.shift, 7 + a[:, 0] / 2)
    assert difference.value == pytest.approx(np.linalg.norm(a[:, 0], p), rel=1e-11)


def test_a_flat_set_gets_an_ellipsoid_of_its_own_rank():
    rng = np.random.default_rng(3)
    flat = rng.integers(-3, 4, (5, 2)) @ rng.integers(-3, 4, (2, 30)).astype(float)
    flat[2] = 0
    for p in ORDERS:
        result = around_columns(flat, p)
        assert result.converged
        assert result.factor.shape == (5, 2)
        assert not result.factor[2].any()
        y = np.linalg.lstsq(result.factor, flat, rcond=None)[0]
        assert np.allclose(result.factor @ y, flat, atol=1e-12)
        assert np.sqrt(np.sum(y**2, axis=0)).max() <= 1 + 1e-12


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("around", [around_columns, around_shifted, around_differences])
def test_the_dual_that_is_returned_is_worth_its_floor(around, p):
    points = workload()
    result = around(points, p)
    rank = result.factor.shape[1]
    most = rank * (rank + 1) // 2 + 1 + (rank if around is around_shifted else 0)
    assert result.contacts == len(result.active) == result.points.shape[1] <= most
    assert result.weights.sum() == pytest.approx(1, rel=1e-12)
    if around is around_differences:
        given = points[:, result.active[:, 0]] - points[:, result.active[:, 1]]
    else:
        given = points[:, result.active]
    assert np.array_equal(given, result.points)
    shifted = around is around_shifted
    floor = dual_floor(result.points, result.weights, result.diagonal, p, shifted=shifted)
    assert floor == pytest.approx(result.floor, rel=1e-11)


@pytest.mark.parametrize("p", [2, 4, INF])
@pytest.mark.parametrize("around", [around_columns, around_shifted, around_differences])
def test_weights_measure_the_error_of_each_coordinate(around, p):
    points, weights = workload()[:4], np.array([1.0, 100.0, 0.01, 3.0])
    result, scaled = around(points, p, weights=weights), around(weights[:, None] * points, p)
    assert result.value == pytest.approx(scaled.value, rel=2e-9)
    rows = weights * np.sqrt(np.sum(result.factor**2, axis=1))
    assert np.linalg.norm(rows, p) == pytest.approx(result.value, rel=1e-12)


@pytest.mark.parametrize("p", [2, INF])
@pytest.mark.parametrize("scale", [1e-140, 1e-9, 1e9, 1e140])
def test_sizes_far_from_one_change_nothing(scale, p):
    plain, scaled = around_columns(workload(), p), around_columns(workload() * scale, p)
    assert scaled.converged
    assert scaled.value == pytest.approx(plain.value * scale, rel=2e-9)


def test_the_same_input_gives_the_same_bits():
    first, again = around_columns(workload(), 4), around_columns(workload(), 4)
    assert first.value == again.value
    assert np.array_equal(first.factor, again.factor)


@pytest.mark.parametrize("p", [2, 4, INF])
@pytest.mark.parametrize("around", [around_columns, around_shifted])
def test_many_points_are_generated_and_agree_with_all_at_once(around, p):
    rng = np.random.default_rng(5)
    points = rng.normal(size=(4, 20_000))
    result = around(points, p)
    assert result.converged
    moved = points - result.shift[:, None] if around is around_shifted else points
    inside = np.sqrt(np.sum(np.linalg.solve(result.factor, moved) ** 2, axis=0))
    assert inside.max() <= 1 + 1e-12
    few = around(points[:, inside > 0.8], p)
    assert few.value == pytest.approx(result.value, rel=2e-9)


@pytest.mark.parametrize("p", [2, INF])
def test_a_loose_tolerance_is_met_and_a_tight_one_never_claimed_falsely(p):
    loose = around_columns(workload(), p, 1e-2)
    assert loose.converged
    assert loose.gap <= 1e-2
    tight = around_columns(workload(), p, 1.1e-12)
    assert tight.converged == (tight.gap <= 1.1e-12)
    assert tight.gap < 1e-9


@pytest.mark.parametrize("around", [around_columns, around_shifted, around_differences])
def test_bad_input_is_refused(around):
    good = np.eye(2)
    for p in (1, 1.999, 0, -2, np.nan, "two", None):
        with pytest.raises(InvalidInput, match="p must be"):
            around(good, p)
    for tol in (0, -1, 1e-12, 1e-13, np.nan, INF, "small"):
        with pytest.raises(InvalidInput, match="tol must be"):
            around(good, 2, tol)
    for points in (
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        np.zeros(3),
        np.zeros((2, 2, 2)),
        [[1, np.nan]],
        [[1, np.inf]],
        [[1, 2], [3]],
        [["a"]],
        [[1e200]],
        [[1e-200]],
        3.0,
        None,
    ):
        with pytest.raises(InvalidInput):
            around(points, 2)
    for weights in ([1.0], [1.0, 0.0], [1.0, -1.0], [1.0, np.nan], [[1.0, 1.0]], ["a", "b"]):
        with pytest.raises(InvalidInput, match="weights must be"):
            around(good, 2, weights=weights)
