"""Statistics of groups as people read them: the table, and what to know about it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from muhat.release.display import MOST_ROWS, rounded, shortened, significant

if TYPE_CHECKING:
    from muhat.release.statistic_answer import StatisticAnswer

TOO_FEW = "too few"

RESTS = {
    "variance": (
        "The second allows for the largest fourth moment that the bounds leave room for, so that "
        "it may be two or three times as long as it had to be."
    ),
    "covariance": "The second allows for the largest products that the bounds leave room for.",
    "correlation": "The second takes pairs of values to be normal (Fisher).",
    "regression": "The second takes residuals to be independent of the explaining columns.",
    "weighted mean": (
        "The second takes values and weights to be independent draws of pairs, and allows for the "
        "largest variance."
    ),
}
"""What the interval for a population assumes beyond independent draws."""


def statistic_rows(answer: StatisticAnswer, most: int = MOST_ROWS) -> list[list[str]]:
    """A header, then a line a group and number."""
    table = answer.table()
    intervals = ["95 % interval"]
    if answer.has_population:
        intervals = ["95 % interval: records", "95 % interval: population"]
    words = list(table)[: list(table).index("value")]
    counted = [] if answer.kind == "count" else ["records ± s.e."]
    rows = [[*words, "value", "standard error", *intervals, *counted]]
    if not words:
        rows[0].insert(0, "statistic")
    few = np.repeat(answer.too_few, len(answer.lines)).tolist()
    for *cells, too_few in zip(*(column.tolist() for column in table.values()), few, strict=True):
        labels, numbers = cells[: len(words)], cells[len(words) :]
        value, error, *ends, recorded, spread = numbers
        shown = [TOO_FEW, "", *("" for _ in intervals)]
        if not too_few:
            shown = [rounded(value, error), significant(error)]
            for place in range(0, len(ends), 2):
                low, high = ends[place : place + 2]
                shown.append(interval_words(low, high, error if place == 0 else (high - low) / 4))
        if counted:
            exact = spread == 0
            size = f"{recorded:,.0f}" if exact else rounded(max(recorded, 0.0), 10 * spread)
            shown.append(size if exact else f"{size} ± {significant(spread)}")
        rows.append([*(map(str, labels) if words else [answer.name]), *shown])
    return shortened(rows, most)


def interval_words(low: float, high: float, size: float) -> str:
    """Both ends to two digits of a size; "unbounded" if there are none."""
    if math.isinf(low) and math.isinf(high):
        return "unbounded"
    return f"{rounded(low, size)} … {rounded(high, size)}"


def statistic_notes(answer: StatisticAnswer) -> list[str]:
    """What the intervals are about and rest on, and what is not printed."""
    kind, several = answer.kind, len(answer.columns) > 1
    lines = []
    if some := [name for name in answer.by if name not in answer.complete_by]:
        named = " or ".join(some)
        lines.append(f"A record whose {named} is missing or not declared is in no group.")
    lines += [
        f"Every {name} is one of those listed, as was declared; else it is the first."
        for name in answer.complete_by
    ]
    if answer.missing == "drop" and answer.columns:
        lacking = "any of its columns" if several else f"its {answer.columns[0]}"
        lines.append(f"A record that lacks {lacking} is left out.")
    elif answer.missing == "none" and answer.columns:
        named = " and ".join(answer.columns)
        lines.append(f"Nothing is missing in {named}, as was declared; else it is at the centre.")
    if answer.has_population:
        what = "the coefficients" if kind == "regression" else f"the {kind}"
        line = (
            f"The first interval is for {what} of these records, clipped to their bounds: "
            "noise alone. The second is for the population that they are independent draws of, "
            "clipped too."
        )
        said = RESTS.get("variance" if kind == "standard deviation" else kind)
        lines.append(line if said is None else f"{line} {said}")
    elif kind == "count" and not answer.standard_error.any():
        lines.append("The number of records is public, and this is it, without noise.")
    elif kind != "count":
        lines.append(f"No interval for a population: {answer.why_no_population}.")
    if answer.too_few.any():
        lines.append(_too_few(answer))
    return [*lines, *_special(answer)]


def _too_few(answer: StatisticAnswer) -> str:
    """From how many records on there is a value, and why."""
    assert answer.fewest is not None
    line = f"Too few: fewer than {math.ceil(answer.fewest):,} records"
    if not answer.recorded_error.any():
        return f"{line}, which the statistic needs."
    return (
        f"{line} by their noisy number, which is five of its standard errors. Nothing is printed "
        "then, since an empty group could look so."
    )


def _special(answer: StatisticAnswer) -> list[str]:
    """What is particular to a kind of statistic, where it has happened."""
    lines = []
    told = ~answer.too_few
    lower, upper = answer.interval()
    if answer.kind in ("variance", "standard deviation") and (lower[told] == 0).any():
        lines.append("An interval from 0: the noise alone could have made the spread.")
    if answer.kind == "regression":
        if len(answer.columns) > 2:
            lines.append("With several explaining columns intervals are approximate.")
        if np.isinf(upper[told]).any():
            lines.append(
                "Unbounded: noise alone could have made the spread of the explaining columns, "
                "which are held at that level (a ridge)."
            )
    return lines
