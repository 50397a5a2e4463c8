"""A standalone Spark cluster of a master and two workers on this machine, for the whole run."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import shake_256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from standalone import Cluster

# Without the extras there is nothing to test: `make test-spark` installs them.
collect_ignore_glob = [
    f"test_{engine}_*.py"
    for engine in ("spark", "dask")
    if importlib.util.find_spec("pyspark" if engine == "spark" else engine) is None
]

HERE = Path(__file__).parent


# Sockets are left to the garbage collector to close; new versions of pandas are complained about.
SPARK_WARNINGS = (
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore:PySpark does not yet:FutureWarning",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests here are marked as Spark's."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            for warning in SPARK_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(warning))


SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.executor.memory": "512m",
    "spark.log.level": "ERROR",
    # Tasks that take much longer than others are tried twice at once.
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "3",
    "spark.speculation.minTaskRuntime": "1s",
}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.stop()


@pytest.fixture(scope="session")
def driver_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the driver's Java writes: it keeps the stream of errors that it was started with."""
    return tmp_path_factory.mktemp("driver") / "log"


@contextmanager
def errors_to(path: Path) -> Iterator[None]:
    kept = os.dup(2)
    with path.open("ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@pytest.fixture(scope="session")
def spark(
    cluster: Cluster, driver_log: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    from muhat.demo.cluster import environment

    os.environ.update(environment())
    builder = SparkSession.builder.master(cluster.url).appName("muhat tests")
    folder = tmp_path_factory.mktemp("warehouse")
    for key, value in {**SETTINGS, "spark.sql.warehouse.dir": str(folder)}.items():
        builder = builder.config(key, value)
    with errors_to(driver_log):
        session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def same_noise(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call it before a release to have the same words drawn as in the one before."""
    from muhat.noise import entropy

    drawn = [0]

    def urandom(count: int) -> bytes:
        drawn[0] += 1
        return shake_256(drawn[0].to_bytes(8, "little")).digest(count)

    def restart() -> None:
        drawn[0] = 0

    monkeypatch.setattr(entropy, "os", SimpleNamespace(urandom=urandom))
    return restart
