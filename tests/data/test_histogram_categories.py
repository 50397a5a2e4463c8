"""Categories: what may be declared, what is refused, and that values never decide anything."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muhat.data.categories import Categories, categories_of
from muhat.data.coding import Coder
from muhat.errors import InvalidInput
from muhat.records.columns import column_of


def one(cells: Any, missing: str = "other") -> Categories:
    (made,) = categories_of({"x": cells}, missing=missing)
    return made


@pytest.mark.parametrize(
    "labels",
    [
        ["f", "m"],
        ("f", "m"),
        np.array(["f", "m"]),
        np.array(["f", "m"], object),
        pd.Index(["f", "m"]),
        pd.Series(["f", "m"]),
        pl.Series(["f", "m"]),
        iter(["f", "m"]),
        {"labels": ["f", "m"]},
        OrderedDict(labels=["f", "m"], missing="other"),
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_labels_may_come_in_any_ordered_collection(labels: Any) -> None:
    made = one(labels)
    assert made.labels == ("f", "m", "other")
    assert (made.size, made.fallback, made.kind) == (3, 2, "text")
    assert made.keeps_every_record


def test_numbers_and_booleans_become_those_of_python() -> None:
    for labels in ([1, 2], np.array([1, 2], np.uint8), np.array([1.0, 2.0]), range(1, 3)):
        made = one(labels, "drop")
        assert made.labels == (1, 2)
        assert all(type(label) is int for label in made.labels)
        assert not made.keeps_every_record
    assert one([0.5, 1], "drop").labels == (0.5, 1)
    made = one(np.array([True, False]), "drop")
    assert made.labels == (True, False)
    assert made.kind == "boolean"


def test_codes_and_bins_name_their_cells() -> None:
    assert one(3).labels == (0, 1, 2, "other")
    assert one({"size": 3}, "drop").labels == (0, 1, 2)
    assert one({"bins": [0, 18, 65.5, 120]}).labels == (
        "[0, 18)",
        "[18, 65.5)",
        "[65.5, 120]",
        "other",
    )
    assert one({"bins": [-math.inf, 0, "inf"]}, "drop").labels == ("(-inf, 0)", "[0, inf)")


def test_a_label_other_is_the_cell_of_other_values() -> None:
    made = one(["other", "f"])
    assert made.labels == ("other", "f")
    assert made.fallback == 0
    assert one(["other", "f"], "drop").fallback is None


def test_a_default_is_a_label_or_the_position_of_a_bin() -> None:
    assert one({"labels": ["f", "m"], "default": "m"}).fallback == 1
    assert one({"size": 5, "default": 4}).fallback == 4
    assert one({"bins": [0, 1, 2], "default": 1}).fallback == 1
    assert one({"labels": [True, False], "default": False}).fallback == 1
    assert one({"labels": ["f", "m"], "default": "m"}, "drop").size == 2


@pytest.mark.parametrize(
    "cells",
    [
        ["f", "m"],
        ["other", "é", "\0", ""],
        [2**60 + 1, -3, 0.5],
        [True, False],
        7,
        {"bins": [-math.inf, 0, 0.1, 2**70, math.inf]},
        {"bins": [0, 1, 2], "default": 1},
        {"labels": [3, 1], "default": 1},
        {"labels": [False, True], "default": True},
        {"size": 4, "missing": "drop"},
    ],
)
def test_categories_survive_json(cells: Any) -> None:
    made = one(cells)
    text = json.dumps(made.to_dict(), allow_nan=False)
    assert Categories.from_dict(json.loads(text)) == made
    assert hash(made) == hash(one(cells))


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([], "at least one label"),
        (["a", "a"], "must not repeat a label; got 'a'"),
        ([1, 1.0], "must not repeat a label; got 1"),
        ([1, "1"], "not mixed"),
        ([True, 1], "not mixed"),
        ([True, "true"], "not mixed"),
        (["a", None], "got NoneType"),
        ([math.nan], "finite"),
        ([math.inf], "finite"),
        ([b"a"], "got bytes"),
        ([["a"]], "got list"),
        (["\ud800"], "UTF-8"),
        ([2**101], r"2\^100"),
        ("fm", "must be a list; got str"),
        ({"f", "m"}, "must be a list; got set"),
        (0, "at least 1"),
        (True, "at least 1"),
        (2**31, "at most"),
        (1.5, "must be a list; got float"),
        (None, "must be a list; got NoneType"),
        ({}, "one of labels, bins and size"),
        ({"labels": ["a"], "size": 3}, "one of labels, bins and size"),
        ({"label": ["a"]}, "Did you mean 'labels'"),
        ({"bins": [1]}, "at least two edges"),
        ({"bins": [1, 1]}, "increasing edges"),
        ({"bins": [2, 1]}, "increasing edges"),
        ({"bins": [1, math.nan]}, "finite"),
        ({"bins": ["1", "2"]}, "numbers for edges"),
        ({"bins": [False, True]}, "numbers for edges"),
        ({"labels": ["a"], "missing": "centre"}, "must be one of 'other', 'drop'"),
        ({"labels": ["a"], "missing": "drop", "default": "a"}, "not both"),
        ({"labels": ["a"], "default": "b"}, "one of the labels"),
        ({"labels": [1], "default": True}, "one of the labels"),
        ({"bins": [0, 1], "default": 1}, "at most 0"),
    ],
)
def test_bad_categories_are_refused_with_a_hint(cells: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        one(cells)
    assert caught.value.__cause__ is None


def test_other_arguments_are_refused_with_a_hint() -> None:
    with pytest.raises(InvalidInput, match="must be a dict"):
        categories_of(["f"])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="at least one column"):
        categories_of({})
    with pytest.raises(InvalidInput, match="by text or by number"):
        categories_of({1.5: ["a"]})
    with pytest.raises(InvalidInput, match="missing"):
        categories_of({"x": ["a"]}, missing="center")


class Colour(StrEnum):
    RED = "red"


class Odd:
    """An object whose every answer is an error."""

    def fail(self, *_: object) -> Any:
        raise RuntimeError("canary-55120")

    __eq__ = __bool__ = __float__ = __int__ = __index__ = __len__ = __str__ = __repr__ = fail
    __hash__ = fail  # type: ignore[assignment]


def codes(cells: Any, values: list[Any], missing: str = "drop") -> list[int]:
    coder = Coder(one(cells, missing))
    made = coder.of_objects(values).values.tolist()
    # One by one or together, plain or as an array of objects: the same.
    assert made == [coder.of_objects([value]).values[0] for value in values]
    boxed = np.empty(len(values), object)
    boxed[:] = values
    assert made == coder.of_array(boxed).values.tolist()
    return made


def test_objects_are_matched_by_what_they_are() -> None:
    text = ["red", Colour.RED, np.str_("red"), b"red", np.bytes_(b"red"), " red", "red\0", "RED"]
    assert codes(["red"], text) == [0, 0, 0, 0, 0, 1, 1, 1]
    numbers = [1, 1.0, True, np.float32(1), np.uint8(1), Decimal(1), Fraction(1), "1", b" 1.0\t"]
    assert codes([5, 1], numbers) == [1] * len(numbers)
    assert codes(["1"], numbers) == [1, 1, 1, 1, 1, 1, 1, 0, 1]
    truth = [True, "true", "True", "TRUE", b"TRUE", 1, "1", "tRUE", 2, False, "0", None]
    assert codes([False, True], truth) == [1, 1, 1, 1, 1, 1, 1, 2, 2, 0, 0, 2]


def test_no_object_can_raise() -> None:
    hostile = [
        None,
        math.nan,
        math.inf,
        -math.inf,
        10**400,
        -(10**400),
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("1e999999"),
        "1e999",
        "\ud800",
        3 + 1j,
        [],
        {},
        object(),
        Odd(),
        pd.NA,
        pd.NaT,
        np.datetime64("2020-01-01"),
        np.array([1, 2]),
        b"\xff",
        bytearray(b"a"),
    ]
    for cells in (["a"], [5], [True], 5, {"bins": [0, 5]}, {"bins": [-1, 5], "default": 0}):
        coder = Coder(one(cells, "drop"))
        made = coder.of_objects(hostile).values
        assert set(made.tolist()) == {coder.absent}


def test_whole_numbers_are_exact_at_any_size() -> None:
    big = 2**60
    labels = [big + 1, big, -big - 1, 3]
    for values in (
        np.array([big, big + 1, big + 2, -big - 1, 3]),
        np.array([big, big + 1, big + 2, -big - 1, 3], object),
    ):
        made = Coder(one(labels, "drop")).of_array(values).values.tolist()
        assert made == [1, 0, 4, 2, 3]
    unsigned = np.array([2**64 - 1, 2**63, 2**53 + 1, 2**53], np.uint64)
    assert Coder(one([2**63, 2**53], "drop")).of_array(unsigned).values.tolist() == [2, 0, 2, 1]
    edges = {"bins": [big, big + 2, 2**63]}
    assert Coder(one(edges, "drop")).of_array(
        np.array([big - 1, big, big + 1, big + 2, 2**63, 2**63 + 1], np.uint64)
    ).values.tolist() == [2, 0, 0, 1, 1, 2]
    exact = {"bins": [0, big]}
    assert Coder(one(exact, "drop")).of_array(
        np.array([big - 1, big, big + 1])
    ).values.tolist() == [
        0,
        0,
        1,
    ]


def test_bins_are_half_open_and_the_last_is_closed() -> None:
    values = np.array([-1, 0, 17.999, 18, 65, 120, np.nextafter(120, 200), np.nan, np.inf, -np.inf])
    made = Coder(one({"bins": [0, 18, 65, 120]})).of_array(values).values.tolist()
    assert made == [3, 0, 0, 1, 2, 2, 3, 3, 3, 3]
    wide = Coder(one({"bins": [-math.inf, 0, math.inf]}))
    assert wide.of_array(values).values.tolist() == [0, 1, 1, 1, 1, 1, 1, 2, 2, 2]


numbers = st.one_of(
    st.integers(-4, 12),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-2, 2).map(lambda offset: 2**53 + offset),
)


@given(st.lists(numbers, min_size=1, max_size=8, unique=True), st.lists(numbers, max_size=12))
def test_listed_whole_numbers_are_found_exactly(labels: list[int], values: list[int]) -> None:
    expected = [labels.index(value) if value in labels else len(labels) for value in values]
    coder = Coder(one(labels, "drop"))
    assert coder.of_array(np.array(values, np.int64)).values.tolist() == expected
    assert coder.of_objects(values).values.tolist() == expected


@given(
    st.lists(numbers | st.floats(-10, 10), min_size=2, max_size=8, unique=True).map(sorted),
    st.lists(numbers, max_size=12),
    st.lists(st.floats(width=64), max_size=12),
)
def test_bins_agree_with_comparisons(
    edges: list[float], whole: list[int], floats: list[float]
) -> None:
    coder = Coder(one({"bins": edges}, "drop"))

    def bin_of(value: float) -> int:
        if not math.isfinite(value):
            return len(edges) - 1
        exact = [Fraction(edge) for edge in edges]
        for index in range(len(edges) - 1):
            if exact[index] <= Fraction(value) < exact[index + 1]:
                return index
        return len(edges) - 2 if Fraction(value) == exact[-1] else len(edges) - 1

    assert coder.of_array(np.array(whole, np.int64)).values.tolist() == list(map(bin_of, whole))
    assert coder.of_objects(whole).values.tolist() == list(map(bin_of, whole))
    found = coder.of_numbers(column_of(np.array(floats, np.float64)))
    assert found.values.tolist() == list(map(bin_of, floats))


def test_codes_take_as_few_bytes_as_they_can() -> None:
    for size, kind in ((255, np.uint8), (256, np.uint16), (70_000, np.uint32)):
        made = Coder(one(size, "drop")).of_array(np.array([0, size - 1, size, -1, 0.5])).values
        assert made.dtype == kind
        assert made.tolist() == [0, size - 1, size, size, size]
