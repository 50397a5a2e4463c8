"""Loops that touch a value once make the sums that numpy makes, or are not used."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muhat.domains import box_kernel, box_loops
from muhat.domains.box_kernel import BoxKernel
from muhat.domains.lattice import BoxLattice
from muhat.records.columns import Column, Floats, Integers
from muhat.records.loader import WORTH_LOADING, Loader

BOUNDS = [
    (0, 1), (1000, 1100), (2**60, 2**60 + 1000), (-1e308, 1e308), (0, 1e-300), (0, 5e-324),
    (3, 3), (0.1, 0.7), (1.0, 1.0000000000000002), (-1, 1e15), (-(2**63), 2**63), (-1e30, 1e30),
    (-5, 2**61), (6.99999999, 7.00001), (1e25, 1e26), (-3e13, 4e13),
]  # fmt: skip

VALUES = st.one_of(
    st.floats(allow_subnormal=True),
    st.floats(-2, 2),
    st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308, 0.5, 1e-12, 0.5 + 2**-46]),
)


class Loaded:
    """A loader whose loops are there from the first value on."""

    def __init__(self) -> None:
        self.loops = box_loops.compiled()
        self.used = 0

    def after(self, values: int) -> box_loops.Loops:
        self.used += values
        return self.loops


@pytest.fixture(scope="module")
def loaded():
    return Loaded()


def by_numpy_and_by_loops(loaded, work):
    """What some work makes without the loops and with them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_kernel, "_LOADER", Loader(box_loops.checked))
        plain = work()
        patch.setattr(box_kernel, "_LOADER", loaded)
        before = loaded.used
        looped = work()
        assert loaded.used > before
    return plain, looped


@settings(max_examples=300, deadline=None)
@given(
    data=st.data(),
    bounds=st.lists(st.sampled_from(BOUNDS), min_size=1, max_size=3),
    rows=st.integers(1, 40),
    squares=st.booleans(),
    counts=st.booleans(),
    drop=st.booleans(),
    absent=st.booleans(),
)
def test_loops_make_the_sums_of_numpy_bit_for_bit(
    loaded, data, bounds, rows, squares, counts, drop, absent
):
    lattice = BoxLattice.around(*zip(*bounds, strict=True))
    coordinates = [
        box_kernel.Coordinate(c.exponent, c.center, c.lower, c.upper, c.lower if absent else 0)
        for c in lattice.coordinates()
    ]
    columns: list[Column] = []
    for low, high in bounds:
        near = VALUES.map(lambda x, a=low, b=high: a + (b - a) * x) | VALUES
        values = np.array(data.draw(st.lists(near, min_size=rows, max_size=rows)))
        mask = data.draw(st.none() | st.lists(st.booleans(), min_size=rows, max_size=rows))
        columns.append(Floats(values, None if mask is None else np.array(mask)))
    if data.draw(st.booleans()):
        columns[0] = Integers(np.arange(rows, dtype=np.int64))
    groups = np.array(data.draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows)))
    groups = groups.astype(data.draw(st.sampled_from([np.uint8, np.uint16, np.int64])))

    def work():
        kernel = BoxKernel(coordinates, squares=squares, counts=counts)
        with np.errstate(all="ignore"):
            together = kernel.sums(columns, drop=drop)
            by_group, records = kernel.group_sums(columns, groups, 5, drop=drop)
        assert records.tolist() == np.bincount(groups, minlength=5).tolist()
        return together, [each.tolist() for each in by_group]

    plain, looped = by_numpy_and_by_loops(loaded, work)
    assert plain == looped


def test_a_block_of_the_largest_size_at_a_corner_does_not_overflow(loaded):
    lattice = BoxLattice.around([0.0], [1.0])
    columns = [Floats(np.ones(1 << 17))]

    def work():
        kernel = BoxKernel(lattice.coordinates(), squares=True, counts=True)
        return kernel.sums(columns, drop=False)

    plain, looped = by_numpy_and_by_loops(loaded, work)
    assert plain == looped
    assert plain[0][0] == lattice.coordinates()[0].upper << 17


def test_columns_and_masks_that_are_not_contiguous_have_their_sums(loaded):
    lattice = BoxLattice.around([0.0], [1.0])
    wide = np.linspace(-1, 2, 90).reshape(30, 3)
    columns = [Floats(wide[:, 1], np.arange(60)[::2] % 3 > 0)]

    def work():
        return BoxKernel(lattice.coordinates(), squares=True).sums(columns, drop=False)

    plain, looped = by_numpy_and_by_loops(loaded, work)
    assert plain == looped


def of_another_order(values):
    return values.astype(">f8"), np.arange(len(values)).astype(">i8") % 3


def unaligned(values):
    flat = np.empty(8 * len(values) + 1, np.uint8)[1:].view(np.float64)
    flat[:] = values
    return flat, (np.arange(2 * len(values)) % 3)[::2]


def read_only(values):
    values, groups = values.copy(), np.arange(len(values), dtype=np.int32) % 3
    values.flags.writeable = groups.flags.writeable = False
    return values, groups


@pytest.mark.parametrize("made", [of_another_order, unaligned, read_only])
def test_arrays_of_any_layout_have_their_sums(loaded, made):
    lattice = BoxLattice.around([0.0], [1.0])
    values, groups = made(np.linspace(-1, 2, 30))

    def work():
        kernel = BoxKernel(lattice.coordinates(), squares=True)
        by_group, records = kernel.group_sums([Floats(values)], groups, 3, drop=False)
        by_group = [each.tolist() for each in (*by_group, records)]
        return kernel.sums([Floats(values)], drop=False), by_group

    plain, looped = by_numpy_and_by_loops(loaded, work)
    assert plain == looped


def test_loops_are_loaded_once_and_not_before_it_is_worth_it():
    asked = []
    loader = Loader(lambda: asked.append(1))
    assert loader.after(WORTH_LOADING - 1) is None
    assert not asked
    for _ in range(3):
        assert loader.after(1) is None
    assert asked == [1]


def test_without_numba_numpy_goes_on(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert box_loops.checked() is None


def test_numba_that_compiles_nothing_is_not_used(monkeypatch):
    import numba

    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    assert box_loops.checked() is None


def test_loops_that_agree_with_their_source_are_used():
    assert box_loops.checked() is not None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda value, kept, line: box_loops.STEPS(value, True, line),
        lambda value, kept, line: box_loops.STEPS(min(value, 1e6), kept, line),
        lambda value, kept, line: box_loops.STEPS(math.floor(value), kept, line),
    ],
    ids=["masks forgotten", "another clamp", "another rounding"],
)
def test_loops_that_do_something_else_are_not_used(monkeypatch, wrong):
    """The source is changed instead of what is compiled: they differ all the same."""
    loops = box_loops.compiled()
    monkeypatch.setattr(box_loops, "compiled", lambda: loops)
    monkeypatch.setattr(box_loops, "STEPS", box_loops._steps, raising=False)
    monkeypatch.setattr(box_loops, "_steps", wrong)
    assert box_loops.checked() is None
