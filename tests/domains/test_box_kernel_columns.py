"""Sums, squares and counts of columns: exact, by record, and whatever carries the numbers."""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from muhat.data import exact_sums, open_source
from muhat.data.base import paced
from muhat.data.engine import Accumulator, record_integers
from muhat.domains.box_kernel import SQUARE_ERROR, SQUARE_UNIT
from muhat.domains.lattice import BoxLattice, ColumnsLattice
from muhat.records.columns import Batch, Floats

BOUNDS = [(0.0, 1.0), (-3.0, 1e6), (1e-300, 2e-300), (-1e300, 1e300), (1e15, 1e15 + 2)]


def lattice_of(low, high, **parts):
    return ColumnsLattice(
        BoxLattice.around([low], [high]), **{"squares": True, "counts": True} | parts
    )


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_squares_are_those_of_the_integers_up_to_rounding(low, high):
    rng = np.random.default_rng(0)
    values = (
        low + (high - low) * rng.random(2000) if high < 1e299 else high * rng.uniform(-1, 1, 2000)
    )
    values[:5] = [low, high, math.nan, math.inf, low / 2 + high / 2]
    steps = record_integers(lattice_of(low, high), Batch(2000, [Floats(values)]))
    q, s, recorded = steps.T
    assert np.abs(q).max() > 1 << 43
    exact = [Fraction(int(x) ** 2, SQUARE_UNIT) for x in q]
    assert max(abs(int(a) - b) for a, b in zip(s, exact, strict=True)) < SQUARE_ERROR
    assert recorded.tolist() == np.isfinite(values).astype(int).tolist()
    assert (steps[2:4] == 0).all()


def test_a_pass_adds_up_what_every_record_adds():
    rng = np.random.default_rng(1)
    data = rng.normal(0.5, 1, (200_000, 2))
    data[::3, 0] = np.nan
    data[::7, 1] = np.inf
    lattice = ColumnsLattice(BoxLattice.around([0, -1], [1, 3]), squares=True, counts=True)
    steps = record_integers(lattice, Batch(len(data), matrix=data))
    with paced(show_progress=False):
        sums = exact_sums(open_source(data, None, 2), lattice)
    assert list(sums.total) == [int(total) for total in steps.sum(axis=0)]
    assert sums.rows == len(data)
    assert sums.total[4] == np.isfinite(data[:, 0]).sum()


def test_one_number_has_one_square_whichever_type_carries_it():
    numbers = [0, 3, -7, 90, 2000, 17]
    lattice = lattice_of(-50.0, 51.0)
    columns = [
        np.array(numbers, np.float64),
        np.array(numbers, np.int64),
        np.array(numbers, np.int16),
        pa.array([Decimal(x) for x in numbers], pa.decimal128(9, 2)),
    ]
    totals = {exact_sums(open_source(x, None, 1), lattice).total for x in columns}
    assert len(totals) == 1


def test_a_missing_value_of_a_sum_is_exactly_zero(tmp_path):
    """Clipped to [2, 5], and 0 where nothing is recorded; ragged lines are such records too."""
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,x\n9,x\n,x\nword,x\n3\n3,x\n")
    lattice = ColumnsLattice(BoxLattice.with_zero([2], [5]), squares=True, counts=True)
    total, squares, recorded = exact_sums(open_source(path, ["a"], 1), lattice).total
    grid, center = float(lattice.box.grid[0]), lattice.box.center[0]
    assert (total * grid + 6 * center, recorded) == (2 + 5 + 3, 3)
    exact = sum((x - center) ** 2 for x in (2, 5, 0, 0, 0, 3))
    assert squares * SQUARE_UNIT * grid**2 == pytest.approx(exact, rel=1e-12)


def test_a_lattice_of_values_far_from_zero_holds_zero():
    lattice = BoxLattice.with_zero([2000.0, -8.0, -1.0], [2020.0, -4.0, 3.0])
    values = [
        (c + e) * float(g)
        for c, e, g in zip(lattice.center_units, lattice.absent, lattice.grid, strict=True)
    ]
    assert values == [0, 0, 0]
    ends = zip(lattice.center_units, lattice.lower, lattice.upper, lattice.grid, strict=True)
    assert [((c + a) * float(g), (c + b) * float(g)) for c, a, b, g in ends] == [
        (2000, 2020),
        (-8, -4),
        (-1, 3),
    ]
    assert max(lattice.reach) <= 1 << 45


@pytest.mark.parametrize("missing", ["center", "drop"])
@pytest.mark.parametrize("parts", [{}, {"squares": True, "counts": True}])
def test_records_of_many_columns_are_summed_row_by_row_to_the_same_bits(missing, parts):
    dim, rng = 520, np.random.default_rng(4)
    low = rng.normal(0, 10.0 ** rng.integers(-3, 9, dim))
    box = BoxLattice.around(low, low + 10.0 ** rng.integers(-3, 9, dim))
    box = dataclasses.replace(box, absent=tuple(int(q) for q in rng.integers(-5, 5, dim)))
    lattice = ColumnsLattice(box, **parts)
    rows = low + np.abs(low) * rng.normal(0, 1, (150, dim))
    rows[::3, ::40] = np.nan
    rows[5, 1:4] = np.inf, -np.inf, 5e-324
    wide, columns = Accumulator(lattice, missing), Accumulator(lattice, missing)
    wide.add(Batch(150, matrix=rows))
    columns.add(Batch(150, [Floats(column.copy()) for column in rows.T]))
    assert np.array_equal(wide.state(), columns.state())


@pytest.mark.parametrize(("low", "high"), [(1e-300, 2e-300), (1e15, 1e15 + 1), (-1e300, 1e300)])
def test_bounds_that_need_more_than_an_addition_are_left_to_the_columns(low, high):
    lattice = ColumnsLattice(BoxLattice.around([low] * 512, [high] * 512), squares=True)
    rows = np.random.default_rng(5).uniform(low / 2, high / 2, (20, 512)) + low / 2
    wide, columns = Accumulator(lattice), Accumulator(lattice)
    wide.add(Batch(20, matrix=rows))
    columns.add(Batch(20, [Floats(column.copy()) for column in rows.T]))
    assert np.array_equal(wide.state(), columns.state())
