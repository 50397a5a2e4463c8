"""Stairs on the cells of a histogram: the recipe, its plan and release, what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.mechanisms.queries.linear_recipe import LinearRecipe
from muhat.noise.balanced import Balanced
from muhat.noise.protection import Protection
from muhat.noise.stairs import Stairs
from muhat.privacy import Neighbors

W = mh.workloads
PURE = mh.PureDP(epsilon=2.0)


def recipe_of(cells: int, promise: mh.Privacy = PURE, contributions: int = 1) -> LinearRecipe:
    protection = Protection(promise, Neighbors.ADD_REMOVE, contributions)
    found = LinearRecipe.on_cells(mh.factorize(W.identity(cells)), protection)
    assert found is not None
    return found


@pytest.mark.parametrize("contributions", [1, 2, 5])
def test_a_person_moves_as_many_cells_as_records(contributions: int) -> None:
    recipe = recipe_of(4, contributions=contributions)
    one = np.array([3, 0, 7, 9])
    other = one + contributions * np.array([0, 1, 0, 0])
    spread = one + np.bincount(np.arange(contributions) % 4, minlength=4)
    declared = recipe.query.sensitivity(1.0, Neighbors.ADD_REMOVE, contributions)
    for neighbour in (other, spread):
        moved = np.abs(recipe.query.encode(neighbour) - recipe.query.encode(one)).sum()
        assert moved == declared == contributions
    with pytest.raises(AssertionError, match="more sensitive"):
        replace(recipe, protection=replace(recipe.protection, contributions=contributions + 1))
    with pytest.raises(AssertionError, match="more sensitive"):
        replace(recipe, protection=replace(recipe.protection, neighbors=Neighbors.SUBSTITUTE))


def test_a_step_of_two_would_be_passed_by_two_cells_at_once() -> None:
    """Planted: for one number it is enough."""
    law = replace(recipe_of(4).law, step=2, inner=1)
    assert law.keeps(PURE, Fraction(2))
    with pytest.raises(AssertionError, match="fewer numbers"):
        replace(recipe_of(4, contributions=2), law=law)


@pytest.mark.parametrize(
    "workload",
    [W.identity(6), W.marginals(shape=(2, 3), order=2)],
    ids=["cells", "one table"],
)
def test_a_histogram_has_geometric_noise(workload: mh.workloads.Workload) -> None:
    plan = mh.plan_queries(workload, privacy=PURE)
    assert isinstance(plan.recipe.law, Stairs)
    error = float(np.linalg.norm(workload.row_norms())) / (math.sqrt(2) * math.sinh(1))
    assert plan.expected_error == pytest.approx(error, rel=1e-9)
    assert plan.expected_error < 0.86 * dict(plan.alternatives).popitem()[1]
    counts = np.arange(6).reshape(workload.cells)
    release = plan.release(counts)
    assert (release.value == np.rint(release.value)).all()
    again = mh.Release.from_json(release.to_json())
    for joint in (False, True):
        ends = release.interval(0.95, simultaneous=joint)
        read = again.interval(0.95, simultaneous=joint)
        assert [x.tolist() for x in ends] == [x.tolist() for x in read]
    assert again.noise.law == plan.recipe.law
    assert plan.plot().axes


def test_cells_are_cut_where_delta_allows_it() -> None:
    plan = mh.plan_queries(W.identity(5), privacy=mh.ApproxDP(epsilon=0.5, delta=1e-2))
    assert plan.recipe.law.end is not None
    two = mh.plan_queries(
        W.identity(5), privacy=mh.ApproxDP(epsilon=0.5, delta=1e-2), contributions=2
    )
    assert two.recipe.law.end is None


def test_other_answers_keep_their_noise() -> None:
    """Sums of cells that count alike have whole numbers, too, whatever the order of the error."""
    unlike = W.explicit([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]])
    for workload, neighbors, p, law in (
        (W.prefix(6), "add-remove", 2, "stairs"),
        (W.prefix(6), "add-remove", 4, "stairs"),
        (unlike, "add-remove", 2, "laplace"),
        (W.prefix(6), "substitute", 4, "balanced"),
        (unlike, "substitute", 4, "laplace"),
        (unlike, "substitute", 2, "laplace"),
    ):
        plan = mh.plan_queries(workload, privacy=PURE, neighbors=neighbors, p=p)
        assert plan.recipe.law.name == law
    # Stairs of several numbers a step are for one answer.
    several = mh.plan_queries(W.explicit([[1.0], [1.0]]), privacy=PURE, contributions=2)
    assert several.recipe.law.name == "laplace"


def test_the_largest_error_of_cells_is_that_of_an_enumeration() -> None:
    plan = mh.plan_queries(W.identity(2), privacy=PURE, p=math.inf)
    b = math.exp(-2.0)
    k = np.arange(-40, 41)
    chances = (1 - b) / (1 + b) * b ** np.abs(k)
    largest = np.maximum(np.abs(k)[:, None], np.abs(k)[None])
    exact = math.sqrt(float(chances @ largest**2 @ chances))
    assert plan.expected_error == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("p", [3, 4, math.inf])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_every_order_compares_the_noise_that_the_others_have(p, epsilon):
    """An ℓ_p error is no larger than the ℓ₂ error of the same noise."""
    promise = mh.PureDP(epsilon=epsilon)
    asked = [
        lambda **order: mh.plan_mean(domain=mh.Points(np.eye(6)), n=100, privacy=promise, **order),
        lambda **order: mh.plan_mean(domain=mh.Simplex(6), n=100, privacy=promise, **order),
        *(
            lambda workload=workload, relation=relation, **order: mh.plan_queries(
                workload, privacy=promise, neighbors=relation, **order
            )
            for workload in (W.identity(2), W.identity(9), W.prefix(8))
            for relation in ("add-remove", "substitute")
        ),
    ]
    for plan in asked:
        squares, found = plan(), plan(p=p)
        assert found.mechanism == squares.mechanism
        assert found.expected_error < squares.expected_error
        assert {name for name, _ in found.alternatives} == {
            name for name, _ in squares.alternatives
        }


@pytest.mark.parametrize("p", [3.0, 6.0, math.inf])
@pytest.mark.parametrize("epsilon", [2, 20])
def test_errors_of_balanced_noise_are_those_of_an_enumeration(p, epsilon):
    """Fixed draws: about 4 standard errors too large, and no less than the error."""
    promise = mh.PureDP(epsilon=epsilon)
    plan = mh.plan_queries(W.identity(3), privacy=promise, neighbors="substitute", p=p)
    b = float(plan.recipe.law.ratio)
    places = np.arange(-40, 41)
    first, second = np.meshgrid(places, places)
    noise = np.stack([first, second, -first - second])
    weights = b ** np.abs(noise).sum(axis=0)
    squares = np.linalg.norm(noise, p, axis=0) ** 2
    exact = math.sqrt(float((weights * squares).sum() / weights.sum()))
    # At ε = 20 all that moves is e_i − e_j, but for 2e-9: no draws differ.
    assert exact * (1 - 1e-8) <= plan.expected_error < 1.02 * exact
    assert plan.expected_error_method == "monte carlo"


@pytest.mark.parametrize("epsilon", [12, 20, 30])
@pytest.mark.parametrize("p", [2.5, 8.0, math.inf])
def test_errors_of_running_totals_are_seen_however_rarely_counts_move(p, epsilon):
    """E‖Wz‖_p² ≤ Σc²·V + Σ_(i≠j) c_i·c_j·(E|z|)², c the ℓ_p norms of the columns of W.

    Where hardly one count moves it is Σc²·V but for a part of e^−ε.
    """
    plan = mh.plan_queries(W.prefix(6), privacy=mh.PureDP(epsilon=epsilon), p=p)
    assert plan.recipe.law.name == "stairs"
    b = math.exp(-epsilon)
    columns = np.linalg.norm(np.tril(np.ones((6, 6))), p, axis=0)
    least = np.sum(columns**2) * 2 * b / (1 - b) ** 2
    most = least + (columns.sum() ** 2 - np.sum(columns**2)) * (2 * b / (1 - b**2)) ** 2
    assert least * (1 - 10 * b) <= plan.expected_error**2 <= most * 1.03


def replaced_recipe(cells: int, contributions: int = 1) -> LinearRecipe:
    plan = mh.plan_queries(
        W.identity(cells), privacy=PURE, neighbors="substitute", contributions=contributions
    )
    assert isinstance(plan.recipe.law, Balanced)
    return plan.recipe


@pytest.mark.parametrize("contributions", [1, 3])
def test_balanced_noise_is_for_records_that_are_replaced(contributions: int) -> None:
    recipe = replaced_recipe(4, contributions)
    law = recipe.law
    moved = recipe.query.sensitivity(1.0, Neighbors.SUBSTITUTE, contributions)
    assert moved == 2 * contributions
    with pytest.raises(AssertionError, match="more sensitive"):
        replace(recipe, protection=replace(recipe.protection, contributions=contributions + 1))
    with pytest.raises(AssertionError, match="no change of a total"):
        replace(recipe, protection=replace(recipe.protection, neighbors=Neighbors.ADD_REMOVE))
    # Planted: records that may be in no cell, and integers that are no counts of all cells.
    free = mh.factorize(W.identity(4))
    with pytest.raises(AssertionError, match="no change of a total"):
        replace(recipe, factorization=free, absent=True)
    with pytest.raises(AssertionError, match="no change of a total"):
        replace(recipe, query=replace(recipe.query, multiplier=2))
    with pytest.raises(AssertionError, match="fewer numbers"):
        replace(recipe, law=Balanced(3, law.ratio))


@pytest.mark.parametrize(
    "workload",
    [W.identity(2), W.identity(5), W.marginals(shape=(2, 3), order=2), W.prefix(5)],
    ids=["two", "five", "one table", "running"],
)
def test_replaced_records_have_balanced_noise(workload: mh.workloads.Workload) -> None:
    """False alarms below 1e-6: 6 standard errors of what was seen, and of 95 %."""
    plan = mh.plan_queries(workload, privacy=PURE, neighbors="substitute")
    assert plan.mechanism == "balanced noise, every cell"
    assert plan.expected_error < 0.9 * min(error for _, error in plan.alternatives)
    counts = 5 + np.arange(workload.shape[1])
    exact = workload.apply(counts.astype(np.float64))
    squares, held = [], []
    for _ in range(300):
        release = plan.release(counts.reshape(workload.cells))
        assert (release.value == np.rint(release.value)).all()
        squares.append(float(np.sum((release.value - exact) ** 2)))
        low, high = release.interval()
        held.append(np.mean((low <= exact) & (exact <= high)))
    cells = isinstance(workload, type(W.identity(2)))
    assert release.value.sum() == counts.sum() if cells else True
    spread = np.std(squares) / math.sqrt(len(squares))
    assert abs(np.mean(squares) - plan.expected_error**2) < 6 * spread
    assert np.mean(held) > 0.95 - 6 * math.sqrt(0.05 * 0.95 / len(held))
    again = mh.Release.from_json(release.to_json())
    for joint in (False, True):
        ends = release.interval(0.95, simultaneous=joint)
        read = again.interval(0.95, simultaneous=joint)
        assert [x.tolist() for x in ends] == [x.tolist() for x in read]
    assert again.noise.law == plan.recipe.law
    assert plan.plot().axes


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 8.0])
def test_two_categories_with_a_public_number_of_records_have_the_least_noise(epsilon) -> None:
    plan = mh.plan_queries(
        W.identity(2), privacy=mh.PureDP(epsilon=epsilon), neighbors="substitute"
    )
    assert plan.certificate.ratio < 1.001


def test_tables_too_large_for_balanced_noise_have_stairs_on_every_count() -> None:
    for workload, p in ((W.identity(1025), 2), (W.identity(1025), math.inf)):
        plan = mh.plan_queries(workload, privacy=mh.PureDP(epsilon=4), neighbors="substitute", p=p)
        assert plan.mechanism == "stairs noise, every cell"
        assert plan.recipe.query.sensitivity(1.0, Neighbors.SUBSTITUTE, 1) == 2
        release = plan.release(np.full(workload.cells, 3))
        assert (release.value == np.rint(release.value)).all()


def test_counts_of_recorded_values_have_stairs_where_records_are_replaced() -> None:
    """A record may have no value: then the counts do not add up to the number of records."""
    table = {"x": ["a", "b", None, "a", "z"] * 30}
    asked = {"privacy": mh.PureDP(epsilon=4), "neighbors": "substitute"}
    plan = mh.plan_queries(W.identity(2), categories={"x": ["a", "b"]}, **asked)
    assert plan.mechanism == "stairs noise, closed form"
    assert plan.recipe.absent
    release = plan.release(table)
    assert (release.value == np.rint(release.value)).all()
    assert abs(release.value - [60, 30]).max() < 20  # a chance of e^-40
