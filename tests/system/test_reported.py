"""Attacks that once succeeded, each as small as it could be made."""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import (
    BOX,
    Again,
    arrow_table,
    assert_no_canary,
    ledger_in,
    silence,
    words_of,
    write_ipc,
)

import muhat as mh
from muhat.errors import MuhatError

Z = mh.ZCDP(rho=1)
UNIT = mh.Box([0], [1])
SIGNALING = np.array([0x7FA00000, 0x3F800000], np.uint32).view(np.float32)
"""A float32 not-a-number of the kind that makes the processor raise its flag, and 1.0."""


# Data that decide what an observer sees.


@pytest.mark.parametrize("kind", ["array", "matrix", "frame", "dict", "table", "parquet", "arrow"])
def test_a_signaling_not_a_number_raises_no_warning_and_no_failure(tmp_path, kind):
    table = pa.table({"x": SIGNALING})
    if kind == "parquet":
        pq.write_table(table, tmp_path / "d.parquet")
    if kind == "arrow":
        write_ipc(tmp_path / "d.arrow", table, stream=False)
    data = {
        "array": SIGNALING,
        "matrix": SIGNALING[:, None],
        "frame": pd.DataFrame({"x": SIGNALING}),
        "dict": {"x": SIGNALING},
        "table": table,
        "parquet": tmp_path / "d.parquet",
        "arrow": tmp_path / "d.arrow",
    }[kind]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert np.isfinite(mh.mean(data, domain=UNIT, privacy=Z).value).all()
    assert seen == []


def test_a_signaling_not_a_number_is_no_failure_in_two_columns_either():
    data = np.stack([SIGNALING, SIGNALING], axis=1)
    assert np.isfinite(mh.mean(data, domain=BOX, privacy=Z).value).all()


# Charged, and then told that it was the caller's mistake: InvalidInput means nothing was spent.


@pytest.mark.parametrize("kind", ["archive", "stream"])
def test_a_count_that_fails_after_its_charge_is_a_source_that_failed(tmp_path, kind):
    path = tmp_path / "d.csv.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"12345\n" * 10_000)[:-12])
    data = path if kind == "archive" else Again(arrow_table([(1.0, 2.0)] * 8), fail_after=1)
    ledger = ledger_in(tmp_path, "add-remove")
    with pytest.raises(mh.SourceFailed, match="The charge stays") as failure:
        mh.count(data, privacy=Z, ledger=ledger)
    assert ledger.spent == Z
    assert_no_canary(words_of(failure.value))


def test_a_parquet_file_that_repeats_a_name_is_read_or_refused_before_the_charge(tmp_path):
    table = pa.Table.from_arrays([pa.array([1.0, 2.0]), pa.array([3.0, 4.0])], names=["x", "x"])
    pq.write_table(table, tmp_path / "d.parquet")
    ledger = ledger_in(tmp_path)
    try:
        release = mh.mean(tmp_path / "d.parquet", domain=BOX, privacy=Z, ledger=ledger)
    except mh.InvalidInput:
        assert ledger.head.count == 0
    else:
        assert np.isfinite(release.value).all()


