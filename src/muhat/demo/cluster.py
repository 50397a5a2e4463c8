"""A standalone Spark on this machine, a master and some workers: for demonstrations and tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from muhat.errors import InvalidInput

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java that make small programs start sooner."""

HERE = "127.0.0.1"
PATIENCE_SECONDS = 300


class LocalCluster:
    """A master and workers of one core each, every one a process of its own.

    They write their files to `folder`, executors included. `url` is what a session connects to.
    There is a worker for each of the `hosts`, which are addresses of this machine: Spark tries a
    task twice at once only on two that differ.
    """

    def __init__(self, folder: Path, hosts: Sequence[str] = (HERE, HERE)) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            master = self._start("master", "Master", HERE, "--port", "0")
            self.url = _written(master, r"Starting Spark master at (spark://\S+)")
            logs = [
                self._start(f"worker-{number}", "Worker", host, "--cores", "1", self.url)
                for number, host in enumerate(hosts)
            ]
            for log in logs:
                _written(log, r"(Successfully registered with master)")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all processes; executors end with their workers."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
            process.wait()

    def _start(self, name: str, daemon: str, host: str, *arguments: str) -> Path:
        import pyspark

        work = self._folder / name
        work.mkdir()
        home = Path(pyspark.__file__).parent
        program = f"org.apache.spark.deploy.{daemon.lower()}.{daemon}"
        command = [str(home / "bin" / "spark-class"), program, "--host", host]
        command += ["--webui-port", "0"]
        if daemon == "Worker":
            command += ["--work-dir", str(work), "--memory", "1g"]
        log = work / "daemon.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, *arguments], stdout=output, stderr=output, env=environment()
            )
        self._processes.append(process)
        return log


def environment() -> dict[str, str]:
    """What processes of Spark's are started with: this Python, and Java in a hurry."""
    return {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f'--driver-java-options "{QUICK}" pyspark-shell',
        "SPARK_LOCAL_IP": HERE,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
    }


@contextmanager
def local_session(settings: Mapping[str, str]) -> Iterator[Any]:
    """A session on a cluster of two workers of its own; both end with the block."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InvalidInput("Spark needs pyspark: pip install 'muhat[spark]'.") from None
    with tempfile.TemporaryDirectory(prefix="muhat-spark-") as folder:
        cluster = LocalCluster(Path(folder))
        try:
            os.environ.update(environment())
            builder: Any = SparkSession.builder
            builder = builder.master(cluster.url).appName("muhat")
            for key, value in settings.items():
                builder = builder.config(key, value)
            session = builder.getOrCreate()
            try:
                yield session
            finally:
                session.stop()
        finally:
            cluster.stop()


def _written(log: Path, pattern: str) -> str:
    """What a process writes to its log once it is ready."""
    for _ in range(PATIENCE_SECONDS * 10):
        found = re.search(pattern, log.read_text(errors="replace"))
        if found is not None:
            return found[1]
        time.sleep(0.1)
    raise InvalidInput("Spark does not start on this machine: it needs Java 17.")
