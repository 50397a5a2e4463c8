"""Means of public groups: one promise for all, Fieller's interval for each."""

from __future__ import annotations

import numpy as np
import pytest

import muhat as mh

PROMISE = mh.ZCDP(rho=0.5)
BOUNDS = {"age": (0, 100)}
GROUPS = ["north", "south", "empty"]


def people(n=4000):
    index = np.arange(n)
    region = np.where(index % 4 == 0, "south", "north")
    region[index % 97 == 0] = "elsewhere"
    return {"age": (index * 7919) % 80 + (region == "south") * 15.0, "region": region}


def test_every_group_has_its_own_mean():
    data = people()
    release = mh.mean(data, domain=BOUNDS, privacy=PROMISE, by="region", groups=GROUPS)
    assert release.value.shape == release.standard_error.shape == (3, 1)
    for group in ("north", "south"):
        exact = data["age"][data["region"] == group].mean()
        # Six standard errors: a false alarm in 10^8.
        assert abs(float(release[group]) - exact) < 6 * release[group].standard_error[0]
    low, high = release["empty"].interval()
    assert (low[0], high[0]) == (0, 100) or high[0] - low[0] > 10


def test_the_promise_is_that_of_one_group():
    """The noise of a group is that of the whole table with a secret n."""
    data = people()
    grouped = mh.mean(data, domain=BOUNDS, privacy=PROMISE, by="region", groups=GROUPS)
    alone = mh.mean({"age": data["age"]}, columns=["age"], domain=BOUNDS, privacy=PROMISE, n=None)
    assert np.array_equal(grouped["north"].noise.sum_spread.scales, alone.noise.sum_spread.scales)
    assert grouped["north"].noise.count_scale == alone.noise.count_scale


def test_simultaneous_intervals_are_wider():
    release = mh.mean(people(), domain=BOUNDS, privacy=PROMISE, by="region", groups=GROUPS[:2])
    (low, high), (all_low, all_high) = release.interval(), release.interval(simultaneous=True)
    assert (all_low < low).all()
    assert (all_high > high).all()


def test_the_ledger_is_charged_once_for_all_groups(tmp_path):
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=mh.ZCDP(rho=1), neighbors="add-remove")
    mh.mean(people(), domain=BOUNDS, privacy=PROMISE, by="region", groups=GROUPS, ledger=ledger)
    assert ledger.spent == mh.ZCDP(rho=0.5)
    assert len(ledger.entries()) == 1


def test_a_release_of_groups_prints_and_survives_json():
    release = mh.mean(people(), domain=BOUNDS, privacy=PROMISE, by="region", groups=GROUPS)
    text = repr(release)
    assert "Private means by region" in text
    assert "south" in text
    assert "<table>" in release._repr_html_()
    again = mh.GroupRelease.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert list(release.table()) == [
        "region",
        "column",
        "value",
        "standard_error",
        "lower",
        "upper",
    ]
    with pytest.raises(mh.InvalidInput):
        mh.GroupRelease.from_json("{}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": None}, "groups must list"),
        ({"by": None}, "by="),
        ({"n": 4000}, "secret"),
        ({"by": "county"}, "county"),
        ({"groups": ["a", "a"]}, "repeat"),
        ({"groups": []}, "at least one"),
        ({"neighbors": "substitute"}, "add-remove"),
        ({"domain": mh.Ball(radius=1, dim=1), "columns": ["age"]}, "box"),
        ({"domain": mh.Box([0], [100])}, "columns"),
        ({"privacy": mh.PureDP(epsilon=1), "contributions": 2}, "normal noise"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    options = {"domain": BOUNDS, "privacy": PROMISE, "by": "region", "groups": GROUPS, **change}
    with pytest.raises(mh.InvalidInput, match=message):
        mh.mean(people(), **options)


def test_unknown_groups_are_not_listed():
    release = mh.mean(people(), domain=BOUNDS, privacy=PROMISE, by="region", groups=GROUPS)
    assert "elsewhere" not in repr(release) + release.to_json()
    with pytest.raises(mh.InvalidInput, match="not one of the groups"):
        _ = release["elsewhere"]
