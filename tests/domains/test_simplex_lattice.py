"""Records as parts: projected, rounded, and adding up to the public total."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from muhat.data.engine import Accumulator, record_integers
from muhat.domains import Simplex
from muhat.domains.lattice import SimplexLattice
from muhat.records.columns import Batch, Decimals, Floats, Integers

Steps = NDArray[np.int64]

POISON = [math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, -1e-310, 1e308, -1.7976931348623157e308]
LATTICES = [SimplexLattice(dim, origin) for dim in (1, 2, 3, 7, 40) for origin in (False, True)]


def in_simplex(lattice: SimplexLattice, integers: Steps) -> bool:
    """q ≥ 0, and the sum of a record is the total, or at most the total."""
    sums = integers.astype(object).sum(axis=1)
    right = sums <= lattice.total if lattice.origin else sums == lattice.total
    return bool((integers >= 0).all() and right.all())


@pytest.mark.parametrize("lattice", LATTICES)
def test_no_record_leaves_the_integer_simplex(lattice: SimplexLattice) -> None:
    rng = np.random.default_rng(1)
    rows = 120_000 // max(lattice.dim // 4, 1)
    bits = rng.integers(0, 2**64, (rows, lattice.dim), dtype=np.uint64).view(np.float64)
    near = rng.standard_normal((rows, lattice.dim)) * 10.0 ** rng.uniform(-20, 20, (rows, 1))
    shares = rng.dirichlet(np.full(lattice.dim, 0.3), rows) * (1 + rng.uniform(-4, 4) * 2.0**-52)
    poison = rng.random(near.shape) < 0.02
    near[poison] = rng.choice(POISON, int(poison.sum()))
    for made in (bits, near, shares):
        assert in_simplex(lattice, record_integers(lattice, Batch(rows, matrix=made)))


@pytest.mark.parametrize("lattice", LATTICES)
def test_records_are_clipped_as_the_domain_says(lattice: SimplexLattice) -> None:
    domain = Simplex(lattice.dim, lattice.origin)
    rng = np.random.default_rng(2)
    made = rng.standard_normal((2000, lattice.dim)) * 10.0 ** rng.uniform(-3, 4, (2000, 1))
    made[:500] = rng.dirichlet(np.full(lattice.dim, 0.5), 500) * rng.uniform(0.5, 1.5, (500, 1))
    made[500:520] = 1e308
    made[520:540] = -1e308
    integers = record_integers(lattice, Batch(2000, matrix=made))
    assert np.abs(integers * float(lattice.grid) - domain.clip(made)).max() < 1e-11


@pytest.mark.parametrize("lattice", LATTICES)
def test_parts_that_are_binary_fractions_are_kept(lattice: SimplexLattice) -> None:
    rng = np.random.default_rng(3)
    counts = rng.multinomial(1 << 20, np.full(lattice.dim, 1 / lattice.dim), 300)
    if lattice.origin:
        counts[:100] //= 2
    made = counts / 2.0**20
    integers = record_integers(lattice, Batch(300, matrix=made))
    assert np.array_equal(integers, counts << 24)
    corners = record_integers(lattice, Batch(lattice.dim, matrix=np.eye(lattice.dim)))
    assert np.array_equal(corners, np.eye(lattice.dim, dtype=np.int64) << 44)


@pytest.mark.parametrize("lattice", LATTICES)
def test_nothing_at_all_is_the_centroid(lattice: SimplexLattice) -> None:
    center = list(lattice.center_units)
    assert in_simplex(lattice, np.array([center]))
    share = Fraction(1, lattice.dim + lattice.origin)
    assert all(abs(units * lattice.grid - share) <= lattice.dim * lattice.grid for units in center)
    missing = np.full((2, lattice.dim), np.nan)
    assert record_integers(lattice, Batch(2, matrix=missing)).tolist() == [center] * 2
    for way, counted in (("center", 5), ("drop", 0)):
        accumulator = Accumulator(lattice, way)
        accumulator.add(Batch(2, matrix=missing, absent=3))
        assert accumulator.total == [units * counted for units in center]
        assert (accumulator.rows, accumulator.counted) == (5, counted)


def test_sums_of_many_records_do_not_wrap_around() -> None:
    lattice = SimplexLattice(2)
    made = np.zeros((1 << 20, 2))
    made[:, 1] = 5.0
    accumulator = Accumulator(lattice)
    accumulator.add(Batch(len(made), matrix=made))
    assert accumulator.total == [0, 1 << 64]


def test_whole_numbers_and_decimals_are_read() -> None:
    lattice = SimplexLattice(2, origin=True)
    values = [0, 1, 3, -2]
    limbs = np.array([[value % 2**64] for value in values], np.uint64)
    zeros = Floats(np.zeros(4))
    expected = [[0, 0], [1 << 44, 0], [1 << 44, 0], [0, 0]]
    for column in (Integers(np.array(values)), Decimals(limbs, 0), Floats(np.array(values, float))):
        assert record_integers(lattice, Batch(4, [column, zeros])).tolist() == expected
    tenths = Decimals(np.array([[5], [25], [1], [0]], np.uint64), 1)
    half = record_integers(lattice, Batch(4, [tenths, zeros]))[:, 0]
    assert half.tolist() == [1 << 43, 1 << 44, round(Fraction(1 << 44, 10)), 0]


@pytest.mark.parametrize("origin", [False, True])
def test_a_projection_that_is_wrong_cannot_push_a_record_out(
    origin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Privacy rests on the integer check alone."""
    lattice = SimplexLattice(3, origin)
    rng = np.random.default_rng(4)
    wrong = rng.standard_normal((3, 50_000)) * 10.0 ** rng.uniform(-3, 300, (1, 50_000))
    wrong[:, :5000] = rng.choice(POISON, (3, 5000))
    monkeypatch.setattr("muhat.domains.simplex_lattice.nearest_parts", lambda x, origin: wrong)
    integers = record_integers(lattice, Batch(50_000, matrix=np.zeros((50_000, 3))))
    assert in_simplex(lattice, integers)
