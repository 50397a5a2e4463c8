"""Releases about which little or nothing is known: no error, no value, or a bounded bias."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import muhat as mh
from changed import changed
from muhat.release.group_answer import GroupAnswer

KNOWN = mh.mean(np.zeros((30, 2)), domain=mh.Box([-1, -1], [1, 1]), privacy=mh.ZCDP(rho=1))
UNKNOWN = changed(KNOWN, noise=None, certificate=None, mechanism="test")
REASON = "the records have no common place"
FAILED = changed(UNKNOWN, value=np.full(2, np.nan), domain=None, failure=REASON)


def test_an_unknown_error_is_none_everywhere():
    assert UNKNOWN.standard_error is None
    assert UNKNOWN.covariance is None
    fields = json.loads(UNKNOWN.to_json())
    assert fields["value"] == UNKNOWN.value.tolist()
    assert fields["standard_error"] is fields["interval"] is fields["noise"] is None
    assert repr(UNKNOWN).count("unknown") == 4
    assert UNKNOWN._repr_html_().count("unknown") == 4
    for target in ("empirical", "population"):
        with pytest.raises(mh.InvalidInput, match=r"nothing is known about the error .* 'test'"):
            UNKNOWN.interval(target=target)
    assert not UNKNOWN.failed


def test_a_value_of_unknown_error_can_still_be_projected():
    moved = UNKNOWN.projected(onto={"0": (7, 8)})
    assert moved.value[0] == 7
    assert mh.Release.from_json(moved.to_json()).to_json() == moved.to_json()


@pytest.mark.parametrize("release", [UNKNOWN, FAILED], ids=["unknown", "failed"])
def test_such_releases_survive_json(release):
    again = mh.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert repr(again) == repr(release)
    assert again.failed == release.failed
    assert again.standard_error is None


def test_a_release_that_failed_says_so_and_what_it_cost():
    assert FAILED.failed
    assert np.isnan(FAILED.value).all()
    assert FAILED.cost == mh.ZCDP(rho=1)
    for text in (repr(FAILED), FAILED._repr_html_()):
        assert f"No value came out; the promise is spent. The reason: {REASON}." in text
        assert "nan" not in text
    fields = json.loads(FAILED.to_json())
    assert fields["value"] is None
    assert fields["failure"] == REASON
    for refused in (FAILED.interval, FAILED.projected):
        with pytest.raises(mh.InvalidInput, match=REASON):
            refused()
    single = changed(FAILED, columns=("a",), value=np.full(1, np.nan))
    assert math.isnan(float(single))


def test_a_bound_on_the_bias_is_shown_where_there_is_one():
    release = changed(KNOWN, certificate=None, bias=0.25)
    assert "The bias of a column is at most 0.250" in repr(release)
    assert "The bias of a column is at most 0.250" in release._repr_html_()
    assert json.loads(release.to_json())["bias"] == 0.25
    assert mh.Release.from_json(release.to_json()).bias == 0.25
    assert "The bias of a column is 0 if the assumptions hold" in repr(changed(release, bias=0.0))
    assert release.projected().bias is None
    fields = json.loads(KNOWN.to_json())
    assert not {"bias", "failure", "unprojected"} & set(fields)


def test_a_domain_that_was_not_public_is_named_in_the_text():
    ball = changed(KNOWN, certificate=None, learnt=True, domain=mh.Ball(radius=2.5, dim=2))
    assert "Clipped to a ball of radius 2.50 that was found privately" in repr(ball)
    assert "Clipped to" not in repr(changed(ball, bias=0.1))
    assert "Clipped to a set" in repr(changed(ball, domain=mh.Box([0, 0], [1, 1])))
    assert "Clipped to" not in repr(KNOWN)
    with pytest.raises(mh.InvalidInput, match="learnt"):
        ball.interval(target="population")


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": np.array([1.0, np.nan])},
        {"value": np.array([1.0])},
        {"failure": REASON},
        {"failure": REASON, "value": np.full(2, np.nan)},
        {"failure": REASON, "value": np.full(3, np.nan), "noise": None, "certificate": None},
        {"unprojected": np.array([1.0, math.inf])},
        {"unprojected": np.array([1.0])},
        {"bias": -0.1},
        {"bias": math.nan},
        {"bias": "small"},
    ],
    ids=lambda wrong: "-".join(wrong),
)
def test_a_release_that_contradicts_itself_is_refused(wrong):
    with pytest.raises(mh.InvalidInput):
        changed(KNOWN, **wrong)


@pytest.mark.parametrize(
    "change",
    [
        {"value": None},
        {"failure": "so"},
        {"bias": "x"},
        {"bias": -1},
        {"noise": []},
        {"n": -1},
        {"n": "many"},
        {"contributions": 0},
        {"unprojected": [1]},
        {"assumptions": 3},
    ],
    ids=repr,
)
def test_json_that_contradicts_itself_is_refused(change):
    fields = json.loads(KNOWN.to_json()) | change
    with pytest.raises(mh.InvalidInput):
        mh.Release.from_json(json.dumps(fields))


def test_the_means_of_groups_have_errors_that_are_known():
    with pytest.raises(mh.InvalidInput, match="has an error and a number of values"):
        GroupAnswer(
            by="sex",
            groups=("f", "m"),
            answers=(*KNOWN.answers, *UNKNOWN.answers),
            mechanism="ratio",
            n=None,
            contributions=1,
            assumptions=(),
        )


def test_errors_of_several_columns_are_said_to_be_weighted() -> None:
    table = {"a": np.zeros(2000), "b": np.zeros(2000)}
    one, two = (
        mh.mean(
            table,
            columns=columns,
            domain=mh.Reals(len(columns), 10.0),
            privacy=mh.ZCDP(rho=1),
            moment=(2, 1.0),
        )
        for columns in (["a"], ["a", "b"])
    )
    assert "and the root mean square error is at most" in repr(one)
    assert "The bias of a column is at most" in repr(two)
    assert "errors of all columns, weighted as planned, are at most" in repr(two)
    for release in (one, two):
        assert "95 % interval: population" in repr(release)
        assert "95 % interval: population" in release._repr_html_()
