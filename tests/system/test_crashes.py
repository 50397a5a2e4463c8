"""Crashes, changes and broken readers in the middle of a release: the charge stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import (
    BOX,
    CANARY_NUMBER,
    CANARY_TEXT,
    Again,
    arrow_table,
    assert_no_canary,
    ledger_in,
    words_of,
    write_ipc,
    write_parquet,
)

import muhat as mh
from muhat.ledger import Ledger

ROWS = [(CANARY_NUMBER, 2.0), (3.0, 4.0)] * 4

CHILD = """
import sys, time
import pyarrow as pa
import muhat as mh

class Slow:
    def __arrow_c_stream__(self, requested_schema=None):
        def batches():
            yield pa.record_batch([pa.array([1.0])], names=["x"])
            print("reading", flush=True)
            time.sleep(60)
        schema = pa.schema([("x", pa.float64())])
        return pa.RecordBatchReader.from_batches(schema, batches()).__arrow_c_stream__()

mh.mean(Slow(), domain=mh.Box([0], [1]), privacy=mh.ZCDP(rho=1), n=None, ledger=sys.argv[1])
print("released", flush=True)
"""


@pytest.mark.parametrize("deadly", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_release_that_is_killed_while_reading_keeps_its_charge(tmp_path, deadly):
    ledger = ledger_in(tmp_path, "add-remove")
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(ledger.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert child.stdout.readline() == b"reading\n"
        os.kill(child.pid, deadly)
        # The sleep of a reader cannot be interrupted from Arrow's thread by a polite signal.
        if deadly == signal.SIGINT:
            child.kill()
        rest, _ = child.communicate(timeout=30)
    finally:
        child.kill()
        child.wait()
    assert rest == b""
    assert child.returncode != 0
    reopened = Ledger.open(ledger.path)
    assert reopened.spent == mh.ZCDP(rho=1)
    reopened.verify()
    mh.mean(np.ones(3), domain=mh.Box([0], [1]), privacy=mh.ZCDP(rho=1), n=None, ledger=reopened)
    assert reopened.spent == mh.ZCDP(rho=2)


def written(folder, kind):
    table = arrow_table(ROWS)
    if kind == "csv":
        path = folder / "d.csv"
        path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in ROWS))
        return path
    if kind == "parquet":
        return write_parquet(folder / "d.parquet", table)
    return write_ipc(folder / "d.arrow", table, stream=False)


def after_the_charge(monkeypatch, action):
    """Do something to the data at the worst moment: when they are paid for and not yet read."""
    charge = Ledger.charge

    def charged(self, *arguments, **options):
        entry = charge(self, *arguments, **options)
        action()
        return entry

    monkeypatch.setattr(Ledger, "charge", charged)


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("change", ["appended", "rewritten", "replaced", "touched", "removed"])
@pytest.mark.parametrize("options", [{}, {"n": 8}, {"n": None}])
def test_a_file_that_changes_after_it_was_opened_is_noticed(
    tmp_path, monkeypatch, kind, change, options
):
    path = written(tmp_path, kind)

    def action():
        data = path.read_bytes()
        if change == "appended":
            path.write_bytes(data + b"5,5\n")
        elif change == "rewritten":
            path.write_bytes(data[:-3] + b"x" + data[-2:])
        elif change == "replaced":
            (tmp_path / "other").write_bytes(data)
            os.utime(tmp_path / "other", ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
            os.replace(tmp_path / "other", path)
        elif change == "touched":
            os.utime(path, ns=(1, 1))
        else:
            path.unlink()

    ledger = ledger_in(tmp_path, "add-remove" if options.get("n", 0) is None else "substitute")
    after_the_charge(monkeypatch, action)
    with pytest.raises(mh.DataChanged) as failure:
        mh.mean(path, domain=BOX, privacy=mh.ZCDP(rho=1), ledger=ledger, **options)
    assert ledger.spent == mh.ZCDP(rho=1)
    assert_no_canary(words_of(failure.value))


def test_a_file_that_changes_before_the_charge_costs_nothing(tmp_path, monkeypatch):
    path = written(tmp_path, "csv")
    from muhat.data.csv_file import CsvFile

    count = CsvFile.count_rows

    def counted(self):
        rows = count(self)
        path.write_text("a,b\n1,2\n")
        return rows

    monkeypatch.setattr(CsvFile, "count_rows", counted)
    ledger = ledger_in(tmp_path)
    with pytest.raises(mh.DataChanged):
        mh.mean(path, domain=BOX, privacy=mh.ZCDP(rho=1), ledger=ledger)
    assert ledger.head.count == 0


def test_memory_that_changes_its_length_is_noticed(tmp_path, monkeypatch):
    columns = {"a": np.ones(8), "b": np.ones(8)}
    frame = arrow_table(ROWS).to_pandas()
    actions = iter(
        [
            lambda: columns["a"].resize(5, refcheck=False),
            lambda: frame.__setitem__("c", 1.0),
            lambda: frame.loc.__setitem__(99, [1.0, 2.0, 3.0]),
        ]
    )
    ledger = ledger_in(tmp_path)
    after_the_charge(monkeypatch, lambda: next(actions)())
    with pytest.raises(mh.DataChanged):
        mh.mean(columns, domain=BOX, privacy=mh.ZCDP(rho=1), ledger=ledger)
    mh.mean(frame, domain=BOX, privacy=mh.ZCDP(rho=1), ledger=ledger)
    with pytest.raises(mh.DataChanged):
        mh.mean(frame, columns=["a", "b"], domain=BOX, privacy=mh.ZCDP(rho=1), ledger=ledger)
    assert ledger.head.count == 3


@pytest.mark.parametrize("options", [{"n": 400}, {"n": None}])
def test_a_damaged_page_behind_a_good_footer_is_a_failure_that_keeps_its_charge(
    tmp_path, capfd, options
):
    path = tmp_path / "d.parquet"
    table = pa.table({"a": [CANARY_NUMBER] * 400, "b": np.arange(400.0)})
    pq.write_table(table, path, compression="snappy", row_group_size=50)
    data = bytearray(path.read_bytes())
    data[4:200] = bytes([0xFF]) * 196
    path.write_bytes(bytes(data))
    ledger = ledger_in(tmp_path, "add-remove" if options["n"] is None else "substitute")
    with pytest.raises(mh.SourceFailed, match="The charge stays") as failure:
        mh.mean(path, domain=BOX, privacy=mh.ZCDP(rho=1), ledger=ledger, **options)
    assert ledger.spent == mh.ZCDP(rho=1)
    assert_no_canary(words_of(failure.value))
    assert "Arrow" not in words_of(failure.value, frames=False)
    assert "Thrift" not in words_of(failure.value, frames=False)
    assert capfd.readouterr() == ("", "")


def test_a_damaged_arrow_batch_is_a_failure_that_keeps_its_charge(tmp_path):
    path = tmp_path / "d.arrow"
    table = pa.table({"a": [CANARY_NUMBER] * 400, "b": np.arange(400.0)})
    with pa.OSFile(str(path), "wb") as sink:
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(sink, table.schema, options=options) as writer:
            writer.write_table(table)
    data = bytearray(path.read_bytes())
    data[600:800] = bytes([0xAA]) * 200
    path.write_bytes(bytes(data))
    ledger = ledger_in(tmp_path, "add-remove")
    with pytest.raises(mh.SourceFailed) as failure:
        mh.mean(path, domain=BOX, privacy=mh.ZCDP(rho=1), n=None, ledger=ledger)
    assert ledger.spent == mh.ZCDP(rho=1)
    assert_no_canary(words_of(failure.value))


@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_reader_that_fails_half_way_is_not_quoted(tmp_path, place):
    ledger = ledger_in(tmp_path, "add-remove")
    data = Again(arrow_table(ROWS), fail_after=place)
    with pytest.raises(mh.SourceFailed) as failure:
        mh.mean(data, domain=BOX, privacy=mh.ZCDP(rho=1), n=None, ledger=ledger)
    assert ledger.spent == mh.ZCDP(rho=1)
    assert_no_canary(words_of(failure.value))
    assert CANARY_TEXT not in words_of(failure.value)


def test_a_retry_after_a_failure_is_a_new_charge(tmp_path):
    ledger = ledger_in(tmp_path, "add-remove")
    data = Again(arrow_table(ROWS), fail_after=1)
    for _ in range(2):
        with pytest.raises(mh.SourceFailed):
            mh.mean(data, domain=BOX, privacy=mh.ZCDP(rho=1), n=None, ledger=ledger)
    assert ledger.spent == mh.ZCDP(rho=2)
