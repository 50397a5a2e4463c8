"""One loop counts what numpy's steps count, or is not used."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muhat.data import cell_loops, distances
from muhat.data.distances import DistanceCounter, Frame, LineCounter
from muhat.records.columns import Batch, Column, Floats, Integers
from muhat.records.loader import Loader

NEVER = Loader(lambda: None)

VALUES = st.one_of(
    st.floats(allow_subnormal=True),
    st.floats(-100, 100),
    st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 5e-324, -5e-324, 1e308, -1e160, 0.25, 2.0]),
)
RADII = [
    np.geomspace(1e-9, 1e4, 256),
    np.geomspace(1e6 * 2.0**-42, 1e6, 4096),
    np.array([1.0, np.nextafter(1.0, 2.0), 1.0000001]),
    np.geomspace(1e-320, 1e300, 64),
    np.array([1.0]),
]
LINES = [
    np.concatenate([-np.geomspace(1, 1e6, 40)[::-1], [0.0], np.geomspace(1, 1e6, 40), [np.inf]]),
    np.array([-1.0, -np.nextafter(1.0, 0.0), 0.0, 5e-324, 1.0]),
    np.array([-1e308, -1e-308, -5e-324, 1e308]),
    np.array([-2.0, -1.0]),
    np.array([0.0, 0.5, 2.0]),
]
FRAMES = [
    Frame(np.array([center]), np.array([weight]), magnitude)
    for center in (0.0, 0.25, -3e5, 1e300, 2.0)
    for weight in (1.0, 0.3, 1e-200)
    for magnitude in (1e6, 1.5, 1e305)
]


class Loaded:
    """A loader whose loop is there from the first value on."""

    def __init__(self) -> None:
        self.loop = cell_loops.compiled()
        self.used = 0

    def after(self, values: int) -> cell_loops.Count:
        self.used += 1
        return self.loop


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return Loaded()


def counted(
    loader: Loaded | Loader[cell_loops.Count], made: type, frame: Frame, edges: np.ndarray, batches
) -> list[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distances, "LOADER", loader)
        counter = made(frame, edges)
        for batch in batches:
            counter.add(batch)
    assert counter.counts.sum() == counter.rows == sum(each.rows + each.absent for each in batches)
    found: list[int] = counter.counts.tolist()
    return found


@settings(max_examples=300, deadline=None)
@given(
    data=st.data(),
    frame=st.sampled_from(FRAMES),
    rows=st.integers(0, 300),
    kind=st.sampled_from([DistanceCounter, LineCounter]),
    shape=st.sampled_from(
        ["column", "nulls", "matrix", "integers", "strided", "swapped", "unaligned", "read-only"]
    ),
)
def test_a_loop_counts_what_numpy_counts(loaded, data, frame, rows, kind, shape) -> None:
    edges = data.draw(st.sampled_from(RADII if kind is DistanceCounter else LINES))
    near = st.sampled_from(edges.tolist()).map(lambda edge: frame.center[0] + edge)
    few = data.draw(st.lists(VALUES | near, min_size=1, max_size=20))
    values = np.resize(np.array(few), rows)
    column: Column = Floats(values)
    if shape == "nulls":
        column = Floats(values, np.arange(rows) % 3 > 0)
    elif shape == "integers":
        column = Integers(np.arange(rows) - 7 + (2**60 if rows > 99 else 0))
    elif shape == "strided":
        column = Floats(np.repeat(values, 2)[::2])
    elif shape == "swapped":
        column = Floats(values.astype(">f8"))
    elif shape == "unaligned":
        column = Floats(np.empty(8 * rows + 1, np.uint8)[1:].view(np.float64))
        column.values[:] = values
    elif shape == "read-only":
        column.values.flags.writeable = False
    batch = Batch(rows, [column], absent=2)
    if shape == "matrix":
        batch = Batch(rows, (), values.reshape(-1, 1), absent=2)
    before = loaded.used
    looped = counted(loaded, kind, frame, edges, [batch, Batch(0, [Floats(values[:0])])])
    assert loaded.used == before + 2
    assert looped == counted(NEVER, kind, frame, edges, [batch])


@pytest.mark.parametrize("kind", [DistanceCounter, LineCounter])
def test_long_batches_have_the_same_counts_however_they_are_split(loaded, kind) -> None:
    rng = np.random.default_rng(5)
    values = np.concatenate([rng.normal(50, 10, 50_000), 10.0 ** rng.uniform(-300, 300, 9_999)])
    values[rng.integers(0, len(values), 300)] = rng.choice([np.nan, np.inf, -np.inf, -0.0], 300)
    frame = Frame(np.array([49.9]), np.array([0.7]), 1e6)
    edges = RADII[1] if kind is DistanceCounter else LINES[0]
    whole = counted(NEVER, kind, frame, edges, [Batch(len(values), [Floats(values)])])
    for parts in (1, 7, 300):
        batches = [Batch(len(part), [Floats(part)]) for part in np.array_split(values, parts)]
        assert counted(loaded, kind, frame, edges, batches) == whole


def test_records_of_several_coordinates_are_counted_without_it(loaded) -> None:
    frame = Frame(np.zeros(2), np.ones(2), 10.0)
    before = loaded.used
    batch = Batch(3, (), np.arange(6.0).reshape(3, 2))
    assert counted(loaded, DistanceCounter, frame, np.array([1.0, 4.0]), [batch]) == [1, 2]
    assert loaded.used == before


def test_without_numba_numpy_goes_on(monkeypatch) -> None:
    assert cell_loops.checked() is not None
    monkeypatch.setitem(sys.modules, "numba", None)
    assert cell_loops.checked() is None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda moved: moved._replace(magnitude=np.inf),
        lambda moved: moved._replace(squared=False),
        lambda moved: moved._replace(weight=1.0),
        lambda moved: moved._replace(center=0.0),
    ],
    ids=["no clip", "no squares", "no weights", "no centre"],
)
def test_a_loop_that_does_something_else_is_not_used(monkeypatch, wrong) -> None:
    """The source is changed instead of what is compiled: they differ all the same."""
    loop, source = cell_loops.compiled(), cell_loops._count
    monkeypatch.setattr(cell_loops, "compiled", lambda: loop)
    monkeypatch.setattr(
        cell_loops, "_count", lambda values, moved, *others: source(values, wrong(moved), *others)
    )
    assert cell_loops.checked() is None
