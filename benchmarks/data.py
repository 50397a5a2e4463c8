"""What exact sums cost beside plain means and plain reading, in one run.

Ratios of CPU time, the median of five interleaved runs; nothing is asserted here.
Run with `python -m benchmarks.data`.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from muhat.data import exact_sums, open_source
from muhat.domains.lattice import BallLattice, BoxLattice, Lattice

REPEATS = 5


def cpu_seconds(*works: Callable[[], object]) -> list[float]:
    """The median CPU time of each piece of work, measured in turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(REPEATS):
        for work, taken in zip(works, times, strict=True):
            start = time.process_time()
            work()
            taken.append(time.process_time() - start)
    return [statistics.median(taken) for taken in times]


def report(title: str, target: str, baseline: str, works: dict[str, Callable[[], object]]) -> None:
    """Print every piece of work as a multiple of the first."""
    seconds = cpu_seconds(*works.values())
    print(f"\n{title}  ({baseline}: {seconds[0] * 1e3:.1f} ms; target {target})")
    for name, taken in zip(works, seconds, strict=True):
        print(f"  {name:<44}{taken / seconds[0]:8.2f}×")


def ours(data: Any, lattice: Lattice, columns: Any = None) -> Callable[[], object]:
    """One pass of the engine, opening the source included."""
    return lambda: exact_sums(open_source(data, columns, lattice.dim), lattice)


def one_column() -> None:
    """10⁷ float64 in a box."""
    values = np.random.default_rng(0).random(10_000_000)
    works = {"np.mean": lambda: np.mean(values), "muhat": ours(values, BoxLattice.around([0], [1]))}
    works |= diffprivlib_mean(values, 0.0, 1.0) | opendp_mean(values)
    report("10⁷ values, one column, box", "≤ 4.5×", "np.mean", works)


def many_columns() -> None:
    """10⁶×16 in a ball, row by row and column by column."""
    rows = np.random.default_rng(1).standard_normal((1_000_000, 16))
    columns = {str(j): np.ascontiguousarray(rows[:, j]) for j in range(16)}
    ball, moved = BallLattice.around([0.0] * 16, 4.0), BallLattice.around([0.1] * 16, 4.0)
    works = {
        "mean(axis=0)": lambda: rows.mean(axis=0),
        "muhat, ball": ours(rows, ball),
        "muhat, ball off the origin": ours(rows, moved),
        "muhat, box": ours(rows, BoxLattice.around([-4] * 16, [4] * 16)),
    }
    works |= diffprivlib_mean(rows, -4.0, 4.0)
    report("10⁶×16, C-ordered", "≤ 3×", "mean(axis=0)", works)
    report(
        "10⁶×16, columnar",
        "≤ 6×",
        "means of the columns",
        {
            "means of the columns": lambda: [column.mean() for column in columns.values()],
            "muhat, ball": ours(columns, ball),
            "muhat, ball off the origin": ours(columns, moved),
            "muhat, box": ours(columns, BoxLattice.around([-4] * 16, [4] * 16)),
        },
    )


def files(folder: Path) -> None:
    """Parquet and CSV passes beside single-threaded reading of the same columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    made = np.random.default_rng(2).standard_normal((2_000_000, 4))
    names = ["a", "b", "c", "d"]
    table = pa.table({name: made[:, j] for j, name in enumerate(names)})
    parquet, text = folder / "x.parquet", folder / "x.csv"
    pq.write_table(table, parquet, row_group_size=250_000)
    csv.write_csv(table.slice(0, 300_000), text)
    box, ball = BoxLattice.around([-3] * 2, [3] * 2), BallLattice.around([0.0] * 2, 2.0)
    report(
        "Parquet, 2 of 4 columns, 2·10⁶ rows",
        "≤ 2×",
        "pyarrow, one thread",
        {
            "pyarrow.parquet.read_table": lambda: pq.read_table(
                parquet, columns=["a", "c"], use_threads=False
            ),
            "muhat, box": ours(parquet, box, ["a", "c"]),
            "muhat, ball": ours(parquet, ball, ["a", "c"]),
        },
    )
    read = csv.ReadOptions(use_threads=False)
    convert = csv.ConvertOptions(include_columns=["a", "c"])
    report(
        "CSV, 2 of 4 columns, 3·10⁵ rows",
        "none set",
        "pyarrow, one thread",
        {
            "pyarrow.csv.read_csv": lambda: csv.read_csv(
                text, read_options=read, convert_options=convert
            ),
            "muhat, box": ours(text, box, ["a", "c"]),
        },
    )


def diffprivlib_mean(values: Any, low: float, high: float) -> dict[str, Callable[[], object]]:
    """diffprivlib's mean, if it is installed."""
    try:
        from diffprivlib import tools
    except ImportError:
        return {}

    def work() -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tools.mean(values, epsilon=1.0, bounds=(low, high), axis=0)

    return {"diffprivlib": work}


def opendp_mean(values: Any) -> dict[str, Callable[[], object]]:
    """OpenDP's clamped mean on its framework, if it is installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return {}

    dp.enable_features("contrib", "idealized-numerics")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    chain = (
        space
        >> dp.t.then_clamp((0.0, 1.0))
        >> dp.t.then_resize(len(values), constant=0.5)
        >> dp.t.then_mean()
        >> dp.m.then_laplace(1e-6)
    )
    return {"opendp": lambda: chain(values)}


def main() -> None:
    """Print all ratios."""
    one_column()
    many_columns()
    with tempfile.TemporaryDirectory() as folder:
        files(Path(folder))


if __name__ == "__main__":
    main()
