"""Cuts become whole numbers that move no further than stated, and whose sums give all counts."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muhat as mh
from muhat.data.grids import UniformGrid
from muhat.protocols.encodings.cut_encoding import CutEncoding, CutPlace, Radius, padded
from muhat.protocols.encodings.domain_encoding import DomainEncoding, ShellEncoding
from muhat.protocols.estimators.cut_counts import CutCounts
from muhat.release.quantile_grids import RelativeGrid


def line(cuts, scale: int = 1) -> CutEncoding:
    return CutEncoding(Radius((0.0,)), tuple(map(float, cuts)), scale)


def counts_of(encoding: CutEncoding, records: np.ndarray) -> CutCounts:
    sums = encoding.integers(records).sum(axis=0) / encoding.scale
    return CutCounts(np.array(encoding.cuts), sums, len(records), 0.0)


@pytest.mark.parametrize("levels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("scale", [1, 7])
def test_the_sensitivity_is_the_largest_distance_of_two_cells(levels, scale):
    encoding = line(range(1, 1 << levels), scale)
    numbers = encoding.integers(np.arange(0.5, 1 << levels)[:, None])
    apart = numbers[:, None] - numbers[None]
    stated = encoding.sensitivity
    assert stated.numbers == numbers.shape[1]
    assert stated.l1 == np.abs(apart).sum(axis=2).max()
    largest = int((apart**2).sum(axis=2).max())
    assert largest <= stated.l2**2 <= largest * (1 + 1e-9)
    assert encoding.low == numbers.min()
    assert encoding.high == numbers.max()


@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=40),
    st.lists(st.integers(0, 100), min_size=7, max_size=7).map(sorted),
)
def test_sums_without_noise_give_every_count(values, cuts):
    records = np.array(values, float)[:, None]
    counts = counts_of(line(cuts, 3), records)
    expected = (records <= np.array(cuts)).sum(axis=0)
    np.testing.assert_array_equal(counts.below, expected)
    np.testing.assert_array_equal(counts.monotone, expected)


@given(st.lists(st.floats(-1e3, 1e3), min_size=15, max_size=15), st.integers(0, 500))
def test_repaired_counts_never_fall_and_stay_between_nobody_and_everybody(noise, people):
    counts = CutCounts(np.arange(15.0), np.array(noise), people, 1.0)
    steps = np.diff(np.concatenate([[0.0], counts.monotone, [people]]))
    assert (steps >= -1e-9 * max(people, 1)).all()


@pytest.mark.parametrize("levels", [1, 3, 6])
def test_the_errors_are_those_of_the_linear_map_from_nodes_to_counts(levels):
    nodes = (1 << levels) - 1
    cuts = np.arange(float(nodes))
    rows = [CutCounts(cuts, unit, 0, 2.0).below for unit in np.eye(nodes)]
    expected = 2.0 * np.sqrt(np.square(rows).sum(axis=0))
    np.testing.assert_allclose(CutCounts(cuts, np.zeros(nodes), 5, 2.0).errors, expected)


def test_a_number_is_found_between_cuts_by_how_many_exceed_it():
    counts = CutCounts(np.array([1.0, 4.0, 16.0]), np.array([0.0, 0.0, 0.0]), 8, 0.0)
    assert counts.beyond.tolist() == [6.0, 4.0, 2.0]
    assert counts.value_beyond(4) == 4.0
    assert counts.value_beyond(5) == pytest.approx(2.0)
    assert counts.value_beyond(8) == 1.0
    assert counts.value_beyond(1) == 16.0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_missing_coordinate_counts_as_that_of_the_centre(value):
    look = Radius((1.0, -2.0), (1.0, 3.0))
    assert look.values(np.array([[value, 0.0]])).tolist() == [6.0]
    place = CutPlace(UniformGrid(0.0, 10.0, 1.0))
    assert place.values(np.array([[value]])).tolist() == [5.0]


def test_numbers_of_any_size_have_a_cell():
    encoding = CutEncoding(Radius((1e300, 0.0)), (1.0, 2.0, 3.0))
    records = np.array([[-1e308, 1e308], [1e300, 0.0], [5e-324, 1.0]])
    assert encoding.cells(records).tolist() == [3, 0, 3]


def test_a_shell_and_the_ball_within_add_up_to_the_ball():
    rng = np.random.default_rng(5)
    records = rng.normal(size=(200, 3)) * 3 + [10.0, 0.0, -4.0]
    look = Radius((10.0, 0.0, -4.0))
    inner = DomainEncoding(mh.Ball(2.0, 3, look.center), 44)
    shell = ShellEncoding.between(look, 2.0, 5.0).at(44)
    outer = DomainEncoding(mh.Ball(5.0, 3, look.center), 44)

    def mean(encoding: DomainEncoding) -> np.ndarray:
        return encoding.mean(encoding.integers(records).sum(axis=0).tolist(), len(records))

    np.testing.assert_allclose(mean(inner) + mean(shell), mean(outer), atol=1e-9)


def test_a_shell_has_nothing_of_records_within_and_survives_any_record():
    shell = ShellEncoding.between(Radius((1.0, 1.0)), 2.0, 3.0).at(20)
    records = np.array([[1.0, 1.0], [np.nan, 2.9], [1e308, -1e308], [np.inf, np.nan]])
    numbers = shell.integers(records)
    assert np.abs(numbers[[0, 1, 3]]).max() <= 1
    assert np.linalg.norm(numbers[2]) <= (1 << 19) + 2


@pytest.mark.parametrize(
    "look",
    [
        Radius((0.5, 1e-300)),
        Radius((0.0, 1.0), (2.0, 0.1)),
        CutPlace(UniformGrid(0.0, 1.0, 0.1)),
        CutPlace(RelativeGrid(1.0, 1e6, 1.1)),
    ],
    ids=repr,
)
def test_encodings_survive_json(look):
    encoding = CutEncoding(look, (0.1, 0.2, 0.30000000000000004), 8)
    again = CutEncoding.from_dict(json.loads(json.dumps(encoding.to_dict())))
    assert again == encoding
    if isinstance(look, Radius):
        shell = ShellEncoding.between(look, 1.0, 3.0).at(9)
        assert ShellEncoding.from_dict(json.loads(json.dumps(shell.to_dict()))) == shell


@pytest.mark.parametrize("cuts", [(), (1.0, 2.0), (2.0, 1.0, 3.0), (1.0, np.nan, 3.0), (np.inf,)])
def test_cuts_that_make_no_tree_are_refused(cuts):
    with pytest.raises(mh.InvalidInput):
        line(cuts)


def test_other_encodings_that_cannot_be_are_refused():
    with pytest.raises(mh.InvalidInput):
        line((1.0,), 0)
    with pytest.raises(mh.InvalidInput):
        Radius(())
    with pytest.raises(mh.InvalidInput):
        Radius((1.0,), (1.0, 2.0))
    with pytest.raises(mh.InvalidInput):
        Radius((1.0,), (0.0,))
    with pytest.raises(mh.InvalidInput):
        ShellEncoding(mh.Ball(1.0, 2), 9, look=Radius((0.0,)), inner=1.0)
    with pytest.raises(mh.InvalidInput):
        ShellEncoding(mh.Box([0], [1]), 9, look=Radius((0.0,)), inner=1.0)


def test_padding_adds_empty_cells():
    cuts = padded([1.0, 2.0, 5.0, 7.0], 3)
    records = np.array([[0.5], [3.0], [9.0]])
    assert counts_of(line(cuts), records).below.tolist() == [1, 1, 2, 2, 2, 2, 2]
