"""A poison record is a record: it falls in one cell or in none, and nothing tells which."""

from __future__ import annotations

import datetime
import decimal
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hostile import (
    CANARY_NUMBER,
    CANARY_TEXT,
    Again,
    ledger_in,
    outcome,
    silence,
    write_ipc,
    write_parquet,
)

import muhat as mh

W = mh.workloads
RHO = mh.ZCDP(rho=1)
CLEAN = [("f", 20.0), ("m", 40.0), ("f", 70.0), ("m", 65.0), ("f", 18.0)]
CATEGORIES = {"sex": ["f", "m"], "age": {"bins": [0, 18, 65, 120]}}
MODES = {
    "other": {"missing": "other", "neighbors": "add-remove"},
    "drop": {"missing": "drop", "neighbors": "add-remove"},
    "replaced": {"missing": "other", "neighbors": "substitute"},
}

TYPED = [
    (None, 20.0),
    ("f", None),
    (None, None),
    ("", math.nan),
    ("f", math.nan),
    ("f", math.inf),
    ("m", -math.inf),
    ("f", -0.0),
    ("f", 5e-324),
    ("f", -5e-324),
    ("f", 1e308),
    ("F", 20.0),
    (" f", 20.0),
    ("f\0", 20.0),
    ("nan", 120.0),
    ("other", 120.00000000000001),
    ("'; DROP TABLE", 0.0),
    ("\U0001f600" * 50, 1.0),
    ("x" * 100_000, CANARY_NUMBER),
    (CANARY_TEXT, CANARY_NUMBER),
]
"""Records of the right types."""

OBJECTS = [
    10**400,
    -(10**400),
    True,
    b"f",
    b"\xff\xfe",
    bytearray(b"f"),
    [],
    ["f"],
    {"f": "f"},
    {1, 2},
    (1, "f"),
    np.array([1, 2]),
    np.array("f"),
    np.float64("nan"),
    np.datetime64("NaT"),
    np.ma.masked,
    pd.NA,
    pd.NaT,
    decimal.Decimal("sNaN"),
    decimal.Decimal("1e999999"),
    datetime.date(2020, 1, 1),
    object(),
    math.nan,
    math.inf,
    None,
    1j,
    "\ud800",
]
"""What a column of objects may hold besides."""


class Loud:
    """An object that quotes a canary whatever it is asked."""

    def _raise(self, *others):
        raise RuntimeError(CANARY_TEXT)

    __eq__ = __lt__ = __gt__ = __float__ = __int__ = __index__ = __str__ = __repr__ = _raise
    __bool__ = __len__ = __iter__ = __hash__ = _raise


class LoudText(str):
    """A text that does the same."""

    __hash__ = __eq__ = __str__ = __repr__ = encode = Loud._raise


class LoudFloat(float):
    """A number that does the same."""

    __float__ = __eq__ = __lt__ = __gt__ = __repr__ = __hash__ = Loud._raise


def arrow(rows):
    sexes, ages = [row[0] for row in rows], [row[1] for row in rows]
    return pa.table({"sex": pa.array(sexes, pa.string()), "age": pa.array(ages, pa.float64())})


def cell(value):
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"'


def write_csv(path, rows):
    lines = ["sex,age", *(",".join(map(cell, row)) for row in rows)]
    path.write_bytes(("\n".join(lines) + "\n").encode())
    return path


def of_objects(columns):
    """A frame whose columns are of objects, whatever pandas would make of them."""
    frame = {}
    for name, values in columns.items():
        array = np.empty(len(values), object)
        array[:] = values
        frame[name] = pd.Series(array, dtype=object)
    return pd.DataFrame(frame)


SOURCES = {
    "dict": lambda rows, _: {"sex": [r[0] for r in rows], "age": [r[1] for r in rows]},
    "pandas": lambda rows, _: pd.DataFrame(
        {
            "sex": pd.array([r[0] for r in rows], "string"),
            "age": pd.array([r[1] for r in rows], "Float64"),
        }
    ),
    "pandas of objects": lambda rows, _: of_objects(
        {"sex": [r[0] for r in rows], "age": [r[1] for r in rows]}
    ),
    "polars": lambda rows, _: pl.from_arrow(arrow(rows)),
    "Arrow table": lambda rows, _: arrow(rows),
    "dictionary": lambda rows, _: arrow(rows).set_column(
        0, "sex", arrow(rows)["sex"].combine_chunks().dictionary_encode()
    ),
    "Arrow stream": lambda rows, _: Again(arrow(rows)),
    "Parquet file": lambda rows, folder: write_parquet(folder / "d.parquet", arrow(rows)),
    "Arrow file": lambda rows, folder: write_ipc(folder / "d.arrow", arrow(rows), stream=False),
    "CSV file": lambda rows, folder: write_csv(folder / "d.csv", rows),
}


