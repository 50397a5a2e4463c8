"""Sums by groups in floats are exact: long and short parts of whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.data.groups import BlockSums


def exact(part, groups, size):
    sums = [0] * size
    for group, value in zip(groups.tolist(), part.tolist(), strict=True):
        sums[group] += int(value)
    return sums


@pytest.mark.parametrize("coordinates", [1, 2, 3, 5])
def test_every_coordinate_has_the_sums_of_its_groups(coordinates):
    rng, adder = np.random.default_rng(coordinates), BlockSums()
    for rows, size in ((1, 3), (4000, 7), (100, 300), (0, 2)):
        parts = [rng.integers(-(1 << 45), (1 << 45) + 1, rows) for _ in range(coordinates)]
        parts.append(rng.random(rows) < 0.5)
        parts.append(np.ones(rows, bool))
        groups = rng.integers(0, size, rows)
        found = adder.of(parts, groups, np.bincount(groups, minlength=size))
        for part, sums in zip(parts, found, strict=True):
            assert sums.tolist() == exact(part, groups, size)


@pytest.mark.parametrize("value", [1 << 45, -(1 << 45), (1 << 45) - 1, 1 - (1 << 45), 127, -1, 0])
def test_a_whole_block_at_the_ends_loses_nothing(value):
    rows = 1 << 15
    groups = np.zeros(rows, np.int64)
    parts = [np.full(rows, value), np.full(rows, (1 << 45) - 1), np.full(rows, -value)]
    found = BlockSums().of(parts, groups, np.array([rows]))
    assert [int(sums[0]) for sums in found] == [rows * int(part[0]) for part in parts]
