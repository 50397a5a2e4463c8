"""Bad input through Python: one sentence, a hint, nothing spent, no word of the data."""

from __future__ import annotations

import gzip
import io
import math
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hostile import (
    CANARY_NUMBER,
    CANARY_TEXT,
    Again,
    assert_no_canary,
    assert_one_sentence_with_a_hint,
    ledger_in,
    words_of,
    write_ipc,
)

import muhat as mh

ROWS = [{"salary": CANARY_NUMBER, "age": 40.0, "name": CANARY_TEXT}] * 6
BOUNDS = {"salary": (0, 1e7), "age": (16, 90)}
RHO = mh.ZCDP(rho=1)


@pytest.fixture
def files(tmp_path):
    """Sound and broken files, full of canaries."""
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table, tmp_path / "d.parquet", compression="none")
    whole = (tmp_path / "d.parquet").read_bytes()
    (tmp_path / "footer.parquet").write_bytes(whole[:-12] + b"\xff\xff\xff\x7fPAR1")
    flipped = bytearray(whole)
    for place in range(len(whole) - 200, len(whole) - 10, 3):
        flipped[place] ^= 0xFF
    (tmp_path / "flipped.parquet").write_bytes(bytes(flipped))
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "garbage.parquet").write_bytes(CANARY_TEXT.encode() * 50)
    (tmp_path / "empty.parquet").write_bytes(b"")
    write_ipc(tmp_path / "d.arrow", table, stream=False)
    whole = (tmp_path / "d.arrow").read_bytes()
    (tmp_path / "cut.arrow").write_bytes(whole[: len(whole) // 3])
    (tmp_path / "garbage.feather").write_bytes(CANARY_TEXT.encode() * 50)
    (tmp_path / "empty.arrow").write_bytes(b"")
    orc.write_table(table, tmp_path / "d.orc")
    whole = (tmp_path / "d.orc").read_bytes()
    (tmp_path / "cut.orc").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "footer.orc").write_bytes(whole[:-40] + bytes(39) + whole[-1:])
    (tmp_path / "garbage.orc").write_bytes(CANARY_TEXT.encode() * 50)
    (tmp_path / "empty.orc").write_bytes(b"")
    text = pd.DataFrame(ROWS).to_csv(index=False).encode()
    (tmp_path / "d.csv").write_bytes(text)
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "blank.csv").write_bytes(b"\n\n")
    (tmp_path / "header.csv").write_bytes(b"salary,age\n")
    (tmp_path / "quote.csv").write_bytes(b'"salary,age\n1,2\n')
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(text)[:-9])
    (tmp_path / "plain.csv.gz").write_bytes(text)
    (tmp_path / "d.txt").write_bytes(text)
    (tmp_path / "folder.csv").mkdir()
    return tmp_path


BAD_FILES = {
    "missing.parquet": "does not exist",
    "missing.csv": "does not exist",
    "no*.csv": "no file matches",
    "footer.parquet": "damaged",
    "flipped.parquet": "damaged",
    "cut.parquet": "damaged",
    "garbage.parquet": "damaged",
    "empty.parquet": "damaged",
    "cut.arrow": "damaged",
    "garbage.feather": "damaged",
    "empty.arrow": "damaged",
    "cut.orc": "damaged",
    "footer.orc": "damaged",
    "garbage.orc": "damaged",
    "empty.orc": "damaged",
    "empty.csv": "header",
    "blank.csv": "header",
    "header.csv": "no rows",
    "quote.csv": "header",
    "d.csv.gz": "damaged",
    "plain.csv.gz": "damaged",
    "d.txt": "must end in one of",
    "folder.csv": "directory",
    "": "directory",
}