@pytest.mark.parametrize("rows", [[[1.0], [1.0]], [[1, 1], [1, 1]]])
def test_a_numpy_matrix_is_read_as_the_array_it_is(tmp_path, monkeypatch, rows):
    silence(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        matrix = np.matrix(rows)
    ledger = ledger_in(tmp_path)
    domain = mh.Box([0] * len(rows[0]), [1] * len(rows[0]))
    assert mh.mean(matrix, domain=domain, privacy=Z, ledger=ledger).value.tolist() == rows[0]


@pytest.mark.parametrize("p", [100, 1000])
@pytest.mark.parametrize("scale", [1e-3, 1e6])
def test_a_large_norm_order_gives_a_finite_error_and_a_release_that_can_be_written(p, scale):
    domain = mh.Ellipsoid([[3 * scale, scale], [scale, 2 * scale]])
    plan = mh.plan_mean(domain=domain, n=3, privacy=Z, p=p)
    assert math.isfinite(plan.expected_error)
    limit = mh.plan_mean(domain=domain, n=3, privacy=Z, p=math.inf).expected_error
    assert limit <= plan.expected_error * 1.01 <= 1.05 * limit
    json.loads(plan.release(np.ones((3, 2))).to_json())


@pytest.mark.parametrize("scale", [1e-250, 1e250])
def test_the_error_of_an_ellipsoid_of_any_size_is_proportional_to_it(scale):
    def error(size):
        domain = mh.Ellipsoid([[3 * size, size], [size, 2 * size]])
        return mh.plan_mean(domain=domain, n=3, privacy=Z, p=4).expected_error

    assert error(scale) == pytest.approx(error(1.0) * math.sqrt(scale), rel=1e-6)


def test_the_error_is_known_to_be_sound_before_the_charge(tmp_path, monkeypatch):
    plan = mh.plan_mean(domain=BOX, n=3, privacy=Z)
    ledger = ledger_in(tmp_path)

    def fail(self):
        raise RuntimeError("no certificate")

    monkeypatch.setattr(type(plan["mean"]), "certificate", property(fail))
    with pytest.raises(RuntimeError):
        plan.release(np.ones((3, 2)), ledger=ledger)
    assert ledger.head.count == 0


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
@pytest.mark.parametrize("extra", [(), ("--json",)])
def test_a_release_that_was_paid_for_can_be_printed_in_any_encoding(tmp_path, encoding, extra):
    (tmp_path / "d.csv").write_text("age\n20\n30\n")
    ledger_in(tmp_path)
    arguments = ["mean", "d.csv", "--bounds", "age=16:90", "--rho", "1", "--ledger", "budget.db"]
    result = subprocess.run(
        [sys.executable, "-c", "from muhat.cli import main; main()", *arguments, *extra],
        cwd=tmp_path,
        capture_output=True,
        # Strict as a redirected stdout is; pure ASCII is lenient by default.
        env={**os.environ, "PYTHONIOENCODING": f"{encoding}:strict"},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    if extra:
        assert json.loads(result.stdout)["n"] == 2


# Promises that were weaker than the account believes.


def test_the_same_file_twice_is_refused(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("a\n1\n")
    (tmp_path / "link.csv").symlink_to(path)
    for files in ([path, path], [path, tmp_path / "." / "d.csv"], [path, tmp_path / "link.csv"]):
        with pytest.raises(mh.InvalidInput, match=r"twice|more than once|same file"):
            mh.mean(files, domain=UNIT, privacy=Z)


def test_a_plan_cannot_charge_less_than_its_noise_keeps(tmp_path):
    plan = mh.plan_mean(domain=UNIT, n=2, privacy=mh.ZCDP(rho=100))
    ledger = ledger_in(tmp_path)
    for change in (
        {"privacy": mh.ZCDP(rho=1e-6)},
        {"neighbors": mh.Neighbors.ADD_REMOVE},
        {"contributions": 5},
    ):
        with pytest.raises((MuhatError, AssertionError, TypeError)):
            dataclasses.replace(plan, **change).release(np.ones(2), ledger=ledger)
    assert ledger.head.count == 0


def test_no_number_of_records_makes_a_certificate_better_than_possible():
    for n in (10**17, 10**200, 10**306):
        try:
            plan = mh.plan_mean(domain=UNIT, n=n, privacy=Z)
        except mh.InvalidInput:
            continue
        assert plan.certificate.ratio >= 1


# One-shot data, and data that are not what they seem.


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path):
    for name in ("d.csv", "d.parquet", "d.arrow"):
        os.mkfifo(tmp_path / name)
        program = (
            "import sys, muhat as mh\n"
            "mh.mean(sys.argv[1], domain=mh.Box([0], [1]), privacy=mh.ZCDP(rho=1))"
        )
        result = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / name)],
            capture_output=True,
            timeout=10,
            check=False,
        )
        assert b"InvalidInput" in result.stderr


def test_a_masked_array_in_a_dict_is_refused_like_any_masked_array():
    data = {"a": np.ma.array([1.0, 1.0], mask=[True, True])}
    with pytest.raises(mh.InvalidInput, match="masked"):
        mh.mean(data, domain=UNIT, privacy=Z)


def test_records_of_one_number_are_read(monkeypatch):
    silence(monkeypatch)
    assert mh.mean([[1.0], (1.0,)], domain=UNIT, privacy=Z).value.tolist() == [1.0]
    assert mh.mean([1.0, [1.0]], domain=UNIT, privacy=Z, n=None).value.tolist() == [1.0]


# Exceptions that are not muhat's own.

FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]})
NAMED = {"a": (0, 1), "b": (0, 1)}


@pytest.mark.parametrize(
    "columns",
    [np.array(["a", "b"]), FRAME.columns, pd.Series(["a", "b"]), ("a", "b"), iter(["a", "b"])],
    ids=lambda columns: type(columns).__name__,
)
def test_columns_may_be_any_sequence_of_names(columns):
    columns = list(columns) if not hasattr(columns, "__len__") else columns
    for n in (2, None):
        assert mh.mean(FRAME, columns=columns, domain=NAMED, privacy=Z, n=n).columns == ("a", "b")
    plan = mh.plan_mean(domain=NAMED, n=2, privacy=Z)
    assert plan.release(FRAME, columns=columns).columns == ("a", "b")


def test_one_column_may_be_named_by_itself():
    assert mh.mean(FRAME, columns="a", domain={"a": (0, 1)}, privacy=Z).columns == ("a",)
    frame = pd.DataFrame({"age": [1.0]})
    assert mh.mean(frame, columns="age", domain={"age": (0, 1)}, privacy=Z).columns == ("age",)


def test_bounds_may_be_named_by_numbers():
    frame = pd.DataFrame({0: [1.0], 1: [1.0]})
    assert mh.mean(frame, columns=[0], domain={0: (0, 1)}, privacy=Z).columns == ("0",)


class BytesPath:
    def __fspath__(self):
        return b"d.csv"


