"""What a pass costs as records, numbers and files grow, here and on a Spark cluster.

    python -m benchmarks.scale [--quick] [--resume FILE] [--write]

Every cell is measured in a process of its own, all cells in turns: least CPU and wall time, largest
peak of memory. Spark is a standalone master with two workers of one core on this machine; without
pyspark only the embedded engine is measured. `--quick` stops at 10⁶ records, else 5 GB of Parquet
are written to a temporary folder. With `--resume` cells are kept in a file as they are measured,
and not measured again. `--write` writes benchmarks/results/scale.md and the table of docs/scale.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import scale_constants as constants
from benchmarks.scale_cells import Job, Kept, Seen
from benchmarks.scale_tables import Shape, write
from benchmarks.scale_written import write_pages
from muhat.data.engine import Accumulator
from muhat.data.states import packed
from muhat.domains.lattice import BallLattice

DIM, FILES = 4, 8
LARGE = 2 * 10**7
STEEPEST = 1.05
"""The slope of log CPU time against log n must not exceed it."""

HEADER = (
    f"{'engine':<9} {'records':>11} {'d':>5} {'as':<7} {'files':>5} {'CPU s':>8} {'wall s':>8} "
    f"{'empty s':>8} {'ns/number':>10} {'driver MiB':>10} {'JVM MiB':>8} {'worker MiB':>10}"
)


@dataclass(frozen=True)
class Series:
    """Tables that differ in one respect."""

    title: str
    shapes: tuple[Shape, ...]


Results = dict[tuple[str, Shape], Seen]


def all_series(quick: bool) -> list[Series]:
    """The tables that are read."""
    records, files = [10**5, 3 * 10**5, 10**6], [1, 10]
    numbers, widths, lists = 1 << 20, [1], [4096]
    if not quick:
        records += [3 * 10**6, 10**7, 3 * 10**7, 10**8]
        files += [100, 1000]
        numbers, widths, lists = 1 << 24, [1, 16, 256, 1024], [16, 256, 1024, 4096]
    return [
        Series("against n", tuple(Shape(rows, DIM, FILES) for rows in records)),
        Series(
            f"against d, {numbers:,} numbers in all",
            (
                *(Shape(numbers // dim, dim, 2) for dim in widths),
                *(Shape(numbers // dim, dim, 2, lists=True) for dim in lists),
            ),
        ),
        Series("against files", tuple(Shape(100_000, DIM, count) for count in files)),
    ]


def main(quick: bool = True, written: bool = False, resume: Path | None = None) -> None:
    """Print all tables, and write them if asked to."""
    chosen = all_series(quick)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="muhat-scale-")))
        masters = {"embedded": None, **_spark(folder, stack)}
        found = measure_all(chosen, masters, folder, 1 if quick else 2, Kept(resume))
    parts = [(series.title, [HEADER, *lines(series, found)]) for series in chosen]
    parts += [
        ("that do not grow with n", [constants.DOMAIN_HEADER, *constants.domain_lines(quick)]),
        ("of a partition's sums", [constants.MESSAGE_HEADER, *constants.message_lines(quick)]),
        ("of the account", [constants.CHARGE_HEADER, *constants.charge_lines(quick)]),
    ]
    verdicts = list(judged(chosen[0], found))
    for title, text in [*parts, ("in one sentence each", verdicts)]:
        print("", f"Costs {title}", *text, sep="\n", flush=True)
    if written:
        write_pages(parts, verdicts, extrapolated(chosen, found))


def _spark(folder: Path, stack: ExitStack) -> dict[str, str]:
    """A cluster until the stack unwinds, if Spark is installed."""
    if importlib.util.find_spec("pyspark") is None:
        print("Spark is not measured: pip install 'muhat[spark]'")
        return {}
    from muhat.demo.cluster import LocalCluster, environment

    os.environ.update(environment(), SPARK_LOCAL_DIRS=str(folder))
    daemons = folder / "cluster"
    daemons.mkdir()
    cluster = LocalCluster(daemons)
    stack.callback(cluster.stop)
    return {"spark": cluster.url}


def measure_all(
    chosen: Sequence[Series],
    masters: dict[str, str | None],
    folder: Path,
    rounds: int,
    kept: Kept,
) -> Results:
    """Every cell, in turns."""
    found: Results = {}
    for turn in range(rounds):
        for shape in (shape for series in chosen for shape in series.shapes):
            for engine, master in masters.items():
                # Slopes need care; of the others, a minute each, once is enough.
                if turn and engine == "spark" and shape not in chosen[0].shapes:
                    continue
                job = partial(cell, shape, folder, master)
                seen = kept.get(f"{turn + 1} {engine} {shape.name}", job)
                before = found.get((engine, shape))
                found[engine, shape] = seen if before is None else seen.best(before)
    for _, shape in found:
        if len({found[engine, shape].sums for engine in masters}) > 1:
            raise AssertionError(f"the engines gave different sums of {shape}")
    return found


def cell(shape: Shape, folder: Path, master: str | None) -> Job:
    """What is measured of a table, its files written if need be."""
    small = Shape(min(shape.rows, 10**6), shape.dim, min(shape.files, FILES), shape.lists)
    empty = Shape(shape.files, shape.dim, shape.files, shape.lists)
    return Job(
        table=str(write(folder, shape)),
        empty=str(write(folder, empty)),
        warm=str(write(folder, small)),
        dim=shape.dim,
        files=shape.files,
        passes=1 if _heavy(shape) else 3,
        master=master,
    )


def _heavy(shape: Shape) -> bool:
    """Whether one pass takes long enough to be measured once."""
    wide = shape.dim > 1000 and not shape.lists
    return shape.rows > LARGE or shape.files > 100 or wide


def lines(series: Series, found: Results) -> Iterator[str]:
    """A line a cell, by engine."""
    for engine in dict.fromkeys(engine for engine, _ in found):
        for shape in series.shapes:
            seen = found[engine, shape]
            yield (
                f"{engine:<9} {shape.rows:>11,} {shape.dim:>5} "
                f"{'lists' if shape.lists else 'columns':<7} {shape.files:>5} {seen.cpu:>8.3f} "
                f"{seen.wall:>8.3f} {seen.empty_cpu:>8.3f} "
                f"{seen.cpu / (shape.rows * shape.dim) * 1e9:>10.1f} {seen.driver:>10.0f} "
                f"{seen.jvm:>8.0f} {seen.worker:>10.0f}"
            )


def judged(series: Series, found: Results) -> Iterator[str]:
    """What the lines against n say of slopes and of memory."""
    for engine in dict.fromkeys(engine for engine, _ in found):
        cells = [(shape.rows, found[engine, shape]) for shape in series.shapes]
        work = [
            (rows, seen.cpu - seen.empty_cpu)
            for rows, seen in cells
            if seen.cpu >= 2 * seen.empty_cpu
        ]
        if len(work) < 2:
            yield f"{engine}: no slope, starting a pass costs most up to {cells[-1][0]:,} records"
        else:
            steepness = slope(work)
            yield (
                f"{engine}: slope of log CPU time against log n {steepness:.3f}, over n from "
                f"{work[0][0]:,} to {work[-1][0]:,}, where records cost more than a pass over one "
                f"record a file, which is subtracted; at most {STEEPEST}: "
                f"{'yes' if steepness <= STEEPEST else 'NO'}"
            )
        for name, peaks in (
            ("driver's Python", [seen.driver for _, seen in cells]),
            ("driver's Java", [seen.jvm for _, seen in cells]),
        ):
            if all(peaks):
                earlier = [
                    place for place, (rows, _) in enumerate(cells) if rows * 10 <= cells[-1][0]
                ]
                yield (
                    f"{engine}: memory of the {name} at n = {cells[-1][0]:,} is "
                    f"{peaks[-1] / peaks[0]:.2f} of that at {cells[0][0]:,}, and "
                    f"{peaks[-1] / peaks[earlier[-1]]:.2f} of that at {cells[earlier[-1]][0]:,}"
                )


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the line through log y against log x, by least squares.

    >>> round(slope([(1, 3), (10, 30), (100, 300)]), 9)
    1.0
    """
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0])


