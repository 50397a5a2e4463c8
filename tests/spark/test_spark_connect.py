"""Frames of a Spark Connect client: the same sums, the same refusals, nothing fetched."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyspark
import pytest

import muhat as mh
from muhat.data import exact_sums, open_source
from muhat.data.spark import SMALL_STATE, spark_data
from muhat.demo.cluster import environment
from muhat.domains.lattice import BoxLattice

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
UNIT = BoxLattice.around([0], [1])


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of a server that is a process of its own."""
    from pyspark.sql.connect.session import SparkSession

    log = tmp_path_factory.mktemp("connect") / "server.log"
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-class")]
    submit += ["org.apache.spark.deploy.SparkSubmit", "--class", SERVER, "--master", "local[2]"]
    for setting in ("spark.connect.grpc.binding.port=0", "spark.ui.enabled=false"):
        submit += ["--conf", setting]
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*submit, "spark-internal"],
            stdout=output,
            stderr=output,
            env={**environment(), "SPARK_DAEMON_MEMORY": "1g"},
        )
    try:
        port = _port(server, log)
        session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
        yield session
        session.stop()
    finally:
        server.terminate()
        server.wait(60)


def _port(server: subprocess.Popen[bytes], log: Path) -> str:
    while server.poll() is None:
        found = re.search(r"server started at: \S+:(\d+)", log.read_text(errors="replace"))
        if found is not None:
            return found[1]
        time.sleep(0.1)
    raise RuntimeError("the server did not start")


def same_number() -> Any:
    # Imported late: the module complains about new versions of pandas.
    from pyspark.sql.connect.functions import udf

    return udf(lambda x: x, "double")


def lucky() -> Any:
    return same_number().asNondeterministic()


@pytest.fixture(scope="module")
def frame(client: Any) -> Any:
    return client.range(0, 1000, 1, 4).selectExpr(
        "id / 500D AS x", "id % 3 AS g", "array(id / 1000D, 0.5D) AS v"
    )


def test_sums_of_a_client_are_those_of_the_embedded_engine(frame: Any) -> None:
    values = np.arange(1000) / 500
    source = open_source(frame, ["x"], 1)
    assert exact_sums(source, UNIT) == exact_sums(open_source(values), UNIT)
    assert source.known_rows == 1000
    square = BoxLattice.around([0, 0], [1, 1])
    pairs = np.stack([values / 2, np.full(1000, 0.5)], axis=1)
    there = exact_sums(open_source(frame, ["v"], 2), square)
    assert there == exact_sums(open_source(pairs), square)


def test_long_sums_of_a_client_are_added_up_on_the_cluster(client: Any) -> None:
    wide = client.range(0, 20, 1, 4).selectExpr(
        "transform(sequence(1, 300), place -> (id + place) / 400D) AS v"
    )
    lattice = BoxLattice.around([0] * 300, [1] * 300)
    assert 16 * lattice.dim > SMALL_STATE
    values = (np.arange(20)[:, None] + np.arange(1, 301)) / 400
    there = exact_sums(open_source(wide, ["v"], 300), lattice)
    assert there == exact_sums(open_source(values), lattice)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda frame: frame.sample(0.5), "a sample"),
        (lambda frame: frame.where("rand() < 0.5"), r"rand\(\)"),
        (lambda frame: frame.limit(5), "a limit without an order"),
        (lambda frame: frame.orderBy("g").limit(5), "a limit by an order that may have ties"),
        (lambda frame: frame.dropDuplicates(["g"]), "dropDuplicates"),
        (lambda frame: frame.sortWithinPartitions("x").limit(5), "a limit without an order"),
        (lambda frame: frame.where("spark_partition_id() = 0"), r"spark_partition_id\(\)"),
        (lambda frame: frame.where("now() > date'2020-01-01'"), r"(now|current_timestamp)\(\)"),
        (lambda frame: frame.select(lucky()("x").alias("x")), "not deterministic"),
        (
            lambda frame: frame.select(frame.x).union(frame.select(lucky()("x").alias("x"))),
            "not deterministic",
        ),
    ],
)
def test_frames_whose_rows_may_differ_are_refused(frame: Any, made: Any, why: str) -> None:
    with pytest.raises(mh.InvalidInput, match=why):
        open_source(made(frame), ["x"], 1)


def test_frames_whose_rows_are_the_same_every_time_are_not(frame: Any) -> None:
    for same in (
        frame.distinct(),
        frame.select("x").orderBy("x").limit(5),
        frame.repartition(2),
        frame.mapInArrow(lambda batches: batches, frame.schema),
        frame.select(same_number()("x").alias("x")),
    ):
        assert open_source(same, ["x"], 1).columns == ("x",)


def test_records_are_never_pulled_to_a_client(frame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def pull(*_: Any, **__: Any) -> Any:
        raise AssertionError("records were pulled to the client")

    for name in ("__arrow_c_stream__", "toArrow", "toPandas", "toLocalIterator", "take", "head"):
        monkeypatch.setattr(type(frame), name, pull, raising=False)
    options: dict[str, Any] = {"domain": mh.Box([0], [2]), "privacy": mh.ZCDP(rho=1e9)}
    release = mh.mean(frame, columns=["x"], **options)
    assert abs(float(release) - 0.999) < 1e-3
    groups = mh.mean(frame, columns=["x"], by="g", groups=[0, 1, 2], **options)
    assert [round(float(each), 2) for each in groups.releases] == [1.0, 1.0, 1.0]


def test_names_that_differ_in_case_alone(frame: Any) -> None:
    both = frame.selectExpr("2 - x AS X", "x")
    there = exact_sums(open_source(both, ["x"], 1), UNIT)
    assert there == exact_sums(open_source(np.arange(1000) / 500), UNIT)


def test_a_release_of_written_rows_that_are_split(frame: Any, tmp_path: Path) -> None:
    pinned = spark_data(frame.where("rand() < 0.9"), materialize=tmp_path / "rows")
    release = mh.mean(
        pinned,
        columns=["x"],
        domain=mh.Reals(dim=1, magnitude=1e3),
        privacy=mh.ApproxDP(epsilon=10, delta=1e-5),
        moment=(4, 3.0),
        symmetric=True,
        missing="none",
    )
    assert abs(float(release) - 1) < 0.5


def test_a_pass_that_breaks_says_nothing_of_why(
    client: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    canary = "canary-7310442"
    broken = client.range(1).selectExpr(f"cast(concat('{canary}', id) AS double) AS x")
    with pytest.raises(mh.SourceFailed) as caught:
        exact_sums(open_source(broken, ["x"], 1), UNIT)
    assert caught.value.__context__ is None
    assert canary not in "".join([repr(caught.value), *capfd.readouterr()])
