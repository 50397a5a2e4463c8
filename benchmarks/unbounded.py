"""Errors of means that nobody has bounded, beside the papers' estimators, on data of many shapes.

The error is the ℓ₂ distance to the empirical mean of the records as they are, so it counts the
bias of clipping too. Every estimator of a trial sees the same records and the same public inputs.

    python -m benchmarks.unbounded [--quick] [--trials N] [--cells PATTERN] [--digits FOLDER]
        [--write]

The last writes benchmarks/results/unbounded.md. The folder holds the four files of handwritten
digits as they were first published; MUHAT_DIGITS may name it too.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

import numpy as np

import muhat as mh
from benchmarks import unbounded_covariance
from benchmarks.pages import fenced, versions
from benchmarks.unbounded_cells import DIGITS, GRID, PAPER, QUICK, Cell
from benchmarks.unbounded_lines import (
    HEADER,
    MAGNITUDE,
    MOST_SPREAD,
    MOST_WORSE,
    ROUNDS,
    measure,
    summary,
)
from muhat.data import distances
from muhat.studies.samples import SHAPES, SampleShape, digits, fixed

RESULTS = Path(__file__).parent / "results" / "unbounded.md"
NO_DIGITS = "  handwritten digits: left out, no --digits FOLDER was given"

ABOUT = f"""\
Errors are ℓ₂ distances to the empirical mean of the records as they are; new records in every
trial, the same for all estimators. {MAGNITUDE:g} is the public bound on every coordinate; ρ-zCDP,
substitution, n public. `RMS`, `trimmed` (without a tenth at both ends) and `w/m` (worst trial
beside the median) are muhat's default. `ball` is the best ball around the exact mean in hindsight,
with nothing spent on finding it. The baselines, RMS: `Shifted`, muhat's corrected `shifted-clipped`
of Huang, Liang and Yi; COINPRESS with the best of {", ".join(map(str, ROUNDS))} rounds in
hindsight, which must know the largest variance: `blind` believes that it is 1, `oracle` is told
(and is left out where it is 1). `ratio` is muhat beside the best of the three, the oracle included,
with its standard error.

Remarks: `worse`, ratio above {MOST_WORSE}; `spread`, w/m above {MOST_SPREAD:g}, and that of the
best baseline; `few`, n below `plan.least_n`: the plan says so beforehand, and is made on insistence
only.
"""


def main(
    quick: bool = True,
    trials: int = 10,
    pattern: str = "*",
    folder: str | None = None,
    write: bool = False,
) -> None:
    """The table of errors, then what the passes cost. Few dimensions have more trials."""
    print(f"\nmeans of data nobody has bounded, magnitude {MAGNITUDE:g}")
    print(HEADER)
    lines = []
    for cell, shape in _chosen(QUICK if quick else GRID, pattern, folder):
        lines.append(measure(cell, shape, cell.runs(trials)))
        print(lines[-1].text, flush=True)
    table = [HEADER, *[line.text for line in lines], *([] if folder else ["", NO_DIGITS]), ""]
    table.append(summary(lines))
    print("\n".join(table[len(lines) + 1 :]))
    covariance = []
    if not quick and pattern == "*":
        covariance.append(unbounded_covariance.HEADER)
        print(f"\n{covariance[-1]}")
        for cell in PAPER:
            covariance.append(unbounded_covariance.learnt_covariance(cell, cell.runs(trials) // 2))
            print(covariance[-1], flush=True)
    cost = speed(100_000 if quick else 1_000_000)
    print(f"\n{cost}")
    if write:
        RESULTS.parent.mkdir(exist_ok=True)
        chosen = ["--quick"] * quick + [f"--cells '{pattern}'"] * (pattern != "*")
        chosen += ["--digits FOLDER"] * bool(folder)
        command = " ".join(
            ["python -m benchmarks.unbounded", *chosen, f"--trials {trials} --write"]
        )
        RESULTS.write_text(_page(command, table, covariance, cost))


def _chosen(
    cells: Sequence[Cell], pattern: str, folder: str | None
) -> Iterator[tuple[Cell, SampleShape]]:
    """The cells whose label matches, and their records; digits too if there is a folder."""
    for cell in cells:
        if fnmatch.fnmatchcase(cell.label, pattern):
            yield cell, SHAPES[cell.name]
    images = digits(Path(folder)) if folder else {}
    for digit, rho in DIGITS if images else []:
        n, dim = images[digit].shape
        cell = Cell(f"digit {digit}", n, dim, rho)
        if fnmatch.fnmatchcase(cell.label, pattern):
            yield cell, fixed(images[digit])


def _page(command: str, table: list[str], covariance: list[str], cost: str) -> str:
    """The tables with all that is needed to make them again."""
    parts = [
        "# Means of data nobody has bounded\n",
        f"Made by `{command}` with {versions()}. The seed of a trial's records is made of the "
        "line's label and the number of the trial; muhat's noise has no seed.\n",
        ABOUT,
        fenced(table),
    ]
    if covariance:
        parts += [unbounded_covariance.ABOUT + "\n", fenced(covariance)]
    return "\n".join([*parts, "What it costs:\n", fenced([cost])])


def speed(rows: int, dim: int = 128) -> str:
    """CPU seconds of a whole release beside as many element-wise passes over the same table."""
    data = np.random.default_rng(0).standard_normal((rows, dim))
    plan = mh.plan_mean(domain=mh.Reals(dim, MAGNITUDE), n=rows, privacy=mh.ZCDP(rho=0.5))
    out = np.empty_like(data)
    np.multiply(data, 2.0, out=out)
    start = time.process_time()
    np.multiply(data, 2.0, out=out)
    once = time.process_time() - start
    with mock.patch.object(distances, "read_once", wraps=distances.read_once) as read:
        start = time.process_time()
        plan.release(data)
        taken = time.process_time() - start
    passes = read.call_count
    return (
        f"  {rows:,} × {dim}: {taken:.2f} s of CPU, {passes} passes, "
        f"{taken / (passes * once):.1f}× as many element-wise ones"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Errors of means that nobody has bounded.")
    parser.add_argument("--quick", action="store_true", help="a few cells")
    parser.add_argument("--trials", type=int, default=20, help="of a cell of many dimensions")
    parser.add_argument("--cells", default="*", metavar="PATTERN", help="such as 'lognormal*d=8 *'")
    parser.add_argument("--digits", default=os.environ.get("MUHAT_DIGITS"), metavar="FOLDER")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results")
    options = parser.parse_args()
    main(options.quick, options.trials, options.cells, options.digits, options.write)
