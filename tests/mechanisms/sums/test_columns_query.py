"""Sums, squares and counts of columns move no farther than declared, in integers."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from muhat.data.engine import record_integers
from muhat.domains.lattice import BoxLattice, ColumnsLattice
from muhat.errors import InvalidInput
from muhat.mechanisms.sums.columns import columns_recipe
from muhat.mechanisms.sums.columns_query import SQUARE_BOUND
from muhat.noise import FRACTION_BITS
from muhat.noise.kinds import NoiseKind, Strength
from muhat.noise.laws import LAWS
from muhat.noise.protection import Protection
from muhat.privacy import Neighbors
from muhat.records.columns import Batch, Floats

SUBSTITUTE, ADD_REMOVE = Neighbors.SUBSTITUTE, Neighbors.ADD_REMOVE
AROUND = BoxLattice.around([-3.0], [5.0])
WITH_ZERO = BoxLattice.with_zero([2.0], [5.0])
NORMS = {"normal": 2.0, "laplace": 1.0, "maximum-norm": math.inf}
STRENGTH = Fraction(1, 4)

CASES = [
    (law, neighbors, box, squares, counts, share)
    for law in NORMS
    for neighbors in Neighbors
    for box, squares, counts, share in (
        (AROUND, True, True, 0.0),
        (AROUND, True, False, 0.3),
        (AROUND, False, True, 0.0),
        (AROUND, False, False, 0.3),
        (WITH_ZERO, True, True, 0.0),
        (WITH_ZERO, False, True, 0.0),
    )
    # A sum of a secret number of records is measured from 0 and has no squares.
    if not (box is WITH_ZERO and squares and neighbors is ADD_REMOVE)
]


def recipe_of(law, neighbors, box, squares, counts, share, contributions=1):
    protection = Protection(Strength(LAWS[law].kind, STRENGTH), neighbors, contributions)
    return columns_recipe(
        "test",
        law,
        ColumnsLattice(box, squares, counts),
        np.array([1.0]),
        protection,
        count_share=share if neighbors is ADD_REMOVE else 0.0,
        from_zero=box is WITH_ZERO and neighbors is ADD_REMOVE,
    )


def values_of(box):
    """Ends, middle, the worst pair of Lemma 1, what is beyond, and what is missing."""
    low, high = 2.0 if box is WITH_ZERO else -3.0, 5.0
    middle, half = (2.5, 2.5) if box is WITH_ZERO else (1.0, 4.0)
    turn = 1 - (math.sqrt(5) - 1)
    u = [-1, 1, 0, turn, -turn, 0.5, -0.5, 0.3, math.sqrt(0.5), 1e-9, 1 - 1e-9]
    spread = np.random.default_rng(1).uniform(low, high, 40)
    ends = [low, high, math.nextafter(high, 0), 1e300, -1e300, math.nan, math.inf]
    return np.array([*ends, *(middle + half * np.array(u)), *spread])


def length(vector, norm):
    sizes = [abs(int(x)) for x in vector]
    if norm == 1:
        return sum(sizes)
    return max(sizes) if math.isinf(norm) else math.sqrt(sum(x * x for x in sizes))


def moved(query, one, other, norm):
    """How far two answers are apart; squares that are apart have a norm of their own."""
    v = [x - y for x, y in zip(one, other, strict=True)]
    if not query.apart:
        return length(v, norm)
    squares = slice(query.sum_rows, query.sum_rows + query.square_rows)
    beside = v[squares]
    del v[squares]
    return length(v, norm) + length(beside, norm)


def longest_move(recipe, norm, neighbors, box):
    """The farthest two answers of neighbours are apart, over all pairs of values."""
    values = values_of(box)
    return longest_of(recipe.query, norm, neighbors, [Floats(values)])


def longest_of(query, norm, neighbors, columns):
    """The same over all pairs of records of several columns."""
    records = record_integers(query.lattice, Batch(len(columns[0].values), columns))
    rows = [[int(x) for x in record] for record in records]
    rest = [sum(column) for column in zip(*rows, strict=True)]

    def answer(extra):
        totals = [sum(parts) for parts in zip(rest, *extra, strict=True)]
        return query.answer(totals, len(rows) + len(extra))

    if neighbors is ADD_REMOVE:
        pairs = [([], [row]) for row in rows]
    else:
        pairs = [([a], [b]) for a, b in itertools.combinations(rows, 2)]
    return max(moved(query, answer(a), answer(b), norm) for a, b in pairs)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_two_neighbours_are_farther_apart_than_declared(case):
    law, neighbors, box, *_ = case
    recipe, norm = recipe_of(*case), NORMS[law]
    declared = recipe.query.sensitivity(norm, neighbors, 1)
    assert declared**2 <= STRENGTH * (1 << 2 * FRACTION_BITS)
    observed = longest_move(recipe, norm, neighbors, box)
    assert observed <= declared
    # Nothing is given away either, but for the count beside a sum, which never moves alone, and
    # squares that have noise of their own, which stand still where the only sum moves farthest.
    near = 0.94 if recipe.query.apart else 1 if box is AROUND else 0.97
    assert observed >= declared * Fraction(999_999_999, 10**9) * near


@pytest.mark.parametrize("squares", [True, False])
@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_two_columns_move_as_far_as_the_cube_allows(neighbors, counts, squares):
    """Rows that are turned, and squares with noise of their own, are declared to the last bit."""
    box = BoxLattice.around([-3.0, 0.0], [5.0, 1.0])
    protection = Protection(Strength(NoiseKind.PURE, STRENGTH), neighbors, 1)
    share = 0.0 if neighbors is SUBSTITUTE else 0.3
    query = columns_recipe(
        "test",
        "maximum-norm",
        ColumnsLattice(box, squares, counts),
        np.array([4.0, 0.5]),
        protection,
        count_share=share,
    ).query
    assert query.turned == (counts and neighbors is SUBSTITUTE)
    assert query.apart == squares
    ends = np.array([-9.0, 9.0, 1.0, np.nan, 0.3])
    columns = [Floats(np.repeat(ends, 5)), Floats(np.tile([-9.0, 9.0, 0.5, np.nan, 0.4], 5))]
    declared = query.sensitivity(math.inf, neighbors, 1)
    observed = longest_of(query, math.inf, neighbors, columns)
    assert declared * Fraction(999_999_999, 10**9) <= observed <= declared


def test_turned_rows_are_read_as_the_sums_and_counts_that_they_hold():
    box = BoxLattice.around([-3.0, 0.0], [5.0, 1.0])
    protection = Protection(Strength(NoiseKind.PURE, STRENGTH), SUBSTITUTE, 1)
    lattice = ColumnsLattice(box, squares=True, counts=True)
    query = columns_recipe("test", "maximum-norm", lattice, np.array([4.0, 0.5]), protection).query
    columns = [Floats(np.array([-3.0, 2.0, np.nan])), Floats(np.array([0.25, 0.5, 1.0]))]
    totals = record_integers(lattice, Batch(3, columns)).sum(axis=0).tolist()
    read = query.read(query.answer(totals, 3))
    found = [float(row * unit) for row, unit in zip(read, query.units(), strict=True)]
    lacking = [3 - 1 - 0.25**2 - 1, 3 - 0.25 - 0 - 1]
    assert found == pytest.approx([-4 + 1, -0.25 + 0.5, *lacking, 2, 3], rel=1e-9)
    with pytest.raises(InvalidInput, match="norm of the cube"):
        query.sensitivity(2.0, SUBSTITUTE, 1)


@pytest.mark.parametrize("law", ["normal", "laplace"])
@pytest.mark.parametrize("counts", [True, False])
def test_squares_and_under_substitution_counts_cost_the_sum_nothing(law, counts):
    plain = recipe_of(law, SUBSTITUTE, AROUND, False, False, 0.0)
    more = recipe_of(law, SUBSTITUTE, AROUND, True, counts, 0.0)
    assert more.row_scales[0] == pytest.approx(plain.row_scales[0], rel=1e-9)


def test_the_noise_is_that_of_the_table():
    """Variances or scales in half-widths, squared half-widths and records; promise 1/2."""

    def noise(law, neighbors, squares, counts):
        recipe = recipe_of(law, neighbors, AROUND, squares, counts, 0.0)
        return recipe.row_scales / 2 / np.array([4.0, *[1.0] * (recipe.query.rows - 1)])

    expected = np.sqrt([4, 4, 4 / 3])
    assert noise("normal", SUBSTITUTE, True, True) == pytest.approx(expected, rel=1e-6)
    assert noise("normal", SUBSTITUTE, True, False) == pytest.approx([2, 1.2012], rel=1e-4)
    assert noise("laplace", SUBSTITUTE, True, True) == pytest.approx([2, 4, 2], rel=1e-5)
    assert noise("normal", ADD_REMOVE, True, True) == pytest.approx(np.sqrt([2, 2, 2]), rel=1e-6)
    assert noise("maximum-norm", ADD_REMOVE, False, True) == pytest.approx([1, 1], rel=1e-6)
    assert noise("maximum-norm", SUBSTITUTE, False, True) == pytest.approx([2, 2], rel=1e-6)
    apart = [2 / 0.95, 1 / 0.05, 2 / 0.95]
    assert noise("maximum-norm", SUBSTITUTE, True, True) == pytest.approx(apart, rel=1e-6)


@pytest.mark.parametrize(("law", "growth"), [("normal", 1.02), ("laplace", 1.3)])
def test_larger_squares_would_move_more_and_are_declared_to(law, growth):
    norm = NORMS[law]
    recipe = recipe_of(law, SUBSTITUTE, AROUND, True, False, 0.0)
    query = recipe.query
    louder = replace(query, squares=tuple(int(growth * x) for x in query.squares))
    observed = longest_move(replace_query(recipe, louder), norm, SUBSTITUTE, AROUND)
    assert observed <= louder.sensitivity(norm, SUBSTITUTE, 1)
    if law == "normal":
        assert observed > query.sensitivity(norm, SUBSTITUTE, 1)


def replace_query(recipe, query):
    """A recipe that would refuse itself, for the arithmetic alone."""

    class Loud:
        pass

    loud = Loud()
    loud.query = query
    return loud


def test_the_constant_of_the_lemma_is_just_above_the_root():
    assert 0 < SQUARE_BOUND - Fraction(8 * (5 * math.sqrt(5) - 11)) < Fraction(1, 10_000)


@pytest.mark.parametrize("contributions", [2, 5])
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_several_records_a_person_take_as_many_times_the_noise(contributions, neighbors):
    one = recipe_of("normal", neighbors, AROUND, True, True, 0.0)
    several = recipe_of("normal", neighbors, AROUND, True, True, 0.0, contributions)
    assert several.row_scales == pytest.approx(contributions * one.row_scales, rel=1e-9)


@pytest.mark.parametrize("counts", [True, False])
def test_noise_of_its_own_is_as_large_as_is_said_and_tells_nothing_of_the_other(counts):
    """2,000 draws: mean squares within 25 % and no correlation of sizes, at 1e-6 together."""
    box = BoxLattice.around([-1.0, -1.0], [1.0, 1.0])
    protection = Protection(Strength(NoiseKind.PURE, STRENGTH), SUBSTITUTE, 1)
    lattice = ColumnsLattice(box, squares=True, counts=counts)
    recipe = columns_recipe("test", "maximum-norm", lattice, np.ones(2), protection)
    noise = np.array([[float(x) for x in recipe.run([0] * lattice.dim, 0)] for _ in range(4000)])
    said = [*recipe.sum_spread.standard_error, *recipe.square_spread.standard_error]
    if counts:
        said += list(recipe.row_scales[-2:] * math.sqrt(recipe.sum_spread.law.variance(4)))
    assert (noise**2).mean(axis=0) == pytest.approx(np.square(said), rel=0.25)
    size = np.abs(noise[:, 0]) / said[0]
    together = np.corrcoef(size, np.abs(noise[:, 1]))[0, 1]
    assert abs(np.corrcoef(size, np.abs(noise[:, 2]))[0, 1]) < 0.13 < 2 * together
