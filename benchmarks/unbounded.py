"""Errors of means that nobody has bounded, on data of many shapes, and how long they take.

The error is the ℓ₂ distance to the empirical mean of the records as they are, so it counts the
bias of clipping too: root mean square, 10 % trimmed mean, and the worst trial beside the median.
Targets are those of the recentring chain that was measured before this one was written.
Run with `python -m benchmarks.unbounded [--full] [--trials N] [--write]`; the last writes the
table to benchmarks/results/unbounded.md.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import muhat as mh

MAGNITUDE = 1e4
RESULTS = Path(__file__).parent / "results" / "unbounded.md"


@dataclass(frozen=True)
class Cell:
    """One line of the table: a shape of data, and the promise."""

    name: str
    n: int
    dim: int
    rho: float = 0.5
    target: float | None = None


Generator = np.random.Generator
Shape = Callable[[Generator, int, int], np.ndarray]


def _eigenvalues(kappa: float) -> Shape:
    """Independent normals with variances spread evenly from 1 to κ."""
    return lambda rng, n, dim: rng.standard_normal((n, dim)) * np.sqrt(np.linspace(1, kappa, dim))


def _cluster(rng: Generator, n: int, dim: int) -> np.ndarray:
    rows = rng.standard_normal((n, dim))
    rows[: n // 20] += 10.0
    return rows


def _ray(rng: Generator, n: int, dim: int) -> np.ndarray:
    return rng.exponential(1.0, (n, 1)) * np.ones(dim) / np.sqrt(dim)


SHAPES: dict[str, Shape] = {
    "normal": lambda rng, n, dim: rng.standard_normal((n, dim)),
    "normal + 10": lambda rng, n, dim: rng.standard_normal((n, dim)) + 10,
    "normal + 1000": lambda rng, n, dim: rng.standard_normal((n, dim)) + 1000,
    "κ = 10": _eigenvalues(10),
    "κ = 100": _eigenvalues(100),
    "κ = 1000": _eigenvalues(1000),
    "t₃": lambda rng, n, dim: rng.standard_t(3, (n, dim)),
    "lognormal": lambda rng, n, dim: np.exp(rng.standard_normal((n, dim))),
    "exponential ray": _ray,
    "5 % far cluster": _cluster,
    "integers": lambda rng, n, dim: rng.poisson(3.0, (n, dim)),
    "constant": lambda rng, n, dim: np.full((n, dim), 7.5),
}

TARGETS = [
    Cell("normal", 4000, 8, target=0.0066),
    Cell("normal", 4000, 128, target=0.0756),
    Cell("normal", 4000, 512, target=0.287),
    Cell("κ = 1000", 4000, 128, target=1.68),
    Cell("lognormal", 4000, 8, target=0.0436),
    Cell("lognormal", 4000, 128, target=0.276),
    Cell("5 % far cluster", 4000, 8, target=0.0412),
    Cell("5 % far cluster", 4000, 128, target=0.652),
    Cell("normal", 500, 128, target=0.68),
]

MORE = [Cell(name, 4000, dim) for name in SHAPES for dim in (2, 32)]

FULL = [
    *[Cell(name, 4000, dim) for name in SHAPES for dim in (2, 8, 32, 128, 512, 1024)],
    *[Cell(name, n, dim) for name in SHAPES for n in (500, 1000, 20_000) for dim in (8, 128)],
    *[
        Cell(name, 4000, dim, rho)
        for name in SHAPES
        for rho in (0.02, 0.1, 2.0)
        for dim in (8, 128)
    ],
]


def main(full: bool = False, trials: int = 20, write: bool = False) -> None:
    """The table of errors, then what the passes cost."""
    print(f"\nmeans of data nobody has bounded, magnitude {MAGNITUDE:g}, {trials} trials")
    lines = [
        f"  {'data':<17}{'n':>7}{'d':>6}{'ρ':>6}{'RMS':>10}{'trimmed':>10}"
        f"{'worst/median':>14}{'target':>9}{'RMS/target':>12}"
    ]
    print(lines[0])
    for cell in [*TARGETS, *(FULL if full else MORE)]:
        lines.append(_line(cell, trials))
        print(lines[-1], flush=True)
    lines.append(speed(1_000_000 if full else 100_000))
    print(lines[-1])
    if write:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(_page(lines, trials))


def _page(lines: list[str], trials: int) -> str:
    """The table with all that is needed to make it again."""
    versions = f"muhat {mh.__version__}, numpy {np.__version__}, Python {platform.python_version()}"
    made = "python -m benchmarks.unbounded " + " ".join(sys.argv[1:])
    about = (
        f"Made by `{made}` with {versions}. Data from seed 0, {trials} trials a line with new data "
        f"and new noise each (noise has no seed); magnitude {MAGNITUDE:g}, zCDP, substitution, "
        "n public. Errors are ℓ₂ distances to the empirical mean of the records as they are: root "
        "mean square, 10 % trimmed mean, worst trial beside the median."
    )
    body = "\n".join(lines)
    return f"# Means of data nobody has bounded\n\n{about}\n\n```\n{body}\n```\n"


def _line(cell: Cell, trials: int) -> str:
    try:
        errors = measure(cell, trials)
    except mh.InvalidInput:
        few = "n is below the stated minimum"
        return f"  {cell.name:<17}{cell.n:>7}{cell.dim:>6}{cell.rho:>6g}   {few}"
    root = float(np.sqrt(np.mean(errors**2)))
    cut = trials // 10
    trimmed = float(np.sort(errors)[cut : trials - cut].mean())
    worst = float(errors.max() / np.median(errors))
    text = f"  {cell.name:<17}{cell.n:>7}{cell.dim:>6}{cell.rho:>6g}{root:>10.3g}{trimmed:>10.3g}"
    text += f"{worst:>14.2f}"
    return text if cell.target is None else f"{text}{cell.target:>9g}{root / cell.target:>12.2f}"


def measure(cell: Cell, trials: int) -> np.ndarray:
    """The errors of so many trials, each with data of its own from a fixed seed."""
    plan = mh.plan_mean(
        domain=mh.Reals(cell.dim, MAGNITUDE), n=cell.n, privacy=mh.ZCDP(rho=cell.rho)
    )
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(trials):
        rows = SHAPES[cell.name](rng, cell.n, cell.dim)
        errors.append(float(np.linalg.norm(plan.release(rows).value - rows.mean(axis=0))))
    return np.array(errors)


def speed(rows: int, dim: int = 128) -> str:
    """CPU seconds of a whole release beside as many element-wise passes over the same table."""
    data = np.random.default_rng(0).standard_normal((rows, dim))
    plan = mh.plan_mean(domain=mh.Reals(dim, MAGNITUDE), n=rows, privacy=mh.ZCDP(rho=0.5))
    out = np.empty_like(data)
    np.multiply(data, 2.0, out=out)
    start = time.process_time()
    np.multiply(data, 2.0, out=out)
    once = time.process_time() - start
    start = time.process_time()
    release = plan.release(data)
    taken = time.process_time() - start
    steps = release.assumptions[-1].split(": ")[1].split(", ")
    # The two last radii come from one pass.
    passes = len(steps) - sum(step.startswith("inner") for step in steps)
    return (
        f"\n  {rows:,} × {dim}: {taken:.2f} s of CPU, {passes} passes, "
        f"{taken / (passes * once):.1f}× as many element-wise ones"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Errors of means that nobody has bounded.")
    parser.add_argument("--full", action="store_true", help="many more cells")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results")
    options = parser.parse_args()
    main(options.full, options.trials, options.write)
