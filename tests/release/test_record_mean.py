"""Where the mean of all records lies, those outside an interval included."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh
from changed import changed
from muhat.mechanisms.learning.outside_count import OutsideCount, Sides
from muhat.noise.laws import LAWS
from muhat.release.outside import RecordMean, record_mean

NORMAL = LAWS["normal"]
CLIPPED = (0.5, 2.0)
"""An interval for the clipped mean."""

REACH = 2.3263478740408408
"""99 % of normal noise lie below it."""


def test_records_outside_move_the_mean_by_what_they_lie_beyond_the_ends() -> None:
    counted = OutsideCount(70.0, NORMAL, 1.0, Sides(10.0, 60.0, 2.0))
    found = record_mean(CLIPPED, mh.Ball(5.0, 1, [5.0]), counted, 1000, 1e6)
    assert (found.least, found.most) == (-30.0, 40.0)
    assert found.lower == pytest.approx(0.5 - (10 + 2 * REACH) * 30 / 1000)
    assert found.upper == pytest.approx(2 + (60 + 2 * REACH) * 30 / 1000)


def test_a_count_of_both_sides_may_be_one_of_either_and_none_is_below_nothing() -> None:
    counted = OutsideCount(-90.0, NORMAL, 1.0)
    found = record_mean(CLIPPED, mh.Ball(5.0, 1, [5.0]), counted, 1000, 12.0)
    assert (found.least, found.most) == (-12.0, 12.0)
    assert (found.lower, found.upper) == CLIPPED
    counted = OutsideCount(30.0, LAWS["laplace"], 1.0)
    found = record_mean(CLIPPED, mh.Ball(5.0, 1, [5.0]), counted, 1000, 1e6)
    most = 30 + np.log(50)
    assert found.upper == pytest.approx(2 + most * 30 / 1000)
    assert found.lower == pytest.approx(0.5 - most * 30 / 1000)


def test_it_is_printed_and_kept_where_few_records_lie_outside_and_else_is_not() -> None:
    rows = np.random.default_rng(1).normal(size=4000)
    release = mh.mean(rows, domain=mh.Reals(1, 1e3), privacy=mh.ZCDP(rho=0.5))
    assert release.record_mean is not None
    shown = changed(release, record_mean=RecordMean(-1.26, 2.04, -12.5, 30.0))
    said = "If no record lies beyond -12.5 … 30, the mean of all records is in -1.3 … 2.0 (95 %)."
    assert said in repr(shown)
    assert said in shown._repr_html_()
    assert mh.Release.from_json(shown.to_json()).record_mean == shown.record_mean
    assert shown.to_dict()["record_mean"]["if_none_beyond"] == [-12.5, 30.0]
    few = mh.mean(rows[:500], domain=mh.Reals(1, 1e3), privacy=mh.ZCDP(rho=0.05), insist=True)
    assert few.record_mean is None
    assert "If no record" not in repr(few)
    wide = mh.mean(rows.reshape(-1, 2), domain=mh.Reals(2, 1e3), privacy=mh.ZCDP(rho=0.5))
    assert wide.record_mean is None


def test_ends_out_of_order_are_refused() -> None:
    with pytest.raises(mh.InvalidInput, match="in order"):
        RecordMean(2.0, 1.0, -1.0, 1.0)
