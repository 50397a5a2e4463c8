"""Sums and squares of a ball move no farther than declared, in integers."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from muhat.data.engine import record_integers
from muhat.domains.blocks import Block
from muhat.domains.lattice import BallLattice
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.ball_squares import ball_recipe
from muhat.noise import FRACTION_BITS
from muhat.noise.kinds import Strength
from muhat.noise.laws import LAWS
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors
from muhat.records.columns import Batch

SUBSTITUTE, ADD_REMOVE = Neighbors.SUBSTITUTE, Neighbors.ADD_REMOVE
STRENGTH = Fraction(1, 4)
CASES = [
    (law, neighbors, dim, share, each)
    for law in ("normal", "euclidean-norm")
    for neighbors in Neighbors
    for dim in (1, 2, 3, 7)
    for share, each in ([(0.0, True)] if neighbors is SUBSTITUTE else [(0.3, True), (0.3, False)])
    # Pure noise has room for squares where they are asked for, and then for those of each column.
    if law == "normal" or each
]


def recipe_of(law, neighbors, dim, share=0.0, each=True, contributions=1):
    lattice = BallLattice.around([0.5] * dim, 3.0)
    block = Block(lattice, np.full(dim, 3.0), np.full(dim, 0.5))
    protection = Protection(Strength(LAWS[law].kind, STRENGTH), neighbors, contributions)
    return ball_recipe("test", law, block, protection, count_share=share, each=each)


def records_of(dim):
    """The centre, ends of axes, diagonals, the worst pairs of the lemma, and points beyond."""
    rng = np.random.default_rng(dim)
    units = [np.zeros(dim), *np.eye(dim), *-np.eye(dim), np.ones(dim) / math.sqrt(dim)]
    # x = (s + t)/2, y = (t − s)/2 with s ⊥ t, |s| nearly 2: nothing but |s|² is nearly lost.
    for alpha in (0.25, 0.5, 0.9, 0.999, 1.0):
        s, t = np.zeros(dim), np.zeros(dim)
        s[:2], t[:2] = math.sqrt(alpha / 2), math.sqrt((1 - alpha) / 2)
        t[1:2] *= -1
        units += [s + t, t - s]
    # On one line, as in a box.
    for place in (1, 1 - (math.sqrt(5) - 1), 0.5, 0.3, -1):
        units.append(place * np.eye(dim)[0])
    points = rng.normal(size=(24, dim))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    sizes = np.concatenate([np.ones(12), rng.random(12)])[:, None]
    return 0.5 + 3 * np.vstack([*units, points * sizes, 1e9 * points[:2]])


def parts_of(query):
    """The rows that have noise together."""
    squares = slice(query.sum_rows, query.sum_rows + query.square_rows)
    if not query.apart:
        return [list(range(query.rows))]
    beside = list(range(query.rows))[squares]
    return [[row for row in range(query.rows) if row not in beside], beside]


def longest_move(query, neighbors):
    """The farthest two answers of neighbours are apart, over all pairs of records."""
    records = record_integers(query.lattice, Batch(len(data := records_of(query.dim)), matrix=data))
    rows = [[int(x) for x in record] for record in records]
    rest = [sum(column) for column in zip(*rows, strict=True)]

    def answer(extra):
        totals = [sum(parts) for parts in zip(rest, *extra, strict=True)]
        return query.answer(totals, len(rows) + len(extra))

    if neighbors is ADD_REMOVE:
        pairs = [([], [row]) for row in rows]
    else:
        pairs = [([a], [b]) for a, b in itertools.combinations(rows, 2)]
    moved = []
    for one, other in pairs:
        v = [x - y for x, y in zip(answer(one), answer(other), strict=True)]
        moved.append(sum(math.sqrt(sum(v[i] ** 2 for i in part)) for part in parts_of(query)))
    return max(moved)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_two_neighbours_are_farther_apart_than_declared(case):
    law, neighbors, *_ = case
    query = recipe_of(*case).query
    declared = query.sensitivity(2.0, neighbors, 1)
    assert declared**2 <= STRENGTH * (1 << 2 * FRACTION_BITS)
    observed = longest_move(query, neighbors)
    assert observed <= declared
    # Nothing is given away either: sums and squares that have noise apart are not farthest at once.
    assert observed >= declared * (0.94 if law != "normal" else 1 - 1e-5)


@pytest.mark.parametrize("dim", [1, 2, 7])
def test_squares_cost_the_sums_nothing(dim):
    """Variances 4 and 8 in one coordinate of a ball of radius 1, and (1, 1) for the length."""
    noise = recipe_of("normal", SUBSTITUTE, dim).row_scales / 2
    assert noise[:dim] / 3 == pytest.approx(np.full(dim, 2.0), rel=1e-9)
    assert noise[dim:] == pytest.approx(np.full(dim, 1.2012 if dim == 1 else 8**0.5), rel=1e-4)
    noise = recipe_of("normal", ADD_REMOVE, dim, 0.3, False).row_scales / 2
    assert noise[: dim + 1] / [*[3.0] * dim, 1] == pytest.approx([0.7**-0.5] * (dim + 1), rel=1e-9)
    assert noise[-1] == pytest.approx(0.3**-0.5, rel=1e-9)
    assert len(noise) == dim + 2


def test_squares_of_each_column_cost_little_where_they_are_not_free():
    free = recipe_of("normal", ADD_REMOVE, 4, 0.3, False).row_scales
    dear = recipe_of("normal", ADD_REMOVE, 4, 0.3, True).row_scales
    assert 1.01 < dear[0] / free[0] < 1.03
    assert dear[-1] / free[-1] == pytest.approx(dear[0] / free[0], rel=1e-9)
    pure = recipe_of("euclidean-norm", SUBSTITUTE, 4)
    assert pure.row_scales[0] / 2 / 3 == pytest.approx(2 / 0.95, rel=1e-6)
    assert pure.noise_rows == 4


@pytest.mark.parametrize(("dim", "growth"), [(1, 1.02), (2, 1.02), (7, 1.02)])
def test_larger_squares_would_move_more_and_are_declared_to(dim, growth):
    query = recipe_of("normal", SUBSTITUTE, dim).query
    louder = replace(query, squares=int(growth * query.squares))
    observed = longest_move(louder, SUBSTITUTE)
    assert query.sensitivity(2.0, SUBSTITUTE, 1) < observed
    assert observed <= louder.sensitivity(2.0, SUBSTITUTE, 1)


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_several_records_a_person_take_as_many_times_the_noise(neighbors):
    one, five = (recipe_of("normal", neighbors, 3, contributions=k) for k in (1, 5))
    assert five.row_scales == pytest.approx(5 * one.row_scales, rel=1e-9)


def test_other_norms_and_lattices_are_refused():
    query = recipe_of("normal", SUBSTITUTE, 2).query
    with pytest.raises(InvalidInput, match="Euclidean"):
        query.sensitivity(1.0, SUBSTITUTE, 1)
    turned = BallLattice.whitened([0.0, 0.0], [[1.0, 0.0], [0.5, 1.0]])
    with pytest.raises(InvalidInput, match="whitening"):
        replace(query.lattice, ball=turned)
