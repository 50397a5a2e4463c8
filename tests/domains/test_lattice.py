"""The integer domains: public integers that plan and kernel share."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muhat._integers import round_half_even
from muhat.domains.lattice import (
    BallLattice,
    BoxLattice,
    EllipsoidGauge,
    Lattice,
    LpGauge,
    MomentLattice,
    PointsLattice,
    ProductLattice,
    SchattenGauge,
    SimplexLattice,
)
from muhat.domains.moment_basis import TensorBasis
from muhat.domains.moment_differences import WeightedSets
from muhat.errors import InvalidInput

FINITE = st.floats(allow_nan=False, allow_infinity=False)
TOP = 1 << 45

BOUNDS = [
    (0.0, 1.0),
    (1000, 1100),
    (2**60, 2**60 + 1000),
    (-1e308, 1e308),
    (-1.7976931348623157e308, 1.7976931348623157e308),
    (0.0, 1e-300),
    (0.0, 5e-324),
    (0.0, 5e-321),
    (1.0, 1.0000000000000002),
    (1e308, 1.1e308),
    (Fraction(1, 3), Fraction(2, 3)),
    (-(2**63), 2**64),
]


def check(lattice: BoxLattice, low: Fraction, high: Fraction) -> None:
    (exponent,), (center,) = lattice.exponents, lattice.center_units
    (lower,), (upper,) = lattice.lower, lattice.upper
    grid = Fraction(2) ** exponent
    assert lattice.grid == (grid,)
    assert -TOP <= lower <= 0 <= upper <= TOP
    assert max(-lower, upper) >= TOP // 2
    assert Fraction(lattice.center[0]) == center * grid
    assert abs(center * grid + lower * grid - low) <= grid / 2
    assert abs(center * grid + upper * grid - high) <= grid / 2
    assert lattice.extent == (upper - lower,)


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_box_lattice_covers_the_box_with_forty_five_bits(low: float, high: float) -> None:
    check(BoxLattice.around([low], [high]), Fraction(low), Fraction(high))


@given(FINITE, FINITE, st.fractions(0, 1, max_denominator=1000))
@settings(max_examples=400, deadline=None)
def test_box_lattice_is_right_for_all_floats_and_origins(a: float, b: float, at: Fraction) -> None:
    low, high = sorted((Fraction(a), Fraction(b)))
    if low == high:
        return
    check(BoxLattice.around([low], [high]), low, high)
    origin = low + at * (high - low)
    lattice = BoxLattice.around([low], [high], [origin])
    check(lattice, low, high)
    assert abs(Fraction(lattice.center[0]) - origin) <= max(
        lattice.grid[0], abs(origin) / 2**53, Fraction(1, 2**1075)
    )


@pytest.mark.parametrize("value", [0.1, 3, 2**60 + 1, -1e308, 5e-324, 0.0])
def test_a_coordinate_of_zero_width_is_a_constant(value: float) -> None:
    lattice = BoxLattice.around([value], [value])
    assert lattice.lower == lattice.upper == (0,)
    assert lattice.center_units[0] * lattice.grid[0] == Fraction(value)
    assert lattice.center == (float(value),)


def test_whole_numbers_and_dyadic_fractions_lie_on_the_grid() -> None:
    lattice = BoxLattice.around([0, -3, 0.25], [200_000, 90, 0.75])
    for grid in lattice.grid:
        assert (Fraction(1, 1024) / grid).denominator == 1


@pytest.mark.parametrize(
    ("low", "high", "origin", "words"),
    [
        ([1.0], [0.0], None, "exceed"),
        ([math.nan], [1.0], None, "finite"),
        ([0.0], [math.inf], None, "finite"),
        (["a"], [1.0], None, "number"),
        ([0.0], [1.0, 2.0], None, "one number a coordinate"),
        ([], [], None, "at least one"),
        ([0.0], [1.0], [2.0], "between"),
        ([0.0], [1.0], [0.5, 0.5], "coordinates"),
        ([0], [10**400], None, "range of floats"),
        ([Fraction(0)], [Fraction(1, 10**400)], None, "too close"),
        ([Fraction(10**300)], [10**300 + Fraction(1, 10**300)], None, "too close"),
    ],
)
def test_impossible_boxes_are_refused(low, high, origin, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInput, match=words):
        BoxLattice.around(low, high, origin)


def test_bounds_of_numpy_and_decimal_types_are_read() -> None:
    expected = BoxLattice.around([0.0, 1.0], [2.0, 3.5])
    assert BoxLattice.around(np.array([0.0, 1.0]), np.array([2.0, 3.5])) == expected
    assert BoxLattice.around([np.int64(0), Decimal(1)], [2, np.float32(3.5)]) == expected


@given(st.floats(5e-324, 1.7e308), st.integers(1, 300))
@settings(max_examples=200, deadline=None)
def test_ball_lattice_has_the_radius_of_the_recipe(radius: float, dim: int) -> None:
    lattice = BallLattice.around([0.0] * dim, radius)
    steps = Fraction(radius) / lattice.grid
    assert 1 << 44 <= steps < 1 << 45
    inflated = steps * (1 + Fraction(2 * dim + 12, 2**53))
    # ⌈inflated + √d/2⌉ + 1, the square root by squares alone
    least = lattice.radius - 1 - inflated
    assert least > 0
    assert (2 * least) ** 2 >= dim
    if 2 * (least - 1 - Fraction(1, 2**30)) > 0:
        assert (2 * (least - 1 - Fraction(1, 2**30))) ** 2 < dim


def test_whitening_is_stored_as_a_triangle() -> None:
    lattice = BallLattice.whitened([0, 0], np.array([[2.0, 0.0], [1.0, 3.0]]))
    assert lattice.whitening == ((2.0,), (1.0, 3.0))
    assert lattice.clip_radius == 1.0
    assert lattice.exponent == -44
    assert BallLattice.whitened([0, 0], [[2.0], [1.0, 3.0]]) == lattice


def test_a_diagonal_whitening_is_stored_as_axes() -> None:
    lattice = BallLattice.scaled([0, 0, 1], [2.0, 1.0, 3.0])
    assert lattice.axes == (2.0, 1.0, 3.0)
    assert lattice.whitening is None
    assert (lattice.dim, lattice.record_dim, lattice.clip_radius) == (3, 3, 1.0)
    assert BallLattice.whitened([0, 0, 1], np.diag([2.0, 1.0, 3.0])) == lattice
    assert BallLattice.mapped([0, 0, 1], np.diag([2.0, 1.0, 3.0])) == lattice
    assert BallLattice.mapped([0, 0, 1], [[2.0], [0.0, 1.0], [0.0, 0.0, 3.0]]) == lattice


def test_a_dense_map_counts_sums_by_rows_and_records_by_columns() -> None:
    flat = BallLattice.mapped([0, 0, 1], [[2.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    assert (flat.dim, flat.record_dim) == (2, 3)
    tall = BallLattice.mapped([0], [[2.0], [1.0], [0.0]])
    assert (tall.dim, tall.record_dim) == (3, 1)
    assert tall.radius == BallLattice.around([0] * 3, 1.0).radius
    square = BallLattice.mapped([0, 0], [[1.0, 2.0], [3.0, 4.0]])
    assert square.whitening == ((1.0, 2.0), (3.0, 4.0))
    triangle = BallLattice.mapped([0, 0], [[2.0, 0.0], [1.0, 3.0]])
    assert triangle == BallLattice.whitened([0, 0], [[2.0], [1.0, 3.0]])
    one_row = BallLattice.mapped([0, 0], [[2.0, 0.0]])
    assert one_row.whitening == ((2.0, 0.0),)


def test_what_existed_before_gauges_is_written_as_before() -> None:
    written = BallLattice.whitened([0, 0], [[2.0], [1.0, 3.0]]).to_dict()
    assert set(written) == {"kind", "exponent", "radius", "clip_radius", "center", "whitening"}


@pytest.mark.parametrize("origin", [False, True])
@pytest.mark.parametrize("dim", [1, 2, 3, 6, 100])
def test_simplex_lattice_has_its_centroid_inside(dim: int, origin: bool) -> None:
    lattice = SimplexLattice(dim, origin)
    units = lattice.center_units
    assert len(units) == lattice.dim == lattice.record_dim == dim
    assert min(units) > 0
    assert sum(units) <= lattice.total if origin else sum(units) == lattice.total
    assert lattice.total * lattice.grid == 1
    assert lattice.grid == Fraction(2) ** lattice.exponent


def test_points_lattice_keeps_points_only_if_records_move_to_them() -> None:
    listed = np.array([[0.0, -0.0], [1.0, 2.5], [3.0, 4.0]])
    codes = PointsLattice.of(listed, default=2)
    assert codes == PointsLattice.of(3, default=2) == PointsLattice.of(np.int64(3), default=2)
    assert (codes.dim, codes.record_dim, codes.points, codes.part_bits) == (3, 1, None, 0)
    near = PointsLattice.of(listed.tolist(), nearest=True)
    assert near == PointsLattice.of(listed, nearest=True)
    assert (near.dim, near.record_dim) == (3, 2)
    assert near.points is not None
    assert np.array_equal(near.points, listed)
    assert near.to_dict() != PointsLattice.of(listed * 2, nearest=True).to_dict()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BallLattice.around([0.0], 0.0), "radius"),
        (lambda: BallLattice.around([0.0], -1.0), "radius"),
        (lambda: BallLattice.around([0.0], math.inf), "radius"),
        (lambda: BallLattice.around([math.nan], 1.0), "center"),
        (lambda: BallLattice.around([], 1.0), "center"),
        (lambda: BallLattice.whitened([0, 0], [[1, 1], [0, 1]]), "triangular"),
        (lambda: BallLattice.whitened([0, 0], [[1, 0]]), "row"),
        (lambda: BallLattice.whitened([0, 0], [[0, 0], [0, 1]]), "diagonal"),
        (lambda: BallLattice.whitened([0], [[math.nan]]), "finite"),
        (lambda: BallLattice.mapped([0, 0], [[1, 0], [1]]), "one column a coordinate"),
        (lambda: BallLattice.mapped([0, 0], []), "one column a coordinate"),
        (lambda: BallLattice.mapped([0, 0], [[1, math.inf]]), "finite"),
        (lambda: BallLattice.scaled([0, 0], [1.0]), "one number a coordinate"),
        (lambda: BallLattice((0, 0), 1.0, ((1, 2), (3, 4)), (1, 2)), "not both"),
        (lambda: BallLattice.around([0, 0], 1.0, LpGauge(1, (1.0,))), "gauge"),
        (lambda: BallLattice.around([0, 0], 1.0, SchattenGauge(1, (2, 2), 1.0)), "gauge"),
        (lambda: LpGauge(0.9, (1.0,)), "at least 1"),
        (lambda: LpGauge(math.nan, (1.0,)), "at least 1"),
        (lambda: LpGauge(1, (0.0,)), "half_widths"),
        (lambda: LpGauge(1, ()), "half_widths"),
        (lambda: SchattenGauge(1, (2,), 1.0), "shape"),  # type: ignore[arg-type]
        (lambda: SchattenGauge(1, (2, 0), 1.0), "shape"),
        (lambda: SchattenGauge(1, (2, 2), -1.0), "radius"),
        (lambda: SimplexLattice(0), "dim"),
        (lambda: SimplexLattice(2, 1), "origin"),  # type: ignore[arg-type]
        (lambda: PointsLattice.of(0), "points"),
        (lambda: PointsLattice.of(3, default=3), "default"),
        (lambda: PointsLattice.of(3, default=-1), "default"),
        (lambda: PointsLattice.of(3, nearest=True), "listed"),
        (lambda: PointsLattice.of([[math.nan]], nearest=True), "finite"),
        (lambda: PointsLattice(3, 0, b"1234567"), "coordinates"),
        (lambda: BoxLattice((0,), (0,), (1,), (2,)), "lower <= 0"),
        (lambda: BoxLattice((0,), (0, 0), (0,), (0,)), "one exponent"),
    ],
)
def test_impossible_lattices_are_refused(make, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInput, match=words):
        make()


def test_lattices_are_hashable_and_written_without_decimal_floats() -> None:
    box = BoxLattice.around([0.1, 0], [0.7, 10])
    ball = BallLattice.whitened([0.1, 0], [[1.5], [0.25, 2.0]])
    further: list[Lattice] = [
        BallLattice.scaled([0.1, 0], [1.5, 2.0], LpGauge(1.5, (0.1, 0.2))),
        BallLattice.mapped([0.1, 0], [[1.5, 2.0]], SchattenGauge(math.inf, (1, 2), 0.3)),
        SimplexLattice(3),
        SimplexLattice(3, origin=True),
        PointsLattice.of(3),
        PointsLattice.of([[0.1], [0.2], [0.3]], nearest=True),
    ]
    assert len({box, ball, BoxLattice.around([0.1, 0], [0.7, 10]), *further}) == 8

    def leaves(value: object) -> list[object]:
        if isinstance(value, dict):
            return [leaf for part in value.values() for leaf in leaves(part)]
        if isinstance(value, list):
            return [leaf for part in value for leaf in leaves(part)]
        return [value]

    for lattice in (box, ball, *further):
        text = json.dumps(lattice.to_dict())
        assert json.loads(text) == lattice.to_dict()
        assert all(isinstance(leaf, int | str | None) for leaf in leaves(lattice.to_dict()))


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**12))
def test_round_half_even_agrees_with_python(numerator: int, denominator: int) -> None:
    assert round_half_even(numerator, denominator) == round(Fraction(numerator, denominator))


def test_a_moved_simplex_says_so_and_a_simplex_that_did_not_move_does_not():
    still = SimplexLattice(3, offset=(0.0, 0.0, 0.0))
    assert still == SimplexLattice(3)
    moved = SimplexLattice(3, offset=(1, 2, 3))
    assert moved.to_dict()["offset"] == [(1.0).hex(), (2.0).hex(), (3.0).hex()]
    assert "offset" not in still.to_dict()
    with pytest.raises(InvalidInput, match="offset"):
        SimplexLattice(3, offset=(1.0, 2.0))


@pytest.mark.parametrize("rows", [(), ((1.0, 2.0),), ((1.0,), (2.0,)), ((float("nan"),),)])
def test_an_ellipsoid_gauge_is_a_lower_triangle(rows):
    with pytest.raises(InvalidInput):
        EllipsoidGauge(rows)


def test_a_product_adds_up_its_parts():
    moments = MomentLattice.of(WeightedSets.whole(TensorBasis(2, 4)))
    parts = (SimplexLattice(3), moments, PointsLattice.of(5))
    product = ProductLattice(parts)
    assert product.record_dim == 3 + 4 + 1
    assert product.dim == 3 + 10 + 5
    assert product.to_dict()["parts"] == [part.to_dict() for part in parts]
    with pytest.raises(InvalidInput, match="part"):
        ProductLattice(())
