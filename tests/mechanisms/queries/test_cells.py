"""Stairs on the cells of a histogram: the recipe, its plan and release, what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import muhat as mh
from muhat.mechanisms.queries.linear_recipe import LinearRecipe
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


def test_other_answers_and_replaced_records_keep_their_noise() -> None:
    """Sums of cells that count alike have stairs, too, but for p > 2."""
    unlike = W.explicit([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]])
    for workload, neighbors, p, law in (
        (W.prefix(6), "add-remove", 2, "stairs"),
        (W.prefix(6), "add-remove", 4, "laplace"),
        (unlike, "add-remove", 2, "laplace"),
        (W.identity(6), "substitute", 2, "laplace"),
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
