"""Means of groups as people read them, in a terminal and in a notebook."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from muhat._text import joined
from muhat.release.display import (
    MISSING,
    caution_lines,
    page,
    population_lines,
    rounded,
    shortened,
    significant,
    table,
)

if TYPE_CHECKING:
    from muhat.release.group_release import GroupRelease

NOTE = "A noisy sum divided by a noisy count for every group: slightly biased, so no certificate."

TOO_FEW = "too few"

TOO_FEW_NOTE = (
    "Too few: the noisy number of values is less than five of its standard errors, so that no "
    "mean is printed."
)


def release_text(release: GroupRelease) -> str:
    """Means of groups for the terminal."""
    lines = [release_title(release), "", *table(release_rows(release)), ""]
    return joined([*lines, *release_notes(release)])


def release_html(release: GroupRelease) -> str:
    """Means of groups for a notebook."""
    return page(release_title(release), release_rows(release), release_notes(release))


def release_notes(release: GroupRelease) -> list[str]:
    """What became of missing values, and how good the means are."""
    lines = caution_lines(release.cost, None)
    if release.missing is not None:
        lines.append(MISSING[release.missing].format("mean"))
    lines += population_lines(release.releases[0])
    if release.too_few.any():
        lines.append(TOO_FEW_NOTE)
    return [*lines, NOTE]


def release_title(release: GroupRelease) -> str:
    """One line: what it is and what it cost."""
    return f"Private means by {release.by} · {release.cost.describe()} · n secret"


def release_rows(release: GroupRelease) -> list[list[str]]:
    """A header, then a line a group and column."""
    counted = f"{'records' if release.missing != 'drop' else 'recorded'} ± s.e."
    intervals = ["95 % interval"]
    if release.has_population:
        intervals = ["95 % interval: records", "95 % interval: population"]
    rows = [[release.by, "column", "value", "standard error", *intervals, counted]]
    columns = list(release.table().values())
    for group, column, value, error, *ends, recorded, spread in zip(
        *columns, release.recorded_error.ravel(), strict=True
    ):
        cells = [TOO_FEW, "", *("" for _ in intervals)]
        if math.isfinite(error):
            cells = [rounded(value, error), significant(error)]
            for low, high in zip(ends[::2], ends[1::2], strict=True):
                size = error if low is ends[0] else (high - low) / 4
                cells.append(f"{rounded(low, size)} … {rounded(high, size)}")
        number = f"{rounded(max(recorded, 0.0), 10 * spread)} ± {significant(spread)}"
        rows.append([str(group), column, *cells, number])
    return shortened(rows)
