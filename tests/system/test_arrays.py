"""Arrays and frames of every kind and layout: read for what they are, or refused by type."""

from __future__ import annotations

import copy
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hostile import (
    BALL,
    BOX,
    CANARY_NUMBER,
    CANARY_TEXT,
    DOMAINS,
    assert_no_canary,
    ledger_in,
    silence,
    steady,
)

import muhat as mh

Z = mh.ZCDP(rho=1)
ROWS = np.arange(24.0).reshape(12, 2) / 4


def answer(data, domain=BOX, **options):
    return tuple(mh.mean(data, domain=domain, privacy=Z, **options).value)


def overlapping():
    wide = np.zeros((24, 6))
    wide[::2, ::3] = ROWS
    return wide[::2, ::3]


def mapped(folder):
    np.save(folder / "d.npy", ROWS)
    return np.load(folder / "d.npy", mmap_mode="r")


def frozen():
    rows = ROWS.copy()
    rows.flags.writeable = False
    return rows


LAYOUTS = {
    "Fortran": lambda _: np.asfortranarray(ROWS),
    "strided": lambda _: overlapping(),
    "negative strides": lambda _: ROWS[::-1, ::-1].copy()[::-1, ::-1],
    "reversed": lambda _: ROWS[::-1],
    "read-only": lambda _: frozen(),
    "mapped": mapped,
    "big-endian": lambda _: ROWS.astype(">f8"),
    "transposed": lambda _: np.ascontiguousarray(ROWS.T).T,
    "broadcast columns": lambda _: np.stack([ROWS[:, 0], ROWS[:, 1]], axis=1),
    "float32": lambda _: ROWS.astype(np.float32),
    "float16": lambda _: ROWS.astype(np.float16),
    "list of lists": lambda _: ROWS.tolist(),
    "list of arrays": lambda _: list(ROWS),
    "list of tuples": lambda _: [tuple(row) for row in ROWS.tolist()],
    "decimals": lambda _: [[Decimal(x) for x in row] for row in ROWS.tolist()],
    "fractions": lambda _: [[Fraction(x) for x in row] for row in ROWS.tolist()],
    "frame of float32": lambda _: pd.DataFrame(ROWS.astype(np.float32)),
    "frame of objects of Arrow": lambda _: pd.DataFrame(ROWS).convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "nullable frame": lambda _: pd.DataFrame(ROWS).convert_dtypes(),
    "frame with an odd index": lambda _: pd.DataFrame(ROWS, index=[7] * 12),
    "polars array": lambda _: pl.DataFrame({"v": pl.Series(ROWS, dtype=pl.Array(pl.Float64, 2))}),
    "fixed-size lists": lambda _: pa.table(
        {"v": pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), 2)}
    ),
    "sliced table": lambda _: pa.concat_tables(
        [pa.table({"a": [9.0], "b": [9.0]}), pa.table({"a": ROWS[:, 0], "b": ROWS[:, 1]})]
    ).slice(1),
    "decimal column": lambda _: pa.table(
        {n: pa.array(ROWS[:, j]).cast(pa.decimal128(12, 4)) for j, n in enumerate("ab")}
    ),
}


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_answer_does_not_depend_on_the_layout(tmp_path, monkeypatch, layout, domain):
    silence(monkeypatch)
    expected = answer(ROWS, DOMAINS[domain])
    assert answer(LAYOUTS[layout](tmp_path), DOMAINS[domain]) == expected
    assert answer(LAYOUTS[layout](tmp_path), DOMAINS[domain], n=None) == expected


