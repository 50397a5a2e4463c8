"""Squares of the coordinates of a ball: those of its integers, by record, in every pass."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from muhat.data import exact_sums, open_source
from muhat.data.base import paced
from muhat.data.engine import record_integers
from muhat.domains.box_kernel import SQUARE_ERROR, SQUARE_UNIT
from muhat.domains.lattice import BallLattice, SquaredBallLattice
from muhat.records.columns import Batch, Floats


def records(radius, rows=3000):
    """Inside, on the sphere, far beyond, huge, and with values that are not there."""
    data = np.random.default_rng(0).normal(0, radius, (rows, 3))
    data[0] = [radius, 0, 0]
    data[1] = 0
    data[2, 1] = np.nan
    data[3, 0] = np.inf
    data[4] = [1e308, -1e308, 1e307]
    return data


@pytest.mark.parametrize("radius", [1.0, 2.0**30 - 1, 1e-280, 1e280])
def test_squares_are_those_of_the_integers_up_to_rounding(radius):
    lattice = SquaredBallLattice(BallLattice.around([0.0, 0.0, 0.0], radius))
    data = records(radius)
    steps = record_integers(lattice, Batch(len(data), matrix=data))
    q, s = steps[:, :3], steps[:, 3:]
    assert (q == record_integers(lattice.ball, Batch(len(data), matrix=data))).all()
    assert np.abs(q).max() > 1 << 43
    pairs = zip(q.ravel().tolist(), s.ravel().tolist(), strict=True)
    assert max(abs(b - Fraction(a * a, SQUARE_UNIT)) for a, b in pairs) < SQUARE_ERROR
    assert (s[1] == 0).all()


@pytest.mark.parametrize("missing", ["center", "drop"])
@pytest.mark.parametrize("odd", [True, False])
def test_a_pass_adds_up_what_every_record_adds(missing, odd):
    """With records that need care and without: blocks of these go another way."""
    ball = BallLattice.scaled([0.5, -1.0, 0.0], [1.0, 0.25, 3.0])
    lattice = SquaredBallLattice(ball)
    data = records(1.0, 200_000)
    data = data if odd else data[5:]
    batch = Batch(len(data), [Floats(column) for column in data.T])
    steps = record_integers(lattice, batch, missing)
    with paced(show_progress=False):
        sums = exact_sums(open_source(data, None, 3), lattice, missing=missing)
    assert list(sums.total) == [int(total) for total in steps.sum(axis=0)]
    assert sums.rows == len(data) - (2 if missing == "drop" and odd else 0)
    scale = float(ball.grid) ** 2 * SQUARE_UNIT
    inside = (data[5:] - [0.5, -1, 0]) * [1, 0.25, 3]
    inside /= np.maximum(np.linalg.norm(inside, axis=1, keepdims=True), 1)
    measured = steps[-len(inside) :, 3:].sum(axis=0) * scale
    assert math.isclose(measured.sum(), (inside**2).sum(), rel_tol=1e-9)
    assert measured == pytest.approx((inside**2).sum(axis=0), rel=1e-9)
