"""Executors that die, drivers that die, readers that break: sums and charges once, and silence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from standalone import Cluster, kill

import muhat as mh
from muhat.data import exact_sums, open_source, spark_quiet
from muhat.data.engine import Accumulator, read_once
from muhat.data.spark import spark_data
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


def test_a_task_that_is_tried_twice_at_once_counts_once(spark: Any, tmp_path: Path) -> None:
    folder = str(tmp_path)

    def stall(batches: Any) -> Any:
        import time
        from pathlib import Path

        for batch in batches:
            if batch.column(0)[0].as_py() >= 0.75:
                first = not list(Path(folder).iterdir())
                (Path(folder) / f"attempt-{time.time_ns()}").touch()
                time.sleep(60 if first else 0)
            yield batch

    frame = spark.range(0, 1000, 1, 4).selectExpr("id / 1000D AS x")
    source = open_source(frame.mapInArrow(stall, frame.schema), ["x"], 1)
    expected = exact_sums(open_source([i / 1000 for i in range(1000)], None, 1), UNIT)
    assert exact_sums(source, UNIT) == expected
    assert len(list(tmp_path.iterdir())) == 2


CHILD = """
import sys, time
from pyspark.sql import SparkSession
import muhat as mh

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.range(0, 10, 1, 1).selectExpr("id / 10D AS x")

def wait(batches):
    import os, time
    open(sys.argv[2], "w").close()
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.1)
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
    output = tmp_path / "output"
    with output.open("wb") as written:
        child = subprocess.Popen(
            [sys.executable, "-c", script, str(ledger.path)],
            stdout=written,
            stderr=subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,
        )
    try:
        wait_until(lambda: mark.exists() or child.poll() is not None)
        assert child.poll() is None
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    finally:
        # Java is in the same group, and ends by itself if its driver does.
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    assert output.read_bytes() == b""
    reopened = Ledger.open(ledger.path)
    assert reopened.spent == RHO
    assert len(list(reopened.entries())) == 1
    reopened.verify()
    mh.mean([0.5], domain=BOX, privacy=RHO, n=None, ledger=reopened)
    assert reopened.spent == mh.ZCDP(rho=2)