REFUSED = {
    "objects": np.array([CANARY_TEXT, CANARY_NUMBER], object),
    "texts": np.array([CANARY_TEXT, str(CANARY_NUMBER)]),
    "bytes": np.array([CANARY_TEXT.encode()]),
    "complex": np.array([CANARY_NUMBER + 1j]),
    "times": np.array(["2020-01-01"], "M8[s]"),
    "spans": np.array([7391743], "m8[s]"),
    "records": np.array([(CANARY_NUMBER, 1.0)], [("a", "f8"), ("b", "f8")]),
    "long floats": np.array([CANARY_NUMBER], np.longdouble),
    "no dimension": np.array(CANARY_NUMBER),
    "three dimensions": np.full((2, 2, 2), CANARY_NUMBER),
    "no columns": np.zeros((3, 0)),
    "masked": np.ma.array([CANARY_NUMBER], mask=[True]),
    "Series of texts": pd.Series([CANARY_TEXT]),
    "Series of objects": pd.Series([CANARY_NUMBER, CANARY_TEXT], dtype=object),
    "Series of times": pd.Series(pd.to_datetime(["2020-01-01"])),
    "Series of complex": pd.Series([CANARY_NUMBER + 1j]),
    "Series of periods": pd.Series(pd.period_range("2020", periods=2)),
    "Series of intervals": pd.Series(pd.interval_range(0, 2)),
    "Series of categories": pd.Series([CANARY_TEXT]).astype("category"),
    "polars lists": pl.Series("a", [[CANARY_NUMBER]]),
    "polars texts": pl.Series("a", [CANARY_TEXT]),
    "polars structs": pl.Series("a", [{"x": CANARY_NUMBER}]),
    "polars objects": pl.Series("a", [object()]),
    "polars nothing": pl.Series("a", [None]),
    "lazy polars texts": pl.LazyFrame({"a": [CANARY_TEXT]}),
    "Arrow lists": pa.array([[CANARY_NUMBER]]),
    "Arrow texts": pa.array([CANARY_TEXT]),
    "Arrow structs": pa.array([{"x": CANARY_NUMBER}]),
    "Arrow times": pa.array([7391743], pa.timestamp("s")),
    "Arrow bytes": pa.array([CANARY_TEXT.encode()]),
    "a set": {CANARY_NUMBER},
    "a frame in a list": [pd.DataFrame({"a": [CANARY_NUMBER]})][0].groupby("a"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_types_that_cannot_be_averaged_are_refused_by_type(tmp_path, kind):
    ledger = ledger_in(tmp_path)
    with pytest.raises(mh.InvalidInput) as refusal:
        mh.mean(REFUSED[kind], domain=mh.Box([0], [1]), privacy=Z, ledger=ledger)
    assert_no_canary(str(refusal.value))
    assert ledger.head.count == 0


def test_a_refusal_by_type_does_not_depend_on_the_values():
    for kind, one, other in (
        (object, [1.0, 2.0], [CANARY_TEXT, None]),
        (complex, [1.0, 2.0], [1j, math.nan]),
    ):
        messages = set()
        for values in (one, other):
            for data in (np.array(values, kind), pd.Series(np.array(values, kind))):
                with pytest.raises(mh.InvalidInput) as refusal:
                    mh.mean(data, domain=mh.Box([0], [1]), privacy=Z)
                messages.add((type(data).__name__, str(refusal.value)))
        assert len(messages) == 2


def test_odd_names_of_columns_are_names(monkeypatch):
    silence(monkeypatch)
    expected = answer(ROWS)
    pairs = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
    for names in (
        [0, 1],
        [("a", 1), None],
        pairs,
        [1.5, True],
        ["", " "],
        ["a\0", "ä"],
        ["x", "x"],
    ):
        assert answer(pd.DataFrame(ROWS, columns=names)) == expected
    assert answer(pd.DataFrame(ROWS, columns=pairs), columns=[("a", "x"), ("a", "y")]) == expected
    assert answer(pd.DataFrame(ROWS), columns=[0, 1]) == expected
    with pytest.raises(mh.InvalidInput, match="more than once"):
        answer(pd.DataFrame(ROWS, columns=["x", "x"]), mh.Box([0], [8]), columns=["x"])
    single = mh.mean(pd.Series(ROWS[:, 0], name="a"), domain={"a": (0, 8)}, privacy=Z)
    assert single.columns == ("a",)


def test_the_number_of_columns_is_never_broadcast():
    for data in (ROWS, pd.DataFrame(ROWS, columns=["a", "b"]), ROWS[:, 0]):
        for dim in (3, 2001):
            with pytest.raises(mh.InvalidInput):
                mh.mean(data, domain=mh.Ball(1, dim), privacy=Z)
    with pytest.raises(mh.InvalidInput, match="dimension"):
        mh.mean(ROWS, columns=[0], domain=BALL, privacy=Z)
    with pytest.raises(mh.InvalidInput, match="below 2"):
        mh.mean(ROWS, columns=[0, 2], domain=BALL, privacy=Z)


def test_records_of_another_length_in_a_list_are_missing(monkeypatch):
    silence(monkeypatch)
    assert answer([(1.0,), (1.0, 2.0, 3.0), 5.0, None]) == tuple(BOX.center)


@pytest.mark.parametrize("privacy", [Z, pytest.param(mh.PureDP(epsilon=1), marks=pytest.mark.slow)])
def test_many_dimensions_work_and_their_covariance_is_refused(privacy):
    data = np.ones((2, 20_001))
    for domain in (mh.Ball(1, 20_001), mh.Box(np.zeros(20_001), np.ones(20_001))):
        release = mh.mean(data, domain=domain, privacy=privacy)
        assert release.standard_error.shape == (20_001,)
        assert len(repr(release)) < 5000
        with pytest.raises(mh.InvalidInput):
            _ = release.covariance


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("n", [12, None])
def test_copies_of_plans_and_releases_are_as_good_as_they_were(domain, n):
    plan = mh.plan_mean(domain=DOMAINS[domain], n=n, privacy=mh.PureDP(epsilon=1))
    release = plan.release(ROWS)
    copies = (copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing)))
    for make in copies:
        other = make(plan)
        assert other.digest == plan.digest
        assert other.describe() == plan.describe()
        assert np.isfinite(other.release(ROWS).value).all()
        again = make(release)
        assert again.to_json() == release.to_json()
        assert repr(again) == repr(release)


def test_a_copied_ledger_object_charges_the_same_account(tmp_path):
    ledger = ledger_in(tmp_path)
    for twin in (copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))):
        mh.mean(ROWS, domain=BOX, privacy=Z, ledger=twin)
    assert ledger.spent == mh.ZCDP(rho=2)


def test_nothing_that_shows_itself_shows_data(tmp_path, monkeypatch):
    steady(monkeypatch)
    data = np.full((50, 2), CANARY_NUMBER)
    ledger = ledger_in(tmp_path)
    plan = mh.plan_mean(domain=mh.Box([0, 0], [1e9, 1e9]), n=50, privacy=mh.ZCDP(rho=1e-3))
    release = plan.release(data, ledger=ledger)
    for thing in (plan, release, ledger, plan.certificate, plan.domain, ledger.entries()[0]):
        assert_no_canary(repr(thing))
        assert_no_canary(str(thing))
        if hasattr(thing, "_repr_html_"):
            assert_no_canary(thing._repr_html_())
    assert_no_canary(release.to_json())
    assert_no_canary(pickle.dumps(release))
    assert_no_canary(pickle.dumps(plan))
    assert_no_canary(ledger.path.read_bytes())
