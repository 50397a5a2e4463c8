"""Moments and biases by the names of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import muhat as mh
from muhat.statistics.reals import by_column

TABLE = {
    "age": np.random.default_rng(1).normal(40, 15, 20_000),
    "pay": np.random.default_rng(2).normal(3e4, 9e3, 20_000),
}
WISH: dict[str, Any] = {"domain": mh.Reals(2, 1e7), "privacy": mh.ZCDP(rho=0.5), "n": 20_000}


def test_names_give_the_order_of_the_columns() -> None:
    wish = {**WISH, "weights": [1 / 15, 1 / 9e3]}
    named = mh.mean(
        TABLE,
        columns=["age", "pay"],
        moment=(2, {"pay": 9e3, "age": 15.0}),
        max_bias={"pay": 90.0, "age": 0.1},
        **wish,
    )
    listed = mh.plan_mean(moment=(2, [15.0, 9e3]), max_bias=[0.1, 90.0], missing="drop", **wish)
    assert named.plan_digest == listed.digest
    assert (listed.method.biases <= [0.1, 90.0]).all()
    assert listed.method.biases[1] > 1
    assert named.moment is not None
    assert named.moment.scales.tolist() == [15.0, 9e3]
    # Only noise is drawn here: normal, and 7 of its deviations away in both columns.
    lower, upper = named.interval(1 - 1e-5, target="population")
    assert (upper - lower < [2, 1200]).all()
    assert (lower < [40, 3e4]).all()
    assert (upper > [40, 3e4]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"moment": (2, {"age": 1.0})}, "'pay' is in one only"),
        ({"moment": (2, {"age": 1.0, "pay": 1.0}), "columns": None}, "by column needs columns"),
        ({"max_bias": {"age": 1.0, "pay": 1.0, "x": 1}}, "'x' is in one only"),
        ({"max_bias": [0.1]}, "one for each of the 2 columns"),
        ({"max_bias": [0.1, 0.0]}, "above 0 in every column, or 0 in all"),
        ({"max_bias": [0.1, -1.0]}, "must not be negative"),
    ],
)
def test_names_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    given = {"columns": ["age", "pay"], "moment": (2, 1.0), **WISH, **options}
    with pytest.raises(mh.InvalidInput, match=message):
        mh.mean(TABLE, **given)


def test_a_plan_has_no_names() -> None:
    for options in ({"moment": (2, {"a": 1.0})}, {"moment": (2, 1.0), "max_bias": {"a": 1.0}}):
        with pytest.raises(mh.InvalidInput, match="a plan in Reals has none"):
            mh.plan_mean(**WISH, **options)


def test_what_has_no_names_stays_as_it_is() -> None:
    assert by_column(None, (2, 1.0), None) == ((2, 1.0), None)
    assert by_column(None, "junk", [1]) == ("junk", [1])
