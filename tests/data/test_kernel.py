"""The kernel: exact, one record at a time, inside the public integers."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from muhat._integers import round_half_even
from muhat.data.engine import Accumulator, record_integers
from muhat.domains.lattice import (
    BallLattice,
    BoxLattice,
    Lattice,
    LpGauge,
    PointsLattice,
    SchattenGauge,
    SimplexLattice,
)
from muhat.errors import InvalidInput
from muhat.records.columns import Batch, Column, Decimals, Floats, Integers

POISON = [math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, -1e-310, 1e308, -1.7976931348623157e308]

BOUNDS = [
    (0, 1), (1000, 1100), (2**60, 2**60 + 1000), (-1e308, 1e308), (0, 1e-300), (0, 5e-324),
    (0, 5e-321), (3, 3), (2**60 + 1, 2**60 + 1), (0.1, 0.1), (0.1, 0.7), (1e308, 1.1e308),
    (1.0, 1.0000000000000002), (-1, 1e15), (-(2**63), 2**63), (0, 2**64), (-1e30, 1e30),
    (2**62, 2**63), (2**63 - 10, 2**63 + 10), (-5, 2**61), (7, 7.00001), (6.99999999, 7.00001),
    (1e25, 1e26), (-1e26, -1e25), (-3e13, 4e13),
]  # fmt: skip

LATTICES: list[Lattice] = [
    BoxLattice.around([-1.0, 2**60, 0.0], [2.0, 2**60 + 1000, 1e-300]),
    BallLattice.around([0.0, 0.0, 0.0], 1.0),
    BallLattice.around([0.1, -0.2, 1e3], 2.5),
    BallLattice.around([0.1, -0.2, 1e3], 1e-170),
    BallLattice.around([1e300, -1e308, 0.0], 1e308),
    BallLattice.whitened([0.5, 0.0, -1.0], [[1.0], [0.3, 2.0], [1e-3, -0.7, 0.5]]),
]

WITH_CENTER: list[Lattice] = [
    *LATTICES,
    BallLattice.scaled([0.5, 0.0, -1.0], [1.0, 1e-3, 40.0]),
    BallLattice.mapped([0.5, 0.0, -1.0], [[1.0, -0.5, 0.25], [0.0, 3.0, 1.0]]),
    BallLattice.mapped([0.5, 0.0, -1.0], np.arange(-6, 9).reshape(5, 3).tolist()),
    BallLattice.around([0.1, -0.2, 1e3], 2.5, LpGauge(1, (1.0, 2.0, 0.3))),
    BallLattice.around([0.0, 0.0, 0.0], 1e-170, LpGauge(3, (1e-170, 2e-170, 1e-169))),
    BallLattice.around([0.0, 0.0, 0.0], 1e120, LpGauge(math.inf, (1e120, 1e119, 1e119))),
    BallLattice.scaled([0.1, -0.2, 5.0], [1.0, 0.5, 2.0], LpGauge(4 / 3, (1.0, 2.0, 0.5))),
    BallLattice.mapped([0.0, 0.0, 1.0], [[0.3, 0.2, -0.5]], LpGauge(2.5, (1.0, 2.0, 0.5))),
    BallLattice.around([0.1, 0.2, 0.3], 1.0, SchattenGauge(1, (1, 3), 1.0)),
    SimplexLattice(3),
    SimplexLattice(3, origin=True),
]
CORNERS = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, -2.0, 1.0], [1e3, 1e3, 1e-3]]
EVERY_LATTICE: list[Lattice] = [*WITH_CENTER, PointsLattice.of(CORNERS, nearest=True, default=3)]


def batch(records: NDArray[np.float64]) -> Batch:
    return Batch(len(records), [Floats(values.copy()) for values in records.T])


def total(lattice: Lattice, *batches: Batch, missing: str = "center") -> tuple[list[int], int]:
    accumulator = Accumulator(lattice, missing)
    for each in batches:
        accumulator.add(each)
    return accumulator.total, accumulator.counted


def reference(lattice: BoxLattice, coordinate: int, value: Fraction) -> int:
    """Clip exactly, round half to even: what a box integer is."""
    grid = lattice.grid[coordinate]
    steps = value / grid - lattice.center_units[coordinate]
    nearest = round_half_even(steps.numerator, steps.denominator)
    return min(max(nearest, lattice.lower[coordinate]), lattice.upper[coordinate])


def records(seed: int, rows: int, dim: int = 3) -> NDArray[np.float64]:
    """Ordinary records with poison strewn in."""
    rng = np.random.default_rng(seed)
    made = rng.standard_normal((rows, dim)) * 10.0 ** rng.integers(-3, 4, (rows, dim))
    poison = rng.random((rows, dim)) < 0.05
    made[poison] = rng.choice(POISON, int(poison.sum()))
    return made


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_box_integers_of_floats_are_exact(low: float, high: float) -> None:
    lattice = BoxLattice.around([low], [high])
    rng = np.random.default_rng(1)
    spread = float(Fraction(high) / 2 - Fraction(low) / 2)
    with np.errstate(over="ignore"):
        near = float(low) + (rng.random(300) * 1.2 - 0.1) * spread * 2
    ends = [np.nextafter(float(end), way) for end in (low, high) for way in (-np.inf, np.inf)]
    values = np.concatenate(
        [near, ends, [float(low), float(high)], POISON, [2.0**60 + 256, 1050.5, 7, 0.5]]
    )
    expected = [
        reference(lattice, 0, Fraction(value)) if math.isfinite(value) else 0
        for value in values.tolist()
    ]
    assert record_integers(lattice, batch(values[:, None]))[:, 0].tolist() == expected


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_box_integers_of_whole_numbers_are_exact(low: float, high: float, kind: type) -> None:
    lattice = BoxLattice.around([low], [high])
    info = np.iinfo(kind)
    rng = np.random.default_rng(2)
    middle = (Fraction(low) + Fraction(high)) / 2
    wanted = [int(point) + step for point in (low, high, middle) for step in range(-6, 7)]
    wanted += [int(Fraction(low) + (Fraction(high) - Fraction(low)) * k / 99) for k in range(100)]
    wanted += [info.min, info.max, 0, 1, 6, 7, 8, 2**53 + 1, 2**62 + 1]
    wanted += rng.integers(info.min, info.max, 200, dtype=kind, endpoint=True).tolist()
    values = [value for value in wanted if info.min <= value <= info.max]
    column = Integers(np.array(values, kind))
    expected = [reference(lattice, 0, Fraction(value)) for value in values]
    assert record_integers(lattice, Batch(len(values), [column]))[:, 0].tolist() == expected


def limbs(values: list[int], count: int) -> NDArray[np.uint64]:
    return np.array(
        [[(value >> 64 * limb) % 2**64 for limb in range(count)] for value in values], np.uint64
    )


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("scale", [-3, 0, 2, 18, 30])
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_box_integers_of_decimals_are_exact(
    low: float, high: float, scale: int, width: int
) -> None:
    lattice = BoxLattice.around([low], [high])
    tens = Fraction(10) ** scale
    units = [int(value) for value in np.random.default_rng(3).integers(-(10**9), 10**9, 40)]
    units += [int(Fraction(end) * tens) + step for end in (low, high) for step in (-1, 0, 1, 10**6)]
    units += [0, 2**53, 2**53 + 1, -(2**53) - 1, 10**37, -(10**37)]
    units = [unit for unit in units if abs(unit) < 2 ** (64 * width - 1)]
    column = Decimals(limbs(units, width), scale)
    expected = [reference(lattice, 0, unit / tens) for unit in units]
    assert record_integers(lattice, Batch(len(units), [column]))[:, 0].tolist() == expected


def test_ties_of_decimals_go_to_the_even_integer() -> None:
    lattice = BoxLattice.around([0], [2**50])
    step = int(lattice.grid[0])
    halves = [step // 2 * odd for odd in range(1, 40, 2)]
    column = Decimals(limbs([half * 100 for half in halves], 2), 2)
    expected = [reference(lattice, 0, Fraction(half)) for half in halves]
    assert record_integers(lattice, Batch(len(halves), [column]))[:, 0].tolist() == expected
    whole = record_integers(lattice, Batch(len(halves), [Integers(np.array(halves))]))
    floats = record_integers(lattice, batch(np.array(halves, float)[:, None]))
    assert whole.tolist() == floats.tolist() == [[value] for value in expected]


@pytest.mark.parametrize("lattice", EVERY_LATTICE)
@pytest.mark.parametrize("missing", ["center", "drop"])
def test_one_records_integers_do_not_depend_on_the_others(lattice: Lattice, missing: str) -> None:
    made = records(4, 300)
    together = record_integers(lattice, batch(made), missing)
    alone = [record_integers(lattice, batch(made[row : row + 1]), missing)[0] for row in range(300)]
    assert np.array_equal(together, alone)
    shuffled = np.random.default_rng(5).permutation(300)
    assert np.array_equal(
        record_integers(lattice, batch(made[shuffled]), missing), together[shuffled]
    )


@pytest.mark.parametrize("lattice", EVERY_LATTICE)
@given(
    seed=st.integers(0, 2**32),
    cuts=st.lists(st.integers(0, 200), max_size=5),
    missing=st.sampled_from(["center", "drop"]),
)
@settings(max_examples=25, deadline=None)
def test_sum_is_the_same_for_every_batch_split_order_and_layout(
    lattice: Lattice, seed: int, cuts: list[int], missing: str
) -> None:
    made = records(seed, 200)
    listed = record_integers(lattice, batch(made), missing)
    expected = [sum(column) for column in listed.T.tolist()]
    complete = int(np.isfinite(made).all(axis=1).sum()) if missing == "drop" else 200
    order = np.random.default_rng(seed).permutation(200)
    edges = [0, *sorted(cuts), 200]
    parts = [made[order][a:b] for a, b in pairwise(edges)]
    for split in (
        [batch(part) for part in parts],
        [Batch(len(part), matrix=np.ascontiguousarray(part)) for part in parts],
        [Batch(len(part), [Floats(values) for values in part.T]) for part in parts],
    ):
        assert total(lattice, *split, missing=missing) == (expected, complete)


@pytest.mark.parametrize("lattice", EVERY_LATTICE)
def test_sum_over_many_blocks_equals_the_sum_of_small_ones(lattice: Lattice) -> None:
    made = records(6, 150_000)
    whole = total(lattice, Batch(len(made), matrix=made))
    pieces = [Batch(len(part), matrix=part) for part in np.array_split(made, 37)]
    assert whole == total(lattice, *pieces) == total(lattice, batch(made))


def test_sums_at_the_ends_do_not_wrap_around() -> None:
    lattice = BoxLattice.around([-1.0], [1.0])
    rows = 1 << 19
    for value in (1e308, -1e308):
        ends = total(lattice, batch(np.full((rows, 1), value)))[0]
        assert ends == [rows * (lattice.upper if value > 0 else lattice.lower)[0]]


@pytest.mark.parametrize("lattice", WITH_CENTER)
def test_missing_and_non_finite_values_become_the_center(lattice: Lattice) -> None:
    made = records(7, 400)
    finite = np.where(np.isfinite(made), made, 0.0)
    valid = np.random.default_rng(8).random(made.shape) < 0.9
    columns: list[Column] = [Floats(finite[:, j], valid[:, j]) for j in range(3)]
    assert not isinstance(lattice, PointsLattice)
    centered = np.where(valid, finite, lattice.center)
    expected = record_integers(lattice, batch(centered))
    assert np.array_equal(record_integers(lattice, Batch(400, columns)), expected)
    as_nan = np.where(valid, finite, np.nan)
    assert np.array_equal(record_integers(lattice, batch(as_nan)), expected)
    dropped = record_integers(lattice, Batch(400, columns), "drop")
    kept = valid.all(axis=1)
    assert np.array_equal(dropped[kept], expected[kept])
    assert not dropped[~kept].any()
    assert total(lattice, Batch(400, columns), missing="drop")[1] == int(kept.sum())


def squares_at_most(integers: NDArray[np.int64], radius: int) -> NDArray[np.bool_]:
    """Σ q² ≤ radius² for every row, exactly, in three 23-bit limbs."""
    high, low = integers >> 23, integers & ((1 << 23) - 1)
    parts = [(high * high).sum(1), (2 * high * low).sum(1), (low * low).sum(1)]
    parts[1] += parts[2] >> 23
    parts[0] += parts[1] >> 23
    limit = radius * radius
    first, second, third = limit >> 46, (limit >> 23) & ((1 << 23) - 1), limit & ((1 << 23) - 1)
    mask = (1 << 23) - 1
    a, b, c = parts[0], parts[1] & mask, parts[2] & mask
    result: NDArray[np.bool_] = (a < first) | (
        (a == first) & ((b < second) | ((b == second) & (c <= third)))
    )
    return result


@pytest.mark.parametrize("dim", [1, 2, 3, 16, 100])
@pytest.mark.parametrize("radius", [1.0, 0.9999999999999999, 3.7, 1e-170, 5e-324, 1.7e308])
def test_ball_integers_never_leave_the_integer_ball(dim: int, radius: float) -> None:
    rows = 1_600_000 // 100 if dim == 100 else 60_000
    rng = np.random.default_rng(dim)
    center = rng.standard_normal(dim) * radius if radius < 1e300 else np.zeros(dim)
    lattice = BallLattice.around(center.tolist(), radius)
    with np.errstate(all="ignore"):
        made = rng.standard_normal((rows, dim))
        made /= np.sqrt((made * made).sum(axis=1, keepdims=True))
        size = radius * (1 + rng.integers(-8, 9, (rows, 1)) * 2.0**-53)
        size[: rows // 2] *= 10.0 ** rng.uniform(-2, 20, (rows // 2, 1))
        made = made * size + center
    poison = rng.random((rows, dim)) < 0.02 / dim
    made[poison] = rng.choice(POISON, int(poison.sum()))
    integers = record_integers(lattice, Batch(rows, matrix=made))
    assert squares_at_most(integers, lattice.radius).all()
    # The check has teeth: records on the sphere come within rounding of the integer radius.
    assert not squares_at_most(integers, lattice.radius - 4 - math.isqrt(dim)).all()


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e8, 1e150])
def test_whitened_integers_never_leave_the_integer_ball(condition: float) -> None:
    rng = np.random.default_rng(9)
    dim, rows = 4, 100_000
    triangle = np.tril(rng.standard_normal((dim, dim))) + 2 * np.eye(dim)
    triangle *= np.geomspace(1 / condition, condition, dim)[:, None]
    lattice = BallLattice.whitened([0.0] * dim, triangle.tolist())
    made = rng.standard_normal((rows, dim)) * 10.0 ** rng.uniform(-200, 200, (rows, 1))
    poison = rng.random((rows, dim)) < 0.02
    made[poison] = rng.choice(POISON, int(poison.sum()))
    integers = record_integers(lattice, Batch(rows, matrix=made))
    assert squares_at_most(integers, lattice.radius).all()
    assert np.count_nonzero(integers.any(axis=1)) > rows // 4


def test_box_integers_never_leave_the_box() -> None:
    rng = np.random.default_rng(10)
    for low, high in BOUNDS:
        lattice = BoxLattice.around([low], [high])
        values = rng.integers(0, 2**64, 50_000, dtype=np.uint64, endpoint=False).view(np.float64)
        integers = record_integers(lattice, batch(values[:, None]))
        assert integers.min() >= lattice.lower[0]
        assert integers.max() <= lattice.upper[0]
        words = record_integers(lattice, Batch(50_000, [Integers(values.view(np.int64))]))
        assert words.min() >= lattice.lower[0]
        assert words.max() <= lattice.upper[0]


def exact_ball(lattice: BallLattice, record: list[float]) -> list[Fraction]:
    """The clipped record in steps, to 60 digits: x if inside, else on the sphere."""
    moved = [Fraction(x) - Fraction(c) for x, c in zip(record, lattice.center, strict=True)]
    if lattice.whitening is not None:
        moved = [
            sum((Fraction(w) * z for w, z in zip(row, moved, strict=False)), Fraction(0))
            for row in lattice.whitening
        ]
    square = sum((z * z for z in moved), Fraction(0))
    radius = Fraction(lattice.clip_radius)
    if square > radius * radius:
        shift = 10**60 / min(square, Fraction(1)) if square < 1 else Fraction(10**60)
        root = Fraction(math.isqrt(int(square * shift * shift)), 1) / shift
        moved = [z * radius / root for z in moved]
    return [z / lattice.grid for z in moved]


@pytest.mark.parametrize("lattice", [each for each in LATTICES if isinstance(each, BallLattice)])
def test_ball_integers_are_within_two_steps_of_the_exact_clip(lattice: BallLattice) -> None:
    rng = np.random.default_rng(11)
    scale = lattice.clip_radius
    made = np.array(lattice.center) + rng.standard_normal((200, 3)) * min(scale, 1e307)
    made[:20] = rng.standard_normal((20, 3)) * 1e307
    made[20:40, 1] = 1e308
    made[40:50] = lattice.center
    integers = record_integers(lattice, batch(made))
    for row, record in enumerate(made.tolist()):
        for got, exact in zip(integers[row].tolist(), exact_ball(lattice, record), strict=True):
            assert abs(got - exact) <= 2, row


def test_whole_numbers_and_decimals_in_a_ball_keep_what_floats_lose() -> None:
    center = float(2**60)
    lattice = BallLattice.around([center, 0.0], 1000.0)
    values = [2**60 + step for step in (0, 1, 3, 100, -77, 255)]
    zeros = Floats(np.zeros(len(values)))
    whole = record_integers(lattice, Batch(6, [Integers(np.array(values)), zeros]))
    steps = Fraction(1) / lattice.grid
    assert whole[:, 0].tolist() == [(value - 2**60) * steps for value in values]
    unsigned = Integers(np.array(values, np.uint64))
    assert np.array_equal(record_integers(lattice, Batch(6, [unsigned, zeros])), whole)
    exact = Decimals(limbs([value * 10**6 for value in values], 2), 6)
    assert np.array_equal(record_integers(lattice, Batch(6, [exact, zeros])), whole)


def test_whole_numbers_that_are_floats_are_clipped_as_floats_are() -> None:
    values = np.random.default_rng(12).integers(-(2**53), 2**53, (500, 3))
    for lattice in [*EVERY_LATTICE, BallLattice.around([0.1, 7.3, 1e9], 1e15)]:
        whole = Batch(500, [Integers(values[:, j].copy()) for j in range(3)])
        floats = batch(values.astype(float))
        assert np.array_equal(record_integers(lattice, whole), record_integers(lattice, floats))


def test_absent_records_count_unless_dropped() -> None:
    lattice = BoxLattice.around([0.0], [1.0])
    some = Batch(2, [Floats(np.array([1.0, 0.5]))], absent=3)
    assert total(lattice, some) == ([lattice.upper[0]], 5)
    assert total(lattice, some, missing="drop") == ([lattice.upper[0]], 2)


def test_unknown_ways_to_treat_missing_values_are_refused() -> None:
    with pytest.raises(InvalidInput, match="missing"):
        Accumulator(BoxLattice.around([0.0], [1.0]), "dorp")


@pytest.mark.parametrize("dim", [2, 16])
def test_a_million_adversarial_records_stay_in_the_ball(dim: int) -> None:
    rng = np.random.default_rng(13)
    lattice = BallLattice.around([0.25] * dim, 0.7)
    for _ in range(20):
        words = rng.integers(0, 2**64, (60_000, dim), dtype=np.uint64).view(np.float64)
        integers = record_integers(lattice, Batch(len(words), matrix=words))
        assert squares_at_most(integers, lattice.radius).all()


@pytest.mark.parametrize("size", [1.0, 1e-300, 1e305, 1e308])
def test_floats_next_to_a_tie_are_rounded_once(size: float) -> None:
    """Rounding x − c before rounding to the grid would send these the wrong way."""
    lattice = BoxLattice.around([-size], [size], [size / 2])
    ties = [float((units + Fraction(1, 2)) * lattice.grid[0]) for units in range(-6, 6)]
    ties += [np.nextafter(tie, way) for tie in ties for way in (-np.inf, np.inf)]
    expected = [[reference(lattice, 0, Fraction(tie))] for tie in ties]
    assert record_integers(lattice, batch(np.array(ties)[:, None])).tolist() == expected
