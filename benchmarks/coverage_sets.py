"""Sets of statistics by group: whether errors are as planned, and how often intervals hold.

    python -m benchmarks.coverage_sets [--trials N] [--write]

The last writes docs/coverage-sets.md. Groups have 40, 400 and 4,000 records. Errors, and what the
intervals for records cover, are measured on one table, so that noise is all that differs; those for
the population on tables that are drawn anew for every release.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import muhat as mh
from benchmarks.coverage import least
from benchmarks.pages import versions

PAGE = Path(__file__).parent.parent / "docs" / "coverage-sets.md"
SIZES = {"small": 40, "middle": 400, "large": 4_000}
TOTAL = sum(SIZES.values())
PROMISE = mh.ZCDP(rho=1.0)
SCHEMA = mh.Schema({"pay": (0, 100), "age": (20, 70), "group": list(SIZES)})
ASKED = [
    mh.Count(by="group"),
    mh.Sum("pay", by="group"),
    mh.Mean("pay", by="group"),
    mh.Variance("pay", by="group"),
    mh.Covariance(["pay", "age"], by="group"),
    mh.Regression("pay ~ age", by="group"),
    mh.Quantile("pay", by="group"),
]
SLOPE, START, NOISE = 0.6, 10.0, 10.0
"""pay = START + SLOPE·age + something uniform in ±NOISE, and age is uniform in its bounds."""

Floats = NDArray[np.float64]

ABOUT = """\
# How often intervals of sets hold

{trials} releases of {number} statistics together, {promise}, of groups of 40, 400 and 4,000 records
(pay is a straight line of age and something independent of it, all within bounds, nothing missing).

- *planned* is the standard error that the plan states before any data; of a mean, a variance and a
  covariance that at the mean where it is largest, for a group of that size. A dash: it depends on
  more than that.
- *stated* is what releases print, the median of it; *measured* the root mean square of what values
  were off, for one and the same table. Values of a group that is too few are left out, and so are
  their errors. Of quantiles there are rank errors instead.
- *records*, *population*: in how many releases, in per cent, the 95 % interval held the statistic
  of the records (one table) and that of the distribution that they were drawn from (a new table a
  release). A dash: none is printed. **Bold**: below {least:.1f}, where chance would leave one cell
  in 740 that has 95.
- *too few*: in how many releases of the one table, in per cent, nothing is printed of the group.