def poisoned(row):
    return [*CLEAN[:2], row, *CLEAN[3:]]


def plan_of(mode):
    options = MODES[mode]
    extra = 0 if options["missing"] == "drop" else 1
    workload = W.marginals((2 + extra, 3 + extra), order=[1, 2])
    return mh.plan_queries(workload, privacy=RHO, categories=CATEGORIES, **options)


def seen(call):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = outcome(call)
    assert [str(each.message) for each in heard] == []
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", SOURCES)
def test_a_poison_record_has_the_outcome_of_its_neighbour(tmp_path, source, mode):
    plan = plan_of(mode)
    expected = seen(lambda: plan.release(SOURCES[source](CLEAN, tmp_path)))
    assert expected[0] == "Release"
    for row in TYPED:
        assert (
            seen(lambda row=row: plan.release(SOURCES[source](poisoned(row), tmp_path))) == expected
        )


@pytest.mark.parametrize("mode", MODES)
def test_every_source_puts_the_same_poison_into_the_same_cell(tmp_path, monkeypatch, mode):
    silence(monkeypatch)
    plan = plan_of(mode)
    for row in TYPED:
        answers = {
            tuple(np.round(plan.release(make(poisoned(row), tmp_path)).value, 6).tolist())
            for make in SOURCES.values()
        }
        assert len(answers) == 1, row
        (answer,) = answers
        kept = (row[0] in ("f", "m")) and row[1] is not None and 0 <= row[1] <= 120
        total = 5 if mode != "drop" or kept else 4
        table = np.array(answer[: plan.workload.cells[0]])
        assert round(table.sum()) == total


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["dict", "pandas of objects"])
@pytest.mark.parametrize("column", [0, 1])
def test_objects_of_any_kind_are_values_like_others(tmp_path, monkeypatch, kind, mode, column):
    silence(monkeypatch)
    plan = plan_of(mode)
    for value in [*OBJECTS, Loud(), LoudText("f"), LoudFloat(20)]:
        rows = poisoned((value, 20.0) if column == 0 else ("f", value))
        data = {name: [row[j] for row in rows] for j, name in enumerate(("sex", "age"))}
        if kind != "dict":
            data = of_objects(data)
        found = seen(lambda data=data: plan.release(data))
        assert found[0] == "Release", (type(value), found)
        assert found == seen(lambda: plan.release(SOURCES[kind](CLEAN, tmp_path)))


HISTOGRAMS = {
    "a dict": [
        {0: 3},
        {},
        {0: math.nan},
        {0: math.inf},
        {0: None},
        {0: -0.0},
        {0: 10**400},
        {0: -(10**400)},
        {0: b"3"},
        {0: True},
        {0: [1]},
        {0: "3"},
        {0: 1j},
        {math.nan: 1},
        {math.inf: 1},
        {None: 1},
        {-1: 5},
        {10**400: 5},
        {(0, 0): 1, 0: 2, 1.0: 4, (0, True): 3},
        {(0,): 1},
        {((0,), 1): 1},
        {"0": 1, b"0": 1},
        {frozenset(): 1},
        {0: decimal.Decimal("sNaN")},
        {0: Loud()},
        {0: np.float16("inf")},
        {0: pd.NA},
        {0: np.longdouble("1e4000")},
        {CANARY_TEXT: CANARY_NUMBER},
    ],
    "an array": [
        np.array([1, 2, 3, 4]),
        np.array([-1, -(2**63), 2**63 - 1, 0]),
        np.array([2**63 - 1] * 4),
        np.array([-(2**63)] * 4),
        np.zeros(4, int),
    ],
    "a sparse array": [
        sp.coo_array(np.array([[1, 2, 3, 4]])),
        sp.coo_array(
            (np.array([2**63 - 1] * 3), (np.zeros(3, int), np.zeros(3, int))), shape=(1, 4)
        ),
        sp.coo_array(
            (np.array([-(2**63)] * 3), (np.zeros(3, int), np.zeros(3, int))), shape=(1, 4)
        ),
        sp.coo_array((1, 4), dtype=np.int64),
        sp.coo_array((np.zeros(5, int), (np.zeros(5, int), np.zeros(5, int))), shape=(1, 4)),
    ],
}


