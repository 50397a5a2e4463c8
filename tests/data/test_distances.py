"""Counts of records by their distance, and sums of what lies beyond a radius."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.data import open_source
from muhat.data.columns import Batch
from muhat.data.distances import (
    DistanceCounter,
    Frame,
    bounded,
    bounded_sums,
    distance_counts,
    excess_sums,
)
from muhat.domains.lattice import BallLattice

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