REFUSED = {
    "columns of an int": lambda: mh.mean(FRAME, columns=5, domain=NAMED, privacy=Z),
    "columns of a list": lambda: mh.mean(FRAME, columns=[["a"]], domain=NAMED, privacy=Z),
    "release of an int": lambda: mh.plan_mean(domain=NAMED, n=2, privacy=Z).release(FRAME, 5),
    "a complex epsilon": lambda: mh.PureDP(epsilon=np.complex128(1 + 1j)),
    "complex bounds": lambda: mh.Box(np.array([0j]), np.array([1 + 1j])),
    "a huge p": lambda: mh.plan_mean(domain=UNIT, n=5, privacy=Z, p=-(10**400)),
    "a huge n": lambda: mh.plan_mean(domain=UNIT, n=10**400, privacy=Z).describe(),
    "a very huge n": lambda: mh.plan_mean(domain=UNIT, n=10**5000, privacy=Z).digest,
    "a very negative n": lambda: mh.plan_mean(domain=UNIT, n=-(10**5000), privacy=Z),
    "many contributions": lambda: mh.plan_mean(
        domain=UNIT, n=5, privacy=Z, contributions=10**400
    ).describe(),
    "contributions beyond squares": lambda: mh.plan_mean(
        domain=UNIT, n=5, privacy=Z, contributions=10**160
    ).describe(),
    "a dimension beyond memory": lambda: mh.Ball(1, dim=10**13),
    "a dimension beyond arrays": lambda: mh.Ball(1, dim=10**20),
    "missing of an array": lambda: mh.plan_mean(
        domain=UNIT, n=5, privacy=Z, missing=np.array(["center", "drop"])
    ),
    "a target for a secret n": lambda: mh.privacy_for(domain=UNIT, n=None, error=0.1),
    "a tiny target": lambda: mh.privacy_for(domain=UNIT, n=5, error=1e-300),
    "a huge target": lambda: mh.privacy_for(domain=UNIT, n=5, error=1e300),
    "an unknown home": lambda: mh.mean("~nobody-of-that-name/d.csv", domain=UNIT, privacy=Z),
    "a long path": lambda: mh.mean("x" * 5000 + ".csv", domain=UNIT, privacy=Z),
    "a long path in a list": lambda: mh.mean(["x" * 5000 + ".csv"], domain=UNIT, privacy=Z),
    "a path of bytes": lambda: mh.mean(BytesPath(), domain=UNIT, privacy=Z),
    "a count of nothing": lambda: mh.count({}, privacy=Z),
    "polars of 128 bits": lambda: mh.mean(
        pl.Series("a", [2**100], dtype=pl.Int128), domain=UNIT, privacy=Z
    ),
    "clipping of text": lambda: UNIT.clip("x"),
    "text as bounds": lambda: mh.Box("12", "34"),
    "text as a pair of bounds": lambda: mh.plan_mean(domain={"a": "12"}, n=5, privacy=Z),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_invalid_input(case):
    with pytest.raises(mh.InvalidInput):
        REFUSED[case]()


def test_a_large_whole_p_is_a_number_like_any_other():
    with pytest.raises(mh.InvalidInput):
        mh.plan_mean(domain=UNIT, n=5, privacy=Z, p=10**400)


def test_a_series_without_a_usable_name_has_a_column():
    release = mh.mean(pd.Series([1.0, 2.0], name=pd.NA), domain=UNIT, privacy=Z)
    assert len(release.columns) == 1


def test_a_name_that_cannot_be_written_is_no_obstacle_or_refused(tmp_path):
    ledger = ledger_in(tmp_path)
    frame = {"\udc80": np.array([1.0, 2.0])}
    try:
        release = mh.mean(frame, domain=UNIT, privacy=Z, ledger=ledger)
    except mh.InvalidInput:
        assert ledger.head.count == 0
    else:
        release.to_json().encode()


@pytest.mark.parametrize("n", [2, None])
def test_only_invalid_input_comes_of_a_release_that_was_edited(n):
    fields = mh.mean(np.ones(2), domain=UNIT, privacy=Z, n=n).to_dict()
    broken = {
        "privacy": [None, 5, "x", [], [1], -1],
        "domain": [
            5,
            "x",
            [],
            {"domain": "ball", "radius": "0x1p99999", "center": ["0x1p0"]},
            {"domain": "box", "bounds": [["1/0", "1"]]},
        ],
        "value": [10**400, "x", None],
        "noise": [None, [], {}],
    }
    for name, values in broken.items():
        for value in values:
            with pytest.raises(mh.InvalidInput):
                mh.Release.from_json(json.dumps({**fields, name: value}))
    with pytest.raises(mh.InvalidInput):
        mh.Release.from_json("[" * 100_000)


def test_plan_refuses_columns_that_have_no_bounds():
    from click.testing import CliRunner

    from muhat.cli import main

    arguments = ["plan", "--columns", "agee", "--bounds", "age=0:1", "--n", "5", "--rho", "1"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "Did you mean 'age'" in result.stderr
