"""One tidy table of whatever was released, and the same table for dataframes."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

import muhat as mh
from muhat.release.tables import NUMBERS

PROMISE = mh.ZCDP(rho=0.5)
PEOPLE = {
    "age": np.linspace(20, 60, 90),
    "pay": np.linspace(0, 9e4, 90),
    "sex": ["f", "m", "f"] * 30,
    "quantile": [1, 2, 3] * 30,
}
BOUNDS = {"age": (0, 90), "pay": (0, 1e5)}


def mean(**more):
    return mh.mean(PEOPLE, domain=BOUNDS, privacy=PROMISE, n=None, **more)


QUANTILES = mh.quantile(
    PEOPLE,
    (0.25, 0.5),
    columns=["age", "pay"],
    lower=[0, 0],
    upper=[90, 1e5],
    privacy=PROMISE,
    n=None,
)
RELEASES = {
    "mean": mean(),
    "quantiles": QUANTILES,
    "groups": mean(by="sex", groups=["f", "m", "x"]),
    "queries": mh.plan_queries(
        mh.workloads.marginals(shape=(2, 3), order=[0, 1]),
        privacy=PROMISE,
        categories={"sex": ["f", "m"], "quantile": [1, 2, 3]},
    ).release(PEOPLE),
    "groups of numbers": mean(by="quantile", groups=[1, 2, 3]),
}
SEVERAL = replace(
    RELEASES["mean"],
    answers=tuple(release.answers[0] for release in RELEASES.values()),
    names=tuple(RELEASES),
)


def plain(cells):
    """Cells of which nothing at all stands for not-a-number."""
    return [None if cell is None or cell != cell else cell for cell in list(cells)]


@pytest.mark.parametrize("name", RELEASES)
def test_every_release_has_a_table_of_its_values(name):
    release = RELEASES[name]
    table = release.table()
    assert {len(column) for column in table.values()} == {release.value.size}
    np.testing.assert_array_equal(table["value"], release.value.ravel())
    known = ~np.isnan(table["value"])
    lower, upper = release.interval(0.95)
    np.testing.assert_array_equal(table["lower"][known], lower.ravel()[known])
    np.testing.assert_array_equal(table["upper"][known], upper.ravel()[known])
    narrow = release.table(confidence=0.5)
    assert (narrow["lower"][known] >= table["lower"][known]).all()


def test_a_mean_says_what_is_known_of_each_column():
    table = RELEASES["mean"].table()
    assert list(table) == [
        *("column", "value", "standard_error", "lower", "upper"),
        *("population_lower", "population_upper", "recorded", "recorded_error"),
    ]
    assert table["column"].tolist() == ["age", "pay"]
    assert (table["population_upper"] > table["upper"]).all()


def test_quantiles_have_a_line_each_with_their_rank_error():
    table = QUANTILES.table()
    assert table["column"].tolist() == ["age", "pay"] * 2
    assert table["quantile"].tolist() == [0.25, 0.25, 0.5, 0.5]
    assert table["rank_error"].tolist() == QUANTILES.rank_error().ravel().tolist()


def test_several_parts_are_one_table_whose_first_column_names_them():
    table = SEVERAL.table()
    assert next(iter(table)) == "statistic"
    for name, release in RELEASES.items():
        chosen = table["statistic"] == name
        for column, cells in release.table().items():
            # A column of the data may be called like one of the table.
            renamed = column == "quantile" and name != "quantiles"
            found = table["quantile of the record" if renamed else column][chosen]
            assert plain(found) == plain(cells), (name, column)
    numbers = [column for column in table if column in NUMBERS]
    assert list(table)[-len(numbers) :] == [column for column in NUMBERS if column in numbers]
    assert numbers[:2] == ["value", "standard_error"]


def test_what_another_part_does_not_say_is_left_open():
    table = SEVERAL.table()
    means = table["statistic"] == "mean"
    assert table["sex"][means].tolist() == [None, None]
    assert np.isnan(table["quantile"][means]).all()
    assert np.isnan(table["rank_error"][means]).all()


@pytest.mark.parametrize("release", [*RELEASES.values(), SEVERAL], ids=[*RELEASES, "several"])
def test_dataframes_hold_the_same_table(release):
    table = release.table()
    pandas, polars, arrow = release.to_pandas(), release.to_polars(), release.to_arrow()
    assert list(pandas.columns) == polars.columns == arrow.column_names == list(table)
    for name, cells in table.items():
        assert plain(pandas[name]) == plain(cells)
        expected = plain(cells)
        if name == "quantile of the record":  # texts of one part and numbers of another
            expected = [None if cell is None else str(cell) for cell in expected]
        assert polars[name].to_list() == arrow[name].to_pylist() == expected


def test_labels_of_unlike_kinds_are_text_in_a_dataframe_of_one_kind():
    arrow = SEVERAL.to_arrow()
    assert str(arrow["quantile of the record"].type) == "string"
    assert arrow["lower"].null_count == np.isnan(SEVERAL.table()["lower"]).sum()


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_a_package_that_is_missing_is_named(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    asked = getattr(RELEASES["mean"], f"to_{package.removeprefix('py')}")
    with pytest.raises(mh.InvalidInput, match=f"needs {package}: pip install {package}"):
        asked()


def test_a_release_without_a_value_has_a_table_without_one():
    (answer,) = RELEASES["mean"].answers
    failed = replace(
        answer,
        value=np.full(2, np.nan),
        noise=None,
        certificate=None,
        squares=None,
        recorded=None,
        failure="no bin had enough records",
    )
    table = replace(RELEASES["mean"], answers=(failed,)).table()
    assert np.isnan([table[name] for name in ("value", "standard_error", "lower", "upper")]).all()
