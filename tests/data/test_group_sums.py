"""Sums of a block by groups are those of its records' integers, modulo nothing."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.domains.lattice import BoxLattice, ColumnsLattice
from muhat.records.columns import Floats, Integers

BOX = ColumnsLattice(BoxLattice.around([0.0, -3.0], [1.0, 1e6]), squares=True, counts=True)


def exact(steps, groups, size):
    sums = np.zeros((size, steps.shape[1]), object)
    for group, row in zip(groups.tolist(), steps.tolist(), strict=True):
        sums[group] += row
    return sums.T.tolist()


def found(lattice, columns, groups, size, drop):
    kind = np.min_scalar_type(size)
    sums, counts = lattice.kernel().group_sums(columns, groups.astype(kind), size, drop=drop)
    assert counts.tolist() == np.bincount(groups, minlength=size).tolist()
    assert counts.dtype == np.int64
    wide, _ = lattice.kernel().group_sums(columns, groups, size, drop=drop)
    assert all(map(np.array_equal, sums, wide))
    return [each.tolist() for each in sums]


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("strange", [[], [np.nan], [np.inf, -np.inf, 1e308, -1e308]])
def test_every_coordinate_has_the_sums_of_its_groups(strange, drop):
    rng = np.random.default_rng(len(strange))
    for rows, size in ((1, 3), (4000, 7), (100, 300), (0, 2)):
        first = Floats(rng.random(rows))
        first.values[: len(strange)] = strange[:rows]
        second = Integers(rng.integers(-9, 1 << 21, rows), rng.random(rows) < 0.9)
        columns, groups = [first, second], rng.integers(0, size, rows)
        with np.errstate(all="ignore"):
            steps = BOX.kernel().integers(columns, drop=drop)
            assert found(BOX, columns, groups, size, drop) == exact(steps, groups, size)


@pytest.mark.parametrize("value", [0.0, 1.0, 1 - 2.0**-53, 0.5, 1e300, -1e300])
def test_a_whole_block_at_the_ends_loses_nothing(value):
    rows, kernel = 1 << 17, BOX.kernel()
    columns = [Floats(np.full(rows, value)), Floats(np.full(rows, 1e6 * value))]
    (step,) = kernel.integers([column.part(0, 1) for column in columns], drop=False).tolist()
    sums = found(BOX, columns, np.ones(rows, np.int64), 2, drop=False)
    assert sums == [[0, rows * each] for each in step]
