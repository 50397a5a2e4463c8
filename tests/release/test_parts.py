"""A release of one part is like its answer; one of several parts has a release of each by name."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import muhat as mh

PROMISE = mh.ZCDP(rho=0.5)
PEOPLE = {"age": np.linspace(20, 60, 90), "sex": ["f", "m", "f"] * 30}
MEAN = mh.mean(PEOPLE, domain={"age": (0, 90)}, privacy=PROMISE, n=None)
MEDIAN = mh.quantile(PEOPLE, 0.5, columns=["age"], lower=0, upper=90, privacy=PROMISE, n=None)
BY_SEX = mh.mean(
    PEOPLE, domain={"age": (0, 90)}, privacy=PROMISE, by="sex", groups=["f", "m"], n=None
)
TABLE = mh.plan_queries(mh.workloads.identity(3), privacy=PROMISE).release(np.ones(3, int))
SEVERAL = replace(
    MEAN,
    answers=(*MEAN.answers, *MEDIAN.answers, *BY_SEX.answers, *TABLE.answers),
    names=("mean age", "median age", "mean age by sex", "cells"),
)


def test_every_call_returns_a_release_with_the_attributes_of_its_answer():
    for release in (MEAN, MEDIAN, BY_SEX, TABLE):
        assert type(release) is mh.Release
        (answer,) = release.answers
        assert (release.value == answer.value).all()
        assert release.interval(0.9)[0].tolist() == answer.interval(0.9)[0].tolist()
        assert release.cost == PROMISE


@pytest.mark.parametrize(
    ("release", "name", "words"),
    [
        (MEAN, "rank_error", "a mean has no rank_error"),
        (MEDIAN, "domain", "a quantile has no domain"),
        (BY_SEX, "q", "a table of means has no q"),
        (TABLE, "columns", "a table of answers has no columns"),
        (SEVERAL, "value", r"this release has several parts: .* release\['mean age'\]"),
    ],
)
def test_what_an_answer_lacks_is_said_in_words(release, name, words):
    assert not hasattr(release, name)
    with pytest.raises(AttributeError, match=words):
        getattr(release, name)


def test_a_part_of_several_is_a_release_by_its_name():
    assert float(SEVERAL["mean age"]) == float(MEAN)
    assert repr(SEVERAL["median age"]) == repr(MEDIAN)
    assert float(SEVERAL["mean age by sex"]["f"]) == float(BY_SEX["f"])
    assert [name for name, _ in SEVERAL] == list(SEVERAL.names)
    assert all(part.cost == PROMISE for part in SEVERAL.releases)
    assert [float(each) for each in BY_SEX.releases] == BY_SEX.value[:, 0].tolist()
    with pytest.raises(mh.InvalidInput, match="Did you mean 'mean age'"):
        SEVERAL["mean ag"]
    with pytest.raises(mh.InvalidInput, match="not one of"):
        SEVERAL[["mean age"]]  # what has no hash is no name


def test_a_mean_has_no_groups_to_go_through():
    with pytest.raises(TypeError, match="a mean has no groups"):
        iter(MEAN)
    with pytest.raises(mh.InvalidInput, match="not one of"):
        MEAN["age"]
    assert float(replace(MEAN, names=("age",))["age"]) == float(MEAN)


def test_several_parts_are_printed_one_after_the_other_and_the_promise_once():
    text = repr(SEVERAL)
    assert text.startswith("mean age · 0.5-zCDP · n secret\n")
    assert text.count("0.5-zCDP · n secret") == 1
    assert SEVERAL._repr_html_().count("<table>") == 4
    for name in SEVERAL.names:
        assert f"{name} · " in text
        assert f"<b>{name} · " in SEVERAL._repr_html_()
    described = SEVERAL.describe()
    assert "noisy comparisons" in described
    for line in SEVERAL.assumptions:
        assert described.count(f"- {line}") == 1


def test_several_parts_survive_json():
    again = mh.Release.from_json(SEVERAL.to_json())
    assert again.to_json() == SEVERAL.to_json()
    assert repr(again) == repr(SEVERAL)
    fields = json.loads(SEVERAL.to_json())
    assert fields["schema"] == "muhat.releases/1"
    assert fields["privacy"] == {"kind": "zcdp", "rho": 0.5}
    assert [each["name"] for each in fields["answers"]] == list(SEVERAL.names)
    assert "privacy" not in fields["answers"][0]
    fields["answers"] = []
    with pytest.raises(mh.InvalidInput):
        mh.Release.from_json(json.dumps(fields))


def test_parts_without_names_or_about_other_records_are_refused():
    with pytest.raises(mh.InvalidInput, match="a name for each"):
        replace(SEVERAL, names=())
    with pytest.raises(mh.InvalidInput, match="a name for each"):
        replace(SEVERAL, names=("a", "a", "b", "c"))
    with pytest.raises(mh.InvalidInput, match="a name for each"):
        replace(SEVERAL, answers=())
    other = replace(MEDIAN.answers[0], contributions=2)
    with pytest.raises(mh.InvalidInput, match="the same records"):
        replace(MEAN, answers=(*MEAN.answers, other), names=("a", "b"))


def test_only_what_may_be_impossible_is_projected():
    for release in (MEDIAN, BY_SEX):
        with pytest.raises(mh.InvalidInput, match="not projected"):
            release.projected()
    assert (TABLE.projected().value >= 0).all()
    with pytest.raises(mh.InvalidInput, match="leave onto out"):
        TABLE.projected(onto={"0": (0, 1)})
