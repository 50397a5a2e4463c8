"""Executors that die, drivers that die, readers that break: sums and charges once, and silence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from standalone import Cluster, kill

import muhat as mh
from muhat.data import exact_sums, open_source, spark_quiet
from muhat.data.engine import read_once
from muhat.data.kernel import Accumulator
from muhat.demo.cluster import environment
from muhat.domains.lattice import BoxLattice
from muhat.ledger import Ledger

CANARY, QUOTED = "canary-7310442", "quoted-8842031"
RHO = mh.ZCDP(rho=1)
BOX = mh.Box([0], [1])
UNIT = BoxLattice.around([0], [1])


def slowly(frame: Any, marks: Path, seconds: float) -> Any:
    """The same rows, each partition after a while; leaves a mark when it begins."""
    folder = str(marks)

    def wait(batches: Any) -> Any:
        import os
        import tempfile
        import time

        handle, _ = tempfile.mkstemp(dir=folder)
        os.close(handle)
        time.sleep(seconds)
        yield from batches

    return frame.mapInArrow(wait, frame.schema)


def wait_until(true: Callable[[], bool], seconds: float = 300) -> None:
    for _ in range(int(seconds * 20)):
        if true():
            return
        time.sleep(0.05)
    raise TimeoutError("it never happened")


def test_an_executor_killed_in_the_middle_of_a_pass_changes_nothing(
    spark: Any, cluster: Cluster, tmp_path: Path, same_noise: Any
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    frame = spark.range(0, 1000, 1, 8).selectExpr("id / 1000D AS x")
    ledger = Ledger.create(tmp_path / "b.db", budget=mh.ZCDP(rho=5), neighbors="substitute")
    options: dict[str, Any] = {"columns": ["x"], "domain": BOX, "privacy": RHO, "n": 1000}
    same_noise()
    expected = mh.mean(pa.table({"x": [i / 1000 for i in range(1000)]}), **options).value
    application = spark.sparkContext.applicationId
    killed: list[int] = []

    def strike() -> None:
        # Two partitions are done and others under way.
        wait_until(lambda: len(list(marks.iterdir())) >= 4)
        killed.append(cluster.executors(application)[0])
        kill(killed[0])

    deadly = threading.Thread(target=strike)
    deadly.start()
    same_noise()
    release = mh.mean(slowly(frame, marks, 0.5), ledger=ledger, **options)
    deadly.join()
    assert killed[0] not in cluster.executors(application)
    assert len(list(marks.iterdir())) > 8
    assert release.value.tobytes() == expected.tobytes()
    assert len(list(ledger.entries())) == 1
    assert ledger.spent == RHO
    ledger.verify()


CHILD = """
import sys, time
from pyspark.sql import SparkSession
import muhat as mh

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.range(0, 10, 1, 1).selectExpr("id / 10D AS x")

def wait(batches):
    import time
    open(sys.argv[2], "w").close()
    time.sleep(60)
    yield from batches

slow = frame.mapInArrow(wait, frame.schema)
options = {"columns": ["x"], "domain": mh.Box([0], [1]), "privacy": mh.ZCDP(rho=1)}
mh.mean(slow, n=None, ledger=sys.argv[1], **options)
print("released", flush=True)
"""


def test_a_driver_killed_after_the_charge_has_spent_and_released_nothing(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "b.db", budget=mh.ZCDP(rho=5), neighbors="add-remove")
    mark = tmp_path / "reading"
    script = CHILD.replace("sys.argv[2]", repr(str(mark)))
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(ledger.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
        start_new_session=True,
    )
    try:
        wait_until(mark.exists)
        os.kill(child.pid, signal.SIGKILL)
        output, _ = child.communicate(timeout=60)
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    assert output == b""
    reopened = Ledger.open(ledger.path)
    assert reopened.spent == RHO
    assert len(list(reopened.entries())) == 1
    reopened.verify()
    mh.mean([0.5], domain=BOX, privacy=RHO, n=None, ledger=reopened)
    assert reopened.spent == mh.ZCDP(rho=2)


@pytest.mark.parametrize("kind", ["cast", "function"])
def test_a_pass_that_breaks_says_nothing_of_why(
    kind: str, spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ledger = Ledger.create(tmp_path / "b.db", budget=mh.ZCDP(rho=5), neighbors="add-remove")
    frame = spark.createDataFrame([(CANARY,)], "name string").coalesce(1)
    if kind == "cast":
        broken = frame.selectExpr("cast(name AS double) AS x")
    else:

        def explode(batches: Any) -> Any:
            raise ValueError([batch.to_pylist() for batch in batches])

        broken = frame.mapInArrow(explode, "x double")
    capfd.readouterr()
    with pytest.raises(mh.SourceFailed) as caught:
        mh.mean(broken, columns=["x"], domain=BOX, privacy=RHO, n=None, ledger=ledger)
    assert CANARY not in f"{caught.value!r}{caught.value.__cause__}{caught.value.__context__}"
    assert CANARY not in "".join(capfd.readouterr())
    assert ledger.spent == RHO
    # What Spark tells those who ask it directly has not changed.
    with pytest.raises(Exception, match=CANARY):
        broken.collect()


class Broken(Accumulator):
    """Quotes what it reads."""

    def add(self, batch: Any) -> None:
        raise ValueError(f"{QUOTED} {batch.columns}")


def test_an_accumulator_that_breaks_writes_nothing_to_the_executors_logs(
    spark: Any, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.range(0, 10, 1, 2).selectExpr("id / 10D AS x")
    source = open_source(frame, ["x"], 1)
    monkeypatch.setattr(spark_quiet, "_silenced", lambda session: None)
    spark.sparkContext.setLogLevel("WARN")
    with pytest.raises(mh.SourceFailed) as caught:
        read_once(source, lambda: Broken(UNIT))
    spark.sparkContext.setLogLevel("ERROR")
    assert caught.value.__context__ is None
    assert QUOTED not in cluster.logs()
    assert "muhat: a partition could not be read to the end" in cluster.logs()


def test_rows_that_come_or_go_between_passes_are_noticed(spark: Any) -> None:
    spark.sql("CREATE TABLE growing (x DOUBLE) USING parquet")
    try:
        spark.sql("INSERT INTO growing VALUES (0.25), (0.5)")
        source = open_source(spark.table("growing"), ["x"], 1)
        assert source.rows() == 2
        exact_sums(source, UNIT)
        spark.sql("INSERT INTO growing VALUES (0.75)")
        frame = spark.table("growing")
        source._frame = frame
        with pytest.raises(mh.DataChanged, match="changed their length"):
            exact_sums(source, UNIT)
    finally:
        spark.sql("DROP TABLE growing")


def test_columns_that_change_between_passes_are_noticed(spark: Any) -> None:
    frame = spark.range(0, 10, 1, 2).selectExpr("id / 10D AS x")
    source = open_source(frame, ["x"], 1)
    exact_sums(source, UNIT)
    source._frame = frame.selectExpr("cast(x AS float) AS x")  # type: ignore[attr-defined]
    with pytest.raises(mh.DataChanged, match="columns of the data have changed"):
        exact_sums(source, UNIT)
