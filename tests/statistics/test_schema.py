"""The public facts about a table: what they mean, and what is refused with its fix."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import muhat as mh
from muhat.data.categories import categories_of
from muhat.errors import InvalidInput

PEOPLE = mh.Schema(
    {
        "salary": (0, 200_000),
        "age": (16.0, 90.5),
        "region": ["north", "south"],
        "joined": mh.Bins([2000, 2010, float("inf")]),
        "trade": "learn",
    },
    unit="person",
    max_rows=3,
    complete=["region", "salary"],
    one_row_per="joined",
)


def test_columns_are_what_was_declared():
    assert PEOPLE.bounds("salary") == (0, 200_000)
    assert PEOPLE.bounds("age") == (16, 90.5)
    assert PEOPLE.categories("region").labels == ("north", "south")
    assert PEOPLE.categories("joined").labels == ("[2000, 2010)", "[2010, inf)")
    assert [name for name in PEOPLE.columns if PEOPLE.is_learnt(name)] == ["trade"]
    assert (PEOPLE.unit, PEOPLE.max_rows, PEOPLE.one_row_per) == ("person", 3, "joined")


def test_records_of_other_values_are_in_no_group_unless_the_column_is_complete():
    assert PEOPLE.categories("joined").missing == "drop"
    assert PEOPLE.categories("region").missing == "none"
    assert [name for name in PEOPLE.columns if PEOPLE.is_complete(name)] == ["salary", "region"]


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("cells", [["f", "m"], [True, False], [3, 1.5], mh.Bins([0, 1, 2.5])])
def test_groups_are_those_that_queries_would_have(cells, complete):
    schema = mh.Schema({"a": cells}, complete=complete)
    typed = {"bins": cells.edges} if isinstance(cells, mh.Bins) else cells
    rule = "none" if complete else "drop"
    assert (schema.categories("a"),) == categories_of({"a": typed}, missing=rule)


def test_true_completes_every_column_but_those_that_are_learnt():
    schema = mh.Schema({"a": (0, 1), "b": "learn", "c": ["x"]}, complete=True)
    assert schema.complete == ("a", "c")
    assert mh.Schema({"a": (0, 1)}, complete=False).complete == ()
    assert mh.Schema({"a": (0, 1)}, complete="a").complete == ("a",)


def test_a_schema_comes_back_from_json_and_from_a_pickle():
    again = mh.Schema.from_dict(json.loads(json.dumps(PEOPLE.to_dict())))
    assert again == PEOPLE
    assert hash(again) == hash(PEOPLE)
    assert pickle.loads(pickle.dumps(PEOPLE)) == PEOPLE
    assert mh.Bins.from_dict(mh.Bins([0, 1.5, "inf"]).to_dict()) == mh.Bins([0, 1.5, "inf"])


def test_numbers_are_compared_by_what_they_are():
    one, other = mh.Schema({"a": (0, 1)}), mh.Schema({"a": (np.float32(0.0), np.int64(1))})
    assert one == other
    assert json.dumps(one.to_dict()) == json.dumps(other.to_dict())
    assert one != mh.Schema({"a": [0, 1]})


def test_bounds_beyond_floats_stay_whole():
    assert mh.Schema({"id": (0, 2**60 + 1)}).bounds("id") == (0, 2**60 + 1)


def test_what_is_shown_is_what_may_be_typed():
    typed = eval(repr(PEOPLE), {"Schema": mh.Schema, "Bins": mh.Bins})
    assert typed == PEOPLE
    many = mh.Schema({"code": list(range(1000))})
    assert repr(many) == "Schema({'code': [0, 1, 2, 3, 4, 5, …]})"


def test_text_and_page_say_whose_rows_are_hidden():
    assert "at most 3 of them enter, one for each joined" in PEOPLE.describe()
    assert "as many as is learnt" in mh.Schema({}, unit="id", max_rows="learn").describe()
    assert "Every row is a person." in mh.Schema({"<b>": (0, 1)})._repr_html_()
    assert "<b>" not in mh.Schema({"<b>": (0, 1)})._repr_html_().split("<table>")[1]


REFUSED = {
    "no dict": (lambda: mh.Schema([("a", 1)]), "must be a dict"),
    "a name that is no text": (lambda: mh.Schema({0: (0, 1)}), "a column must be text; got int"),
    "bounds reversed": (
        lambda: mh.Schema({"a": (1, 0)}),
        "got 1 before 0. Are they swapped",
    ),
    "one point": (lambda: mh.Schema({"a": (1, 1)}), "A constant needs no release"),
    "three numbers": (lambda: mh.Schema({"a": (0, 1, 2)}), "two numbers, .low, high.; got 3"),
    "text in a tuple": (lambda: mh.Schema({"sex": ("f", "m")}), r"Categories are a list, in \["),
    "no numbers": (lambda: mh.Schema({"a": (None, 1)}), "must be numbers; got NoneType"),
    "booleans": (lambda: mh.Schema({"a": (False, True)}), "must be numbers; got bool"),
    "no end": (lambda: mh.Schema({"a": (0, float("inf"))}), "must be finite"),
    "too wide": (
        lambda: mh.Schema({"a": (-1e308, 1e308)}),
        "the bounds of 'a': .*another unit",
    ),
    "mixed": (lambda: mh.Schema({"a": ["f", 1]}), "all text, all numbers or all booleans"),
    "repeated": (lambda: mh.Schema({"a": ["f", "m", "f"]}), "not repeat a label; got 'f' twice"),
    "one number twice": (lambda: mh.Schema({"a": [1, 1.0]}), "must not repeat a label"),
    "none": (lambda: mh.Schema({"a": []}), "at least one label"),
    "bins that overlap": (lambda: mh.Bins([0, 10, 5]), "increasing edges; got 10 before 5"),
    "one edge": (lambda: mh.Bins([0]), "at least two edges"),
    "another word": (lambda: mh.Schema({"a": "learm"}), "Did you mean 'learn'?"),
    "a set": (lambda: mh.Schema({"a": {"f", "m"}}), "categories as a list.*got set"),
    "an array": (lambda: mh.Schema({"a": np.array([1, 2])}), "not what occurs in the data"),
    "no rows": (lambda: mh.Schema({}, unit="id", max_rows=0), "max_rows must be a whole number of"),
    "rows as text": (lambda: mh.Schema({}, unit="id", max_rows="3"), "or \"learn\"; got '3'"),
    "rows of nobody": (lambda: mh.Schema({}, max_rows=3), 'Add unit="person"'),
    "a unit of any rows": (lambda: mh.Schema({}, unit="id"), 'Add max_rows=3, say, or max_rows="l'),
    "no name of a unit": (lambda: mh.Schema({}, unit=3, max_rows=1), "unit must be the name"),
    "a unit with bounds": (
        lambda: mh.Schema({"id": (0, 9)}, unit="id", max_rows=1),
        "Leave it out of the columns",
    ),
    "complete misspelt": (
        lambda: mh.Schema({"salary": (0, 1)}, complete=["salry"]),
        "Did you mean 'salary'",
    ),
    "complete and learnt": (lambda: mh.Schema({"a": "learn"}, complete="a"), "are learnt"),
    "complete of 3": (lambda: mh.Schema({"a": (0, 1)}, complete=3), "True or a list of columns"),
    "one row of nobody": (lambda: mh.Schema({"a": [1]}, one_row_per="a"), 'Add unit="person"'),
    "one row per number": (
        lambda: mh.Schema({"a": (0, 1)}, one_row_per="a", unit="id", max_rows=2),
        "declare bins",
    ),
    "one row per nothing": (
        lambda: mh.Schema({"year": [1, 2]}, one_row_per="yaer", unit="id", max_rows=2),
        "Did you mean 'year'",
    ),
    "a key misspelt": (
        lambda: mh.Schema.from_dict({"columns": {}, "units": "id"}),
        "Did you mean 'unit'",
    ),
    "no columns": (lambda: mh.Schema.from_dict({}), "a schema is not well described"),
    "two declarations": (
        lambda: mh.Schema.from_dict({"columns": {"a": {"bounds": [0, 1], "bins": [0, 1]}}}),
        "one of bounds, categories and bins",
    ),
    "another declaration": (
        lambda: mh.Schema.from_dict({"columns": {"a": {"bonds": [0, 1]}}}),
        "Did you mean 'bounds'",
    ),
    "a declaration that is no list": (
        lambda: mh.Schema.from_dict({"columns": {"a": {"bounds": 3}}}),
        "must be a list; got int",
    ),
    "an unknown column": (lambda: PEOPLE.bounds("salry"), "Did you mean 'salary'"),
    "bounds of groups": (lambda: PEOPLE.bounds("region"), "by categories, and has no bounds"),
    "bounds of bins": (lambda: PEOPLE.bounds("joined"), "by bins, and has no bounds"),
    "groups of numbers": (
        lambda: PEOPLE.categories("salary"),
        r"declare bins, mh.Bins\(\[0, …, 200_000\]\)",
    ),
    "groups nobody knows": (lambda: PEOPLE.categories("trade"), "are learnt; nobody knows"),
    "the unit itself": (lambda: PEOPLE.column("person"), "nothing is published about it"),
}


@pytest.mark.parametrize("mistake", REFUSED.values(), ids=REFUSED.keys())
def test_a_mistake_is_a_sentence_with_its_fix(mistake):
    make, words = mistake
    with pytest.raises(InvalidInput, match=words) as refused:
        make()
    assert len(str(refused.value)) < 320
