"""What exact noise costs, against numpy's normal, in one run.

CPU time, the median of five interleaved rounds; trust the ratios.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import numpy as np

from muhat.noise import rounded_euclidean, rounded_laplace, rounded_maximum, rounded_normal

SIZE = 1_000_000
ROUNDS = 5

Job = tuple[Callable[[], object], int]
"""What to run, and how many values that makes."""


def opendp_gaussian() -> Job | None:
    """OpenDP's Gaussian on integers, if it is installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    size = 1000
    measurement = dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float), scale=2.0**40
    )
    zeros = [0] * size
    return lambda: measurement(zeros), size


def jobs() -> dict[str, Job]:
    """The rows of the table."""
    generator = np.random.default_rng()
    rows: dict[str, Job] = {
        "numpy standard_normal (not private)": (lambda: generator.standard_normal(SIZE), SIZE),
        "os.urandom, 8 bytes a value": (lambda: os.urandom(8 * SIZE), SIZE),
        "rounded_normal": (lambda: rounded_normal(SIZE), SIZE),
        "rounded_laplace": (lambda: rounded_laplace(SIZE), SIZE),
        "rounded_euclidean, dim 1000": (lambda: rounded_euclidean(1000), 1000),
        "rounded_maximum, dim 1000": (lambda: rounded_maximum(1000), 1000),
    }
    if (peer := opendp_gaussian()) is not None:
        rows["OpenDP Gaussian"] = peer
    return rows


def main() -> None:
    """Prints nanoseconds a value and the ratio to numpy."""
    rows = jobs()
    times: dict[str, list[float]] = {name: [] for name in rows}
    for run, _ in rows.values():
        run()
    for _ in range(ROUNDS):
        for name, (run, size) in rows.items():
            start = time.process_time()
            run()
            times[name].append((time.process_time() - start) / size * 1e9)
    medians = {name: statistics.median(values) for name, values in times.items()}
    base = next(iter(medians.values()))
    print(f"{'noise':<38}{'ns a value':>12}{'ratio':>10}")
    for name, value in medians.items():
        print(f"{name:<38}{value:>12.1f}{value / base:>9.1f}×")


if __name__ == "__main__":
    main()
