"""Projections onto sets that are publicly known: free, and with intervals that still hold."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import muhat as mh
from muhat.mechanisms.sums.mechanisms import MECHANISMS

DATA = {"a": np.full(20, -1.0), "b": np.full(20, 2.0)}
LOOSE = mh.Box([-9, -9], [9, 9])


def released(rho: float = 1e6) -> mh.Release:
    return mh.mean(DATA, domain=LOOSE, privacy=mh.ZCDP(rho=rho), columns=["a", "b"])


def test_intervals_may_have_infinite_ends_and_leave_columns_alone():
    release = released()
    moved = release.projected(onto={"a": (0, math.inf)})
    assert moved.value[0] == 0
    assert moved.value[1] == release.value[1]
    assert released().projected(onto={"b": (-math.inf, 1), "a": (-5, 5)}).value[1] == 1
    assert moved.certificate is None
    assert "projected onto a ≥ 0, as declared" in moved.assumptions[-1]


def test_columns_without_names_go_by_their_number():
    release = mh.mean(np.full((9, 2), -1.0), domain=LOOSE, privacy=mh.ZCDP(rho=1e6))
    assert (release.projected(onto=dict.fromkeys(range(2), (0, math.inf))).value == 0).all()


@pytest.mark.parametrize(
    ("onto", "nearest"),
    [
        (mh.Box([0, 0], [1, 1]), [0, 1]),
        (mh.Ball(radius=1, dim=2), np.array([-1, 2]) / math.sqrt(5)),
        (mh.Simplex(dim=2), [0, 1]),
        (mh.Points([[0.0, 0.0], [-2.0, 0.0]]), [-1, 0]),
    ],
    ids=repr,
)
def test_a_domain_stands_for_its_convex_hull(onto, nearest):
    moved = released().projected(onto=onto)
    assert np.allclose(moved.value, nearest, atol=0.02)  # 20 standard errors
    assert repr(onto) in moved.assumptions[-1]


def test_sums_and_counts_may_be_projected_where_one_says_they_lie():
    count = mh.count(np.zeros((0, 1)), privacy=mh.PureDP(epsilon=0.01))
    assert float(count.projected(onto={"count": (0, math.inf)})) >= 0
    with pytest.raises(mh.InvalidInput, match=r"onto=\{'count': \(0, math.inf\)\}"):
        count.projected()


def test_the_interval_stays_where_the_noise_left_it():
    release = released(rho=0.01)
    moved = release.projected(onto={"a": (0, 1)}).projected(onto={"b": (5, 6)})
    assert (moved.unprojected == release.value).all()
    for mine, theirs in zip(moved.interval(), release.interval(), strict=True):
        assert (mine == theirs).all()
    again = mh.Release.from_json(moved.to_json())
    assert again.to_json() == moved.to_json()
    assert (again.unprojected == release.value).all()
    assert "unprojected" not in json.loads(release.to_json())
    assert "before the projection" in repr(moved)


def test_an_interval_covers_even_if_the_projection_turns_the_error_round():
    """Narrow in one column and wide in the other: the nearest point of a ball is far off in both.

    Each interval of 95 % misses with probability 0.05; of 400 it misses 60 by chance in fewer
    than one run of 10^13. Centred on the projected value it would miss more than 200.
    """
    data = np.tile([1.0, 0.0], (10, 1))
    domain = mh.Box([0.99, -50], [1.01, 50])
    plan = mh.plan_mean(domain=domain, n=10, privacy=mh.ZCDP(rho=0.1), weights=[1e4, 1])
    missed = beside = 0
    for _ in range(400):
        moved = plan.release(data).projected(onto=mh.Ball(radius=1.5, dim=2))
        lower, upper = moved.interval()
        missed += not lower[0] <= 1 <= upper[0]
        beside += abs(moved.value[0] - 1) > (upper[0] - lower[0]) / 2
    assert missed < 60
    assert beside > 200


@pytest.mark.parametrize(
    ("onto", "expected"),
    [
        ({"c": (0, 1)}, "not one of the columns"),
        ({"a": (1, 0)}, "below its upper end"),
        ({"a": (math.nan, 0)}, "below its upper end"),
        ({"a": 3}, "two numbers"),
        ({"a": ("low", "high")}, "two numbers"),
        ({}, "onto must be"),
        ("nonnegative", "onto must be"),
        ([0, 1], "onto must be"),
        (mh.Ball(radius=1, dim=3), "2 coordinates"),
    ],
    ids=repr,
)
def test_a_bad_set_is_refused(onto, expected):
    with pytest.raises(mh.InvalidInput, match=expected):
        released().projected(onto=onto)


@pytest.mark.parametrize(
    "mechanism",
    [
        *(
            name
            for name in MECHANISMS
            if name not in ("ellipsoid-norm-delta", "shifted-gaussian", "balanced")
            and "stair" not in name
        ),
        *("joint", "ratio", "smooth"),
        *("local-gaussian", "local-cap", "shuffle-shares", "shuffle-cap"),
    ],
)
def test_every_mechanism_for_a_public_domain_is_known_as_one(mechanism):
    """Of releases that do not say it: those of version 0.1."""
    fields = {**released().to_dict(), "mechanism": mechanism}
    for silent in (fields, {k: v for k, v in fields.items() if k != "learnt"}):
        assert not mh.Release.from_json(json.dumps(silent)).domain_is_learnt


def test_a_release_says_whether_its_domain_was_learnt():
    fields = released().to_dict()
    assert fields["learnt"] is False
    for said, learnt in (({"learnt": True}, True), ({"learnt": False, "mechanism": "new"}, False)):
        again = mh.Release.from_json(json.dumps({**fields, **said}))
        assert again.domain_is_learnt is learnt
        assert mh.Release.from_json(again.to_json()).domain_is_learnt is learnt