@pytest.mark.parametrize("kind", ["cast", "function"])
def test_a_pass_that_breaks_says_nothing_of_why(
    kind: str,
    spark: Any,
    driver_log: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
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
    written = driver_log.stat().st_size
    with loudly(spark):
        with pytest.raises(mh.SourceFailed) as caught:
            mh.mean(broken, columns=["x"], domain=BOX, privacy=RHO, n=None, ledger=ledger)
        assert CANARY not in f"{caught.value!r}{caught.value.__cause__}{caught.value.__context__}"
        assert CANARY not in "".join(capfd.readouterr())
        assert CANARY not in driver_log.read_text()[written:]
        assert ledger.spent == RHO
        # What Spark tells those who ask it directly has not changed.
        with pytest.raises(Exception, match=CANARY):
            broken.collect()
        wait_until(lambda: CANARY in driver_log.read_text()[written:])


class Broken(Accumulator):
    """Quotes what it reads, in Python workers."""

    def tallies(self) -> None:
        return None

    def add(self, batch: Any) -> None:
        raise ValueError(f"{QUOTED} {batch.columns}")


def test_an_accumulator_that_breaks_writes_nothing_to_the_executors_logs(
    spark: Any, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.range(0, 10, 1, 2).selectExpr("id / 10D AS x")
    source = open_source(frame, ["x"], 1)
    monkeypatch.setattr(spark_quiet, "_silenced", lambda context: None)
    with loudly(spark), pytest.raises(mh.SourceFailed) as caught:
        read_once(source, lambda: Broken(UNIT))
    assert caught.value.__context__ is None
    assert QUOTED not in cluster.logs()
    assert "muhat: a partition could not be read to the end" in cluster.logs()


@contextmanager
def loudly(spark: Any) -> Iterator[None]:
    """Spark's driver logs as much as it does by default."""
    spark.sparkContext.setLogLevel("WARN")
    try:
        yield
    finally:
        spark.sparkContext.setLogLevel("ERROR")


def test_tasks_that_end_after_the_pass_has_failed_say_nothing_of_why(
    spark: Any, driver_log: Path, tmp_path: Path
) -> None:
    """Spark logs why every task of a job had to end: for the first is the reason of them all."""
    mark = str(tmp_path / "waiting")

    def wait(batches: Any) -> Any:
        import time
        from pathlib import Path

        for batch in batches:
            if batch.column(0)[0].as_py() == 0:
                Path(mark).touch()
                time.sleep(3)
                yield batch
            while not Path(mark).exists():
                time.sleep(0.05)
            yield batch

    # One task waits while the other fails.
    frame = spark.range(0, 2, 1, 2).mapInArrow(wait, "id long")
    broken = frame.selectExpr(f"if(id = 0, 0D, cast(concat('{CANARY}', id) AS double)) AS x")
    source = open_source(broken, ["x"], 1)
    written = driver_log.stat().st_size
    with loudly(spark):
        with pytest.raises(mh.SourceFailed):
            exact_sums(source, UNIT)
        scheduler = spark.sparkContext._jsc.sc().taskScheduler()
        assert scheduler.rootPool().runningTasks() == 0
        # Spark ends no task later than this.
        time.sleep(4)
        assert CANARY not in driver_log.read_text()[written:]


def test_good_passes_and_damaged_files_leave_no_value_in_any_log(
    spark: Any,
    cluster: Cluster,
    driver_log: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """With all that Spark and its executors log by default."""
    secret, name = 6120733.5625, "marked-5520917"
    table = pa.table({"x": [secret] * 2000, "k": [name] * 2000})
    whole, damaged = tmp_path / "whole.parquet", tmp_path / "damaged.parquet"
    pq.write_table(table, whole, compression="none", use_dictionary=False)
    content = bytearray(whole.read_bytes())
    # The first page has no header any more; the footer is as it was.
    content[4:40] = bytes(36)
    damaged.write_bytes(content)
    options: dict[str, Any] = {"domain": mh.Box([0], [1e7]), "privacy": RHO}
    capfd.readouterr()
    with loudly(spark):
        mh.mean(spark.read.parquet(str(whole)), columns=["x"], **options)
        by_name: dict[str, Any] = {"by": "k", "groups": [name, "b"], **options}
        mh.mean(spark.read.parquet(str(whole)), columns=["x"], **by_name)
        spark_data(spark.read.parquet(str(whole)), materialize=tmp_path / "rows")
        broken = spark.read.parquet(str(damaged))
        with pytest.raises(mh.SourceFailed):
            mh.mean(broken, columns=["x"], n=None, **options)
        with pytest.raises(mh.InvalidInput, match="could not be written down"):
            spark_data(broken, materialize=tmp_path / "more")
        said = "".join(capfd.readouterr()) + driver_log.read_text()
    for trace in ("6120733", "5520917"):
        assert trace not in said
        assert trace not in cluster.logs()


def test_loggers_with_a_level_of_their_own_are_held_too(spark: Any, driver_log: Path) -> None:
    log4j = spark.sparkContext._jvm.org.apache.logging.log4j
    name = "org.apache.spark.scheduler.TaskSetManager"
    root = log4j.LogManager.getRootLogger().getLevel()
    log4j.core.config.Configurator.setLevel(name, log4j.Level.WARN)
    try:
        broken = spark.createDataFrame([(CANARY,)], "name string").selectExpr(
            "cast(name AS double) AS x"
        )
        source = open_source(broken, ["x"], 1)
        written = driver_log.stat().st_size
        with pytest.raises(mh.SourceFailed):
            exact_sums(source, UNIT)
        assert CANARY not in driver_log.read_text()[written:]
        assert str(log4j.LogManager.getLogger(name).getLevel()) == "WARN"
        assert log4j.LogManager.getRootLogger().getLevel() == root
        with pytest.raises(Exception, match=CANARY):
            broken.collect()
        wait_until(lambda: CANARY in driver_log.read_text()[written:])
    finally:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.ERROR)


def test_a_driver_that_cannot_be_silenced_is_not_held_for_ever(spark: Any) -> None:
    with pytest.raises(AttributeError), spark_quiet.quiet(SimpleNamespace(_sc=object())):
        pass
    assert not spark_quiet._HELD
    with spark_quiet.quiet(spark), spark_quiet.quiet(spark):
        assert not any(logger.isFatalEnabled() for logger in _loggers(spark))
    assert all(logger.isErrorEnabled() for logger in _loggers(spark))


def _loggers(spark: Any) -> list[Any]:
    """The root, and loggers with levels of their own and of none."""
    manager = spark.sparkContext._jvm.org.apache.logging.log4j.LogManager
    names = "org.apache.spark.scheduler.TaskSetManager", "nobody.has.asked.for.it"
    return [manager.getRootLogger(), *map(manager.getLogger, names)]


def test_a_table_rewritten_between_passes_is_noticed(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "rows")
    spark.range(0, 10, 1, 1).selectExpr("id / 10D AS x").write.parquet(path)
    source = open_source(spark.read.parquet(path), ["x"], 1)
    assert source.rows() == 10
    other = spark.range(0, 10, 1, 1).selectExpr("id / 20D AS x")
    other.write.mode("overwrite").parquet(path)
    with pytest.raises((mh.SourceFailed, mh.DataChanged)):
        exact_sums(source, UNIT)


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
