"""Quantiles on a geometric grid: values a share apart, over many orders of magnitude.

Statistical comparisons use the release's own rank error at a confidence of 1 − 1e-9.
"""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest

import muhat as mh
from muhat.data.grids import UniformGrid
from muhat.release.quantile_grids import RelativeGrid, span, step, words

SURE = 1 - 1e-9
INCOMES = np.exp(np.linspace(math.log(10), math.log(1e8), 20_001))


def quantile(data=INCOMES, q=0.5, **options):
    arguments = {"lower": 1, "upper": 1e9, "relative": 0.01, "privacy": mh.ZCDP(rho=0.1)}
    return mh.quantile(data, q, **(arguments | options))


@pytest.mark.parametrize("n", [20_001, None], ids=["public", "secret"])
@pytest.mark.parametrize("q", [0.05, 0.5, 0.95])
def test_the_value_is_within_its_rank_error_of_the_quantile(q, n):
    release = quantile(q=q, n=n)
    rank = math.ceil(q * len(INCOMES))
    off = int(release.rank_error(SURE)[0])
    low, high = INCOMES[rank - 1 - off], INCOMES[rank - 1 + off]
    assert low <= release.value[0] <= high * 1.0101
    lower, upper = release.interval(SURE)
    assert lower[0] <= INCOMES[rank - 1] <= upper[0]


def test_a_relative_step_takes_fewer_rounds_than_a_fine_one():
    for promise, coarse, fine in ((mh.GDP(mu=0.5), 12 + 3, 20 + 4), (mh.ZCDP(rho=0.1), 6, 10)):
        few, many = (quantile(privacy=promise, **step) for step in ({}, {"relative": None}))
        assert (few.rounds[0], many.rounds[0]) == (coarse, fine)
        assert few.noise_scale[0] < many.noise_scale[0]


def test_values_lie_on_the_grid_and_records_outside_at_its_ends():
    value = quantile().value[0]
    steps = math.log(value) / math.log(1.01)
    assert abs(steps - round(steps)) < 1e-6
    for data, end in ((np.full(500, -3.0), 1), (np.full(500, 1e12), 1e9)):
        assert quantile(data).value[0] == end


def test_missing_values_can_count_as_the_middle_of_the_bounds():
    value = quantile(np.full(500, np.nan), missing="center").value[0]
    assert 0.5e9 <= value <= 0.51e9


def test_several_columns_share_a_step_or_have_one_each():
    data = np.column_stack([INCOMES, INCOMES / 10])
    for relative in (0.02, [0.02, 0.1]):
        release = quantile(data, lower=[1, 1], upper=[1e9, 1e8], relative=relative)
        assert release.resolution == pytest.approx(np.broadcast_to(relative, 2))


def test_a_release_survives_json_and_reads_well():
    release = quantile(q=[0.1, 0.9])
    text = release.to_json()
    again = mh.Release.from_json(text)
    assert again.to_json() == text
    assert repr(again) == repr(release)
    assert "2,084 steps of 1 % from 1 to 1e+09" in release.describe()
    forged = json.loads(text)
    for change in ({"kind": "wavy"}, {"ratio": 1.0000002}, {"smallest": -1}):
        forged["grids"] = [{**json.loads(text)["grids"][0], **change}]
        with pytest.raises(mh.InvalidInput):
            mh.Release.from_json(json.dumps(forged))


def test_the_two_kinds_of_grid_say_what_their_cells_hold():
    uniform, relative = UniformGrid(0.0, 10.0, 1.0), RelativeGrid.between(1, 16, 1)
    assert span(uniform, 0) == (0.0, 0.5)
    assert span(uniform, 3) == (2.5, 3.5)
    assert span(relative, 0) == (1.0, 1.0)
    assert span(relative, 2) == (2.0, 4.0)
    assert (step(uniform), step(relative)) == (1.0, 1.0)
    assert words(relative) == "5 steps of 100 % from 1 to 16"
    assert relative.value(relative.middle) == 16


@pytest.mark.parametrize(
    "bad",
    [
        {"lower": 0},
        {"lower": -1},
        {"lower": 1e9},
        {"upper": float("inf")},
        {"relative": 0},
        {"relative": -0.1},
        {"relative": float("nan")},
        {"relative": 1e-9},
        {"relative": 1e-5},
        {"relative": "1 %"},
        {"relative": [0.1, 0.1]},
        {"resolution": 1},
    ],
    ids=repr,
)
def test_bad_steps_are_refused(bad):
    with pytest.raises(mh.InvalidInput):
        quantile(**bad)


def test_a_delta_that_says_nothing_is_warned_of_where_n_is_public():
    loose = mh.ApproxDP(epsilon=1, delta=0.01)
    with pytest.warns(UserWarning, match="not below 1/n") as caught:
        quantile(privacy=loose)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quantile(privacy=loose, n=None)
        quantile(privacy=mh.ApproxDP(epsilon=1, delta=1e-6))