BAD_ARGUMENTS = {
    "unknown column": ({"columns": ["salry", "age"], "domain": "box"}, "Did you mean 'salary'"),
    "unknown bounds": ({"domain": {"salry": (0, 1)}}, "Did you mean 'salary'"),
    "column without bounds": ({"columns": ["salary", "age"], "domain": {"age": (0, 1)}}, "bounds"),
    "bounds without column": ({"columns": ["age"]}, "not in columns"),
    "column twice": ({"columns": ["age", "age"], "domain": "box"}, "repeat"),
    "too few columns": ({"columns": ["age"], "domain": "box"}, "dimension"),
    "text column": ({"columns": ["age", "name"], "domain": "box"}, "cannot be averaged"),
    "reversed": ({"domain": {"age": (90, 16)}}, "above its upper bound"),
    "NaN bound": ({"domain": {"age": (math.nan, 16)}}, "finite"),
    "infinite bound": ({"domain": {"age": (0, math.inf)}}, "finite"),
    "no pair": ({"domain": {"age": 16}}, "pairs"),
    "no domain": ({"domain": None}, "where records lie"),
    "no promise": ({"privacy": None}, "promise"),
    "a number as promise": ({"privacy": 1.0}, "promise"),
    "n zero": ({"n": 0}, "at least 1"),
    "n negative": ({"n": -6}, "at least 1"),
    "n fractional": ({"n": 6.5}, "whole number"),
    "n NaN": ({"n": math.nan}, "whole number"),
    "n as text": ({"n": "6"}, "whole number"),
    "n True": ({"n": True}, "whole number"),
    "n too small": ({"n": 5}, "another number of rows"),
    "n too large": ({"n": 7}, "another number of rows"),
    "drop in a ball": (
        {"missing": "drop", "domain": mh.Ball(radius=9, dim=2), "columns": ["salary", "age"]},
        "public n",
    ),
    "drop by the norm of an ellipsoid": (
        {"missing": "drop", "mechanism": "ellipsoid-norm", "privacy": mh.PureDP(epsilon=1)},
        "complete records",
    ),
    "unknown missing": ({"missing": "centre"}, "Did you mean 'center'"),
    "neighbors of secret n": ({"neighbors": "add-remove"}, "must be 'substitute'"),
    "neighbors of public n": ({"n": None, "neighbors": "substitute"}, "must be 'add-remove'"),
    "unknown neighbors": ({"neighbors": "substitution"}, "Did you mean 'substitute'"),
    "p below two": ({"p": 1}, "at least 2"),
    "p NaN": ({"p": math.nan}, "at least 2"),
    "no contributions": ({"contributions": 0}, "at least 1"),
    "negative weights": ({"weights": [-1, 1]}, "weights"),
    "too many weights": ({"weights": [1, 1, 1]}, "weights"),
    "unknown mechanism": ({"mechanism": "laplace"}, "gaussian"),
    "too strong a promise": ({"privacy": mh.ZCDP(rho=1e-300)}, "larger"),
    "another kind": ({"privacy": mh.ApproxDP(epsilon=1, delta=1e-6)}, "cannot be charged"),
}


def refused(folder, data, expected, *, error=mh.InvalidInput, ledger=None, **options):
    """Check a refusal in every respect."""
    ledger = ledger or ledger_in(folder)
    before = ledger.path.read_bytes()
    arguments = {"domain": BOUNDS, "privacy": RHO, "ledger": ledger, **options}
    if arguments["domain"] == "box":
        arguments["domain"] = mh.Box([0, 16], [1e7, 90])
    with pytest.raises(error, match=expected) as refusal:
        mh.mean(data, **arguments)
    assert_one_sentence_with_a_hint(refusal.value)
    assert_no_canary(words_of(refusal.value, frames=not isinstance(data, list | pd.DataFrame)))
    assert ledger.path.read_bytes() == before
    assert sorted(path.name for path in folder.glob("*-journal")) == []
    return refusal.value


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused_before_the_charge(files, name):
    path = str(files / name) if name else ""
    refused(files, path, BAD_FILES[name])


@pytest.mark.parametrize("name", [name for name in BAD_FILES if name not in ("header.csv",)])
@pytest.mark.parametrize("secret", [False, True])
def test_a_refusal_of_a_file_shows_nothing_but_its_name(files, name, secret):
    call = {"n": None} if secret else {}
    with pytest.raises((mh.InvalidInput, mh.SourceFailed)) as refusal:
        mh.mean(str(files / name), domain=BOUNDS, privacy=RHO, **call)
    assert_no_canary(words_of(refusal.value))


