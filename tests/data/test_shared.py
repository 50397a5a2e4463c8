"""One table for several readers: passes that are asked for together are one, over the same rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from muhat.data.base import Source
from muhat.data.categories import categories_of
from muhat.data.grid_counts import Window, counting_windows
from muhat.data.grids import UniformGrid
from muhat.data.histogram import open_cells
from muhat.data.moments import Family, MomentColumn, open_moments
from muhat.data.shared import (
    OpenTable,
    Pass,
    Reading,
    TableColumns,
    View,
    _Several,
    answered,
    carried_out,
    carried_out_together,
)
from muhat.data.sources import open_source, open_table
from muhat.data.units import People
from muhat.errors import InvalidInput
from muhat.records.columns import Batch

CATEGORIES = categories_of({"region": ["a", "b"], "year": [1, 2, 3]}, missing="drop")
REGION, YEAR = CATEGORIES
READS = {"pay": None, "region": REGION, "year": YEAR}


def rows(people: int = 40, each: int = 6) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    n = people * each
    return {
        "person": np.repeat(np.arange(people), each),
        "pay": rng.integers(0, 100, n).astype(float),
        "region": rng.choice(["a", "b", "c"], n),
        "year": rng.integers(1, 4, n),
    }


@dataclass
class Counting:
    """How often the sources within are folded."""

    times: int = 0


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> Counting:
    from muhat.data import base

    found = Counting()
    fold = base.fold_partitions

    def counted(source: Any, accumulator: Callable[[], Any]) -> Any:
        found.times += 1
        return fold(source, accumulator)

    monkeypatch.setattr(base, "fold_partitions", counted)
    return found


GRID, WINDOW = UniformGrid(0.0, 100.0, 1.0), Window(0, 0, 0, 101)
COUNTS = Family((), ())


def readings(table: OpenTable, people: People | None = None) -> list[Reading[Any]]:
    pay = MomentColumn("pay", 0, 100)
    moments = open_moments(table, [pay], [REGION, YEAR], people=people)
    cells = open_cells(table, ["year"], [YEAR], people=people)
    column = open_source(table, ["pay"], 1, people=people)
    return [
        moments.reading({COUNTS: ((0,), (1,), ()), Family((), ("pay",)): ((),)}),
        cells.reading([(0,)]),
        counting_windows(column, [GRID], [WINDOW]),
    ]


def test_readings_of_one_table_share_a_pass_and_find_what_each_finds_alone(folds: Counting) -> None:
    data = rows()
    together = carried_out_together(readings(open_table(data, TableColumns(READS))))
    assert folds.times == 1
    alone = [carried_out(each) for each in readings(open_table(data, TableColumns(READS)))]
    assert folds.times == 4
    for tables in (together[0], alone[0]):
        assert tables[COUNTS, False][()].tolist() == 240
        assert tables[COUNTS, False][(1,)].tolist() == np.bincount(data["year"])[1:].tolist()
    sums = [each[0][Family((), ("pay",)), False][()] for each in (together, alone)]
    assert sums[0].tolist() == sums[1].tolist()
    assert together[1][0,].tolist() == alone[1][0,].tolist()
    assert together[2][0].counts.tolist() == alone[2][0].counts.tolist()


@pytest.mark.parametrize("one_row_per", [(), ("year",)])
def test_people_have_the_same_rows_in_every_table(one_row_per: Any, folds: Counting) -> None:
    people = People("person", 2, one_row_per)
    table = open_table(rows(), TableColumns(READS, people))
    tables, cells, windows = carried_out_together(readings(table, People("person", 2)))
    # Rows are brought together in one pass, and added up in another over what is kept of them.
    assert folds.times == 2
    assert tables[COUNTS, False][()].tolist() == 80
    assert cells[0,].tolist() == tables[COUNTS, False][(1,)].tolist()
    assert windows[0].total == 80
    again = carried_out_together(readings(table, People("person", 2)))
    assert folds.times == 3
    assert again[2][0].counts.tolist() == windows[0].counts.tolist()
    other = open_table(rows(), TableColumns(READS, people))
    fresh = carried_out_together(readings(other, People("person", 2)))
    assert fresh[2][0].counts.tolist() != windows[0].counts.tolist()


def test_records_of_people_are_made_of_the_rows_that_enter(folds: Counting) -> None:
    data = rows()
    table = open_table(data, TableColumns(READS, People("person", 2)))
    entering = open_source(table, ["pay"], 1, people=People("person", 2))
    records = open_source(table, ["pay"], 1, people=People("person", 2, per="sum"))
    wide = UniformGrid(0.0, 200.0, 1.0)
    read = carried_out_together(
        [
            counting_windows(entering, [GRID], [WINDOW]),
            counting_windows(records, [wide], [Window(0, 0, 0, 201)]),
        ]
    )
    total = [int(each[0].counts @ np.arange(len(each[0].counts))) for each in read]
    assert total[0] == total[1]
    assert read[1][0].total == 40
    # The data themselves are read once.
    assert folds.times == 3


def test_what_several_hold_is_put_together_again() -> None:
    class Adding:
        def __init__(self, length: int) -> None:
            self.rows, self.held = 0, np.zeros(length, np.int64)

        def add(self, batch: Batch) -> None:
            self.rows += batch.rows
            self.held += batch.rows

        def state(self) -> Any:
            return np.array([self.rows, *self.held])

        def absorb(self, state: Any) -> None:
            self.rows += int(state[0])
            self.held += state[1:]

    ours, theirs = (_Several([Adding(2), Adding(5)]) for _ in range(2))
    ours.add(Batch(3))
    theirs.add(Batch(4, absent=1))
    ours.absorb(theirs.state())
    assert ours.rows == 8
    assert [part.held.tolist() for part in ours.parts] == [[7] * 2, [7] * 5]  # type: ignore[attr-defined]


def test_a_reading_may_ask_again_and_again() -> None:
    source = open_source(np.arange(10.0))

    def asking() -> Any:
        first = yield 1
        second = yield first + 1
        return first, second

    def answer(question: int) -> Reading[int]:
        (found,) = yield from counting_windows(source, [GRID], [WINDOW])
        return question + found.total

    def nothing() -> Reading[str]:
        return "nothing is read"
        yield Pass(source, list)

    both: list[Any] = [answered(asking(), answer), nothing()]
    assert carried_out_together(both) == [(11, 22), "nothing is read"]


def test_a_table_is_opened_for_what_is_read_of_it() -> None:
    table = open_table(rows(), TableColumns(READS))
    for name in ("person", "region"):
        with pytest.raises(InvalidInput, match="names its columns"):
            open_source(table, [name], 1)
    with pytest.raises(AssertionError, match="unit"):
        open_source(table, ["pay"], 1, people=People("person", 2))
    people = open_table(rows(), TableColumns(READS, People("person", 2)))
    with pytest.raises(AssertionError, match="two ways"):
        open_source(people, ["pay"], 1, people=People("person", 3))
    view = open_source(table, ["year", "pay"], 2, coders=[_coder(YEAR), None])
    assert isinstance(view, View)
    assert view.columns == ("year", "pay")
    assert isinstance(open_source(open_table(rows(), TableColumns({}))), Source)


def _coder(categories: Any) -> Any:
    from muhat.data.coding import Coder

    return Coder(categories)