@pytest.mark.parametrize("kind", HISTOGRAMS)
def test_a_histogram_of_any_counts_has_the_same_outcome(kind):
    for workload in (
        W.identity((2, 2)),
        W.marginals((2, 2), order=1),
        W.kron(W.prefix(2), W.prefix(2)),
    ):
        for privacy in (RHO, mh.PureDP(epsilon=1)):
            plan = mh.plan_queries(workload, privacy=privacy)
            first, *others = [
                seen(lambda plan=plan, data=data: plan.release(data)) for data in HISTOGRAMS[kind]
            ]
            assert first[0] == "Release"
            assert all(other == first for other in others)


GROUPED = {
    "domain": {"age": (0, 100)},
    "privacy": mh.ZCDP(rho=100),  # groups of a few records are not too few
    "by": "sex",
    "groups": ["f", "m"],
}
NOISY_FIELDS = ("value", "standard_error", "interval", "noise", "ledger_head")
NOISY_BESIDE = ("recorded", "squares", "population_interval", "certificate")


def means(data, **options):
    def call():
        release = mh.mean(data, **{**GROUPED, **options})
        assert np.isfinite(release.value).all()
        fields = release.to_dict()
        for each in fields["releases"]:
            for noisy in NOISY_FIELDS:
                each.pop(noisy)
            for noisy in NOISY_BESIDE:
                each.pop(noisy, None)
        return type("Public", (), {"to_dict": lambda self: {**fields, **NOISY}})()

    return call


NOISY = dict.fromkeys(("value", "standard_error", "interval", "noise", "ledger_head"))


@pytest.mark.parametrize("missing", ["center", "drop"])
@pytest.mark.parametrize("source", [each for each in SOURCES if "objects" not in each])
def test_a_poison_record_has_the_outcome_of_its_neighbour_in_groups(tmp_path, source, missing):
    expected = seen(means(SOURCES[source](CLEAN, tmp_path), missing=missing))
    assert expected[0] == "Public", expected
    for row in TYPED:
        assert seen(means(SOURCES[source](poisoned(row), tmp_path), missing=missing)) == expected


@pytest.mark.parametrize("missing", ["center", "drop"])
def test_objects_of_any_kind_are_records_of_groups(missing):
    for value in [*OBJECTS, Loud(), LoudText("f"), LoudFloat(20)]:
        for row in ((value, 20.0), ("f", value)):
            rows = poisoned(row)
            data = {name: [each[j] for each in rows] for j, name in enumerate(("sex", "age"))}
            found = seen(means(data, missing=missing))
            assert found[0] == "Public", (type(value), found)


@pytest.mark.parametrize("source", ["dict", "Parquet file", "CSV file"])
def test_a_poison_record_costs_what_its_neighbour_costs(tmp_path, source):
    ledger = ledger_in(tmp_path, "add-remove")
    plan = plan_of("other")
    for row in (CLEAN[2], TYPED[2], TYPED[4], TYPED[-1]):
        data = SOURCES[source](poisoned(row), tmp_path)
        plan.release(data, ledger=ledger)
        mh.mean(data, ledger=ledger, **GROUPED)
    entries = [entry.to_dict() for entry in ledger.entries()]
    for entry in entries:
        for chained in ("id", "time", "spent", "previous", "hash"):
            entry.pop(chained)
    assert len(entries) == 8
    assert all(entry == entries[j % 2] for j, entry in enumerate(entries))


@pytest.mark.parametrize("rows", [[], [(None, None)], [(CANARY_TEXT, math.nan)]])
@pytest.mark.parametrize("source", SOURCES)
def test_no_records_or_none_that_count_are_a_release(tmp_path, source, rows):
    plan = plan_of("drop")
    data = SOURCES[source](rows, tmp_path)
    assert seen(lambda: plan.release(data)) == seen(
        lambda: plan.release(SOURCES[source](CLEAN, tmp_path))
    )


def test_bytes_that_are_no_text_and_ragged_lines_are_records_of_a_file(tmp_path, monkeypatch):
    silence(monkeypatch)
    path = tmp_path / "d.csv"
    lines = [b"f,20", b"\xff\xfe\x00,30", b"f", b"f,20,9", b"", b"m,\xff", b'"f,20', b"f,20"]
    for mode in MODES:
        plan = plan_of(mode)
        path.write_bytes(b"sex,age\n" + b"\n".join(lines) + b"\n")
        release = plan.release(path)
        path.write_bytes(b"sex,age\n" + b"\n".join([b"f,20"] * 8) + b"\n")
        assert seen(lambda plan=plan: plan.release(path))[0] == "Release"
        assert np.isfinite(release.value).all()
