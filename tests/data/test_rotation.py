"""Random rotations: exact, the same for every layout, and one record moves one count a column."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from muhat.data import open_source
from muhat.data.base import paced
from muhat.data.engine import read_once
from muhat.data.grid_counts import Window, count_windows
from muhat.data.grids import UniformGrid
from muhat.data.rotation import (
    Preparation,
    PreparedSource,
    Rotation,
    padded,
    prepared_counts,
    transform,
)
from muhat.records.columns import Batch, Floats


def hadamard(size: int) -> np.ndarray:
    """The matrix from its definition: (−1)^(number of ones that i and j share)."""
    return np.array([[(-1) ** (i & j).bit_count() for j in range(size)] for i in range(size)])


def records(rows: int, dim: int) -> np.ndarray:
    return np.random.default_rng(rows + dim).standard_normal((rows, dim)) * 30


def signs(dim: int) -> np.ndarray:
    return np.random.default_rng(dim).choice([-1.0, 1.0], dim)


def prepared(rows: np.ndarray, preparation: Preparation) -> np.ndarray:
    """All prepared records, of shape (n, coordinates)."""
    tiles = [tile.T.copy() for tile in preparation.tiles(Batch(len(rows), matrix=rows))]
    return np.concatenate(tiles)


@pytest.mark.parametrize("size", [1, 2, 4, 64])
def test_the_fast_transform_is_the_matrix(size: int) -> None:
    tile = np.eye(size)
    transform(tile)
    assert np.array_equal(tile, hadamard(size))


@pytest.mark.parametrize("dim", [1, 2, 3, 7, 8, 100])
def test_whole_numbers_are_rotated_exactly(dim: int) -> None:
    rotation = Rotation(signs(dim))
    whole = np.random.default_rng(1).integers(-(2**40), 2**40, (50, dim))
    found = prepared(whole.astype(float), Preparation(dim, 2.0**41, rotation=rotation))
    wide = np.zeros((50, rotation.padded), int)
    wide[:, :dim] = whole * rotation.signs.astype(int)
    expected = wide.astype(object) @ hadamard(rotation.padded).astype(object)
    assert np.array_equal(found.astype(object), expected)


@pytest.mark.parametrize("dim", [1, 3, 8, 1000])
def test_turning_back_gives_the_record_and_lengths_grow_by_one_factor(dim: int) -> None:
    rotation = Rotation(signs(dim))
    record = records(1, dim)[0]
    turned = rotation.forward(record)
    assert turned.shape == (padded(dim),)
    assert rotation.back(turned) == pytest.approx(record, rel=1e-12)
    length = np.linalg.norm(record) * math.sqrt(padded(dim))
    assert np.linalg.norm(turned) == pytest.approx(length, rel=1e-12)


def test_padding_goes_to_the_next_power_of_two() -> None:
    assert [padded(dim) for dim in (1, 2, 3, 4, 5, 1000, 1024)] == [1, 2, 4, 4, 8, 1024, 1024]


def balance(words: Callable[[int], np.ndarray] | None = None) -> float:
    """The sum of many signs in its standard deviations."""
    dim = 1 << 16
    drawn = Rotation.drawn(dim) if words is None else Rotation.drawn(dim, words)
    assert set(drawn.signs) == {-1.0, 1.0}
    return abs(float(drawn.signs.sum())) / math.sqrt(dim)


def test_signs_are_fair() -> None:
    assert balance() < 5.5
    # One bit in eight stuck at 0 must be seen: an excess of 32 standard deviations.
    stuck = np.uint64(0x7F7F7F7F7F7F7F7F)
    generator = np.random.default_rng(0)
    assert balance(lambda n: generator.integers(0, 2**64, n, np.uint64) & stuck) > 5.5


def test_a_rotated_record_has_the_same_bits_in_every_layout_and_split() -> None:
    rows, preparation = records(5000, 100), Preparation(100, 50.0, rotation=Rotation(signs(100)))
    whole = prepared(rows, preparation)
    for start in (0, 17, 4999):
        assert np.array_equal(
            prepared(rows[start : start + 1].copy(), preparation)[0], whole[start]
        )
    columns = [Floats(rows[:, j].copy()) for j in range(100)]
    tiles = [tile.T.copy() for tile in preparation.tiles(Batch(5000, columns))]
    assert np.array_equal(np.concatenate(tiles), whole)


def test_no_other_record_changes_because_one_is_poisoned() -> None:
    rows, preparation = records(300, 5), Preparation(5, 1e3, 60.0, 0.25, Rotation(signs(5)))
    before = prepared(rows, preparation)
    for poison in (np.nan, np.inf, -np.inf, 1e308, 5e-324):
        rows[123] = poison
        after = prepared(rows, preparation)
        kept = np.arange(300) != 123
        assert np.array_equal(before[kept], after[kept])
        assert np.isfinite(after).all()


def test_missing_values_and_records_count_as_zero() -> None:
    rotation = Rotation(signs(3))
    preparation = Preparation(3, 10.0, rotation=rotation)
    rows = np.array([[1.0, np.nan, 2.0], [np.inf, 3.0, -99.0], [np.nan] * 3])
    zeroed = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, -10.0], [0.0] * 3])
    expected = [rotation.forward(record) for record in zeroed]
    assert np.array_equal(prepared(rows, preparation), expected)
    (tile, absent) = preparation.tiles(Batch(3, matrix=rows, absent=2))
    assert tile.shape == (4, 3)
    assert np.array_equal(absent, np.zeros((4, 2)))


def test_records_are_clipped_then_shortened_then_rounded() -> None:
    rows = np.array([[30.0, 40.0], [0.3, 0.4], [1e9, 0.0]])
    assert np.array_equal(
        prepared(rows, Preparation(2, 100.0, step=0.25)), [[120, 160], [1, 2], [400, 0]]
    )
    shortened = prepared(rows, Preparation(2, 100.0, ball=10.0))
    assert shortened == pytest.approx(np.array([[6, 8], [0.3, 0.4], [10, 0]]))
    both = prepared(rows, Preparation(2, 100.0, 10.0, 0.5))
    assert np.array_equal(both, [[12, 16], [1, 1], [20, 0]])


GRID = UniformGrid(-400.0, 400.0, 0.5)


def windows(dim: int, bits: int, blocks: int, first: int = 0) -> list[Window]:
    return [Window(column, first + 3 * column, bits, blocks) for column in range(dim)]


@pytest.mark.parametrize("dim", [1, 5, 8])
def test_counts_of_all_coordinates_are_those_of_each(dim: int) -> None:
    rows = records(2000, dim)
    rows[3] = np.nan
    source = open_source(rows, None, dim)
    preparation = Preparation(dim, 1e3, rotation=Rotation(signs(dim)))
    size = preparation.prepared_dim
    inner = PreparedSource(source, preparation)
    for asked in (windows(size, 5, 51), windows(size, 0, 32, 700)):
        found = prepared_counts(source, preparation, GRID, asked)
        expected = count_windows(inner, [GRID] * size, asked)
        for one, other in zip(found, expected, strict=True):
            assert (one.before, one.total) == (other.before, other.total) == (one.before, 2000)
            assert np.array_equal(one.counts, other.counts)


def test_windows_at_the_end_of_the_grid_may_be_shorter() -> None:
    source = open_source(np.full((10, 2), 1e3), None, 2)
    preparation = Preparation(2, 1e3)
    asked = [Window(0, 0, 9, 4), Window(1, 1024, 9, 2)]
    first, second = prepared_counts(source, preparation, GRID, asked)
    assert first.counts.tolist() == [0, 0, 0, 10]
    assert (second.before, second.counts.tolist(), second.total) == (0, [0, 10], 10)


@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e308, -0.0])
def test_one_record_moves_one_count_in_every_coordinate(poison: float) -> None:
    rows, preparation = records(400, 6), Preparation(6, 1e3, rotation=Rotation(signs(6)))
    asked = windows(8, 3, 201)
    before = prepared_counts(open_source(rows, None, 6), preparation, GRID, asked)
    rows[9] = poison
    after = prepared_counts(open_source(rows, None, 6), preparation, GRID, asked)
    for one, other in zip(before, after, strict=True):
        moved = np.abs(one.counts - other.counts).sum() + abs(one.before - other.before)
        assert moved <= 2
        assert one.total == other.total == 400


def test_windows_that_do_not_fit_the_coordinates_are_an_error() -> None:
    source, preparation = open_source(records(10, 2), None, 2), Preparation(2, 1e3)
    for asked in ([Window(0, 0, 3, 4)], [Window(0, 0, 3, 4), Window(1, 0, 2, 4)]):
        with pytest.raises(AssertionError):
            prepared_counts(source, preparation, GRID, asked)


def test_a_prepared_source_is_read_like_the_one_within() -> None:
    rows = records(70, 3)
    inner = open_source(rows, None, 3)
    source = PreparedSource(inner, Preparation(3, 1e3, rotation=Rotation(signs(3))))
    assert (source.dim, source.rows(), source.known_rows) == (4, 70, 70)
    assert len(source.types) == 4

    class Sum:
        rows = 0
        total = 0.0

        def add(self, batch: Batch) -> None:
            self.rows += batch.rows
            self.total += float(sum(column.values.sum() for column in batch.columns))

    with paced(threads=1):
        (found,) = read_once(source, Sum)
    expected = sum(Rotation(signs(3)).forward(record).sum() for record in rows)
    assert found.rows == 70
    assert found.total == pytest.approx(expected)


def test_missing_values_are_filled_where_that_is_asked_for() -> None:
    rows = np.array([[1.0, np.nan], [np.inf, 70.0], [np.nan, np.nan]])
    preparation = Preparation(2, 50.0, fill=np.array([3.0, 4.0]))
    assert np.array_equal(prepared(rows, preparation), [[1, 4], [3, 50], [3, 4]])
    (tile,) = preparation.tiles(Batch(0, [], np.empty((0, 2)), absent=3))
    assert tile.tolist() == [[3.0] * 3, [4.0] * 3]
