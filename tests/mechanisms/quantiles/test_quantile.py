"""The recipe for quantiles: how searches share a promise, and passes over the data."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from muhat.data import open_source
from muhat.data.grid_counts import count_windows
from muhat.data.grids import UniformGrid
from muhat.mechanisms.quantiles import quantile
from muhat.mechanisms.quantiles.noisy_search import NoisySearch
from muhat.mechanisms.quantiles.quantile import QuantileRecipe
from muhat.mechanisms.quantiles.recorded_count import RecordedCount, spent_beside
from muhat.noise.laws import LAWS
from muhat.noise.protection import Protection
from muhat.privacy import ZCDP, Neighbors, PureDP

HALF = Fraction(1, 2)
GRIDS = (UniformGrid(0.0, 1000.0, 1.0), UniformGrid(0.0, 1.0, 0.25))


def recipe_of(promise, *, n=None, grids=GRIDS, fractions=(HALF,), contributions=1, **options):
    neighbors = Neighbors.ADD_REMOVE if n is None else Neighbors.SUBSTITUTE
    law = LAWS["laplace" if isinstance(promise, PureDP) else "normal"]
    protection = Protection(promise, neighbors, contributions)
    return QuantileRecipe.of(grids, fractions, n, law, protection, **options)


def total_spent(recipe):
    """The strength of all rounds of all searches, from the integers that are compared."""
    moved = [
        (search.questions, Fraction(search.sensitivity, 1 << 54))
        for row in recipe.searches
        for search in row
    ]
    if recipe.law.name == "normal":
        return sum(rounds * move**2 for rounds, move in moved)
    return sum(rounds * move for rounds, move in moved) ** 2


@pytest.mark.parametrize("promise", [ZCDP(rho=0.1), PureDP(epsilon=0.7)])
@pytest.mark.parametrize("n", [None, 1000])
@pytest.mark.parametrize("contributions", [1, 3])
def test_all_searches_together_spend_the_promise_and_no_more(promise, n, contributions):
    fractions = (Fraction(1, 10), HALF, Fraction(1, 3))
    recipe = recipe_of(promise, n=n, fractions=fractions, contributions=contributions)
    allowed = recipe.protection.strength_squared(recipe.law.kind)
    assert allowed * (1 - 1e-10) < total_spent(recipe) <= allowed


def test_searches_that_spend_more_than_was_promised_are_refused():
    recipe = recipe_of(ZCDP(rho=0.1), n=10)
    twice = tuple(
        tuple(NoisySearch(s.cells, s.law, 2 * s.strength_squared) for s in row)
        for row in recipe.searches
    )
    fields = (recipe.grids, recipe.fractions, recipe.n, recipe.law, recipe.protection)
    QuantileRecipe(*fields, recipe.searches)
    with pytest.raises(AssertionError):
        QuantileRecipe(*fields, twice)


def test_a_rank_that_is_secret_is_never_used():
    public, secret = recipe_of(ZCDP(rho=0.1), n=10), recipe_of(ZCDP(rho=0.1))
    with pytest.raises(AssertionError):
        QuantileRecipe(
            secret.grids, secret.fractions, None, secret.law, secret.protection, public.searches
        )
    with pytest.raises(AssertionError):
        QuantileRecipe(
            public.grids, public.fractions, None, public.law, public.protection, secret.searches
        )


@pytest.mark.parametrize("promise", [ZCDP(rho=0.1), PureDP(epsilon=0.7)])
@pytest.mark.parametrize("n", [None, 1000])
@pytest.mark.parametrize("contributions", [1, 3])
def test_counts_beside_searches_use_the_promise_up_and_no_more(promise, n, contributions):
    options = {"n": n, "contributions": contributions, "recorded": True, "intervals": True}
    recipe = recipe_of(promise, fractions=(Fraction(1, 10), HALF), **options)
    allowed = recipe.protection.strength_squared(recipe.law.kind)
    columns = list(zip(*recipe.searches, strict=True))
    spent = [spent_beside(*pair) for pair in zip(columns, recipe.counts, strict=True)]
    total = sum(spent) if recipe.law.name == "normal" else max(spent) * len(spent) ** 2
    assert allowed * (1 - 1e-9) < total <= allowed
    fields = (recipe.grids, recipe.fractions, n, recipe.law, recipe.protection, recipe.searches)
    QuantileRecipe(*fields, recipe.counts)
    finer = tuple(RecordedCount(c.law, c.multiplier * 101 // 100) for c in recipe.counts)
    with pytest.raises(AssertionError):
        QuantileRecipe(*fields, finer)
    other = LAWS["normal" if recipe.law.name == "laplace" else "laplace"]
    with pytest.raises(AssertionError, match="another law"):
        QuantileRecipe(*fields, tuple(RecordedCount(other, c.multiplier) for c in recipe.counts))
    if n is not None:
        with pytest.raises(AssertionError):
            QuantileRecipe(*fields, None)


def test_ranks_are_rounded_up_exactly():
    recipe = recipe_of(ZCDP(rho=0.1), n=10, fractions=(Fraction(1, 10),))
    ranks = [recipe.rank(q) for q in map(Fraction, ("0", "0.001", "0.1", "0.5", "0.999", "1"))]
    assert ranks == [1, 1, 1, 5, 10, 10]
    secret = recipe_of(ZCDP(rho=0.1))
    assert [secret.rank(q) for q in (Fraction(0), HALF, Fraction(1))] == [1, None, None]


@pytest.mark.parametrize("promise", [ZCDP(rho=0.1), PureDP(epsilon=0.7)])
@pytest.mark.parametrize("q", ["0", "0.0001", "0.3", "1"])
def test_a_count_is_at_most_as_noisy_as_a_comparison(promise, q):
    """It is free where that is enough, and has the share of one comparison where it is not."""
    options = {"n": 1000, "fractions": (Fraction(q),), "grids": GRIDS[:1], "intervals": True}
    recipe = recipe_of(promise, recorded=True, **options)
    ((search,),), (count,) = recipe.searches, recipe.counts
    assert count.scale <= search.scale * (1 + 1e-9)
    free = recipe_of(promise, **options).searches[0][0].scale
    questions = search.questions
    more = (questions + 1) / questions
    factor = 1 if q == "0.3" else math.sqrt(more) if recipe.law.name == "normal" else more
    assert search.scale == pytest.approx(free * factor, rel=1e-9)


@pytest.mark.parametrize("table_cells", [1 << 22, 1 << 7, 4])
def test_many_passes_find_what_one_pass_finds(monkeypatch, table_cells):
    """With noise of 10⁻⁴ records the exact quantiles come out, whatever a pass can hold."""
    monkeypatch.setattr(quantile, "TABLE_CELLS", table_cells)
    rng = np.random.default_rng(0)
    data = np.column_stack([rng.integers(0, 1001, 777), rng.integers(0, 5, 777) / 4])
    fractions = tuple(Fraction(one) for one in ("0", "0.001", "0.25", "0.5", "0.9", "0.999", "1"))
    source, passes = open_source(data), []

    def count(windows):
        passes.append(len(windows))
        assert sum(window.blocks for window in windows) <= max(table_cells, 2 * len(windows))
        return count_windows(source, GRIDS, windows)

    for n, recorded in ((777, False), (777, True), (None, False), (None, True)):
        recipe = recipe_of(
            PureDP(epsilon=1e7), n=n, fractions=fractions, recorded=recorded, intervals=True
        )
        for q, row in zip(fractions, recipe.run(count).found, strict=True):
            for column, (grid, found) in enumerate(zip(GRIDS, row, strict=True)):
                exact = np.sort(data[:, column])[max(math.ceil(q * 777), 1) - 1]
                assert grid.value(found.cell) == exact
    assert (len(passes) == 4) == (table_cells == 1 << 22)


def test_no_records_at_all_are_no_failure_where_n_is_secret():
    recipe = recipe_of(ZCDP(rho=0.1), grids=GRIDS[:1])
    source = open_source(np.zeros((0, 1)))
    ((found,),) = recipe.run(lambda windows: count_windows(source, GRIDS[:1], windows)).found
    assert 0 <= found.cell <= 1000
    assert len(found.comparisons) == 10
