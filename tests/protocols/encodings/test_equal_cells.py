"""Equal cells: every number is in one of them, on the same side of an edge everywhere."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muhat.errors import InvalidInput
from muhat.protocols.encodings.equal_cells import MOST_CELLS, EqualCells
from muhat.protocols.encodings.range_cells import RangeLook
from muhat.protocols.encodings.tree_encoding import TreeEncoding


@given(
    lower=st.integers(-1000, 1000),
    width=st.integers(1, 1000),
    power=st.sampled_from([1, 10, 1000]),
    cells=st.integers(2, 60),
    numbers=st.lists(st.floats(-2.5, 2.5), min_size=1, max_size=20),
)
def test_a_number_is_in_the_cell_of_exact_arithmetic(lower, width, power, cells, numbers):
    """Decimals count as what they print as, also those that are edges."""
    grid = EqualCells(lower / power, (lower + width) / power, cells)
    typed = [Fraction(lower, power) + Fraction(place * width, cells * power) for place in range(9)]
    for exact in [*typed, *(Fraction(repr(abs(number))) for number in numbers)]:
        number = float(exact)
        if Fraction(number) != exact and Fraction(repr(number)) != exact:
            continue  # between two floats
        place = (exact - Fraction(lower, power)) * cells * power / width
        expected = min(max(place.__floor__(), 0), cells - 1)
        assert grid.codes(np.array([number]))[0] == expected


def test_whole_numbers_fall_into_cells_of_their_own():
    ages = np.arange(64.0)
    assert (EqualCells(0, 64, 64).codes(ages) == ages).all()
    hundredths = np.arange(100) / 100
    assert (EqualCells(0, 1, 100).codes(hundredths) == np.arange(100)).all()
    # Which a product of floats does not do.
    assert (np.floor(hundredths * 100) != np.arange(100)).any()


def test_what_is_outside_is_clipped_and_what_is_missing_is_in_the_middle():
    grid = EqualCells(-1, 1, 5)
    hostile = np.array([-np.inf, np.inf, np.nan, -1e308, 1e308, -0.0, 5e-324, 1.0])
    assert grid.codes(hostile).tolist() == [2, 2, 2, 0, 4, 2, 2, 4]
    assert EqualCells(0, 4, 4).codes(np.array([np.nan, 2.0])).tolist() == [2, 2]
    assert grid.values(hostile[:, None], np.zeros(8, np.int64)).tolist() == [2, 2, 2, 0, 4, 2, 2, 4]


def test_edges_are_found_again_and_nothing_else_is():
    grid = EqualCells(0.0, 1.0, 10)
    assert [grid.edge("low", each) for each in (0, 0.1 + 0.2, 0.7, 1)] == [0, 3, 7, 10]
    with pytest.raises(InvalidInput, match=r"low must be an edge of the cells, 0\.3 or 0\.4; got"):
        grid.edge("low", 0.33)
    with pytest.raises(InvalidInput, match=r"high .* edge of the cells, 1; got 1\.5"):
        grid.edge("high", 1.5)
    with pytest.raises(InvalidInput, match="finite"):
        grid.edge("high", np.inf)


@pytest.mark.parametrize(
    "arguments",
    [
        (1, 1, 2),
        (2, 1, 2),
        (0, 1, 1),
        (0, 1, MOST_CELLS + 1),
        (0, 1, 2.5),
        (np.nan, 1, 2),
        (0, np.inf, 2),
        (-1.7e308, 1.7e308, 2),
        (1.0, np.nextafter(1.0, 2.0), 2),
        (0, 5e-324, 2),
        ("x", 1, 2),
    ],
    ids=str,
)
def test_impossible_cells_are_refused(arguments):
    with pytest.raises(InvalidInput):
        EqualCells(*arguments)


def test_descriptions_come_back_also_as_a_look_and_in_a_tree():
    grid = EqualCells(-0.1, 1e300, 7)
    fields = json.loads(json.dumps(grid.to_dict()))
    assert EqualCells.from_dict(fields) == RangeLook.from_dict(fields) == grid
    assert "7 cells from -0.1 to 1e+300" in grid.describe()
    tree = TreeEncoding(8, (1, 2, 4), look=grid)
    assert TreeEncoding.from_dict(json.loads(json.dumps(tree.to_dict()))) == tree
    found = tree.integers(np.array([[1e299], [np.nan]]))
    assert found[:, :8].argmax(axis=1).tolist() == [0, 3]
    assert (found.sum(axis=1) == 3).all()
    with pytest.raises(InvalidInput, match="at least as many cells"):
        TreeEncoding(6, (1,), look=grid)
