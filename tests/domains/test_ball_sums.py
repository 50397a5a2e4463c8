"""Sums on a ball lattice: the same integers as the kernel's, record by record."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.data.engine import record_integers
from muhat.domains.ball_sums import BallSums
from muhat.domains.lattice import BallLattice, BoxLattice, Lattice, LpGauge
from muhat.records.columns import Batch
from muhat.records.tiles import Records

RADII = [1.0, 0.9999999999999999, 3.7, 2.0**-99, 2.0**99]


def on_and_around_the_sphere(rows: int, dim: int, radius: float) -> np.ndarray:
    """Half of them within a few units of the last place of the sphere, the others anywhere."""
    rng = np.random.default_rng(dim)
    made = rng.standard_normal((rows, dim))
    made /= np.sqrt((made * made).sum(axis=1, keepdims=True))
    size = radius * (1 + rng.integers(-8, 9, (rows, 1)) * 2.0**-53)
    size[: rows // 2] *= 10.0 ** rng.uniform(-2, 2, (rows // 2, 1))
    return made * size


def added(sums: BallSums, rows: np.ndarray) -> list[int]:
    with np.errstate(all="ignore"):
        for tile in sums.tiles(np.inf).of(Records(Batch(len(rows), matrix=rows))):
            assert not len(tile.strays)
            sums.add(tile.values, tile.squares, tile.strays)
    return sums.total


def exact(lattice: Lattice, rows: np.ndarray) -> list[int]:
    integers = record_integers(lattice, Batch(len(rows), matrix=rows))
    return [sum(column) for column in integers.T.tolist()]


@pytest.mark.parametrize("dim", [1, 2, 9, 64])
@pytest.mark.parametrize("radius", RADII)
def test_sums_are_those_of_the_kernel(dim: int, radius: float) -> None:
    center = np.linspace(-2, 2, dim) * radius
    rows = on_and_around_the_sphere(4000, dim, radius) + center
    lattice = BallLattice.around(center.tolist(), radius)
    assert added(lattice.tiled_sums(), rows) == exact(lattice, rows)
    axes = np.linspace(0.5, 3, dim) / radius
    scaled = BallLattice.scaled(center.tolist(), axes.tolist())
    assert added(scaled.tiled_sums(), rows) == exact(scaled, rows)


@pytest.mark.parametrize("power", [0, -90, 40])
@pytest.mark.parametrize("steps", [2.0**44, 2.0**44 + 0.25, 2.0**44 + 0.5, 1.7e13, 2.0**45 - 1.25])
@pytest.mark.parametrize("center", [0.0, -0.7])
def test_on_a_line_all_are_rounded_and_clamped_unless_an_end_is_next_to_a_tie(
    power: int, steps: float, center: float
) -> None:
    radius = steps * 2.0**power
    lattice = BallLattice.around([center * radius], radius)
    sums = lattice.tiled_sums()
    assert (sums._ends is None) == (steps == 2.0**44 + 0.5)
    rows = on_and_around_the_sphere(4000, 1, radius)
    ends = np.array([-1, 1]) * (1 + np.arange(-40, 41)[:, np.newaxis] * 2.0**-53) * radius
    odd = np.array([0.0, -0.0, 5e-324, -1e-300, 2.0**400, -(2.0**400)])
    rows = np.concatenate([rows.ravel(), ends.ravel(), odd])[:, np.newaxis] + center * radius
    assert added(sums, rows.copy()) == exact(lattice, rows)
    integers = record_integers(lattice, Batch(len(rows), matrix=rows))
    for row, wanted in zip(rows[-300:], integers.tolist()[-300:], strict=True):
        assert added(lattice.tiled_sums(), row[np.newaxis].copy()) == wanted
    assert np.abs(integers).max() <= lattice.radius


@pytest.mark.parametrize("lie", [np.nan, -np.nan, np.inf, -np.inf, 1e308, -1e308])
def test_on_a_line_no_float_leaves_the_ends_even_if_nobody_called_it_a_stray(lie: float) -> None:
    lattice = BallLattice.around([0.0], 1.0)
    sums = lattice.tiled_sums()
    sums.add(np.array([[lie]]), np.array([0.0]), np.array([], np.int64))
    (total,) = sums.total
    assert abs(total) <= lattice.radius


@pytest.mark.parametrize("dim", [1, 2, 9, 64])
def test_single_records_have_the_integers_of_the_kernel(dim: int) -> None:
    rows = on_and_around_the_sphere(200, dim, 1.0)
    lattice = BallLattice.around([0.0] * dim, 1.0)
    integers = record_integers(lattice, Batch(len(rows), matrix=rows))
    for row, wanted in zip(rows, integers.tolist(), strict=True):
        assert added(lattice.tiled_sums(), row[np.newaxis]) == wanted


def test_a_million_records_on_one_side_do_not_wrap_around() -> None:
    lattice = BallLattice.around([0.0, 0.0], 0.9999999999999999)
    sums = lattice.tiled_sums()
    inside, outside = np.array([0.9, 0.1]), np.array([-7.0, 0.0])
    for record in (inside, outside):
        added(sums, np.tile(record, (1_000_000, 1)))
    once = [exact(lattice, record[np.newaxis]) for record in (inside, outside)]
    assert sums.total == [1_000_000 * (one + other) for one, other in zip(*once, strict=True)]


def test_strays_are_left_out() -> None:
    lattice = BallLattice.around([0.0, 0.0], 1.0)
    rows = on_and_around_the_sphere(100, 2, 1.0)
    sums = lattice.tiled_sums()
    strays = np.array([3, 50, 99])
    values = rows.copy()
    values[3] = np.nan
    with np.errstate(all="ignore"):
        sums.add(values, np.square(values).sum(axis=1), strays)
    assert sums.total == exact(lattice, np.delete(rows, strays, axis=0))


def test_lattices_with_more_to_them_are_left_to_the_kernel() -> None:
    others: list[Lattice] = [
        BoxLattice.around([0.0], [1.0]),
        BallLattice.around([0.0], 2.0**101),
        BallLattice.around([0.0], 2.0**-102),
        BallLattice.around([0.0, 0.0], 1.0, LpGauge(1, (1.0, 2.0))),
        BallLattice.whitened([0.0, 0.0], [[1.0], [0.3, 2.0]]),
    ]
    assert [lattice.tiled_sums() for lattice in others] == [None] * len(others)
    assert BallLattice.scaled([0.0, 0.0], [1.0, 2.0]).tiled_sums() is not None
