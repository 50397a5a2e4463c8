"""One cell of benchmarks/scale.py, measured in a process of its own.

    python -m benchmarks.scale_cells JOB

JOB is a `Job` as JSON; a `Seen` is printed as JSON. Opening the source is part of a pass, starting
Python and Spark is not: a pass over a small table comes before those that are measured.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.scale_processes import cpu_seconds, family, forget_peaks
from muhat.data import Sums, exact_sums, open_source
from muhat.data.base import paced
from muhat.domains.lattice import BallLattice

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.executor.memory": "1g",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.sql.files.maxPartitionBytes": "1g",
}


@dataclass(frozen=True)
class Job:
    """What is measured: some passes over a table, on this machine or on a cluster.

    `empty` is a table as `table` with one row a file, `warm` is read first. Without a master the
    embedded engine reads.
    """

    table: str
    empty: str
    warm: str
    dim: int
    files: int
    passes: int
    master: str | None = None


@dataclass(frozen=True)
class Seen:
    """Least CPU and wall seconds of a pass, and of one over a row a file; memory in MiB.

    `cpu` is of all processes that work for the pass, `driver_cpu` of those of the driver. `driver`
    is the peak of the driver's Python process, `jvm` of its Java process, and `worker` the largest
    of a Python process on an executor. `sums` is a digest of what came out.
    """

    cpu: float
    wall: float
    driver_cpu: float
    empty_cpu: float
    empty_wall: float
    driver: float
    jvm: float
    worker: float
    sums: str

    def best(self, other: Seen) -> Seen:
        """The lesser times and the larger peaks of two runs of the same cell."""
        if self.sums != other.sums:
            raise AssertionError("two passes over the same table gave different sums")
        times = ("cpu", "wall", "driver_cpu", "empty_cpu", "empty_wall")
        peaks = ("driver", "jvm", "worker")
        return Seen(
            **{name: min(getattr(self, name), getattr(other, name)) for name in times},
            **{name: max(getattr(self, name), getattr(other, name)) for name in peaks},
            sums=self.sums,
        )


class Kept:
    """Cells measured so far, in a file of JSON lines if there is one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        there = path.read_text().splitlines() if path is not None and path.exists() else []
        self._seen = {line["cell"]: Seen(**line["seen"]) for line in map(json.loads, there)}

    def get(self, name: str, job: Callable[[], Job]) -> Seen:
        """What was kept under a name, or is measured now."""
        if name not in self._seen:
            self._seen[name] = measured(job())
            print(f"{name}: {self._seen[name].cpu:.3f} s", file=sys.stderr, flush=True)
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps({"cell": name, "seen": asdict(self._seen[name])}) + "\n")
        return self._seen[name]


def measured(job: Job) -> Seen:
    """The cell, by a new process."""
    variables = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.scale_cells", json.dumps(asdict(job))]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, env=variables, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return Seen(**json.loads(done.stdout.splitlines()[-1]))


def measure(job: Job) -> Seen:
    """The cell, in this process."""
    lattice = BallLattice.around([0.0] * job.dim, math.sqrt(job.dim / 3))
    opened = _reader(job)

    def run(table: str) -> Sums:
        with paced(show_progress=False):
            return exact_sums(open_source(opened(table), None, job.dim), lattice)

    run(job.warm)
    run(job.empty)
    everyone = _everyone(job)
    forget_peaks(everyone)
    clocks = _clocks(job)
    empty = [_timed(lambda: run(job.empty), *clocks) for _ in range(job.passes + 1)]
    full = [_timed(lambda: run(job.table), *clocks) for _ in range(job.passes)]
    here, others = family([os.getpid()]), family(everyone)
    elsewhere = {each.pid for each in others} - {each.pid for each in here} - set(everyone)
    sums = full[0].sums
    return Seen(
        cpu=min(each.cpu for each in full),
        wall=min(each.wall for each in full),
        driver_cpu=min(each.driver_cpu for each in full),
        empty_cpu=min(each.cpu for each in empty),
        empty_wall=min(each.wall for each in empty),
        driver=sum(each.peak() for each in here if each.pid == os.getpid()),
        jvm=sum(each.peak() for each in here if each.name == "java"),
        worker=max(
            (each.peak() for each in others if each.pid in elsewhere and each.name != "java"),
            default=0.0,
        ),
        sums=hashlib.sha256(repr((sums.rows, sums.total)).encode()).hexdigest(),
    )


def _reader(job: Job) -> Callable[[str], Any]:
    if job.master is None:
        return lambda table: f"{table}/*.parquet"
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(job.master).appName("muhat benchmarks")
    # As many as there are files: then each of them is a partition.
    settings = {**SETTINGS, "spark.sql.files.minPartitionNum": str(job.files)}
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    return lambda table: session.read.parquet(table)


def _everyone(job: Job) -> list[int]:
    """Whose family works for a pass: the program that started this one has the cluster, too."""
    return [os.getpid()] if job.master is None else [os.getppid()]


@dataclass(frozen=True)
class _Timed:
    cpu: float
    driver_cpu: float
    wall: float
    sums: Sums


def _timed(
    work: Callable[[], Sums], clock: Callable[[], float], driver: Callable[[], float]
) -> _Timed:
    started, cpu, driver_cpu = time.perf_counter(), clock(), driver()
    sums = work()
    wall = time.perf_counter() - started
    return _Timed(clock() - cpu, driver() - driver_cpu, wall, sums)


def _clocks(job: Job) -> tuple[Callable[[], float], Callable[[], float]]:
    """CPU seconds of all that work for a pass, and of the driver alone."""
    if job.master is None:
        return time.process_time, time.process_time
    return lambda: cpu_seconds(_everyone(job)), lambda: cpu_seconds([os.getpid()])


if __name__ == "__main__":
    print(json.dumps(asdict(measure(Job(**json.loads(sys.argv[1]))))))
