"""Counts of cells within groups: the same integers as of each group's records alone."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.data import grid_counts
from muhat.data.categories import categories_of
from muhat.data.grid_counts import Window, count_windows
from muhat.data.grids import UniformGrid
from muhat.data.groups import open_groups
from muhat.data.sources import open_source

GRIDS = [UniformGrid(0.0, 99.0, 1.0), UniformGrid(0.0, 1.0, 0.1)]
AREAS, SEXES = ["north", "south", "empty"], ["f", "m"]
RNG = np.random.default_rng(3)
ROWS = 70_000


def people():
    age = RNG.integers(-5, 110, ROWS).astype(float)
    age[RNG.random(ROWS) < 0.1] = np.nan
    area = RNG.choice(["north", "south", "elsewhere"], ROWS)
    return {"age": age, "part": RNG.random(ROWS), "area": area, "sex": RNG.choice(SEXES, ROWS)}


PEOPLE = people()
CATEGORIES = categories_of({"area": AREAS, "sex": SEXES}, missing="drop")
WINDOWS = [
    Window(0, 0, 0, 100, 0),
    Window(1, 0, 0, 11, 0),
    Window(0, 32, 3, 4, 1),
    Window(0, 64, 1, 16, 1),
    Window(0, 0, 0, 100, 3),
    Window(1, 4, 0, 4, 3),
    Window(0, 0, 2, 25, 4),
]


def grouped(data=PEOPLE, categories=CATEGORIES):
    return open_groups(data, ["age", "part"], ["area", "sex"], categories)


@pytest.mark.parametrize("missing", ["drop", "center"])
def test_every_window_has_the_counts_of_its_groups_records(missing):
    found = grouped().counts(GRIDS, WINDOWS, missing=missing)
    for window, counts in zip(WINDOWS, found, strict=True):
        area, sex = AREAS[window.group // 2], SEXES[window.group % 2]
        chosen = (PEOPLE["area"] == area) & (PEOPLE["sex"] == sex)
        records = np.column_stack([PEOPLE["age"][chosen], PEOPLE["part"][chosen]])
        alone = Window(window.column, window.first, window.block_bits, window.blocks)
        (exact,) = count_windows(open_source(records), GRIDS, [alone], missing=missing)
        assert counts.before == exact.before
        assert counts.counts.tolist() == exact.counts.tolist()
        assert counts.total == exact.total
        assert counts.rows == ROWS


def test_records_of_which_nothing_can_be_read_are_where_missing_values_go(tmp_path):
    path = tmp_path / "people.jsonl"
    path.write_text('{"age": 1, "part": 0, "area": "north", "sex": "f"}\nx\n')
    kept = categories_of({"area": AREAS, "sex": SEXES}, missing="other")
    for missing, total in (("drop", 0), ("center", 1)):
        for categories, group in ((kept, 11), (CATEGORIES, 5)):
            window = Window(0, 0, 0, 100, group)
            (counts,) = grouped(path, categories).counts(GRIDS, [window], missing=missing)
            assert counts.rows == 2
            assert counts.total == (total if categories is kept else 0)


def test_what_one_thread_counted_adds_to_what_another_did():
    from muhat.data.coding import Coder
    from muhat.data.group_cells import GroupCells
    from muhat.records.columns import Batch, Floats, Integers

    coders = [Coder(each) for each in CATEGORIES]
    columns = [
        Floats(PEOPLE["age"]),
        Floats(PEOPLE["part"]),
        coders[0].of_array(PEOPLE["area"]),
        coders[1].of_array(PEOPLE["sex"]),
    ]
    assert isinstance(columns[2], Integers)
    parts = []
    for start, stop in ((0, 100), (100, ROWS)):
        part = GroupCells(GRIDS, WINDOWS, coders, 6, True)
        cut = [column.part(start, stop) for column in columns]
        part.add(Batch(stop - start, cut))
        parts.append(part)
    first, second = parts
    sent = GroupCells(GRIDS, WINDOWS, coders, 6, True)
    sent.absorb(second.state())
    sent.absorb(first.state())
    first.merge(second)
    whole = grouped().counts(GRIDS, WINDOWS, missing="drop")
    for other in (first, sent):
        for one, exact in zip(other.counted(WINDOWS), whole, strict=True):
            assert (one.before, one.total, one.rows) == (exact.before, exact.total, exact.rows)
            assert one.counts.tolist() == exact.counts.tolist()


def test_counts_of_groups_are_never_shown():
    (counts, *_) = grouped().counts(GRIDS, WINDOWS)
    assert repr(counts) == "WindowCounts(blocks=100)"
    assert grid_counts.WindowCounts is type(counts)
