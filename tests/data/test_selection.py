"""The `columns` argument, in all the ways it may be given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from muhat.data.selection import column_names
from muhat.errors import InvalidInput


@pytest.mark.parametrize(
    "columns",
    [
        ["a", "b"],
        ("a", "b"),
        np.array(["a", "b"]),
        np.array(["a", "b"], object),
        pd.Index(["a", "b"]),
        pd.Series(["a", "b"]),
        pl.Series(["a", "b"]),
        iter(["a", "b"]),
        {"a": 1, "b": 2}.keys().__iter__(),
    ],
    ids=lambda columns: type(columns).__name__,
)
def test_names_may_come_in_any_ordered_collection(columns: Any) -> None:
    names = column_names(columns)
    assert names == ("a", "b")
    assert all(type(name) is str for name in names)
    assert column_names(names) == names


def test_numbers_become_plain_integers() -> None:
    for columns in ([0, 2], np.array([0, 2]), pd.Index([0, 2]), range(0, 4, 2), [np.uint8(0), 2]):
        numbers = column_names(columns)
        assert numbers == (0, 2)
        assert all(type(number) is int for number in numbers)


def test_one_text_is_one_name_and_nothing_stays_nothing() -> None:
    assert column_names("age") == ("age",)
    assert column_names(np.str_("age")) == ("age",)
    assert column_names(None) is None


def test_a_tuple_in_a_list_is_the_name_of_a_column_with_levels() -> None:
    assert column_names([("a", "x"), "b"]) == ("('a', 'x')", "b")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (5, "got int"),
        (1.5, "got float"),
        (True, "got bool"),
        (np.array(3), "got ndarray"),
        (b"ab", "got bytes"),
        (bytearray(b"ab"), "got bytearray"),
        ({"a": 1}, "got dict"),
        ({"a", "b"}, "got set"),
        (object(), "got object"),
        (int, "got type"),
        ([], "at least one"),
        (np.array([]), "at least one"),
        ([["a"]], "nothing but"),
        (np.array([["a"]]), "nothing but"),
        ([1, "a"], "nothing but"),
        ([True], "nothing but"),
        ([1.0], "nothing but"),
        ([None], "nothing but"),
        ([b"a"], "nothing but"),
        ([pd.NA], "nothing but"),
        (["a", "a"], "repeat"),
        ([0, np.int8(0)], "repeat"),
    ],
)
def test_anything_else_is_refused(columns: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        column_names(columns)
    assert caught.value.__context__ is None
