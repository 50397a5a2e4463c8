"""A lower bound says everything that limits it, reads well and survives JSON."""

from __future__ import annotations

import json
import math

import pytest

from muhat.bounds import LowerBound
from muhat.errors import InvalidInput


def bound(value, mechanisms="unbiased", datasets="every", **others):
    return LowerBound(
        value, mechanisms, datasets, "B1", "derived", ("n is public.",), "0.1-zCDP", **others
    )


def test_the_sentence_rounds_down():
    text = "Every unbiased 0.1-zCDP mechanism has error at least 0.01102 on every dataset."
    assert bound(0.0110299).sentence() == text
    assert "at least 0.9999 " in bound(math.nextafter(1, 0)).sentence()
    assert "at least 1 " in bound(1.0).sentence()
    assert "at least 0 " in bound(0.0).sentence()


def test_the_sentence_names_the_class():
    assert bound(1.0, "any", "some").sentence().startswith("Every 0.1-zCDP mechanism has")
    assert "additive-noise" in bound(1.0, "additive").sentence()
    assert "distribution" in bound(1.0, datasets="class").sentence()


def test_without_a_number_the_sentence_says_why():
    text = bound(None).sentence()
    assert text.startswith("No number is proved for every unbiased 0.1-zCDP mechanism")
    assert text.endswith("n is public.")


@pytest.mark.parametrize("value", [None, 0.0, 0.25])
def test_a_bound_survives_json(value):
    original = bound(value, citation="somewhere")
    assert LowerBound.from_dict(json.loads(json.dumps(original.to_dict()))) == original


def test_from_dict_refuses_missing_and_unknown_fields():
    entries = bound(1.0).to_dict()
    with pytest.raises(InvalidInput, match="odd"):
        LowerBound.from_dict({**entries, "odd": 1})
    del entries["theorem"]
    with pytest.raises(InvalidInput, match="theorem"):
        LowerBound.from_dict(entries)


@pytest.mark.parametrize(
    "arguments",
    [
        (-1.0, "unbiased", "every", "B1", "derived"),
        (math.nan, "unbiased", "every", "B1", "derived"),
        (math.inf, "unbiased", "every", "B1", "derived"),
        (1.0, "biased", "every", "B1", "derived"),
        (1.0, "unbiased", "all", "B1", "derived"),
        (1.0, "unbiased", "every", "", "derived"),
        (1.0, "unbiased", "every", "B1", "hearsay"),
    ],
)
def test_a_bound_validates_itself(arguments):
    with pytest.raises(InvalidInput):
        LowerBound(*arguments)
