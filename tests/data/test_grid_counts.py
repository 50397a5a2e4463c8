"""Public grids and exact counts on them: each record by itself, whatever the split."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muhat.data import open_source
from muhat.data.base import paced
from muhat.data.grid_counts import Window, count_windows
from muhat.data.grids import MOST_CELLS, GeometricGrid, UniformGrid
from muhat.errors import InvalidInput

finite = st.floats(allow_nan=False, allow_infinity=False)


def test_numbers_go_to_the_nearest_point_of_the_grid():
    grid = UniformGrid(0.0, 1.0, 0.01)
    values = np.array([0.29, 0.294, 0.296, -5.0, 5.0, 1e308, -1e308])
    assert grid.codes(values).tolist() == [29, 29, 30, 0, 100, 100, 0]
    assert grid.value(29) == 0.29


def test_a_step_that_does_not_divide_the_width_ends_at_the_upper_bound():
    grid = UniformGrid(0.0, 1.0, 0.3)
    assert grid.cells == 5
    assert [grid.value(cell) for cell in range(5)] == [0.0, 0.3, 0.6, 0.9, 1.0]


@settings(deadline=None)
@given(st.lists(finite, min_size=2, max_size=30))
def test_grids_never_swap_two_numbers(values):
    ordered = np.sort(np.array(values))
    for grid in (
        UniformGrid(-3.0, 1e6, 0.07),
        UniformGrid.between(-1e300, 1e300),
        GeometricGrid(1e-3, 1e6, 1.15),
    ):
        codes = grid.codes(ordered)
        assert (np.diff(codes) >= 0).all()
        assert codes.min() >= 0
        assert codes.max() < grid.cells


@pytest.mark.parametrize(
    ("lower", "upper", "step"),
    [(0, 1e6, 1.0), (0, 200_000, 0.2), (16, 90, 1e-4), (-1, 1, 2e-6), (0, 1e-310, 1e-316)],
)
def test_the_default_step_is_a_round_number(lower, upper, step):
    grid = UniformGrid.between(lower, upper)
    assert grid.step == step
    assert grid.cells <= 1 << 20


def test_the_middle_is_the_cell_of_the_centre():
    assert UniformGrid(0.0, 10.0, 1.0).middle == 5
    assert UniformGrid(-1e308, 1e307, 1e306).middle == 55


@pytest.mark.parametrize(
    "arguments",
    [
        (1.0, 1.0, 0.1),
        (2.0, 1.0, 0.1),
        (float("nan"), 1.0, 0.1),
        (0.0, float("inf"), 0.1),
        (0.0, 1.0, 0.0),
        (0.0, 1.0, -1.0),
        (0.0, 1.0, float("nan")),
        (0.0, 1.0, 1 / MOST_CELLS),
        (-1.7e308, 1.7e308, 1e300),
        ("a", 1.0, 0.1),
        (0.0, None, None),
    ],
)
def test_impossible_grids_are_refused(arguments):
    with pytest.raises(InvalidInput):
        UniformGrid.between(*arguments)


def test_magnitudes_are_never_above_their_cells_edge():
    grid = GeometricGrid(1e-3, 1e4, 1.01)
    values = np.random.default_rng(0).lognormal(0, 3, 10_000).clip(0, 1e4)
    edges = grid.edges[grid.codes(values)]
    assert (values <= edges).all()
    assert (np.diff(grid.edges) > 0).all()
    assert (edges[values > 1e-3] <= values[values > 1e-3] * 1.01 * (1 + 1e-12)).all()
    assert grid.value(grid.cells - 1) == 1e4


@pytest.mark.parametrize("bad", [(0.0, 1.0, 2.0), (2.0, 1.0, 2.0), (1.0, 2.0, 1.0)])
def test_impossible_ratios_are_refused(bad):
    with pytest.raises(InvalidInput):
        GeometricGrid(*bad)


def test_windows_count_what_a_full_table_counts():
    rng = np.random.default_rng(1)
    data = rng.normal(0, 30, (5000, 2))
    grids = [UniformGrid(-50.0, 50.0, 1.0), UniformGrid(0.0, 64.0, 0.5)]
    full = [
        np.bincount(grid.codes(data[:, j]), minlength=grid.cells) for j, grid in enumerate(grids)
    ]
    windows = [
        Window(0, 0, 0, 101),
        Window(0, 32, 2, 8),
        Window(1, 64, 0, 64),
        Window(1, 128, 0, 1),
        Window(1, 0, 6, 3),
    ]
    found = count_windows(open_source(data), grids, windows)
    for window, table in zip(windows, found, strict=True):
        width = 1 << window.block_bits
        padded = np.pad(full[window.column], (0, 1000))
        inside = padded[window.first : window.first + window.blocks * width]
        assert table.before == full[window.column][: window.first].sum()
        assert table.counts.tolist() == inside.reshape(-1, width).sum(axis=1).tolist()
        assert table.total == 5000
        assert "5000" not in repr(table)


def test_counts_are_the_same_for_every_type_and_number_of_threads():
    values = np.random.default_rng(2).integers(0, 100, 70_000)
    grid, window = UniformGrid(0.0, 100.0, 1.0), Window(0, 0, 0, 101)
    expected = np.bincount(values, minlength=101).tolist()
    sources = [
        values,
        values.astype(np.float32),
        values.astype(np.uint8),
        np.repeat(values[:, None], 1, axis=1),
        pa.table({"x": pa.chunked_array([values[:9], values[9:40_000], values[40_000:]])}),
        pa.table({"x": pa.array(values).cast(pa.decimal128(25, 2))}),
    ]
    for data in sources:
        for threads in (1, 3):
            with paced(threads=threads):
                (found,) = count_windows(open_source(data), [grid], [window])
            assert found.counts.tolist() == expected


def test_integers_beyond_floats_have_their_own_cells():
    base = 1 << 60
    values = np.array([base, base + 1, base + 2, base + 300], np.int64)
    grid = UniformGrid(float(base), float(base + 1024), 1.0)
    (found,) = count_windows(open_source(values), [grid], [Window(0, 0, 0, 1025)])
    assert np.flatnonzero(found.counts).tolist() == [0, 1, 2, 300]


def test_missing_values_are_in_the_middle_or_left_out():
    data = pa.table({"x": pa.array([1.0, None, float("nan"), float("inf"), 9.0])})
    grid, window = UniformGrid(0.0, 10.0, 1.0), Window(0, 0, 0, 11)
    (kept,) = count_windows(open_source(data), [grid], [window])
    assert kept.counts.tolist() == [0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 0]
    (dropped,) = count_windows(open_source(data), [grid], [window], missing="drop")
    assert (dropped.total, dropped.counts[5]) == (2, 0)


def test_ragged_lines_are_missing_values(tmp_path):
    path = tmp_path / "ragged.csv"
    path.write_text("x,y\n1,2\n3,4,5\n7,8\nz,9\n")
    grid, window = UniformGrid(0.0, 10.0, 1.0), Window(0, 0, 0, 11)
    (found,) = count_windows(open_source(path, "x", 1), [grid], [window])
    assert found.counts.tolist() == [0, 1, 0, 0, 0, 2, 0, 1, 0, 0, 0]
