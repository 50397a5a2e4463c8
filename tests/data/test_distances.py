"""Counts of records by their distance, and sums of what lies beyond a radius."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.data import open_source
from muhat.data.distances import (
    BoundedAccumulator,
    DistanceCounter,
    ExcessAccumulator,
    Frame,
    LineCounter,
    bounded,
    bounded_sums,
    distance_counts,
    excess_sums,
    line_counts,
)
from muhat.data.engine import record_integers
from muhat.domains.lattice import BallLattice, Lattice
from muhat.records.columns import Batch, Floats, Integers

CENTER = np.array([1.0, -2.0, 0.5])
WEIGHTS = np.array([1.0, 2.0, 0.25])
FRAME = Frame(CENTER, WEIGHTS, 100.0)
EDGES = np.geomspace(0.01, 1000, 33)


def records(rows: int = 3000) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((rows, 3)) * [1, 5, 40]


def test_every_record_falls_into_the_cell_of_its_distance() -> None:
    rows = records()
    distance = np.linalg.norm((np.clip(rows, -100, 100) - CENTER) * WEIGHTS, axis=1)
    expected = np.bincount(np.searchsorted(EDGES, distance), minlength=33)
    assert distance_counts(open_source(rows, None, 3), FRAME, EDGES) == expected.tolist()


def test_counts_are_the_same_for_every_layout_and_split() -> None:
    rows = records(40_000)
    whole = distance_counts(open_source(rows, None, 3), FRAME, EDGES)
    columns = {name: rows[:, j].copy() for j, name in enumerate("abc")}
    assert distance_counts(open_source(columns, None, 3), FRAME, EDGES) == whole
    assert distance_counts(open_source(np.asfortranarray(rows), None, 3), FRAME, EDGES) == whole
    counter = DistanceCounter(FRAME, EDGES)
    for part in np.array_split(rows, 37):
        counter.add(Batch(len(part), matrix=np.ascontiguousarray(part)))
    assert counter.counts.tolist() == whole


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324])
def test_one_record_moves_one_count_whatever_it_is(poison: float) -> None:
    rows = records(500)
    before = np.array(distance_counts(open_source(rows, None, 3), FRAME, EDGES))
    rows[7] = poison
    after = np.array(distance_counts(open_source(rows, None, 3), FRAME, EDGES))
    assert after.sum() == before.sum() == 500
    assert np.abs(after - before).sum() <= 2


def test_missing_coordinates_count_as_the_centre() -> None:
    rows = np.array([[np.nan, np.nan, np.nan], [1.0, np.inf, 0.5], [2.0, np.nan, 0.5]])
    counts = distance_counts(open_source(rows, None, 3), FRAME, np.array([1e-9, 0.999, 1.001, 9]))
    assert counts == [2, 0, 1, 0]


def test_records_beyond_the_last_edge_are_counted_in_its_cell() -> None:
    rows = np.full((5, 3), 1e9)
    assert distance_counts(open_source(rows, None, 3), FRAME, np.array([1.0, 2.0])) == [0, 5]


def test_clipping_changes_nothing_inside_and_no_bits_depend_on_the_neighbours() -> None:
    rows = records(100)
    inside = bounded(Batch(100, matrix=rows), 1e9).matrix
    poisoned = rows.copy()
    poisoned[50] = [np.nan, np.inf, 1e300]
    outside = bounded(Batch(100, matrix=poisoned), 1e9).matrix
    assert inside is not None
    assert outside is not None
    kept = np.arange(100) != 50
    assert np.array_equal(inside[kept], outside[kept])
    assert np.isnan(outside[50, :2]).all()
    assert outside[50, 2] == 1e9


def test_sums_are_those_of_the_clipped_records() -> None:
    rows = records()
    rows[0] = 1e6
    lattice = BallLattice.around(CENTER.tolist(), 30.0)
    found = bounded_sums(open_source(rows, None, 3), lattice, 100.0)
    offset = np.clip(rows, -100, 100) - CENTER
    length = np.linalg.norm(offset, axis=1, keepdims=True)
    expected = (offset * np.minimum(1, 30 / length)).sum(axis=0)
    assert found.rows == len(rows)
    assert np.array(found.total, float) * float(lattice.grid) == pytest.approx(expected, abs=1e-6)


def test_excess_is_what_lies_between_two_balls() -> None:
    rows = records()
    lattice = BallLattice.around([0.0] * 3, 8.0)
    found = excess_sums(open_source(rows, None, 3), FRAME, 5.0, lattice)
    offset = (np.clip(rows, -100, 100) - CENTER) * WEIGHTS
    length = np.linalg.norm(offset, axis=1, keepdims=True)
    outer, inner = (offset * np.minimum(1, radius / length) for radius in (13.0, 5.0))
    expected = (outer - inner).sum(axis=0)
    assert found.rows == len(rows)
    assert np.array(found.total, float) * float(lattice.grid) == pytest.approx(expected, abs=1e-6)


def test_a_record_at_the_centre_or_missing_has_no_excess() -> None:
    rows = np.array([CENTER, [np.nan] * 3])
    lattice = BallLattice.around([0.0] * 3, 8.0)
    assert excess_sums(open_source(rows, None, 3), FRAME, 1e-300, lattice).total == (0, 0, 0)


POISON = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, 120.0, -1e4, 1e160])
DIMS = [1, 2, 8, 9, 40, 130]


def poisoned(rows: int, dim: int) -> np.ndarray:
    rng = np.random.default_rng(dim)
    made = rng.standard_normal((rows, dim)) * 10.0 ** rng.integers(-2, 2, dim) + 1
    bad = rng.random(made.shape) < 0.05 / dim
    made[bad] = rng.choice(POISON, int(bad.sum()))
    return made


def frame_of(dim: int, magnitude: float) -> Frame:
    weights = np.where(np.arange(dim) % 3, 1.0, 0.3)
    return Frame(np.linspace(-1, 2, dim), weights, magnitude)


def offsets(rows: np.ndarray, frame: Frame) -> list[np.ndarray]:
    """y by its definition, one coordinate after another."""
    moved = []
    with np.errstate(all="ignore"):
        for values, center, weight in zip(rows.T, frame.center, frame.weights, strict=True):
            inside = np.clip(values, -frame.magnitude, frame.magnitude)
            y = (inside - center) * weight
            moved.append(np.where(np.isfinite(values) & np.isfinite(y), y, 0.0))
    return moved


def squares(moved: list[np.ndarray]) -> np.ndarray:
    """Σ y_j² with j ascending."""
    with np.errstate(all="ignore"):
        total = moved[0] * moved[0]
        for values in moved[1:]:
            total = total + values * values
    return total


def counted(rows: np.ndarray, frame: Frame, edges: np.ndarray) -> list[int]:
    with np.errstate(all="ignore"):
        cells = np.searchsorted(np.square(edges), squares(offsets(rows, frame)))
    return np.bincount(np.minimum(cells, len(edges) - 1), minlength=len(edges)).tolist()


def batches(rows: np.ndarray) -> list[list[Batch]]:
    """The same records in several layouts and splits, and in a mixture of layouts."""
    parts = np.array_split(rows, 7)
    columns = [Batch(len(part), [Floats(values.copy()) for values in part.T]) for part in parts]
    matrices = [Batch(len(part), matrix=part.copy()) for part in parts]
    masked = []
    for part in parts:
        there = np.isfinite(part)
        filled = np.where(there, part, 3.0)
        masked.append(
            Batch(len(part), [Floats(x, ok) for x, ok in zip(filled.T, there.T, strict=True)])
        )
    mixed = [columns[0], *matrices[1:4], masked[4], columns[5], matrices[6]]
    return [[Batch(len(rows), matrix=rows)], columns, matrices, masked, mixed]


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("magnitude", [100.0, 1e4, 1e308])
def test_counts_are_those_of_the_definition_in_every_layout(dim: int, magnitude: float) -> None:
    rows, frame = poisoned(3000, dim), frame_of(dim, magnitude)
    near = np.sqrt(squares(offsets(rows, frame))[:40])
    # Edges at the very distances of some records, where the last bit decides.
    for edges in (EDGES, np.unique(near[np.isfinite(near) & (near > 0)])):
        expected = counted(rows, frame, edges)
        for layout in batches(rows):
            counter = DistanceCounter(frame, edges)
            for batch in layout:
                counter.add(batch)
            assert counter.counts.tolist() == expected


def test_records_on_the_edges_are_told_apart_by_the_ascending_sum() -> None:
    rng = np.random.default_rng(4)
    dim = 128
    frame = Frame(np.zeros(dim), np.ones(dim), 1e4)
    rows = rng.standard_normal((2000, dim))
    edges = np.array([11.0, 12.0])
    rows *= (11.0 / np.sqrt(squares(list(rows.T))))[:, np.newaxis]
    expected = counted(rows, frame, edges)
    assert distance_counts(open_source(rows, None, dim), frame, edges) == expected
    other = np.searchsorted(np.square(edges), np.square(rows).sum(axis=1))
    # Any other order of the sum moves dozens of them.
    exact = np.searchsorted(np.square(edges), squares(list(rows.T)))
    assert np.count_nonzero(other != exact) > 20


@pytest.mark.parametrize("magnitude", [100.0, 1e4, 1e308])
@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_records_on_a_line_are_counted_where_they_lie_in_every_layout(
    magnitude: float, weight: float
) -> None:
    rows = poisoned(3000, 1)
    frame = Frame(np.array([0.7]), np.array([weight]), magnitude)
    (moved,) = offsets(rows, frame)
    edges = np.unique([*np.linspace(-5, 5, 41), *moved[:20], 0.0, 1e9])
    cells = np.minimum(np.searchsorted(edges, moved), len(edges) - 1)
    expected = np.bincount(cells, minlength=len(edges)).tolist()
    for layout in batches(rows):
        counter = LineCounter(frame, edges)
        for batch in layout:
            counter.add(batch)
        assert counter.counts.tolist() == expected
    assert line_counts(open_source(rows, None, 1), frame, edges) == expected


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.int32, np.uint8, bool])
@pytest.mark.parametrize("dim", [1, 3, 40])
def test_other_types_are_counted_and_added_as_floats(kind: type, dim: int) -> None:
    rows = np.random.default_rng(3).integers(0, 100, (500, dim)).astype(kind)
    plain, frame = rows.astype(np.float64), frame_of(dim, 50.0)
    lattice = BallLattice.around([0.5] * dim, 20.0 * dim**0.5)
    found, wanted = (open_source(data, None, dim) for data in (rows, plain))
    assert distance_counts(found, frame, EDGES) == distance_counts(wanted, frame, EDGES)
    assert bounded_sums(found, lattice, 50.0) == bounded_sums(wanted, lattice, 50.0)
    assert excess_sums(found, frame, 9.0, lattice) == excess_sums(wanted, frame, 9.0, lattice)


def test_whole_numbers_beyond_the_floats_are_clipped_as_the_nearest_floats() -> None:
    values = np.array([2**60 + 1, -(2**60) - 1, 5, 0])
    columns = [Integers(values), Integers(values, np.array([True, True, False, True]))]
    counter = DistanceCounter(Frame(np.zeros(2), np.ones(2), 1e3), np.array([1.0, 6.0, 1e3, 1e4]))
    counter.add(Batch(4, columns))
    assert counter.counts.tolist() == [1, 1, 0, 2]


def lattices(dim: int) -> list[Lattice]:
    center = np.linspace(-1, 2, dim).tolist()
    axes = (np.linspace(0.5, 2, dim) / (4 * dim**0.5)).tolist()
    triangle = np.tril(np.full((dim, dim), 0.01)) + np.eye(dim) / (4 * dim**0.5)
    return [
        BallLattice.around(center, 4 * dim**0.5),
        BallLattice.around(center, 1e-3),
        BallLattice.around(center, 1e40),
        BallLattice.around(center, 1e5),
        BallLattice.scaled(center, axes),
        BallLattice.whitened(center, triangle.tolist()),
    ]


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("magnitude", [100.0, 1e308])
def test_bounded_sums_are_those_of_the_records_one_by_one(dim: int, magnitude: float) -> None:
    rows = poisoned(2000, dim)
    for lattice in lattices(dim):
        clipped = bounded(Batch(len(rows), matrix=rows), magnitude)
        integers = record_integers(lattice, clipped)
        expected = [sum(column) for column in integers.T.tolist()]
        for layout in batches(rows):
            accumulator = BoundedAccumulator(lattice, magnitude)
            for batch in layout:
                accumulator.add(batch)
            assert accumulator.total == expected
            assert accumulator.rows == len(rows)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("magnitude", [100.0, 1e308])
def test_excess_sums_are_those_of_the_records_one_by_one(dim: int, magnitude: float) -> None:
    rows, frame = poisoned(2000, dim), frame_of(dim, magnitude)
    moved = offsets(rows, frame)
    length = np.sqrt(squares(moved))
    inner = float(np.median(length))
    with np.errstate(all="ignore"):
        part = np.maximum(1.0 - inner / np.maximum(length, inner), 0.0)
    beyond = Batch(len(rows), [Floats(values * part) for values in moved])
    triangle = np.tril(np.full((dim, dim), 0.1)) + np.eye(dim)
    for lattice in (
        BallLattice.around([0.0] * dim, inner),
        BallLattice.around([0.0] * dim, inner / 100),
        BallLattice.around([0.5] * dim, inner),
        BallLattice.scaled([0.0] * dim, [0.5] * dim),
        BallLattice.whitened([0.0] * dim, triangle.tolist()),
    ):
        expected = [sum(column) for column in record_integers(lattice, beyond).T.tolist()]
        for layout in batches(rows):
            accumulator = ExcessAccumulator(frame, inner, lattice)
            for batch in layout:
                accumulator.add(batch)
            assert accumulator.total == expected
            assert accumulator.rows == len(rows)


def test_sums_may_be_looked_at_before_the_last_batch() -> None:
    rows, lattice = records(200), BallLattice.around(CENTER.tolist(), 3.0)
    halves = [Batch(100, matrix=part) for part in np.array_split(rows, 2)]
    watched, other = BoundedAccumulator(lattice, 10.0), ExcessAccumulator(FRAME, 2.0, lattice)
    plain, second = BoundedAccumulator(lattice, 10.0), ExcessAccumulator(FRAME, 2.0, lattice)
    for half in halves:
        for each in (watched, other, plain, second):
            each.add(half)
        assert watched.total == watched.total
        assert other.total == other.total
    assert (watched.total, other.total) == (plain.total, second.total)


def test_absent_records_lie_at_the_centre() -> None:
    lattice = BallLattice.around(CENTER.tolist(), 3.0)
    batch = Batch(0, [Floats(np.empty(0))] * 3, absent=4)
    line = LineCounter(Frame(np.array([3.0]), np.ones(1), 9.0), np.array([-1.0, 0.0, 1.0]))
    line.add(Batch(0, [Floats(np.empty(0))], absent=4))
    assert line.counts.tolist() == [0, 4, 0]
    counter, sums = DistanceCounter(FRAME, EDGES), BoundedAccumulator(lattice, 10.0)
    excess = ExcessAccumulator(FRAME, 2.0, lattice)
    for each in (counter, sums, excess):
        each.add(batch)
        assert each.rows == 4
    assert counter.counts.tolist() == [4] + [0] * 32
    assert sums.total == excess.total == [0, 0, 0]