@pytest.mark.parametrize("file", ["d.parquet", "d.arrow", "d.orc", "d.csv"])
@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_a_bad_argument_is_refused_before_the_charge(files, file, case):
    options, expected = BAD_ARGUMENTS[case]
    if case == "text column" and file == "d.csv":
        # Every column of a CSV file is text; cells that are no numbers are missing.
        release = mh.mean(files / file, domain={"name": (0, 1)}, privacy=mh.ZCDP(rho=1e-4))
        assert release.recorded.value[0] < 20 * release.recorded.standard_error[0]
        return
    refused(files, files / file, expected, **options)


@pytest.mark.parametrize("case", ["unknown column", "text column", "n too small", "reversed"])
def test_a_bad_argument_is_refused_for_frames_too(tmp_path, case):
    options, expected = BAD_ARGUMENTS[case]
    refused(tmp_path, pd.DataFrame(ROWS), expected, **options)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mh.PureDP(epsilon=0),
        lambda: mh.PureDP(epsilon=-1),
        lambda: mh.PureDP(epsilon=math.nan),
        lambda: mh.PureDP(epsilon=math.inf),
        lambda: mh.PureDP(epsilon="one"),
        lambda: mh.PureDP(epsilon=None),
        lambda: mh.ZCDP(rho=0),
        lambda: mh.ZCDP(rho=math.nan),
        lambda: mh.GDP(mu=-0.0),
        lambda: mh.ApproxDP(epsilon=1, delta=0),
        lambda: mh.ApproxDP(epsilon=1, delta=1),
        lambda: mh.ApproxDP(epsilon=1, delta=-1e-6),
        lambda: mh.ApproxDP(epsilon=1, delta=math.nan),
        lambda: mh.ApproxDP(epsilon=math.nan, delta=1e-6),
        lambda: mh.Box([1, 0], [0, 1]),
        lambda: mh.Box([2], [1]),
        lambda: mh.Box([math.nan], [1]),
        lambda: mh.Box([0], [math.inf]),
        lambda: mh.Box([0], [1, 2]),
        lambda: mh.Box([], []),
        lambda: mh.Box([0], [1e-200]),
        lambda: mh.Box([0], [1e200]),
        lambda: mh.Box([10**400], [10**401]),
        lambda: mh.Box([None], [1]),
        lambda: mh.Box(["a"], ["b"]),
        lambda: mh.Ball(radius=-1e-9, dim=2),
        lambda: mh.Ball(radius=math.nan, dim=2),
        lambda: mh.Ball(radius=1, dim=0),
        lambda: mh.Ball(radius=1, dim=2, center=[0]),
        lambda: mh.Ellipsoid([[1, 2], [3, 4]]),
        lambda: mh.Ellipsoid([[1, 2], [2, 1]]),
        lambda: mh.Ellipsoid([[-1]]),
        lambda: mh.Ellipsoid([[math.nan]]),
        lambda: mh.Ellipsoid([[1, 2]]),
    ],
)
def test_promises_and_domains_refuse_what_they_cannot_be(make):
    with pytest.raises(mh.InvalidInput) as refusal:
        make()
    assert_one_sentence_with_a_hint(refusal.value)


ONE_SHOT = {
    "generator": lambda folder: (row for row in ROWS),
    "iterator": lambda folder: iter([1.0, 2.0]),
    "text": lambda folder: io.StringIO(CANARY_TEXT),
    "reader": lambda folder: pa.RecordBatchReader.from_batches(
        pa.schema([("x", pa.float64())]), []
    ),
    "Parquet reader": lambda folder: pq.ParquetFile(folder / "d.parquet"),
    "Arrow reader": lambda folder: pa.ipc.open_file(str(folder / "d.arrow")),
}


@pytest.mark.parametrize("kind", ONE_SHOT)
def test_readers_that_can_be_read_once_are_refused(files, kind):
    data = ONE_SHOT[kind](files)
    refused(files, data, "more than once|must be a numpy array")
    if hasattr(data, "close"):
        data.close()


def test_a_stream_that_comes_only_once_is_refused(tmp_path):
    class Once(Again):
        def __arrow_c_stream__(self, requested_schema=None):
            if self.fail_after == "spent":
                raise RuntimeError(CANARY_TEXT)
            self.fail_after = "spent"
            return self.table.to_reader().__arrow_c_stream__()

    refused(tmp_path, Once(pa.Table.from_pylist(ROWS)), "more than once")


