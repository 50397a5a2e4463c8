"""Bins of the real line: exact places, exact counts, one record in one bin; sums about a centre."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muhat.data import open_source
from muhat.data.bin_counts import BinCounter, BinCounts, BinGrid, count_bins, merged
from muhat.data.centered_sums import centered_sums
from muhat.domains.lattice import BoxLattice
from muhat.errors import InvalidInput
from muhat.records.columns import Batch, Floats

GRID = BinGrid.of_width(10.0)


def exact_number(value: float, grid: BinGrid, shift: int) -> int:
    """The bin of a number in rational arithmetic, that of the nearest point of the grid."""
    inside = min(max(Fraction(value), -Fraction(grid.reach)), Fraction(grid.reach))
    return (round(inside / grid.step) + shift) // grid.steps


@given(
    st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=20),
    st.floats(1e-6, 1e6),
    st.integers(0, (1 << 50) - 1),
)
def test_bins_are_those_of_rational_arithmetic(
    values: list[float], width: float, shift: int
) -> None:
    grid = BinGrid.of_width(width)
    found = grid.numbers(np.array(values), shift).tolist()
    for value, number in zip(values, found, strict=True):
        if abs(value) < grid.reach:
            assert number == exact_number(value, grid, shift)


@given(st.floats(-1e6, 1e6), st.integers(0, GRID.steps - 1))
def test_a_number_lies_within_half_a_bin_of_the_middle_of_its_bin(value: float, shift: int) -> None:
    number = int(GRID.numbers(np.array([value]), shift)[0])
    # Not rounded: the ends of bins lie between points of the grid.
    assert abs(Fraction(value) - GRID.center(number, shift)) <= Fraction(GRID.width) / 2


def test_numbers_at_an_end_go_to_the_side_of_their_nearest_point() -> None:
    shift = 12345
    end = GRID.center(3, shift) + Fraction(GRID.width) / 2
    step = float(GRID.step)
    below = float(end - GRID.step / 2)
    assert GRID.numbers(np.array([below, below + step]), shift).tolist() == [3, 4]


def test_shifts_may_differ_from_number_to_number() -> None:
    numbers = GRID.numbers(np.zeros(2), np.array([0, GRID.steps - 1]))
    assert numbers.tolist() == [0, 0]
    values = np.full(2, 1e-3)
    assert GRID.numbers(values, np.array([0, GRID.steps - 1])).tolist() == [0, 1]


@pytest.mark.parametrize("width", [1e-150, 0.1, 1.0, 3.7, 1e150])
def test_widths_are_kept_to_the_last_bits(width: float) -> None:
    grid = BinGrid.of_width(width)
    assert 0 <= grid.width / width - 1 < 2.0**-49
    assert Fraction(grid.width) == grid.steps * grid.step


@pytest.mark.parametrize("width", [0.0, -1.0, math.inf, math.nan, 1e250, 1e-250])
def test_impossible_widths_are_refused(width: float) -> None:
    with pytest.raises(InvalidInput, match="width"):
        BinGrid.of_width(width)


def test_counts_are_those_of_a_histogram_of_every_layout() -> None:
    values = np.random.default_rng(3).standard_normal(5000) * 40
    numbers, counts = np.unique(GRID.numbers(values, 99), return_counts=True)
    table = pa.Table.from_batches(pa.table({"x": values}).to_batches(max_chunksize=311))
    for data in (values, values[:, None], {"x": values}, table):
        (found,) = count_bins(open_source(data, None, 1), [GRID], [99])
        assert found.numbers.tolist() == numbers.tolist()
        assert found.counts.tolist() == counts.tolist()


def test_several_columns_are_counted_in_one_pass() -> None:
    rows = np.random.default_rng(4).standard_normal((300, 2)) * [10, 1000]
    grids, shifts = [GRID, BinGrid.of_width(500.0)], [7, 1 << 49]
    found = count_bins(open_source(rows), grids, shifts)
    for column, (grid, shift) in enumerate(zip(grids, shifts, strict=True)):
        numbers, counts = np.unique(grid.numbers(rows[:, column], shift), return_counts=True)
        assert found[column].numbers.tolist() == numbers.tolist()
        assert found[column].counts.tolist() == counts.tolist()


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324])
def test_one_record_moves_one_count_at_most(poison: float) -> None:
    values = np.random.default_rng(5).standard_normal(100)

    def table_of(data: np.ndarray) -> dict[int, int]:
        (found,) = count_bins(open_source(data), [GRID], [3])
        return dict(zip(found.numbers.tolist(), found.counts.tolist(), strict=True))

    before = table_of(values)
    values[50] = poison
    after = table_of(values)
    moved = [after.get(number, 0) - before.get(number, 0) for number in {*before, *after}]
    assert min(moved) >= -1
    assert max(moved) <= 1
    assert sum(map(abs, moved)) <= 2


def test_missing_values_are_in_no_bin_and_far_ones_at_the_reach() -> None:
    data = pa.table({"x": pa.array([None, 1.0, float("nan"), 1e300, -1e300])})
    (found,) = count_bins(open_source(data), [GRID], [GRID.middle])
    assert found.numbers.tolist() == [-(1 << 44), 0, 1 << 44]


def test_parts_are_merged_in_whatever_order_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muhat.data.bin_counts._COMPACT", 10)
    values = np.random.default_rng(6).standard_normal(2000) * 300
    whole = BinCounts.of(GRID.numbers(values, 1))
    for seed in range(3):
        counter = BinCounter([GRID], [1])
        order = np.random.default_rng(seed).permutation(values)
        for part in np.array_split(order, 37):
            counter.add(Batch(len(part), [Floats(part)]))
        assert counter.rows == 2000
        assert counter.counts(0).numbers.tolist() == whole.numbers.tolist()
        assert counter.counts(0).counts.tolist() == whole.counts.tolist()
    assert merged([]).numbers.tolist() == []


def test_no_count_is_shown() -> None:
    assert repr(BinCounts.of(np.array([7, 7, 8]))) == "BinCounts()"


def test_sums_about_centres_are_those_of_clipped_offsets() -> None:
    rows = np.random.default_rng(7).standard_normal((400, 3)) * 5 + [100, 0, -7]
    rows[3, 0] = np.nan
    rows[4, 1] = np.inf
    centers, clips = [98.0, None, -7.5], [4.0, 1.0, 100.0]
    lattices = [BoxLattice.around([-clip], [clip]) for clip in clips]
    found = centered_sums(open_source(rows), centers, lattices)
    assert found[1] == 0
    for column in (0, 2):
        offsets = np.nan_to_num(rows[:, column] - centers[column], nan=0.0)  # type: ignore[operator]
        expected = np.clip(offsets, -clips[column], clips[column]).sum()
        assert found[column] * float(lattices[column].grid[0]) == pytest.approx(expected, abs=1e-9)


def test_sums_about_a_centre_are_bounded_whatever_the_records_are() -> None:
    lattice = BoxLattice.around([-1.0], [1.0])
    for value in (1e308, -1e308, np.inf, np.nan, 5e-324):
        (total,) = centered_sums(open_source(np.full(9, value)), [1e5], [lattice])
        assert abs(total) <= 9 << 45
