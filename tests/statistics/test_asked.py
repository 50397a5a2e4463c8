"""What is asked of a table: names, terms, checks against a schema, plain data."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import muhat as mh
from muhat.errors import InvalidInput
from muhat.statistics.asked import Asked, checked_set

PEOPLE = mh.Schema(
    {
        "salary": (0, 200_000),
        "age": (16, 90),
        "tenure": (0, 50),
        "share": (0, 10),
        "balance": (-5, 5),
        "region": ["north", "south"],
        "sex": ["f", "m"],
        "joined": mh.Bins([2000, 2010, 2020, 2030]),
        "trade": "learn",
    },
    unit="person",
    max_rows=3,
)
ROWS = mh.Schema(PEOPLE.columns)
TABLE = mh.workloads.marginals((2, 3), order=2)

ASKED = {
    "count": mh.Count(),
    "count by region and sex": mh.Count(by=["region", "sex"]),
    "count by region, sex and joined": mh.Count(by=("region", "sex", "joined")),
    "count per unit by sex": mh.Count(by="sex", per="unit"),
    "count by trade": mh.Count(by="trade", target={"standard_error": 3}),
    "sum salary by sex": mh.Sum("salary", by="sex", target={"standard_error": 5e4}),
    "sum salary per unit": mh.Sum("salary", per="unit"),
    "mean salary by region": mh.Mean(
        "salary", by="region", weight=2, target={"standard_error": 200}, n_group=2000
    ),
    "mean salary weighted by share": mh.Mean("salary", weight_column="share"),
    "mean age per unit by sex": mh.Mean("age", by="sex", per="unit"),
    "variance age": mh.Variance("age", target={"standard_error": 1.5}),
    "standard deviation age": mh.StandardDeviation("age"),
    "covariance salary, age": mh.Covariance(["salary", "age"], target={"standard_error": 9}),
    "correlation salary, age by sex": mh.Correlation(["salary", "age"], by="sex"),
    "regression salary ~ age + tenure": mh.Regression("salary~age +tenure"),
    "quantile salary by sex": mh.Quantile("salary", q=[0.25, 0.5, 1], by="sex"),
    "quantile age": mh.Quantile("age", 0, target={"rank_error": 10}),
    "queries region, joined": mh.Queries(TABLE, columns=["region", "joined"]),
    "queries joined by sex": mh.Queries(np.tri(3), columns="joined", by="sex"),
    "what is paid": mh.Mean("salary", name="what is paid"),
}


@pytest.mark.parametrize(("name", "asked"), ASKED.items(), ids=ASKED.keys())
def test_statistics_are_called_by_what_they_are_about(name, asked):
    assert asked.name == name


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
def test_what_is_asked_comes_back_from_json_and_from_a_pickle(asked):
    again = Asked.from_dict(json.loads(json.dumps(asked.to_dict())))
    assert type(again) is type(asked)
    assert again == asked
    assert hash(again) == hash(asked)
    assert pickle.loads(pickle.dumps(asked)) == asked


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
def test_what_is_shown_is_what_may_be_typed(asked):
    if isinstance(asked, mh.Queries):
        assert repr(asked).startswith("Queries(<")
    else:
        assert eval(repr(asked), vars(mh) | {"Sum": mh.Sum}) == asked


def test_a_set_is_checked_as_a_whole():
    assert checked_set(list(ASKED.values()), PEOPLE) == tuple(ASKED.values())
    assert checked_set(mh.Count(), PEOPLE) == (mh.Count(),)


def test_statistics_know_their_columns_and_axes():
    mean = ASKED["mean salary weighted by share"]
    assert (mean.columns, mean.numeric, mean.axes) == (("salary", "share"),) * 2 + ((),)
    assert ASKED["count by region and sex"].axes == ("region", "sex")
    assert ASKED["regression salary ~ age + tenure"].columns == ("salary", "age", "tenure")
    queries = ASKED["queries joined by sex"]
    assert (queries.columns, queries.numeric, queries.axes) == (("joined",), (), ("sex", "joined"))
    assert ASKED["quantile age"].q == (0.0,)
    assert ASKED["quantile age"].wish == 10
    assert mh.Count().wish is None


def test_terms_are_the_sums_that_a_statistic_is_read_off():
    assert mh.Count(by="sex").terms() == ((),)
    for kind in (mh.Sum, mh.Mean, mh.Variance, mh.StandardDeviation):
        assert set(kind("age").terms()) == {(), ("age",), ("age", "age")}
    pairs = {("age", "salary"), ("age", "age"), ("salary", "salary")}
    both = {(), ("age",), ("salary",), *pairs}
    assert set(mh.Covariance(["salary", "age"]).terms()) == both
    assert set(mh.Correlation(["age", "salary"]).terms()) == both
    assert set(mh.Regression("salary ~ age").terms()) == both
    assert set(mh.Mean("salary", weight_column="age").terms()) == both
    assert mh.Quantile("age").terms() == ()


def test_names_with_signs_stand_in_backquotes():
    asked = mh.Regression("`log-wage` ~ `a + b` + years of school")
    assert asked.response == "log-wage"
    assert asked.predictors == ("a + b", "years of school")
    assert asked.formula == "`log-wage` ~ `a + b` + years of school"
    assert mh.Regression(asked.formula) == asked


WRONG = {
    "no column": (lambda: mh.Mean(), "column"),
    "several columns": (lambda: mh.Mean(["a", "b"]), r"\[mh.Mean\(each\) for each in"),
    "a number": (lambda: mh.Variance(3), "must be the name of a column; got int"),
    "an empty name": (lambda: mh.Quantile(""), "must be the name of a column; got ''"),
    "groups by number": (lambda: mh.Count(by=3), 'as ..region", "sex".; got int'),
    "a group twice": (lambda: mh.Count(by=["sex", "sex"]), "by must not name a column twice"),
    "a column twice": (lambda: mh.Covariance(["age", "age"]), "must not name a column twice"),
    "one covariance": (lambda: mh.Covariance(["age"]), "columns must name at least 2; got 1"),
    "no weight": (lambda: mh.Count(weight=0), "weight must be greater than 0"),
    "a negative weight": (lambda: mh.Count(weight=-1), "weight must be greater than 0"),
    "a weight as text": (lambda: mh.Count(weight="2"), "weight must be a number"),
    "a target as a number": (lambda: mh.Count(target=3), '{"standard_error": 2.5}; got int'),
    "a target misspelt": (
        lambda: mh.Count(target={"standard_eror": 3}),
        "Did you mean 'standard_error'",
    ),
    "a target of nothing": (lambda: mh.Count(target={"standard_error": 0}), "greater than 0"),
    "an error of quantiles": (
        lambda: mh.Quantile("age", target={"standard_error": 3}),
        "must be one of 'rank_error'",
    ),
    "an error that nobody knows": (
        lambda: mh.Regression("a ~ b", target={"standard_error": 3}),
        "depends on the data. Give it a greater weight",
    ),
    "an error of three units": (
        lambda: mh.Covariance(["a", "b", "c"], target={"standard_error": 3}),
        "target is for two columns",
    ),
    "an error of a correlation": (
        lambda: mh.Correlation(["a", "b"], target={"standard_error": 3}),
        "depends on the data",
    ),
    "nobody in a group": (lambda: mh.Count(n_group=0), "n_group must be a whole number of at"),
    "no name": (lambda: mh.Count(name=" "), "name must be text"),
    "per row": (lambda: mh.Mean("age", per="row"), 'per must be "unit"'),
    "weights of itself": (lambda: mh.Mean("age", weight_column="age"), "another column"),
    "weights of people": (
        lambda: mh.Mean("age", weight_column="share", per="unit"),
        'leave out per="unit"',
    ),
    "per cent": (lambda: mh.Quantile("age", q=25), "got 25. 25 per cent is 0.25"),
    "a quantile below": (lambda: mh.Quantile("age", q=-0.1), "must lie between 0 and 1"),
    "a quantile twice": (lambda: mh.Quantile("age", q=[0.5, 0.5]), "must not repeat a number"),
    "no quantile": (lambda: mh.Quantile("age", q=[]), "the number of quantiles"),
    "no response": (lambda: mh.Regression("age + tenure"), "One ~ stands between"),
    "two responses": (lambda: mh.Regression("a + b ~ c"), "must be a column, ~, and columns"),
    "no predictor": (lambda: mh.Regression("a ~ "), "must be a column, ~, and columns"),
    "an interaction": (lambda: mh.Regression("a ~ b:c"), "columns of their own"),
    "a product": (lambda: mh.Regression("a ~ b*c"), "columns of their own"),
    "a function": (lambda: mh.Regression("log(a) ~ b"), "columns of their own"),
    "a difference": (lambda: mh.Regression("a ~ b - 1"), "columns of their own"),
    "an intercept": (lambda: mh.Regression("a ~ 1 + b"), "An intercept is always there"),
    "itself": (lambda: mh.Regression("a ~ a"), "formula must not name a column twice"),
    "no formula": (lambda: mh.Regression(["a", "b"]), "formula must be text"),
    "no columns": (lambda: mh.Queries(TABLE, columns=[]), "columns must name at least 1"),
    "an unknown kind": (
        lambda: Asked.from_dict({"statistic": "meen", "column": "age"}),
        "Did you mean 'mean'",
    ),
    "an unknown key": (
        lambda: Asked.from_dict({"statistic": "mean", "colum": "age"}),
        "has no field 'colum'",
    ),
}


@pytest.mark.parametrize("mistake", WRONG.values(), ids=WRONG.keys())
def test_a_mistake_is_refused_where_it_is_made(mistake):
    make, words = mistake
    with pytest.raises((InvalidInput, TypeError), match=words):
        make()


UNFIT = {
    "an unknown column": (mh.Mean("salry", by="sex"), "mean salry by sex: .*Did you mean 'salary'"),
    "an unknown group": (mh.Count(by="regoin"), "Did you mean 'region'"),
    "groups of numbers": (mh.Count(by="age"), r"declare bins, mh.Bins\(\[16, …, 90\]\)"),
    "a mean of groups": (mh.Mean("sex"), "declared by categories, and has no bounds"),
    "a mean of bins": (mh.Quantile("joined"), "declared by bins, and has no bounds"),
    "a mean of people": (mh.Mean("person"), "says whose row it is"),
    "a group's error": (
        mh.Mean("age", by="sex", target={"standard_error": 1}),
        "needs n_group, a public number of records",
    ),
    "a group's variance": (
        mh.Variance("age", by="sex", target={"standard_error": 1}),
        "needs n_group",
    ),
    "a group's covariance": (
        mh.Covariance(["age", "salary"], by="sex", target={"standard_error": 1}),
        "needs n_group",
    ),
    "negative weights": (mh.Sum("age", weight_column="balance"), "'balance' must be at least 0"),
    "weights that are no numbers": (mh.Mean("age", weight_column="sex"), "has no bounds"),
    "cells of another shape": (
        mh.Queries(TABLE, columns=["joined", "region"]),
        r"of shape \(3, 2\), the workload asks about \(2, 3\)",
    ),
    "cells that nobody knows": (
        mh.Queries(mh.workloads.identity(3), columns="trade"),
        "ask for counts by it",
    ),
    "an axis twice": (mh.Queries(np.tri(3), columns="joined", by="joined"), "twice"),
}


@pytest.mark.parametrize("case", UNFIT.values(), ids=UNFIT.keys())
def test_what_a_schema_lacks_is_said_with_the_name_of_the_statistic(case):
    asked, words = case
    with pytest.raises(InvalidInput, match=words) as refused:
        asked.checked(PEOPLE)
    assert str(refused.value).startswith(asked.name)


def test_averages_of_people_need_a_column_that_says_whose_row_it_is():
    assert mh.Mean("age", per="unit").checked(PEOPLE)
    with pytest.raises(InvalidInput, match='unit="person", say, and max_rows'):
        mh.Mean("age", per="unit").checked(ROWS)


SETS = {
    "none": ([], 'a list of statistics.*"age"..; got none'),
    "no list": ("mean", "must be a list of statistics.*got str"),
    "one twice": ([mh.Count(), mh.Count()], "'count' is asked for twice; leave one out"),
    "one name twice": (
        [mh.Quantile("age"), mh.Quantile("age", 0.9)],
        "twice; give one of them a name=",
    ),
    "a function": ([mh.mean], "got the function mean. Statistics are in capitals: mh.Mean"),
    "a class": ([mh.Count], r"got the class Count. Write mh.Count\(…\)"),
    "a word": (["mean"], "must be made of mh.Count.*got str"),
}


@pytest.mark.parametrize("case", SETS.values(), ids=SETS.keys())
def test_a_set_that_cannot_be_is_refused(case):
    statistics, words = case
    with pytest.raises(InvalidInput, match=words):
        checked_set(statistics, PEOPLE)


def test_a_set_needs_a_schema():
    with pytest.raises(InvalidInput, match=r"as mh.Schema\({.*got dict"):
        checked_set([mh.Count()], {"age": (16, 90)})