def test_no_rows_with_a_public_number_is_refused(tmp_path):
    for data in (pd.DataFrame({"salary": [], "age": []}, dtype=float), np.zeros((0, 2))):
        ledger = ledger_in(tmp_path, name=f"{type(data).__name__}.db")
        columns = {"domain": "box"} if isinstance(data, np.ndarray) else {}
        refused(tmp_path, data, "no rows", ledger=ledger, **columns)
        refused(tmp_path, data, "another number of rows", ledger=ledger, n=3, **columns)


def test_a_ledger_of_another_relation_or_kind_is_refused(files):
    for n, relation in ((None, "substitute"), (6, "add-remove")):
        ledger = ledger_in(files, relation, name=f"{relation}.db")
        refused(files, files / "d.parquet", "neighbors must be", ledger=ledger, n=n)
    pure = mh.Ledger.create(files / "pure.db", budget=mh.PureDP(epsilon=1), neighbors="substitute")
    refused(files, files / "d.csv", "cannot be charged", ledger=pure)


def test_a_budget_that_is_too_small_is_refused(files):
    ledger = ledger_in(files, rho=1.5)
    mh.mean(files / "d.csv", domain=BOUNDS, privacy=RHO, ledger=ledger)
    error = refused(
        files, files / "d.csv", "nothing was spent", error=mh.BudgetExceeded, ledger=ledger
    )
    assert "0.5-zCDP" in str(error)
    assert len(ledger.entries()) == 1


def test_a_missing_or_broken_ledger_is_refused(files):
    (files / "text.db").write_text(CANARY_TEXT * 100)
    (files / "empty.db").write_text("")
    for name, expected in {
        "none.db": "muhat ledger create",
        "text.db": "not a muhat ledger",
        "empty.db": "not a ledger",
        "folder.csv": "not a ledger",
        "": "must be a path",
    }.items():
        for data in (files / "d.csv", files / "missing.csv"):
            path = files / name if name else ""
            with pytest.raises(mh.InvalidInput, match=expected) as refusal:
                mh.mean(data, domain=BOUNDS, privacy=RHO, ledger=path)
            assert_no_canary(words_of(refusal.value))
    assert not (files / "none.db").exists()
    with pytest.raises(mh.InvalidInput, match="must be a path"):
        mh.mean(files / "d.csv", domain=BOUNDS, privacy=RHO, ledger=5)


def test_a_read_only_ledger_is_refused_and_nothing_is_released(files):
    # Outside pytest's folder, which an ordinary user may not enter.
    folder = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    try:
        ledger_in(folder)
        data = np.array([[CANARY_NUMBER, 40.0]] * 6)
        box = mh.Box([0, 16], [1e7, 90])
        (folder / "budget.db").chmod(0o444)
        folder.chmod(0o755)
        if root:
            os.seteuid(65534)
        try:
            with pytest.raises(mh.InvalidInput, match="nothing was spent") as refusal:
                mh.mean(data, domain=box, privacy=RHO, ledger=folder / "budget.db")
        finally:
            if root:
                os.seteuid(0)
        assert_no_canary(words_of(refusal.value, frames=False))
        assert mh.Ledger.open(folder / "budget.db").head.count == 0
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def test_a_conversion_that_is_not_proved_is_refused(files):
    gaussian = mh.Ledger.create(files / "g.db", budget=mh.GDP(mu=1), neighbors="substitute")
    refused(files, files / "d.csv", "cannot be charged", ledger=gaussian)
    for text in ("pure", "approximate", "gdp "):
        with pytest.raises(mh.InvalidInput):
            mh.ZCDP(rho=1).to(text)


def test_every_call_is_charged_also_the_same_call_again(files):
    ledger = ledger_in(files, rho=10)
    plan = mh.plan_mean(domain=BOUNDS, n=6, privacy=RHO)
    first = [plan.release(files / "d.csv", ledger=ledger) for _ in range(3)]
    assert ledger.spent == mh.ZCDP(rho=3)
    assert len({release.ledger_head["hash"] for release in first}) == 3
    assert len({tuple(release.value) for release in first}) == 3
