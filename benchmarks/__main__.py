"""Run every benchmark, with one thread of BLAS and of polars.

Peers (OpenDP, diffprivlib, DuckDB, polars) are measured beside muhat where they are installed:
`pip install '.[bench]'`. So is Spark: `pip install '.[spark]'`, and Java.
"""

from __future__ import annotations

import os

for variable in (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "POLARS_MAX_THREADS",
):
    os.environ[variable] = "1"

from benchmarks import (  # noqa: E402  (after the threads)
    backends,
    data,
    devices,
    ellipsoids,
    engines,
    noise,
    planning,
    protocols,
    pushdown,
    pushdown_spark,
    queries,
    scale,
    sets,
    timing,
    unbounded,
)


def main() -> None:
    noise.main()
    data.main()
    planning.main()
    ellipsoids.main()
    queries.main()
    unbounded.main()
    protocols.main()
    devices.main()
    scale.main()
    sets.main(rows=10**6)
    pushdown.main(rows=10**6)
    pushdown_spark.main()
    backends.main()
    engines.main()
    timing.main()


if __name__ == "__main__":
    main()
