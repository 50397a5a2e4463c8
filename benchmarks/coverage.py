"""How often intervals hold what their labels say, on twelve shapes of records.

    python -m benchmarks.coverage [--trials N] [--cases PATTERN] [--write]

The last writes docs/coverage.md. Wages come with the extra `study`.
"""

from __future__ import annotations

import argparse
import fnmatch
import math
import warnings
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.coverage_cases import CASES, Case
from benchmarks.coverage_shapes import Shape, shapes
from benchmarks.pages import versions
from muhat.errors import MuhatError

PAGE = Path(__file__).parent.parent / "docs" / "coverage.md"
NOMINAL = 0.95
NUMBERS = (100, 1000, 10_000)

DEVIATIONS = 3
"""A cell is marked where chance alone would leave it so seldom: one time in 740."""

ABOUT = """\
# How often intervals hold

In how many of {trials} releases, each of new records, the 95 % interval held what its label says,
in per cent. `records` is the statistic of the records of that release, so that an interval has the
noise to cover; `population` is that of the distribution which they were drawn from. `clipped`:
values beyond the bounds, or beyond the set that was learnt, count as the nearest that are not, and
how far that moves a mean no interval says. `outside` is the printed range of how many records lie
beyond a learnt set. **Bold**: below {least:.1f}, where chance would leave one cell in 740 that has
95.

Several statements a release (three quantiles, eight cells, four groups) are counted one by one;
groups that are too few for a value are left out. A dash: the plan is refused, or no value came out.
The first table is not private: rare values that a sample does not hold, no interval of it can know
of.

Written by `python -m benchmarks.coverage --write`, {versions}.
"""


def main(trials: int = 400, pattern: str = "*", write: bool = False) -> None:
    """One table a statistic."""
    chosen = {name: case for name, case in CASES.items() if fnmatch.fnmatch(name, pattern)}
    kept = []
    for name, case in chosen.items():
        kept.append("\n".join(section(name, case, shapes(), trials)))
        print(kept[-1], flush=True)
    if write:
        about = ABOUT.format(trials=trials, least=100 * least(trials), versions=versions())
        PAGE.write_text("\n".join([about, *kept]), "utf-8")


def section(name: str, case: Case, kinds: Iterable[Shape], trials: int) -> list[str]:
    """The heading and the table: a line a shape, a column for every label and n."""
    rows = {shape.name: measured(case, shape, trials) for shape in kinds}
    labels = list(dict.fromkeys(label for row in rows.values() for label, _ in row))
    columns = [(label, n) for label in labels for n in NUMBERS]
    head = ["records", *(f"{label}, n = {n:,}" for label, n in columns)]
    lines = [f"## {name}", "", _line(head), _line(["---", *["--:"] * len(columns)])]
    for shape, row in rows.items():
        lines.append(_line([shape, *(shown(row.get(column, [])) for column in columns)]))
    return [*lines, ""]


def measured(case: Case, shape: Shape, trials: int) -> dict[tuple[str, int], list[bool]]:
    """Whether each statement of each release held, by label and n."""
    held: dict[tuple[str, int], list[bool]] = defaultdict(list)
    for n in NUMBERS:
        generator = np.random.default_rng([n, *shape.name.encode()])
        try:
            trial = case(shape, n)
        except MuhatError:
            continue
        for _ in range(trials):
            for label, fine in trial(shape.draw(generator, n)):
                held[label, n].append(fine)
    return held


def least(statements: int) -> float:
    """What a part of so many statements that hold with 95 % is hardly ever below."""
    return NOMINAL - DEVIATIONS * math.sqrt(NOMINAL * (1 - NOMINAL) / statements)


def shown(held: list[bool]) -> str:
    """A part in per cent."""
    if not held:
        return "–"
    part = float(np.mean(held))
    text = f"{100 * part:.1f}"
    return f"**{text}**" if part < least(len(held)) else text


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--cases", default="*")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(given.trials, given.cases, given.write)
