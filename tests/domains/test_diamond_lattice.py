"""Records of an ℓ₁ ball as integers: never beyond its total, the same wherever a record stands."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.data.engine import record_integers
from muhat.domains.diamond_lattice import DiamondLattice
from muhat.domains.integers import Lattice
from muhat.domains.lattice import SimplexLattice
from muhat.records.columns import Batch

UNIT = DiamondLattice.unit
HOSTILE = [0.0, -0.0, 0.3, -1.0, 7.5, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan]
LATTICES = [
    DiamondLattice((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    DiamondLattice((1e9, -3.0, 0.0), (1e-3, 2.0, 1e150)),
    DiamondLattice((0.0, 1.0, 2.0), (1e-300, 3e-310, 1e-300)),
]


def integers(lattice: Lattice, x: np.ndarray) -> np.ndarray:
    return record_integers(lattice, Batch(len(x), matrix=np.ascontiguousarray(x)))


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_no_record_is_beyond_the_total(lattice):
    grid = np.array(list(itertools.product(HOSTILE, repeat=3)))
    rng = np.random.default_rng(1)
    around = np.array(lattice.center) + rng.standard_cauchy((2000, 3)) * lattice.half_widths
    for x in (grid, around):
        q = integers(lattice, x)
        assert np.abs(q).sum(axis=1).max() <= UNIT
        alone = np.vstack([integers(lattice, row[None]) for row in x[::50]])
        assert (alone == q[::50]).all()


def test_records_inside_stay_where_they_are_and_others_move_along_their_ray():
    ball = mh.LpBall(p=1, radius=2, dim=4, center=[1, 0, 5, 2], scale=[1, 2, 3, 0.1])
    lattice = DiamondLattice(tuple(ball.center.tolist()), tuple(ball.half_widths.tolist()))
    x = ball.center + np.random.default_rng(2).normal(size=(500, 4)) * ball.half_widths / 3
    q = integers(lattice, x)
    found = ball.center + ball.half_widths * q / UNIT
    assert np.allclose(found, ball.clip(x), rtol=0, atol=1e-12)
    assert (np.abs(q).sum(axis=1) == UNIT).sum() > 50
    (missing,) = integers(lattice, np.array([[1.5, np.nan, 5.0, np.inf]]))
    assert missing.tolist() == [UNIT // 4, 0, 0, 0]


@pytest.mark.parametrize("total", [1, 3, 4])
def test_two_points_are_as_far_apart_as_the_lattice_says(total, monkeypatch):
    # Every point of a small lattice, every pair, in whole numbers.
    monkeypatch.setattr(DiamondLattice, "unit", total)
    lattice = DiamondLattice((0.0,) * 3, (1.0,) * 3)
    inside = [
        np.array(q)
        for q in itertools.product(range(-total, total + 1), repeat=3)
        if sum(map(abs, q)) <= total
    ]
    for order in (1, 2, np.inf):
        apart = max(np.linalg.norm(a - b, order) for a in inside for b in inside)
        assert apart == lattice.sensitivity([1], order, replaced=True, from_zero=False)
        alone = max(np.linalg.norm(a, order) for a in inside)
        assert alone == lattice.sensitivity([1], order, replaced=False, from_zero=True)


@pytest.mark.parametrize("step", [Fraction(21, 20), Fraction(7, 5)], ids=str)
def test_laplace_noise_on_the_integers_keeps_the_promise_exactly(step):
    # The law of every output of a small lattice, a rational in the place of e^(ε/2T).
    total = 3
    inside = [q for q in itertools.product(range(-3, 4), repeat=2) if sum(map(abs, q)) <= total]

    def weight(out, q) -> Fraction:
        return step ** -sum(abs(a - b) for a, b in zip(out, q, strict=True))

    worst = max(
        weight(out, one) / weight(out, other)
        for out in itertools.product(range(-5, 6), repeat=2)
        for one in inside
        for other in inside
    )
    # e^ε is the factor of 2T steps, the ℓ₁ distance of opposite corners, and no more.
    assert worst == step ** (2 * total)


def test_a_lattice_is_written_and_read():
    for lattice in LATTICES:
        assert Lattice.from_dict(lattice.to_dict()) == lattice
    with pytest.raises(mh.InvalidInput, match="half_widths"):
        DiamondLattice((0.0, 1.0), (1.0,))
    assert SimplexLattice(3).unit == UNIT
