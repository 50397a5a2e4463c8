"""Records outside a learnt set: counted, said, and never taken for nothing."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh
from changed import changed
from muhat.release.outside import Outside

RECORDS = np.random.default_rng(1).normal(size=(4000, 1))
RELEASE = mh.mean(RECORDS, domain=mh.Reals(1, 1e3), privacy=mh.ZCDP(rho=0.5))


def test_ends_stay_between_none_and_all_records():
    assert Outside.of(-30.0, 10.0, 100) == Outside(-30.0, 0.0, 0.0, 100)
    assert Outside.of(95.0, 10.0, 100) == Outside(95.0, 85.0, 100.0, 100)
    assert Outside.of(95.0, 10.0, None) == Outside(95.0, 85.0, 105.0, None)


def test_two_in_a_hundred_are_few_and_more_are_not():
    assert Outside.of(0.0, 200.0, 10_000).is_small
    assert not Outside.of(0.1, 200.0, 10_000).is_small
    assert not Outside.of(0.0, 1.0, None).is_small


@pytest.mark.parametrize("wrong", [(0.0, -1.0, 2.0, 5), (0.0, 3.0, 2.0, 5), (0.0, 0.0, 1.0, -1)])
def test_impossible_counts_are_refused(wrong):
    with pytest.raises(mh.InvalidInput):
        Outside(*wrong)


def test_a_release_says_how_many_and_what_its_interval_is_of():
    few = changed(RELEASE, outside=Outside.of(2.5, 10.0, 4000))
    many = changed(RELEASE, outside=Outside.of(800.0, 10.0, 4000))
    for shown in (repr(few), few._repr_html_()):
        assert (
            "0 to 13 of 4,000 records lie outside; what they add is not in the interval." in shown
        )
        assert "95 % interval (clipped)" in shown
    for shown in (repr(many), many._repr_html_()):
        assert "790 to 810 of 4,000 records lie outside: the interval is that of the" in shown
        assert "95 % interval (clipped)" in shown


def test_the_count_survives_json():
    release = changed(RELEASE, outside=Outside.of(800.0, 10.0, 4000))
    assert mh.Release.from_json(release.to_json()).outside == release.outside
    assert '"small": false' in release.to_json()
    failed = {"failure": "none", "value": np.full(1, np.nan), "noise": None}
    with pytest.raises(mh.InvalidInput, match="nothing else to say"):
        changed(release, **failed)
