"""Errors of means of one column that nobody has bounded: two ends beside a ball.

    python -m benchmarks.line [--trials N] [--write]

The last writes benchmarks/results/line.md. Wages come with the extra `study`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np

import muhat as mh
from benchmarks.coverage_shapes import Shape, shapes
from benchmarks.pages import fenced, shown, versions
from muhat.mechanisms.learning.last_radius import LastRadius

RESULTS = Path(__file__).parent / "results" / "line.md"
HEADER = (
    "  data                           n     ρ      ball      ends  ratio  ball holds  ends hold"
)
NUMBERS, PROMISES, MAGNITUDE = (2000, 10_000), (0.5, 0.05), 1e6

ABOUT = """\
Root mean square errors against the mean of the records as they are, so that the bias of clipping
counts too, of {trials} releases of new records, the same for both. `ends`: muhat's default for one
column, two ends from a curve of counts; `ball`: the same chain with a last radius and a centre that
moves aside, as in more columns. `holds`: how often the 95 % interval, which is about the clipped
records, held the mean of all of them. {magnitude:g} is the public bound on every value; ρ-zCDP, n
public.
"""


def main(trials: int = 40, write: bool = False) -> None:
    """One line a shape, a number of records and a promise."""
    kept = shown("means of one column, two ends beside a ball", HEADER, lines(trials))
    if write:
        about = ABOUT.format(trials=trials, magnitude=MAGNITUDE)
        made = f"Made by `python -m benchmarks.line --trials {trials} --write` with {versions()}.\n"
        page = ["# Means of one column that nobody has bounded\n", made, about, fenced(kept)]
        RESULTS.write_text("\n".join(page))


def lines(trials: int) -> Iterator[str]:
    """The table, and the geometric mean of the ratios."""
    ratios = []
    for n in NUMBERS:
        for rho in PROMISES:
            for shape in shapes():
                with mock.patch.object(LastRadius, "on_line", False):
                    ball, ball_holds = errors(shape, n, rho, trials)
                ends, ends_hold = errors(shape, n, rho, trials)
                ratios.append(ends / ball)
                yield (
                    f"  {shape.name:24}{n:8}{rho:6g}{ball:10.3g}{ends:10.3g}{ends / ball:7.2f}"
                    f"{ball_holds:12.0%}{ends_hold:11.0%}"
                )
    mean = math.exp(np.mean(np.log(ratios)))
    yield f"\n  the geometric mean of the ratios: {mean:.2f}; the largest: {max(ratios):.2f}"


def errors(shape: Shape, n: int, rho: float, trials: int) -> tuple[float, float]:
    """The root mean square error, and how often the interval held the mean of the records."""
    plan = mh.plan_mean(domain=mh.Reals(1, MAGNITUDE), n=n, privacy=mh.ZCDP(rho=rho), insist=True)
    squares, held = [], 0
    for trial in range(trials):
        rows = shape.draw(np.random.default_rng(trial), n)
        release = plan.release(rows)
        (lower,), (upper,) = release.interval()
        squares.append((float(release) - rows.mean()) ** 2)
        held += bool(lower <= rows.mean() <= upper)
    return math.sqrt(np.mean(squares)), held / trials


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Errors of means of one column.")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results")
    options = parser.parse_args()
    main(options.trials, options.write)
