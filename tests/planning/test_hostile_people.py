"""Sets of statistics about people whose rows somebody made up to break them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import muhat as mh
from muhat.data.shared import TableColumns
from muhat.data.sources import open_table
from muhat.data.units import People
from muhat.errors import InvalidInput

YEARS = [2020, 2021, 2022, 2023]
COLUMNS = {"pay": (0, 9), "year": YEARS}
ROWS, MU = 2, 1.0
VALUES = 10


def schema(one_row_per: str | None = "year", **given: Any) -> mh.Schema:
    return mh.Schema({**COLUMNS, **given}, unit="person", max_rows=ROWS, one_row_per=one_row_per)


ASKED = [
    mh.Count(by="year"),
    mh.Mean("pay"),
    mh.Quantile("pay", by="year"),
    mh.Queries(mh.workloads.prefix(4), columns="year"),
]


def made_up(people: int, random: np.random.Generator) -> dict[str, Any]:
    """Rows of everybody: few or many, often repeated, some of no year that there is."""
    rows = np.where(random.random(people) < 0.1, 30, random.poisson(3, people))
    persons = np.repeat(np.arange(people), rows)
    order = random.permutation(len(persons))
    year = random.choice([*YEARS, 1999], len(persons), p=[0.5, 0.2, 0.1, 0.1, 0.1]).astype(float)
    year[random.random(len(persons)) < 0.05] = np.nan
    pay = random.integers(0, 3, len(persons)) * 4.5
    return {"person": persons[order], "owner": persons[order], "pay": pay, "year": year}


def entering(data: dict[str, Any], one_row_per: str | None, people: int) -> np.ndarray:
    """How many of everybody's rows enter, of shape (people, years and none, values)."""
    each = () if one_row_per is None else (one_row_per,)
    year = schema().categories("year")
    reads = TableColumns({"owner": None, "pay": None, "year": year}, People("person", ROWS, each))
    kept: list[np.ndarray] = []
    for part in open_table(data, reads).rows.partitions():  # type: ignore[attr-defined]
        for batch in part.batches():
            owner, pay, code = (column.values.astype(np.int64) for column in batch.columns)
            kept.append((owner * 5 + code) * VALUES + pay)
    place = np.concatenate(kept)
    return np.bincount(place, minlength=people * 5 * VALUES).reshape(people, 5, VALUES)


def spent_on_counts(moved: np.ndarray, plan: mh.Plan) -> np.ndarray:
    """μ² of what people move in the count by year."""
    (block,) = plan.parts[0].mechanism.blocks
    (scale,) = block.scales.values()
    return (moved.sum(2) ** 2).sum(1) / scale**2


def spent_on_queries(moved: np.ndarray, plan: mh.Plan) -> np.ndarray:
    """The same in running sums over years, through the covariance of their noise."""
    answers = np.cumsum(moved[:, :4].sum(2), axis=1)
    precision = np.linalg.inv(plan.covariance)
    return np.einsum("ij,jk,ik->i", answers, precision, answers)


def spent_on_quantiles(moved: np.ndarray, plan: mh.Plan) -> np.ndarray:
    """The same in the medians of years, if every comparison were the one that moves most."""
    recipe = plan.parts[0].mechanism.recipe
    ((search,),), (count,) = recipe.searches, recipe.counts
    below = np.cumsum(moved[:, :4], axis=2)
    recorded = below[:, :, -1]
    # F(c) − R/2 at every cell of the grid, and before the first of them.
    most = np.abs(np.concatenate([below, 0 * below[:, :, :1]], 2) - recorded[:, :, None] / 2)
    rounds = search.questions * (np.ceil(search.multiplier * most.max(2)) / search.law.unit) ** 2
    counts = (count.multiplier * recorded / search.law.unit) ** 2
    return (rounds + counts).sum(1)


SPENT: list[tuple[Any, Callable[..., np.ndarray]]] = [
    (ASKED[0], spent_on_counts),
    (ASKED[2], spent_on_quantiles),
    (ASKED[3], spent_on_queries),
]


def observe(people: int, seed: int, one_row_per: str | None) -> list[float]:
    """The most of μ² that anybody moves, replaced and gone, as declared: never more than all."""
    random = np.random.default_rng(seed)
    before, after = (entering(made_up(people, random), one_row_per, people) for _ in range(2))
    assert before.sum((1, 2)).max() == ROWS
    if one_row_per is not None:
        assert before.sum(2).max() == 1
    largest = []
    for n, moved in (({}, after - before), ({"n": None}, before)):
        for asked, spent in SPENT:
            plan = mh.plan([asked], schema=schema(one_row_per), privacy=mh.GDP(MU), **n)
            found = float(spent(moved, plan).max())
            assert found <= MU**2 * (1 + 1e-9)
            largest.append(found)
    return largest


@pytest.mark.parametrize("one_row_per", ["year", None])
def test_nobody_moves_more_than_is_declared(one_row_per: str | None) -> None:
    largest = observe(3_000, 5, one_row_per)
    # Noise for fewer rows would be seen: counts and quantiles have next to nothing to spare.
    assert min(largest[0], largest[1], largest[3], largest[4]) > 0.95 * MU**2


