"""Histograms given as counts: dense, sparse and dicts agree; values are read and never raise."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from muhat.data.counts import histogram_counts
from muhat.errors import InvalidInput

SHAPE = (2, 3, 4)
EVERY_SET = [axes for order in range(4) for axes in itertools.combinations(range(3), order)]


def counts() -> np.ndarray[Any, np.dtype[np.int64]]:
    made = np.random.default_rng(50).integers(-2, 9, SHAPE)
    made[0, 1, 2] = made[1, 2, 3] = 0
    return made


def all_kinds() -> dict[str, Any]:
    made = counts()
    flat = made.ravel()
    kinds: dict[str, Any] = {
        "shaped": made,
        "flat": flat,
        "fortran": np.asfortranarray(made),
        "small": made.astype(np.int8),
        "big-endian": made.astype(">i4"),
        "dict of numbers": dict(enumerate(flat.tolist())),
        "dict of numpy": dict(zip(np.arange(24), flat, strict=True)),
        "dict of codes": {cell: int(made[cell]) for cell in np.ndindex(SHAPE)},
        "dict of both": {0: 5, (0, 0, 0): int(flat[0]) - 5, **dict(enumerate(flat[1:], 1))},
        "dict without zeros": {cell: int(made[cell]) for cell in np.ndindex(SHAPE) if made[cell]},
        "row": sp.csr_array(flat[None, :]),
        "column": sp.csc_array(flat[:, None]),
        "matrix": sp.csr_matrix(flat[None, :]),
        "list of lists": sp.lil_array(flat[None, :]),
        "dictionary of keys": sp.dok_array(flat[None, :]),
        "one dimension": sp.coo_array(flat),
        "duplicates": sp.coo_array(
            (np.concatenate([flat - 100, flat * 0 + 100]), (np.tile(np.arange(24), 2),)),
            shape=(24,),
        ),
    }
    return kinds


def test_all_kinds_of_histograms_have_the_same_margins() -> None:
    made = np.maximum(counts(), 0)
    for name, value in all_kinds().items():
        histogram = histogram_counts(value, SHAPE)
        assert histogram.total() == made.sum(), name
        tables = histogram.margins(EVERY_SET)
        for axes in EVERY_SET:
            others = tuple(axis for axis in range(3) if axis not in axes)
            assert np.array_equal(tables[axes], made.sum(axis=others)), (name, axes)
            assert tables[axes].dtype == np.int64
        turned = histogram.margins([(2, 0)])[2, 0]
        assert np.array_equal(turned, made.sum(axis=1).T)


def test_lists_are_counts_as_arrays_are() -> None:
    made = np.arange(24).reshape(SHAPE)
    for value in (made.tolist(), made.ravel().tolist(), tuple(made.ravel()), tuple(made.tolist())):
        histogram = histogram_counts(value, SHAPE)
        assert np.array_equal(histogram.margins([(0, 1, 2)])[0, 1, 2], made)
    odd = histogram_counts([-1, 2.9, "3", None, 2**80], (5,))
    assert odd.margins([(0,)])[0,].tolist() == [0, 2, 0, 0, odd.largest]


def test_sparse_arrays_of_two_dimensions_are_tables() -> None:
    made = np.arange(12).reshape(3, 4)
    for value in (sp.csr_array(made), sp.coo_matrix(made), sp.csr_array(made.reshape(1, 12))):
        histogram = histogram_counts(value, (3, 4))
        assert np.array_equal(histogram.margins([(0, 1)])[0, 1], made)


def test_nothing_of_the_size_of_all_cells_is_built() -> None:
    shape = (10,) * 30
    cells = {(9,) * 30: 3, 10**30 - 1: 4, 5: 2, 10**30: 100, -1: 100}
    histogram = histogram_counts(cells, shape)
    assert histogram.total() == 9
    tables = histogram.margins([(0, 29), ()])
    assert (tables[0, 29][9, 9], tables[0, 29][0, 5]) == (7, 2)
    wide = sp.coo_array(([7], ([0], [2**40 + 3])), shape=(1, 2**50))
    table = histogram_counts(wide, (2**10, 2**40)).margins([(0,)])[0,]
    assert (table[1], table.sum()) == (7, 7)
    with pytest.raises(InvalidInput, match="written out"):
        histogram_counts(wide, (2**10, 2**40)).margins([(0, 1)])


def test_many_axes_of_one_cell_are_no_hindrance() -> None:
    shape = (1,) * 50 + (3,)
    histogram = histogram_counts(np.array([1, 2, 3]), shape)
    assert histogram.margins([(0, 50)])[0, 50].tolist() == [[1, 2, 3]]
    assert histogram.margins([(3, 4)])[3, 4].tolist() == [[6]]


def test_what_is_no_cell_goes_to_a_declared_cell_or_nowhere() -> None:
    odd = {
        2: 1,
        -1: 1,
        1.5: 1,
        math.inf: 1,
        math.nan: 1,
        "1": 1,
        None: 1,
        (0,): 1,
        (0, 5): 1,
        (0, None): 1,
        (0, 1.5): 1,
        (0, 0, 0): 1,
        4: 1,
        10**30: 1,
        (0, 1): 10,
    }
    assert histogram_counts(odd, (2, 2)).margins([(0, 1)])[0, 1].tolist() == [[0, 10], [1, 0]]
    outside = len(odd) - 2
    for other in (3, (1, 1), np.int64(3)):
        table = histogram_counts(odd, (2, 2), other=other).margins([(0, 1)])[0, 1]
        assert table.tolist() == [[0, 10], [1, outside]]
    for other in (4, (2, 0), "x", 1.5):
        with pytest.raises(InvalidInput, match="other must be a cell"):
            histogram_counts(odd, (2, 2), other=other)


def test_keys_that_equal_a_whole_number_are_that_number() -> None:
    for keys in ([False, True, 2], [0.0, 1.0, 2.0], np.arange(3.0), [(0,), (True,), (2.0,)]):
        entries = dict(zip(keys, [5, 6, 7], strict=True))
        assert histogram_counts(entries, (3,)).margins([(0,)])[0,].tolist() == [5, 6, 7]


def test_counts_are_read_whatever_they_are() -> None:
    values = [3, 2.0, 2.9, -0.5, -7, True, "5", None, math.nan, math.inf, 10**40, np.int8(4), [1]]
    histogram = histogram_counts(dict(enumerate(values)), (13,))
    expected = [3, 2, 2, 0, 0, 1, 0, 0, 0, 0, histogram.largest, 4, 0]
    assert histogram.margins([(0,)])[0,].tolist() == expected


def test_no_total_overflows() -> None:
    for kind in (np.int64, np.uint64):
        made = np.full(6, np.iinfo(kind).max, kind)
        for value in (made, sp.coo_array(made), dict(enumerate(made.tolist()))):
            histogram = histogram_counts(value, (6,))
            assert histogram.largest == (2**63 - 1) // 6
            assert histogram.total() == 6 * histogram.largest
    twice = sp.coo_array(([2**62] * 4, ([0] * 4,)), shape=(6,))
    assert 0 < histogram_counts(twice, (6,)).total() <= 2**63 - 1
    small = histogram_counts(np.array([-128, 127], np.int8), (2,))
    assert small.total() == 127


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.ones(24), "whole numbers; got float64"),
        (np.ones(24, bool), "whole numbers; got bool"),
        (np.ones(24, object), "whole numbers; got object"),
        (np.array(["1"] * 24), "whole numbers"),
        (sp.csr_array(np.ones((1, 24))), "whole numbers; got float64"),
        (np.ones(23, int), r"shape \(2, 3, 4\) or \(24,\); got \(23,\)"),
        (np.ones((4, 3, 2), int), r"got \(4, 3, 2\)"),
        (np.ones((1, 24), int), r"got \(1, 24\)"),
        (sp.csr_array(np.ones((2, 12), int)), r"got \(2, 12\)"),
        (np.ma.masked_array(np.ones(24, int)), "masked"),
        ([1] * 23, r"shape \(2, 3, 4\) or \(24,\); got lists of another"),
        ([[1] * 12] * 2, "got lists of another"),
        ([[[1] * 4] * 3, [[1] * 4] * 2], "got lists of another"),
        ([[1]] * 24, "got lists of another"),
        ([], "got lists of another"),
        (range(24), "got range"),
        (["people.csv"] * 24, "got a list of texts"),
        ([Path("people.csv")] * 24, "got a list of texts"),
        (None, "got NoneType"),
    ],
)
def test_other_types_and_shapes_are_refused_with_a_hint(value: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        histogram_counts(value, SHAPE)
    assert caught.value.__cause__ is None


def test_bad_shapes_and_sets_are_refused() -> None:
    for cells in ((), (0,), (2**70, 2**70), 3, (1.5,)):
        with pytest.raises(InvalidInput):
            histogram_counts({}, cells)  # type: ignore[arg-type]
    for sets in ([], [(3,)], [(0, 0)], [(0,), (0,)]):
        for value in (counts(), {}):
            with pytest.raises(InvalidInput):
                histogram_counts(value, SHAPE).margins(sets)


def test_a_histogram_does_not_show_itself() -> None:
    for value in (np.array([73, 4]), {0: 73, 1: 4}):
        assert "73" not in repr(histogram_counts(value, (2,)))


@given(st.dictionaries(st.integers(-3, 8), st.integers(-5, 2**70), max_size=8))
def test_one_more_record_moves_one_cell_by_at_most_one(entries: dict[int, int]) -> None:
    before = histogram_counts(entries, (2, 3)).margins([(0, 1)])[0, 1]
    for key in range(-1, 7):
        more = {**entries, key: entries.get(key, 0) + 1}
        moved = histogram_counts(more, (2, 3)).margins([(0, 1)])[0, 1] - before
        assert ((moved == 0) | (moved == 1)).all()
        assert moved.sum() <= 1