ROWS = 10**12
PARTITION_BYTES = 1 << 27
"""As Spark cuts files by default."""


def extrapolated(chosen: Sequence[Series], found: Results) -> list[list[str]]:
    """The rows of a table: what 10¹² records would cost by the constants of the largest tables."""
    engines = list(dict.fromkeys(engine for engine, _ in found))
    shape = chosen[0].shapes[-1]
    seconds = [
        (found[engine, shape].cpu - found[engine, shape].empty_cpu) / shape.rows
        for engine in engines
    ]
    cores = [4 if engine == "embedded" else 1000 for engine in engines]
    size = ROWS * DIM * 8
    rows = [
        [f"10¹² records of {DIM} numbers, {size / 1e12:.0f} TB", *engines],
        ["CPU a record", *(f"{each * 1e9:.0f} ns" for each in seconds)],
        ["CPU in all", *(f"{each * ROWS / 3600:,.0f} core-hours" for each in seconds)],
        [
            "time, were all cores ours",
            *(
                f"{each * ROWS / 60 / count:,.0f} min on {count:,} cores"
                for each, count in zip(seconds, cores, strict=True)
            ),
        ],
    ]
    if "spark" in engines:
        few, many = (found["spark", each] for each in chosen[-1].shapes[-2:])
        added = chosen[-1].shapes[-1].files - chosen[-1].shapes[-2].files
        parts = -(-size // PARTITION_BYTES)
        everyone = (many.cpu - few.cpu) / added
        driver = (many.driver_cpu - few.driver_cpu) / added
        message = len(packed(Accumulator(BallLattice.around([0.0] * DIM, 1.0)).state()))
        rows += [
            ["partitions of 128 MiB", "", f"{parts:,}"],
            ["CPU to start and end a partition", "", f"{everyone * 1e3:.0f} ms"],
            ["of that on the driver", "", f"{driver * 1e3:.1f} ms"],
            ["CPU of the driver for all", "", f"{driver * parts / 60:,.0f} min"],
            ["sums that come to the driver", "", f"{parts * message / 1e6:,.0f} MB"],
        ]
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--resume", type=Path)
    arguments = parser.parse_args()
    main(arguments.quick, arguments.write, arguments.resume)
