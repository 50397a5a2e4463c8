"""Quantiles as people read them, in a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muhat._text import joined
from muhat.release.display import MOST_ROWS, caution_lines, page, shortened, table
from muhat.release.fields import CONFIDENCE
from muhat.release.quantile_grids import shown, words

if TYPE_CHECKING:
    from muhat.release.quantile_release import QuantileRelease

MISSING = {
    "drop": "a missing or non-finite value is left out: each quantile is of its column's recorded "
    "values",
    "center": "a missing or non-finite value counts as the middle of the bounds",
    "none": "nothing is missing, as was declared; a value that is counts as the middle of the "
    "bounds",
}
"""What becomes of missing values, in words that follow every table."""

NOTE = (
    "The rank error counts records: the value lies between records that far from the quantile. "
    "Intervals are for the quantiles of these records, clipped to the bounds: they cover noise "
    "alone, not the choice of a sample."
)

TOO_FEW = "too few values"


def release_text(release: QuantileRelease) -> str:
    """Quantiles for the terminal."""
    lines = [release_title(release), "", *table(release_rows(release)), ""]
    return joined([*lines, *release_notes(release)])


def release_html(release: QuantileRelease) -> str:
    """Quantiles for a notebook."""
    return page(release_title(release), release_rows(release), release_notes(release))


def release_notes(release: QuantileRelease) -> list[str]:
    """What became of missing values, how many there are, and what the errors mean."""
    rule = MISSING[release.missing]
    said = [f"{rule[0].upper()}{rule[1:]}.", *recorded_lines(release)]
    return [*caution_lines(release.privacy, release.n), *said, NOTE]


def recorded_lines(release: QuantileRelease) -> list[str]:
    """The noisy number of recorded values of every column."""
    if release.recorded is None or release.counts is None:
        return []
    said = []
    for column, number, count in zip(
        release.columns, release.recorded, release.counts, strict=True
    ):
        half = count.half_width(CONFIDENCE)
        ends = [_possible(release, end) for end in (number - half, number, number + half)]
        low, about, high = (f"{end:,}" for end in ends)
        said.append(f"{column} about {about} (95 % interval {low} … {high})")
    listed = said if len(said) <= MOST_ROWS else [*said[:MOST_ROWS], "…"]
    of_all = "" if release.n is None else f" of {release.n:,} records"
    return [f"Recorded values: {', '.join(listed)}{of_all}."]


def _possible(release: QuantileRelease, number: float) -> int:
    """A noisy number of records as one that can be."""
    whole = max(round(number), 0)
    return whole if release.n is None else min(whole, release.n)


def release_title(release: QuantileRelease) -> str:
    """One line: what it is and what it cost."""
    people = "n secret" if release.n is None else f"n = {release.n}"
    several = "s" * (release.value.size > 1)
    return f"Private quantile{several} · {release.privacy.describe()} · {people}"


def release_rows(release: QuantileRelease) -> list[list[str]]:
    """A header, then a line a column and quantile."""
    rows = [["column", "quantile", "value", "rank error (95 %)", "95 % interval"]]
    lower, upper = release.interval()
    shape = (len(release.fractions), len(release.columns))
    values, errors, lows, highs = (
        np.reshape(each, shape) for each in (release.value, release.rank_error(), lower, upper)
    )
    known = [release.n] * len(release.columns) if release.recorded is None else release.recorded
    for j, (column, grid) in enumerate(zip(release.columns, release.grids, strict=True)):
        for i, fraction in enumerate(release.fractions):
            number = known[j]
            # A rank error of all values and more leaves no value better than any other.
            hopeless = number is not None and number <= errors[i, j]
            rows.append(
                [
                    column,
                    f"{fraction:g}",
                    TOO_FEW if hopeless else shown(grid, values[i, j]),
                    f"± {errors[i, j]:,}",
                    f"{shown(grid, lows[i, j])} … {shown(grid, highs[i, j])}",
                ]
            )
    return shortened(rows)


def description(release: QuantileRelease) -> str:
    """How the values were found, what they cost and what they rest on."""
    lines = [release_title(release), ""]
    for j, (column, grid) in enumerate(zip(release.columns, release.grids, strict=True)):
        search = release.searches[0][j]
        lines.append(
            f"{column}: {words(grid)}, {search.questions} noisy comparisons for each quantile, "
            f"with {search.law.name} noise of {search.scale:.3g} records."
        )
    lines += ["", *table(release_rows(release)), "", *release_notes(release), "", "Assumptions:"]
    return joined([*lines, *(f"- {line}" for line in release.assumptions)])
