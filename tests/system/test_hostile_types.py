"""Types decide before the charge, values never: every mechanism on columns of odd Arrow types."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hostile import ledger_in

import muhat as mh

RHO = mh.ZCDP(rho=1)


def mean_over(domain, **options):
    return lambda data, ledger: mh.mean(
        data, domain=domain, columns=["x"], privacy=RHO, ledger=ledger, n=3, **options
    )


def counts_of(categories):
    cells = categories if isinstance(categories, int) else 2
    plan = mh.plan_queries(
        mh.workloads.identity(cells),
        privacy=RHO,
        neighbors="add-remove",
        categories={"x": categories},
    )
    return lambda data, ledger: plan.release(data, ledger=ledger)


MEANS = {
    "box": mean_over(mh.Box([0], [1])),
    "ball": mean_over(mh.Ball(radius=1, dim=1)),
    "simplex": mean_over(mh.Simplex(1, origin=True)),
    "points": mean_over(mh.Points(np.array([[0.0], [1.0]]))),
    "lp ball": mean_over(mh.LpBall(p=3, radius=1, dim=1)),
    "ellipsoid": mean_over(mh.Ellipsoid(np.array([[1.0]]))),
    "reals": mean_over(mh.Reals(1, 1e6), insist=True),
    "low bias": mean_over(mh.Reals(1, 1e6), max_bias=1000, moment=(2, 1.0)),
    "quantile": lambda data, ledger: mh.quantile(
        data, 0.5, columns=["x"], lower=0, upper=1, privacy=RHO, n=3, ledger=ledger
    ),
}
COUNTS = {
    "bins": counts_of({"bins": [0, 1, 2]}),
    "codes": counts_of(3),
    "listed numbers": counts_of([0.5, 2**70]),
    "words": counts_of(["a", "b"]),
    "booleans": counts_of([False, True]),
}


def decimals(kind, bits, scale, values, precision):
    """Decimals of any scale, also of those that Arrow makes of no number."""
    raw = b"".join(value.to_bytes(bits // 8, "little", signed=True) for value in values)
    return pa.Array.from_buffers(kind(precision, scale), len(values), [None, pa.py_buffer(raw)])


LARGEST = [2**255 - 1, -(2**255), 1]


@pytest.mark.parametrize("mechanism", [*MEANS, *COUNTS])
def test_decimals_beyond_all_floats_are_refused_by_their_type(tmp_path, mechanism):
    call = {**MEANS, **COUNTS}[mechanism]
    ledger = ledger_in(tmp_path, "add-remove" if mechanism in COUNTS else "substitute")
    for scale in (-232, -400, -(2**31), 1001, 2**31 - 1):
        for values in (LARGEST, [0, 0, 0]):
            table = pa.table({"x": decimals(pa.decimal256, 256, scale, values, 76)})
            with pytest.raises(mh.InvalidInput, match="decimal256"):
                call(table, ledger)
    assert not ledger.entries()


@pytest.mark.parametrize("mechanism", [*MEANS, *COUNTS])
def test_the_largest_and_smallest_decimals_are_records_like_others(tmp_path, mechanism):
    if mechanism == "words":
        pytest.skip("numbers have no words: refused by type")
    call = {**MEANS, **COUNTS}[mechanism]
    ledger = ledger_in(tmp_path, "add-remove" if mechanism in COUNTS else "substitute")
    for scale in (-231, 1000):
        for kind, bits, precision in ((pa.decimal256, 256, 76), (pa.decimal64, 64, 18)):
            values = [value >> (256 - bits) for value in LARGEST]
            call(pa.table({"x": decimals(kind, bits, scale, values, precision)}), ledger)
    assert len(ledger.entries()) == 4


HOSTILE = {
    "durations": pa.array([1, 2, 3], pa.duration("s")),
    "days": pa.array([1, 2, 3], pa.date32()),
    "intervals": pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval()),
    "nulls": pa.nulls(3),
    "lists": pa.array([[1.0], None, [2.0, 3.0]]),
    "lists of none": pa.array([[], [], None], pa.list_(pa.float64(), 0)),
    "lists of lists": pa.array([[[1.0]], None, [[2.0]]], pa.list_(pa.list_(pa.float64(), 1), 1)),
    "lists of codes": pa.FixedSizeListArray.from_arrays(pa.array([1, 2, 1]).dictionary_encode(), 1),
    "records": pa.array([{"a": 1}, None, {"a": 2}]),
    "maps": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    "runs": pa.RunEndEncodedArray.from_arrays([2, 3], [1.0, 2.0]),
    "unions": pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [pa.array([1, 2, 3])]),
    "bytes": pa.array([b"12", b"\xff\xfe", None], pa.binary(2)),
    "an extension": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float64(), (1,)), pa.array([[1.0]] * 3, pa.list_(pa.float64(), 1))
    ),
    "codes of numbers": pa.array([2**63 - 1, None, 1]).dictionary_encode(),
    "codes of nothing": pa.DictionaryArray.from_arrays(pa.array([0, 1, 1]), pa.array([1.0, None])),
    "codes of decimals": pa.array([Decimal("1.5"), None, Decimal(2)]).dictionary_encode(),
    "codes of words": pa.array(["a", None, "x"]).dictionary_encode(),
    "whole numbers": pa.array([2**64 - 1, 0, None], pa.uint64()),
    "pandas sparse": pd.DataFrame({"x": pd.arrays.SparseArray([1.0, 0.0, 2.0])}),
    "pandas periods": pd.DataFrame({"x": pd.period_range("2020", periods=3)}),
    "pandas complex": pd.DataFrame({"x": [1j, 2.0, 3.0]}),
    "pandas objects": pd.DataFrame({"x": [Decimal("sNaN"), 10**400, object()]}),
    "pandas categories": pd.DataFrame({"x": pd.Categorical([1, 2, None])}),
    "polars wide": pl.DataFrame({"x": [2**126, -(2**126), None]}, schema={"x": pl.Int128}),
    "polars durations": pl.DataFrame({"x": [datetime.timedelta(1)] * 3}),
    "polars objects": pl.DataFrame({"x": pl.Series([object()] * 3, dtype=pl.Object)}),
    "polars words": pl.DataFrame({"x": ["a", "b", "a"]}, schema={"x": pl.Enum(["a", "b"])}),
    "huge integers": {"x": [10**400, -(10**400), Decimal("sNaN")]},
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_column_of_any_type_is_read_or_refused_before_the_charge(tmp_path, kind):
    data = HOSTILE[kind]
    data = pa.table({"x": data}) if isinstance(data, pa.Array) else data
    for mechanisms, neighbors in ((MEANS, "substitute"), (COUNTS, "add-remove")):
        folder = tmp_path / neighbors
        folder.mkdir()
        ledger = ledger_in(folder, neighbors)
        for mechanism, call in mechanisms.items():
            if mechanism in ("lp ball", "ellipsoid", "codes"):
                continue  # read as the ball, the real line and the bins are
            before = len(ledger.entries())
            try:
                call(data, ledger)
            except mh.InvalidInput:
                assert len(ledger.entries()) == before, mechanism
