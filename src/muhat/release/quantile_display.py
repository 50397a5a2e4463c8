"""Quantiles as people read them, in a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muhat.release.display import caution_lines, page, shortened, table
from muhat.release.quantile_grids import shown, words

if TYPE_CHECKING:
    from muhat.release.quantile_release import QuantileRelease

NOTE = "The rank error counts records: the value lies between records that far from the quantile."


def release_text(release: QuantileRelease) -> str:
    """Quantiles for the terminal."""
    lines = [release_title(release), "", *table(release_rows(release)), ""]
    return "\n".join([*lines, *release_notes(release)])


def release_html(release: QuantileRelease) -> str:
    """Quantiles for a notebook."""
    return page(release_title(release), release_rows(release), release_notes(release))


def release_notes(release: QuantileRelease) -> list[str]:
    """What the numbers mean."""
    return [*caution_lines(release.privacy, release.n), NOTE]


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
    for j, (column, grid) in enumerate(zip(release.columns, release.grids, strict=True)):
        for i, fraction in enumerate(release.fractions):
            rows.append(
                [
                    column,
                    f"{fraction:g}",
                    shown(grid, values[i, j]),
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
            f"{column}: {words(grid)}, {search.rounds} noisy comparisons for each quantile, "
            f"with {search.law.name} noise of {search.scale:.3g} records."
        )
    lines += ["", *table(release_rows(release)), "", *release_notes(release)]
    lines += ["", "Assumptions:"]
    return "\n".join([*lines, *(f"- {line}" for line in release.assumptions)])
