"""Records in cells: codes, nearest points, and a public cell for everything else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from muhat.data import exact_sums, open_source
from muhat.data.base import paced
from muhat.data.engine import Accumulator, record_integers
from muhat.domains import Points
from muhat.domains.lattice import PointsLattice
from muhat.records.columns import Batch, Column, Decimals, Floats, Integers

POISON = [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308, -1.7976931348623157e308, -1.0]


def counts(lattice: PointsLattice, *batches: Batch, missing: str = "center") -> list[int]:
    accumulator = Accumulator(lattice, missing)
    for each in batches:
        accumulator.add(each)
    assert sum(accumulator.total) == accumulator.counted
    assert all(type(count) is int for count in accumulator.total)
    return accumulator.total


def test_codes_are_counted_whatever_type_carries_them() -> None:
    lattice = PointsLattice.of(4, default=3)
    values = [0, 1, 1, 2, 7, 4]
    limbs = np.array([[value * 100] for value in values], np.uint64)
    columns: list[Column] = [
        Floats(np.array(values, float)),
        Integers(np.array(values, np.int64)),
        Integers(np.array(values, np.uint64)),
        Decimals(limbs, 2),
    ]
    for column in columns:
        assert counts(lattice, Batch(6, [column])) == [1, 2, 1, 2]
        assert counts(lattice, Batch(6, [column]), missing="drop") == [1, 2, 1, 0]


def test_what_is_no_code_goes_to_the_declared_cell() -> None:
    lattice = PointsLattice.of(3, default=1)
    odd = [0.5, -1, 3, 2.0000000000000004, -0.1, *POISON]
    zeros = odd.count(-0.0)
    column = Floats(np.array([2.0, *odd]))
    assert counts(lattice, Batch(len(odd) + 1, [column])) == [zeros, len(odd) - zeros, 1]
    wide = [2**63 - 1, -(2**63), 2**53 + 1, 2**32, -1]
    assert counts(lattice, Batch(5, [Integers(np.array(wide))])) == [0, 5, 0]
    assert counts(lattice, Batch(1, [Integers(np.array([2**64 - 1], np.uint64))])) == [0, 1, 0]
    nearly = Decimals(np.array([[1999999999999999999, 0], [10**18, 0]], np.uint64), 18)
    assert counts(lattice, Batch(2, [nearly])) == [0, 2, 0]
    assert counts(lattice, Batch(2, [nearly]), missing="drop") == [0, 1, 0]
    masked = Floats(np.array([2.0, 2.0]), np.array([True, False]))
    assert counts(lattice, Batch(2, [masked], absent=4)) == [0, 5, 1]
    assert counts(lattice, Batch(2, [masked], absent=4), missing="drop") == [0, 0, 1]


def test_integers_of_a_record_are_one_hot() -> None:
    lattice = PointsLattice.of(3, default=2)
    column = Floats(np.array([1.0, np.nan, 0.0]))
    assert record_integers(lattice, Batch(3, [column])).tolist() == [
        [0, 1, 0],
        [0, 0, 1],
        [1, 0, 0],
    ]
    dropped = record_integers(lattice, Batch(3, [column]), "drop")
    assert dropped.tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize(("size", "dim"), [(1, 1), (6, 1), (50, 3), (3000, 2)])
def test_nearest_points_are_those_of_the_domain(size: int, dim: int) -> None:
    rng = np.random.default_rng(1)
    listed = np.round(rng.standard_normal((size, dim)) * 4) / 2
    made = np.round(rng.standard_normal((500, dim)) * 8) / 4
    made[:20] *= 1e300
    made[20:60] = rng.choice(listed, 40)
    lattice = PointsLattice.of(listed, nearest=True)
    expected = Points(listed).nearest(made)
    found = record_integers(lattice, Batch(500, matrix=made))
    assert np.array_equal(found.argmax(axis=1), expected)
    assert counts(lattice, Batch(500, matrix=made)) == found.sum(axis=0).tolist()


def test_a_record_that_is_not_whole_has_no_nearest_point() -> None:
    lattice = PointsLattice.of([[0.0, 0.0], [5.0, 5.0], [9.0, 9.0]], nearest=True, default=1)
    made = np.array([[8.0, 8.0], [np.nan, 9.0], [np.inf, 9.0], [1e10, 1e10], [0.0, 1.0]])
    assert counts(lattice, Batch(5, matrix=made)) == [1, 2, 2]
    assert counts(lattice, Batch(5, matrix=made), missing="drop") == [1, 0, 2]


def test_a_hundred_thousand_points_are_searched_in_bounded_memory() -> None:
    listed = np.random.default_rng(2).standard_normal((100_000, 2))
    lattice = PointsLattice.of(listed, nearest=True)
    made = listed[[7, 99_999, 50_000]] + 1e-9
    found = counts(lattice, Batch(3, matrix=made))
    assert [found[7], found[99_999], found[50_000], sum(found)] == [1, 1, 1, 3]


def test_random_bits_always_land_in_one_cell() -> None:
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**64, (150_000, 2), dtype=np.uint64).view(np.float64)
    codes = PointsLattice.of(5)
    assert sum(counts(codes, Batch(len(bits), [Floats(bits[:, 0].copy())]))) == len(bits)
    words = Integers(bits[:, 1].copy().view(np.int64))
    assert sum(counts(codes, Batch(len(bits), [words]))) == len(bits)
    nearest = PointsLattice.of(rng.standard_normal((8, 2)), nearest=True)
    assert sum(counts(nearest, Batch(len(bits), matrix=bits))) == len(bits)


def test_counts_are_the_same_for_every_source_and_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("muhat.data.memory.PARTITION_VALUES", 700)
    made = np.random.default_rng(4).integers(-1, 9, 5000)
    lattice = PointsLattice.of(8)
    expected = np.bincount(np.where((made >= 0) & (made < 8), made, 0), minlength=8).tolist()
    encoded = pa.table({"code": pa.array(made).dictionary_encode()})
    kinds: list[Any] = [
        made,
        made.astype(np.int8),
        made.astype(float),
        made.tolist(),
        {"code": made},
        pa.table({"code": made}),
        encoded,
    ]
    for data in kinds:
        for threads in (1, 3):
            with paced(threads=threads):
                sums = exact_sums(open_source(data, dim=1), lattice)
            assert (list(sums.total), sums.rows) == (expected, 5000)
    truth = exact_sums(open_source(made == 3, dim=1), PointsLattice.of(2))
    assert truth.total == (int((made != 3).sum()), int((made == 3).sum()))
