"""Accumulators whose work is done elsewhere: only whole numbers come home, and nothing is lost."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muhat.data import exact_sums, memory, open_source
from muhat.data.base import Accumulated, PartitionedSource, Source
from muhat.data.bin_counts import BinGrid, count_bins
from muhat.data.categories import categories_of
from muhat.data.cell_kernel import CellTables
from muhat.data.centered_sums import centered_sums
from muhat.data.coding import Coder
from muhat.data.distances import Frame, bounded_sums, distance_counts, excess_sums, line_counts
from muhat.data.engine import gathered
from muhat.data.grid_counts import Window, count_windows
from muhat.data.grids import UniformGrid
from muhat.data.groups import GroupSource
from muhat.data.histogram import CellSource
from muhat.data.rotation import Preparation, PreparedSource, Rotation, prepared_counts
from muhat.data.shared import View
from muhat.data.states import joined, packed, unpacked
from muhat.domains.lattice import BallLattice, BoxLattice, PointsLattice
from muhat.errors import DataChanged, InvalidInput, SourceFailed

ROWS = 400


class Elsewhere(Source):
    """An engine as small as can be: every partition has an accumulator, which sends its state."""

    def __init__(self, source: Source, counted: int | None = None) -> None:
        assert isinstance(source, PartitionedSource)
        self.columns, self.types = source.columns, source.types
        self._source = source
        self._counted = counted
        self.partitions = 0

    @property
    def known_rows(self) -> int | None:
        return self._counted

    def rows(self) -> int:
        return self._source.rows()

    def check_unchanged(self) -> None:
        self._source.check_unchanged()

    def fold(self, accumulator: Callable[[], Accumulated]) -> list[Accumulated] | None:
        total = accumulator()
        for partition in self._source.partitions():
            # A copy shares nothing with the accumulators made here, as on another machine.
            there = copy.deepcopy(accumulator())
            for batch in partition.batches():
                there.add(batch)
            total.absorb(unpacked(packed(there.state())))
            self.partitions += 1
        return [total]


@pytest.fixture(autouse=True)
def _small_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "PARTITION_VALUES", 150)


def numbers() -> Any:
    made = np.random.default_rng(8).standard_normal((ROWS, 3)) * 3
    made[::17, 1] = np.nan
    made[5::31] = np.inf
    return made


FRAME = Frame(np.array([0.1, 0.2, 0.3]), np.ones(3), 50.0)
LINE = Frame(np.array([0.2]), np.ones(1), 50.0)
BALL = BallLattice.around([0.0] * 3, 2.0)
GRID = UniformGrid(-5.0, 5.0, 0.01)
ROTATED = Preparation(3, 50.0, 9.0, None, Rotation(np.array([1.0, -1.0, 1.0])))

PASSES: dict[str, Callable[[Source], Any]] = {
    "box": lambda source: exact_sums(source, BoxLattice.around([-1] * 3, [2] * 3)),
    "ball, drop": lambda source: exact_sums(source, BALL, missing="drop"),
    "nearest point": lambda source: exact_sums(source, PointsLattice.of(np.eye(3), nearest=True)),
    "distances": lambda source: distance_counts(source, FRAME, np.array([0.5, 1, 2, 4, 99])),
    "line": lambda source: line_counts(View(source, [1]), LINE, np.array([-1.0, 0.0, 0.5, 9.0])),
    "excess": lambda source: excess_sums(source, FRAME, 1.0, BALL),
    "bounded": lambda source: bounded_sums(source, BALL, 50.0),
    "bounded, box": lambda source: bounded_sums(source, BoxLattice.around([-1] * 3, [1] * 3), 9.0),
    "centred": lambda source: centered_sums(
        source, [0.5, None, -0.5], [BoxLattice.around([-1], [1])] * 3
    ),
    "bins": lambda source: [
        (each.numbers.tolist(), each.counts.tolist())
        for each in count_bins(source, [BinGrid.of_width(0.3)] * 3, [5, 6, 7])
    ],
    "windows": lambda source: [
        (each.before, each.counts.tolist(), each.total)
        for each in count_windows(
            source, [GRID] * 3, [Window(0, 100, 2, 90), Window(2, 0, 5, 40), Window(0, 7, 0, 9)]
        )
    ],
    "rotated": lambda source: [
        (each.before, each.counts.tolist(), each.total)
        for each in prepared_counts(
            source, ROTATED, GRID, [Window(column, 0, 4, 70) for column in range(4)]
        )
    ],
    "prepared": lambda source: exact_sums(
        PreparedSource(source, ROTATED), BoxLattice.around([-9] * 4, [9] * 4)
    ),
}


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_elsewhere_finds_what_a_pass_here_finds(name: str) -> None:
    source = open_source(numbers())
    there = Elsewhere(source)
    assert PASSES[name](there) == PASSES[name](source)
    assert there.partitions > 5


def test_groups_and_cells_are_counted_elsewhere_too() -> None:
    random = np.random.default_rng(9)
    data = {
        "x": random.standard_normal(ROWS),
        "region": random.choice(["n", "s", "?"], ROWS).tolist(),
        "code": random.integers(0, 5, ROWS),
    }
    coders = [Coder(each) for each in categories_of({"region": ["n", "s"], "code": 4})]
    both = open_source(data, ["region", "code"], 2, coders=coders)
    sets = [(0, 1), (1,), ()]
    here, there = (CellSource(each, coders).count(sets) for each in (both, Elsewhere(both)))
    assert all((there[axes] == here[axes]).all() for axes in sets)
    every = open_source(data, ["x", "region", "code"], 3, coders=[None, *coders])
    lattice = BoxLattice.around([-1], [1])
    sums = [GroupSource(each, coders).sums(lattice) for each in (every, Elsewhere(every))]
    assert sums[0] == sums[1]


def test_tables_that_are_sent_somewhere_are_empty_there() -> None:
    tables = CellTables((2, 3), [(0, 1), (1,)])
    tables.add([np.array([0, 1]), np.array([2, 2])])
    sent: CellTables = pickle.loads(pickle.dumps(tables))
    assert tables.counted().sum() > 0
    assert not sent.counted().any()
    sent.add_counted(tables.counted())
    assert (sent.tables()[0, 1] == tables.tables()[0, 1]).all()


def test_what_needs_all_records_at_once_is_refused_elsewhere() -> None:
    with pytest.raises(InvalidInput, match="never fetched"):
        gathered(Elsewhere(open_source(numbers())))


def test_failures_and_changes_elsewhere_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Elsewhere(open_source(numbers()))
    monkeypatch.setattr(Elsewhere, "fold", lambda *_, **__: None)
    with pytest.raises(SourceFailed):
        PASSES["box"](there)
    monkeypatch.undo()
    with pytest.raises(DataChanged):
        PASSES["box"](Elsewhere(open_source(numbers()), ROWS - 1))


WIDE = st.integers(-(1 << 127), (1 << 127) - 1)


@given(st.lists(WIDE), st.lists(st.integers(-(1 << 63), (1 << 63) - 1)))
def test_states_come_back_as_they_were_sent(wide: list[int], narrow: list[int]) -> None:
    assert unpacked(packed(joined(wide))).tolist() == wide
    counts = np.array(narrow, np.int64)
    back = unpacked(packed(joined(counts)))
    assert back.dtype == np.int64
    assert back.tolist() == narrow
    assert joined(5, counts, wide).tolist() == [5, *narrow, *wide]


@pytest.mark.parametrize("name", PASSES)
def test_the_size_of_a_state_says_nothing_of_the_records(name: str) -> None:
    """All but the occupied bins, which are as many as they are."""
    sizes: set[tuple[int, ...]] = set()

    class Weighing(Elsewhere):
        def fold(self, accumulator: Any, **options: Any) -> Any:
            found: Any = super().fold(accumulator, **options)
            self.sizes = (*getattr(self, "sizes", ()), len(packed(found[0].state())))
            return found

    for data in (numbers(), np.zeros((ROWS, 3)), np.full((ROWS, 3), 1e300)):
        source = Weighing(open_source(data))
        PASSES[name](source)
        sizes.add(source.sizes)
    assert (len(sizes) == 1) == (name != "bins")


def test_values_that_nobody_listed_are_counted_where_they_are() -> None:
    from muhat.data.values import ValueCoder, ValueSource

    texts = np.random.default_rng(5).choice(["north", "süd", "x" * 63, ""], ROWS).tolist()
    for values in (texts, (np.arange(ROWS) % 7 / 2).tolist(), [None] * ROWS):
        coder = ValueCoder()
        here = open_source({"v": values}, ["v"], 1, coders=[coder])
        there = Elsewhere(here)
        assert ValueSource(there, coder).people() == ValueSource(here, coder).people()
        assert there.partitions > 1


def test_a_pass_that_is_shared_finds_the_same_elsewhere() -> None:
    from muhat.data.grid_counts import counting_windows
    from muhat.data.shared import carried_out_together
    from muhat.data.values import ValueCoder, ValueSource

    coder = ValueCoder()
    given = {"a": np.arange(ROWS) % 9, "v": ["x", "y"] * (ROWS // 2)}
    here = open_source(given, ["a", "v"], 2, coders=[None, coder])
    grid, window = UniformGrid(0.0, 10.0, 1.0), Window(0, 0, 0, 11)
    found = []
    for source in (here, Elsewhere(here)):
        read: list[Any] = [
            counting_windows(View(source, [0]), [grid], [window]),
            ValueSource(View(source, [1]), coder).reading(),
            counting_windows(View(source, [0]), [grid], [Window(0, 3, 1, 2)]),
        ]
        first, values, second = carried_out_together(read)
        found.append((first[0].counts.tolist(), values, second[0].before, second[0].total))
    assert found[0] == found[1]
    assert found[1][1] == {"x": ROWS // 2, "y": ROWS // 2}