Written by `python -m benchmarks.coverage_sets --write`, {versions}.
"""


@dataclass
class Measured:
    """What became of one number of one group, release by release."""

    planned: float | None
    off: list[float] = field(default_factory=list)
    stated: list[float] = field(default_factory=list)
    records: list[bool] = field(default_factory=list)
    short: list[bool] = field(default_factory=list)
    population: list[bool] = field(default_factory=list)

    @property
    def error(self) -> float:
        """The root mean square error of the values that were printed."""
        return float(np.sqrt(np.nanmean(np.square(self.off))))


Key = tuple[str, str, str]
"""A statistic, the number of it, and the group."""


def drawn(generator: np.random.Generator) -> dict[str, Any]:
    """A table of new records."""
    age = generator.uniform(20, 70, TOTAL)
    pay = START + SLOPE * age + generator.uniform(-NOISE, NOISE, TOTAL)
    return {"group": np.repeat(list(SIZES), list(SIZES.values())), "age": age, "pay": pay}


def exact(table: Mapping[str, Any]) -> dict[str, Floats]:
    """The statistics of the records, a line a group."""
    found: dict[str, list[Any]] = {asked.name: [] for asked in ASKED}
    for group in SIZES:
        pay, age = (table[name][table["group"] == group] for name in ("pay", "age"))
        covariance = np.cov(pay, age)
        slope = covariance[0, 1] / covariance[1, 1]
        numbers = (
            len(pay),
            pay.sum(),
            pay.mean(),
            covariance[0, 0],
            covariance[0, 1],
            [pay.mean() - slope * age.mean(), slope],
            np.sort(pay)[-(-len(pay) // 2) - 1],
        )
        for name, number in zip(found, numbers, strict=True):
            found[name].append(number)
    return {name: np.array(numbers, np.float64) for name, numbers in found.items()}


def of_population() -> dict[str, Any]:
    """What the records are draws of, where a statistic has that."""
    spread = 50.0**2 / 12
    return {
        "mean pay by group": START + SLOPE * 45,
        "variance pay by group": SLOPE**2 * spread + (2 * NOISE) ** 2 / 12,
        "covariance pay, age by group": SLOPE * spread,
        "regression pay ~ age by group": np.array([START, SLOPE]),
        "quantile pay by group": START + SLOPE * 45,  # symmetric
    }


def measured(*, secret: bool, trials: int, short: float = 0.7) -> dict[Key, Measured]:
    """All numbers of all groups; `short` is a confidence of less than 95 %, for comparison."""
    plan = mh.plan(ASKED, schema=SCHEMA, privacy=PROMISE, n=None if secret else TOTAL)
    generator = np.random.default_rng([11, secret])
    table, truths, found = drawn(generator), of_population(), _empty(plan)
    fixed = exact(table)
    for _ in range(trials):
        for name, part in plan.release(table):
            ends, less, truth = part.interval(), part.interval(short), fixed[name]
            stated = getattr(part, "standard_error", None)
            for key, place in _places(name, truth):
                one = found[key]
                one.off.append(float(_at(part.value, place) - truth[place]))
                if stated is not None:
                    one.stated.append(float(_at(stated, place)))
                one.records.append(_held(ends, truth[place], place))
                one.short.append(_held(less, truth[place], place))
        for name, part in plan.release(drawn(generator)):
            if name in truths:
                truth = np.broadcast_to(truths[name], fixed[name].shape)
                ends = part.interval(target="population")
                for key, place in _places(name, truth):
                    found[key].population.append(_held(ends, truth[place], place))
    return found


def _empty(plan: Any) -> dict[Key, Measured]:
    found = {}
    shapes = exact(drawn(np.random.default_rng(1)))
    for asked in ASKED:
        for key, _ in _places(asked.name, shapes[asked.name]):
            in_ranks, size = isinstance(asked, mh.Quantile), SIZES[key[2]]
            found[key] = Measured(None if in_ranks else plan[asked.name].standard_error_at(size))
    return found


def _places(name: str, values: Floats) -> Iterator[tuple[Key, tuple[int, ...]]]:
    """Every number of every group, and where it stands."""
    outputs = ("intercept", "slope") if values.ndim > 1 else ("",)
    for row, group in enumerate(SIZES):
        for column, output in enumerate(outputs):
            yield (name, output, group), (row, column) if output else (row,)


def _at(values: Any, place: tuple[int, ...]) -> float:
    """A number of an answer; quantiles have an axis for the only column."""
    return float(np.asarray(values)[place].reshape(()))


def _held(ends: tuple[Any, Any], truth: float, place: tuple[int, ...]) -> bool:
    return _at(ends[0], place) <= truth <= _at(ends[1], place)


def section(title: str, found: Mapping[Key, Measured]) -> list[str]:
    """A heading, and a line a number and group."""
    head = ("statistic", "group", "planned", "stated", "measured", "records", "population")
    lines = [f"## {title}", "", _line([*head, "too few"]), _line(["---", "---", *["--:"] * 6])]
    for (name, output, group), one in found.items():
        errors = [one.planned, float(np.median(one.stated)) if one.stated else None]
        errors.append(one.error if one.stated else None)
        shown = ["–" if error is None else f"{error:,.3g}" for error in errors]
        few = 100 * float(np.mean(np.isnan(one.off)))
        cells = [f"{name}{output and f': {output}'}", f"{SIZES[group]:,}", *shown]
        lines.append(_line([*cells, _part(one.records), _part(one.population), f"{few:.1f}"]))
    return [*lines, ""]


def _part(held: list[bool]) -> str:
    if not held:
        return "–"
    text = f"{100 * float(np.mean(held)):.1f}"
    return f"**{text}**" if np.mean(held) < least(len(held)) else text


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(trials: int = 400, write: bool = False) -> None:
    """A table for a secret and one for a public number of records."""
    kept = []
    for title, secret in (("n secret", True), ("n public", False)):
        kept.append("\n".join(section(title, measured(secret=secret, trials=trials))))
        print(kept[-1], flush=True)
    if write:
        about = ABOUT.format(
            trials=trials,
            number=len(ASKED),
            promise=PROMISE.describe(),
            least=100 * least(trials),
            versions=versions(),
        )
        PAGE.write_text("\n".join([about, *kept]), "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    main(given.trials, given.write)
