"""Errors of means of one column that nobody has bounded under (ε, δ): pure noise on the mean.

    python -m benchmarks.line_pure [--trials N] [--write]

The last writes benchmarks/results/line_pure.md. Wages come with the extra `study`.
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
from muhat.mechanisms.learning.pure_mean import PureMean
from muhat.mechanisms.learning.recentring_schedule import Schedule
from muhat.noise.kinds import NoiseKind
from muhat.noise.protection import Protection
from muhat.planning.plan import Plan
from muhat.privacy import Neighbors

RESULTS = Path(__file__).parent / "results" / "line_pure.md"
HEADER = "  data                           n     ε    normal      pure  ratio      ±"
BEYOND = "  d       n     ε  learning at most  share of ε for the mean  pure/normal"
NUMBERS, EPSILONS, DELTA, MAGNITUDE = (2000, 20_000), (0.5, 1.0, 2.0), 1e-6, 1e6

ABOUT = """\
Root mean square errors against the mean of the records as they are, so that the bias of clipping
counts too, of {trials} releases of new records, the same for both. `pure`: muhat's default for one
column under (ε, {delta:g}): normal noise on what finds the ends, pure noise on the mean between
them; `normal`: normal noise on both. ± is the standard error of the ratio. {magnitude:g} is the
public bound on every value; n public.
"""
WHY_ONE = """\
In more dimensions: what the steps before the mean may take of μ² on the longest paths of two rounds
more, the largest share of ε that leaves for the mean, and the noise of the mean's own K-norm for
that share beside normal noise on the common path, both on a whole ball.
"""


def main(trials: int = 100, write: bool = False) -> None:
    """One line a shape, a number of records and a promise; then why it is for one column."""
    kept = shown("means of one column, pure noise on the mean", HEADER, lines(trials))
    more = shown("more dimensions", BEYOND, dimensions())
    if write:
        about = ABOUT.format(trials=trials, delta=DELTA, magnitude=MAGNITUDE)
        command = f"python -m benchmarks.line_pure --trials {trials} --write"
        made = f"Made by `{command}` with {versions()}.\n"
        page = ["# Means of one column under (ε, δ) that nobody has bounded\n", made, about]
        RESULTS.write_text("\n".join([*page, fenced(kept), WHY_ONE, fenced(more)]))


def lines(trials: int) -> Iterator[str]:
    """The table, and the geometric mean of the ratios."""
    ratios = []
    for n in NUMBERS:
        for epsilon in EPSILONS:
            pure = planned(n, epsilon)
            with mock.patch.object(PureMean, "leaving", return_value=None):
                normal = planned(n, epsilon)
            for shape in shapes():
                before, after = (squares(plan, shape, n, trials) for plan in (normal, pure))
                ratio = math.sqrt(after.mean() / before.mean())
                relative = [
                    each.std() / each.mean() / math.sqrt(trials) for each in (before, after)
                ]
                ratios.append(ratio)
                yield (
                    f"  {shape.name:24}{n:8}{epsilon:6g}{math.sqrt(before.mean()):10.3g}"
                    f"{math.sqrt(after.mean()):10.3g}{ratio:7.2f}"
                    f"{ratio * math.hypot(*relative) / 2:7.2f}"
                )
    mean = math.exp(np.mean(np.log(ratios)))
    yield f"\n  the geometric mean of the ratios: {mean:.2f}; the largest: {max(ratios):.2f}"


def planned(n: int, epsilon: float) -> Plan:
    """The plan for one column."""
    promise = mh.ApproxDP(epsilon, DELTA)
    return mh.plan_mean(domain=mh.Reals(1, MAGNITUDE), n=n, privacy=promise, insist=True)


def squares(plan: Plan, shape: Shape, n: int, trials: int) -> np.ndarray:
    """The squared errors of releases of new records."""
    found = []
    for trial in range(trials):
        rows = shape.draw(np.random.default_rng(trial), n)
        found.append((float(plan.release(rows)) - rows.mean()) ** 2)
    return np.array(found)


def dimensions() -> Iterator[str]:
    """What pure noise on the mean would have in more dimensions; from schedules, without data."""
    for dim in (2, 3, 4):
        for epsilon in EPSILONS:
            n = NUMBERS[-1]
            protection = Protection(mh.ApproxDP(epsilon, DELTA), Neighbors.SUBSTITUTE, 1)
            schedule = Schedule(MAGNITUDE, np.ones(dim), n, protection, NoiseKind.NORMAL)
            rounds = 3 * (schedule.center_share + schedule.first_share + schedule.question_share)
            last = schedule.last.most_share + schedule.most_aside + schedule.outside_share
            learning = schedule.first_share + rounds + last
            found = PureMean.leaving(protection, learning)
            assert found is not None
            strength = schedule.step_strength(float(schedule.likely_final_share))
            pure = math.sqrt(dim + 1) / (float(found.share) * epsilon)
            yield (
                f"{dim:3}{n:8}{epsilon:6g}{float(learning):18.2f}{float(found.share):25.2f}"
                f"{pure * strength:13.2f}"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Errors of means of one column under (ε, δ).")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results")
    options = parser.parse_args()
    main(options.trials, options.write)