@pytest.mark.slow
@pytest.mark.parametrize("one_row_per", ["year", None])
def test_nobody_of_many_moves_more_than_is_declared(one_row_per: str | None) -> None:
    """100,000 pairs of neighbouring tables, replaced and removed."""
    observe(100_000, 6, one_row_per)


def released(data: dict[str, Any], given: mh.Schema, asked: list[Any] | None = None) -> mh.Release:
    plan = mh.plan(asked or ASKED, schema=given, privacy=mh.ZCDP(1e9), n=None)
    return plan.release(data)


def test_rows_without_an_id_are_people_of_their_own() -> None:
    for ids in ([None] * 40, [""] * 40, [float("nan")] * 40):
        data = {"person": ids, "pay": [1.0] * 40, "year": [2020] * 40}
        counts = released(data, schema())["count by year"].value
        assert np.rint(counts).tolist() == [40, 0, 0, 0]


def test_ids_of_many_kinds_in_one_column_are_told_apart_or_left_out() -> None:
    """Numbers are equal as numbers, text is no number, and what could be anybody's is left out."""
    same = [1, 1.0, np.int64(1), np.float32(1), Decimal(1)]
    ids = [*same * 5, *["1"] * 9, *["1 "] * 9, *[None] * 3, *[object()] * 7]
    data = {"person": ids, "pay": [1.0] * len(ids), "year": [2020] * len(ids)}
    found = np.rint(released(data, schema(None))["count by year"].value)
    assert found.tolist() == [3 * ROWS + 3, 0, 0, 0]


def test_a_person_who_is_in_all_groups_is_in_few() -> None:
    data = {"person": [7] * 400, "pay": [1.0] * 400, "year": np.tile(YEARS, 100)}
    release = released(data, schema())
    counts = np.rint(release["count by year"].value)
    assert counts.sum() == ROWS
    assert counts.max() == 1
    assert np.rint(release["queries year"].value).tolist() == np.cumsum(counts).tolist()


def test_rows_of_no_year_are_in_one_cell() -> None:
    """A person with rows of no known year, and of one: one of each enters at most."""
    year = [None] * 50 + [1999] * 50 + [2021]
    data = {"person": ["a"] * 101, "pay": [5.0] * 101, "year": year}
    release = released(data, schema(), [mh.Count(), mh.Count(by="year")])
    assert np.rint(release["count"].value).tolist() == [2]
    assert np.rint(release["count by year"].value).tolist() == [0, 1, 0, 0]


GOOD = {"person": [1, 2], "pay": [1.0, 2.0], "year": [2020, 2021]}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no unit": ({k: v for k, v in GOOD.items() if k != "person"}, "person"),
    "no column of one_row_per": ({k: v for k, v in GOOD.items() if k != "year"}, "year"),
    "ids that are lists": ({**GOOD, "person": np.zeros((2, 2))}, "person|column|shape"),
    "columns of two lengths": ({**GOOD, "pay": [1.0]}, "length|rows"),
    "text in the place of numbers": ({**GOOD, "pay": np.array(["a", "b"])}, "pay"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("asked", [ASKED, ASKED[2:3], ASKED[3:]], ids=["all", "quantile", "query"])
def test_nothing_is_spent_on_data_that_do_not_fit(tmp_path: Path, case: str, asked: Any) -> None:
    given, words = BAD[case]
    if case == "text in the place of numbers" and asked == ASKED[3:]:
        return  # The queries do not read that column.
    if case == "columns of two lengths" and asked == ASKED[3:]:
        return
    account = mh.Ledger.create(
        tmp_path / "a.db", budget=mh.ZCDP(1.0), neighbors="add-remove", unit="person"
    )
    plan = mh.plan(asked, schema=schema(), privacy=mh.ZCDP(0.5), n=None)
    with pytest.raises(InvalidInput, match=words):
        plan.release(given, ledger=account)
    assert not account.entries()


def test_arguments_that_cannot_be_are_refused() -> None:
    for wrong, words in (
        (lambda: schema("yeer"), "did you mean|Did you mean"),
        (lambda: schema("pay"), "no groups"),
        (lambda: schema("person"), "whose row"),
        (lambda: mh.Schema(COLUMNS, one_row_per="year"), "whose row it is"),
        (lambda: mh.Schema(COLUMNS, unit="person", max_rows=0), "at least 1"),
        (lambda: mh.Schema(COLUMNS, unit="person", max_rows=True), "max_rows"),
    ):
        with pytest.raises(InvalidInput, match=words):
            wrong()
    plan = mh.plan(ASKED, schema=schema(), privacy=mh.ZCDP(0.5), n=None)
    for columns in (["person"], ["year"], ["pay", "year"], "pay"):
        with pytest.raises(InvalidInput, match="columns"):
            plan.release(GOOD, columns=columns)


@pytest.mark.slow
def test_a_million_rows_of_one_person_are_two() -> None:
    rows = 1_000_000
    data = {
        "person": np.concatenate([np.zeros(rows, int), np.arange(1, 301)]),
        "pay": np.concatenate([np.full(rows, 9.0), np.zeros(300)]),
        "year": np.concatenate([np.resize(YEARS, rows), np.full(300, 2020)]),
    }
    release = released(data, schema())
    counts = np.rint(release["count by year"].value)
    assert counts.sum() == 302
    assert 300 <= counts[0] <= 301
    assert np.rint(release["queries year"].value).tolist() == np.cumsum(counts).tolist()
