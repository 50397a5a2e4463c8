"""Which number of a record is looked at, and where missing ones go."""

from __future__ import annotations

import numpy as np
import pytest

from muhat.data.rotation import Rotation
from muhat.errors import InvalidInput
from muhat.protocols.encodings.range_cells import (
    Coordinates,
    Distance,
    RangeLook,
    Rotated,
    drawn_numbers,
)

RECORDS = np.random.default_rng(3).normal(size=(50, 3))
LOOKS = [
    Coordinates(3),
    Coordinates(3, (2, 0)),
    Distance((1.0, 0.0, -2.5)),
    Rotated((1, -1, -1), (0.0, 0.5, 0.0)),
    Rotated((1, -1, -1), (0.0, 0.5, 0.0), (3,)),
]


@pytest.mark.parametrize("look", LOOKS, ids=repr)
def test_a_look_is_read_back_from_its_description(look):
    assert RangeLook.from_dict(look.to_dict()) == look


def test_the_numbers_are_those_of_plain_formulas():
    drawn = np.arange(50) % 3
    chosen = Coordinates(3).values(RECORDS, drawn)
    np.testing.assert_array_equal(chosen, RECORDS[np.arange(50), drawn])
    center = (1.0, 0.0, -2.5)
    lengths = np.linalg.norm(RECORDS - center, axis=1)
    np.testing.assert_allclose(Distance(center).values(RECORDS, drawn * 0), lengths)
    rotation, shift = Rotation(np.array([1.0, -1.0, -1.0])), np.array([0.0, 0.5, 0.0])
    expected = np.array([rotation.forward(record - shift) for record in RECORDS])
    places = np.arange(50) % 4
    found = Rotated((1, -1, -1), (0.0, 0.5, 0.0)).values(RECORDS, places)
    np.testing.assert_allclose(found, expected[np.arange(50), places])


def test_the_number_looked_at_is_uniform_over_nonces():
    nonces = np.zeros((6, 4), "<u4")
    nonces[:, 0] = [0, (1 << 32) // 3, (1 << 32) // 3 + 1, 1 << 31, (2 << 32) // 3 + 1, 0xFFFFFFFF]
    assert drawn_numbers(Coordinates(3), nonces.view(np.uint8)).tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_missing_counts_as_the_centre_or_has_no_number(bad):
    record, first = np.array([[bad, 2.0, 3.0]]), np.zeros(1, np.int64)
    assert np.isnan(Coordinates(3).values(record, first)[0])
    assert Coordinates(3).values(record, first + 1)[0] == 2.0
    assert Distance((7.0, 2.0, 3.0)).values(record, first)[0] == 0.0
    assert Rotated((1, 1, 1), (7.0, 2.0, 1.0)).values(record, first)[0] == 2.0


def test_records_at_the_ends_of_the_floats_have_numbers():
    large = np.array([[1.7e308, -1.7e308, 1.7e308]])
    for look in LOOKS:
        for place in range(look.numbers):
            assert not np.isnan(look.values(large, np.array([place]))).any()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Coordinates(0),
        lambda: Coordinates(2, ()),
        lambda: Coordinates(2, (2,)),
        lambda: Coordinates(2, (1, 1)),
        lambda: Distance(()),
        lambda: Distance((np.nan,)),
        lambda: Rotated((1, 2), (0.0, 0.0)),
        lambda: Rotated((1,), (0.0, 0.0)),
        lambda: Rotated((1, 1), (0.0, 0.0), (-1,)),
        lambda: RangeLook.from_dict({"kind": "corner"}),
    ],
)
def test_looks_that_are_none_are_refused(make):
    with pytest.raises(InvalidInput):
        make()
