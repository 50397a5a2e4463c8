"""What Spark frames are refused for, before anything is charged, and what is never done to them."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.data.spark import spark_data
from muhat.data.spark_ship import require_running
from muhat.domains.lattice import BoxLattice

UNIT = BoxLattice.around([0], [1])


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    return spark.range(0, 40, 1, 2).selectExpr(
        "id / 40D AS x", "cast(id AS string) AS name", "id % 3 AS g", "array(1D, 2D) AS v"
    )


def ask(frame: Any, query: str) -> Any:
    return frame.sparkSession.sql(query, f=frame)


def pull(*_: Any, **__: Any) -> Any:
    raise AssertionError("records were pulled to the driver")


def test_records_are_never_pulled_to_the_driver(
    frame: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "toArrow")
    kind = type(frame)
    for name in ("__arrow_c_stream__", "toArrow", "toPandas", "toLocalIterator", "take", "head"):
        monkeypatch.setattr(kind, name, pull, raising=False)
    collect, collected = kind.collect, []

    def watched(self: Any) -> Any:
        rows = collect(self)
        collected.append((len(rows), self.columns))
        return rows

    monkeypatch.setattr(kind, "collect", watched)
    mh.mean(frame, columns=["x"], domain=mh.Box([0], [1]), privacy=mh.ZCDP(rho=1))
    mh.mean(frame, columns=["v"], domain=mh.Ball(radius=1, dim=2), privacy=mh.ZCDP(rho=1))
    sums, states = collected
    assert sums[0] == 1
    assert states[0] <= 2
    assert states[1] == ["state"]


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda frame: frame.sample(0.5), "a sample"),
        (lambda frame: frame.sample(0.5, seed=1), "a sample"),
        (lambda frame: frame.where("rand() < 0.5"), r"rand\(\)"),
        (lambda frame: frame.selectExpr("x + uuid() AS x"), r"uuid\(\)"),
        (lambda frame: frame.limit(5), "a limit without an order"),
        (lambda frame: frame.offset(5), "a limit without an order"),
        (lambda frame: frame.limit(5).union(frame), "a limit without an order"),
        (lambda frame: frame.sortWithinPartitions("x").limit(5), "a limit without an order"),
        (lambda frame: frame.orderBy("x").repartition(3).limit(5), "a limit without an order"),
        (lambda frame: ask(frame, "SELECT * FROM {f} TABLESAMPLE (9 ROWS)"), "a limit without"),
        (lambda frame: ask(frame, "SELECT * FROM {f} TABLESAMPLE (9 PERCENT)"), "a sample"),
        (
            lambda frame: ask(frame, "SELECT * FROM {f} WHERE g IN (SELECT g FROM {f} LIMIT 1)"),
            "a limit without an order",
        ),
        (
            lambda frame: ask(frame, "WITH t AS (SELECT * FROM {f} LIMIT 1) SELECT * FROM t"),
            "a limit without an order",
        ),
        (lambda frame: frame.randomSplit([1.0, 1.0], seed=3)[0], "a sample"),
        (lambda frame: frame.sampleBy("g", {0: 0.5}, seed=3), r"rand\(\)"),
        (lambda frame: frame.sample(0.5).cache(), "a sample"),
        (lambda frame: frame.dropDuplicates(["g"]).cache(), "dropDuplicates"),
        (lambda frame: frame.where("spark_partition_id() = 0"), r"spark_partition_id\(\)"),
        (
            lambda frame: frame.selectExpr("x", "monotonically_increasing_id() AS m"),
            r"monotonically_increasing_id\(\)",
        ),
        (
            lambda frame: frame.where("current_timestamp() > timestamp'2020-01-01'"),
            r"current_timestamp\(\)",
        ),
        (lambda frame: frame.where("current_date() > date'2020-01-01'"), r"current_date\(\)"),
        (lambda frame: frame.where("unix_timestamp() > 9"), r"current_timestamp\(\)"),
        (
            lambda frame: frame.selectExpr("x", "reflect('java.util.UUID', 'randomUUID') AS r"),
            r"reflect\(\)",
        ),
        (lambda frame: frame.groupBy("g").agg({"x": "mode"}).toDF("g", "x"), r"mode\(\)"),
        (lambda frame: frame.selectExpr("first(x) OVER (PARTITION BY g) AS x"), r"first\(\)"),
        (lambda frame: frame.orderBy("g").limit(5), "a limit by an order that may have ties"),
        (lambda frame: frame.selectExpr("max_by(x, g) AS x"), r"max_by\(\)"),
        (
            lambda frame: frame.selectExpr("x", "row_number() OVER (ORDER BY g) AS r"),
            r"row_number\(\)",
        ),
        (
            lambda frame: frame.selectExpr("sum(x) OVER (ORDER BY g ROWS 2 PRECEDING) AS x"),
            "a window of rows that may tie",
        ),
        (lambda frame: frame.dropDuplicates(["g"]), "dropDuplicates"),
        (lambda frame: frame.groupBy("g").agg({"x": "first"}).toDF("g", "x"), r"first\(\)"),
    ],
)
def test_frames_whose_rows_may_differ_are_refused(frame: Any, made: Any, why: str) -> None:
    with pytest.raises(mh.InvalidInput, match=rf"has {why}.*materialize=path") as caught:
        open_source(made(frame), ["x"], 1)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "made",
    [
        lambda frame: frame.orderBy("x", "name", "g", "v").limit(5),
        lambda frame: frame.select("x").orderBy("x").where("x > 0.1").limit(5),
        lambda frame: frame.selectExpr("x", "rank() OVER (ORDER BY g) AS r"),
        lambda frame: frame.selectExpr("sum(x) OVER (PARTITION BY g) AS x"),
        lambda frame: frame.distinct(),
        lambda frame: frame.groupBy("g").agg({"x": "max"}).toDF("g", "x"),
        lambda frame: frame.selectExpr("x AS `first(x)`", "x"),
        lambda frame: frame.repartition(3),
    ],
)
def test_frames_whose_rows_are_the_same_every_time_are_not(frame: Any, made: Any) -> None:
    source = open_source(made(frame), ["x"], 1)
    assert exact_sums(source, UNIT) == exact_sums(source, UNIT)


def test_a_plan_is_read_whole_whatever_spark_is_told_to_show(spark: Any, frame: Any) -> None:
    many = frame.selectExpr(*(f"x AS x{place}" for place in range(60)), "x").sample(0.5)
    settings = {"spark.sql.maxPlanStringLength": "60", "spark.sql.debug.maxToStringFields": "2"}
    before = {key: spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        with pytest.raises(mh.InvalidInput, match="a sample"):
            open_source(many, ["x"], 1)
        assert {key: spark.conf.get(key) for key in settings} == settings
        other = spark.newSession()
        hidden = other.range(3).selectExpr(
            *(f"id / 3D AS x{place}" for place in range(60)), "first(id) OVER () AS x"
        )
        with pytest.raises(mh.InvalidInput, match=r"first\(\)|does not show whole"):
            open_source(hidden, ["x1"], 1)
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def test_rows_dealt_out_in_turn_need_an_order(spark: Any, frame: Any) -> None:
    key = "spark.sql.execution.sortBeforeRepartition"
    spark.conf.set(key, "false")
    try:
        with pytest.raises(mh.InvalidInput, match="sortBeforeRepartition"):
            open_source(frame.repartition(3), ["x"], 1)
        assert open_source(frame, ["x"], 1).columns == ("x",)
    finally:
        spark.conf.unset(key)


def test_a_function_that_is_declared_random_is_refused(spark: Any, frame: Any) -> None:
    from pyspark.sql.functions import udf

    lucky = udf(lambda x: x, "double").asNondeterministic()
    with pytest.raises(mh.InvalidInput, match="not deterministic"):
        open_source(frame.select(lucky("x").alias("x")), ["x"], 1)


def test_a_stream_is_refused(spark: Any, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("value / 2D AS x")
    with pytest.raises(mh.InvalidInput, match="must not be a stream"):
        open_source(stream, ["x"], 1)
    with pytest.raises(mh.InvalidInput, match="must not be a stream"):
        spark_data(stream, materialize=tmp_path / "rows")


def test_what_is_chosen_by_chance_is_pinned_by_writing_it_down(frame: Any, tmp_path: Path) -> None:
    pinned = spark_data(frame.where("rand() < 0.5"), materialize=tmp_path / "rows")
    first, second = (exact_sums(open_source(pinned, ["x"], 1), UNIT) for _ in range(2))
    assert first == second
    here = exact_sums(open_source(str(tmp_path / "rows" / "*.parquet"), ["x"], 1), UNIT)
    assert first == here
    with pytest.raises(mh.InvalidInput, match="Does it exist already"):
        spark_data(frame, materialize=tmp_path / "rows")
    with pytest.raises(mh.InvalidInput, match="a column 'muhat_row_number' already"):
        spark_data(frame.selectExpr("1 AS Muhat_row_number"), materialize=tmp_path / "other")
    assert repr(pinned) == "SparkData()"


def test_numbers_of_written_rows_are_no_column_of_theirs(frame: Any, tmp_path: Path) -> None:
    pinned = spark_data(frame.select("x"), materialize=tmp_path / "rows")
    assert open_source(pinned, None, 1).columns == ("x",)
    vectors = spark_data(frame.select("v"), materialize=tmp_path / "vectors")
    assert open_source(vectors, None, 2).columns == ("v[0]", "v[1]")
    with pytest.raises(mh.InvalidInput, match="not in the data"):
        open_source(pinned, ["muhat_row_number"], 1)


def test_types_and_names_are_refused_as_anywhere_else(spark: Any, frame: Any) -> None:
    with pytest.raises(mh.InvalidInput, match="'name' has type string, which cannot be averaged"):
        open_source(frame, ["name"], 1)
    with pytest.raises(mh.InvalidInput, match="'y' is not in the data"):
        open_source(frame, ["y"], 1)
    with pytest.raises(mh.InvalidInput, match="as many as the domain has dimensions"):
        open_source(frame, ["x", "g"], 3)
    with pytest.raises(mh.InvalidInput, match="columns must be named"):
        open_source(frame, None, 3)
    with pytest.raises(mh.InvalidInput, match="occurs more than once"):
        open_source(frame.selectExpr("x", "g AS x"), ["x"], 1)
    assert open_source(frame.select("v", "name"), None, 2).columns == ("v[0]", "v[1]")
    assert open_source(frame, ["g", "v"], 3).columns == ("g", "v[0]", "v[1]")
    with pytest.raises(mh.InvalidInput, match="must be a Spark DataFrame"):
        open_source(frame.rdd, ["x"], 1)
    with pytest.raises(mh.InvalidInput, match="must be a Spark DataFrame"):
        open_source(spark, ["x"], 1)
    with pytest.raises(mh.InvalidInput, match="must be a Spark DataFrame"):
        spark_data(pa.table({"x": [1.0]}))


def test_a_mechanism_that_needs_all_records_at_once_refuses_before_the_charge(
    frame: Any, tmp_path: Path
) -> None:
    promise = mh.ApproxDP(epsilon=20, delta=1e-5)
    ledger = mh.Ledger.create(tmp_path / "b.db", budget=promise, neighbors="add-remove")
    options: dict[str, Any] = {"domain": mh.Reals(dim=1, magnitude=1e6), "moment": (4, 3.0)}
    plan = mh.plan_mean(n=None, n_min=400, privacy=promise, symmetric=True, **options)
    with pytest.raises(mh.InvalidInput, match="never fetched"):
        plan.release(frame, columns=["x"], ledger=ledger)
    assert not list(ledger.entries())


def test_a_session_that_has_ended_is_found_out_before_the_charge(
    spark: Any, frame: Any, tmp_path: Path
) -> None:
    ended = SimpleNamespace(_sc=SimpleNamespace(_jsc=None))
    with pytest.raises(mh.InvalidInput, match="session of the data has ended"):
        require_running(ended)
    with pytest.raises(mh.InvalidInput, match="session of the data has ended"):
        require_running(SimpleNamespace(is_stopped=True))
    # As a context is seen whose master has given it up.
    gone = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: True))
    with pytest.raises(mh.InvalidInput, match="session of the data has ended"):
        require_running(SimpleNamespace(_sc=SimpleNamespace(_jsc=gone)))
    require_running(spark)


def test_executors_that_cannot_run_muhat_are_found_out_before_the_charge(
    frame: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from muhat.data import spark_ship

    monkeypatch.setattr(spark_ship, "_PROBED", set())
    monkeypatch.setattr(spark_ship, "_probe", lambda session: 1 / 0)
    caplog.set_level(logging.DEBUG, "muhat")
    with pytest.raises(mh.InvalidInput, match="PYSPARK_PYTHON") as caught:
        open_source(frame, ["x"], 1)
    assert caught.value.__cause__ is None
    assert caplog.text == ""
