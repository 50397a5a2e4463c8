"""Tiles: records moved to a centre, and what a sum of squares in any order tells of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muhat.records.columns import Batch, Floats
from muhat.records.tiles import Records, Tiles, sum_of_squares, transposed

POISON = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, -0.0, 60.0, -60.0])
DIMS = [1, 2, 7, 8, 33, 130]


def poisoned(rows: int, dim: int, share: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(dim)
    made = rng.standard_normal((rows, dim)) * 10
    bad = rng.random(made.shape) < share / dim
    made[bad] = rng.choice(POISON, int(bad.sum()))
    return made


def layouts(rows: np.ndarray) -> list[Batch]:
    """The same records as a matrix and as columns."""
    return [
        Batch(len(rows), matrix=rows),
        Batch(len(rows), [Floats(values.copy()) for values in rows.T]),
        Batch(len(rows), [Floats(values) for values in rows.T]),
    ]


def expected(
    rows: np.ndarray, center: np.ndarray, weights: np.ndarray, magnitude: float
) -> np.ndarray:
    """y of every record, one coordinate at a time."""
    inside = np.clip(rows, -magnitude, magnitude)
    with np.errstate(all="ignore"):
        moved = (inside - center) * weights
    return np.where(np.isfinite(rows), moved, 0.0)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_record_is_moved_whatever_the_layout(dim: int, weighted: bool) -> None:
    rows = poisoned(5000, dim)
    rng = np.random.default_rng(1)
    center = rng.uniform(-3, 3, dim)
    weights = rng.uniform(0.1, 2, dim) if weighted else np.ones(dim)
    wanted = expected(rows, center, weights, 50.0)
    exact = sum_of_squares(wanted.T)
    for batch in layouts(rows):
        tiles, records = Tiles(center, weights, 50.0), Records(batch)
        seen = 0
        with np.errstate(all="ignore"):
            for tile in tiles.settled(records):
                stop = tile.start + len(tile.squares)
                assert np.array_equal(tile.values, wanted[tile.start : stop])
                assert np.allclose(tile.squares, exact[tile.start : stop], rtol=1e-12, atol=0)
                seen += len(tile.squares)
            sums = [squares.copy() for _, squares in tiles.squares(records)]
        assert seen == len(rows)
        assert np.allclose(np.concatenate(sums), exact, rtol=1e-12, atol=0)


@pytest.mark.parametrize("dim", DIMS)
def test_the_squares_of_some_records_are_added_in_ascending_order(dim: int) -> None:
    rows = poisoned(3000, dim)
    center, weights = np.full(dim, 0.3), np.full(dim, 1.7)
    some = np.array([0, 7, 2999, 7, *range(100, 2500)])
    moved = expected(rows, center, weights, 50.0)[some]
    total = np.zeros(len(some))
    for values in moved.T:
        total = total + values * values
    for batch in layouts(rows):
        with np.errstate(all="ignore"):
            found = Tiles(center, weights, 50.0).exact_squares(Records(batch), some)
        assert np.array_equal(found, total)


@given(
    center=st.floats(-10, 10),
    weight=st.floats(0.01, 100),
    places=st.lists(st.integers(0, 11), min_size=1, max_size=3),
    steps=st.integers(1, 3),
    sign=st.sampled_from([-1.0, 1.0]),
)
@settings(max_examples=200, deadline=None)
def test_no_coordinate_beyond_the_magnitude_is_missed(
    center: float, weight: float, places: list[int], steps: int, sign: float
) -> None:
    beyond = 10.0
    for _ in range(steps):
        beyond = np.nextafter(beyond, np.inf)
    rows = np.full((4, 12), center)
    rows[2, places] = sign * beyond
    tiles = Tiles(np.full(12, center), np.full(12, weight), 10.0)
    with np.errstate(all="ignore"):
        (tile,) = tiles.of(Records(Batch(4, matrix=rows)))
    assert 2 in tile.strays


def test_a_centre_outside_the_magnitude_is_allowed() -> None:
    rows = np.array([[1.0, 2.0], [30.0, -30.0]])
    tiles = Tiles(np.array([20.0, 0.0]), np.ones(2), 10.0)
    with np.errstate(all="ignore"):
        (tile,) = tiles.settled(Records(Batch(2, matrix=rows)))
    assert tile.values.tolist() == [[-19.0, 2.0], [-10.0, -10.0]]


def test_ordinary_records_far_from_the_centre_are_no_strays() -> None:
    rows = np.full((100, 64), 9.0)
    with np.errstate(all="ignore"):
        (tile,) = Tiles(np.zeros(64), np.ones(64), 10.0).of(Records(Batch(100, matrix=rows)))
    assert tile.squares[0] > 10.0**2
    assert not len(tile.strays)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (1, 500), (500, 1), (1000, 17), (70, 1024)])
def test_transposing_moves_every_value(shape: tuple[int, int]) -> None:
    rows = np.arange(np.prod(shape), dtype=float).reshape(shape)
    found = transposed(rows)
    assert found.flags.c_contiguous
    assert np.array_equal(found, rows.T)
