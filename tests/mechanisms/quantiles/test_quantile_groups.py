"""Searches in groups: what one person moves in all of them together, in integers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muhat.data.grids import UniformGrid
from muhat.mechanisms.quantiles import quantile
from muhat.mechanisms.quantiles.quantile import QuantileRecipe
from muhat.mechanisms.quantiles.recorded_count import RecordedCount, spent_beside
from muhat.noise.laws import LAWS
from muhat.noise.protection import Protection
from muhat.privacy import GDP, Neighbors, PureDP

GRID = UniformGrid(0.0, 8.0, 1.0)
GROUPS, WHOLE = 3, 1 << 108
HALF = Fraction(1, 2)


def recipe_of(promise, *, secret, fractions=(HALF,), contributions=1, grids=(GRID,), **options):
    neighbors = Neighbors.ADD_REMOVE if secret else Neighbors.SUBSTITUTE
    law = LAWS["laplace" if isinstance(promise, PureDP) else "normal"]
    protection = Protection(promise, neighbors, contributions)
    return QuantileRecipe.of(
        grids, fractions, None, law, protection, **{"groups": GROUPS, **options}
    )


def integers(recipe, records):
    """What questions would compare at every cell of every group, and what counts are made of.

    A record is None, in no group, or its group and its cell, which is None if it has no value.
    """
    found, numbers = [], []
    for group in range(GROUPS):
        kept = [one[1] for one in records if one is not None and one[0] == group]
        cells = np.array([cell for cell in kept if cell is not None], np.int64)
        below = np.cumsum(np.bincount(cells, minlength=GRID.cells)).tolist()
        numbers.append(len(cells))
        for fraction, (search,) in zip(recipe.fractions, recipe.searches, strict=True):
            target = fraction * len(cells)
            if fraction == 0:
                target = HALF
            if fraction == 1:
                target = len(cells) - HALF
            found.append([math.floor(search.multiplier * (count - target)) for count in below])
    return found, numbers


RECORD = st.none() | st.tuples(
    st.integers(0, GROUPS - 1), st.none() | st.integers(0, GRID.cells - 1)
)
# So strong a promise that a unit of rounding would be seen.
TINY = {"normal": GDP(mu=1e-11), "laplace": PureDP(epsilon=1e-11)}


@settings(deadline=None, max_examples=400)
@given(st.data())
@pytest.mark.parametrize("kind", TINY)
@pytest.mark.parametrize("secret", [True, False])
def test_a_person_moves_all_groups_together_by_no_more_than_the_promise(kind, secret, data):
    many = data.draw(st.integers(1, 3))
    records = data.draw(st.lists(RECORD, min_size=many, max_size=10))
    others = [] if secret else data.draw(st.lists(RECORD, min_size=many, max_size=many))
    asked = st.sampled_from([Fraction(0), Fraction(1)]) | st.fractions(0, 1, max_denominator=20)
    fractions = tuple(data.draw(st.lists(asked, min_size=1, max_size=3)))
    recipe = recipe_of(TINY[kind], secret=secret, fractions=fractions, contributions=many)
    before, sizes = integers(recipe, records)
    after, others_sizes = integers(recipe, others + records[many:])
    questions = [row[0].questions for row in recipe.searches] * GROUPS
    moved = []
    for number, one, other in zip(questions, before, after, strict=True):
        moved += [max(abs(a - b) for a, b in zip(one, other, strict=True))] * number
    for one, other in zip(sizes, others_sizes, strict=True):
        moved.append(abs(one - other) * recipe.counts[0].multiplier)
    spent = sum(move**2 for move in moved) if kind == "normal" else sum(moved) ** 2
    column = [row[0] for row in recipe.searches]
    stated = spent_beside(column, recipe.counts[0], groups=True)
    allowed = recipe.protection.strength_squared(recipe.law.kind)
    assert spent <= stated * WHOLE <= allowed * WHOLE


@pytest.mark.parametrize("kind", TINY)
@pytest.mark.parametrize("fraction", [Fraction(9, 10), Fraction(1)], ids=str)
def test_a_record_that_leaves_one_group_for_another_uses_the_promise_up(kind, fraction):
    """The worst that is proved happens: noise for one group would be too little for two."""
    recipe = recipe_of(TINY[kind], secret=False, fractions=(fraction,))
    greatest = GRID.cells - 1
    before, _ = integers(recipe, [(0, greatest)])
    after, _ = integers(recipe, [(1, greatest)])
    moved = [recipe.counts[0].multiplier] * 2
    for one, other in zip(before, after, strict=True):
        largest = max(abs(a - b) for a, b in zip(one, other, strict=True))
        moved += [largest] * recipe.searches[0][0].questions
    spent = sum(move**2 for move in moved) if kind == "normal" else sum(moved) ** 2
    allowed = recipe.protection.strength_squared(recipe.law.kind) * WHOLE
    assert 0.99 * allowed < spent <= allowed


@pytest.mark.parametrize("promise", [GDP(mu=1.0), PureDP(epsilon=1.0)], ids=str)
@pytest.mark.parametrize("secret", [True, False])
@pytest.mark.parametrize("contributions", [1, 4])
@pytest.mark.parametrize("fractions", [(HALF,), (Fraction(1, 10), HALF, Fraction(1))], ids=len)
def test_groups_use_the_promise_up_and_no_more(promise, secret, contributions, fractions):
    options = {"fractions": fractions, "contributions": contributions, "intervals": True}
    grids = (GRID, UniformGrid(0.0, 1.0, 0.01))
    recipe = recipe_of(promise, secret=secret, grids=grids, **options)
    fields = (recipe.grids, recipe.fractions, None, recipe.law, recipe.protection, recipe.searches)
    QuantileRecipe(*fields, recipe.counts, GROUPS)
    finer = tuple(RecordedCount(one.law, one.multiplier * 101 // 100) for one in recipe.counts)
    with pytest.raises(AssertionError, match="more than was promised"):
        QuantileRecipe(*fields, finer, GROUPS)
    with pytest.raises(AssertionError, match="counted"):
        QuantileRecipe(*fields, None, GROUPS)


def test_a_median_is_as_exact_in_a_group_as_without():
    for promise in (GDP(mu=1.0), PureDP(epsilon=1.0)):
        for secret in (True, False):
            options = {"secret": secret, "recorded": True, "intervals": True}
            alone = recipe_of(promise, groups=None, **options)
            grouped = recipe_of(promise, **options)
            ((one,),), ((other,),) = alone.searches, grouped.searches
            # Under pure privacy the count of a group has the share of one question more.
            paid = not secret and isinstance(promise, PureDP)
            more = (other.questions + 1) / other.questions if paid else 1
            assert other.scale == pytest.approx(more * one.scale, rel=1e-9)


def test_ends_of_groups_that_records_may_leave_have_the_noise_of_two():
    for promise, factor in ((GDP(mu=1.0), math.sqrt(2)), (PureDP(epsilon=1.0), 2)):
        options = {"secret": False, "fractions": (Fraction(1),), "recorded": True}
        alone = recipe_of(promise, groups=None, **options).searches[0][0]
        grouped = recipe_of(promise, **options).searches[0][0]
        assert grouped.scale == pytest.approx(factor * alone.scale, rel=1e-9)


@pytest.mark.parametrize("table_cells", [1 << 22, 1 << 6, 4])
@pytest.mark.parametrize("secret", [True, False])
def test_many_passes_find_what_one_pass_finds(monkeypatch, table_cells, secret):
    """With noise of 10⁻⁴ records the exact quantiles come out, whatever a pass can hold."""
    from muhat.data.categories import categories_of
    from muhat.data.groups import open_groups

    monkeypatch.setattr(quantile, "TABLE_CELLS", table_cells)
    rng = np.random.default_rng(0)
    data = {"x": rng.integers(0, 1001, 900).astype(float), "g": rng.integers(0, GROUPS, 900)}
    grid = UniformGrid(0.0, 1000.0, 1.0)
    fractions = tuple(map(Fraction, ("0", "0.25", "0.5", "1")))
    source = open_groups(data, ["x"], ["g"], categories_of({"g": GROUPS}, missing="drop"))
    passes = []

    def count(windows):
        passes.append(len(windows))
        assert sum(window.blocks for window in windows) <= max(table_cells, 2 * len(windows))
        return source.counts([grid], windows, missing="drop")

    options = {"secret": secret, "fractions": fractions, "grids": (grid,), "intervals": True}
    recipe = recipe_of(PureDP(epsilon=1e7), **options)
    for group, answers in enumerate(recipe.run_groups(count)):
        records = np.sort(data["x"][data["g"] == group])
        assert answers.recorded[0] == pytest.approx(len(records), abs=0.01)
        for q, (found,) in zip(fractions, answers.found, strict=True):
            assert found.cell == records[max(math.ceil(q * len(records)), 1) - 1]
    assert (len(passes) == 1) == (table_cells == 1 << 22)
